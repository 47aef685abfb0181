//! Lowers the tests of a definition.

use super::super::diagnostic::Diagnostic;
use super::super::shape;
use super::super::site::{Scope, Wants};
use super::super::source::{self, Node, Value};
use super::super::test::{
    Act, Answer, Expect, Gives, Kill, Remembered, Resolve, Script, Step, Test, ToolOutcome,
};
use super::{Lower, Sort, builtin, duration, flag, sorted, text, whole, word};
use std::collections::BTreeMap;
use steersman_machine::stored::built_in::BuiltIn;
use steersman_machine::stored::ids::Name;
use steersman_machine::view::rating::BEST;

fn number(node: &Node) -> Option<f64> {
    match node.scalar()?.kind {
        source::Kind::Integer(value) => Some(value as f64),
        source::Kind::Number(value) => Some(value),
        _ => None,
    }
}

/// Keys of a step that say what happens; a step may have at most one of them.
const ACTS: [&str; 14] = [
    "event",
    "answer",
    "approve",
    "reject",
    "resolve",
    "interrupt",
    "cancel",
    "fork",
    "rewind",
    "adopt",
    "join",
    "advance",
    "kill",
    "resume",
];

/// Keys of a step in which a person acts on a branch. Other steps take neither `role` nor `at`; expectations are about the
/// current branch.
const SPEAKS: &[&str] = &[
    "say",
    "answer",
    "approve",
    "reject",
    "resolve",
    "interrupt",
    "cancel",
];

/// Expectations that need the key `is`.
const SUBJECTS: &[&str] = &[
    "stack",
    "speakers",
    "modes",
    "states",
    "model_calls",
    "offered",
    "saw",
    "unseen",
];

impl Lower<'_> {
    pub(super) fn tests(&mut self) -> BTreeMap<String, Test> {
        let merged = self.merged;
        let mut tests = BTreeMap::new();
        for (key, node) in &merged.tests {
            let test = self.test(node);
            tests.insert(key.name.to_string(), test);
        }
        tests
    }

    fn test(&mut self, node: &Node) -> Test {
        let scope = Scope {
            item: Some(node.span),
            answer: true,
            outcome: true,
            ..Scope::default()
        };
        Test {
            entry: node
                .get("entry")
                .and_then(|node| self.named(node, Sort::Agent)),
            seed: node.get("seed").and_then(whole).unwrap_or(1),
            script: self.script(node.get("script"), &scope),
            tools: self.tool_outcomes(node.get("tools")),
            memory: node
                .get("memory")
                .map(Node::items)
                .unwrap_or_default()
                .iter()
                .map(|node| self.remembered(node))
                .collect(),
            steps: node
                .get("steps")
                .map(Node::items)
                .unwrap_or_default()
                .iter()
                .map(|node| self.step(node, &scope))
                .collect(),
            expect: self.expects(node.get("expect"), &scope),
        }
    }

    fn remembered(&mut self, node: &Node) -> Remembered {
        let texts = |node: &Node| {
            node.items()
                .iter()
                .filter_map(Node::as_text)
                .map(ToString::to_string)
                .collect()
        };
        let rating = node.get("rating");
        let stars = rating.and_then(whole).and_then(|n| u8::try_from(n).ok());
        if let Some(node) = rating
            && stars.is_none_or(|n| n > BEST)
        {
            let at = self.place(node.span);
            let text = node.scalar().map_or("", |scalar| &*scalar.text);
            self.say(Diagnostic::malformed(at, text, "a rating from 1 to 5"));
        }
        Remembered {
            name: text(node, "name").unwrap_or_default(),
            content: text(node, "content").unwrap_or_default(),
            scope: text(node, "scope"),
            tags: node.get("tags").map(texts).unwrap_or_default(),
            rating: stars,
        }
    }

    fn script(&mut self, node: Option<&Node>, scope: &Scope) -> Script {
        let Some(node) = node else {
            return Script::default();
        };
        if node.scalar().is_none() {
            return self.answers(node, scope);
        }
        let Some((path, text)) = self.script_file(node) else {
            return Script::default();
        };
        let Some(node) = source::parse(self.sources, &path, &text, self.found) else {
            return Script::default();
        };
        let traps = shape::data(self.sources, &node);
        self.found.extend(traps);
        match &node.value {
            Value::Map(_) => self.answers(&node, scope),
            Value::List(_) | Value::Scalar(_) => {
                let at = self.place(node.span);
                self.say(Diagnostic::wrong_kind(
                    at,
                    "a map from agents to answers",
                    node.kind_word(),
                ));
                Script::default()
            }
        }
    }

    /// Reads the file of a script. Like tests, scripts are not part of the stored form.
    fn script_file(&mut self, node: &Node) -> Option<(String, std::sync::Arc<str>)> {
        let found = self.file(node)?;
        self.out.files.remove(&found.0);
        if let Some(by) = self.sources.path(node.span) {
            let owners = self.out.scripts.entry(found.0.clone()).or_default();
            owners.insert(by.to_string());
        }
        Some(found)
    }

    fn answers(&mut self, node: &Node, scope: &Scope) -> Script {
        let mut script = BTreeMap::new();
        for (key, answers) in node.entries() {
            self.script_key(key.span, &key.name);
            let answers = answers.items().iter();
            let answers = answers.map(|node| self.answer(node, scope)).collect();
            script.insert(key.name.to_string(), answers);
        }
        Script(script)
    }

    /// Checks the agent that a key of a script or an expectation names.
    fn script_key(&mut self, span: source::Span, key: &str) {
        let agent = key.split(['@', '#', '/']).next().unwrap_or_default();
        let known = self.out.declared.contains_key(agent);
        if !known {
            let names = self.out.declared.keys().map(|name| &**name);
            let near = self.sources.near(agent, names).map(str::to_owned);
            let at = self.place(span);
            self.say(Diagnostic::unknown_name(
                at,
                "agent",
                agent,
                near.as_deref(),
            ));
        }
    }

    fn answer(&mut self, node: &Node, scope: &Scope) -> Answer {
        let scope = Scope {
            item: scope.item,
            request: true,
            ..Scope::default()
        };
        let mut answer = Answer::default();
        if node.scalar().is_some() {
            answer.text = self.template(node, Wants::Text, &scope);
            return answer;
        }
        for (key, value) in node.entries() {
            match &*key.name {
                "text" => answer.text = self.template(value, Wants::Text, &scope),
                "output" => answer.output = Some(value.to_json()),
                "any" => {
                    let answers = value.items().iter();
                    answer.any = answers.map(|one| (1.0, self.answer(one, &scope))).collect();
                }
                "weights" => self.weights(node, value),
                "accept" => answer.accept = flag(node, "accept"),
                "revise" => answer.revise = text(node, "revise"),
                "error" => answer.error = text(node, "error"),
                "call" => {
                    let one = std::slice::from_ref(value);
                    let calls = if value.items().is_empty() {
                        one
                    } else {
                        value.items()
                    };
                    for (tool, args) in calls.iter().flat_map(Node::entries) {
                        answer.calls.push((tool.name.to_string(), args.to_json()));
                    }
                }
                other => {
                    let known = [
                        "text", "call", "output", "accept", "revise", "error", "any", "weights",
                    ];
                    let near = self.sources.near(other, known);
                    let at = self.place(key.span);
                    let words = shape::list_of(known);
                    self.say(Diagnostic::unknown_key(
                        at,
                        other,
                        "a scripted answer",
                        near,
                        &words,
                    ));
                }
            }
        }
        let weights = node.get("weights").map(Node::items).unwrap_or_default();
        for ((weight, _), node) in answer.any.iter_mut().zip(weights) {
            *weight = number(node).unwrap_or(1.0);
        }
        answer
    }

    /// Checks weights: one for each answer of `any`, none below 0, and not all of them 0.
    fn weights(&mut self, answer: &Node, weights: &Node) {
        let wanted = answer.get("any").map_or(0, |any| any.items().len());
        let numbers = weights.items().iter().filter_map(number);
        let numbers: Vec<f64> = numbers.filter(|n| *n >= 0.0).collect();
        if numbers.len() != wanted || numbers.iter().sum::<f64>() <= 0.0 {
            let at = self.place(weights.span);
            let what =
                format!("a list of {wanted} numbers, one for each answer of `any`, not all 0,");
            self.say(Diagnostic::wrong_kind(at, &what, weights.kind_word()));
        }
    }

    fn tool_outcomes(&mut self, node: Option<&Node>) -> BTreeMap<Name, Vec<ToolOutcome>> {
        let mut all = BTreeMap::new();
        for (key, outcomes) in sorted(node) {
            let is_tool = self
                .out
                .declared
                .get(&key.name)
                .is_some_and(|declared| declared.sort == Sort::Tool)
                || self.of_server(&key.name)
                // the results of these built-in tools depend on data outside the session
                || BuiltIn::named(&key.name).is_some_and(|tool| {
                    builtin::may_be_played(tool) && self.out.builtins.contains(&tool)
                });
            if !is_tool {
                let names = self.out.declared.iter();
                let tools = names
                    .filter(|(_, d)| d.sort == Sort::Tool)
                    .map(|(name, _)| &**name);
                let near = self.sources.near(&key.name, tools).map(str::to_owned);
                let at = self.place(key.span);
                self.say(Diagnostic::unknown_name(
                    at,
                    "tool",
                    &key.name,
                    near.as_deref(),
                ));
            }
            let outcomes = outcomes.items().iter().map(tool_outcome).collect();
            all.insert(key.name.clone(), outcomes);
        }
        all
    }

    fn step(&mut self, node: &Node, scope: &Scope) -> Step {
        let mut acts = node
            .entries()
            .iter()
            .filter(|(key, _)| ACTS.contains(&&*key.name))
            .map(|(key, _)| key);
        if let (Some(first), Some(second)) = (acts.next(), acts.next()) {
            let (at, other) = (self.place(second.span), self.place(first.span));
            let keys = shape::list_of(ACTS);
            self.say(Diagnostic::not_together(at, "a step", &keys, other));
        }
        for (key, others, of) in [
            ("edit", &["approve"][..], "a step without `approve`"),
            (
                "as",
                &["fork", "rewind"],
                "a step without `fork` or `rewind`",
            ),
            (
                "from",
                &["fork", "rewind"],
                "a step without `fork` or `rewind`",
            ),
            ("on", &["join"], "a step without `join`"),
            ("then", &["join"], "a step without `join`"),
            ("at", SPEAKS, "a step that does nothing on a branch"),
            ("role", SPEAKS, "a step that nobody in particular does"),
        ] {
            self.needs(node, key, others, of);
        }
        let speaks = ["fork", "rewind", "reject"];
        let acts = node
            .entries()
            .iter()
            .any(|(key, _)| ACTS.contains(&&*key.name));
        if !acts {
            self.needs(node, "refused", &["say"], "a step in which nothing is done");
        }
        if acts {
            self.needs(node, "say", &speaks, "a step that does something else");
        }
        Step {
            act: self.act(node, scope),
            at: text(node, "at"),
            role: text(node, "role").map(Into::into),
            refused: flag(node, "refused"),
            script: node
                .get("script")
                .map(|node| self.script(Some(node), scope)),
            expect: self.expects(node.get("expect"), scope),
        }
    }

    fn act(&mut self, node: &Node, scope: &Scope) -> Option<Act> {
        let say = text(node, "say");
        if let Some(branch) = text(node, "fork") {
            return Some(Act::Fork {
                branch,
                name: text(node, "as"),
                from: text(node, "from"),
                say,
            });
        }
        if let Some(branch) = text(node, "rewind") {
            return Some(Act::Rewind {
                branch,
                name: text(node, "as"),
                from: text(node, "from"),
                say,
            });
        }
        if let Some(tool) = text(node, "reject") {
            return Some(Act::Reject {
                tool: tool.into(),
                reason: say,
            });
        }
        if let Some(tool) = text(node, "approve") {
            return Some(Act::Approve {
                tool: tool.into(),
                edit: node.get("edit").map(Node::to_json),
                repeat: flag(node, "repeat"),
            });
        }
        if let Some((key, fields)) = node.get("event").and_then(|node| node.entries().first()) {
            let merged = self.merged;
            let events = || merged.section("events").iter().map(|(key, _)| &*key.name);
            if !events().any(|name| name == &*key.name) {
                let near = self.sources.near(&key.name, events());
                let at = self.place(key.span);
                self.say(Diagnostic::unknown_name(at, "event", &key.name, near));
            }
            return Some(Act::Event {
                name: key.name.clone(),
                fields: fields.to_json(),
            });
        }
        if let Some((key, how)) = node.get("resolve").and_then(|node| node.entries().first()) {
            return Some(Act::Resolve {
                tool: key.name.clone(),
                to: match how.as_text().map(|text| &**text) {
                    Some("done") => Resolve::Done,
                    Some("not_performed") => Resolve::NotPerformed,
                    _ => Resolve::Fail,
                },
            });
        }
        if let Some(branches) = node.get("join") {
            let branches = branches.items().iter();
            return Some(Act::Join {
                branches: branches
                    .filter_map(|node| node.as_text().map(ToString::to_string))
                    .collect(),
                on: node
                    .get("on")
                    .and_then(|node| self.join_on(node))
                    .unwrap_or_default(),
                then: self.then(node.get("then"), &scope.with_result()),
            });
        }
        if let Some(kill) = node.get("kill") {
            let line = kill.as_text().and_then(|text| text.parse().ok());
            if line.is_none() && kill.as_text().is_none_or(|text| &**text != "random") {
                let at = self.place(kill.span);
                let found = kill.as_text().map_or("nothing", |text| &**text);
                self.say(Diagnostic::malformed(
                    at,
                    found,
                    "`random` or the number of a line",
                ));
            }
            return Some(Act::Kill(line.map_or(Kill::Random, Kill::Line)));
        }
        if flag(node, "resume") {
            return Some(Act::Resume);
        }
        text(node, "answer")
            .map(Act::Answer)
            .or_else(|| text(node, "interrupt").map(Act::Interrupt))
            .or_else(|| text(node, "cancel").map(Act::Cancel))
            .or_else(|| text(node, "adopt").map(Act::Adopt))
            .or_else(|| duration(node, "advance").map(Act::Advance))
            .or_else(|| say.map(Act::Say))
    }

    fn expects(&mut self, node: Option<&Node>, scope: &Scope) -> Vec<Expect> {
        let nodes = node.map(Node::items).unwrap_or_default();
        nodes
            .iter()
            .flat_map(|node| self.expect(node, scope))
            .collect()
    }

    fn expect(&mut self, node: &Node, scope: &Scope) -> Vec<Expect> {
        let mut all = Vec::new();
        self.needs(node, "is", SUBJECTS, "this expectation");
        let is = node.get("is");
        let names = || -> Vec<String> {
            let nodes = is.map(Node::items).unwrap_or_default().iter();
            nodes
                .filter_map(|node| node.as_text().map(ToString::to_string))
                .collect()
        };
        for (key, value) in node.entries() {
            let agent = || text(node, &key.name).unwrap_or_default();
            let subject = SUBJECTS.contains(&&*key.name);
            if subject {
                if agent() != "all" || &*key.name != "model_calls" {
                    self.script_key(value.span, &agent());
                }
                if is.is_none() {
                    let at = self.place(key.span);
                    self.say(Diagnostic::missing_key(at, "this expectation", "is"));
                }
            }
            match &*key.name {
                "stack" => {
                    let letters = is
                        .and_then(Node::as_text)
                        .map(|text| text.split_whitespace());
                    let letters: Vec<&str> = letters.into_iter().flatten().collect();
                    let (agent, is) = (agent(), letters.join(" "));
                    all.push(Expect::Stack { agent, is });
                }
                "speakers" => all.push(Expect::Speakers {
                    agent: agent(),
                    is: names(),
                }),
                "modes" => all.push(Expect::Modes {
                    agent: agent(),
                    is: names(),
                }),
                "states" => all.push(Expect::States {
                    agent: agent(),
                    is: names(),
                }),
                "model_calls" => {
                    let number = is.and_then(whole);
                    if let (None, Some(is)) = (number, is) {
                        let at = self.place(is.span);
                        self.say(Diagnostic::wrong_kind(at, "a whole number", is.kind_word()));
                    }
                    let is = number.unwrap_or_default();
                    all.push(Expect::ModelCalls { agent: agent(), is });
                }
                "offered" => all.push(Expect::Offered {
                    agent: agent(),
                    is: is
                        .map(Node::items)
                        .unwrap_or_default()
                        .iter()
                        .map(words)
                        .collect(),
                }),
                "saw" | "unseen" => all.push(Expect::Saw {
                    agent: agent(),
                    call: node.get("call").and_then(whole),
                    texts: is.map(words).unwrap_or_default(),
                    not: &*key.name == "unseen",
                }),
                "answer" => all.extend(text(node, "answer").map(Expect::Answer)),
                "that" => all.extend(self.expr(value, Wants::Value, scope).map(Expect::That)),
                "branches" => all.extend(whole(value).map(Expect::Branches)),
                "open" => {
                    let open = value.items().iter();
                    let open = open.filter_map(|node| node.as_text().map(ToString::to_string));
                    all.push(Expect::Open(open.collect()));
                }
                "same_as" => all.push(Expect::Undisturbed),
                _ => {}
            }
        }
        all
    }
}

/// Returns a text as one item, or the texts of a list.
fn words(node: &Node) -> Vec<String> {
    let all = match node.as_text() {
        Some(text) => return vec![text.to_string()],
        None => node.items().iter(),
    };
    all.filter_map(|node| node.as_text().map(ToString::to_string))
        .collect()
}

/// Parses an outcome: `{ error, message }`, `{ unknown: true }` or `{ after, result }`; anything else is the result itself.
fn tool_outcome(node: &Node) -> ToolOutcome {
    let known = ["error", "message", "unknown", "after", "result"];
    let special = !node.entries().is_empty()
        && node
            .entries()
            .iter()
            .all(|(key, _)| known.contains(&&*key.name))
        && ["error", "unknown", "after"]
            .iter()
            .any(|key| node.get(key).is_some());
    if !special {
        return ToolOutcome {
            after: None,
            gives: Gives::Result(node.to_json()),
        };
    }
    let gives = match word(node, "error") {
        Some(code) => Gives::Error {
            code: code.to_owned(),
            message: text(node, "message").unwrap_or_default(),
        },
        None if flag(node, "unknown") => Gives::Unknown,
        None => Gives::Result(
            node.get("result")
                .map_or(serde_json::Value::Null, Node::to_json),
        ),
    };
    ToolOutcome {
        after: duration(node, "after"),
        gives,
    }
}
