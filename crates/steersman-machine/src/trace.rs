//! Prints lines of a log, and stacks as letters: one format for case files, for `show` and for the documentation.
//!
//! `U` message, `UR` message after the agent ended its turn or task, `A` model's answer; calls `TC` tool, `AC` agent, `UI`
//! person, `W` wait or branches, and their results `TR`, `AR`, `UR` (as for the message), `WR`; `Ro` route, `S` summary, `F`
//! finished. The format is stable and shows all ids. Printing needs only a line and its texts. References of a line to earlier
//! lines (the target of a call that closes, the name of an agent) are resolved if those lines were printed or read before.
//! Otherwise a result is `R`, and an agent has only its id.

mod routes;
mod searching;
mod words;

use crate::stored::commit::{
    Admission, Admitted, AdoptedCell, Adoption, AgentFact, CallChanged, CellFact, Change, Commit,
    Hold, Kind, LedgerEntry, LogLine, Opening, Push, Want, Wished,
};
use crate::stored::ids::{Bodies, Body, Id, Line, Name};
use crate::stored::interaction::{
    Call, CallResult, Cause, Covers, Earlier, End, Interaction, Reduce, Target, Write,
};
use crate::stored::words::{cause_word, end_word, how_word, release_word, why_word};
pub use routes::chosen;
use routes::route_of;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use words::{cut, of_limits, usage_of};

/// Maximum length of a text, in characters. A longer one is cut, with `..` at the end.
const SHOWN: usize = 60;

/// Relation of a line to the disk: whether its consequences may leave the process before it is on disk.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Sync {
    /// The line must be on disk first.
    Before,
    /// The consequences may leave earlier.
    Ahead,
}

/// Prints the lines of one session, in order, and remembers the names that later lines refer to.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    agents: BTreeMap<Id, (Name, Kind)>,
    calls: BTreeMap<Id, (Letter, Name)>,
    branches: BTreeMap<Id, Name>,
    /// Agents, each with a line after which it rested: its stack ended with a `Finished` other than a draft. Its next message is an
    /// `UR`.
    rested: BTreeSet<(Id, Line)>,
}

/// Target of a call, for its letters.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Letter {
    Tool,
    Agent,
    Person,
    Wait,
}

impl Letter {
    fn of(target: &Target) -> Self {
        match target {
            Target::Tool(_) | Target::Unknown => Self::Tool,
            Target::Agent(_) => Self::Agent,
            Target::Person(_) => Self::Person,
            Target::Wait | Target::Branches(_) => Self::Wait,
        }
    }
    fn call(self) -> &'static str {
        match self {
            Self::Tool => "TC",
            Self::Agent => "AC",
            Self::Person => "UI",
            Self::Wait => "W",
        }
    }
    fn result(self) -> &'static str {
        match self {
            Self::Tool => "TR",
            Self::Agent => "AR",
            Self::Person => "UR",
            Self::Wait => "WR",
        }
    }
}

/// Returns the letters of a stack, oldest first: `U A AC AR A F`.
pub fn letters<'a>(stack: impl IntoIterator<Item = &'a Interaction>) -> String {
    let mut calls = BTreeMap::new();
    let mut rests = false;
    let mut out = Vec::new();
    for interaction in stack {
        out.push(letter(interaction, rests, &calls));
        if let Interaction::Call(call) = interaction {
            calls.insert(call.id, (Letter::of(&call.target), call.name.clone()));
        }
        rests = rests_above(interaction, rests);
    }
    out.join(" ")
}

/// Prints a stack with the content of its interactions, one per row: its number from the bottom, then the interaction as
/// [`Trace::line`] prints it.
pub fn stack<'a>(stack: impl IntoIterator<Item = &'a Interaction>, bodies: &dyn Bodies) -> String {
    let mut trace = Trace::default();
    let mut rests = false;
    let mut out = String::new();
    for (k, interaction) in stack.into_iter().enumerate() {
        let _ = writeln!(
            out,
            "{:>3}  {}",
            k + 1,
            trace.interaction(interaction, rests, bodies)
        );
        if let Interaction::Call(call) = interaction {
            trace.note_call(call);
        }
        rests = rests_above(interaction, rests);
    }
    out
}

fn letter(
    interaction: &Interaction,
    rests: bool,
    calls: &BTreeMap<Id, (Letter, Name)>,
) -> &'static str {
    match interaction {
        Interaction::UserMessage { .. } if rests => "UR",
        Interaction::UserMessage { .. } => "U",
        Interaction::AssistantMessage { .. } => "A",
        Interaction::Call(call) => Letter::of(&call.target).call(),
        Interaction::Result(result) => calls.get(&result.call).map_or("R", |(l, _)| l.result()),
        Interaction::Route(_) => "Ro",
        Interaction::Summary(_) => "S",
        Interaction::Earlier(Earlier::User(_)) => "EU",
        Interaction::Earlier(Earlier::Assistant { .. }) => "EA",
        Interaction::Finished { .. } => "F",
    }
}

/// Returns true if a message right after this interaction is an `UR`. `before` is the answer for the interaction before.
fn rests_above(interaction: &Interaction, before: bool) -> bool {
    match interaction {
        Interaction::Finished { end, .. } => *end != End::Draft,
        Interaction::Summary(_) | Interaction::Earlier(_) => before,
        Interaction::UserMessage { .. }
        | Interaction::AssistantMessage { .. }
        | Interaction::Call(_)
        | Interaction::Result(_)
        | Interaction::Route(_) => false,
    }
}

impl Trace {
    /// Reads a line without printing it.
    pub fn learn(&mut self, line: &LogLine) {
        let Some(commit) = &line.commit else { return };
        self.learn_opening(line, commit);
        for push in &commit.pushes {
            self.learn_push(line.n, push);
        }
        self.learn_wishes(commit);
    }

    /// Stores the name of its call for each wished effect.
    fn learn_wishes(&mut self, commit: &Commit) {
        for wished in &commit.wished {
            let call = wished.what.call().and_then(|call| self.calls.get(&call));
            if let Some(known) = call.cloned() {
                self.calls.insert(wished.id, known);
            }
        }
    }

    fn learn_opening(&mut self, line: &LogLine, commit: &Commit) {
        if let Some(label) = commit.opening.as_ref().and_then(|o| o.label.clone()) {
            self.branches.insert(line.branch, label);
        }
        for made in &commit.made {
            self.agents
                .insert(made.agent, (made.def.clone(), made.kind));
        }
    }

    fn learn_push(&mut self, line: Line, push: &Push) {
        if let Interaction::Call(call) = &push.what {
            self.note_call(call);
        }
        if rests_above(&push.what, self.rested.contains(&(push.agent, push.prev))) {
            self.rested.insert((push.agent, line));
        } else {
            self.rested.remove(&(push.agent, line));
        }
    }

    fn note_call(&mut self, call: &Call) {
        self.calls
            .insert(call.id, (Letter::of(&call.target), call.name.clone()));
    }

    /// Prints a line, and remembers its names. The first row has the number, the branch and the admitted offers. With `sync` it
    /// ends with `!` or `.`. The rows below show the parts of the commit and the entries of the ledger. The digest of a binding
    /// is left out: it means nothing to a reader and changes with every word of the definition.
    pub fn line(&mut self, line: &LogLine, bodies: &dyn Bodies, sync: Option<Sync>) -> String {
        let mut out = String::new();
        if let Some(commit) = &line.commit {
            self.learn_opening(line, commit);
        }
        let _ = write!(out, "{} {}", line.n, self.branch(line.branch));
        if let Some(commit) = &line.commit {
            for admission in &commit.admitted {
                // A call that had begun is wished again with other arguments, unless it is asked for again.
                let again = |wished: &Wished| {
                    let begun = wished.what.call().is_some_and(|call| call.line() < line.n);
                    begun && wished.args.is_none()
                };
                let anew = admission.kind == Admitted::Edited && admission.id.is_some();
                let anew = anew && commit.wished.iter().any(again);
                let word = if anew {
                    "anew"
                } else {
                    word_of(admission.kind)
                };
                let _ = write!(out, " | {}", self.admission(admission, word, bodies));
            }
        }
        match sync {
            Some(Sync::Before) => out.push_str(" !"),
            Some(Sync::Ahead) => out.push_str(" ."),
            None => {}
        }
        out.push('\n');
        if let Some(commit) = &line.commit {
            self.commit(&mut out, line, commit, bodies);
            self.learn_wishes(commit);
        }
        for entry in &line.ledger {
            let _ = writeln!(out, "  ledger  {}", self.entry(entry, bodies));
        }
        out
    }

    fn commit(&mut self, out: &mut String, line: &LogLine, commit: &Commit, bodies: &dyn Bodies) {
        if let Some(opening) = &commit.opening {
            let _ = writeln!(out, "  opens   {}", self.opening(commit.parent, opening));
        }
        if let Some(adoption) = &commit.adoption {
            let _ = writeln!(out, "  adopts  {}", self.adoption(adoption, bodies));
        }
        if let Some(binding) = &commit.binding {
            let _ = writeln!(
                out,
                "  binding {} entry {} machine {}",
                binding.network, binding.entry, binding.machine
            );
        }
        for edit in &commit.edits {
            let _ = writeln!(out, "  edit    {}", write_of(edit, bodies));
        }
        for usage in commit.usage.iter().filter(|u| u.tokens() > 0) {
            let _ = writeln!(out, "  used    {}", usage_of(usage));
        }
        for made in &commit.made {
            let _ = write!(out, "  made    {} {}", made.agent, made.def);
            if let Some(parent) = made.parent {
                let _ = write!(out, " of {}", self.agent(parent));
            }
            if let Some(named) = &made.named {
                let _ = write!(out, " named {named}");
            }
            if let Some(mode) = &made.mode {
                let _ = write!(out, " mode {mode}");
            }
            for write in &made.state {
                let _ = write!(out, " {}", write_of(write, bodies));
            }
            out.push('\n');
        }
        self.pushes(out, line, commit, bodies);
        for changed in &commit.calls {
            let (row, text) = match &changed.what {
                CallChanged::Began(branches) => {
                    let branches = branches.iter().map(|branch| format!(" {branch}"));
                    ("branch", format!("begins{}", branches.collect::<String>()))
                }
                CallChanged::Ended(ends) => ("branch", format!("ended {}", plain(bodies, *ends))),
                CallChanged::Chose(branch, at) => ("branch", format!("chose {branch} at {at}")),
                CallChanged::Met(part, Some(gave)) => (
                    "wait",
                    format!("part {part} is over {}", plain(bodies, *gave)),
                ),
                CallChanged::Met(part, None) => ("wait", format!("part {part} cannot be met")),
                CallChanged::Edited { by, .. } => ("edited", format!("approved by {by}")),
                CallChanged::Awaits(part, key) => (
                    "wait",
                    format!("part {part} is for {}", plain(bodies, *key)),
                ),
            };
            let agent = self.agent(changed.agent);
            let _ = writeln!(out, "  {row:<7} {} of {agent} {text}", changed.call);
        }
        for wished in &commit.wished {
            let _ = writeln!(out, "  wishes  {}", self.wished(wished, bodies));
        }
        self.changes(out, commit, bodies);
    }

    fn changes(&self, out: &mut String, commit: &Commit, bodies: &dyn Bodies) {
        for change in &commit.changes {
            if let Change::Asked(agent, call, mode) = change {
                let _ = writeln!(out, "  asks    {} {mode}, by {call}", self.agent(*agent));
            }
        }
        for (agent, mode, why) in commit.modes() {
            let _ = writeln!(out, "  mode    {} {mode}: {why}", self.agent(agent));
        }
        for (agent, state) in commit.states() {
            let _ = writeln!(out, "  state   {} {state}", self.agent(agent));
        }
        for mark in commit.watermarks() {
            let _ = writeln!(
                out,
                "  mark    {} {} {}",
                self.agent(mark.agent),
                mark.policy,
                mark.exchanges
            );
        }
        for hooked in commit.hooked() {
            let _ = writeln!(
                out,
                "  hook    {} {} {}",
                self.agent(hooked.agent),
                words::hooked(hooked),
                plain(bodies, hooked.change)
            );
        }
        for (label, body) in commit.labels() {
            let value = body.map_or_else(|| "unset".to_owned(), |b| quoted(bodies, b));
            let _ = writeln!(out, "  label   {label} {value}");
        }
        for new in commit.came() {
            let _ = writeln!(
                out,
                "  came    {} {} {} bytes",
                new.name, new.media, new.len
            );
        }
    }

    /// Prints pushes in their order. Consecutive pushes of one agent share a row.
    fn pushes(&mut self, out: &mut String, line: &LogLine, commit: &Commit, bodies: &dyn Bodies) {
        let mut at = None;
        for push in &commit.pushes {
            if at == Some(push.agent) {
                out.push(' ');
            } else {
                if at.is_some() {
                    out.push('\n');
                }
                let _ = write!(out, "  {}: ", self.agent(push.agent));
            }
            at = Some(push.agent);
            let rests = self.rested.contains(&(push.agent, push.prev));
            out.push_str(&self.interaction(&push.what, rests, bodies));
            self.learn_push(line.n, push);
        }
        if at.is_some() {
            out.push('\n');
        }
    }

    /// Returns the id of an agent with its name, once known: `2.1 child`.
    fn agent(&self, id: Id) -> String {
        match self.agents.get(&id) {
            Some((name, _)) => format!("{id} {name}"),
            None => id.to_string(),
        }
    }

    fn branch(&self, id: Id) -> String {
        match self.branches.get(&id) {
            Some(label) => format!("{id} ({label})"),
            None => id.to_string(),
        }
    }

    fn admission(&self, admission: &Admission, word: &str, bodies: &dyn Bodies) -> String {
        let mut out = word.to_owned();
        if let Some(id) = admission.id {
            let name = self
                .branches
                .get(&id)
                .or_else(|| self.calls.get(&id).map(|(_, n)| n));
            let _ = write!(out, " {id}");
            if let Some(name) = name {
                let _ = write!(out, " {name}");
            }
        }
        if let Some(message) = &admission.message {
            let _ = write!(out, " {message}");
        }
        if let Some(by) = &admission.by {
            let _ = write!(out, " {by}");
        }
        if let Some(body) = admission.body {
            let _ = write!(out, " {}", quoted(bodies, body));
        }
        out
    }

    fn opening(&self, parent: Line, opening: &Opening) -> String {
        let mut out = format!("from {parent}");
        match opening.scope {
            Some(scope) => {
                let _ = write!(out, ", scope {}", self.agent(scope));
            }
            None => out.push_str(", scope all"),
        }
        if opening.dry {
            out.push_str(", dry");
        }
        if let Some((index, of)) = opening.of {
            let _ = write!(out, ", {index} of {of}");
        }
        out
    }

    fn adoption(&self, adoption: &Adoption, bodies: &dyn Bodies) -> String {
        let mut out = format!("{} at {}:", self.branch(adoption.branch), adoption.at);
        for agent in &adoption.agents {
            let stack = agent.facts.iter().find_map(|fact| match fact {
                AgentFact::Stack(last, height) => Some((*last, *height)),
                _ => None,
            });
            let (last, height) = stack.unwrap_or_default();
            let _ = write!(out, " {} to {height} @{last}", self.agent(agent.id));
            for fact in &agent.facts {
                if let AgentFact::Mode(mode) = fact {
                    let _ = write!(out, " mode {mode}");
                }
            }
        }
        for call in &adoption.calls {
            let _ = write!(out, " {} open", self.call(&call.call, bodies));
        }
        for AdoptedCell { scope, name, facts } in &adoption.cells {
            let set = facts.iter().find_map(|fact| match fact {
                CellFact::Set(body, _) => Some(*body),
                CellFact::Expires(_) => None,
            });
            let _ = match set {
                Some(body) => write!(out, " {scope}.{name}={}", plain(bodies, body)),
                None => write!(out, " {scope}.{name} unset"),
            };
        }
        out
    }

    fn wished(&self, wished: &Wished, bodies: &dyn Bodies) -> String {
        let mut out = wished.id.to_string();
        let _ = if let Want::Call(call) = wished.what {
            let name = self.calls.get(&call).map_or("call", |(_, name)| name);
            if call == wished.id {
                write!(out, " {name}")
            } else {
                write!(out, " {name} for {call}")
            }
        } else {
            let what = match self.agents.get(&wished.agent) {
                Some((_, Kind::Model)) => "model",
                Some((_, Kind::Routed)) => "route",
                None => "step",
            };
            write!(out, " {what} of {}", self.agent(wished.agent))
        };
        if let Some(args) = wished.args {
            let _ = write!(out, " {}", plain(bodies, args));
        }
        if let Some(due) = wished.due {
            let _ = write!(out, " due {}", due.0);
        }
        out
    }

    fn interaction(&self, what: &Interaction, rests: bool, bodies: &dyn Bodies) -> String {
        let letter = letter(what, rests, &self.calls);
        match what {
            Interaction::UserMessage { from, body } => {
                format!("{letter}({}{})", words::origin(from), quoted(bodies, *body))
            }
            Interaction::AssistantMessage {
                effect,
                text,
                opaque,
                partial,
            } => {
                let mut out = format!("{letter}({effect}");
                if let Some(text) = text {
                    let _ = write!(out, " {}", quoted(bodies, *text));
                }
                if opaque.is_some() {
                    out.push_str(" +opaque");
                }
                if *partial {
                    out.push_str(" partial");
                }
                out + ")"
            }
            Interaction::Call(call) => self.call(call, bodies),
            Interaction::Result(result) => format!("{letter}({})", result_of(result, bodies)),
            Interaction::Route(route) => format!("{letter}({})", route_of(route, bodies)),
            Interaction::Summary(summary) => {
                let covers = match summary.covers {
                    Covers::Exchanges(from, to) => format!("exchanges {from}..{to}"),
                    Covers::Scope(after, to) => format!("lines {after}..{to}"),
                };
                let body = quoted(bodies, summary.body);
                format!(
                    "{letter}({} {} of {covers} {body})",
                    summary.effect, summary.policy
                )
            }
            Interaction::Earlier(Earlier::User(body)) => {
                format!("{letter}({})", quoted(bodies, *body))
            }
            Interaction::Earlier(Earlier::Assistant { text, calls }) => {
                let text = text.iter().map(|text| quoted(bodies, *text));
                let calls = calls.iter().map(|call| {
                    let (args, result) = (plain(bodies, call.args), quoted(bodies, call.result));
                    format!("{} {args} {result}", call.name)
                });
                let all: Vec<String> = text.chain(calls).collect();
                format!("{letter}({})", all.join(" "))
            }
            Interaction::Finished {
                end,
                cause,
                body,
                code,
                writes,
            } => {
                let mut out = format!("{letter}{{{}", end_word(*end));
                if *cause != Cause::Answer {
                    let _ = write!(out, " {}", cause_word(*cause));
                }
                if let Some(code) = code.as_ref().filter(|c| ***c != *cause_word(*cause)) {
                    let _ = write!(out, " {code}");
                }
                if let Some(body) = body {
                    let _ = write!(out, " {}", quoted(bodies, *body));
                }
                for write in writes {
                    let _ = write!(out, " {}", write_of(write, bodies));
                }
                out + "}"
            }
        }
    }

    fn call(&self, call: &Call, bodies: &dyn Bodies) -> String {
        let mut out = format!(
            "{}({} {}",
            Letter::of(&call.target).call(),
            call.id,
            call.name
        );
        let called = call.called();
        if called != call.name {
            let _ = write!(out, " as {called}");
        }
        let _ = match &call.target {
            Target::Tool(class) => write!(out, " {}", class.word()),
            Target::Agent(id) => write!(out, " -> {id}"),
            Target::Person(name) => write!(out, " -> {name}"),
            Target::Wait => Ok(()),
            Target::Branches(ids) => ids
                .iter()
                .try_for_each(|id| write!(out, " {}", self.branch(*id))),
            Target::Unknown => write!(out, " unknown"),
        };
        let _ = write!(out, " {}", plain(bodies, call.args));
        if let Some(label) = &call.label {
            let _ = write!(out, " #{label}");
        }
        if let Some(chain) = call.chain() {
            let _ = write!(out, " after {chain}");
        }
        out + ")"
    }

    fn entry(&self, entry: &LedgerEntry, bodies: &dyn Bodies) -> String {
        match entry {
            LedgerEntry::Claimed { epoch, .. } => format!("claimed, epoch {epoch}"),
            LedgerEntry::Accepted { message, by, .. } => words::taken(message, by.as_ref()),
            LedgerEntry::Escrow { .. }
            | LedgerEntry::Spend { .. }
            | LedgerEntry::Settle { .. }
            | LedgerEntry::More { .. }
            | LedgerEntry::Unbelievable { .. } => of_limits(entry),
            LedgerEntry::Hold(hold) => hold_of(hold, bodies),
            LedgerEntry::Released {
                effect,
                why,
                how,
                about: _,
                by,
                body,
            } => {
                let (why, how) = (why_word(*why), release_word(*how));
                let body = body.map(|body| format!(" {}", quoted(bodies, body)));
                format!(
                    "released {effect} {why} {how} by {by}{}",
                    body.unwrap_or_default()
                )
            }
            LedgerEntry::Started {
                effect,
                attempt,
                epoch,
                digest,
                class: _,
            } => format!(
                "started {effect} attempt {attempt} epoch {epoch} {}",
                digest.short()
            ),
            LedgerEntry::Done {
                effect,
                attempt,
                kept,
            } => {
                let mut out = format!("done {effect} attempt {attempt}");
                if let Some(kept) = kept {
                    let _ = write!(out, " {}", plain(bodies, *kept));
                }
                out
            }
            LedgerEntry::NotPerformed { effect, attempt } => {
                format!("not performed {effect} attempt {attempt}")
            }
            LedgerEntry::Unknown { effect, attempt } => {
                format!("unknown {effect} attempt {attempt}")
            }
            LedgerEntry::Late {
                effect, attempt, ..
            } => format!("late {effect} attempt {attempt}"),
            LedgerEntry::Again { effect, at } => format!("again {effect} at {}", at.0),
            LedgerEntry::Outage { effect, since } => format!("out {effect} since {}", since.0),
            LedgerEntry::Opened { branch, .. } => format!("opened {}", self.branch(*branch)),
            LedgerEntry::Ended(id) => format!("ended {}", self.branch(*id)),
            LedgerEntry::Superseded { branch, after } => {
                format!("superseded {} after {after}", self.branch(*branch))
            }
            LedgerEntry::Current(id) => format!("current {}", self.branch(*id)),
            LedgerEntry::Adopted { branch, at } => {
                format!("adopted {} at {at}", self.branch(*branch))
            }
            LedgerEntry::Listed(id) => format!("listed {id}"),
            LedgerEntry::WouldAsk(id) => format!("would ask {id}"),
            LedgerEntry::Paused { paused, by } => words::paused(*paused, by),
            LedgerEntry::Barred { tool, barred, by } => words::barred(tool.as_deref(), *barred, by),
            LedgerEntry::Recorded {
                effect, at, how, ..
            } => format!("recorded {effect} {} @{at}", words::recorded(*how)),
            LedgerEntry::Reach {
                effect,
                of,
                role,
                what,
            } => format!(
                "reach {effect} of {of} {role} {}",
                words::reaching(what, bodies)
            ),
            LedgerEntry::Probe { effect, of, what } => {
                format!("probe {effect} of {of} {}", words::probing(what, bodies))
            }
            LedgerEntry::Search { search, what } => self.searching(*search, what, bodies),
            LedgerEntry::Refused { message, why } => {
                format!("refused {message} {}", quoted(bodies, *why))
            }
            LedgerEntry::StoreAccepted { at, was } => words::accepted(*at, *was),
            LedgerEntry::Step {
                effect,
                attempt,
                nth,
                name,
                what,
            } => format!(
                "step {effect} attempt {attempt} {nth} {name} {}",
                words::stepped(*what, bodies)
            ),
        }
    }
}

fn hold_of(hold: &Hold, bodies: &dyn Bodies) -> String {
    let mut out = format!(
        "hold {} {} by {} {}",
        hold.effect,
        why_word(hold.why),
        hold.askers(),
        hold.digest.short()
    );
    if let Some(about) = &hold.about {
        let _ = write!(out, " about {about}");
    }
    if let Some(ask) = hold.ask {
        let _ = write!(out, " {}", quoted(bodies, ask));
    }
    if let Some(due) = hold.due {
        let _ = write!(out, " due {}", due.0);
    }
    out
}

fn result_of(result: &CallResult, bodies: &dyn Bodies) -> String {
    let mut out = format!("{} {}", result.call, how_word(result.how));
    if let Some(code) = &result.code
        && **code != *how_word(result.how)
    {
        let _ = write!(out, " {code}");
    }
    if let Some(body) = result.body {
        let _ = write!(out, " {}", quoted(bodies, body));
    }
    for write in &result.writes {
        let _ = write!(out, " {}", write_of(write, bodies));
    }
    for artifact in &result.artifacts {
        let _ = write!(
            out,
            " +{} {} {} bytes",
            artifact.name, artifact.media, artifact.len
        );
    }
    if let Some(by) = &result.by {
        let _ = write!(out, " by {by}");
    }
    out
}

fn write_of(write: &Write, bodies: &dyn Bodies) -> String {
    let how = match write.reduce {
        Reduce::Last => "=",
        Reduce::Append => "append ",
        Reduce::Sum => "sum ",
        Reduce::Max => "max ",
        Reduce::Merge => "merge ",
    };
    let mut out = match write.value {
        Some(value) => format!(
            "{}.{}{how}{}",
            write.scope,
            write.name,
            plain(bodies, value)
        ),
        None => format!("{}.{} unset", write.scope, write.name),
    };
    if let Some(expires) = write.expires {
        let _ = write!(out, " for {expires}ms");
    }
    out
}

fn quoted(bodies: &dyn Bodies, body: Body) -> String {
    format!("{:?}", cut(&bodies.text(body)))
}

/// Returns a JSON text on one row, cut to [`SHOWN`]. It gets no quotes around it, because JSON has its own.
fn plain(bodies: &dyn Bodies, body: Body) -> String {
    cut(&bodies.text(body)).replace('\n', "\\n")
}

/// Returns the word for an offer that was taken.
fn word_of(kind: Admitted) -> &'static str {
    match kind {
        Admitted::Opened => "opened",
        Admitted::Rewound => "rewound",
        Admitted::Adopted => "adopted",
        Admitted::Outcome => "out",
        Admitted::Edited => "edited",
        Admitted::Clock => "clock",
        Admitted::Ended => "ended",
        Admitted::Join => "join",
        Admitted::Interrupt => "interrupt",
        Admitted::Cancel => "cancel",
        Admitted::Message => "message",
        Admitted::Start => "start",
        Admitted::Rebound => "rebound",
    }
}
