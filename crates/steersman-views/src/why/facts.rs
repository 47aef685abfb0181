//! Recorded facts about an act: values that a router read, preconditions of a tool, approvals, attempts.

use super::past::{Past, Place};
use super::{CAME_TO, Fact, TEXT, how, quoted};
use crate::story::modes;
use crate::words::{count, digits, leaves, line as one_line, people, question};
use serde_json::{Map, Value as Json};
use steersman_machine::network::{Does, ExitCause, RouteBy, StateNode};
use steersman_machine::stored::commit::{Hold, LedgerEntry, Probing, Release, Stepped, Why};
use steersman_machine::stored::ids::{Bodies, Body, Id, Line, Name};
use steersman_machine::stored::interaction::{Call, Choice, Interaction, Route, Target};
use steersman_machine::stored::words::why_word;

impl Past<'_> {
    // ---- routers ---------------------------------------------------------------------------------------------

    /// Returns the facts that led a router to its choice.
    pub(super) fn of_route(&self, place: Place, agent: Id, route: &Route) -> Vec<Fact> {
        let mut facts = Vec::new();
        if let Some(why) = route.refused {
            facts.push(Fact::new("refused", self.rejected(why)));
        }
        let text = route.read.map(|body| self.texts().text(body));
        let mut read: Map<String, Json> = Map::new();
        match text.as_deref().map(serde_json::from_str) {
            Some(Ok(values)) => read = values,
            Some(Err(_)) => facts.push(Fact::new("read", text.as_deref().unwrap_or_default())),
            None => {}
        }
        if let Choice::Speak { .. } = &route.chosen {
            facts.extend(self.state_of(place));
        }
        self.went_by(place, agent, route, &mut read, &mut facts);
        for (path, value) in leaves(&read) {
            let of = match &*path {
                "messages" => self.in_state(place),
                _ => String::new(),
            };
            facts.push(Fact::new(
                "read",
                format!("{path}{of} = {}", one_line(&value.to_string(), TEXT)),
            ));
        }
        for write in &route.writes {
            let word = if write.value.is_some() {
                "set"
            } else {
                "unset"
            };
            facts.push(Fact::new(word, format!("state.{}", write.name)));
        }
        if let Some(effect) = route.effect {
            facts.extend(self.of_model(effect));
        }
        facts.extend(self.tries(place));
        facts
    }

    /// Adds the facts that were recorded with the values: the rule, the exit, the model's reason, the member that failed.
    fn went_by(
        &self,
        place: Place,
        agent: Id,
        route: &Route,
        read: &mut Map<String, Json>,
        facts: &mut Vec<Fact>,
    ) {
        let number = |value: Json| value.as_u64().and_then(|n| usize::try_from(n).ok());
        let network = self.network(place.line);
        let by = self
            .def(agent)
            .and_then(|def| match &network?.agents.get(def)?.does {
                Does::Route(route) => Some(&route.by),
                Does::Model(_) | Does::Run { .. } => None,
            });
        if let Some(rule) = read.remove("rule").and_then(number) {
            let when = match by {
                Some(RouteBy::Rules(rules)) => rule.checked_sub(1).and_then(|k| rules.get(k)),
                _ => None,
            };
            let when = when.map_or_else(String::new, |rule| match &*rule.when.source {
                "true" => ", which is always true".to_owned(),
                when => format!(": {}", one_line(when, TEXT)),
            });
            facts.push(Fact::new("rule", format!("{rule}{when}")));
        }
        let statement = read.remove("statement");
        if let Some(exit) = read.remove("exit").and_then(number) {
            facts.push(Fact::new(
                "exit",
                self.exit(place, by, route, exit, statement.as_ref()),
            ));
        }
        for (key, word) in [
            ("reason", "reason"),
            ("turn", "order"),
            ("failed", "failed"),
            ("expired", "no answer"),
            ("why", "last error"),
            ("refused", "refused"),
        ] {
            if let Some(value) = read.remove(key).filter(|value| !value.is_null()) {
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                let text = match (key, &*text) {
                    ("turn", "only") => "the only speaker".to_owned(),
                    ("turn", order) => order.replace('_', " "),
                    _ => text,
                };
                facts.push(Fact::new(word, one_line(&text, TEXT)));
            }
        }
        if let Some(times) = read.remove("unusable") {
            facts.push(Fact::new(
                "fallback",
                format!("no usable answer, {times} times"),
            ));
        }
        if let Some(Json::Array(offered)) = read.remove("offered") {
            let names: Vec<&str> = offered.iter().filter_map(Json::as_str).collect();
            facts.push(Fact::new("offered", names.join(", ")));
        }
    }

    /// Describes the exit that was taken. A judge numbers only the exits that it decides.
    fn exit(
        &self,
        place: Place,
        by: Option<&RouteBy>,
        route: &Route,
        exit: usize,
        statement: Option<&Json>,
    ) -> String {
        if exit == 0 {
            return "none: the judge found no statement true".to_owned();
        }
        if route.effect.is_some() {
            return match statement.and_then(Json::as_str) {
                Some(said) => format!("the judge found it true: {}", one_line(said, TEXT)),
                None => format!("statement {exit}, says the judge"),
            };
        }
        let node = self.left(place, by);
        let cause = node.and_then(|node| Some(&node.exits.get(exit.checked_sub(1)?)?.cause));
        match cause {
            Some(ExitCause::When(when)) => format!("{exit}: {}", one_line(&when.source, TEXT)),
            Some(ExitCause::AfterMessages(most)) => {
                format!("{exit}: after {}", count(u64::from(*most), "message"))
            }
            Some(ExitCause::Judge(_)) | None => exit.to_string(),
        }
    }

    /// Returns the state in which a speaker speaks. `None` if it was entered just before, because that decision is the next
    /// step.
    fn state_of(&self, place: Place) -> Option<Fact> {
        let mut spoken = false;
        let mut at = self.before(place);
        while let Some(before) = at {
            match &self.push(before)?.what {
                Interaction::Route(Route {
                    chosen: Choice::Enter { state, .. },
                    refused: None,
                    ..
                }) => {
                    let line = before.line;
                    return spoken.then(|| Fact::new("state", format!("{state}, entered @{line}")));
                }
                Interaction::Result(_) => spoken = true,
                _ => {}
            }
            at = self.before(before);
        }
        None
    }

    /// Names the state whose messages a decision counted: the one that was entered before it.
    fn in_state(&self, place: Place) -> String {
        let state = self.entered(place);
        state.map_or_else(String::new, |state| format!(" in state {state}"))
    }

    /// Returns the state that a decision leaves: the one that was entered before it.
    fn left<'n>(&self, place: Place, by: Option<&'n RouteBy>) -> Option<&'n StateNode> {
        let Some(RouteBy::States(graph)) = by else {
            return None;
        };
        graph.states.get(self.entered(place)?)
    }

    /// Returns the state that was entered before a decision.
    fn entered(&self, place: Place) -> Option<&Name> {
        let mut at = self.before(place);
        while let Some(before) = at {
            if let Interaction::Route(Route {
                chosen: Choice::Enter { state, .. },
                ..
            }) = &self.push(before)?.what
            {
                return Some(state);
            }
            at = self.before(before);
        }
        None
    }

    /// Returns the unusable answers immediately before a decision.
    fn tries(&self, place: Place) -> Vec<Fact> {
        let mut tries = Vec::new();
        let mut at = self.before(place);
        while let Some(before) = at {
            let Some(Interaction::Route(Route {
                refused: Some(why), ..
            })) = self.push(before).map(|p| &p.what)
            else {
                break;
            };
            let told = self.rejected(*why);
            tries.push(Fact::new("try", format!("answer @{}; {told}", before.line)));
            at = self.before(before);
        }
        tries.reverse();
        tries
    }

    /// Describes what a model was told about an answer that could not be used.
    fn rejected(&self, why: Body) -> String {
        format!("the model was told: {}", quoted(&self.texts().text(why)))
    }

    // ---- models ----------------------------------------------------------------------------------------------

    /// Returns the model that answered, the line of the request, and the cost.
    pub(super) fn of_model(&self, effect: Id) -> Vec<Fact> {
        let mut facts = Vec::new();
        let asked = self.wished(effect).map(|wish| wish.line);
        let answered = self
            .answered(effect)
            .and_then(|place| self.line(place.line));
        let usage = answered.and_then(|line| {
            let commit = line.commit.as_ref()?;
            commit
                .usage
                .iter()
                .find(|usage| usage.effect == Some(effect))
        });
        let asked = asked.map_or_else(String::new, |line| format!("asked @{line}"));
        let text = match usage {
            Some(usage) => {
                let model = usage.model.as_deref().unwrap_or("unknown");
                format!("{model}, {asked}, {} tokens", digits(usage.tokens()))
            }
            None => asked,
        };
        if !text.is_empty() {
            facts.push(Fact::new("model", text));
        }
        facts.extend(self.mode_at(effect));
        facts.extend(self.world(&[effect]));
        facts
    }

    /// Returns the mode in which a model was asked for an agent, since when, and why.
    fn mode_at(&self, effect: Id) -> Option<Fact> {
        let wish = self.wished(effect)?;
        let mut at = Some(wish.line);
        while let Some(line) = at.and_then(|at| self.line(at)) {
            if let Some(commit) = &line.commit {
                let mut turns = commit.modes().filter(|(agent, ..)| *agent == wish.agent);
                if let Some((_, mode, why)) = turns.by_ref().last() {
                    let named = |call: Id| Some(self.call_at(self.call(call)?)?.name.clone());
                    let def = self.def(wish.agent);
                    let network = self.network(line.n);
                    let modes = network.and_then(|network| modes::modes(network, def?));
                    let held = |turned: &_| modes::expression(modes?, mode, turned);
                    let why = modes::why(why, named, held);
                    return Some(Fact::new(
                        "mode",
                        format!("{mode}, since @{}, {why}", line.n),
                    ));
                }
                let mut made = commit.made.iter().filter(|made| made.agent == wish.agent);
                if let Some(made) = made.next() {
                    let mode = made.mode.as_ref()?;
                    return Some(Fact::new("mode", format!("{mode}, from the start")));
                }
            }
            at = Some(line.prev);
        }
        None
    }

    // ---- calls -----------------------------------------------------------------------------------------------

    /// Returns the preconditions of a call, who decided on it, its attempts and its result.
    pub(super) fn of_call(&self, place: Place, agent: Id, call: &Call) -> Vec<Fact> {
        let mut facts = Vec::new();
        if let Some(first) = call.chain() {
            let name = self.call(first).and_then(|place| self.push(place));
            let name = match name.map(|push| &push.what) {
                Some(Interaction::Call(call)) => format!(" {}", call.name),
                _ => String::new(),
            };
            facts.push(Fact::new("follows", format!("call {first}{name}")));
        }
        let effects = self.effects_of(call);
        let result = self.result_of(call);
        let begun = !effects.is_empty();
        if let Target::Tool(_) = call.target {
            facts.extend(self.of_guards(place, agent, (call, begun)));
        }
        facts.extend(self.world(effects));
        match result {
            Some((line, result)) => {
                let how = how(result);
                let said = self.said_of(result);
                let said =
                    said.map_or_else(String::new, |text| format!(": {}", one_line(&text, TEXT)));
                let by = result
                    .by
                    .as_ref()
                    .map_or_else(String::new, |by| format!(", by {by}"));
                facts.push(Fact::new(CAME_TO, format!("{how}, @{line}{by}{said}")));
            }
            None => facts.push(Fact::new(CAME_TO, self.not_yet(call))),
        }
        facts
    }

    /// Says why a call has no result yet. The call of a member that ended a turn stays open, although nothing waits for it.
    fn not_yet(&self, call: &Call) -> String {
        if let Target::Agent(member) = call.target
            && let Some(turn) = self.rests_in(member, call.id)
        {
            let member = self.agent(member);
            return format!("none yet: {member} has the floor and answered @{turn}");
        }
        "none yet: the call is open".to_owned()
    }

    /// Returns the newest decision that ended a question of one of these kinds, in words: its subject, what, by whom, at which
    /// line. `of`: the effect or the tool that it is about; `None` means any.
    pub fn decision(&self, of: Option<&str>, kinds: &[Why]) -> Option<String> {
        let tool = |effect: Id| {
            let call = self.wished(effect)?.what.call()?;
            Some(&*self.call_at(self.call(call)?)?.name)
        };
        let named =
            |effect: Id| of.is_none_or(|of| of == effect.to_string() || tool(effect) == Some(of));
        let (line, effect, why, how, by) = self.newest_entry(|effect, entry| match entry {
            LedgerEntry::Released { why, how, by, .. }
                if kinds.contains(why) && *how != Release::Cancelled && named(effect) =>
            {
                Some((*why, *how, by))
            }
            _ => None,
        })?;
        let name = tool(effect).map_or_else(String::new, |tool| format!(" of `{tool}`"));
        Some(format!(
            "the {}{name} ({effect}) was {} {by}, @{line}",
            why_word(why),
            ended(why, how)
        ))
    }

    /// Returns the ledger's facts on effects: holds, who ended them and when, attempts.
    fn world(&self, effects: &[Id]) -> Vec<Fact> {
        let mut facts = Vec::new();
        for effect in effects {
            for (line, entry) in self.ledger(*effect) {
                facts.extend(self.entry(*line, entry));
            }
        }
        facts
    }

    fn entry(&self, line: Line, entry: &LedgerEntry) -> Option<Fact> {
        let when = || self.clock(line);
        Some(match entry {
            LedgerEntry::Hold(hold) => Fact::new("held", self.held(line, hold)),
            LedgerEntry::Released {
                why, how, by, body, ..
            } => {
                let asks_anew = (*why, *how) == (Why::Approval, Release::Cancelled);
                let said = body
                    .filter(|_| *how == Release::Refused || asks_anew)
                    .map_or_else(String::new, |body| {
                        format!(": {}", one_line(&self.texts().text(body), TEXT))
                    });
                Fact::new(
                    why_word(*why),
                    if asks_anew && !said.is_empty() {
                        format!("asked again, @{line}, {}{said}", when())
                    } else {
                        format!("{} {by}, @{line}, {}{said}", ended(*why, *how), when())
                    },
                )
            }
            LedgerEntry::Started { attempt, .. } => {
                Fact::new("attempt", format!("{attempt} began, @{line}, {}", when()))
            }
            LedgerEntry::Done { attempt, .. } => {
                Fact::new("attempt", format!("{attempt} was done, @{line}"))
            }
            LedgerEntry::NotPerformed { attempt, .. } => {
                Fact::new("attempt", format!("{attempt} did not happen, @{line}"))
            }
            LedgerEntry::Unknown { attempt, .. } => {
                Fact::new("attempt", format!("{attempt} may have happened, @{line}"))
            }
            LedgerEntry::Again { at, .. } => {
                Fact::new("attempt", format!("again at {}, @{line}", time(at.0)))
            }
            LedgerEntry::Late { .. } => {
                Fact::new("attempt", format!("an outcome came too late, @{line}"))
            }
            LedgerEntry::Probe { what, .. } => Fact::new("probe", self.probed(line, what)),
            LedgerEntry::Step { name, what, .. } => {
                Fact::new("step", self.stepped(line, name, *what))
            }
            LedgerEntry::WouldAsk(_) => {
                Fact::new("approval", format!("would be asked for, dry, @{line}"))
            }
            LedgerEntry::Listed(_) => {
                Fact::new("left", format!("behind by a rewind, and done, @{line}"))
            }
            _ => return None,
        })
    }

    fn probed(&self, line: Line, what: &Probing) -> String {
        let text = |body| one_line(&self.texts().text(body), TEXT);
        match what {
            Probing::Started { tool, attempt } => {
                format!("{tool} asked, attempt {attempt}, @{line}")
            }
            Probing::Said { happened, said, .. } => {
                let found = match happened {
                    Some(true) => "it happened",
                    Some(false) => "no trace of it",
                    None => "undecided",
                };
                format!("{found}, @{line}: {}", text(*said))
            }
            Probing::Failed { why, again, .. } => {
                let again = again.map_or_else(
                    || "has decided nothing".to_owned(),
                    |at| format!("again at {}", time(at.0)),
                );
                format!("failed, {again}, @{line}: {}", text(*why))
            }
        }
    }

    fn stepped(&self, line: Line, name: &str, what: Stepped) -> String {
        let text = |body| one_line(&self.texts().text(body), TEXT);
        match what {
            Stepped::Began => format!("`{name}` began, @{line}"),
            Stepped::Done(body) => format!("`{name}` was done, @{line}: {}", text(body)),
            Stepped::Failed(body) => format!("`{name}` failed, @{line}: {}", text(body)),
        }
    }

    fn held(&self, line: Line, hold: &Hold) -> String {
        let ask = hold.ask.map_or_else(String::new, |body| {
            format!(": {}", one_line(&question(&self.texts().text(body)), TEXT))
        });
        let about = hold
            .about
            .as_ref()
            .map_or_else(String::new, |about| format!(" ({about})"));
        let by = match &hold.by[..] {
            [] => String::new(),
            _ => format!(" by {}", people(&hold.by)),
        };
        format!("for {}{about}{by}, @{line}{ask}", why_word(hold.why))
    }

    fn clock(&self, line: Line) -> String {
        time(self.time(line))
    }
}

fn time(millis: i64) -> String {
    jiff::Timestamp::from_millisecond(millis).map_or_else(
        |_| "?".to_owned(),
        |t| t.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
    )
}

/// Returns the end of a question, as it goes on behind `was` and before the name of who ended it.
fn ended(why: Why, how: Release) -> &'static str {
    match (why, how) {
        (Why::Doubt, Release::Go) => "settled as not done by",
        (Why::Doubt, Release::Outcome) => "settled as done by",
        (Why::Doubt, Release::GivenUp) => "given up as unknown by",
        (Why::Outage, Release::Go) => "over, told by the",
        (Why::Wait, Release::Go | Release::Outcome) => "over, ended by the",
        (Why::Elicited, Release::Outcome) | (_, Release::Go) => "given by",
        (_, Release::Edited) => "given with other arguments by",
        (_, Release::Refused) => "refused by",
        (_, Release::Outcome | Release::GivenUp) => "settled by",
        (_, Release::Cancelled) => "cancelled by",
        (_, Release::Expired) => "ended for lack of time by",
    }
}
