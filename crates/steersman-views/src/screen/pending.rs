//! The screen of `pending`.

use super::sessions::labels_of;
use super::{ListAsk, ListScreen, Missing, Refusal, ScreenError, masked, shortest};
use crate::cause;
use crate::filter::{Field, Filter, SelectError, label_names, value};
use crate::list::{PendingRow, status};
use crate::words::people;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use steersman_machine::stored::ids::{Name, Time};
use steersman_runtime::engine::{Engine, EngineError};
use steersman_runtime::inbox::{DecodeError, Message, Wanted};
use steersman_runtime::pending::{self, Pending};
use steersman_runtime::store::{SessionInfo, SessionQuery};

/// Everything that waits for a person, an event or a time, in all sessions.
#[derive(Debug, Serialize, Deserialize)]
pub struct PendingScreen {
    /// The time of the list, in milliseconds since 1970.
    pub now: i64,
    /// The waits of sessions, soonest due first.
    pub waits: Vec<WaitRow>,
    /// Events for which no session waits.
    pub boxed: Vec<BoxedRow>,
    /// Messages in the inboxes of sessions that no process drives.
    pub left: Vec<LeftRow>,
    /// Sessions that were at work when their process died.
    pub dead: Vec<DeadRow>,
    /// If the lists by which sessions are found are damaged: in how many places, and the first of them.
    pub damage: Option<(usize, String)>,
    /// Sessions that cannot be read.
    pub broken: Vec<Broken>,
}

/// Something that a session waits for.
#[derive(Debug, Serialize, Deserialize)]
pub struct WaitRow {
    /// The id of the session.
    pub session: String,
    /// The session as people type it.
    pub short: String,
    /// Its status.
    pub status: String,
    /// Its labels: `vendor=Acme`.
    pub labels: Vec<String>,
    /// The wait.
    pub pending: Pending,
    /// The wait as one document.
    pub document: Json,
}

/// An event for which no session waits.
#[derive(Debug, Serialize, Deserialize)]
pub struct BoxedRow {
    /// The network that it is for.
    pub network: Name,
    /// Its name.
    pub event: Name,
    /// Its id.
    pub id: Name,
    /// Time of arrival, in milliseconds since 1970.
    pub at: i64,
    /// Time after which it is dropped.
    pub until: i64,
}

/// A message in an inbox.
#[derive(Debug, Serialize, Deserialize)]
pub struct LeftRow {
    /// The id of the session.
    pub session: String,
    /// The session as people type it.
    pub short: String,
    /// The name of its network.
    pub network: Name,
    /// Its status.
    pub status: String,
    /// The message.
    pub mail: Mail,
}

/// The content of an inbox message.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mail {
    /// An event, with the id of its message and its time.
    Event(Name, Name, i64),
    /// A user message, with its time.
    Said(i64),
    /// Any other message, with its time.
    Message(i64),
    /// A message that cannot be read.
    Unread {
        /// Its id.
        message: Name,
        /// The reason.
        why: String,
        /// True if a newer program wrote it; otherwise it is damaged.
        is_newer: bool,
    },
}

/// A session that was at work when its process died.
#[derive(Debug, Serialize, Deserialize)]
pub struct DeadRow {
    /// The id of the session.
    pub session: String,
    /// The session as people type it.
    pub short: String,
    /// The name of its network.
    pub network: Name,
    /// Time of its last commit, in milliseconds since 1970.
    pub since: i64,
}

/// A session that cannot be read.
#[derive(Debug, Serialize, Deserialize)]
pub struct Broken {
    /// The reason.
    pub why: String,
    /// The error, in the process that found it.
    #[serde(skip)]
    pub error: Option<EngineError>,
}

/// Number of events in the box that are shown.
const SHOWN: usize = 20;

/// Returns what a session waits for, as the list of sessions stores it. `None` means that the session must be inspected: it
/// is at work, or was when its process died, or it has too many waits for the list.
pub fn listed(info: &SessionInfo) -> Option<Vec<Pending>> {
    match &*info.state.status {
        // The session was not driven yet.
        "" => Some(Vec::new()),
        "running" => None,
        _ => pending::read(&info.state.waits),
    }
}

/// Returns true for a user message, which is taken only when nothing else is open.
fn is_said(message: &Message) -> bool {
    matches!(
        message.wanted,
        Wanted::Say { .. } | Wanted::SayWith { .. } | Wanted::Sent { .. }
    )
}

/// Returns inbox messages of sessions that no process drives. An event stays there until something waits for it.
async fn left(engine: &Engine, all: &[SessionInfo]) -> Result<Vec<LeftRow>, ScreenError> {
    let mut left = Vec::new();
    let with_mail = SessionQuery {
        inbox: true,
        ..SessionQuery::default()
    };
    for found in engine.store().sessions(&with_mail).await? {
        let Some(info) = all
            .iter()
            .find(|info| info.id == found.id && info.owner.is_none())
        else {
            continue;
        };
        for boxed in engine.store().inbox(&info.id).await?.1 {
            let at = boxed.at.0;
            let mail = match Message::decode(&boxed) {
                Ok(message) if is_said(&message) => Mail::Said(at),
                Ok(message) => match message.wanted {
                    Wanted::Event { event, .. } => Mail::Event(event, boxed.id, at),
                    _ => Mail::Message(at),
                },
                Err(error) => Mail::Unread {
                    message: error.message().clone(),
                    is_newer: matches!(error, DecodeError::Newer(..)),
                    why: error.to_string(),
                },
            };
            left.push(LeftRow {
                session: info.id.to_string(),
                short: short(&info.id, all),
                network: info.network.clone(),
                status: status(info).to_owned(),
                mail,
            });
        }
    }
    Ok(left)
}

fn short(id: &str, all: &[SessionInfo]) -> String {
    shortest(id, all.iter().map(|i| &*i.id)).to_owned()
}

/// Refuses a role that no definition of these sessions has: it would select nothing, or with `!=` everything.
async fn roles_are_known(
    engine: &Engine,
    filter: &Filter,
    all: &[SessionInfo],
) -> Result<(), Refusal> {
    let always = ["user", "any", "anybody", "-"];
    let wanted: Vec<&str> = filter
        .values("for")
        .filter(|role| !always.contains(role) && !role.contains('*'))
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let mut roles: BTreeSet<Name> = BTreeSet::from(["user".into()]);
    let mut seen = BTreeSet::new();
    for info in all {
        if !seen.insert(&info.state.definition) {
            continue;
        }
        // A session that cannot be read may have any role.
        let Ok(inspection) = engine.inspect(&info.id).await else {
            return Ok(());
        };
        let people = inspection.network.iter().flat_map(|n| n.people.values());
        roles.extend(people.map(|person| person.role.clone()));
    }
    let Some(unknown) = wanted.into_iter().find(|role| !roles.contains(*role)) else {
        return Ok(());
    };
    let known: Vec<&str> = roles.iter().map(|role| &**role).collect();
    let what = format!("no definition has a person in the role `{unknown}`");
    Err(Refusal::new(Missing::Form, what).hint(format!("roles are {}", known.join(", "))))
}

fn field(info: &SessionInfo, now: i64, pending: &Pending, name: &str) -> Option<Field> {
    match name {
        "for" if pending.roles.is_empty() => Some(Field::Text("-".to_owned())),
        // The list shows `any` as `anybody`, so both are found.
        "for" => Some(Field::Any(
            pending
                .roles
                .iter()
                .flat_map(|role| [role.to_string(), people(std::slice::from_ref(role))])
                .collect(),
        )),
        "kind" => Some(Field::Text(pending.kind.word().to_owned())),
        "tool" => Some(Field::Text(pending.tool.as_deref()?.to_owned())),
        other => value(info, now, other),
    }
}

fn row(info: &SessionInfo, pending: Pending, all: &[SessionInfo]) -> WaitRow {
    let mut document = serde_json::to_value(PendingRow::from(&pending)).unwrap_or_default();
    document["session"] = (&*info.id).into();
    document["network"] = (&*info.network).into();
    WaitRow {
        session: info.id.to_string(),
        short: short(&info.id, all),
        status: status(info).to_owned(),
        labels: labels_of(info),
        pending,
        document,
    }
}

impl ListScreen for PendingScreen {
    const NAME: &'static str = "pending";

    async fn of(engine: &Engine, ask: &ListAsk, masks: bool) -> Result<Self, ScreenError> {
        let filter = Filter::parse(ask.filter.as_deref()).map_err(SelectError::from)?;
        let (store, now) = (engine.store(), engine.clock().now());
        let damaged = store.damaged_lists().await?;
        let damage = damaged.first().map(|first| (damaged.len(), first.clone()));
        let all = store.sessions(&SessionQuery::default()).await?;
        let known = filter.known_among(label_names(&all));
        known.map_err(SelectError::from)?;
        roles_are_known(engine, &filter, &all).await?;
        let mut found: Vec<(&SessionInfo, Pending)> = Vec::new();
        let (mut broken, mut unseen) = (Vec::new(), Vec::new());
        for info in &all {
            let pending = match listed(info) {
                Some(pending) => pending,
                None => match engine.inspect(&info.id).await {
                    Ok(seen) => seen.pending,
                    // Continue with the other sessions.
                    Err(error) => {
                        broken.push(Broken {
                            why: error.to_string(),
                            error: Some(error),
                        });
                        unseen.push(&*info.id);
                        continue;
                    }
                },
            };
            for pending in pending {
                let holds = filter.holds(now.0, |name| field(info, now.0, &pending, name));
                if holds.map_err(SelectError::from)? {
                    found.push((info, pending));
                }
            }
        }
        // A filter selects what waits, so the other lists are left out.
        let is_whole = ask.filter.is_none();
        let dead = all.iter().filter(|info| {
            let died = status(info) == "interrupted" && !cause::is_left_rerun(info);
            died && is_whole && !unseen.contains(&&*info.id)
        });
        let dead = dead.map(|info| DeadRow {
            session: info.id.to_string(),
            short: short(&info.id, &all),
            network: info.network.clone(),
            since: info.state.updated.0,
        });
        let dead = dead.collect();
        let (mut left_over, mut events) = (Vec::new(), Vec::new());
        if is_whole {
            left_over = left(engine, &all).await?;
            // `damage` reports an event box that cannot be read.
            events = store.event_box(None, now, SHOWN).await.unwrap_or_default();
        }
        // Sorted by due time; entries without one come last.
        found.sort_by_key(|(_, p)| (p.due.map_or(i64::MAX, |Time(due)| due), p.since.0));
        let mut waits = Vec::with_capacity(found.len());
        for (info, pending) in found {
            let mut row = row(info, pending, &all);
            if masks {
                row = masked(engine, &info.id, row).await?;
            }
            waits.push(row);
        }
        let boxed = events.into_iter().map(|event| BoxedRow {
            network: event.network,
            event: event.event,
            id: event.id,
            at: event.at.0,
            until: event.until.0,
        });
        Ok(Self {
            now: now.0,
            waits,
            boxed: boxed.collect(),
            left: left_over,
            dead,
            damage,
            broken,
        })
    }
}
