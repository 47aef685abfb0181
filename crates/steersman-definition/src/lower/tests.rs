//! Lowers the tests of a definition.

use super::super::diagnostic::Diagnostic;
use super::super::grade::JUDGE;
use super::super::keys::Section as _;
use super::super::keys::kinds::{self, List, Map, Or, Read as _, Real, Valued, each, sorted};
use super::super::keys::test as keys;
use super::super::site::{Scope, Wants};
use super::super::source::{Key, Node, Value};
use super::super::test::{
    Act, Answer, Expect, Gives, Kill, Remembered, Resolve, Script, Step, Test, ToolOutcome,
};
use super::super::{shape, source};
use super::{Lower, Sort};
use std::collections::BTreeMap;
use steersman_machine::stored::built_in::BuiltIn;
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::interaction::Class;
use steersman_machine::stored::outcome::NewWrite;
use steersman_machine::tick::history::ChatHistory;
use steersman_machine::view::rating::BEST;

impl Lower<'_> {
    pub(super) fn tests(&mut self) -> BTreeMap<String, Test> {
        each(self.file.tests())
            .map(|(key, test)| (key.name.to_string(), self.test(test)))
            .collect()
    }

    fn test(&mut self, test: keys::Test<'_>) -> Test {
        let scope = Scope {
            item: Some(test.0.span),
            answer: true,
            outcome: true,
            ..Scope::default()
        };
        let entry = test.entry();
        Test {
            entry: entry.and_then(|name| self.named(&name, Sort::Agent)),
            seed: test.seed().value,
            script: self.script(test.script(), &scope),
            tools: self.tool_outcomes(test.tools()),
            memory: each(test.memory()).map(|of| self.remembered(of)).collect(),
            history: self.history(test.history()),
            steps: each(test.steps())
                .map(|step| self.step(step, &scope))
                .collect(),
            expect: self.expects(test.expect(), &scope),
        }
    }

    fn history(&mut self, written: Option<List<'_, kinds::Any<'_>>>) -> ChatHistory {
        let messages: Vec<kinds::Any<'_>> = each(written).collect();
        let read = ChatHistory::from_messages(messages.iter().map(|message| message.to_json()));
        read.unwrap_or_else(|unfit| {
            let at = unfit.message.saturating_sub(1);
            if let Some(message) = messages.get(at) {
                let at = self.place(message.0.span);
                self.say(Diagnostic::no_message(at, &unfit.to_string(), &unfit.fix));
            }
            ChatHistory::default()
        })
    }

    fn remembered(&mut self, of: keys::Remembered<'_>) -> Remembered {
        let rating = of.rating();
        let stars = rating.and_then(|rating| u8::try_from(rating.value()?).ok());
        if let Some(rating) = rating.filter(|_| stars.is_none_or(|n| n > BEST)) {
            let at = self.place(rating.0.span);
            let text = rating.0.scalar().map_or("", |scalar| &*scalar.text);
            self.say(Diagnostic::malformed(at, text, "a rating from 1 to 5"));
        }
        Remembered {
            name: of.name().and_then(Valued::value).unwrap_or_default(),
            content: of.content().and_then(Valued::value).unwrap_or_default(),
            scope: of.scope().and_then(Valued::value),
            tags: of.tags().and_then(Valued::value).unwrap_or_default(),
            rating: stars,
        }
    }

    fn script(
        &mut self,
        written: Option<Or<keys::Answers<'_>, kinds::Path<'_>>>,
        scope: &Scope,
    ) -> Script {
        let path = match written {
            None => return Script::default(),
            Some(Or::One(answers)) => return self.answers(answers, scope),
            Some(Or::Other(path)) => path,
        };
        let Some((path, text)) = self.script_file(&path) else {
            return Script::default();
        };
        let Some(node) = source::parse(self.sources, &path, &text, self.found) else {
            return Script::default();
        };
        let traps = shape::data(self.sources, &node);
        self.found.extend(traps);
        match &node.value {
            Value::Map(_) => self.answers(Map::read(&node), scope),
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
        let found = self.text_of_file(node)?;
        self.out.files.remove(&found.0);
        if let Some(by) = self.sources.path(node.span) {
            let owners = self.out.scripts.entry(found.0.clone()).or_default();
            owners.insert(by.to_string());
        }
        Some(found)
    }

    fn answers(&mut self, written: keys::Answers<'_>, scope: &Scope) -> Script {
        let mut script = BTreeMap::new();
        for (key, answers) in written {
            self.script_key(key.span, &key.name);
            let answers = answers.into_iter();
            let answers = answers.map(|one| self.answer(one.0, scope)).collect();
            script.insert(key.name.to_string(), answers);
        }
        Script(script)
    }

    /// Checks the agent that a key of a script or an expectation names.
    fn script_key(&mut self, span: source::Span, key: &str) {
        if let Some(grade) = key.strip_prefix(JUDGE) {
            let grades = || each(self.file.grades()).map(|(key, _)| &*key.name);
            if !grades().any(|known| known == grade) {
                let near = self.sources.near(grade, grades()).map(str::to_owned);
                let at = self.place(span);
                self.say(Diagnostic::unknown_name(
                    at,
                    "grade",
                    grade,
                    near.as_deref(),
                ));
            }
            return;
        }
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
        if node.scalar().is_some() {
            return Answer {
                text: self.template(node, Wants::Text, &scope),
                ..Answer::default()
            };
        }
        let written = keys::Answer(node);
        let table = keys::Answer::table();
        for (key, _) in node
            .entries()
            .iter()
            .filter(|(key, _)| table.key(&key.name).is_none())
        {
            let known = || table.keys.iter().map(|key| key.name);
            let near = self.sources.near(&key.name, known());
            let at = self.place(key.span);
            let words = shape::list_of(known());
            self.say(Diagnostic::unknown_key(
                at,
                &key.name,
                table.words,
                near,
                &words,
            ));
        }
        let any = each(written.any()).map(|one| (1.0, self.answer(one.0, &scope)));
        let mut any: Vec<(f64, Answer)> = any.collect();
        if let Some(weights) = written.weights() {
            self.weights(any.len(), weights);
        }
        for ((weight, _), number) in any.iter_mut().zip(each(written.weights())) {
            *weight = number.value().unwrap_or(1.0);
        }
        let calls = each(written.call()).flatten();
        Answer {
            text: self.text_of(written.text(), &scope),
            calls: calls
                .map(|(tool, args)| (tool.name.to_string(), args.to_json()))
                .collect(),
            output: written.output().map(|output| output.to_json()),
            accept: written.accept().value,
            revise: written.revise().and_then(Valued::value),
            error: written.error().and_then(Valued::value),
            any,
        }
    }

    /// Checks weights: one for each answer of `any`, none below 0, and not all of them 0.
    fn weights(&mut self, wanted: usize, weights: List<'_, Real<'_>>) {
        let numbers = weights.into_iter().filter_map(Valued::value);
        let numbers: Vec<f64> = numbers.filter(|n| *n >= 0.0).collect();
        if numbers.len() != wanted || numbers.iter().sum::<f64>() <= 0.0 {
            let at = self.place(weights.0.span);
            let what =
                format!("a list of {wanted} numbers, one for each answer of `any`, not all 0,");
            self.say(Diagnostic::wrong_kind(at, &what, weights.0.kind_word()));
        }
    }

    fn tool_outcomes(
        &mut self,
        written: Option<keys::Answers<'_>>,
    ) -> BTreeMap<Name, Vec<ToolOutcome>> {
        let mut all = BTreeMap::new();
        for (key, outcomes) in sorted(written) {
            let is_tool = self
                .out
                .declared
                .get(&key.name)
                .is_some_and(|declared| declared.sort == Sort::Tool)
                || self.of_server(&key.name)
                // the results of these built-in tools depend on data outside the session
                || BuiltIn::named(&key.name).is_some_and(|tool| {
                    tool.class() != Class::Pure && self.out.builtins.contains(&tool)
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
            let outcomes = outcomes
                .into_iter()
                .map(|one| tool_outcome(one.0))
                .collect();
            all.insert(key.name.clone(), outcomes);
        }
        all
    }

    fn step(&mut self, step: keys::Step<'_>, scope: &Scope) -> Step {
        let acts = keys::Step::table().one_of.iter();
        let acts: Vec<&str> = acts.flat_map(|(_, acts)| *acts).copied().collect();
        let acts = |(key, _): &(Key, Node)| acts.contains(&&*key.name);
        let acts = step.0.entries().iter().any(acts);
        self.meaningful_keys(step);
        if acts {
            let speaks = ["fork", "rewind", "reject"];
            self.means_with(step, "say", &speaks, "a step that does something else");
            self.meaningless(step, "state", "a step that does something else");
        } else {
            let acts = ["say", "state"];
            self.means_with(step, "refused", &acts, "a step in which nothing is done");
        }
        let script = step.script();
        Step {
            act: self.act(step, scope),
            at: step.at().and_then(Valued::value),
            role: step.role().and_then(|role| role.text().cloned()),
            sets: self.sets(step),
            refused: step.refused().value,
            script: script.map(|script| self.script(Some(Or::One(script)), scope)),
            expect: self.expects(step.expect(), scope),
        }
    }

    fn act(&mut self, step: keys::Step<'_>, scope: &Scope) -> Option<Act> {
        let text = |key: Option<kinds::Text<'_>>| key.and_then(Valued::value);
        let say = text(step.say());
        if let Some(branch) = text(step.fork()) {
            return Some(Act::Fork {
                branch,
                name: text(step.seen()),
                from: text(step.from()),
                say,
            });
        }
        if let Some(branch) = text(step.rewind()) {
            return Some(Act::Rewind {
                branch,
                name: text(step.seen()),
                from: text(step.from()),
                say,
            });
        }
        if let Some(tool) = text(step.reject()) {
            return Some(Act::Reject {
                tool: tool.into(),
                reason: say,
            });
        }
        if let Some(tool) = text(step.approve()) {
            return Some(Act::Approve {
                tool: tool.into(),
                edit: step.edit().map(|edit| edit.0.to_json()),
                repeat: step.repeat().value,
            });
        }
        if let Some((key, fields)) = each(step.event()).next() {
            let events = || each(self.file.events()).map(|(key, _)| &*key.name);
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
        if let Some((key, how)) = each(step.resolve()).next() {
            return Some(Act::Resolve {
                tool: key.name.clone(),
                to: how.value().unwrap_or(Resolve::Fail),
            });
        }
        if let Some(branches) = step.join() {
            let on = step.on();
            return Some(Act::Join {
                branches: branches.value().unwrap_or_default(),
                on: on
                    .and_then(|on| self.join_on(on.node()))
                    .unwrap_or_default(),
                then: self.then(step.then(), &scope.with_result()),
            });
        }
        if let Some(kill) = step.kill() {
            return Some(Act::Kill(self.kill(kill)));
        }
        if step.resume().value {
            return Some(Act::Resume);
        }
        text(step.answer())
            .map(Act::Answer)
            .or_else(|| text(step.interrupt()).map(Act::Interrupt))
            .or_else(|| text(step.cancel()).map(Act::Cancel))
            .or_else(|| text(step.adopt()).map(Act::Adopt))
            .or_else(|| step.advance()?.value().map(Act::Advance))
            .or_else(|| say.map(Act::Say))
            .or_else(|| step.state().map(|_| Act::Edit))
    }

    /// Returns the entries of state that a person sets in a step, and reports those that nothing declares.
    fn sets(&mut self, step: keys::Step<'_>) -> Vec<NewWrite> {
        let mut sets = Vec::new();
        for (key, value) in each(step.state()) {
            let all: Vec<Name> = self
                .file
                .all_state()
                .map(|(key, _)| key.name.clone())
                .collect();
            if !all.contains(&key.name) {
                let near = self.sources.near(&key.name, all.iter().map(|name| &**name));
                let near = near.map(str::to_owned);
                let at = self.place(key.span);
                let name = &key.name;
                self.say(Diagnostic::unknown_state(at, name, near.as_deref()));
            }
            let value = value.to_json();
            sets.push(NewWrite {
                name: key.name.to_string(),
                value: (!value.is_null()).then_some(value),
                seal: false,
            });
        }
        sets
    }

    fn kill(&mut self, written: kinds::Text<'_>) -> Kill {
        let text = written.text();
        let line = text.and_then(|text| text.parse().ok());
        if line.is_none() && text.is_none_or(|text| &**text != "random") {
            let at = self.place(written.span);
            let found = text.map_or("nothing", |text| &**text);
            let wanted = "`random` or the number of a line";
            self.say(Diagnostic::malformed(at, found, wanted));
        }
        line.map_or(Kill::Random, Kill::Line)
    }

    fn expects(
        &mut self,
        written: Option<List<'_, keys::Expect<'_>>>,
        scope: &Scope,
    ) -> Vec<Expect> {
        each(written)
            .flat_map(|expect| self.expect(expect, scope))
            .collect()
    }

    fn expect(&mut self, expect: keys::Expect<'_>, scope: &Scope) -> Vec<Expect> {
        self.meaningful_keys(expect);
        let is = expect.is().map(|is| is.0);
        let names = || {
            is.and_then(|is| List::<kinds::Text<'_>>::read(is).value())
                .unwrap_or_default()
        };
        let mut all = Vec::new();
        if let Some(agent) = self.subject(expect.stack(), "stack", expect) {
            let letters = is
                .and_then(Node::as_text)
                .map(|text| text.split_whitespace());
            let letters: Vec<&str> = letters.into_iter().flatten().collect();
            let is = letters.join(" ");
            all.push(Expect::Stack { agent, is });
        }
        if let Some(agent) = self.subject(expect.speakers(), "speakers", expect) {
            all.push(Expect::Speakers { agent, is: names() });
        }
        if let Some(agent) = self.subject(expect.modes(), "modes", expect) {
            all.push(Expect::Modes { agent, is: names() });
        }
        if let Some(agent) = self.subject(expect.states(), "states", expect) {
            all.push(Expect::States { agent, is: names() });
        }
        if let Some(agent) = self.subject(expect.model_calls(), "model_calls", expect) {
            let number = is.and_then(kinds::whole);
            if let (None, Some(is)) = (number, is) {
                let at = self.place(is.span);
                self.say(Diagnostic::wrong_kind(at, "a whole number", is.kind_word()));
            }
            let is = number.unwrap_or_default();
            all.push(Expect::ModelCalls { agent, is });
        }
        if let Some(agent) = self.subject(expect.offered(), "offered", expect) {
            let is = is.map(Node::items).unwrap_or_default().iter().map(words);
            let is = is.collect();
            all.push(Expect::Offered { agent, is });
        }
        for (key, not) in [(expect.saw(), false), (expect.unseen(), true)] {
            if let Some(agent) = self.subject(key, if not { "unseen" } else { "saw" }, expect) {
                all.push(Expect::Saw {
                    agent,
                    call: expect.call().and_then(Valued::value),
                    texts: is.map(words).unwrap_or_default(),
                    not,
                });
            }
        }
        all.extend(expect.answer().and_then(Valued::value).map(Expect::Answer));
        if let Some(that) = expect.that() {
            all.extend(self.expr(&that, Wants::Value, scope).map(Expect::That));
        }
        all.extend(
            expect
                .branches()
                .and_then(Valued::value)
                .map(Expect::Branches),
        );
        all.extend(expect.open().and_then(Valued::value).map(Expect::Open));
        all.extend(expect.same_as().map(|_| Expect::Undisturbed));
        all
    }

    /// Returns the agent of an expectation that needs the key `is`; reports unknown agents and a missing `is`.
    fn subject(
        &mut self,
        written: Option<kinds::Text<'_>>,
        key: &str,
        expect: keys::Expect<'_>,
    ) -> Option<String> {
        let written = written?;
        let agent = written.value().unwrap_or_default();
        if agent != "all" || key != "model_calls" {
            self.script_key(written.span, &agent);
        }
        if expect.is().is_none() {
            let mut entries = expect.0.entries().iter();
            let at = entries.find(|(known, _)| &*known.name == key);
            let at = at.and_then(|(key, _)| self.place(key.span));
            self.say(Diagnostic::missing_key(at, "this expectation", "is"));
        }
        Some(agent)
    }
}

/// Returns a text as one item, or the texts of a list.
fn words(node: &Node) -> Vec<String> {
    let texts = kinds::Many::<kinds::Text<'_>>::read(node).into_iter();
    texts.filter_map(Valued::value).collect()
}

/// Parses an outcome: `{ error, message }`, `{ unknown: true }` or `{ after, artifacts, result }`; anything else is the result
/// itself.
fn tool_outcome(node: &Node) -> ToolOutcome {
    let outcome = keys::Outcome(node);
    let table = keys::Outcome::table();
    let known = node
        .entries()
        .iter()
        .all(|(key, _)| table.key(&key.name).is_some());
    let (error, after) = (outcome.error(), outcome.after());
    let makes = each(outcome.artifacts());
    let makes = makes.filter_map(|(key, text)| Some((key.name.to_string(), text.value()?)));
    let makes: Vec<(String, String)> = makes.collect();
    let special = error.is_some() || outcome.unknown().at.is_some() || after.is_some();
    if !known || !special && makes.is_empty() {
        return ToolOutcome {
            after: None,
            makes: Vec::new(),
            gives: Gives::Result(node.to_json()),
        };
    }
    let gives = match error.and_then(Valued::value) {
        Some(code) => Gives::Error {
            code,
            message: outcome
                .message()
                .and_then(Valued::value)
                .unwrap_or_default(),
        },
        None if outcome.unknown().value => Gives::Unknown,
        None => {
            let result = outcome.result().map(|result| result.to_json());
            Gives::Result(result.unwrap_or_default())
        }
    };
    ToolOutcome {
        after: after.and_then(Valued::value),
        gives,
        makes,
    }
}
