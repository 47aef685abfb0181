//! Names that transport fields read: everything that templates read, with secrets, sealed state and current config values opened.
//! Lives for one attempt; never stored, never logged.

use crate::Env;
use crate::engine::Engine;
use crate::past::Past;
use crate::seal::{SealError, Sealer};
use crate::secrets::{self, mask_text};
use crate::toolset::Writes;
use minijinja::Value;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use steersman_machine::network::Network;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::ids::{Id, Name};
use steersman_machine::stored::outcome::{Mapped, NewArtifact};
use steersman_machine::stored::parts::NewPart;
use steersman_machine::values::expression::Scope;
use steersman_machine::view::artifact::Content;
use steersman_machine::view::mapping::{self, Fault, Raw};
use steersman_machine::view::{Cx, Transport, View};

/// Gives the arguments of a call. Most calls have no field that reads them, so they are parsed only for one that does.
type Given = Box<dyn FnOnce() -> Option<Arc<Json>> + Send>;

pub(crate) struct TransportScope {
    network: Arc<Network>,
    past: Arc<Past>,
    snapshot: Snapshot,
    agent: Id,
    args: LazyLock<Option<Arc<Json>>, Given>,
    /// Additional names with their values.
    more: Vec<(&'static str, Arc<Json>)>,
    opener: Opener,
    /// Names that were read and whose sealed value could not be opened, each with the reason.
    locked: Mutex<BTreeMap<String, SealError>>,
}

impl TransportScope {
    pub(crate) fn new(
        network: Arc<Network>,
        past: Arc<Past>,
        snapshot: Snapshot,
        agent: Id,
        (args, inputs): (Option<Arc<str>>, &[(Name, String)]),
        engine: &Engine,
        folder: Arc<Path>,
    ) -> Self {
        Self {
            opener: Opener {
                network: network.clone(),
                folder,
                env: engine.0.options.env.clone(),
                sealer: engine.sealer().clone(),
                failed: Mutex::default(),
            },
            locked: Mutex::default(),
            network,
            past,
            snapshot,
            agent,
            args: LazyLock::new(given(args, inputs, engine.sealer())),
            more: Vec::new(),
        }
    }

    /// Adds a name that templates can read, with its value.
    pub(crate) fn with(mut self, name: &'static str, value: Json) -> Self {
        self.more.push((name, Arc::new(value)));
        self
    }

    /// Names the key that is missing, if a tool was not run because a sealed value that it reads could not be opened.
    pub(crate) fn explains(&self, raw: Raw) -> Raw {
        let Raw::NotPerformed(fault) = raw else {
            return raw;
        };
        let locked = held(&self.locked);
        let mut named = locked.iter();
        let named = named.find(|(name, _)| fault.message.contains(&format!("`{name}`")));
        Raw::NotPerformed(match named {
            Some((name, error)) => Fault::new(Code::Sealed, format!("`{name}`: {error}")),
            None => fault,
        })
    }

    /// Returns true if a value that was just read could not be opened, and keeps the reason. Such a value is not defined, so the
    /// field that reads it fails: a handle is never sent in place of a secret.
    fn is_locked(&self, name: impl FnOnce() -> String) -> bool {
        let Some(error) = held(&self.opener.failed).take() else {
            return false;
        };
        held(&self.locked).insert(name(), error);
        true
    }
}

/// Gives arguments from their JSON, with sealed inputs opened. One that this machine's key does not open stays away.
fn given(args: Option<Arc<str>>, inputs: &[(Name, String)], sealer: &Sealer) -> Given {
    let Some(text) = args else {
        return Box::new(|| None);
    };
    let (inputs, sealer) = (inputs.to_vec(), sealer.clone());
    Box::new(move || {
        let mut args: Json = serde_json::from_str(&text).ok()?;
        if let Json::Object(args) = &mut args {
            for (name, sealed) in inputs {
                if let Ok(value) = sealer.open_text(&sealed) {
                    args.insert(name.to_string(), (**value).into());
                }
            }
        }
        Some(Arc::new(args))
    })
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TransportScope {
    fn view<T>(&self, look: impl FnOnce(&View<'_>) -> T) -> T {
        let cx = Cx {
            network: &self.network,
            bodies: &*self.past,
        };
        let view = View::new(&cx, &self.snapshot, Some(self.agent)).transport(&self.opener);
        let view = self.more.iter().fold(view, |view, (name, value)| {
            view.with_shared(name, value.clone())
        });
        match &*self.args {
            Some(args) => look(&view.with_shared("args", args.clone())),
            None => look(&view),
        }
    }
}

impl Scope for TransportScope {
    fn root(&self, name: &str) -> Option<Value> {
        let found = self.view(|view| view.root(name));
        if self.is_locked(|| name.to_owned()) {
            return Some(Value::UNDEFINED);
        }
        found
    }

    fn path(&self, root: &str, steps: &[&str]) -> Option<(Value, usize)> {
        let found = self.view(|view| view.path(root, steps));
        // The name is the part that was read, because the error of the template names that part.
        let read = found.as_ref().map_or(0, |(_, read)| *read);
        let name = || [&[root], &steps[..read]].concat().join(".");
        if self.is_locked(name) {
            return Some((Value::UNDEFINED, read));
        }
        found
    }
}

impl Writes for TransportScope {
    fn check(&self, name: &str, value: &Json) -> Result<(), Fault> {
        let cx = Cx {
            network: &self.network,
            bodies: &*self.past,
        };
        let (name, value) = (Name::from(name), value.clone());
        mapping::write(&cx, &self.snapshot, self.agent, &name, value).map(drop)
    }
}

struct Opener {
    network: Arc<Network>,
    /// Base folder of secret files with relative paths.
    folder: Arc<Path>,
    env: Env,
    sealer: Sealer,
    /// The reason why the last value could not be opened.
    failed: Mutex<Option<SealError>>,
}

impl Transport for Opener {
    fn secret(&self, name: &str) -> Result<Option<String>, String> {
        match self.network.secrets.get_key_value(name) {
            Some((name, secret)) => secrets::read(name, secret, &self.env, &self.folder)
                .map_err(|error| error.to_string()),
            None => Err(format!("secret `{name}` is not declared")),
        }
    }

    fn live(&self, name: &str) -> Option<Json> {
        let (name, config) = self.network.config.get_key_value(name)?;
        crate::bind::read(name, config, &self.env).ok()
    }

    fn open(&self, sealed: &Json) -> Option<Json> {
        let opened = self.sealer.open(sealed);
        opened
            .map_err(|error| *held(&self.failed) = Some(error))
            .ok()
    }
}

/// Masks secrets in every part of an outcome that is not sealed: a service may return a secret that it was sent.
pub(super) fn mask(mapped: &mut Mapped, secrets: &[String]) {
    if let Some(shown) = &mut mapped.shown {
        mask_text(shown, secrets);
    }
    for part in &mut mapped.more {
        if let NewPart::Text(text) = part {
            mask_text(text, secrets);
        }
    }
    for write in mapped.writes.iter_mut().filter(|write| !write.seal) {
        if let Some(value) = &mut write.value {
            mask_json(value, secrets);
        }
    }
    if let Some((_, args)) = &mut mapped.then {
        mask_json(args, secrets);
    }
    for version in mapped.versions() {
        mask_content(version, secrets);
    }
}

/// Masks a content that is text; other contents are left as they are.
fn mask_content(version: &mut NewArtifact, secrets: &[String]) {
    let Some(content) = &version.content else {
        return;
    };
    let Ok(text) = std::str::from_utf8(content) else {
        return;
    };
    if !secrets.iter().any(|secret| text.contains(secret.as_str())) {
        return;
    }
    let mut text = text.to_owned();
    mask_text(&mut text, secrets);
    let masked = Content {
        name: std::mem::take(&mut version.name),
        media: std::mem::take(&mut version.media),
        bytes: text.into_bytes().into(),
    };
    *version = masked.version();
}

fn mask_json(json: &mut Json, secrets: &[String]) {
    match json {
        Json::String(text) => mask_text(text, secrets),
        Json::Array(list) => list.iter_mut().for_each(|json| mask_json(json, secrets)),
        Json::Object(fields) => fields
            .values_mut()
            .for_each(|json| mask_json(json, secrets)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}
