//! Rows of lists: sessions, and their open questions, holds and waits.

use crate::effects::Effect;
use crate::elsewhere::alike;
use crate::log::Log;
use crate::shown::{self, rfc3339};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value as Json};
use std::sync::Arc;
use steersman_machine::stored::ids::{Id, Line, Name, Time};
use steersman_machine::values::json::read;
use steersman_runtime::engine::Inspection;
use steersman_runtime::pending::{self, Pending, PendingKind, ProbeState};
use steersman_runtime::schedule::Plan;
use steersman_runtime::store::{IMMEDIATELY, Memory, Rated, Schedule, SessionInfo};

/// A session in a list.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SessionRow {
    /// Id of the session.
    pub session: String,
    /// Name of its network.
    pub network: Name,
    /// Short digest of its definition.
    pub definition: Name,
    /// Its [`status`].
    pub status: String,
    /// Time of creation.
    #[serde(serialize_with = "shown::time", deserialize_with = "shown::read::time")]
    pub created: Time,
    /// Time of the last commit.
    #[serde(serialize_with = "shown::time", deserialize_with = "shown::read::time")]
    pub updated: Time,
    /// The last line on disk.
    #[serde(serialize_with = "shown::line", deserialize_with = "shown::read::line")]
    pub line: Line,
    /// Number of model calls.
    pub model_calls: u64,
    /// Number of tokens spent.
    pub tokens: u64,
    /// Money spent, in the currency of the prices.
    pub cost: f64,
    /// Names and values of its labels.
    pub labels: Map<String, Json>,
    /// The values of the definition's `outcome:`.
    pub outcome: Json,
    /// The process that owns it now.
    pub owner: Option<String>,
    /// Calls that wait for a place that does not answer.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub places: Vec<PlaceRow>,
}

/// A memory in a list. Its times are in milliseconds since 1970.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct MemoryRow {
    /// Its number in the store.
    pub memory: u64,
    /// Its name.
    pub name: Arc<str>,
    /// The person or thing that it is about.
    pub scope: Arc<str>,
    /// Words by which it is found.
    pub tags: Vec<Arc<str>>,
    /// Media type of its content.
    pub media_type: Name,
    /// Length of its content.
    pub bytes: u64,
    /// Name of the network of the session that saved it.
    pub network: Name,
    /// The session that saved it, if one did.
    pub session: Option<Arc<str>>,
    /// The effect that saved it, if one did.
    #[serde(
        serialize_with = "shown::optional_id",
        deserialize_with = "shown::read::optional_id",
        default
    )]
    pub effect: Option<Id>,
    /// The agent that saved it.
    pub by: Name,
    /// Time of saving.
    pub saved: i64,
    /// Time after which it is gone, if there is one.
    pub until: Option<i64>,
    /// The memory that stands in its place.
    pub replaced_by: Option<u64>,
    /// The last rating by a person, which counts.
    pub rated_by_people: Option<RatedRow>,
    /// The last rating by an agent.
    pub rated_by_agents: Option<RatedRow>,
}

impl MemoryRow {
    /// Returns the rating that counts.
    pub fn rating(&self) -> Option<&RatedRow> {
        let by_people = self.rated_by_people.as_ref();
        by_people.or(self.rated_by_agents.as_ref())
    }
}

/// A rating of a memory.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RatedRow {
    /// From 1 to 5.
    pub rating: u8,
    /// The reason, if one was given.
    pub reason: Option<Arc<str>>,
    /// The person or agent that rated it.
    pub by: Name,
}

impl From<&Rated> for RatedRow {
    fn from(rated: &Rated) -> Self {
        Self {
            rating: rated.rating,
            reason: rated.reason.clone(),
            by: rated.by.clone(),
        }
    }
}

impl From<&Memory> for MemoryRow {
    fn from(memory: &Memory) -> Self {
        Self {
            memory: memory.id,
            name: memory.name.clone(),
            scope: memory.scope.clone(),
            tags: memory.tags.clone(),
            media_type: memory.media.clone(),
            bytes: memory.len,
            network: memory.network.clone(),
            session: memory.session.clone(),
            effect: memory.effect,
            by: memory.by.clone(),
            saved: memory.at.0,
            until: memory.until.map(|until| until.0),
            replaced_by: memory.replaced,
            rated_by_people: memory.by_people.as_ref().map(RatedRow::from),
            rated_by_agents: memory.by_agents.as_ref().map(RatedRow::from),
        }
    }
}

/// A schedule in a list.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ScheduleRow {
    /// Name of its network.
    pub network: Name,
    /// Its name in the definition.
    pub schedule: Name,
    /// The rule of its times, as definitions write it: `30 6 * * *`, `every 1h`. `None` if this version cannot read it.
    pub rule: Option<String>,
    /// Its time zone.
    pub timezone: Option<String>,
    /// Time at which the next session begins.
    #[serde(
        serialize_with = "shown::optional_time",
        deserialize_with = "shown::read::optional_time",
        default
    )]
    pub next: Option<Time>,
    /// The last time that was due.
    #[serde(
        serialize_with = "shown::optional_time",
        deserialize_with = "shown::read::optional_time",
        default
    )]
    pub last: Option<Time>,
    /// Number of times in its life that began no session, because no process ran or the session could not begin.
    pub missed: u64,
}

impl ScheduleRow {
    /// Returns the row of a schedule.
    pub fn of(schedule: &Schedule, plan: Option<&Plan>) -> Self {
        Self {
            network: schedule.id.network.clone(),
            schedule: schedule.id.name.clone(),
            rule: plan.map(|plan| plan.rule.clone()),
            timezone: plan.map(|plan| plan.timezone.clone()),
            next: schedule.next,
            last: schedule.last,
            missed: schedule.missed,
        }
    }
}

/// A call that waits for a place that does not answer.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PlaceRow {
    /// Name of the place: a model's provider, or the host of a tool.
    pub place: Name,
    /// Time at which the call began to wait.
    #[serde(serialize_with = "shown::time", deserialize_with = "shown::read::time")]
    pub since: Time,
}

/// Returns the status of a session: `running`, `answered`, `waits`, `doubt`, `limit`, `failed`, `cancelled`, `paused`. A
/// `running` session without an owner is `interrupted`. A session that no process has driven yet is `new`.
pub fn status(info: &SessionInfo) -> &str {
    match &*info.state.status {
        "running" if info.owner.is_none() => "interrupted",
        "" => "new",
        status => status,
    }
}

/// Returns true if a session is erased at some time, should its definition keep sessions for a time only. One that was erased, or that
/// has not ended, is not.
pub fn may_expire(info: &SessionInfo) -> bool {
    let wants = info.left.wants.is_some_and(|at| at > IMMEDIATELY);
    wants && info.owner.is_none() && pending::has_ended(&info.state)
}

impl From<&SessionInfo> for SessionRow {
    fn from(info: &SessionInfo) -> Self {
        let labels = info.labels.iter();
        Self {
            session: info.id.to_string(),
            network: info.network.clone(),
            definition: info.state.definition.clone(),
            status: status(info).to_owned(),
            created: info.created,
            updated: info.state.updated,
            line: info.head,
            model_calls: info.state.model_calls,
            tokens: info.state.tokens,
            cost: info.state.micros as f64 / 1e6,
            labels: labels
                .map(|(name, value)| (name.to_string(), Json::from(&**value)))
                .collect(),
            outcome: serde_json::from_str(&info.state.outcome).unwrap_or(Json::Null),
            owner: info.owner.clone(),
            places: places(info),
        }
    }
}

fn places(info: &SessionInfo) -> Vec<PlaceRow> {
    let waits = match status(info) {
        "waits" | "doubt" => pending::read(&info.state.waits).unwrap_or_default(),
        _ => Vec::new(),
    };
    let places = waits.into_iter().filter_map(|waits| {
        Some(PlaceRow {
            place: waits.place?,
            since: waits.since,
        })
    });
    places.collect()
}

/// Something that a session waits for.
#[derive(Clone, Debug, Serialize)]
pub struct PendingRow {
    /// The address of an answer: the effect, and the line of the hold.
    pub id: String,
    /// The effect that waits.
    #[serde(serialize_with = "shown::text")]
    pub effect: Id,
    /// The branch of the effect.
    #[serde(serialize_with = "shown::text")]
    pub branch: Id,
    /// The name of the agent in the definition.
    pub agent: Name,
    /// The kind of the wait.
    #[serde(serialize_with = "shown::kind")]
    pub kind: PendingKind,
    /// The roles that may end the wait.
    #[serde(rename = "for")]
    pub roles: Vec<Name>,
    /// The people who may end the wait: `user`, people of the definition, `any`. One of them is enough.
    pub by: Vec<Name>,
    /// The tool, if a tool was called.
    pub tool: Option<Name>,
    /// The arguments of the call, without secret ones.
    pub args: Option<Json>,
    /// Text of the question, or name of the event.
    pub text: Arc<str>,
    /// Answers that may be chosen.
    pub options: Vec<String>,
    /// Names of artifacts that are shown with it.
    pub show: Vec<String>,
    /// Arguments that an approver may change.
    pub edit: Vec<Name>,
    /// Reason for the question, for people.
    pub because: Option<String>,
    /// Time at which the wait ends by itself.
    #[serde(serialize_with = "shown::optional_time")]
    pub due: Option<Time>,
    /// The person who is asked once `due` has passed.
    pub next: Option<Name>,
    /// The earlier equal effect, which was done or is in doubt.
    pub repeats: Option<Name>,
    /// Effects of the same tool with other arguments, on lines that the branch does not have ([`alike`]).
    /// Lists of several sessions leave them out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<Effect>,
    /// The place that does not answer.
    pub place: Option<Name>,
    /// Time at which the session began to wait.
    #[serde(serialize_with = "shown::time")]
    pub since: Time,
    /// True if no branch waits for the effect any more.
    pub left: bool,
    /// For a doubt: the parts of the result that a person must give if the effect happened.
    pub needs: Vec<String>,
    /// For a doubt: the probe that asks whether the effect happened.
    #[serde(serialize_with = "probe")]
    pub probe: Option<ProbeState>,
}

impl PendingRow {
    /// Returns the row with what the log says about effects on other branches.
    pub fn of(log: &Log, seen: &Inspection, pending: &Pending) -> Self {
        Self {
            elsewhere: alike(log, seen, pending),
            ..Self::from(pending)
        }
    }
}

impl From<&Pending> for PendingRow {
    fn from(pending: &Pending) -> Self {
        let args = pending.args.as_deref();
        Self {
            id: pending.id().to_string(),
            effect: pending.effect,
            branch: pending.branch,
            agent: pending.agent.1.clone(),
            kind: pending.kind,
            roles: pending.roles.clone(),
            by: pending.by.clone(),
            tool: pending.tool.clone(),
            args: args.map(|args| read::<Json>(args).unwrap_or_else(|_| args.into())),
            text: pending.text.clone(),
            options: pending.options.clone(),
            show: pending.show.clone(),
            edit: pending.edit.clone(),
            because: pending.because.clone(),
            due: pending.due,
            next: pending.next.clone(),
            repeats: pending.repeats.clone(),
            elsewhere: Vec::new(),
            place: pending.place.clone(),
            since: pending.since,
            left: pending.left,
            needs: pending.needs.clone(),
            probe: pending.probe.clone(),
        }
    }
}

#[derive(Serialize)]
struct Probe<'a> {
    effect: String,
    tool: &'a Name,
    attempts: u32,
    said: &'a Option<Arc<str>>,
    failed: bool,
    again: Option<String>,
    over: bool,
}

#[expect(clippy::ref_option, reason = "serde wants a reference")]
fn probe<S: Serializer>(probe: &Option<ProbeState>, to: S) -> Result<S::Ok, S::Error> {
    let probe = probe.as_ref().map(|probe| Probe {
        effect: probe.effect.to_string(),
        tool: &probe.tool,
        attempts: probe.attempts,
        said: &probe.said,
        failed: probe.failed,
        again: probe.again.and_then(rfc3339),
        over: probe.over,
    });
    probe.serialize(to)
}
