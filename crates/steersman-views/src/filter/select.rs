//! The sessions of a store that a filter lets through.

use super::{Field, Filter, FilterError, OUTCOME};
use crate::cause::Reason;
use crate::list::status;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use steersman_machine::stored::ids::Time;
use steersman_runtime::engine::{Engine, EngineError};
use steersman_runtime::session::Settled;
use steersman_runtime::store::{SessionId, SessionInfo, SessionQuery, StoreError};

/// The reason why no sessions were selected.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// The filter has a fault.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// A session or the store cannot be read.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<StoreError> for SelectError {
    fn from(error: StoreError) -> Self {
        Self::Engine(error.into())
    }
}

/// A page of a list.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The sessions, newest first.
    pub found: Vec<SessionInfo>,
    /// The position after which the list goes on; `None` at its end. A page may be short, or empty, before its end.
    pub next: Option<(Time, SessionId)>,
}

/// Number of sessions that are read from the store at once.
const CHUNK: usize = 200;
/// Maximum number of sessions that are read for one page: a filter may let through very few.
const LOOKED_AT: usize = 10_000;

/// Returns all sessions of a query that a filter lets through, newest first, as of one moment.
///
/// # Errors
/// The filter has a fault: a name that no session has, or a value that does not fit. Errors of the store.
pub async fn select(
    engine: &Engine,
    filter: &Filter,
    within: &SessionQuery,
) -> Result<Vec<SessionInfo>, SelectError> {
    let now = engine.clock().now();
    are_known(engine, filter).await?;
    let mut query = within.clone();
    filter.narrow(now, &mut query)?;
    let mut found = Vec::new();
    for info in engine.store().sessions(&query).await? {
        if holds(engine, filter, &info, now).await? {
            found.push(info);
        }
    }
    Ok(found)
}

/// Returns the first sessions of a query that a filter lets through, at most `most`, newest first. `within.after` is the position
/// after which the page begins; its limit is not used.
///
/// # Errors
/// As [`select`].
pub async fn page(
    engine: &Engine,
    filter: &Filter,
    within: &SessionQuery,
    most: usize,
) -> Result<Page, SelectError> {
    let now = engine.clock().now();
    are_known(engine, filter).await?;
    let mut query = within.clone();
    filter.narrow(now, &mut query)?;
    let chunk = if filter.is_empty() {
        most.saturating_add(1)
    } else {
        CHUNK
    };
    query.limit = Some(chunk);
    let (mut page, mut looked_at) = (Page::default(), 0);
    loop {
        let infos = engine.store().sessions(&query).await?;
        let is_end = infos.len() < chunk;
        for info in infos {
            let place = (info.state.updated, info.id.clone());
            if page.found.len() == most || looked_at == LOOKED_AT {
                page.next = query.after;
                return Ok(page);
            }
            looked_at += 1;
            if holds(engine, filter, &info, now).await? {
                page.found.push(info);
            }
            query.after = Some(place);
        }
        if is_end {
            return Ok(page);
        }
    }
}

/// Refuses names that are neither built in nor a label or an outcome of any session. Reads no further than until all are found.
///
/// # Errors
/// A name is unknown; errors of the store.
pub async fn are_known(engine: &Engine, filter: &Filter) -> Result<(), SelectError> {
    let mut missing = filter.own_names();
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut query = SessionQuery {
        limit: Some(CHUNK),
        ..SessionQuery::default()
    };
    while !missing.is_empty() {
        let infos = engine.store().sessions(&query).await?;
        known.extend(label_names(&infos).map(str::to_owned));
        known.extend(infos.iter().flat_map(outcome_names));
        missing.retain(|name| !known.contains(*name));
        match infos.last() {
            Some(last) if infos.len() == CHUNK => {
                query.after = Some((last.state.updated, last.id.clone()));
            }
            _ => {
                let known = known.iter().map(String::as_str);
                return Ok(filter.known_among(known)?);
            }
        }
    }
    Ok(())
}

/// Returns true if a filter lets a session through now.
///
/// # Errors
/// A value of the filter does not fit its name; the session cannot be read.
pub async fn passes(
    engine: &Engine,
    filter: &Filter,
    info: &SessionInfo,
) -> Result<bool, SelectError> {
    holds(engine, filter, info, engine.clock().now()).await
}

async fn holds(
    engine: &Engine,
    filter: &Filter,
    info: &SessionInfo,
    now: Time,
) -> Result<bool, SelectError> {
    let failed = failed(engine, filter, info).await?;
    Ok(filter.holds(now.0, |name| match name {
        "failed" if failed.is_empty() => None,
        "failed" => Some(Field::Any(failed.clone())),
        other => value(info, now.0, other),
    })?)
}

/// Returns the codes of the failure that ended a session, if the filter asks for them: of the first cause, and of the agent at
/// the top, which differs if that failed because another one did. Lists do not hold them.
async fn failed(
    engine: &Engine,
    filter: &Filter,
    info: &SessionInfo,
) -> Result<Vec<String>, SelectError> {
    if !filter.mentions("failed") || &*info.state.status != "failed" {
        return Ok(Vec::new());
    }
    let seen = engine.inspect(&info.id).await?;
    Ok(match (&seen.settled, Reason::of(&seen)) {
        (Settled::Failed { code, .. }, Some(first)) => {
            vec![first.code.to_string(), code.to_string()]
        }
        _ => Vec::new(),
    })
}

/// Returns the names of all labels of these sessions.
pub fn label_names(all: &[SessionInfo]) -> impl Iterator<Item = &str> {
    all.iter()
        .flat_map(|info| info.labels.iter().map(|(name, _)| &**name))
}

/// Returns the names of the values of a session's `outcome:`, as filters write them.
fn outcome_names(info: &SessionInfo) -> Vec<String> {
    let outcome: Option<Json> = serde_json::from_str(&info.state.outcome).ok();
    let outcome = outcome.as_ref().and_then(Json::as_object);
    let names = outcome.into_iter().flat_map(serde_json::Map::keys);
    names.map(|name| format!("{OUTCOME}{name}")).collect()
}

/// Returns a value of a session's `outcome:`.
fn outcome(info: &SessionInfo, name: &str) -> Option<Field> {
    let outcome: Json = serde_json::from_str(&info.state.outcome).ok()?;
    Some(match outcome.get(name)? {
        Json::Null => return None,
        Json::String(text) => Field::Text(text.clone()),
        Json::Number(number) => Field::Number(number.as_f64()?),
        other => Field::Text(other.to_string()),
    })
}

/// Returns the value of a filter's name in a session, as far as lists hold it. `now` is the time in milliseconds since 1970.
pub fn value(info: &SessionInfo, now: i64, name: &str) -> Option<Field> {
    Some(match name {
        "status" => Field::Text(status(info).to_owned()),
        "network" => Field::Text(info.network.to_string()),
        // The filter may give the name or the digest.
        "definition" => Field::Any(vec![
            info.network.to_string(),
            info.state.definition.to_string(),
        ]),
        "digest" => Field::Text(info.state.definition.to_string()),
        "key" => Field::Text(info.key.as_ref()?.to_string()),
        "updated" => Field::Time(info.state.updated.0),
        "age" => Field::Span(now.saturating_sub(info.created.0)),
        "created" => Field::Time(info.created.0),
        "cost" => Field::Number(info.state.micros as f64 / 1e6),
        "tokens" => Field::Number(info.state.tokens as f64),
        "calls" => Field::Number(info.state.model_calls as f64),
        name if name.starts_with(OUTCOME) => outcome(info, &name[OUTCOME.len()..])?,
        label => Field::Text(
            info.labels
                .iter()
                .find(|(name, _)| **name == *label)?
                .1
                .to_string(),
        ),
    })
}
