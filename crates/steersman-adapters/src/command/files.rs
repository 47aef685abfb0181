//! Artifacts of a command: the files that its program reads, and what becomes an artifact afterwards.

use super::Visible;
use super::folder::{Folder, too_large, written};
use minijinja::Value;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use steersman_machine::network::Save;
use steersman_machine::stored::bounds::ARTIFACT;
use steersman_machine::stored::ids::Name;
use steersman_machine::values::expression::{Scope, from_json, to_json};
use steersman_machine::values::types::{Parameters, TypeKind};
use steersman_machine::view::artifact::{self, Content};
use steersman_machine::view::mapping::{self, Raw};
use steersman_runtime::toolset::ToolRun;

/// The files of one attempt. They are removed when this is dropped.
#[derive(Default)]
pub(super) struct Files {
    folder: Option<Folder>,
    /// Path of the file of each parameter that is an artifact.
    given: BTreeMap<Name, String>,
    save: Option<Wanted>,
}

/// The artifact that the attempt makes.
struct Wanted {
    name: String,
    media: Option<String>,
    /// Path of the file that the program may write.
    path: String,
    /// True if the program was told this path: then the file is the artifact, and not what it prints.
    is_told: AtomicBool,
}

impl Files {
    /// Makes the files of an attempt. An error says why there are none; then nothing ran.
    pub(super) async fn of(
        run: &ToolRun,
        parameters: &Parameters,
        save: Option<&Save>,
        temporary: PathBuf,
    ) -> Result<Self, String> {
        let save = save.map(|save| wanted(run, save)).transpose()?;
        let mut contents = Vec::new();
        for (parameter, name) in named(run, parameters) {
            let told = |error: &dyn std::fmt::Display| format!("`args.{parameter}`: {error}");
            let found = run.artifacts.find(&name, None).map_err(|e| told(&e))?;
            let content = run.artifacts.content(&found).await.map_err(|e| told(&e))?;
            contents.push((parameter, name, content));
        }
        if contents.is_empty() && save.is_none() {
            return Ok(Self::default());
        }
        let made = tokio::task::spawn_blocking(move || -> std::io::Result<Self> {
            let folder = Folder::new(&temporary)?;
            let mut given = BTreeMap::new();
            for (parameter, name, content) in contents {
                let path = folder.give(&parameter, &name, &content)?;
                given.insert(parameter, path.display().to_string());
            }
            let save = match save {
                Some(save) => {
                    let path = folder.wanted(&save.name)?.display().to_string();
                    Some(Wanted { path, ..save })
                }
                None => None,
            };
            Ok(Self {
                folder: Some(folder),
                given,
                save,
            })
        });
        let made = made.await.map_err(|error| error.to_string())?;
        made.map_err(|error| format!("its files cannot be made: {error}"))
    }

    /// Returns the standard input of the program. It is empty.
    pub(super) fn input(&self) -> Result<Stdio, String> {
        match &self.folder {
            Some(folder) => folder.input().map_err(|error| error.to_string()),
            None => Ok(Stdio::null()),
        }
    }

    /// Returns true if what the program prints becomes the artifact.
    pub(super) fn keeps_output(&self) -> bool {
        let told = |save: &Wanted| save.is_told.load(Ordering::Relaxed);
        self.save.as_ref().is_some_and(|save| !told(save))
    }

    /// Returns the outcome of a program whose output becomes the artifact. `dropped` is the number of bytes that are not kept.
    pub(super) fn of_output(self, run: &ToolRun, bytes: Vec<u8>, dropped: u64) -> Raw {
        let save = self.save.expect("asked for if the output is kept");
        if dropped > 0 {
            let why = too_large("what it printed", bytes.len() as u64 + dropped, ARTIFACT);
            return Raw::Failed(mapping::unfit(run.work.class, &why));
        }
        made(Json::from(&*save.name), vec![save.content(bytes)])
    }

    /// Adds the file that the program was to write to its outcome. The result is what it printed, or else the artifact's name.
    pub(super) async fn with_written(mut self, run: &ToolRun, printed: Raw) -> Raw {
        let Some(save) = self.save.take() else {
            return printed;
        };
        let path = PathBuf::from(&save.path);
        let read = tokio::task::spawn_blocking(move || written(&path, ARTIFACT));
        let read = read.await.map_err(|error| error.to_string());
        let bytes = match read.and_then(|read| read) {
            Ok(bytes) => bytes,
            Err(why) => return Raw::Failed(mapping::unfit(run.work.class, &why)),
        };
        let name = Json::from(&*save.name);
        let content = save.content(bytes);
        match printed {
            Raw::Done(Json::Null) => made(name, vec![content]),
            Raw::Done(Json::String(text)) if text.trim().is_empty() => made(name, vec![content]),
            Raw::Done(result) => made(result, vec![content]),
            Raw::Made {
                result,
                made: printed,
                ..
            } => made(result, [vec![content], printed].concat()),
            other => other,
        }
    }
}

fn made(result: Json, made: Vec<Content>) -> Raw {
    Raw::Made {
        result,
        made,
        writes: Vec::new(),
        mode: None,
    }
}

/// Returns the artifact that an attempt is to make. An error says why it cannot have its name.
fn wanted(run: &ToolRun, save: &Save) -> Result<Wanted, String> {
    let name = save.name.render(&Visible(&*run.scope));
    let name = name.map_err(|error| format!("`save`: {error}"))?;
    match artifact::misnamed(&name) {
        Some(why) => Err(format!("`save`: {why}")),
        None => Ok(Wanted {
            name,
            media: save.media.clone(),
            path: String::new(),
            is_told: AtomicBool::new(false),
        }),
    }
}

/// Returns the arguments that name artifacts.
fn named(run: &ToolRun, parameters: &Parameters) -> Vec<(Name, String)> {
    let Parameters::Fields(fields) = parameters else {
        return Vec::new();
    };
    let wanted = fields
        .iter()
        .filter(|(_, ty)| ty.kind == TypeKind::Artifact);
    let args = steersman_machine::values::json::read::<Map<String, Json>>(&run.work.args);
    let args = args.unwrap_or_default();
    let given = wanted.filter_map(|(name, _)| {
        let artifact = args.get(&**name)?.as_str()?;
        Some((name.clone(), artifact.to_owned()))
    });
    given.collect()
}

impl Wanted {
    fn content(self, bytes: Vec<u8>) -> Content {
        let guessed = match artifact::media_of(&self.name) {
            "text/plain" if std::str::from_utf8(&bytes).is_err() => "application/octet-stream",
            guessed => guessed,
        };
        Content {
            media: self.media.unwrap_or_else(|| guessed.to_owned()),
            name: self.name,
            bytes: bytes.into(),
        }
    }
}

/// The names of a tool for its program: an argument that is an artifact reads as the path of its file, and `save` is the path of
/// the file to write.
pub(super) struct Given<'a> {
    scope: &'a dyn Scope,
    files: &'a Files,
}

impl<'a> Given<'a> {
    pub(super) fn new(scope: &'a dyn Scope, files: &'a Files) -> Self {
        Self { scope, files }
    }
}

impl Scope for Given<'_> {
    fn root(&self, name: &str) -> Option<Value> {
        match (name, &self.files.save) {
            ("save", Some(save)) => {
                save.is_told.store(true, Ordering::Relaxed);
                Some(Value::from(&*save.path))
            }
            ("args", _) if !self.files.given.is_empty() => {
                let mut args = to_json(&self.scope.root("args")?).ok()?;
                for (name, path) in &self.files.given {
                    args[&**name] = Json::from(&**path);
                }
                Some(from_json(args))
            }
            _ => self.scope.root(name),
        }
    }

    fn path(&self, root: &str, steps: &[&str]) -> Option<(Value, usize)> {
        let argument = steps.first().filter(|_| root == "args");
        if let Some(path) = argument.and_then(|name| self.files.given.get(*name)) {
            return Some((Value::from(&**path), 1));
        }
        match root {
            "save" => Some((self.root(root)?, 0)),
            "args" if steps.is_empty() => Some((self.root(root)?, 0)),
            _ => self.scope.path(root, steps),
        }
    }
}
