//! The screen of `sessions`.

use super::{ListAsk, ListScreen, Missing, Refusal, ScreenError, masked, shortest};
use crate::cause::{self, Reason, Sums};
use crate::filter::{self, Filter, SelectError};
use crate::list::{ScheduleRow, SessionRow, may_expire, status};
use crate::shown::rfc3339;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use steersman_machine::stored::ids::{Line, Name, Time};
use steersman_runtime::engine::{Engine, EngineError};
use steersman_runtime::store::{SessionInfo, SessionQuery};

/// Sessions, newest first, or sums over them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionsScreen {
    /// The time of the list, in milliseconds since 1970.
    pub now: i64,
    /// True if there is no session at all.
    pub is_empty: bool,
    /// The sessions.
    pub rows: Vec<SessionLine>,
    /// Number of sessions that the filter lets through.
    pub found: usize,
    /// Sums by status, code or network, if they were asked for.
    pub sums: Vec<SumRow>,
    /// The sums of all of them.
    pub summary: Summary,
    /// The schedules of the store, if there is no filter.
    pub schedules: Vec<ScheduleRow>,
}

/// A session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionLine {
    /// The session as people type it.
    pub short: String,
    /// The name of its network.
    pub network: Name,
    /// Its status.
    pub status: String,
    /// The first cause of a failure or limit, in words.
    pub reason: Option<String>,
    /// The reason why it does not move, if it is stuck.
    pub stuck: Option<String>,
    /// True for a rerun that nobody continues.
    pub is_left: bool,
    /// Time at which its texts are erased, in milliseconds since 1970.
    pub erased_at: Option<i64>,
    /// Its first wait in words.
    pub waits: String,
    /// Time of the last commit, in milliseconds since 1970.
    pub updated: i64,
    /// The last line.
    pub line: u64,
    /// Number of tokens spent.
    pub tokens: u64,
    /// Money spent, in millionths of the currency.
    pub micros: u64,
    /// Its outcome, as its definition declares it: `paid=true cents=3990`.
    pub outcome: String,
    /// Its labels: `vendor=Acme`.
    pub labels: Vec<String>,
    /// The place that it waits for and that does not answer.
    pub place: Option<Name>,
    /// The session as one document.
    pub document: Json,
}

/// Sums of sessions of one name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SumRow {
    /// The status, code or network.
    pub name: String,
    /// The sums.
    pub sums: Sums,
    /// Money spent, in millionths of the currency.
    pub micros: u64,
}

/// Sums over sessions, in one line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Number of sessions.
    pub sessions: u64,
    /// Number of tokens spent.
    pub tokens: u64,
    /// Money spent, in millionths of the currency.
    pub micros: u64,
    /// Numbers of sessions by status.
    pub by_status: Vec<(String, u64)>,
    /// Number of reruns that are not counted.
    pub reruns: usize,
}

impl Summary {
    fn of<'a>(counted: impl IntoIterator<Item = &'a SessionInfo> + Clone, reruns: usize) -> Self {
        let mut sums = Sums::default();
        for info in counted.clone() {
            sums.add(info);
        }
        let by = counted.into_iter();
        let by = Sums::by(by.map(|info| (info, status(info).to_owned())));
        let by_status = by.into_iter().map(|(status, sums)| (status, sums.sessions));
        Self {
            sessions: sums.sessions,
            tokens: sums.tokens,
            micros: sums.micros,
            by_status: by_status.collect(),
            reruns,
        }
    }
}

/// Returns the labels that have a value: `vendor=Acme`.
pub fn labels_of(info: &SessionInfo) -> Vec<String> {
    info.labels
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

/// Returns what a session that ended came to, as its definition declares it: `paid=true cents=3990`.
fn came_to(info: &SessionInfo) -> String {
    if !matches!(status(info), "answered" | "failed" | "limit" | "cancelled") {
        return String::new();
    }
    let outcome: Option<Json> = serde_json::from_str(&info.state.outcome).ok();
    let values = outcome.iter().filter_map(Json::as_object).flatten();
    let known = values.filter(|(_, value)| !value.is_null());
    let told = known.map(|(name, value)| match value {
        Json::String(text) => format!("{name}={text}"),
        value => format!("{name}={value}"),
    });
    told.collect::<Vec<_>>().join(" ")
}

/// The definitions that keep sessions for a time only (true) or for ever, by digest.
type Keeps = BTreeMap<String, bool>;

/// Returns the time at which the texts of a session are erased.
async fn erased_at(
    engine: &Engine,
    info: &SessionInfo,
    known: &mut Keeps,
) -> Result<Option<Time>, EngineError> {
    let digest = info.state.definition.to_string();
    if !may_expire(info) || known.get(&digest) == Some(&false) {
        return Ok(None);
    }
    let seen = engine.inspect(&info.id).await?;
    let keeps = seen
        .network
        .as_ref()
        .is_some_and(|network| network.keep.is_some());
    known.insert(digest, keeps);
    Ok(seen.expires_at())
}

/// Returns why a session is stuck, if it is.
async fn stuck(engine: &Engine, info: &SessionInfo) -> Result<Option<String>, EngineError> {
    let now = engine.clock().now();
    let mut last = None;
    if cause::may_be_silent(info, now) {
        let before = info.head.0.saturating_sub(1);
        let lines = engine.feed(&info.id, Line(before)).lines().await?;
        last = lines.last().map(|line| line.at);
    }
    Ok(cause::stuck(info, last, now))
}

async fn row(
    engine: &Engine,
    info: &SessionInfo,
    short: &str,
    has_mail: bool,
    keeps: &mut Keeps,
) -> Result<SessionLine, EngineError> {
    let at = erased_at(engine, info, keeps).await?;
    // A message in the inbox continues it.
    let at = at.filter(|_| !has_mail);
    let reason = Reason::of_row(engine, info).await?;
    let stuck = stuck(engine, info).await?;
    let row = SessionRow::from(info);
    let place = row.places.first().map(|waits| waits.place.clone());
    let mut document = serde_json::to_value(row).unwrap_or_default();
    document["inbox"] = has_mail.into();
    if let Some(at) = at.and_then(rfc3339) {
        document["erased_at"] = at.into();
    }
    document["reason"] = serde_json::to_value(&reason).unwrap_or_default();
    document["stuck"] = stuck.as_deref().into();
    Ok(SessionLine {
        short: short.to_owned(),
        network: info.network.clone(),
        status: status(info).to_owned(),
        reason: reason.as_ref().map(Reason::told),
        stuck,
        is_left: cause::is_left_rerun(info),
        erased_at: at.map(|at| at.0),
        waits: cause::waits(info),
        updated: info.state.updated.0,
        line: info.head.0,
        tokens: info.state.tokens,
        micros: info.state.micros,
        outcome: came_to(info),
        labels: labels_of(info),
        place,
        document,
    })
}

impl ListScreen for SessionsScreen {
    const NAME: &'static str = "sessions";

    async fn of(engine: &Engine, ask: &ListAsk, masks: bool) -> Result<Self, ScreenError> {
        let filter = Filter::parse(ask.filter.as_deref()).map_err(SelectError::from)?;
        let all = engine.store().sessions(&SessionQuery::default()).await?;
        let mut screen = Self {
            now: engine.clock().now().0,
            is_empty: all.is_empty(),
            rows: Vec::new(),
            found: 0,
            sums: Vec::new(),
            summary: Summary::default(),
            schedules: Vec::new(),
        };
        if ask.filter.is_none() {
            for schedule in engine.store().schedules(None, usize::MAX).await? {
                let plan = engine.plan(&schedule).await?;
                screen
                    .schedules
                    .push(ScheduleRow::of(&schedule, plan.as_ref()));
            }
        }
        if all.is_empty() {
            return Ok(screen);
        }
        let found = filter::select(engine, &filter, &SessionQuery::default()).await?;
        screen.found = found.len();
        let reruns = ask.reruns.unwrap_or(false) || filter.names_reruns();
        if let Some(by) = &ask.by {
            let (counted, left_out) = cause::work(found, reruns);
            let mut named = Vec::new();
            for info in &counted {
                let name = match &**by {
                    "status" => status(info).to_owned(),
                    "network" => info.network.to_string(),
                    "code" => match Reason::of_row(engine, info).await? {
                        Some(reason) => reason.code.to_string(),
                        None => continue,
                    },
                    other => {
                        let what = format!("sessions have no sums by `{other}`");
                        return Err(Refusal::new(Missing::Form, what)
                            .hint("status, code or network")
                            .into());
                    }
                };
                named.push((info, name));
            }
            let sums = Sums::by(named.iter().cloned());
            let rows = sums.into_iter().map(|(name, sums)| SumRow {
                name,
                micros: sums.micros,
                sums,
            });
            screen.sums = rows.collect();
            screen.summary = Summary::of(named.iter().map(|(info, _)| *info), left_out);
            return Ok(screen);
        }
        let inbox = SessionQuery {
            inbox: true,
            ..SessionQuery::default()
        };
        let inbox = engine.store().sessions(&inbox).await?;
        let mut keeps = Keeps::new();
        for info in found.iter().take(ask.limit.unwrap_or(usize::MAX)) {
            let has_mail = inbox.iter().any(|other| other.id == info.id);
            let short = shortest(&info.id, all.iter().map(|i| &*i.id));
            let mut row = row(engine, info, short, has_mail, &mut keeps).await?;
            if masks && !(row.labels.is_empty() && row.outcome.is_empty() && row.waits.is_empty()) {
                row = masked(engine, &info.id, row).await?;
            }
            screen.rows.push(row);
        }
        let (counted, left_out) = cause::work(found, reruns);
        screen.summary = Summary::of(&counted, left_out);
        Ok(screen)
    }
}
