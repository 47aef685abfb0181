//! A session over time: one lane for each agent, with the spans in which its model answered, its tools ran, and it waited.
//!
//! Only the log says what happened when, so a span begins and ends with the time of a line, or of a model's own measurement. An
//! [`Axis`] gives each moment its place in a picture, and shortens the time in which nothing but waits goes on.

use crate::shown;
use serde::Serialize;
use std::collections::BTreeMap;
use steersman_machine::stored::commit::{Admitted, Commit, LedgerEntry, LogLine, Want, Why};
use steersman_machine::stored::ids::{Id, Line, Name, Time};
use steersman_machine::stored::interaction::{Class, How, Interaction, Target};
use steersman_machine::stored::words::why_word;

/// A session over time.
#[derive(Clone, Debug, Serialize)]
pub struct Timeline {
    /// Time of the first line.
    #[serde(serialize_with = "shown::time")]
    pub begins: Time,
    /// Time of the last line.
    #[serde(serialize_with = "shown::time")]
    pub ends: Time,
    /// The lanes, each behind that of the agent which started its agent.
    pub lanes: Vec<Lane>,
    /// Spans that are not over, by effect or call.
    #[serde(skip)]
    open: BTreeMap<(Id, What), Open>,
    /// The agent and the lane of each effect, and the call that it is for.
    #[serde(skip)]
    effects: BTreeMap<Id, (usize, Option<Id>)>,
}

/// The lane of an agent on a branch.
#[derive(Clone, Debug, Serialize)]
pub struct Lane {
    /// Id of the agent.
    #[serde(serialize_with = "shown::text")]
    pub agent: Id,
    /// The name that its caller gave it, otherwise that of its definition.
    pub name: Name,
    /// The branch.
    #[serde(serialize_with = "shown::text")]
    pub branch: Id,
    /// Number of agents above it.
    pub depth: usize,
    /// Its spans, in the order in which they began.
    pub spans: Vec<Span>,
}

/// A time in which an agent's model, one of its tools or something else was at work for it, or in which it waited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The kind.
    pub what: What,
    /// The model, the tool, the agent that was called, or the kind of wait.
    pub name: Name,
    /// Id of the effect or call.
    #[serde(serialize_with = "shown::text")]
    pub id: Id,
    /// Time of its beginning.
    #[serde(serialize_with = "shown::time")]
    pub from: Time,
    /// Time of its end; of the last line, if it goes on.
    #[serde(serialize_with = "shown::time")]
    pub to: Time,
    /// The line that ended it, or that it began with.
    #[serde(serialize_with = "shown::line")]
    pub line: Line,
    /// True if it goes on.
    pub open: bool,
    /// True if it failed, was refused, or it is not known whether it happened.
    pub failed: bool,
}

/// The kinds of spans.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A model answered.
    Model,
    /// A tool ran.
    Tool,
    /// An agent that it called was at work.
    Agent,
    /// It waited: for a person, an event, a time, a place or a budget.
    Wait,
    /// Nobody drove the session: the process at work had ended, and none had taken the session over.
    Unowned,
}

impl What {
    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Agent => "agent",
            Self::Wait => "wait",
            Self::Unowned => "unowned",
        }
    }
}

#[derive(Clone, Debug)]
struct Open {
    lane: usize,
    name: Name,
    from: Time,
    line: Line,
    /// True if the log says when it begins again after its process ended.
    announced: bool,
}

impl Timeline {
    /// Returns the timeline of these lines, which are those of a session in their order.
    pub fn of<'a>(lines: impl IntoIterator<Item = &'a LogLine>) -> Self {
        let mut lines = lines.into_iter().peekable();
        let begins = lines.peek().map_or(Time(0), |line| line.at);
        let mut timeline = Self {
            begins,
            ends: begins,
            lanes: Vec::new(),
            open: BTreeMap::new(),
            effects: BTreeMap::new(),
        };
        for line in lines {
            timeline.line(line);
        }
        timeline.end()
    }

    /// Extends what is open to this moment.
    pub fn goes_on(&mut self, now: Time) {
        let spans = self.lanes.iter_mut().flat_map(|lane| &mut lane.spans);
        for span in spans.filter(|span| span.open && now > span.to) {
            span.to = now;
            self.ends = self.ends.max(now);
        }
    }

    /// Ends what is at work with the last line, because the process that drove the session has ended and none has taken it over. Extends
    /// the waits to this moment.
    pub fn stands(&mut self, now: Time) {
        let last = self.ends;
        for lane in &mut self.lanes {
            let works =
                |span: &&mut Span| span.open && matches!(span.what, What::Model | What::Tool);
            let mut cut = None;
            for span in lane.spans.iter_mut().filter(works) {
                (span.open, span.failed) = (false, true);
                cut = Some((span.id, span.line));
            }
            lane.spans.extend(cut.map(|(id, line)| Span {
                what: What::Unowned,
                name: "not taken over".into(),
                id,
                from: last,
                to: last,
                line,
                open: true,
                failed: false,
            }));
        }
        self.goes_on(now);
    }

    /// Returns the time that all lanes together spent with something, in milliseconds.
    pub fn sum(&self, what: What) -> u64 {
        self.lanes.iter().map(|lane| lane.sum(what)).sum()
    }

    fn line(&mut self, line: &LogLine) {
        let claims = |entry: &LedgerEntry| matches!(entry, LedgerEntry::Claimed { .. });
        if line.ledger.iter().any(claims) {
            self.taken_over(line);
        }
        self.ends = self.ends.max(line.at);
        if let Some(commit) = &line.commit {
            self.commit(line, commit);
        }
        for entry in &line.ledger {
            self.entry(line, entry);
        }
    }

    /// A process takes the session over. What was at work ended with the process before, which is known to have lived until its last
    /// line, and begins again.
    fn taken_over(&mut self, line: &LogLine) {
        let last = self.ends;
        let works = |(key, open): (&(Id, What), &Open)| {
            (matches!(key.1, What::Model | What::Tool) && open.from <= last).then_some(*key)
        };
        let cut: Vec<(Id, What)> = self.open.iter().filter_map(works).collect();
        for (id, what) in cut {
            let Some(open) = self.open.get_mut(&(id, what)) else {
                continue;
            };
            let span = |what, name: &Name, (from, to)| Span {
                what,
                name: name.clone(),
                id,
                from,
                to,
                line: line.n,
                open: false,
                failed: what != What::Unowned,
            };
            let spans = &mut self.lanes[open.lane].spans;
            spans.push(span(what, &open.name, (open.from, last)));
            let is_marked = |s: &Span| s.what == What::Unowned && s.line == line.n;
            if !spans.iter().any(is_marked) {
                spans.push(span(What::Unowned, &"taken over".into(), (last, line.at)));
            }
            open.from = if open.announced {
                Time(i64::MAX)
            } else {
                line.at
            };
        }
    }

    fn commit(&mut self, line: &LogLine, commit: &Commit) {
        for made in &commit.made {
            let name = made.named.as_ref().unwrap_or(&made.def).clone();
            let above = made.parent.and_then(|parent| self.lane_of(parent));
            self.begin_lane(made.agent, name, line.branch, above);
        }
        for usage in &commit.usage {
            let Some(effect) = usage.effect else { continue };
            let from = Time(line.at.0.saturating_sub_unsigned(usage.took));
            if let Some(mut open) = self.open.remove(&(effect, What::Model)) {
                open.from = from.max(open.from);
                if let Some(model) = &usage.model {
                    open.name = model.clone();
                }
                self.close(effect, What::Model, open, line, false);
            }
        }
        for admitted in &commit.admitted {
            let over = admitted.id.filter(|_| admitted.kind == Admitted::Outcome);
            let failed = over.and_then(|id| Some((id, self.open.remove(&(id, What::Model))?)));
            if let Some((id, open)) = failed {
                self.close(id, What::Model, open, line, true);
            }
        }
        for push in &commit.pushes {
            let Some(lane) = self.lane_on(push.agent, line.branch) else {
                continue;
            };
            match &push.what {
                Interaction::Call(call) => {
                    let what = match &call.target {
                        Target::Tool(_) => What::Tool,
                        Target::Agent(_) | Target::Branches(_) => What::Agent,
                        Target::Person(_) | Target::Wait => What::Wait,
                        Target::Unknown => continue,
                    };
                    self.open(call.id, what, lane, &call.name, line);
                    let announced =
                        matches!(call.target, Target::Tool(Class::Idempotent | Class::Unsafe));
                    if let Some(open) = self.open.get_mut(&(call.id, what)) {
                        open.announced = announced;
                    }
                }
                Interaction::Result(result) => {
                    for what in [What::Tool, What::Agent, What::Wait] {
                        if let Some(open) = self.open.remove(&(result.call, what)) {
                            let failed = !result.how.is_ok() && result.how != How::Cancelled;
                            self.close(result.call, what, open, line, failed);
                        }
                    }
                }
                _ => {}
            }
        }
        for wished in &commit.wished {
            let Some(lane) = self.lane_on(wished.agent, line.branch) else {
                continue;
            };
            let call = wished.what.call();
            self.effects.insert(wished.id, (lane, call));
            if wished.what == Want::Step {
                self.open(wished.id, What::Model, lane, &"model".into(), line);
            }
        }
    }

    fn entry(&mut self, line: &LogLine, entry: &LedgerEntry) {
        match entry {
            LedgerEntry::Hold(hold) => {
                let known = self.effects.get(&hold.effect);
                let Some((lane, call)) = known.copied() else {
                    return;
                };
                // A call whose place is down, or that waits inside of its tool, goes on after the hold; else it has not begun.
                if hold.why != Why::Doubt {
                    for key in keys(hold.effect, call) {
                        if let Some(open) = self.open.get_mut(&key) {
                            open.from = Time(i64::MAX);
                        }
                    }
                }
                self.open(
                    hold.effect,
                    What::Wait,
                    lane,
                    &why_word(hold.why).into(),
                    line,
                );
            }
            LedgerEntry::Released { effect, .. } => {
                if let Some(open) = self.open.remove(&(*effect, What::Wait)) {
                    self.close(*effect, What::Wait, open, line, false);
                }
                let call = self.effects.get(effect).and_then(|(_, call)| *call);
                self.begins_now(*effect, call, line.at);
            }
            LedgerEntry::Started { effect, .. } => {
                let call = self.effects.get(effect).and_then(|(_, call)| *call);
                self.begins_now(*effect, call, line.at);
            }
            _ => {}
        }
    }

    /// An attempt of an effect begins now: earlier ones are not shown.
    fn begins_now(&mut self, effect: Id, call: Option<Id>, now: Time) {
        for key in keys(effect, call) {
            if let Some(open) = self.open.get_mut(&key) {
                open.from = now;
            }
        }
    }

    fn open(&mut self, id: Id, what: What, lane: usize, name: &Name, line: &LogLine) {
        let open = Open {
            lane,
            name: name.clone(),
            from: line.at,
            line: line.n,
            announced: false,
        };
        self.open.insert((id, what), open);
    }

    fn close(&mut self, id: Id, what: What, open: Open, line: &LogLine, failed: bool) {
        let span = Span {
            what,
            name: open.name,
            id,
            // A call that never began has no span of its own.
            from: open.from.min(line.at),
            to: line.at,
            line: line.n,
            open: false,
            failed,
        };
        self.lanes[open.lane].spans.push(span);
    }

    /// Ends the timeline with its last line: what is open goes on.
    fn end(mut self) -> Self {
        for ((id, what), open) in std::mem::take(&mut self.open) {
            if open.from > self.ends {
                continue;
            }
            self.lanes[open.lane].spans.push(Span {
                what,
                name: open.name,
                id,
                from: open.from,
                to: self.ends,
                line: open.line,
                open: true,
                failed: false,
            });
        }
        for lane in &mut self.lanes {
            lane.spans.sort_by_key(|span| (span.from, span.to, span.id));
        }
        self
    }

    /// Returns the newest lane of an agent.
    fn lane_of(&self, agent: Id) -> Option<usize> {
        self.lanes.iter().rposition(|lane| lane.agent == agent)
    }

    /// Returns the lane of an agent on a branch. An agent that goes on on another branch has another lane there.
    fn lane_on(&mut self, agent: Id, branch: Id) -> Option<usize> {
        let on = |lane: &Lane| lane.agent == agent && lane.branch == branch;
        if let Some(known) = self.lanes.iter().position(on) {
            return Some(known);
        }
        let elsewhere = self.lane_of(agent)?;
        let name = self.lanes[elsewhere].name.clone();
        let depth = self.lanes[elsewhere].depth;
        Some(self.add(self.lanes.len(), agent, name, branch, depth))
    }

    /// Begins the lane of a new agent, behind those of the agent above it.
    fn begin_lane(&mut self, agent: Id, name: Name, branch: Id, above: Option<usize>) {
        let depth = above.map_or(0, |above| self.lanes[above].depth + 1);
        let at = above.map_or(self.lanes.len(), |above| {
            let below = self.lanes[above + 1..].iter();
            above + 1 + below.take_while(|lane| lane.depth >= depth).count()
        });
        self.add(at, agent, name, branch, depth);
    }

    fn add(&mut self, at: usize, agent: Id, name: Name, branch: Id, depth: usize) -> usize {
        let lane = Lane {
            agent,
            name,
            branch,
            depth,
            spans: Vec::new(),
        };
        self.lanes.insert(at, lane);
        let lanes = self.open.values_mut().map(|open| &mut open.lane);
        let of_effects = self.effects.values_mut().map(|(lane, _)| lane);
        for lane in lanes.chain(of_effects).filter(|lane| **lane >= at) {
            *lane += 1;
        }
        at
    }
}

impl Lane {
    /// Returns the time that the agent spent with something, in milliseconds.
    pub fn sum(&self, what: What) -> u64 {
        let spans = self.spans.iter().filter(|span| span.what == what);
        spans.map(Span::millis).sum()
    }

    /// Returns its name, with the branch if that is not the first one.
    pub fn title(&self) -> String {
        if self.branch == Id::MAIN {
            self.name.to_string()
        } else {
            format!("{} on {}", self.name, self.branch)
        }
    }
}

impl Span {
    /// Returns its length in milliseconds.
    pub fn millis(&self) -> u64 {
        self.from.until(self.to)
    }
}

/// The places of moments in a picture, from 0 to 1. Times in which no model and no tool was at work are shortened.
#[derive(Clone, Debug, Serialize)]
pub struct Axis {
    /// The stretches, in order. Each begins where the one before it ends.
    pub stretches: Vec<Stretch>,
}

/// A stretch of time that is drawn to one scale.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stretch {
    /// Time of its beginning.
    #[serde(serialize_with = "shown::time")]
    pub from: Time,
    /// Time of its end.
    #[serde(serialize_with = "shown::time")]
    pub to: Time,
    /// Place of its beginning.
    pub left: f64,
    /// Place of its end.
    pub right: f64,
    /// True if it is shortened.
    pub shortened: bool,
}

/// A quiet time is drawn with at most this part of the length of all busy times together.
const QUIET: f64 = 0.08;

impl Axis {
    /// Returns the axis of a timeline.
    pub fn of(timeline: &Timeline) -> Self {
        let busy = busy(timeline);
        let at_work: u64 = busy.iter().map(|(from, to)| from.until(*to)).sum();
        // All time counts if nothing was at work.
        let most = if at_work == 0 {
            f64::INFINITY
        } else {
            at_work as f64 * QUIET
        };
        let mut stretches = Vec::new();
        let mut add = |from: Time, to: Time, quiet: bool| {
            let millis = from.until(to) as f64;
            if millis > 0.0 {
                let shown = if quiet { millis.min(most) } else { millis };
                stretches.push((from, to, shown, shown < millis));
            }
        };
        let mut at = timeline.begins;
        for (from, to) in busy {
            add(at, from, true);
            add(from, to, false);
            at = to;
        }
        add(at, timeline.ends, true);
        let whole: f64 = stretches.iter().map(|(_, _, shown, _)| shown).sum();
        let mut left = 0.0;
        let stretches = stretches.into_iter().map(|(from, to, shown, shortened)| {
            let right = left + shown / whole;
            let stretch = Stretch {
                from,
                to,
                left,
                right,
                shortened,
            };
            left = right;
            stretch
        });
        Self {
            stretches: stretches.collect(),
        }
    }

    /// Returns the place of a moment.
    pub fn place(&self, at: Time) -> f64 {
        let within = self.stretches.iter().find(|stretch| at <= stretch.to);
        let Some(stretch) = within else {
            return if self.stretches.is_empty() { 0.0 } else { 1.0 };
        };
        let part = stretch.from.until(at) as f64 / stretch.from.until(stretch.to) as f64;
        stretch.left + (stretch.right - stretch.left) * part
    }

    /// Returns the moment at a place.
    pub fn moment(&self, place: f64) -> Time {
        let within = self.stretches.iter().find(|stretch| place <= stretch.right);
        let Some(stretch) = within.or(self.stretches.last()) else {
            return Time(0);
        };
        let part = (place - stretch.left) / (stretch.right - stretch.left);
        let millis = stretch.from.until(stretch.to) as f64 * part.clamp(0.0, 1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of a length that was a whole number"
        )]
        stretch.from.plus(millis.round() as u64)
    }
}

/// Returns the times in which a model or a tool was at work, joined where they overlap.
fn busy(timeline: &Timeline) -> Vec<(Time, Time)> {
    let spans = timeline.lanes.iter().flat_map(|lane| &lane.spans);
    let work = spans.filter(|span| matches!(span.what, What::Model | What::Tool));
    let mut times: Vec<(Time, Time)> = work.map(|span| (span.from, span.to)).collect();
    times.sort_unstable();
    let mut joined: Vec<(Time, Time)> = Vec::new();
    for (from, to) in times {
        match joined.last_mut() {
            Some((_, end)) if from <= *end => *end = (*end).max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}

/// Returns the keys of the spans of an effect at work.
fn keys(effect: Id, call: Option<Id>) -> impl Iterator<Item = (Id, What)> {
    let tool = call.map(|call| (call, What::Tool));
    [(effect, What::Model)].into_iter().chain(tool)
}
