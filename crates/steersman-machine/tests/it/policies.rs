//! Policies of contexts over random histories: what every provider demands, and that nothing depends on what was rendered before.

use crate::log::{Log, network, result};
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use steersman_machine::context::{
    COMPACT, Content, Purpose, RenderCache, Request, due_watermarks, purpose, request, summing,
};
use steersman_machine::ids::Id;
use steersman_machine::interaction::{
    Class, Covers, End, How, Interaction, Origin, Summary, Target,
};
use steersman_machine::network::Network;
use steersman_machine::snapshot::Snapshot;

/// Definitions with random policies, and how many histories each of them sees. 12,000 together.
const DEFINITIONS: u64 = 60;
const HISTORIES: u64 = 200;

/// A small generator of our own: what a seed gives never changes.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
    fn of<'a>(&mut self, these: &[&'a str]) -> &'a str {
        these[self.roll(these.len() as u64) as usize]
    }
}

const TOOLS: [&str; 4] = ["look", "fetch", "write", "note"];

fn definition(seed: u64) -> Network {
    let mut dice = Dice(seed * 7_919 + 1);
    let mut yaml =
        "models: { default: scripted }\nstate: { note: { type: string, default: none } }\ntools:\n"
            .to_owned();
    for tool in TOOLS {
        let horizon = ["1", "2", "4", "{ own: 1 }", "{ own: 2 }", "{ own: 3 }"];
        let horizon = dice.of(&horizon);
        let beyond = dice.of(&[
            "beyond: drop",
            "beyond: stub",
            "beyond: summary",
            "beyond: summary, elide: [a]",
            "elide: [a, b]",
            r#"stub: "{{ args.a }} and {{ state.note }}""#,
            r#"stub: gone, elide: [b], result: "{{ result }} ({{ state.note }})""#,
            r#"beyond: drop, call: "I call with {{ args.a }} as {{ state.note }}.""#,
            r#"call: "I call with {{ args.a }}.""#,
        ]);
        let render = match dice.roll(5) {
            0 => String::new(),
            _ => format!(", render: {{ horizon: {horizon}, {beyond} }}"),
        };
        writeln!(
            yaml,
            "  {tool}: {{ description: T., parameters: {{ a: string, b: optional string }}, effect: read, native: 1{render} }}"
        )
        .expect("a text takes all");
    }
    let keep = dice.of(&["1", "2", "3", "6", "50"]);
    let compact = match dice.roll(3) {
        0 => String::new(),
        _ => ", compact: { when_tokens: 20, keep_exchanges: 1 }".to_owned(),
    };
    let now = dice.of(&["", r#", now: "Note: {{ state.note }}""#]);
    let parts = dice.of(&["", ", parts: [tools, system, history, now]"]);
    writeln!(
        yaml,
        "agents:\n  desk: {{ system: \"You help. {{{{ state.note }}}}\", tools: [{}], context: {{ keep_exchanges: {keep}{compact}{now}{parts} }} }}",
        TOOLS.join(", ")
    )
    .expect("a text takes all");
    network(&yaml)
}

/// What a provider demands of a conversation.
struct Rules {
    provider: &'static str,
    /// Results stand in the turn right behind their calls, all of them and nothing else before them.
    right_behind: bool,
    /// Turns of user and model alternate, once neighbours are joined, and a user begins: encoders see to that.
    alternate: bool,
    /// What the provider wants back goes back as it was, with just the calls that it was given with, or not at all.
    as_it_was: bool,
}

const PROVIDERS: [Rules; 4] = [
    Rules {
        provider: "OpenAI chat completions",
        right_behind: true,
        alternate: false,
        as_it_was: false,
    },
    Rules {
        provider: "OpenAI Responses",
        right_behind: false,
        alternate: false,
        as_it_was: true,
    },
    Rules {
        provider: "Anthropic Messages",
        right_behind: true,
        alternate: true,
        as_it_was: true,
    },
    Rules {
        provider: "Gemini",
        right_behind: true,
        alternate: true,
        as_it_was: true,
    },
];

/// What of a request breaks these rules.
fn faults(rules: &Rules, request: &Request) -> Vec<String> {
    let mut faults = Vec::new();
    let mut fault = |what: String| faults.push(format!("{}: {what}", rules.provider));
    let (mut owed, mut seen): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for segment in &request.segments {
        match &segment.content {
            Content::System(_) | Content::Tools(_) => {}
            Content::User(text) => {
                if rules.right_behind && !owed.is_empty() {
                    fault(format!("a message between a call and its result: {text}"));
                }
                if text.trim().is_empty() && rules.alternate {
                    fault("an empty message".to_owned());
                }
            }
            Content::Assistant {
                text,
                calls,
                opaque,
            } => {
                if rules.right_behind && !owed.is_empty() {
                    fault(format!("no result for {owed:?}"));
                }
                if text.is_none() && calls.is_empty() && opaque.is_none() {
                    fault("an answer that says nothing".to_owned());
                }
                for call in calls {
                    if seen.contains(&call.label) {
                        fault(format!("two calls are {}", call.label));
                    }
                    if !serde_json::from_str::<Json>(&call.args).is_ok_and(|args| args.is_object())
                    {
                        fault(format!("arguments that are no object: {}", call.args));
                    }
                    seen.push(call.label.clone());
                    owed.push(call.label.clone());
                }
                if let Some(opaque) = opaque.as_ref().filter(|_| rules.as_it_was) {
                    let kept: Json = serde_json::from_str(opaque).expect("as it was put in");
                    let given: Vec<Json> = calls
                        .iter()
                        .map(|c| {
                            json!([c.name, serde_json::from_str::<Json>(&c.args).expect("JSON")])
                        })
                        .collect();
                    if kept["calls"] != Json::Array(given) {
                        fault(format!("{opaque} goes back with other calls"));
                    }
                }
            }
            Content::Result { label, .. } => {
                let expected = if rules.right_behind {
                    owed.first()
                        .is_some_and(|first| first == label)
                        .then_some(0)
                } else {
                    owed.iter().position(|l| l == label)
                };
                match expected {
                    Some(at) => drop(owed.remove(at)),
                    None => fault(format!("a result without its call: {label}")),
                }
            }
        }
    }
    if !owed.is_empty() {
        fault(format!("no result for {owed:?} at the end"));
    }
    let turns = turns(request);
    if rules.alternate {
        if turns.first() != Some(&"user") {
            fault("no user begins".to_owned());
        }
        if turns.windows(2).any(|two| two[0] == two[1]) {
            fault("two turns of one side".to_owned());
        }
    }
    faults
}

/// Turns as encoders of alternating providers make them: neighbours are joined, and a user begins.
fn turns(request: &Request) -> Vec<&'static str> {
    let mut turns: Vec<&str> = Vec::new();
    for segment in &request.segments {
        let side = match &segment.content {
            Content::System(_) | Content::Tools(_) => continue,
            Content::User(_) | Content::Result { .. } => "user",
            Content::Assistant { .. } => "assistant",
        };
        if turns.is_empty() && side == "assistant" {
            turns.push("user");
        }
        if turns.last() != Some(&side) {
            turns.push(side);
        }
    }
    turns
}

/// A history in the making.
struct Story {
    log: Log,
    desk: Id,
    dice: Dice,
    open: Vec<Id>,
    saved: Vec<Snapshot>,
    cache: RenderCache,
}

impl Story {
    /// Begins anew in this log.
    fn new(mut log: Log, seed: u64) -> Self {
        log.lines.clear();
        log.snapshot = Snapshot::empty();
        let desk = log.start("desk", "Begin.");
        let saved = vec![log.snapshot.clone()];
        Self {
            log,
            desk,
            dice: Dice(seed * 104_729 + 3),
            open: Vec::new(),
            saved,
            cache: RenderCache::default(),
        }
    }

    fn args(&mut self) -> String {
        let b = self.dice.roll(3);
        let a = self.dice.roll(100);
        if b == 0 {
            format!(r#"{{"a":"{a}"}}"#)
        } else {
            format!(r#"{{"a":"{a}","b":"{b}{b}{b}"}}"#)
        }
    }

    fn answers(&mut self) {
        let calls: Vec<(&str, String)> = (0..self.dice.roll(4))
            .map(|_| {
                (
                    self.dice.of(&["look", "fetch", "write", "note", "nobody"]),
                    self.args(),
                )
            })
            .collect();
        let text = (calls.is_empty() || self.dice.roll(2) == 0).then_some("Well.");
        let opaque = (self.dice.roll(3) == 0).then(|| {
            let made: Vec<Json> = calls
                .iter()
                .map(|(name, args)| {
                    json!([name, serde_json::from_str::<Json>(args).expect("JSON")])
                })
                .collect();
            json!({ "thinking": "hm", "signature": "s", "calls": made }).to_string()
        });
        let partial = calls.is_empty() && self.dice.roll(5) == 0;
        let ends = self.dice.roll(3);
        let desk = self.desk;
        self.open = self.log.line(|l| {
            l.thought(desk, text, opaque.as_deref(), partial);
            let ids: Vec<Id> = calls
                .iter()
                .map(|(name, args)| l.call(desk, name, args))
                .collect();
            if ids.is_empty() {
                match ends {
                    _ if partial => drop(l.say(desk, "Stop.")),
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

    fn closes(&mut self) {
        let at = self.dice.roll(self.open.len() as u64) as usize;
        let call = self.open.remove(at);
        let (how, chains) = (self.dice.roll(6), self.dice.roll(6) == 0);
        let desk = self.desk;
        let next = self.log.line(|l| {
            match how {
                0 => l.failed(desk, call, "failed", "failed: no"),
                1 => {
                    let body = l.text("refused: not now");
                    l.push(
                        desk,
                        Interaction::Result(result(
                            call,
                            How::Refused,
                            Some(body),
                            Some("refused".into()),
                        )),
                    );
                }
                2 => l.push(
                    desk,
                    Interaction::Result(result(call, How::NotInThisBranch, None, None)),
                ),
                _ => l.result(desk, call, r#"{"x":"a result of some length"}"#),
            }
            l.grew(desk, 40);
            chains.then(|| l.chained(desk, "note", r#"{"a":"after"}"#, Some(call)))
        });
        self.open.extend(next);
    }

    fn step(&mut self) {
        let desk = self.desk;
        // A model that was asked to sum up answers before anything else does.
        if let Some(policy) = summing(&self.log.snapshot, desk) {
            let mark = self.log.snapshot.watermarks[&(desk, policy.clone())];
            let fails = self.dice.roll(3) == 0;
            if self.dice.roll(4) > 0 {
                self.log.line(|l| {
                    let (effect, body) = (l.id(), l.text("In short."));
                    let covers = Covers::Exchanges(if fails { mark } else { 0 }, mark);
                    l.push(
                        desk,
                        Interaction::Summary(Summary {
                            effect,
                            policy,
                            covers,
                            body,
                        }),
                    );
                });
            }
            return;
        }
        match self.dice.roll(10) {
            0..=5 if !self.open.is_empty() => self.closes(),
            0..=3 => self.answers(),
            6 if self.open.is_empty() => drop(self.log.line(|l| l.say(desk, "Go on."))),
            7 if self.open.is_empty() => {
                let name = self.dice.of(&["look", "note", "join"]);
                let target = Target::Tool(Class::Read);
                let call = self
                    .log
                    .line(|l| l.call_to(desk, name, r#"{"a":"engine"}"#, target, None).0);
                self.open.push(call);
            }
            8 => {
                let text = format!("\"{}\"", self.dice.roll(3));
                self.log.line(|l| l.write(desk, "note", &text));
            }
            9 if self.open.is_empty() && self.dice.roll(2) == 0 => {
                self.saved.push(self.log.snapshot.clone());
            }
            9 if self.dice.roll(4) == 0 => {
                let at = self.dice.roll(self.saved.len() as u64) as usize;
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

    fn ask(&self, cache: &mut RenderCache) -> Request {
        request(
            &self.log.cx(),
            &self.log,
            &self.log.snapshot,
            self.desk,
            cache,
        )
        .expect("templates render")
    }
}

/// 12,000 histories under 60 sets of policies: parallel calls, exchanges of the engine, corrections, partial messages, refusals,
/// what providers want back, rewinds; summaries that come, fail or are waited for.
#[test]
fn random_histories_under_random_policies_are_valid_and_do_not_depend_on_what_was_rendered_before()
{
    let (mut asked, mut stale, mut sums, mut compacted) = (0_u32, 0_u32, 0_u32, 0_u32);
    for of in 0..DEFINITIONS {
        let mut log = Log::of(definition(of));
        for n in 0..HISTORIES {
            let seed = of * HISTORIES + n;
            let mut story = Story::new(log, seed);
            let steps = 6 + story.dice.roll(18);
            for at in 0..steps {
                story.step();
                if story.dice.roll(4) > 0 && at + 1 < steps {
                    continue;
                }
                let mut cache = std::mem::take(&mut story.cache);
                let (warm, cold) = (
                    story.ask(&mut cache),
                    story.ask(&mut RenderCache::default()),
                );
                story.cache = cache;
                assert_eq!(
                    warm.digest, cold.digest,
                    "seed {seed}, step {at}: {:#?}\n{:#?}",
                    warm.segments, cold.segments
                );
                assert_eq!(
                    warm.purpose,
                    purpose(&story.log.cx(), &story.log.snapshot, story.desk)
                );
                for rules in &PROVIDERS {
                    let faults = faults(rules, &cold);
                    assert!(
                        faults.is_empty(),
                        "seed {seed}, step {at}: {faults:#?}\n{:#?}",
                        cold.segments
                    );
                }
                asked += 1;
                sums += u32::from(warm.purpose != Purpose::Answer);
            }
            let marks = story.log.snapshot.watermarks.keys();
            stale += u32::from(marks.filter(|(_, policy)| policy.contains('/')).count() > 0);
            let state = story.log.snapshot.agent(story.desk);
            compacted += u32::from(state.sums.get(COMPACT).is_some_and(|sum| sum.covered > 0));
            assert_eq!(story.cache.differed(), 0);
            log = story.log;
        }
    }
    // Histories in which nothing grows old prove nothing.
    assert!(
        asked > 30_000 && stale > 3_000 && sums > 1_000 && compacted > 1_000,
        "{asked} requests, {stale} histories with boundaries, {sums} for summaries, {compacted} compacted"
    );
}
