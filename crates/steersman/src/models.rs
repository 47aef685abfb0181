//! Models that are answered from scripts, and models that the program supplies.

use crate::Error;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use steersman_definition as definition;
use steersman_machine::network::{ModelDef, Network, Provider, SCRIPTED};
use steersman_machine::stored::ids::Name;
use steersman_runtime::model::scripted::{Script as Answers, ScriptedModel, called};
use steersman_runtime::model::{BoundModel, Model, Models, ModelsError};
use steersman_runtime::{Boxed, Env};

/// The source of a script.
#[derive(Clone, Debug)]
pub(crate) enum Script {
    /// The script itself. Sessions that it answered cannot continue without it.
    Text(Arc<str>),
    /// A file, whose path the session stores.
    File(PathBuf),
}

/// A script, and the models that it replaces.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) script: Script,
    /// True if it replaces all models, not only those of the provider `scripted`.
    pub(crate) all: bool,
    /// Other definitions for whose agents it may have answers.
    pub(crate) beside: Vec<Arc<Network>>,
}

impl Given {
    /// Lets the script answer for the agents of these definitions.
    ///
    /// # Errors
    /// It cannot be read, or has answers for an agent that none of the definitions has.
    pub(crate) fn answers_for(&mut self, networks: &[crate::Network]) -> Result<(), Error> {
        self.beside = networks.iter().map(|of| of.checked().clone()).collect();
        let model = self.parsed().map_err(Error::Refused)?;
        let fault = self.beside.first();
        let fault = fault.and_then(|first| self.unknown(&model, first));
        fault.map_or(Ok(()), |why| Err(Error::Refused(why)))
    }

    fn parsed(&self) -> Result<ScriptedModel, String> {
        match &self.script {
            Script::Text(text) => parse("script", text),
            Script::File(file) => load(file),
        }
    }

    /// Says for which names the script has answers although neither this definition nor another one has an agent of that name.
    fn unknown(&self, model: &ScriptedModel, network: &Network) -> Option<String> {
        let mut unknown = model.unknown(network);
        for other in &self.beside {
            let there = model.unknown(other);
            unknown.retain(|name| there.contains(name));
        }
        if unknown.is_empty() {
            return None;
        }
        let agents: Vec<&str> = network.agents.keys().map(|name| &**name).collect();
        Some(format!(
            "the script answers for `{}`, and `{}` has no agent of that name; there are: {}",
            unknown.join("`, `"),
            network.name,
            agents.join(", ")
        ))
    }
}

/// Answers from a script if one was given or bound; otherwise asks a catalog of real models.
pub(crate) struct Scripted<M> {
    catalog: M,
    script: Option<Given>,
    /// Parsed scripts by file; `None` is the script of this process.
    read: Mutex<HashMap<Option<String>, ScriptedModel>>,
}

impl<M: Models> Scripted<M> {
    pub(crate) fn over(catalog: M, script: Option<Given>) -> Self {
        Self {
            catalog,
            script,
            read: Mutex::default(),
        }
    }

    /// Returns the script for a model that is bound to one: that of this process, otherwise the file that was bound.
    fn scripted(&self, bound: &BoundModel) -> Result<ScriptedModel, ModelsError> {
        let fail = |message: String| ModelsError {
            name: bound.name.clone(),
            message,
        };
        let key = match &self.script {
            Some(_) => None,
            None => Some(bound.url.clone().ok_or_else(|| {
                fail("it answers from a script that this process does not have; give it: --script-all FILE".into())
            })?),
        };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = read.get(&key) {
            return Ok(model.clone());
        }
        let model = match (&self.script, &key) {
            (Some(given), _) => given.parsed(),
            (None, Some(file)) => load(Path::new(file)),
            (None, None) => Err("there is no script".into()),
        };
        let model = model.map_err(fail)?;
        read.insert(key, model.clone());
        Ok(model)
    }
}

fn load(file: &Path) -> Result<ScriptedModel, String> {
    let place = file.display();
    let text = crate::read::bounded(file).map_err(|e| {
        format!("script `{place}`: {e}; if it is elsewhere now, name it: --script-all FILE")
    })?;
    parse(&file.display().to_string(), &text).map_err(|e| format!("the script `{place}`: {e}"))
}

/// Parses a script with the YAML rules of a definition: a value that is a text in one is a text in the other.
fn parse(path: &str, text: &str) -> Result<ScriptedModel, String> {
    let json = definition::data(path, text).map_err(|found| {
        let wrong = found.iter().filter(|wrong| wrong.is_error());
        let wrong: Vec<String> = wrong.map(ToString::to_string).collect();
        wrong.join("\n")
    })?;
    Answers::parse(&json)
        .map(ScriptedModel::new)
        .map_err(|e| e.to_string())
}

impl<M: Models> Models for Scripted<M> {
    fn resolve<'a>(
        &'a self,
        network: &'a Network,
        env: &'a Env,
        folder: &'a Path,
    ) -> Boxed<'a, Result<Vec<BoundModel>, ModelsError>> {
        Box::pin(async move {
            let Some(given) = &self.script else {
                return self.catalog.resolve(network, env, folder).await;
            };
            let is_scripted = |def: &ModelDef| given.all || def.provider == Provider::Scripted;
            if !network.models.values().any(is_scripted) {
                let first = network.models.keys().next().cloned();
                return Err(ModelsError {
                    name: first.unwrap_or_else(|| "default".into()),
                    message: format!(
                        "--script answers for models of the provider `scripted`, and `{}` has none; --script-all answers for all \
                         models from a script",
                        network.name
                    ),
                });
            }
            let file = match &given.script {
                Script::Text(_) => None,
                Script::File(file) => {
                    let full = std::path::absolute(file).unwrap_or_else(|_| file.clone());
                    Some(full.display().to_string())
                }
            };
            let mut bound: Vec<BoundModel> = network
                .models
                .iter()
                .filter(|(_, def)| is_scripted(def))
                .map(|(name, def)| BoundModel {
                    name: name.clone(),
                    provider: SCRIPTED.into(),
                    model: called(def),
                    url: file.clone(),
                    ..BoundModel::default()
                })
                .collect();
            // Reports an unreadable script before a session begins.
            if let Some(first) = bound.first() {
                let model = self.scripted(first)?;
                if let Some(message) = given.unknown(&model, network) {
                    return Err(ModelsError {
                        name: first.name.clone(),
                        message,
                    });
                }
            }
            let mut others = network.clone();
            others.models.retain(|_, def| !is_scripted(def));
            if !others.models.is_empty() {
                bound.extend(self.catalog.resolve(&others, env, folder).await?);
                bound.sort_by(|a, b| a.name.cmp(&b.name));
            }
            Ok(bound)
        })
    }

    fn instead(&self, bound: &BoundModel) -> Option<BoundModel> {
        let replaces = self.script.as_ref().is_some_and(|given| given.all);
        (replaces && *bound.provider != *SCRIPTED).then(|| BoundModel {
            name: bound.name.clone(),
            provider: SCRIPTED.into(),
            model: Some(bound.label().to_string()),
            ..BoundModel::default()
        })
    }

    fn model(&self, bound: &BoundModel) -> Result<Arc<dyn Model>, ModelsError> {
        if *bound.provider == *SCRIPTED {
            self.scripted(bound)?.model(bound)
        } else {
            self.catalog.model(bound)
        }
    }
}

/// The name of the provider that a binding stores for a model that the program supplies.
const OWN: &str = "own";

/// Models that the program supplies, by the names that definitions give them. Any other name is an error.
#[derive(Clone, Default)]
pub(crate) struct OwnModels(pub(crate) BTreeMap<Name, Arc<dyn Model>>);

impl OwnModels {
    fn missing(name: &Name) -> ModelsError {
        ModelsError {
            name: name.clone(),
            message: "this program supplies its own models, and none of this name: `Setup::model`"
                .to_owned(),
        }
    }
}

impl Models for OwnModels {
    fn resolve<'a>(
        &'a self,
        network: &'a Network,
        _env: &'a Env,
        _folder: &'a Path,
    ) -> Boxed<'a, Result<Vec<BoundModel>, ModelsError>> {
        let used = network.used_models();
        let missing = used.into_iter().find(|name| !self.0.contains_key(*name));
        let bound = match missing {
            Some(name) => Err(Self::missing(name)),
            None => Ok(network
                .models
                .keys()
                .filter_map(|name| {
                    let model = self.0.get(name)?;
                    Some(BoundModel {
                        name: name.clone(),
                        provider: OWN.into(),
                        model: Some(model.label().to_string()),
                        ..BoundModel::default()
                    })
                })
                .collect()),
        };
        Box::pin(std::future::ready(bound))
    }

    fn model(&self, bound: &BoundModel) -> Result<Arc<dyn Model>, ModelsError> {
        let model = self.0.get(&bound.name).cloned();
        model.ok_or_else(|| Self::missing(&bound.name))
    }
}
