//! Everything that a session waits for: questions, holds, events, times. It is a query over ledger and snapshots and not a stream
//! of notices, so a late reader sees the same.

pub use crate::inbox::PendingId;

use crate::fields::Fields;
use crate::ledger::{Heard, Ledger, Record};
use crate::store::SessionState;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use steersman_machine::network::{Network, Source};
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::commit::{About, Hold, Why};
use steersman_machine::stored::ids::{Id, Line, Name, Time};
use steersman_machine::tick::effect::{Wish, Work};
use steersman_machine::view::{Cx, mapping};

impl From<&Pending> for PendingId {
    fn from(pending: &Pending) -> Self {
        pending.id()
    }
}

/// Something outside that a session waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The effect that waits.
    pub effect: Id,
    /// The line that opened the hold. `None` if there is no hold: the effect is a question or a wait itself.
    pub hold: Option<Line>,
    /// The branch of the effect.
    pub branch: Id,
    /// The agent, and its name in the definition.
    pub agent: (Id, Name),
    /// Kind of the wait.
    pub kind: PendingKind,
    /// Those who can end the wait, each of them alone: `user`, people, `any`. Empty for events, times, repeated attempts, holds
    /// by an order, and outages.
    pub by: Vec<Name>,
    /// The roles of those in `by`. A person who acts in one of these roles may end the wait.
    pub roles: Vec<Name>,
    /// The tool, if the effect is a tool call.
    pub tool: Option<Name>,
    /// Arguments as JSON, secrets sealed.
    pub args: Option<Arc<str>>,
    /// Text of the question, or name of the event.
    pub text: Arc<str>,
    /// Answers that may be chosen.
    pub options: Vec<String>,
    /// Names of artifacts that are shown with it.
    pub show: Vec<String>,
    /// Arguments that an approver may change.
    pub edit: Vec<Name>,
    /// Reason for the approval, for people; for a question of a server, which server asks.
    pub because: Option<String>,
    /// Time at which the wait ends by itself.
    pub due: Option<Time>,
    /// For an approval: who is asked after `due`. `None` means that it ends then.
    pub next: Option<Name>,
    /// For an approval or a repetition: the equal effect that was done before, or may have been. Approving means that it may
    /// happen again.
    pub repeats: Option<Name>,
    /// For an outage: the place that does not answer, as named by [`BoundModel::place`](crate::model::BoundModel::place).
    pub place: Option<Name>,
    /// For a doubt: the parts of the result that a person must give if the effect happened ([`mapping::needed`]). For a question of
    /// a server: the fields that it wants, in words ([`Fields::described`]).
    pub needs: Vec<String>,
    /// For a doubt: the probe that asks or asked whether the effect happened.
    pub probe: Option<ProbeState>,
    /// Time since when the session waits for it.
    pub since: Time,
    /// For a doubt: true if no branch waits for the effect, because its call was ended or its branch was superseded. An equal
    /// call does not begin while the doubt is open.
    pub left: bool,
}

/// State of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeState {
    /// The effect of the probe itself.
    pub effect: Id,
    /// The tool that is asked.
    pub tool: Name,
    /// Number of attempts that began.
    pub attempts: u32,
    /// The answer, or the reason why the last attempt failed. `None` until an attempt has ended.
    pub said: Option<Arc<str>>,
    /// True if the last attempt failed.
    pub failed: bool,
    /// Time of the next attempt.
    pub again: Option<Time>,
    /// True if no further attempt starts by itself.
    pub over: bool,
}

impl ProbeState {
    /// Describes the state in a sentence for people.
    pub fn sentence(&self) -> String {
        let tool = &self.tool;
        let attempts = match self.attempts {
            1 => "once".to_owned(),
            n => format!("{n} times"),
        };
        match &self.said {
            Some(why) if self.failed && self.over => {
                format!("the probe {tool} was tried {attempts} and failed: {why}")
            }
            Some(why) if self.failed => {
                format!("the probe {tool} was tried {attempts} and is tried again: {why}")
            }
            Some(said) => format!("the probe {tool} does not settle it; it answered {said}"),
            None => format!("the probe {tool} is asked"),
        }
    }
}

impl Pending {
    /// Returns the address of this wait.
    pub fn id(&self) -> PendingId {
        PendingId {
            effect: self.effect,
            hold: self.hold,
        }
    }

    /// Checks that a person in this role may end the wait. If nobody is named in `by`, every role may.
    ///
    /// # Errors
    /// A sentence for people that says who may.
    pub fn may(&self, network: &Network, by: &str) -> Result<(), String> {
        if self.by.is_empty() {
            return Ok(());
        }
        may(network, &self.by, by)
    }
}

/// Returns the role of a person. For `user` and `any`, which are not people of a definition, returns the word itself.
fn role_of<'a>(network: &'a Network, wanted: &'a str) -> &'a str {
    let person = network.people.get(wanted);
    person.map_or(wanted, |person| &*person.role)
}

/// Checks that a person in the role `by` may do what these people are asked to do. `by` is compared with roles, never with names
/// of people: the programs that know people decide who may act in which role.
pub(crate) fn may(network: &Network, wanted: &[Name], by: &str) -> Result<(), String> {
    let mut roles = wanted.iter().map(|wanted| role_of(network, wanted));
    if roles.clone().any(|role| role == "any" || role == by) {
        return Ok(());
    }
    let first = roles.next().unwrap_or_default();
    let roles = roles.fold(format!("`{first}`"), |all, role| {
        format!("{all} or `{role}`")
    });
    Err(format!("only {roles} may answer this, not `{by}`"))
}

/// Value of [`Pending::because`] for an effect that is held by an order without a tool. Only an order without a tool ends it.
pub const HELD_ALL: &str = "all that may change the world is held";

/// Kinds of waits for something outside.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PendingKind {
    /// A person decides on a call with exactly these arguments.
    Approval,
    /// A person is asked for a secret.
    Input,
    /// An effect may have happened, and a person has to say whether it did.
    Doubt,
    /// A call may cost more than is left of a limit of the session.
    Budget,
    /// An equal effect was done or given up before.
    Repeat,
    /// An agent asks a person a question, or the server of a tool does so while the tool runs: then there is a hold.
    Question,
    /// An event from outside is awaited.
    Event,
    /// Only a time is awaited.
    Timer,
    /// A failed attempt will be repeated at a time.
    Again,
    /// A person holds this tool by an order: its effects do not begin until the tool is released.
    Hold,
    /// The place of a model does not answer.
    Outage,
}

/// All kinds, for finding a kind by its word.
const KINDS: [PendingKind; 11] = [
    PendingKind::Approval,
    PendingKind::Input,
    PendingKind::Doubt,
    PendingKind::Budget,
    PendingKind::Repeat,
    PendingKind::Question,
    PendingKind::Event,
    PendingKind::Timer,
    PendingKind::Again,
    PendingKind::Hold,
    PendingKind::Outage,
];

impl PendingKind {
    /// Returns the word that people see: `approval`, `question`, `doubt`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Input => "input",
            Self::Doubt => "doubt",
            Self::Budget => "budget",
            Self::Repeat => "repeat",
            Self::Question => "question",
            Self::Event => "event",
            Self::Timer => "timer",
            Self::Again => "again",
            Self::Hold => "hold",
            Self::Outage => "outage",
        }
    }

    /// Returns true if a wait of this kind asks a person for a decision or an answer.
    pub fn is_asked(self) -> bool {
        match self {
            Self::Approval
            | Self::Input
            | Self::Doubt
            | Self::Budget
            | Self::Repeat
            | Self::Question => true,
            Self::Event | Self::Timer | Self::Again | Self::Hold | Self::Outage => false,
        }
    }
}

/// Maximum number of bytes of the pending waits in lists. Longer lists of waits are read from the session instead.
const LISTED: usize = 32 * 1024;

/// Digits of the checksum at the beginning of the encoded waits.
const SUM: usize = 16;

/// Encodes the waits of a session for lists: a checksum and JSON, which is `null` if it would be too long. A list of sessions
/// stores these encoded waits.
pub(crate) fn list(all: &[Pending]) -> Arc<str> {
    // Most of the time a session works, and waits for nobody.
    static EMPTY: LazyLock<Arc<str>> = LazyLock::new(|| summed("[]").into());
    if all.is_empty() {
        return EMPTY.clone();
    }
    let all: Json = all.iter().map(entry).collect();
    let mut text = all.to_string();
    if text.len() > LISTED {
        text = Json::Null.to_string();
    }
    summed(&text).into()
}

fn summed(text: &str) -> String {
    format!("{}{text}", sum(text))
}

fn sum(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..SUM].to_owned()
}

/// Returns the JSON of encoded waits, or `None` if they are damaged.
fn verified(list: &str) -> Option<&str> {
    let (stored, text) = list.split_at_checked(SUM)?;
    (stored == sum(text)).then_some(text)
}

/// Returns true if the encoded waits are damaged, or if their effects or kinds differ from the real waits. A list that was too
/// long is not compared.
pub(crate) fn is_misread(list: &str, all: &[Pending]) -> bool {
    let waits = |all: &[Pending]| -> BTreeSet<(Id, PendingKind)> {
        all.iter().map(|one| (one.effect, one.kind)).collect()
    };
    verified(list).is_none() || read(list).is_some_and(|listed| waits(&listed) != waits(all))
}

/// Parses encoded waits ([`SessionState::waits`]). `None` means that they are damaged or
/// were too long; then read the session.
pub fn read(list: &str) -> Option<Vec<Pending>> {
    let all: Json = serde_json::from_str(verified(list)?).ok()?;
    all.as_array()?.iter().map(pending).collect()
}

/// Returns true if lists show a session as ended: its root answered, failed, was cancelled or reached a limit, and no branch of it
/// waits for anything. A new message continues it all the same.
pub fn has_ended(state: &SessionState) -> bool {
    let rests = matches!(
        &*state.status,
        "answered" | "limit" | "failed" | "cancelled"
    );
    rests && read(&state.waits).is_some_and(|waits| waits.is_empty())
}

/// Returns the time at which the texts of a session are erased, if lists show it as ended and its definition keeps sessions for a time
/// only. `last`: the time of the last line of its current branch. Its owner, lists and the erasure all ask here: if two answers
/// differed, a session would be wanted again and again and never be erased.
pub(crate) fn expires_at(
    network: &Network,
    ledger: &Ledger,
    state: &SessionState,
    last: Time,
) -> Option<Time> {
    let keep = network.keep.filter(|_| has_ended(state))?;
    // The lines of a rerun have the times of its recording.
    let ended = if ledger.is_rerun() {
        state.updated
    } else {
        last
    };
    Some(ended.plus(keep))
}

fn entry(pending: &Pending) -> Json {
    json!({
        "id": pending.id().to_string(),
        "branch": pending.branch.to_string(),
        "agent": [pending.agent.0.to_string(), pending.agent.1],
        "kind": pending.kind.word(),
        "by": pending.by,
        "roles": pending.roles,
        "tool": pending.tool,
        "args": pending.args,
        "text": pending.text,
        "options": pending.options,
        "show": pending.show,
        "edit": pending.edit,
        "because": pending.because,
        "due": pending.due.map(|due| due.0),
        "next": pending.next,
        "repeats": pending.repeats,
        "place": pending.place,
        "since": pending.since.0,
        "left": pending.left,
        "needs": pending.needs,
        "probe": pending.probe.as_ref().map(|probe| json!({
            "effect": probe.effect.to_string(),
            "tool": probe.tool,
            "attempts": probe.attempts,
            "said": probe.said,
            "failed": probe.failed,
            "again": probe.again.map(|again| again.0),
            "over": probe.over,
        })),
    })
}

fn probe(entry: &Json) -> Option<ProbeState> {
    Some(ProbeState {
        effect: entry["effect"].as_str()?.parse().ok()?,
        tool: entry["tool"].as_str()?.into(),
        attempts: entry["attempts"].as_u64()?.try_into().ok()?,
        said: entry["said"].as_str().map(Into::into),
        failed: entry["failed"].as_bool()?,
        again: entry["again"].as_i64().map(Time),
        over: entry["over"].as_bool()?,
    })
}

fn pending(entry: &Json) -> Option<Pending> {
    let text = |name: &str| Some(entry.get(name)?.as_str()?.to_owned());
    let name = |name: &str| Some(Name::from(text(name)?));
    let texts = |name: &str| -> Option<Vec<String>> {
        let list = entry.get(name)?.as_array()?.iter();
        list.map(|item| Some(item.as_str()?.to_owned())).collect()
    };
    let names = |name: &str| -> Option<Vec<Name>> {
        Some(texts(name)?.into_iter().map(Into::into).collect())
    };
    let agent = entry.get("agent")?;
    let kind = text("kind")?;
    let id: PendingId = text("id")?.parse().ok()?;
    Some(Pending {
        effect: id.effect,
        hold: id.hold,
        branch: text("branch")?.parse().ok()?,
        agent: (
            agent.get(0)?.as_str()?.parse().ok()?,
            agent.get(1)?.as_str()?.into(),
        ),
        kind: KINDS.into_iter().find(|known| known.word() == kind)?,
        by: names("by")?,
        roles: names("roles")?,
        tool: name("tool"),
        args: name("args"),
        text: name("text")?,
        options: texts("options")?,
        show: texts("show")?,
        edit: names("edit")?,
        because: text("because"),
        due: entry.get("due")?.as_i64().map(Time),
        next: name("next"),
        repeats: name("repeats"),
        place: name("place"),
        since: Time(entry.get("since")?.as_i64()?),
        left: entry.get("left")?.as_bool()?,
        needs: texts("needs")?,
        probe: match entry.get("probe")? {
            Json::Null => None,
            known => Some(probe(known)?),
        },
    })
}

/// The form is that of lists, so that a program which did not read the session knows the wait as well as one that did.
impl Serialize for Pending {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        entry(self).serialize(to)
    }
}

impl<'de> Deserialize<'de> for Pending {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let written = Json::deserialize(from)?;
        pending(&written).ok_or_else(|| D::Error::custom("this is no wait of a session"))
    }
}

/// Returns the wait of an open effect. `None` if the effect runs or may run.
pub(crate) fn of(
    cx: &Cx<'_>,
    ledger: &Ledger,
    snapshot: &Snapshot,
    wish: &Wish,
    since: Time,
) -> Option<Pending> {
    let mut pending = waits_for(cx, ledger, snapshot, wish, since)?;
    for by in &pending.by {
        let role = Name::from(role_of(cx.network, by));
        if !pending.roles.contains(&role) {
            pending.roles.push(role);
        }
    }
    Some(pending)
}

/// Returns the open doubt of an effect that no branch waits for, or `None`. `snapshot` and `wish` are those of the time when a
/// branch waited for it.
pub(crate) fn left(
    cx: &Cx<'_>,
    ledger: &Ledger,
    snapshot: &Snapshot,
    wish: &Wish,
    since: Time,
) -> Option<Pending> {
    let mut pending = of(cx, ledger, snapshot, wish, since)?;
    pending.left = true;
    // If no branch waits for the effect, no probe is repeated by itself.
    if let Some(probe) = &mut pending.probe
        && probe.again.take().is_some()
    {
        probe.over = true;
    }
    (pending.kind == PendingKind::Doubt).then_some(pending)
}

fn probed(cx: &Cx<'_>, ledger: &Ledger, of: Id) -> Option<ProbeState> {
    let (effect, probe) = ledger.probe(of)?;
    let text = match &probe.last {
        Some(Heard::Said(text, _) | Heard::Failed(text)) => Some(*text),
        None => None,
    };
    Some(ProbeState {
        effect,
        tool: probe.tool.clone(),
        attempts: probe.attempt,
        said: text.map(|text| cx.bodies.text(text)),
        failed: matches!(probe.last, Some(Heard::Failed(_))),
        again: probe.again,
        over: probe.over,
    })
}

/// Fills in the parts of a wait that come from a hold.
fn held(cx: &Cx<'_>, ledger: &Ledger, wish: &Wish, hold: &Hold, pending: &mut Pending) {
    pending.kind = match hold.why {
        Why::Approval => PendingKind::Approval,
        Why::Input => PendingKind::Input,
        Why::Doubt => PendingKind::Doubt,
        Why::Budget => PendingKind::Budget,
        Why::Repeat => PendingKind::Repeat,
        Why::Outage => PendingKind::Outage,
        Why::Wait if hold.about.as_ref().and_then(About::body).is_none() => PendingKind::Timer,
        Why::Wait => PendingKind::Event,
        Why::Elicited => PendingKind::Question,
    };
    let about = hold.about.as_ref();
    pending.due = hold.due;
    if hold.why == Why::Outage {
        let down = ledger.effect(hold.effect).and_then(|record| record.down);
        pending.since = down.unwrap_or(pending.since);
        pending.place = about.and_then(About::place).cloned();
    } else {
        pending.by.clone_from(&hold.by);
    }
    if matches!(hold.why, Why::Approval | Why::Repeat) {
        pending.repeats = about.and_then(About::equal).map(Name::from);
    }
    if let (Why::Elicited, Some(schema)) = (hold.why, about.and_then(About::body)) {
        if let Ok(fields) = Fields::read(&cx.bodies.text(schema)) {
            pending.needs = fields.described();
            pending.options = fields.options();
        }
        pending.because = Some(match &wish.work {
            Work::Tool(tool) => server_asks(cx.network, &tool.tool),
            _ => "its server asks".to_owned(),
        });
    }
    if let (Why::Doubt, Work::Tool(tool)) = (hold.why, &wish.work) {
        let def = cx.network.tools.get(&tool.tool);
        pending.needs = def.map(mapping::needed).unwrap_or_default();
        pending.probe = probed(cx, ledger, wish.id);
    }
    if let Some(ask) = hold.ask {
        pending.text = cx.bodies.text(ask);
    }
}

/// Says which server asks, as a part of a sentence.
fn server_asks(network: &Network, tool: &str) -> String {
    match network.tools.get(tool).map(|tool| &tool.source) {
        Some(Source::Mcp { server, .. }) => format!("the server `{server}` asks"),
        _ => "its server asks".to_owned(),
    }
}

/// Like [`of`], but leaves `roles` empty.
fn waits_for(
    cx: &Cx<'_>,
    ledger: &Ledger,
    snapshot: &Snapshot,
    wish: &Wish,
    since: Time,
) -> Option<Pending> {
    let record = ledger.effect(wish.id);
    let opened = record.and_then(Record::open_hold);
    let hold = opened.map(|(_, hold)| hold);
    let agent = snapshot.agents.get(&wish.agent)?;
    let mut pending = Pending {
        effect: wish.id,
        hold: opened.map(|(at, _)| at),
        branch: snapshot.branch,
        agent: (agent.id, agent.def.clone()),
        kind: PendingKind::Timer,
        by: Vec::new(),
        roles: Vec::new(),
        tool: wish
            .call()
            .and_then(|call| snapshot.call(wish.agent, call))
            .map(|open| open.call.name.clone()),
        args: None,
        text: "".into(),
        options: Vec::new(),
        show: Vec::new(),
        edit: Vec::new(),
        because: None,
        due: wish.due,
        next: None,
        repeats: None,
        place: None,
        needs: Vec::new(),
        probe: None,
        since,
        left: false,
    };
    if let Work::Tool(tool) = &wish.work {
        pending.args = Some(tool.args.clone());
        let asked = hold.as_ref().filter(|hold| hold.why == Why::Approval);
        let asked = asked.and_then(|hold| tool.approve.iter().find_map(|a| a.asked(&hold.by)));
        if let Some(approval) = asked.or(tool.approve.first()) {
            pending.show.clone_from(&approval.show);
            pending.edit.clone_from(&approval.edit);
            pending.because.clone_from(&approval.because);
            if asked.is_some() {
                pending.next = approval.on_timeout.next().map(|next| next.by.clone());
            }
        }
    }
    if let Some(hold) = hold {
        held(cx, ledger, wish, hold, &mut pending);
        return Some(pending);
    }
    if let Work::Tool(tool) = &wish.work
        && ledger.bars(&tool.tool, tool.class)
        && record.is_none_or(|r| r.may_begin(tool.class, ledger.epoch))
    {
        pending.kind = PendingKind::Hold;
        pending.because = ledger.bars_all().then(|| HELD_ALL.to_owned());
        return Some(pending);
    }
    if let Some(at) = record.and_then(|r| r.again) {
        pending.kind = PendingKind::Again;
        pending.due = Some(at);
        return Some(pending);
    }
    match &wish.work {
        Work::Ask {
            to,
            question,
            options,
        } => {
            pending.kind = PendingKind::Question;
            pending.by.push(to.clone());
            pending.text = question.clone();
            pending.options.clone_from(options);
            Some(pending)
        }
        Work::Event { any } => {
            pending.kind = PendingKind::Event;
            let names: Vec<&str> = any.iter().map(|one| &*one.event).collect();
            pending.text = names.join(" or ").into();
            // If there are several events, their names are enough.
            pending.args = match &any[..] {
                [one] => Some(one.key.clone()),
                _ => None,
            };
            Some(pending)
        }
        Work::Timer => Some(pending),
        Work::Model | Work::Tool(_) if wish.due.is_some_and(|due| due > since) => {
            pending.kind = PendingKind::Again;
            Some(pending)
        }
        Work::Model | Work::Tool(_) | Work::Simulate(_) | Work::Send { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{list, read};

    #[test]
    fn what_lists_keep_is_read_as_it_was_written_or_not_at_all() {
        let kept = list(&[]);
        assert_eq!(read(&kept), Some(Vec::new()));
        for bit in 0..kept.len() * 8 {
            let mut bytes = kept.as_bytes().to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let damaged = String::from_utf8_lossy(&bytes);
            assert_eq!(read(&damaged), None, "{bit}");
        }
    }
}
