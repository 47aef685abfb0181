//! A log written by hand, for tests of code that only reads logs.

use std::sync::Arc;
use steersman_definition::{Files, compile};
use steersman_machine::context::{History, hooked_of};
use steersman_machine::network::{Does, Network};
use steersman_machine::snapshot::Snapshot;
use steersman_machine::snapshot::fold::fold;
use steersman_machine::stored::by::By;
use steersman_machine::stored::commit::{
    Binding, Change, Commit, Hooked, Kind, LogLine, Made, Push, Text, Watermark,
};
use steersman_machine::stored::engine::Caller;
use steersman_machine::stored::ids::{Bodies, Body, Digest, Id, Line, Name, Time};
use steersman_machine::stored::interaction::{
    Artifact, Call, CallResult, Cause, Class, End, How, Interaction, Number, Origin, Target, Write,
};
use steersman_machine::stored::outcome::NewArtifact;
use steersman_machine::stored::parts::{Part, Parts};
use steersman_machine::view::Cx;
use steersman_machine::view::artifact::came_with;

/// Compiles a definition to a network.
///
/// # Panics
/// If the definition has faults.
pub fn network(yaml: &str) -> Network {
    let (network, found) = compile(&Files::new("test.yaml", yaml));
    let said: Vec<String> = found.iter().map(ToString::to_string).collect();
    network.unwrap_or_else(|| panic!("{}", said.join("\n")))
}

/// A log and the snapshot at its end.
#[derive(Debug)]
pub struct Log {
    /// The network that is in force.
    pub network: Network,
    /// All lines, from the first.
    pub lines: Vec<LogLine>,
    /// The snapshot after the last line.
    pub snapshot: Snapshot,
    /// The time of the lines that follow.
    pub now: Time,
    /// Number of texts and pushes that were read.
    pub reads: std::cell::Cell<u32>,
}

/// A line that is being written.
#[derive(Debug)]
pub struct Draft {
    n: Line,
    commit: Commit,
    bodies: Vec<Text>,
    /// Number of ids that were given out in this line.
    things: u32,
    /// The last line of each agent's stack.
    heads: Vec<(Id, Line)>,
}

impl Log {
    /// Returns an empty log under this definition.
    pub fn new(yaml: &str) -> Self {
        Self::of(network(yaml))
    }

    /// Returns an empty log under this network.
    pub fn of(network: Network) -> Self {
        Self {
            network,
            lines: Vec::new(),
            snapshot: Snapshot::empty(),
            now: Time(1_700_000_000_000),
            reads: std::cell::Cell::new(0),
        }
    }

    /// Returns the context that templates and ticks read.
    pub fn cx(&self) -> Cx<'_> {
        Cx {
            network: &self.network,
            bodies: self,
        }
    }

    /// Writes a line, folds it and returns the result of the closure.
    pub fn line<T>(&mut self, write: impl FnOnce(&mut Draft) -> T) -> T {
        let n = Line(self.lines.len() as u64 + 1);
        let mut draft = Draft {
            n,
            commit: Commit {
                parent: self.snapshot.line,
                ..Commit::default()
            },
            bodies: Vec::new(),
            things: 0,
            heads: self
                .snapshot
                .agents
                .iter()
                .map(|(id, a)| (*id, a.stack.last))
                .collect(),
        };
        let given = write(&mut draft);
        let line = LogLine {
            n,
            at: self.now,
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

    /// Writes the first line, with a root agent and its first message. Returns the agent's id.
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
            // The fold applies edits before agents are made, so move the defaults into the entry of the new agent.
            let defaults = std::mem::take(&mut line.commit.edits);
            line.commit.made[0].state = defaults;
            line.say(agent, message);
            agent
        })
    }

    /// Replaces a text by a tombstone.
    pub fn erase(&mut self, body: Body) {
        self.lines[body.line().0 as usize - 1].bodies[body.k() as usize] =
            Text::Erased { hash: [0; 32] };
    }
}

impl Draft {
    /// Returns the id of the next thing of this line.
    pub fn id(&mut self) -> Id {
        self.things += 1;
        Id::new(self.n, self.things - 1)
    }
    /// Adds a text to the line.
    pub fn text(&mut self, text: &str) -> Body {
        self.bodies.push(Text::Here(text.into()));
        Body::new(self.n, self.bodies.len() as u32 - 1)
    }
    /// Adds a list of parts to the line.
    pub fn parts(&mut self, parts: impl IntoIterator<Item = Part>) -> Body {
        self.bodies.push(Text::Parts(parts.into_iter().collect()));
        Body::new(self.n, self.bodies.len() as u32 - 1)
    }
    /// Pushes an interaction onto an agent's stack.
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
    /// Pushes a message from outside.
    pub fn say(&mut self, agent: Id, text: &str) -> Body {
        let body = self.text(text);
        self.said(agent, Origin::Outside(By::default()), body);
        body
    }
    /// Pushes a message of any origin.
    pub fn said(&mut self, agent: Id, from: Origin, body: Body) {
        self.push(agent, Interaction::UserMessage { from, body });
    }
    /// Records a file that came with a text, as an artifact of this agent.
    pub fn came(&mut self, scope: Id, with: Body, file: &NewArtifact) {
        self.commit.changes.push(Change::Artifact(Artifact {
            scope,
            call: came_with(with),
            name: (&*file.name).into(),
            media: (&*file.media).into(),
            hash: file.hash,
            len: file.len,
        }));
    }
    /// Pushes an answer of the model.
    pub fn answer(&mut self, agent: Id, text: Option<&str>) {
        self.thought(agent, text, None, false);
    }
    /// Pushes an answer of the model, complete or partial, with the text that its provider wants back.
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
    /// Pushes a call of a tool.
    pub fn call(&mut self, agent: Id, name: &str, args: &str) -> Id {
        self.chained(agent, name, args, None)
    }
    /// Pushes a call of a tool that follows another call.
    pub fn chained(&mut self, agent: Id, name: &str, args: &str, chain: Option<Id>) -> Id {
        self.call_to(agent, name, args, Target::Tool(Class::Read), chain)
            .0
    }
    /// Pushes a call of an agent.
    pub fn agent_call(&mut self, agent: Id, name: &str, child: Id, args: &str) -> (Id, Body) {
        self.call_to(agent, name, args, Target::Agent(child), None)
    }
    /// Returns the number for the next call; it is unique in the log.
    pub fn number(&self) -> Number {
        let call = u32::try_from(self.n.0).expect("logs of tests are short") * 1_000;
        Number {
            call: call + self.things,
            step: 0,
        }
    }
    /// Pushes a call of any target. Returns its id and its arguments.
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
                by: chain.map_or(Caller::Model, Caller::Chain),
                seen: None,
                target,
                label: None,
                args,
            }),
        );
        (id, args)
    }
    /// Pushes the result of a call that is done.
    pub fn result(&mut self, agent: Id, call: Id, text: &str) {
        let body = self.text(text);
        self.push(
            agent,
            Interaction::Result(result(call, How::Done, Some(body), None)),
        );
    }
    /// Pushes the result of a call that failed.
    pub fn failed(&mut self, agent: Id, call: Id, code: &str, text: &str) {
        let body = self.text(text);
        let failed = result(call, How::Failed, Some(body), Some(code.into()));
        self.push(agent, Interaction::Result(failed));
    }
    /// Pushes the end of an agent.
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
    /// Writes a state entry.
    pub fn write(&mut self, scope: Id, name: &str, json: &str) {
        let value = self.text(json);
        self.commit.edits.push(Write {
            scope,
            name: name.into(),
            value: Some(value),
            reduce: steersman_machine::stored::interaction::Reduce::Last,
            expires: None,
        });
    }
    /// Records that the agent's context grew by `bytes`.
    pub fn grew(&mut self, agent: Id, bytes: u32) {
        self.commit.changes.push(Change::Grew(agent, bytes));
    }
    /// Moves a boundary of a context.
    pub fn watermark(&mut self, mark: Watermark) {
        self.commit.changes.push(Change::Watermark(mark));
    }
}

/// Returns a result of this call that wrote no state.
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
    fn parts(&self, body: Body) -> Parts {
        self.reads.set(self.reads.get() + 1);
        match &self.lines[body.line().0 as usize - 1].bodies[body.k() as usize] {
            Text::Here(text) => Parts::One(text.text().clone()),
            Text::Parts(parts) => Parts::Several(parts.clone()),
            Text::Blob { .. } | Text::Erased { .. } => Parts::One("[erased]".into()),
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

    fn hooked(&self, effect: Id) -> Vec<Hooked> {
        let line = &self.lines[effect.line().0 as usize - 1];
        hooked_of(line.commit.as_ref(), effect)
    }
}
