//! Random histories under random context policies, as input for tests of renderers and encoders. Each follows from its seed.

use super::log::{Log, network, result};
use super::random::Dice;
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use steersman_machine::context::{RenderCache, Request, due_watermarks, request, summing};
use steersman_machine::network::Network;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::engine::Caller;
use steersman_machine::stored::ids::{Id, Name};
use steersman_machine::stored::interaction::{
    Call, Class, Covers, End, How, Interaction, Origin, Summary, Target,
};

/// Tools of the definition.
const TOOLS: [&str; 4] = ["look", "fetch", "write", "note"];

/// Returns a definition whose context policies follow from the seed. Its only agent is `desk`.
pub fn definition(seed: u64) -> Network {
    let mut dice = Dice::new(seed * 7_919 + 1);
    let mut yaml =
        "models: { default: scripted }\nstate: { note: { type: string, default: none } }\ntools:\n"
            .to_owned();
    for tool in TOOLS {
        let horizon = ["1", "2", "4", "{ own: 1 }", "{ own: 2 }", "{ own: 3 }"];
        let horizon = one_of(&mut dice, &horizon);
        let beyond = one_of(
            &mut dice,
            &[
                "beyond: drop",
                "beyond: stub",
                "beyond: summary",
                "beyond: summary, elide: [a]",
                "elide: [a, b]",
                r#"stub: "{{ args.a }} and {{ state.note }}""#,
                r#"stub: "{{ args.a }} gave {{ result.x | upper }}""#,
                r#"stub: gone, elide: [b], result: "{{ result }} ({{ state.note }})""#,
                r#"beyond: drop, call: "I call with {{ args.a }} as {{ state.note }}.""#,
                r#"call: "I call with {{ args.a }}.""#,
            ],
        );
        let render = match dice.below(5) {
            0 => String::new(),
            _ => format!(", render: {{ horizon: {horizon}, {beyond} }}"),
        };
        writeln!(
            yaml,
            "  {tool}: {{ description: T., parameters: {{ a: string, b: optional string }}, effect: read, native: 1{render} }}"
        )
        .expect("writing to a string does not fail");
    }
    let keep = one_of(&mut dice, &["1", "2", "3", "6", "50"]);
    let compact = match dice.below(3) {
        0 => String::new(),
        _ => ", compact: { when_tokens: 20, keep_exchanges: 1 }".to_owned(),
    };
    let now = one_of(&mut dice, &["", r#", now: "Note: {{ state.note }}""#]);
    let parts = one_of(&mut dice, &["", ", parts: [tools, system, history, now]"]);
    // These have a source of their own, so the other policies of a seed stay.
    let forms = [
        "",
        "",
        r#", render: { user: "{{ message.from }}, {{ state.note }}: {{ message.text }}", assistant: "{{ message.text }} ({{ state.note }})" }"#,
        r#", render: { summary: "So far, {{ state.note }}: {{ message.text }}", call: "I call {{ tool }}.", result: "{{ result }} as {{ state.note }}" }"#,
        r#", render: { user: "{% if state.note != 'none' %}{{ message.text }}{% endif %}", assistant: "{% if state.note == 'none' %}{{ message.text }}{% endif %}", result: "{{ tool }}" }"#,
    ];
    let render = one_of(&mut Dice::new(seed * 15_485_863 + 5), &forms);
    writeln!(
        yaml,
        "agents:\n  desk: {{ system: \"You help. {{{{ state.note }}}}\", tools: [{}], context: {{ keep_exchanges: {keep}{compact}{now}{parts}{render} }} }}",
        TOOLS.join(", ")
    )
    .expect("writing to a string does not fail");
    network(&yaml)
}

fn one_of<'a>(dice: &mut Dice, these: &[&'a str]) -> &'a str {
    dice.pick(these).expect("the list is not empty")
}

/// Makes the opaque text of an answer: one that later requests return to the provider unchanged. Gets the answer's text and the
/// names and arguments of its calls.
pub type Opaque = fn(&mut Dice, Option<&str>, &[(&str, String)]) -> String;

/// Style of the models and tools of a history.
#[derive(Copy, Clone, Debug)]
pub struct Manner {
    /// Maker of the opaque texts of answers.
    pub opaque: Opaque,
    /// True if labels come from providers (some twice, some with characters that others refuse), if texts, results and arguments
    /// may be empty or not JSON, and if an answer may consist only of its opaque text.
    pub rough: bool,
}

/// A history that is being made.
#[derive(Debug)]
pub struct Story {
    /// The log of the history.
    pub log: Log,
    /// The only agent of the history.
    pub desk: Id,
    /// Source of all random choices.
    pub dice: Dice,
    /// Rendering cache of the last request. Take it out to call [`Story::ask`], and put it back.
    pub cache: RenderCache,
    manner: Manner,
    /// Calls that have no result yet.
    open: Vec<Id>,
    /// Snapshots to which the history may go back.
    saved: Vec<Snapshot>,
}

impl Story {
    /// Begins a new history in this log.
    pub fn new(mut log: Log, seed: u64, manner: Manner) -> Self {
        log.lines.clear();
        log.snapshot = Snapshot::empty();
        let desk = log.start("desk", "Begin.");
        let saved = vec![log.snapshot.clone()];
        Self {
            log,
            desk,
            dice: Dice::new(seed * 104_729 + 3),
            cache: RenderCache::default(),
            manner,
            open: Vec::new(),
            saved,
        }
    }

    fn args(&mut self) -> String {
        let b = self.dice.below(3);
        let a = self.dice.below(100);
        if self.manner.rough && self.dice.percent(5) {
            return one_of(&mut self.dice, &["", "{", "[1]", "\"a\"", "null"]).to_owned();
        }
        if b == 0 {
            format!(r#"{{"a":"{a}"}}"#)
        } else {
            format!(r#"{{"a":"{a}","b":"{b}{b}{b}"}}"#)
        }
    }

    /// Returns the id that a provider gave a call; some providers give none.
    fn label(&mut self, at: usize) -> Option<Name> {
        if !self.manner.rough {
            return None;
        }
        let unlike = self.dice.below(1_000);
        let long = "x".repeat(60);
        let label = match self.dice.below(8) {
            0 => "call_0".to_owned(),
            1 => format!("call_{at}"),
            2 => format!("functions.look:{at}"),
            3 => format!("functions_look_{at}"),
            4 => format!("{long}{unlike}"),
            5 => format!("toolu_{unlike}"),
            6 => format!("{at} ü|{unlike}"),
            _ => return None,
        };
        Some(label.into())
    }

    fn text(&mut self, needed: bool) -> Option<&'static str> {
        if self.manner.rough && self.dice.percent(30) {
            return *self
                .dice
                .pick(&[None, Some(""), Some(" \n"), Some("Weiß nicht.\n")])
                .expect("the list is not empty");
        }
        (needed || self.dice.below(2) == 0).then_some("Well.")
    }

    /// Adds an answer of the model: a text, calls, or both. An answer without calls may end the turn.
    fn answers(&mut self) {
        let many = self.dice.below(4) as usize;
        let calls: Vec<(&str, String)> = (0..many)
            .map(|_| {
                let names = ["look", "fetch", "write", "note", "nobody"];
                (one_of(&mut self.dice, &names), self.args())
            })
            .collect();
        let labels: Vec<Option<Name>> = (0..many).map(|at| self.label(at)).collect();
        let text = self.text(calls.is_empty());
        let opaque =
            (self.dice.below(3) == 0).then(|| (self.manner.opaque)(&mut self.dice, text, &calls));
        let partial = calls.is_empty() && self.dice.below(5) == 0;
        let ends = self.dice.below(3);
        let desk = self.desk;
        self.open = self.log.line(|l| {
            l.thought(desk, text, opaque.as_deref(), partial);
            let mut ids = Vec::new();
            for ((name, args), label) in calls.iter().zip(labels) {
                let (id, args) = (l.id(), l.text(args));
                let call = Call {
                    id,
                    name: (*name).into(),
                    by: Caller::Model,
                    seen: None,
                    target: Target::Tool(Class::Read),
                    label,
                    args,
                    number: l.number(),
                };
                l.push(desk, Interaction::Call(call));
                ids.push(id);
            }
            // Calls whose arguments are not an object with an `a` never run.
            let fit = |at: usize| calls[at].1.starts_with("{\"a\"");
            for at in (0..many).filter(|at| !fit(*at)) {
                l.failed(desk, ids[at], "misfit", "misfit: `args.a` is missing");
            }
            let ids: Vec<Id> = (0..many).filter(|at| fit(*at)).map(|at| ids[at]).collect();
            if many == 0 {
                match ends {
                    _ if partial => {
                        l.say(desk, "Stop.");
                    }
                    0 => {
                        let body = l.text("This answer cannot be used.");
                        l.said(desk, Origin::Correction, body);
                    }
                    _ => l.finished(desk, End::Turn),
                }
            }
            l.grew(desk, 60);
            ids
        });
    }

    /// Closes one of the open calls.
    fn closes(&mut self) {
        let at = self.dice.below(self.open.len() as u64) as usize;
        let call = self.open.remove(at);
        let (how, chains) = (self.dice.below(6), self.dice.below(6) == 0);
        let gave = if self.manner.rough && self.dice.percent(20) {
            one_of(&mut self.dice, &["", "\n", "null", "{\"x\":"])
        } else {
            r#"{"x":"a result of some length"}"#
        };
        let rough = self.manner.rough;
        let desk = self.desk;
        let next = self.log.line(|l| {
            match how {
                0 if rough => l.failed(desk, call, "failed", gave),
                0 => l.failed(desk, call, "failed", "failed: no"),
                1 => {
                    let body = l.text("refused: not now");
                    let refused = result(call, How::Refused, Some(body), Some("refused".into()));
                    l.push(desk, Interaction::Result(refused));
                }
                2 => l.push(
                    desk,
                    Interaction::Result(result(call, How::NotInThisBranch, None, None)),
                ),
                _ => l.result(desk, call, gave),
            }
            l.grew(desk, 40);
            chains.then(|| l.chained(desk, "note", r#"{"a":"after"}"#, Some(call)))
        });
        self.open.extend(next);
    }

    /// Adds the summary that a model was asked for, or its failure. Sometimes adds nothing. Until the summary or its failure is
    /// there, no other step follows.
    fn sums(&mut self, policy: Name) {
        let desk = self.desk;
        let mark = self.log.snapshot.watermarks[&(desk, policy.clone())];
        let fails = self.dice.below(3) == 0;
        if self.dice.below(4) == 0 {
            return;
        }
        self.log.line(|l| {
            let (effect, body) = (l.id(), l.text("In short."));
            let covers = Covers::Exchanges(if fails { mark } else { 0 }, mark);
            let summary = Summary {
                effect,
                policy,
                covers,
                body,
            };
            l.push(desk, Interaction::Summary(summary));
        });
    }

    /// Adds one random step.
    pub fn step(&mut self) {
        let desk = self.desk;
        if let Some(policy) = summing(&self.log.snapshot, desk) {
            return self.sums(policy);
        }
        match self.dice.below(10) {
            0..=5 if !self.open.is_empty() => self.closes(),
            0..=3 => self.answers(),
            6 if self.open.is_empty() => {
                let blank = self.manner.rough && self.dice.percent(20);
                let said = if blank { " " } else { "Go on." };
                self.log.line(|l| l.say(desk, said));
            }
            7 if self.open.is_empty() => {
                let name = one_of(&mut self.dice, &["look", "note", "join"]);
                let target = Target::Tool(Class::Read);
                let call = self
                    .log
                    .line(|l| l.call_to(desk, name, r#"{"a":"engine"}"#, target, None).0);
                self.open.push(call);
            }
            8 => {
                let text = format!("\"{}\"", self.dice.below(3));
                self.log.line(|l| l.write(desk, "note", &text));
            }
            9 if self.open.is_empty() && self.dice.below(2) == 0 => {
                self.saved.push(self.log.snapshot.clone());
            }
            9 if self.dice.below(4) == 0 => {
                let at = self.dice.below(self.saved.len() as u64) as usize;
                self.log.snapshot = self.saved[at].clone();
                self.open.clear();
            }
            _ => {}
        }
        if self.open.is_empty() {
            for mark in due_watermarks(&self.log.cx(), &self.log.snapshot, desk) {
                self.log.line(|l| l.watermark(mark));
            }
        }
    }

    /// Returns the request of the next model call.
    ///
    /// # Panics
    /// If a template cannot be rendered.
    pub fn ask(&self, cache: &mut RenderCache) -> Request {
        let log = &self.log;
        request(&log.cx(), log, &log.snapshot, self.desk, cache).expect("templates render")
    }
}

/// Makes an opaque text that contains the calls of its answer. No real provider has this form.
pub fn opaque_with_calls(_: &mut Dice, _: Option<&str>, calls: &[(&str, String)]) -> String {
    let made: Vec<Json> = calls
        .iter()
        .map(|(name, args)| json!([name, serde_json::from_str::<Json>(args).unwrap_or_default()]))
        .collect();
    json!({ "thinking": "hm", "signature": "s", "calls": made }).to_string()
}
