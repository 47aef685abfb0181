//! Values of `--set` that change nothing in a rerun: the reason, and what would change something.

use super::{Changes, Spot, not_asked};
use crate::error::CommandError;
use crate::place::Place;
use crate::words::quoted;
use serde_json::Value as Json;
use steersman::runtime::engine::Inspection;
use steersman::{Diff, Network, Rerunned};

/// A value of `--set` that changes nothing, as a sentence without its end.
pub(super) struct Idle {
    pub(super) path: String,
    pub(super) why: String,
}

impl Idle {
    fn new(path: &str, why: impl AsRef<str>) -> Self {
        let why = format!("`--set {path}` changes nothing: {}", why.as_ref());
        Self {
            path: path.to_owned(),
            why,
        }
    }
}

impl Changes {
    /// Returns the values that cannot change anything in the rerun of this session, whatever happens in it.
    pub(super) async fn idle(&self, spot: &Spot, place: &Place) -> Result<Vec<Idle>, CommandError> {
        let typed = &self.values[..self.typed];
        if typed.is_empty() {
            return Ok(Vec::new());
        }
        let seen = place.steersman.inspect(&spot.session).await?;
        let base = match &self.definition {
            Some(network) => network.clone(),
            None => place.steersman.definition_of(&spot.session, &[]).await?,
        };
        let mut idle = Vec::new();
        for (path, value) in typed {
            let changed = base.with_set(&[(path.clone(), value.clone())])?;
            let why = if written(&changed) == written(&base) {
                Some(same(path))
            } else {
                self.taken(path, value, spot, &seen)
            };
            idle.extend(why.map(|why| Idle::new(path, why)));
        }
        Ok(idle)
    }

    /// Returns why a default has no effect: the session has taken the value already.
    fn taken(&self, path: &str, value: &Json, spot: &Spot, seen: &Inspection) -> Option<String> {
        let path = path.strip_suffix(".default")?;
        if let Some(name) = path.strip_prefix("config.") {
            let bound = seen.values.config.get(name)?;
            if self.config.contains_key(name) {
                return Some(format!("`--config {name}=..` is given, too, and decides"));
            }
            let config = format!("{name}={}", quoted(&typed(value)));
            return Some(format!(
                "the session took `{name}` = {bound} when it began, and a default is for sessions that begin; \
                 --config {config} binds the value in the rerun"
            ));
        }
        let (at, (_, entry)) = (spot.at?, path.rsplit_once("state.")?);
        let session = &spot.name;
        Some(format!(
            "`state.{entry}` has its value since before @{at}; without `@{at}` the rerun of {session} begins with the default"
        ))
    }

    /// Returns the values that changed nothing in a rerun, because it equals its recording, and for which nothing was said before.
    pub(super) fn without_effect(&self, ran: &Rerunned, found: &Diff, said: &[Idle]) -> Vec<Idle> {
        if ran.diverged.is_some() || !found.is_empty() {
            return Vec::new();
        }
        let is_new = |path: &&String| {
            !said.iter().any(|idle| idle.path == **path) && !self.was_warned_of(path)
        };
        let paths = self.values[..self.typed]
            .iter()
            .map(|(path, _)| path)
            .filter(is_new);
        let why = "the rerun equals its recording, so no request, call, condition or limit of this session depends on it \
                   there; `steersman show` names the agents, tools and models that it used";
        paths.map(|path| Idle::new(path, why)).collect()
    }
}

/// Returns what to say of a value that the definition has already.
fn same(path: &str) -> String {
    let what = "the definition has this value already".to_owned();
    if path.starts_with("models.") {
        return format!("{what}; `--model NAME` asks another model than the session is bound to");
    }
    what
}

/// Returns a value as it is typed behind `=`.
fn typed(value: &Json) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns a definition as it is stored.
fn written(network: &Network) -> Json {
    let stored = serde_json::from_str::<Json>(&network.checked().source);
    stored.map_or(Json::Null, |mut stored| stored["definition"].take())
}

/// Returns what to say of a value that modes override, or that is set for a model that no agent asks.
pub(super) fn elsewhere(path: &str, network: &Network) -> Option<String> {
    let modes = network.overridden(path);
    if modes.is_empty() {
        return not_asked(path, network);
    }
    Some(format!(
        "`{path}` means nothing in modes that set it anew; set there, too: {}",
        modes.join(", ")
    ))
}
