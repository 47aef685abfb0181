//! State of a wait: a tree of parts that is evaluated against everything that has come so far.
//!
//! Parts are the conditions other than `any` and `all`. They are numbered from 0 in the order in which they are written. Input from
//! outside (an event, the ends of branches) is recorded with the call; time, state and commits are checked at each look.

use crate::network::{Source, Wait, WaitOn};
use crate::snapshot::{OpenCall, Snapshot};
use crate::stored::codes::Code;
use crate::stored::ids::{Id, Name, Time};
use crate::values::expression::ast::{Node, NodeKind, StmtKind};
use crate::values::expression::{Data, Template};
use crate::values::types::{canonical, equal, misfit};
use crate::view::mapping::{Fault, Raw};
use crate::view::{Cx, View};
use serde_json::Value as Json;
use std::sync::Arc;

/// State of a wait or of a part.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stands {
    /// The wait is not over.
    Open,
    /// The wait is met, with this result.
    Met(Json),
    /// The wait is over and can never be met.
    Failed(Fault),
}

impl Stands {
    /// Returns the result of the wait. `None` means that it is open.
    pub(super) fn over(self) -> Option<Raw> {
        match self {
            Self::Open => None,
            Self::Met(json) => Some(Raw::Done(json)),
            Self::Failed(fault) => Some(Raw::NotPerformed(fault)),
        }
    }
}

/// Returns the wait of a call's tool, if the tool is a wait.
pub(super) fn wait_of<'n>(cx: &Cx<'n>, open: &OpenCall) -> Option<&'n Wait> {
    match cx.network.tools.get(&open.call.name).map(|t| &t.source) {
        Some(Source::Wait(wait)) => Some(wait),
        _ => None,
    }
}

/// One wait, evaluated at one moment.
pub(super) struct Look<'a> {
    pub(super) cx: Cx<'a>,
    pub(super) snapshot: &'a Snapshot,
    pub(super) open: &'a OpenCall,
    pub(super) wait: &'a Wait,
    pub(super) now: Time,
    /// Input for a part that is offered now and not recorded yet.
    pub(super) came: Option<(u32, &'a Json)>,
    /// True if no further commit follows without an input. Waits for commits then end.
    pub(super) no_more_ticks: bool,
}

/// Number of a part, and its condition.
type Part<'a> = (u32, &'a WaitOn);

impl<'a> Look<'a> {
    pub(super) fn new(
        cx: &Cx<'a>,
        snapshot: &'a Snapshot,
        open: &'a OpenCall,
        now: Time,
    ) -> Option<Self> {
        Some(Self {
            cx: *cx,
            snapshot,
            open,
            wait: wait_of(cx, open)?,
            now,
            came: None,
            no_more_ticks: false,
        })
    }

    /// Returns the state of the whole wait.
    pub(super) fn stands(&self) -> Stands {
        self.node(self.wait, 0, self.now, false)
    }

    /// Evaluates a wait with its timeout. Input before the timeout counts, even if the clock is checked later.
    fn node(&self, wait: &Wait, part: u32, at: Time, inner: bool) -> Stands {
        let timeout = wait.timeout.map(|ms| self.open.opened.plus(ms));
        let until = timeout.map_or(at, |timeout| timeout.min(at));
        let stands = self.on(&wait.on, part, until);
        if stands != Stands::Open || timeout.is_none_or(|timeout| timeout > at) {
            return stands;
        }
        match &wait.on_timeout {
            // The mapping handles `on_timeout` of the whole wait.
            Some(instead) if inner => match instead.value(&self.view()) {
                Ok(json) => Stands::Met(json),
                Err(e) => Stands::Failed(Fault::new(Code::Failed, format!("on_timeout: {e}"))),
            },
            _ => Stands::Failed(Fault::new(Code::Timeout, "nothing came in time")),
        }
    }

    fn on(&self, on: &WaitOn, part: u32, at: Time) -> Stands {
        match on {
            WaitOn::Event { .. } => self.came_of(part).unwrap_or(Stands::Open),
            WaitOn::Branches(_) => match self.came_of(part) {
                Some(Stands::Met(Json::Null)) => Stands::Failed(Fault::new(
                    Code::NoBranches,
                    "there are no such branches to wait for",
                )),
                Some(stands) => stands,
                None => Stands::Open,
            },
            WaitOn::Time(_) | WaitOn::Until(_) => match self.moment(on) {
                Ok(moment) if moment <= at => Stands::Met(Json::Null),
                Ok(_) => Stands::Open,
                Err(why) => Stands::Failed(Fault::new(Code::Failed, why)),
            },
            WaitOn::Ticks(n) => {
                let counted = self.snapshot.ticks.saturating_sub(self.open.opened_at);
                if self.no_more_ticks || counted >= *n {
                    Stands::Met(Json::Null)
                } else {
                    Stands::Open
                }
            }
            WaitOn::When(expr) => match self.view().holds(expr) {
                Ok(true) => Stands::Met(Json::Null),
                Ok(false) => Stands::Open,
                Err(e) => Stands::Failed(Fault::new(Code::Failed, e.to_string())),
            },
            WaitOn::Any(list) => self.any(list, part, at),
            WaitOn::All(list) => self.all(list, part, at),
        }
    }

    /// Evaluates `any`: met with the first part that is met, failed if all parts have failed.
    fn any(&self, list: &[Wait], part: u32, at: Time) -> Stands {
        let mut failed = None;
        let mut open = list.is_empty();
        for (part, wait) in numbered(list, part) {
            match self.node(wait, part, at, true) {
                Stands::Met(json) => return Stands::Met(json),
                Stands::Open => open = true,
                Stands::Failed(fault) => failed = failed.or(Some(fault)),
            }
        }
        match failed {
            Some(fault) if !open => Stands::Failed(fault),
            Some(_) | None => Stands::Open,
        }
    }

    /// Evaluates `all`: met with the results of all parts in order, failed if one part has failed.
    fn all(&self, list: &[Wait], part: u32, at: Time) -> Stands {
        let mut gave = Vec::with_capacity(list.len());
        let mut open = list.is_empty();
        for (part, wait) in numbered(list, part) {
            match self.node(wait, part, at, true) {
                Stands::Met(json) => gave.push(json),
                Stands::Open => open = true,
                Stands::Failed(fault) => return Stands::Failed(fault),
            }
        }
        if open {
            Stands::Open
        } else if gave.iter().all(Json::is_null) {
            Stands::Met(Json::Null)
        } else {
            Stands::Met(Json::Array(gave))
        }
    }

    /// Returns the recorded input of a part, as `Met`. Its value is null if the part can no longer be met.
    fn came_of(&self, part: u32) -> Option<Stands> {
        if let Some((_, json)) = self.came.filter(|(came, _)| *came == part) {
            return Some(Stands::Met(json.clone()));
        }
        let open = self.snapshot.call(self.open.owner, self.open.call.id)?;
        let (_, body) = open.met.iter().find(|(met, _)| *met == part)?;
        let text = body.map(|body| self.cx.bodies.text(body));
        let json = text.map_or(Json::Null, |text| {
            // An erased text reads as its tombstone.
            crate::values::json::read(&text).unwrap_or_else(|_| Json::from(&*text))
        });
        Some(Stands::Met(json))
    }

    /// Returns the parts that still wait for something outside (events and branches), in order. The timeout of the whole wait is
    /// not considered: input counts until the clock is checked.
    pub(super) fn awaited(&self) -> Vec<Part<'a>> {
        let mut found = Vec::new();
        self.awaited_on(&self.wait.on, 0, &mut found);
        found
    }

    fn awaited_on(&self, on: &'a WaitOn, part: u32, found: &mut Vec<Part<'a>>) {
        match on {
            WaitOn::Event { .. } | WaitOn::Branches(_) => {
                if self.came_of(part).is_none() {
                    found.push((part, on));
                }
            }
            WaitOn::Any(list) | WaitOn::All(list) => {
                if self.on(on, part, self.now) != Stands::Open {
                    return;
                }
                for (part, wait) in numbered(list, part) {
                    if self.node(wait, part, self.now, true) == Stands::Open {
                        self.awaited_on(&wait.on, part, found);
                    }
                }
            }
            WaitOn::Time(_) | WaitOn::Until(_) | WaitOn::Ticks(_) | WaitOn::When(_) => {}
        }
    }

    /// Returns the key of a part that waits for an event: canonical JSON of the fields that must be equal. A key that was stored
    /// when the wait opened is used, even if the state has changed since.
    pub(super) fn key(&self, part: u32, matching: &[(Name, Data)]) -> Arc<str> {
        let open = self.snapshot.call(self.open.owner, self.open.call.id);
        let kept = open.and_then(|open| open.keys.iter().find(|(of, _)| *of == part));
        if let Some((_, key)) = kept {
            return self.cx.bodies.text(*key);
        }
        let view = self.view();
        let fields = matching
            .iter()
            .map(|(name, data)| (name.to_string(), data.eval(&view).unwrap_or_default()));
        canonical(&Json::Object(fields.collect()))
            .to_string()
            .into()
    }

    /// Returns the reason why no event can ever meet a part of the wait, if there is one: a value that cannot be computed, or one
    /// that the declared type of its field does not have.
    pub(super) fn unmatchable(&self) -> Option<String> {
        let view = self.view();
        let awaited = self.awaited().into_iter();
        let mut wanted = awaited.flat_map(|(_, on)| match on {
            WaitOn::Event {
                event, matching, ..
            } => matching
                .iter()
                .map(|(field, data)| (event, field, data))
                .collect(),
            _ => Vec::new(),
        });
        wanted.find_map(|(event, field, data)| {
            let name = format!("event.{field}");
            let value = match data.eval(&view) {
                Ok(value) => value,
                Err(e) => return Some(format!("`match` of `{field}`: {e}")),
            };
            let fields = &self.cx.network.events.get(event)?.fields;
            let (_, ty) = fields.iter().find(|(known, _)| known == field)?;
            let misfit = misfit(ty, &value)?.under(&name);
            Some(format!("no `{event}` can match: {misfit}"))
        })
    }

    /// Returns the keys that must be stored: those that depend on more than the arguments of the call.
    pub(super) fn keys(&self) -> Vec<(u32, Arc<str>)> {
        let awaited = self.awaited().into_iter();
        awaited
            .filter_map(|(part, on)| match on {
                WaitOn::Event { matching, .. }
                    if !matching.iter().all(|(_, data)| is_fixed(data)) =>
                {
                    Some((part, self.key(part, matching)))
                }
                _ => None,
            })
            .collect()
    }

    /// Returns the first open part that an event meets. One event meets one part.
    pub(super) fn part_of(&self, event: &str, payload: &Json) -> Option<u32> {
        let meets = |part: u32, on: &WaitOn| {
            let WaitOn::Event {
                event: name,
                matching,
                when,
            } = on
            else {
                return false;
            };
            let view = self.view().with("event", payload.clone());
            **name == *event
                && is_met(&self.key(part, matching), payload)
                && when
                    .as_ref()
                    .is_none_or(|when| view.holds(when).unwrap_or(false))
        };
        let parts = self.awaited();
        parts
            .into_iter()
            .find(|(part, on)| meets(*part, on))
            .map(|(part, _)| part)
    }

    /// Returns the next time at which the state of the wait may change by time alone.
    pub(super) fn next_moment(&self) -> Option<Time> {
        self.next_of(self.wait)
    }

    fn next_of(&self, wait: &Wait) -> Option<Time> {
        let timeout = wait.timeout.map(|ms| self.open.opened.plus(ms));
        let on = match &wait.on {
            WaitOn::Time(_) | WaitOn::Until(_) => self.moment(&wait.on).ok(),
            WaitOn::Any(list) => list.iter().filter_map(|w| self.next_of(w)).min(),
            WaitOn::All(list) => {
                // Of plain times only the last one matters.
                let (times, others): (Vec<&Wait>, Vec<&Wait>) =
                    list.iter().partition(|w| is_time(w));
                let last = times.into_iter().filter_map(|w| self.next_of(w)).max();
                let others = others.into_iter().filter_map(|w| self.next_of(w));
                others.chain(last).min()
            }
            WaitOn::Event { .. } | WaitOn::Branches(_) | WaitOn::Ticks(_) | WaitOn::When(_) => None,
        };
        let later = |at: &Time| *at > self.now;
        [timeout, on].into_iter().flatten().filter(later).min()
    }

    /// Returns the reason why a time of the wait cannot be read, if there is one.
    pub(super) fn unreadable(&self) -> Option<String> {
        self.unreadable_on(&self.wait.on)
    }

    fn unreadable_on(&self, on: &WaitOn) -> Option<String> {
        match on {
            WaitOn::Time(_) | WaitOn::Until(_) => self.moment(on).err(),
            WaitOn::Any(list) | WaitOn::All(list) => {
                list.iter().find_map(|wait| self.unreadable_on(&wait.on))
            }
            WaitOn::Event { .. } | WaitOn::Branches(_) | WaitOn::Ticks(_) | WaitOn::When(_) => None,
        }
    }

    /// Returns the time at which a part that waits for time is over.
    fn moment(&self, on: &WaitOn) -> Result<Time, String> {
        let shown = |template: &Template| template.render(&self.view()).map_err(|e| e.to_string());
        match on {
            WaitOn::Time(template) => {
                let text = shown(template)?;
                let span =
                    super::duration(&text).ok_or_else(|| format!("`{text}` is no duration"))?;
                Ok(self.open.opened.plus(span))
            }
            WaitOn::Until(template) => {
                let text = shown(template)?;
                super::date(&text, &self.cx.network.timezone)
                    .ok_or_else(|| format!("`{text}` is no date and time"))
            }
            WaitOn::Event { .. }
            | WaitOn::Branches(_)
            | WaitOn::Ticks(_)
            | WaitOn::When(_)
            | WaitOn::Any(_)
            | WaitOn::All(_) => Err("it does not wait for time".to_owned()),
        }
    }

    pub(super) fn view(&self) -> View<'a> {
        super::view(&self.cx, self.snapshot, self.open).at(self.now)
    }
}

/// Returns true if an event has each field of a wait's key with an equal value. A field that is absent is null. A key that is not a JSON object is never met.
pub fn is_met(key: &str, payload: &Json) -> bool {
    // An erased key is not a JSON object.
    let Ok(Json::Object(key)) = serde_json::from_str(key) else {
        return false;
    };
    let is_equal = |(field, wanted): (&String, &Json)| {
        equal(payload.get(field).unwrap_or(&Json::Null), wanted)
    };
    key.iter().all(is_equal)
}

/// Returns true if data reads nothing but the arguments of the call.
fn is_fixed(data: &Data) -> bool {
    fn reads_args(node: &Node) -> bool {
        match &node.kind {
            NodeKind::Var(name) => &**name == "args",
            NodeKind::Call { .. } => false,
            _ => node.children().into_iter().all(reads_args),
        }
    }
    let mut pieces = data.templates().into_iter().flat_map(Template::body);
    pieces.all(|piece| match &piece.kind {
        StmtKind::Text(_) => true,
        StmtKind::Emit(node) => reads_args(node),
        _ => false,
    })
}

/// Returns the waits of a list, each with the number of its first part.
fn numbered(list: &[Wait], first: u32) -> impl Iterator<Item = (u32, &Wait)> {
    let mut next = first;
    list.iter().map(move |wait| {
        let part = next;
        next += count_of_parts(&wait.on);
        (part, wait)
    })
}

fn count_of_parts(on: &WaitOn) -> u32 {
    match on {
        WaitOn::Any(list) | WaitOn::All(list) => list.iter().map(|w| count_of_parts(&w.on)).sum(),
        WaitOn::Event { .. }
        | WaitOn::Time(_)
        | WaitOn::Until(_)
        | WaitOn::Branches(_)
        | WaitOn::Ticks(_)
        | WaitOn::When(_) => 1,
    }
}

fn is_time(wait: &Wait) -> bool {
    wait.timeout.is_none() && matches!(wait.on, WaitOn::Time(_) | WaitOn::Until(_))
}

/// Returns true if the wait has no timeout and is for state, commits or branches only.
pub(super) fn parks(wait: &Wait) -> bool {
    wait.timeout.is_none()
        && match &wait.on {
            WaitOn::When(_) | WaitOn::Ticks(_) | WaitOn::Branches(_) => true,
            WaitOn::Any(list) | WaitOn::All(list) => list.iter().all(parks),
            WaitOn::Event { .. } | WaitOn::Time(_) | WaitOn::Until(_) => false,
        }
}

/// Returns true if state or commits can end the wait or a part of it.
pub(super) fn is_watched(on: &WaitOn) -> bool {
    match on {
        WaitOn::When(_) | WaitOn::Ticks(_) => true,
        WaitOn::Any(list) | WaitOn::All(list) => list.iter().any(|w| is_watched(&w.on)),
        WaitOn::Event { .. } | WaitOn::Branches(_) | WaitOn::Time(_) | WaitOn::Until(_) => false,
    }
}

/// A call that waits for branches that were forked here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForBranches {
    /// Caller and call.
    pub call: (Id, Id),
    /// Number of branches that must end. `None` means all.
    pub need: Option<u32>,
}

impl ForBranches {
    /// Returns the branches whose ends must be offered, or `None` while too few have ended. `forked` lists the branches that were
    /// forked here and are not superseded, each with `true` if it has ended. The result is empty if fewer branches were forked
    /// than the wait needs.
    pub fn met(&self, forked: &[(Id, bool)]) -> Option<Vec<Id>> {
        let need = self.need.map_or(forked.len(), |need| need as usize);
        if forked.len() < need.max(1) {
            return Some(Vec::new());
        }
        let over = forked.iter().filter(|(_, over)| *over);
        let over: Vec<Id> = over.map(|(branch, _)| *branch).collect();
        (over.len() >= need).then_some(over)
    }
}

/// Returns the open waits of a branch that wait for branches. The driver offers [`crate::tick::effect::Offered::Ended`] to each, as
/// [`ForBranches::met`] says.
pub fn for_branches(cx: &Cx<'_>, snapshot: &Snapshot) -> Vec<ForBranches> {
    let mut found = Vec::new();
    for (owner, call) in &snapshot.waits {
        let Some(open) = snapshot.call(*owner, *call) else {
            continue;
        };
        let need = awaits_branches(cx, snapshot, open).filter(|_| snapshot.in_scope(*owner));
        if let Some((_, need)) = need {
            found.push(ForBranches {
                call: (*owner, *call),
                need,
            });
        }
    }
    found
}

/// Returns the first part of a wait that waits for branches, and how many must end.
pub(crate) fn awaits_branches(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    open: &OpenCall,
) -> Option<(u32, Option<u32>)> {
    let look = Look::new(cx, snapshot, open, snapshot.now)?;
    look.awaited().into_iter().find_map(|(part, on)| match on {
        WaitOn::Branches(need) => Some((part, *need)),
        _ => None,
    })
}
