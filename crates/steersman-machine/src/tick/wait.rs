//! Waits for events, times, predicates over state, commits and branches; and the machine's own deadlines.
//!
//! A wait for something outside (an event, a time) is an effect; it has a due time if time alone can change it. A wait for state
//! or commits is not an effect; it is checked again in each tick. A wait of several parts is one effect for all of them. Results of
//! parts are recorded with the call, and the same effect continues for the rest.

mod parts;

pub(crate) use parts::awaits_branches;
pub use parts::{ForBranches, for_branches, is_met};

use crate::network::{OnLimit, Source, ToolDef, WaitOn};
use crate::snapshot::{Effect, OpenCall, Phase, Snapshot};
use crate::stored::codes::Code;
use crate::stored::commit::{CallChanged, Want, Wished};
use crate::stored::ids::{Id, Time};
use crate::stored::interaction::Target;
use crate::tick::Tick;
use crate::tick::effect::{EventKey, Work};
use crate::tick::limits::{self, Reached};
use crate::view::mapping::{self, Fault, Raw};
use crate::view::{Cx, View};
use parts::Look;
use serde_json::Value as Json;

/// Returns the time at which the driver must offer [`crate::tick::effect::Offered::Clock`], because a state entry expires or a limit of
/// time is reached. The times of effects are in their `due`.
pub fn deadline(cx: &Cx<'_>, snapshot: &Snapshot) -> Option<Time> {
    let expires = snapshot.expiring.get_min().map(|(at, _, _)| *at);
    [expires, limit_of_time(cx, snapshot).map(|(at, ..)| at)]
        .into_iter()
        .flatten()
        .min()
}

/// Returns the agent at work whose limit of time will be reached first, with that time and the limit.
pub(crate) fn limit_of_time(cx: &Cx<'_>, snapshot: &Snapshot) -> Option<(Time, Id, Reached)> {
    let limited = cx.network.limits.wall_time.is_some()
        || cx
            .network
            .agents
            .values()
            .any(|a| a.all_limits().any(|limits| limits.wall_time.is_some()));
    if !limited {
        return None;
    }
    let mut first: Option<(Time, Id, Reached)> = None;
    for effect in snapshot.effects.values() {
        let mut at = Some(effect.agent);
        while let Some(id) = at {
            let agent = snapshot.agent(id);
            let own = cx.network.limits_of(agent).wall_time;
            let session = cx
                .network
                .limits
                .wall_time
                .filter(|_| agent.family.parent.is_none());
            let own = own.map(|limit| (limit, false));
            let session = session.map(|limit| (limit, true));
            for (limit, all) in own.into_iter().chain(session) {
                let due = limits::deadline(agent, &limit, all, snapshot.now);
                if let Some(due) = due
                    && agent.phase != Phase::Resting
                    && !agent.counters.limited
                    && first.is_none_or(|(at, ..)| due < at)
                    && !(limit.then == OnLimit::Ask && is_asking(snapshot, id))
                {
                    let reached = limits::of_time(agent, &limit, all, due);
                    first = Some((due, id, reached));
                }
            }
            at = agent.family.parent;
        }
    }
    first
}

/// Returns true if a person was asked for more and has not answered.
fn is_asking(snapshot: &Snapshot, agent: Id) -> bool {
    let mut open = snapshot.exchange(agent);
    open.any(|c| c.closed.is_none() && c.call.is_for_more())
}

/// Meaning of an event or of a due time for a waiting effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Meets {
    /// The effect does not wait for it.
    Nothing,
    /// A part of the wait is met: [`crate::stored::outcome::Outcome::Came`] must be offered.
    Part,
    /// The wait is over; this must be mapped and offered.
    Over(Raw),
}

/// Returns the meaning of an effect's due time, once it has come.
pub fn due(cx: &Cx<'_>, snapshot: &Snapshot, effect: Id) -> Meets {
    let Some(due) = snapshot.effects.get(&effect).and_then(|e| e.due) else {
        return Meets::Nothing;
    };
    let open = snapshot
        .call_of(effect)
        .filter(|c| c.call.target == Target::Wait);
    let look = open.and_then(|open| Look::new(cx, snapshot, open, due.max(snapshot.now)));
    look.map_or(Meets::Nothing, |look| {
        look.stands().over().map_or(Meets::Part, Meets::Over)
    })
}

/// Returns the meaning of an event for an effect, by its name, its fields and the expression over them.
pub fn event(cx: &Cx<'_>, snapshot: &Snapshot, effect: Id, event: &str, payload: &Json) -> Meets {
    let open = snapshot.call_of(effect).filter(|c| c.closed.is_none());
    let Some(mut look) = open.and_then(|open| Look::new(cx, snapshot, open, snapshot.now)) else {
        return Meets::Nothing;
    };
    let Some(part) = look.part_of(event, payload) else {
        return Meets::Nothing;
    };
    look.came = Some((part, payload));
    look.stands().over().map_or(Meets::Part, Meets::Over)
}

/// Returns the work that the driver does for a wait.
pub(crate) fn work(cx: &Cx<'_>, snapshot: &Snapshot, open: &OpenCall) -> Work {
    let Some(look) = Look::new(cx, snapshot, open, snapshot.now) else {
        return Work::Timer;
    };
    let events = look
        .awaited()
        .into_iter()
        .filter_map(|(part, on)| match on {
            WaitOn::Event {
                event, matching, ..
            } => Some(EventKey {
                event: event.clone(),
                key: look.key(part, matching),
            }),
            _ => None,
        });
    let mut any: Vec<EventKey> = events.collect();
    any.sort();
    any.dedup();
    if any.is_empty() {
        Work::Timer
    } else {
        Work::Event { any }
    }
}

fn view<'a>(cx: &Cx<'a>, snapshot: &'a Snapshot, open: &OpenCall) -> View<'a> {
    let args = mapping::arguments(cx, snapshot, open);
    View::new(cx, snapshot, Some(open.owner)).with("args", Json::Object(args))
}

/// Parses a duration (`250ms 30s 15m 4h 3d`, or plain seconds) into milliseconds.
pub(crate) fn duration(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let factor = match text[digits..].trim() {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// Parses a date and time, in its own zone or in the network's.
fn date(text: &str, zone: &str) -> Option<Time> {
    let text = text.trim();
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Some(Time(at.as_millisecond()));
    }
    let at: jiff::civil::DateTime = text.parse().ok()?;
    let zone = jiff::tz::TimeZone::get(zone).ok()?;
    Some(Time(at.to_zoned(zone).ok()?.timestamp().as_millisecond()))
}

/// Returns true if a tool is a wait that state or commits can end.
fn is_watched(tool: &ToolDef) -> bool {
    matches!(&tool.source, Source::Wait(wait) if parts::is_watched(&wait.on))
}

impl Tick<'_> {
    /// Opens a wait. A wait that is met already ends immediately; a wait for something outside is wished.
    pub(crate) fn begin_wait(&mut self, open: &OpenCall) {
        let cx = self.cx();
        let Some(look) = Look::new(&cx, &self.snapshot, open, self.now) else {
            return;
        };
        if let Some(why) = look.unreadable().or_else(|| look.unmatchable()) {
            let raw = Raw::NotPerformed(Fault::new(Code::Failed, why));
            self.end_wait(open, &raw);
            return;
        }
        let (over, due) = (look.stands().over(), look.next_moment());
        if let Some(raw) = over {
            self.end_wait(open, &raw);
            return;
        }
        for (part, key) in look.keys() {
            let body = self.body(key.to_string());
            self.branch(open.owner, open.call.id, CallChanged::Awaits(part, body));
        }
        self.wish_call(open, due);
    }

    /// Returns true if a call waits only for state, commits or the ends of branches, and for no event or time.
    pub(crate) fn is_parked(&self, open: &OpenCall) -> bool {
        parts::wait_of(&self.cx(), open).is_some_and(parts::parks)
    }

    /// Checks the waits for state and commits again. Returns true if one of them ended.
    pub(crate) fn look_at_waits(&mut self) -> bool {
        self.look_at(false)
    }

    /// Ends waits for commits if nothing else can make a commit. Returns true if a wait ended.
    pub(crate) fn end_tick_waits(&mut self) -> bool {
        self.look_at(true)
    }

    fn look_at(&mut self, no_more_ticks: bool) -> bool {
        if self.snapshot.waits.is_empty() || !self.network.tools.values().any(is_watched) {
            return false;
        }
        // Waits for events and times alone are skipped, because there may be many of them.
        let waits = self.snapshot.waits.iter().copied();
        let waits: Vec<(Id, Id)> = waits
            .filter(|(owner, call)| {
                let open = self.snapshot.call(*owner, *call);
                let tool = open.and_then(|open| self.network.tools.get(&open.call.name));
                tool.is_some_and(is_watched)
            })
            .collect();
        let mut ended = false;
        for (owner, call) in waits {
            let Some(open) = self.snapshot.call(owner, call).cloned() else {
                continue;
            };
            if !self.snapshot.in_scope(owner) {
                continue;
            }
            let cx = self.cx();
            let Some(mut look) = Look::new(&cx, &self.snapshot, &open, self.now) else {
                continue;
            };
            look.no_more_ticks = no_more_ticks;
            if let Some(raw) = look.stands().over() {
                ended |= self.end_wait(&open, &raw);
            }
        }
        ended
    }

    /// Returns true if an effect can end by an input from outside. Only a wait without an event and without a due time cannot.
    pub(crate) fn may_end(&self, effect: &Effect) -> bool {
        let open = effect
            .what
            .call()
            .and_then(|c| self.snapshot.call(effect.agent, c));
        let Some(open) = open.filter(|c| c.call.target == Target::Wait && effect.due.is_none())
        else {
            return true;
        };
        matches!(work(&self.cx(), &self.snapshot, open), Work::Event { .. })
    }

    /// Returns true if an open wait waits for branches.
    pub(crate) fn waits_for_branches(&self) -> bool {
        !for_branches(&self.cx(), &self.snapshot).is_empty()
    }

    /// Returns the part of a wait that an event meets.
    pub(crate) fn part_of(&self, open: &OpenCall, event: &str, fields: &Json) -> Option<u32> {
        let cx = self.cx();
        Look::new(&cx, &self.snapshot, open, self.now)?.part_of(event, fields)
    }

    /// Records that a part of a wait was met. The wait then ends, or continues with the rest.
    pub(crate) fn part_met(&mut self, open: &OpenCall, part: Option<u32>, gave: Option<&Json>) {
        let (owner, call) = (open.owner, open.call.id);
        if let Some(part) = part {
            let body = gave.map(|json| self.body(json.to_string()));
            self.branch(owner, call, CallChanged::Met(part, body));
        }
        let Some(open) = self.snapshot.call(owner, call).cloned() else {
            return;
        };
        let cx = self.cx();
        let Some(look) = Look::new(&cx, &self.snapshot, &open, self.now) else {
            return;
        };
        let (over, due) = (look.stands().over(), look.next_moment());
        match (over, open.effect) {
            (Some(raw), _) => {
                self.end_wait(&open, &raw);
            }
            (None, Some(effect)) => self.wish_rest(&open, effect, due),
            // The rest waits for nothing outside.
            (None, None) => {}
        }
    }

    /// Wishes the same effect again, for the rest of the wait.
    fn wish_rest(&mut self, open: &OpenCall, effect: Id, due: Option<Time>) {
        self.wish(Wished {
            id: effect,
            agent: open.owner,
            what: Want::Call(open.call.id),
            args: None,
            due,
        });
    }

    /// Ends a wait. If a write must be sealed, the driver has to seal it first: the wait then stays open, and its effect is due now.
    /// Returns true if the wait ended here.
    fn end_wait(&mut self, open: &OpenCall, raw: &Raw) -> bool {
        let mapped = mapping::map(&self.cx(), &self.snapshot, open.owner, open.call.id, raw);
        if !mapped.writes.iter().any(|w| w.seal) {
            self.close_call(open.owner, open.call.id, mapped);
            return true;
        }
        match open.effect {
            Some(effect) if open.due.is_none_or(|due| due > self.now) => {
                self.wish_rest(open, effect, Some(self.now));
            }
            Some(_) => {}
            None => self.wish_call(open, Some(self.now)),
        }
        false
    }
}
