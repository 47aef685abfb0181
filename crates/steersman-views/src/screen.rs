//! Screens: all that one command of the program shows, as data. A store and a server answer a command with the same screen, so a command
//! prints without knowing which of the two it asked.
//!
//! Other views are for every reader. A screen is for people at a terminal: it masks secrets for everybody, names sessions as people type
//! them, and its [refusals](Refusal) name commands. It is data all the same: colours and widths are those of the program that prints.

mod artifacts;
mod begun;
mod context;
mod effects;
mod follow;
mod graph;
mod log;
mod pending;
mod place;
mod seen;
mod sessions;
mod show;
mod waits;
mod why;

pub use artifacts::{ArtifactRow, ArtifactsScreen, RatingRow, artifacts_in};
pub use begun::{BegunScreen, Behind};
pub use context::{Called, ContextScreen, ShownContext};
pub use effects::{EffectRow, EffectsScreen};
pub use follow::{Bound, FollowScreen, Stands, awaited, models, rests};
pub use graph::GraphScreen;
pub use log::{LineRow, LogScreen};
pub use pending::{BoxedRow, Broken, DeadRow, LeftRow, Mail, PendingScreen, WaitRow, listed};
pub use place::{LineName, branch_at, branch_name, line};
pub use seen::{Seen, short, shortest};
pub use sessions::{SessionLine, SessionsScreen, SumRow, Summary, labels_of};
pub use show::{BranchStory, ShowScreen, TakeOver};
pub use waits::{WaitsScreen, effect_of, whys};
pub use why::{Other, WhyScreen};

use crate::context::ContextError;
use crate::filter::SelectError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use steersman_machine::stored::ids::Id;
use steersman_runtime::engine::{Engine, EngineError};
use steersman_runtime::known::Known;
use steersman_runtime::store::StoreError;

/// The part of a session that a screen shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ask {
    /// The label or the id of a branch. Without one it is the current branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// A line as people type it ([`LineName`]): `12`, `-2`, `head`, or the name of a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// The thing that is meant, by its name or id: a call, an agent, an effect, an artifact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The form, where a screen has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
    /// The line after which the screen begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// The most lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<usize>,
}

/// Conditions on a list of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListAsk {
    /// A filter, as `steersman sessions --where` takes it.
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// The most rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// For sums: `status`, `code` or `network`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// True to count reruns in sums, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reruns: Option<bool>,
}

/// The thing that a refusal is about.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// A branch.
    Branch,
    /// A line.
    Line,
    /// A call, an effect, an agent, or what one of them did.
    Act,
    /// An artifact.
    Artifact,
    /// Something was asked in a wrong form.
    Form,
}

/// The reason why there is nothing to show: something is meant that the session does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Refusal {
    /// The thing that is missing.
    pub of: Missing,
    /// The refusal; lower case, no full stop.
    pub what: String,
    /// Advice on what to do.
    pub hints: Vec<String>,
}

impl Refusal {
    pub(crate) fn new(of: Missing, what: impl Into<String>) -> Self {
        Self {
            of,
            what: what.into(),
            hints: Vec::new(),
        }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// Error of making a screen.
#[derive(Debug, thiserror::Error)]
pub enum ScreenError {
    /// The session does not have what is meant.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A context cannot be shown.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// A filter has a fault.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// The session or the store cannot be read.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<StoreError> for ScreenError {
    fn from(error: StoreError) -> Self {
        Self::Engine(error.into())
    }
}

/// The screen of a command for one session.
pub trait Screen: Serialize + DeserializeOwned + Send {
    /// Name of the screen, which is the name of its command.
    const NAME: &'static str;

    /// Makes the screen of a session that was read.
    ///
    /// # Errors
    /// The session does not have what is meant; errors of the store.
    fn of(seen: Seen, ask: &Ask) -> impl Future<Output = Result<Self, ScreenError>> + Send;
}

/// The screen of a command for the sessions of a store.
pub trait ListScreen: Serialize + DeserializeOwned + Send {
    /// Name of the screen, which is the name of its command.
    const NAME: &'static str;

    /// Makes the screen of the sessions that an engine sees. With `masks`, without the secrets that the sessions know.
    ///
    /// # Errors
    /// The filter has a fault; errors of the store.
    fn of(
        engine: &Engine,
        ask: &ListAsk,
        masks: bool,
    ) -> impl Future<Output = Result<Self, ScreenError>> + Send;
}

/// Returns a screen as JSON, without the secrets that the session knows.
async fn document<S: Screen>(seen: Seen, ask: &Ask) -> Result<Json, ScreenError> {
    let known = seen.known.clone();
    let screen = S::of(seen, ask).await?;
    Ok(without_secrets(&known, &screen))
}

/// Returns a screen or a row as JSON that is read again, without these secrets.
fn without_secrets<T: Serialize + DeserializeOwned>(known: &Known, shown: &T) -> Json {
    let plain = serde_json::to_value(shown).unwrap_or_default();
    let mut masked = plain.clone();
    known.mask(&mut masked);
    keep(&plain, &mut masked);
    if masked != plain && serde_json::from_value::<T>(masked.clone()).is_err() {
        // A secret is the name of a field, too.
        name(known, &plain, &mut masked);
    }
    masked
}

/// Gives fields their names back.
fn name(known: &Known, plain: &Json, masked: &mut Json) {
    match (plain, masked) {
        (Json::Array(plain), Json::Array(masked)) => {
            for (plain, masked) in plain.iter().zip(masked) {
                name(known, plain, masked);
            }
        }
        (Json::Object(plain), Json::Object(masked)) => {
            let mut named = serde_json::Map::new();
            for (field, plain) in plain {
                let value = masked.remove(field).unwrap_or_else(|| {
                    let mut value = plain.clone();
                    known.mask(&mut value);
                    keep(plain, &mut value);
                    value
                });
                named.insert(field.clone(), value);
            }
            for (field, masked) in &mut named {
                if let Some(plain) = plain.get(field) {
                    name(known, plain, masked);
                }
            }
            *masked = named;
        }
        _ => {}
    }
}

/// Puts ids and times back that look as if they had a secret in them: like numbers, they are those of the log.
fn keep(plain: &Json, masked: &mut Json) {
    match (plain, masked) {
        (Json::String(plain), Json::String(masked))
            if plain != masked
                && (plain.parse::<Id>().is_ok() || plain.parse::<jiff::Timestamp>().is_ok()) =>
        {
            masked.clone_from(plain);
        }
        (Json::Array(plain), Json::Array(masked)) => {
            for (plain, masked) in plain.iter().zip(masked) {
                keep(plain, masked);
            }
        }
        (Json::Object(plain), Json::Object(masked)) => {
            for (name, masked) in masked {
                if let Some(plain) = plain.get(name) {
                    keep(plain, masked);
                }
            }
        }
        _ => {}
    }
}

/// Returns the screen of this name for a session as JSON; `None` if there is none.
///
/// # Errors
/// The session does not have what is meant; errors of the store.
pub async fn of_session(name: &str, seen: Seen, ask: &Ask) -> Result<Option<Json>, ScreenError> {
    Ok(Some(match name {
        ArtifactsScreen::NAME => document::<ArtifactsScreen>(seen, ask).await?,
        BegunScreen::NAME => document::<BegunScreen>(seen, ask).await?,
        EffectsScreen::NAME => document::<EffectsScreen>(seen, ask).await?,
        FollowScreen::NAME => document::<FollowScreen>(seen, ask).await?,
        GraphScreen::NAME => document::<GraphScreen>(seen, ask).await?,
        LogScreen::NAME => document::<LogScreen>(seen, ask).await?,
        ShowScreen::NAME => document::<ShowScreen>(seen, ask).await?,
        WaitsScreen::NAME => document::<WaitsScreen>(seen, ask).await?,
        WhyScreen::NAME => document::<WhyScreen>(seen, ask).await?,
        // A context is shown exactly as it was sent.
        ContextScreen::NAME => {
            let screen = ContextScreen::of(seen, ask).await?;
            serde_json::to_value(screen).unwrap_or_default()
        }
        _ => return Ok(None),
    }))
}

/// Returns a row without the secrets that its session knows.
async fn masked<T: Serialize + DeserializeOwned>(
    engine: &Engine,
    session: &str,
    row: T,
) -> Result<T, ScreenError> {
    let known = engine.secrets_of(session).await?;
    serde_json::from_value(without_secrets(&known, &row)).map_err(|_| {
        let what = format!("a row of session `{session}` cannot be shown without its secrets");
        Refusal::new(Missing::Form, what).into()
    })
}

/// Returns the screen of this name for the sessions that an engine sees as JSON; `None` if there is none. With `masks`, without the
/// secrets that the sessions know.
///
/// # Errors
/// The filter has a fault; errors of the store.
pub async fn of_sessions(
    name: &str,
    engine: &Engine,
    ask: &ListAsk,
    masks: bool,
) -> Result<Option<Json>, ScreenError> {
    let document = match name {
        PendingScreen::NAME => serde_json::to_value(PendingScreen::of(engine, ask, masks).await?),
        SessionsScreen::NAME => serde_json::to_value(SessionsScreen::of(engine, ask, masks).await?),
        _ => return Ok(None),
    };
    Ok(Some(document.unwrap_or_default()))
}
