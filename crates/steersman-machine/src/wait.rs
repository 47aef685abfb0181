//! Waits: for an event, a time, a predicate over state, commits, branches; and the machine's own deadlines.
//!
//! What waits for the outside (an event, a time) is an effect with a moment at which it is due. What waits for state or
//! for commits is no effect: it is looked at again when state changed, and with each commit.

use crate::effect::{Mapped, Outcome, Work};
use crate::ids::{Id, Name, Time};
use crate::interaction::{How, Target};
use crate::limits;
use crate::mapping::{self, Fault, Raw};
use crate::network::{Limit, OnLimit, Source, ToolDef, Wait, WaitOn};
use crate::snapshot::{OpenCall, Phase, Snapshot};
use crate::tick::{Cx, Tick};
use crate::view::View;
use serde_json::{Map, Value as Json};
use std::sync::Arc;

/// When the driver is to offer [`crate::effect::Offered::Clock`]: a state entry expires, or a limit of time is reached.
/// What effects wait for is in their `due`.
pub fn deadline(cx: &Cx<'_>, snapshot: &Snapshot) -> Option<Time> {
    let expires = snapshot.expiring.get_min().map(|(at, _, _)| *at);
    [expires, limit_of_time(cx, snapshot).map(|(at, ..)| at)]
        .into_iter()
        .flatten()
        .min()
}

/// The first agent at work whose limit of time will be reached, when, and what happens then.
pub(crate) fn limit_of_time(cx: &Cx<'_>, snapshot: &Snapshot) -> Option<(Time, Id, Limit)> {
    let limited = cx.network.limits.wall_time.is_some()
        || cx
            .network
            .agents
            .values()
            .any(|a| a.limits.wall_time.is_some());
    if !limited {
        return None;
    }
    let mut first: Option<(Time, Id, Limit)> = None;
    for effect in snapshot.effects.values() {
        let mut at = Some(effect.agent);
        while let Some(id) = at {
            let agent = snapshot.agent(id);
            let own = cx.network.agent(&agent.def).limits.wall_time;
            let session = cx
                .network
                .limits
                .wall_time
                .filter(|_| agent.parent.is_none());
            for limit in own.into_iter().chain(session) {
                let reached = limits::wall_time(agent, &limit);
                if agent.phase != Phase::Resting
                    && !agent.counters.limited
                    && first.is_none_or(|(at, ..)| reached < at)
                    && !(limit.then == OnLimit::Ask && is_asking(snapshot, id))
                {
                    first = Some((reached, id, limit));
                }
            }
            at = agent.parent;
        }
    }
    first
}

/// Whether a person was asked for more, and has not answered.
fn is_asking(snapshot: &Snapshot, agent: Id) -> bool {
    let mut open = snapshot.exchange(agent);
    open.any(|c| c.closed.is_none() && *c.call.name == *crate::fold::MORE)
}

/// What became of an effect whose time came: a wait that is over, or one that took too long. None if the effect is not
/// out or has no such moment.
pub fn fired(cx: &Cx<'_>, snapshot: &Snapshot, effect: Id) -> Option<Outcome> {
    let open = snapshot.call_of(effect)?;
    snapshot.effects.get(&effect)?.due?;
    let tool = cx.network.tools.get(&open.call.name);
    let over = matches!(tool.map(|t| &t.source), Some(Source::Wait(wait)) if is_time(&wait.on));
    let raw = if over && !times_out_first(cx, snapshot, open) {
        Raw::Done(Json::Null)
    } else {
        Raw::NotPerformed(Fault::new("timeout", "nothing came in time"))
    };
    Some(Outcome::Mapped(mapping::map(
        cx,
        snapshot,
        open.owner,
        open.call.id,
        &raw,
    )))
}

/// Whether an event ends a wait that is open: its name, its fields, and the expression over it.
pub fn matches(cx: &Cx<'_>, snapshot: &Snapshot, effect: Id, event: &str, payload: &Json) -> bool {
    let Some(open) = snapshot.call_of(effect) else {
        return false;
    };
    let Some(Source::Wait(wait)) = cx.network.tools.get(&open.call.name).map(|t| &t.source) else {
        return false;
    };
    event_of(&wait.on, &mut |on| {
        let WaitOn::Event {
            event: name,
            matching,
            when,
        } = on
        else {
            return false;
        };
        let view = view(cx, snapshot, open).with("event", payload.clone());
        let equal = |(field, template): &(Name, crate::expression::Template)| {
            template
                .value(&view)
                .is_ok_and(|wanted| payload.get(&**field) == Some(&wanted))
        };
        **name == *event
            && matching.iter().all(equal)
            && when
                .as_ref()
                .is_none_or(|when| view.holds(when).unwrap_or(false))
    })
}

fn event_of(on: &WaitOn, found: &mut dyn FnMut(&WaitOn) -> bool) -> bool {
    match on {
        WaitOn::Event { .. } => found(on),
        WaitOn::Any(list) | WaitOn::All(list) => list.iter().any(|w| event_of(&w.on, found)),
        WaitOn::Time(_)
        | WaitOn::Until(_)
        | WaitOn::Branches(_)
        | WaitOn::Ticks(_)
        | WaitOn::When(_) => false,
    }
}

/// What the outside is asked to wait for.
pub(crate) fn work(cx: &Cx<'_>, snapshot: &Snapshot, open: &OpenCall) -> Work {
    let Some(Source::Wait(wait)) = cx.network.tools.get(&open.call.name).map(|t| &t.source) else {
        return Work::Timer;
    };
    let mut event = None;
    event_of(&wait.on, &mut |on| {
        event = Some(on.clone());
        true
    });
    match event {
        Some(WaitOn::Event {
            event, matching, ..
        }) => Work::Event {
            key: key(&view(cx, snapshot, open), &matching),
            event,
        },
        Some(_) | None => Work::Timer,
    }
}

/// Canonical JSON of the fields that must be equal.
fn key(view: &View<'_>, matching: &[(Name, crate::expression::Template)]) -> Arc<str> {
    let mut fields: Vec<(String, Json)> = matching
        .iter()
        .map(|(name, template)| (name.to_string(), template.value(view).unwrap_or_default()))
        .collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    Json::Object(fields.into_iter().collect::<Map<_, _>>())
        .to_string()
        .into()
}

fn view<'a>(cx: &Cx<'a>, snapshot: &'a Snapshot, open: &OpenCall) -> View<'a> {
    let args = mapping::arguments(cx, snapshot, open);
    View::new(cx, snapshot, Some(open.owner)).with("args", Json::Object(args))
}

fn is_time(on: &WaitOn) -> bool {
    match on {
        WaitOn::Time(_) | WaitOn::Until(_) => true,
        WaitOn::Any(list) | WaitOn::All(list) => list.iter().any(|w| is_time(&w.on)),
        WaitOn::Event { .. } | WaitOn::Branches(_) | WaitOn::Ticks(_) | WaitOn::When(_) => false,
    }
}

fn times_out_first(cx: &Cx<'_>, snapshot: &Snapshot, open: &OpenCall) -> bool {
    let Some(Source::Wait(wait)) = cx.network.tools.get(&open.call.name).map(|t| &t.source) else {
        return true;
    };
    let timeout = wait.timeout.map(|ms| open.opened.plus(ms));
    let time = moment(cx, snapshot, open, &wait.on).ok().flatten();
    matches!((timeout, time), (Some(timeout), Some(time)) if timeout < time)
}

/// When a wait for time is over; none: it does not wait for time.
fn moment(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    open: &OpenCall,
    on: &WaitOn,
) -> Result<Option<Time>, String> {
    let shown = |template: &crate::expression::Template| {
        template
            .render(&view(cx, snapshot, open))
            .map_err(|e| e.to_string())
    };
    Ok(match on {
        WaitOn::Time(template) => {
            let text = shown(template)?;
            let span = duration(&text).ok_or_else(|| format!("`{text}` is no duration"))?;
            Some(open.opened.plus(span))
        }
        WaitOn::Until(template) => {
            let text = shown(template)?;
            Some(
                date(&text, &cx.network.timezone)
                    .ok_or_else(|| format!("`{text}` is no date and time"))?,
            )
        }
        WaitOn::Any(list) => {
            let times = list.iter().map(|w| moment(cx, snapshot, open, &w.on));
            times
                .collect::<Result<Vec<_>, _>>()?
                .into_iter()
                .flatten()
                .min()
        }
        WaitOn::All(list) => {
            let times = list.iter().map(|w| moment(cx, snapshot, open, &w.on));
            times
                .collect::<Result<Vec<_>, _>>()?
                .into_iter()
                .flatten()
                .max()
        }
        WaitOn::Event { .. } | WaitOn::Branches(_) | WaitOn::Ticks(_) | WaitOn::When(_) => None,
    })
}

/// `250ms 30s 15m 4h 3d`, or plain seconds, in milliseconds.
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

/// A date and time, in its own zone or in the network's.
fn date(text: &str, zone: &str) -> Option<Time> {
    let text = text.trim();
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Some(Time(at.as_millisecond()));
    }
    let at: jiff::civil::DateTime = text.parse().ok()?;
    let zone = jiff::tz::TimeZone::get(zone).ok()?;
    Some(Time(at.to_zoned(zone).ok()?.timestamp().as_millisecond()))
}

impl Tick<'_> {
    /// A wait opens: what holds already is over at once; what waits for the outside is wished.
    pub(crate) fn begin_wait(&mut self, open: &OpenCall, tool: &ToolDef) {
        let Source::Wait(wait) = &tool.source else {
            return;
        };
        let when = match moment(&self.cx(), &self.snapshot, open, &wait.on) {
            Ok(when) => when,
            Err(why) => {
                let raw = Raw::NotPerformed(Fault::new("failed", why));
                let mapped =
                    mapping::map(&self.cx(), &self.snapshot, open.owner, open.call.id, &raw);
                return self.close_call(open.owner, open.call.id, mapped);
            }
        };
        let timeout = wait.timeout.map(|ms| open.opened.plus(ms));
        let due = [when, timeout].into_iter().flatten().min();
        self.wish_call(open, due);
    }

    /// Whether a call waits for nothing outside: state or commits end it.
    pub(crate) fn is_parked(&self, open: &OpenCall) -> bool {
        let tool = self.network.tools.get(&open.call.name);
        match tool.map(|t| &t.source) {
            Some(Source::Wait(wait)) => wait.timeout.is_none() && parks(&wait.on),
            _ => false,
        }
    }

    /// Waits over state and commits are looked at again. Whether one of them ended.
    pub(crate) fn look_at_waits(&mut self) -> bool {
        if self.snapshot.waits.is_empty() {
            return false;
        }
        let waits: Vec<(Id, Id)> = self.snapshot.waits.iter().copied().collect();
        let mut ended = false;
        for (owner, call) in waits {
            let Some(open) = self.snapshot.call(owner, call).cloned() else {
                continue;
            };
            let Some(Source::Wait(wait)) =
                self.network.tools.get(&open.call.name).map(|t| &t.source)
            else {
                continue;
            };
            let raw = match self.holds(&open, wait) {
                Ok(false) => continue,
                Ok(true) => Raw::Done(Json::Null),
                Err(why) => Raw::NotPerformed(Fault::new("failed", why)),
            };
            let mapped = mapping::map(&self.cx(), &self.snapshot, owner, call, &raw);
            self.close_call(owner, call, mapped);
            ended = true;
        }
        ended
    }

    /// Ends waits for commits where nothing else can make one. Whether there was one.
    pub(crate) fn end_tick_waits(&mut self) -> bool {
        let waits: Vec<(Id, Id)> = self.snapshot.waits.iter().copied().collect();
        let mut ended = false;
        for (owner, call) in waits {
            let Some(open) = self.snapshot.call(owner, call).cloned() else {
                continue;
            };
            let source = self.network.tools.get(&open.call.name).map(|t| &t.source);
            if let Some(Source::Wait(wait)) = source
                && matches!(wait.on, WaitOn::Ticks(_))
            {
                self.close_call(owner, call, Mapped::plain(How::Done, None, "ok"));
                ended = true;
            }
        }
        ended
    }

    fn holds(&self, open: &OpenCall, wait: &Wait) -> Result<bool, String> {
        if open.call.target != Target::Wait || !self.snapshot.in_scope(open.owner) {
            return Ok(false);
        }
        match &wait.on {
            WaitOn::When(expr) => {
                let cx = self.cx();
                let view = view(&cx, &self.snapshot, open).at(self.now);
                view.holds(expr).map_err(|e| e.to_string())
            }
            WaitOn::Ticks(n) => Ok(self.snapshot.ticks + 1 >= open.opened_at + 1 + n),
            WaitOn::Any(list) => {
                for one in list {
                    if self.holds(open, one)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            WaitOn::All(list) => {
                for one in list {
                    if !self.holds(open, one)? {
                        return Ok(false);
                    }
                }
                Ok(!list.is_empty())
            }
            WaitOn::Event { .. } | WaitOn::Time(_) | WaitOn::Until(_) | WaitOn::Branches(_) => {
                Ok(false)
            }
        }
    }
}

/// Whether nothing outside ends it.
fn parks(on: &WaitOn) -> bool {
    match on {
        WaitOn::When(_) | WaitOn::Ticks(_) | WaitOn::Branches(_) => true,
        WaitOn::Any(list) | WaitOn::All(list) => list.iter().all(|w| parks(&w.on)),
        WaitOn::Event { .. } | WaitOn::Time(_) | WaitOn::Until(_) => false,
    }
}
