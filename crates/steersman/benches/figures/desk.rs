//! A session in memory, ticked by hand: no driver, no store, no rendering.

use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_definition::{self as definition, Files};
use steersman_machine::network::Network;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::commit::{Binding, LogLine, Text};
use steersman_machine::stored::ids::{Bodies, Body, Id, Line, Name, Time};
use steersman_machine::stored::interaction::How;
use steersman_machine::stored::outcome::{Answer, Ask, Mapped, Outcome};
use steersman_machine::stored::parts::Parts;
use steersman_machine::tick::effect::{Offered, Opened, Said, Start, Wish, Work};
use steersman_machine::tick::history::ChatHistory;
use steersman_machine::tick::tick;
use steersman_machine::view::Cx;
use steersman_runtime::bind::{self, Values};

/// One agent that calls `look` again and again, a helper, and agents for calls that stay open.
const DEFINITION: &str = r"
steersman: 1
name: bench
models: { default: scripted }
tools:
  look: { description: Looks something up., parameters: { what: string }, effect: read, native: 1, parallel: 100 }
  wait: { description: Takes long., parameters: { what: string }, effect: read, native: 1, parallel: 100000 }
agents:
  main:
    system: You look things up for people who are in a hurry.
    tools: [look, helper, looker, { agent: holder, parallel: 1000 }]
    limits: &high
      { model_calls: 100000000, agent_calls: 100000000, parallel: 100000, ticks: 100000000, same_call: 100000000 }
    context: { keep_exchanges: 20 }
  looker: { system: You look., description: Looks., tools: [look], limits: *high, turns: task }
  holder: { system: You wait., description: Waits., tools: [{ tool: wait, parallel: 1000 }], limits: *high, turns: task }
  helper: { system: You help., description: Helps., turns: task }
limits: { tokens: 1000000000000 }
";

/// The result of a tool, 600 bytes.
pub(crate) fn found() -> String {
    "The lamp in the hall is green today. ".repeat(17)[..600].to_owned()
}

/// The network of [`DEFINITION`].
pub(crate) fn network() -> Arc<Network> {
    network_of(DEFINITION)
}

/// The network of a definition.
pub(crate) fn network_of(definition: &str) -> Arc<Network> {
    let (network, diagnostics) = definition::compile(&Files::new("bench.yaml", definition));
    match network {
        Some(network) => Arc::new(network),
        None => panic!("the definition of the benchmark does not compile: {diagnostics:?}"),
    }
}

/// Texts by line. Texts that no tick reads again are dropped: the figures are of the session in memory, without its
/// texts.
#[derive(Default)]
pub(crate) struct Texts(BTreeMap<Line, Vec<Text>>);

impl Bodies for Texts {
    fn parts(&self, body: Body) -> Parts {
        let texts = self.0.get(&body.line());
        match texts.and_then(|t| t.get(body.k() as usize)) {
            Some(Text::Here(text)) => Parts::One(text.text().clone()),
            _ => Parts::One("".into()),
        }
    }
}

/// A branch that grows tick by tick.
pub(crate) struct Desk {
    pub(crate) network: Arc<Network>,
    pub(crate) texts: Texts,
    pub(crate) snapshot: Snapshot,
    /// The last line of the session; `prev` is that of the branch.
    pub(crate) last: Line,
    pub(crate) prev: Line,
    /// Texts up to this line are kept.
    pub(crate) keep: Line,
    found: String,
}

/// The result of one tick: its line, and the effects that it asks for.
pub(crate) struct Ticked {
    pub(crate) line: LogLine,
    pub(crate) wishes: Vec<Wish>,
}

impl Ticked {
    /// The first effect that the tick asks for.
    pub(crate) fn wish(&self) -> Id {
        self.wishes[0].id
    }

    /// The number of interactions that were pushed.
    pub(crate) fn pushes(&self) -> u64 {
        self.line
            .commit
            .as_ref()
            .map_or(0, |commit| commit.pushes.len() as u64)
    }
}

impl Desk {
    pub(crate) fn new(network: Arc<Network>) -> Self {
        Self {
            network,
            texts: Texts::default(),
            snapshot: Snapshot::empty(),
            last: Line::NONE,
            prev: Line::NONE,
            keep: Line(2),
            found: found(),
        }
    }

    /// Sets the result that the tool gives.
    pub(crate) fn giving(self, found: String) -> Self {
        Self { found, ..self }
    }

    fn binding(&self) -> (Binding, Arc<str>) {
        let values = Values::default();
        let entry = self.network.entry[0].clone();
        let text = serde_json::to_string(&values).expect("values are JSON");
        (bind::binding(&self.network, entry, &values), text.into())
    }

    /// One tick, and the line that a driver would write for it.
    pub(crate) fn tick(&mut self, offered: &[Offered]) -> Ticked {
        let n = self.last.next();
        let cx = Cx {
            network: &self.network,
            bodies: &self.texts,
        };
        let before = std::mem::replace(&mut self.snapshot, Snapshot::empty());
        let now = Time(1_790_000_000_000 + n.0 as i64);
        let step = tick(&cx, before, n, now, offered);
        assert!(step.commit.is_some(), "left: {:?}", step.left);
        self.snapshot = step.snapshot;
        let line = LogLine {
            n,
            at: Time(0),
            prev: self.prev,
            branch: self.snapshot.branch,
            commit: step.commit,
            ledger: Vec::new(),
            bodies: step.bodies,
        };
        self.texts.0.insert(n, line.bodies.clone());
        (self.last, self.prev) = (n, n);
        Ticked {
            line,
            wishes: step.wishes,
        }
    }

    /// Drops texts that no tick reads any more.
    pub(crate) fn forget_texts(&mut self) {
        let (keep, young) = (self.keep, Line(self.last.0.saturating_sub(100)));
        self.texts.0.retain(|n, _| *n <= keep || *n >= young);
    }

    /// Starts the session with a message. The tick asks for a model call.
    pub(crate) fn start(&mut self) -> Ticked {
        let (binding, values) = self.binding();
        let start = Start {
            agent: None,
            args: None,
            message: Some(said("m1")),
            came: Vec::new(),
            history: ChatHistory::default(),
            binding,
            values,
        };
        self.tick(&[Offered::Start(start)])
    }

    /// The model answers with calls.
    pub(crate) fn calls(&mut self, effect: Id, asks: Vec<Ask>) -> Ticked {
        let answer = Answer {
            text: None,
            asks,
            ..Answer::default()
        };
        self.tick(&[outcome(effect, Outcome::Answer(answer))])
    }

    /// The model answers with a text.
    pub(crate) fn text(&mut self, effect: Id, text: &str) -> Ticked {
        let answer = Answer {
            text: Some(text.to_owned()),
            ..Answer::default()
        };
        self.tick(&[outcome(effect, Outcome::Answer(answer))])
    }

    /// The tool gives its result.
    pub(crate) fn done(&mut self, effect: Id) -> Ticked {
        let mapped = Mapped::plain(How::Done, None, self.found.clone());
        self.tick(&[outcome(effect, Outcome::Mapped(mapped))])
    }

    /// One turn of a tool loop, in two ticks: the model calls `look`, and the tool gives its result. Returns the next
    /// model call.
    pub(crate) fn turn(&mut self, model: Id) -> Id {
        let tool = self.calls(model, vec![look(self.last.0)]).wish();
        self.done(tool).wish()
    }

    /// Takes so many turns, then drops old texts. Returns the next model call.
    pub(crate) fn turns(&mut self, mut model: Id, turns: u64) -> Id {
        for _ in 0..turns {
            model = self.turn(model);
        }
        self.forget_texts();
        model
    }

    /// Opens a branch here with a first message. The tick asks for a model call.
    pub(crate) fn fork(&mut self) -> Ticked {
        let opened = Opened {
            say: Some(said("f")),
            ..Opened::default()
        };
        self.tick(&[Offered::Opened(opened)])
    }
}

fn outcome(effect: Id, outcome: Outcome) -> Offered {
    Offered::Outcome {
        effect,
        attempt: 1,
        outcome,
    }
}

fn said(id: &str) -> Said {
    Said {
        id: id.into(),
        text: "Please look it up.".into(),
        to: None,
        by: "user".into(),
        sender: None,
        came: Vec::new(),
        sets: Vec::new(),
    }
}

/// A call of this tool or agent.
pub(crate) fn ask(name: &str, key: &str, n: u64) -> Ask {
    Ask {
        name: name.to_owned(),
        label: Some(format!("call_{n}")),
        args: json!({ key: format!("the lamp of room {n}") }).to_string(),
        misfit: None,
    }
}

/// A call of the tool `look`.
pub(crate) fn look(n: u64) -> Ask {
    ask("look", "what", n)
}

/// The name of the tool that a wish asks for, if it asks for one.
pub(crate) fn tool(wish: &Wish) -> Option<&Name> {
    match &wish.work {
        Work::Tool(work) => Some(&work.tool),
        _ => None,
    }
}
