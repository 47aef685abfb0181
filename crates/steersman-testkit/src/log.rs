//! A log written by hand, for tests of what only reads one.

use std::sync::Arc;
use steersman_definition::{Files, compile};
use steersman_machine::commit::{
    Binding, Change, Commit, Kind, LogLine, Made, Push, Text, Watermark,
};
use steersman_machine::context::History;
use steersman_machine::effect::Bodies;
use steersman_machine::fold::fold;
use steersman_machine::ids::{Body, Digest, Id, Line, Name, Time};
use steersman_machine::interaction::{
    Call, CallResult, Cause, Class, End, How, Interaction, Number, Origin, Target, Write,
};
use steersman_machine::network::{Does, Network};
use steersman_machine::snapshot::Snapshot;
use steersman_machine::tick::Cx;

/// The network of a definition.
///
/// # Panics
/// If it has faults.
pub fn network(yaml: &str) -> Network {
    let (network, found) = compile(&Files::new("test.yaml", yaml));
    let said: Vec<String> = found.iter().map(ToString::to_string).collect();
    network.unwrap_or_else(|| panic!("{}", said.join("\n")))
}

/// A log and where it stands.
#[derive(Debug)]
pub struct Log {
    /// The definition that is in force.
    pub network: Network,
    /// All lines, from the first.
    pub lines: Vec<LogLine>,
    /// What they come to.
    pub snapshot: Snapshot,
    /// The time of the lines that come.
    pub now: Time,
    /// How often a text or a push was asked for.
    pub reads: std::cell::Cell<u32>,
}

/// One line in the making.
#[derive(Debug)]
pub struct Draft {
    n: Line,
    commit: Commit,
    bodies: Vec<Text>,
    things: u32,
    heads: Vec<(Id, Line)>,
}

impl Log {
    /// An empty log under this definition.
    pub fn new(yaml: &str) -> Self {
        Self::of(network(yaml))
    }

    /// An empty log under this network.
    pub fn of(network: Network) -> Self {
        Self {
            network,
            lines: Vec::new(),
            snapshot: Snapshot::empty(),
            now: Time(1_700_000_000_000),
            reads: std::cell::Cell::new(0),
        }
    }

    /// What templates and ticks read.
    pub fn cx(&self) -> Cx<'_> {
        Cx {
            network: &self.network,
            bodies: self,
        }
    }

    /// Writes a line and folds it.
    pub fn line<T>(&mut self, write: impl FnOnce(&mut Draft) -> T) -> T {
        let n = Line(self.lines.len() as u64 + 1);
        let mut draft = Draft {
            n,
            commit: Commit {
                parent: self.snapshot.line,
                now: self.now,
                ..Commit::default()
            },
            bodies: Vec::new(),
            things: 0,
            heads: self
                .snapshot
                .agents
                .iter()
                .map(|(id, a)| (*id, a.last))
                .collect(),
        };
        let given = write(&mut draft);
        let line = LogLine {
            n,
            prev: self.snapshot.line,
            branch: Id::MAIN,
            commit: Some(draft.commit),
            ledger: Vec::new(),
            bodies: draft.bodies,
        };
        self.snapshot = fold(self.snapshot.clone(), &line);
        self.lines.push(line);
        given
    }

    /// The root of this kind, with its first message.
    pub fn start(&mut self, def: &str, message: &str) -> Id {
        let kind = match self.network.agent(def).does {
            Does::Route(_) => Kind::Routed,
            Does::Model(_) | Does::Run { .. } => Kind::Model,
        };
        let state = self.network.agent(def).state.clone();
        let def: Name = def.into();
        self.line(|line| {
            let values = line.text(r#"{"config":{"limit":250}}"#);
            line.commit.binding = Some(Binding {
                digest: Digest::of(b"binding"),
                source: [0; 32],
                network: "test".into(),
                entry: def.clone(),
                values,
                machine: 1,
            });
            let agent = line.id();
            line.made(agent, &def, kind, None);
            for (name, ty) in &state {
                if let Some(default) = &ty.default {
                    line.write(agent, name, &default.to_string());
                }
            }
            // Edits come before agents are made; a maker's defaults are part of the making.
            let defaults = std::mem::take(&mut line.commit.edits);
            line.commit.made[0].state = defaults;
            line.say(agent, message);
            agent
        })
    }

    /// Puts a tombstone in the place of a text.
    pub fn erase(&mut self, body: Body) {
        self.lines[body.line().0 as usize - 1].bodies[body.k() as usize] =
            Text::Erased { hash: [0; 32] };
    }
}

impl Draft {
    /// The id of the next thing.
    pub fn id(&mut self) -> Id {
        self.things += 1;
        Id::new(self.n, self.things - 1)
    }
    /// A text of the line.
    pub fn text(&mut self, text: &str) -> Body {
        self.bodies.push(Text::Here(text.into()));
        Body::new(self.n, self.bodies.len() as u32 - 1)
    }
    /// Pushes onto an agent's stack.
    pub fn push(&mut self, agent: Id, what: Interaction) {
        let head = self
            .heads
            .iter_mut()
            .find(|(id, _)| *id == agent)
            .expect("a known agent");
        let prev = head.1;
        head.1 = self.n;
        self.commit.pushes.push(Push { agent, prev, what });
    }
    /// Makes an agent.
    pub fn made(&mut self, agent: Id, def: &Name, kind: Kind, parent: Option<Id>) {
        self.heads.push((agent, Line::NONE));
        self.commit.made.push(Made {
            agent,
            def: def.clone(),
            kind,
            parent,
            named: None,
            mode: None,
            state: Vec::new(),
        });
    }
    /// A message from outside.
    pub fn say(&mut self, agent: Id, text: &str) -> Body {
        let body = self.text(text);
        self.said(agent, Origin::Outside(None), body);
        body
    }
    /// A message of any origin.
    pub fn said(&mut self, agent: Id, from: Origin, body: Body) {
        self.push(agent, Interaction::UserMessage { from, body });
    }
    /// The model answers.
    pub fn answer(&mut self, agent: Id, text: Option<&str>) {
        self.thought(agent, text, None, false);
    }
    /// The model answers, with what its provider wants back; or part of an answer came.
    pub fn thought(&mut self, agent: Id, text: Option<&str>, opaque: Option<&str>, partial: bool) {
        let text = text.map(|t| self.text(t));
        let opaque = opaque.map(|t| self.text(t));
        let effect = self.id();
        self.push(
            agent,
            Interaction::AssistantMessage {
                effect,
                text,
                opaque,
                partial,
            },
        );
    }
    /// A call of a tool.
    pub fn call(&mut self, agent: Id, name: &str, args: &str) -> Id {
        self.chained(agent, name, args, None)
    }
    /// A call of a tool that follows another.
    pub fn chained(&mut self, agent: Id, name: &str, args: &str, chain: Option<Id>) -> Id {
        self.call_to(agent, name, args, Target::Tool(Class::Read), chain)
            .0
    }
    /// A call of an agent.
    pub fn agent_call(&mut self, agent: Id, name: &str, child: Id, args: &str) -> (Id, Body) {
        self.call_to(agent, name, args, Target::Agent(child), None)
    }
    /// The number of a call: no other call of the log has it.
    pub fn number(&self) -> Number {
        let call = u32::try_from(self.n.0).expect("logs of tests are short") * 1_000;
        Number {
            call: call + self.things,
            step: 0,
        }
    }
    /// A call of anything.
    pub fn call_to(
        &mut self,
        agent: Id,
        name: &str,
        args: &str,
        target: Target,
        chain: Option<Id>,
    ) -> (Id, Body) {
        let (id, args) = (self.id(), self.text(args));
        let number = self.number();
        self.push(
            agent,
            Interaction::Call(Call {
                number,
                id,
                name: name.into(),
                seen: None,
                target,
                label: None,
                args,
                chain,
            }),
        );
        (id, args)
    }
    /// A call is done.
    pub fn result(&mut self, agent: Id, call: Id, text: &str) {
        let body = self.text(text);
        self.push(
            agent,
            Interaction::Result(result(call, How::Done, Some(body), None)),
        );
    }
    /// A call failed.
    pub fn failed(&mut self, agent: Id, call: Id, code: &str, text: &str) {
        let body = self.text(text);
        let failed = result(call, How::Failed, Some(body), Some(code.into()));
        self.push(agent, Interaction::Result(failed));
    }
    /// The agent is done.
    pub fn finished(&mut self, agent: Id, end: End) {
        self.push(
            agent,
            Interaction::Finished {
                end,
                cause: Cause::Answer,
                body: None,
                code: None,
                writes: Vec::new(),
            },
        );
    }
    /// Writes state.
    pub fn write(&mut self, scope: Id, name: &str, json: &str) {
        let value = self.text(json);
        self.commit.edits.push(Write {
            scope,
            name: name.into(),
            value: Some(value),
            reduce: steersman_machine::interaction::Reduce::Last,
            expires: None,
        });
    }
    /// So many bytes came into view.
    pub fn grew(&mut self, agent: Id, bytes: u32) {
        self.commit.changes.push(Change::Grew(agent, bytes));
    }
    /// Moves a boundary.
    pub fn watermark(&mut self, mark: Watermark) {
        self.commit.changes.push(Change::Watermark(mark));
    }
}

/// A result of this call that wrote nothing.
pub fn result(call: Id, how: How, body: Option<Body>, code: Option<Name>) -> CallResult {
    CallResult {
        call,
        how,
        body,
        code,
        writes: Vec::new(),
        artifacts: Vec::new(),
        by: None,
    }
}

impl Bodies for Log {
    fn text(&self, body: Body) -> Arc<str> {
        self.reads.set(self.reads.get() + 1);
        match &self.lines[body.line().0 as usize - 1].bodies[body.k() as usize] {
            Text::Here(text) => text.clone(),
            Text::Blob { .. } | Text::Erased { .. } => "[erased]".into(),
        }
    }
}

impl History for Log {
    fn pushes(&self, agent: Id, line: Line) -> (Arc<[Interaction]>, Line) {
        self.reads.set(self.reads.get() + 1);
        let commit = self.lines[line.0 as usize - 1]
            .commit
            .as_ref()
            .expect("a commit");
        let own: Vec<&Push> = commit.pushes.iter().filter(|p| p.agent == agent).collect();
        let below = own
            .iter()
            .map(|p| p.prev)
            .find(|l| *l != line)
            .unwrap_or(Line::NONE);
        (own.iter().map(|p| p.what.clone()).collect(), below)
    }
}
