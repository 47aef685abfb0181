//! Converts a session into a test: the answers of its models, the outcomes of its tools and the acts of people, line by
//! line, on all its branches.

use super::{NoTest, Recorded};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_machine::network::{Does, FINISH, RouteBy};
use steersman_machine::questions::Purpose;
use steersman_machine::questions::verdict::said_again;
use steersman_machine::stored::by::By;
use steersman_machine::stored::commit::{
    Admission, Admitted, Commit, LedgerEntry, LogLine, Release, Why,
};
use steersman_machine::stored::ids::{Id, Line, Name};
use steersman_machine::stored::interaction::{
    Call, CallResult, Cause, Choice, How, Interaction, Origin, Route, Summary, Target,
    calls_of_answer,
};
use steersman_runtime::branches;
use steersman_runtime::known::PLACEHOLDER;
use steersman_runtime::session::Settled;

/// The test of the lines that were read so far.
struct Recorder<'a> {
    read: &'a Recorded,
    script: BTreeMap<String, Vec<Json>>,
    /// Outcomes by tool. A test takes them in the order in which calls begin, and the log has them in the order in which they ended.
    tools: BTreeMap<String, Vec<(Order, Json)>>,
    /// The line at which each call began: where it was wished, or where its first attempt was noted.
    began: BTreeMap<Id, Line>,
    /// The call of each effect.
    effects: BTreeMap<Id, Id>,
    steps: Vec<Json>,
    /// The conversation that precedes the session.
    history: Vec<Json>,
    /// For each call its tool, and true if the tool reaches outside of the process.
    calls: BTreeMap<Id, (String, bool)>,
    /// The current branch. Steps without `at` act on it.
    current: Id,
}

/// The place of a call among those of its tool: the line at which it began, and the call.
type Order = (Line, Id);

/// The step that a message in a commit belongs to.
#[derive(Copy, Clone)]
enum Said {
    Message,
    Interrupt,
    /// The message of the fork or rewind of the same commit.
    WithFork,
}

pub(super) fn recorded(read: &Recorded) -> Result<Json, NoTest> {
    let mut recorder = Recorder {
        read,
        script: BTreeMap::new(),
        tools: BTreeMap::new(),
        began: BTreeMap::new(),
        effects: BTreeMap::new(),
        steps: Vec::new(),
        history: Vec::new(),
        calls: BTreeMap::new(),
        current: Id::MAIN,
    };
    if let Some((id, _)) = read.seen.ledger.searches().next() {
        return Err(cannot(id.line(), "branches were searched"));
    }
    for line in &read.lines {
        recorder.line(line)?;
    }
    let Recorder {
        script,
        tools,
        steps,
        history,
        ..
    } = recorder;
    let asked: usize = script.values().map(Vec::len).sum();
    let branches = read.seen.branches.len();
    let mut expect = vec![if branches == 1 {
        json!({ "model_calls": "all", "is": asked })
    } else {
        json!({ "branches": branches })
    }];
    if let Settled::Answered { text, .. } = read.seen.settled_on(read.current()?) {
        expect.push(json!({ "answer": &*text }));
    }
    let entry = entry(read);
    let seed = read.seen.values.seed;
    let mut test = json!({ "seed": seed, "script": script, "steps": steps, "expect": expect });
    if !tools.is_empty() {
        let tools = tools.into_iter().map(|(tool, mut outcomes)| {
            outcomes.sort_by_key(|(order, _)| *order);
            let outcomes = outcomes.into_iter().map(|(_, outcome)| outcome);
            (tool, outcomes.collect())
        });
        test["tools"] = Json::Object(tools.collect());
    }
    if !history.is_empty() {
        test["history"] = history.into();
    }
    if let Some(entry) = entry {
        test["entry"] = (&*entry).into();
    }
    Ok(test)
}

/// Returns the tools of the test whose definition maps raw answers with `result`, `set`, `then` or `on_error`.
pub(super) fn mapped(read: &Recorded, test: &Json) -> Vec<String> {
    let Some(network) = &read.seen.network else {
        return Vec::new();
    };
    let named = test["tools"].as_object().into_iter().flatten();
    let tools = named.filter_map(|(name, _)| network.tools.get(&**name));
    let mapped = tools.filter(|tool| {
        tool.result.is_some()
            || !tool.set.is_empty()
            || tool.then.is_some()
            || !tool.on_error.is_empty()
    });
    mapped.map(|tool| format!("`{}`", tool.name)).collect()
}

/// Returns the agent that the user talked with, unless it is the first entry agent of the definition, which is the default.
fn entry(read: &Recorded) -> Option<Name> {
    let snapshot = &read.current().ok()?.snapshot;
    let root = &snapshot.agents.get(&snapshot.root?)?.def;
    let first = read.seen.network.as_ref()?.entry.first();
    (first != Some(root)).then(|| root.clone())
}

fn cannot(n: Line, what: &str) -> NoTest {
    NoTest(format!(
        "line {n}: {what}: a test cannot be made of that yet"
    ))
}

impl Recorder<'_> {
    fn line(&mut self, line: &Arc<LogLine>) -> Result<(), NoTest> {
        people(self.read, line, &mut self.steps);
        for entry in &line.ledger {
            if let LedgerEntry::Started {
                effect, attempt, ..
            } = entry
                && *attempt == 1
                && let Some(call) = self.effects.get(effect)
            {
                self.began.insert(*call, line.n);
            }
        }
        if let Some(commit) = &line.commit {
            for wished in &commit.wished {
                if let Some(call) = wished.what.call() {
                    self.effects.insert(wished.id, call);
                    self.began.entry(call).or_insert(line.n);
                }
            }
            let said = self.admitted(line, commit)?;
            for k in 0..commit.pushes.len() {
                self.push(line, commit, k, said)?;
            }
        }
        for entry in &line.ledger {
            if let LedgerEntry::Current(branch) = entry {
                self.current = *branch;
            }
        }
        Ok(())
    }

    /// Returns the name of a branch in the test: its label, otherwise a name made from its position.
    fn name(&self, id: Id) -> String {
        let branches = &self.read.seen.branches;
        let at = branches.iter().position(|branch| branch.id == id);
        let Some(at) = at else { return id.to_string() };
        match &branches[at].label {
            Some(label) => label.to_string(),
            None if id == Id::MAIN => "main".to_owned(),
            None => format!("branch-{at}"),
        }
    }

    /// Adds the steps that people took, and returns the step to which a message of the same commit belongs.
    fn admitted(&mut self, line: &LogLine, commit: &Commit) -> Result<Said, NoTest> {
        let mut said = Said::Message;
        for admission in &commit.admitted {
            match admission.kind {
                Admitted::Start
                | Admitted::Outcome
                | Admitted::Clock
                | Admitted::Message
                | Admitted::Join
                | Admitted::Ended => {}
                Admitted::Interrupt => said = Said::Interrupt,
                kind @ (Admitted::Opened | Admitted::Rewound) => {
                    if self.opened(line, kind) {
                        said = Said::WithFork;
                    }
                }
                Admitted::Adopted => {
                    let branch = admission.id.unwrap_or(line.branch);
                    self.steps.push(json!({ "adopt": self.name(branch) }));
                }
                other => {
                    let what = format!("{other:?}").to_lowercase();
                    return Err(cannot(line.n, &what));
                }
            }
        }
        Ok(said)
    }

    /// Adds the step for a branch that a person opened. Branches of an agent need no step, because the agent forks them in the test, too.
    fn opened(&mut self, line: &LogLine, kind: Admitted) -> bool {
        let mut branches = self.read.seen.branches.iter();
        let branch = branches.find(|branch| branch.id == line.branch);
        let by_person = branch.filter(|branch| branch.snapshot.scope.is_none());
        let Some((from, at)) = by_person.and_then(|branch| branch.from) else {
            return false;
        };
        let verb = match kind {
            Admitted::Rewound => "rewind",
            _ => "fork",
        };
        let mut step = json!({ verb: self.name(from), "as": self.name(line.branch) });
        if let Some(place) = self.place(from, at, line.n) {
            step["from"] = place.into();
        }
        self.steps.push(step);
        true
    }

    /// Returns a line of a branch as a test names it at line `now`: `None` if it is the branch's last commit before `now`,
    /// otherwise the tool whose call the line closed, otherwise its number in the session.
    fn place(&self, branch: Id, at: Line, now: Line) -> Option<String> {
        let of_branch = |line: &&Arc<LogLine>| line.branch == branch && line.commit.is_some();
        let lines = || self.read.lines.iter().filter(of_branch);
        if !lines().any(|line| line.n > at && line.n < now) {
            return None;
        }
        let closed = |line: &LogLine| {
            let pushes = line.commit.iter().flat_map(|commit| &commit.pushes);
            let results = pushes.filter_map(|push| match &push.what {
                Interaction::Result(result) if result.how.is_ok() => self.calls.get(&result.call),
                _ => None,
            });
            results.map(|(tool, _)| tool.clone()).collect::<Vec<_>>()
        };
        let tool = lines().find(|line| line.n == at).map(|line| closed(line));
        let Some(tool) = tool.and_then(|tools| tools.into_iter().next()) else {
            return Some(at.to_string());
        };
        let upto = lines().filter(|line| line.n <= at && closed(line).contains(&tool));
        Some(match upto.count() {
            1 => tool,
            nth => format!("{tool}#{nth}"),
        })
    }

    fn push(
        &mut self,
        line: &LogLine,
        commit: &Commit,
        k: usize,
        said: Said,
    ) -> Result<(), NoTest> {
        match &commit.pushes[k].what {
            Interaction::UserMessage {
                from: Origin::Outside(by),
                body,
            } => self.said(line, by.named(), &self.read.text(*body), said),
            Interaction::AssistantMessage { text, .. } => {
                let text = text.map(|text| self.read.text(text));
                let answer = self.answer(commit, k, text);
                let key = self.key(line, commit.pushes[k].agent);
                self.script.entry(key).or_default().push(answer);
            }
            Interaction::Call(call) => self.called(call),
            Interaction::Result(result) => {
                self.asked_beside(line, commit.pushes[k].agent, result)?;
                self.result(line.n, result)?;
            }
            Interaction::Summary(summary) => {
                self.summary(line, commit, commit.pushes[k].agent, summary)?;
            }
            Interaction::Route(route) if route.effect.is_some() => {
                self.routed(line, commit.pushes[k].agent, route)?;
            }
            Interaction::Earlier(earlier) => self.history.extend(self.read.earlier(earlier)),
            Interaction::Finished {
                cause: Cause::Failed,
                ..
            } => return Err(cannot(line.n, "an agent failed")),
            _ => {}
        }
        Ok(())
    }

    /// Adds a person's message: to the step of its fork, or as a step of its own.
    fn said(&mut self, line: &LogLine, by: Option<&Name>, text: &str, said: Said) {
        if let (Said::WithFork, Some(step)) = (said, self.steps.last_mut()) {
            step["say"] = text.into();
            return;
        }
        let verb = match said {
            Said::Interrupt => "interrupt",
            Said::Message | Said::WithFork => "say",
        };
        let mut step = json!({ verb: text });
        if line.branch != self.current {
            step["at"] = self.name(line.branch).into();
        }
        if let Some(by) = by {
            step["role"] = (&**by).into();
        }
        self.steps.push(step);
    }

    /// Returns the script key of an agent's answer, with the name of the branch unless it is `main`.
    fn key(&self, line: &LogLine, agent: Id) -> String {
        let mut branches = self.read.seen.branches.iter();
        let on = branches.find(|branch| branch.id == line.branch);
        let who = on.map_or_else(String::new, |on| branches::path(&on.snapshot, agent));
        if line.branch == Id::MAIN {
            who
        } else {
            format!("{who}@{}", self.name(line.branch))
        }
    }

    /// Adds the answer of a model call that the engine made for itself.
    fn beside(&mut self, line: &LogLine, agent: Id, purpose: Purpose, text: &str) {
        let mut key = self.key(line, agent);
        if let Some(beside) = purpose.beside() {
            key = format!("{key}#{beside}");
        }
        self.script.entry(key).or_default().push(plain(text).into());
    }

    fn summary(
        &mut self,
        line: &LogLine,
        commit: &Commit,
        agent: Id,
        summary: &Summary,
    ) -> Result<(), NoTest> {
        let mut usage = commit.usage.iter();
        let answered = usage.any(|usage| usage.effect == Some(summary.effect));
        if !answered || summary.covers.is_nothing() {
            return Err(cannot(line.n, "a summary failed"));
        }
        let text = self.read.text(summary.body);
        self.beside(line, agent, Purpose::of_summary(&summary.policy), &text);
        Ok(())
    }

    /// Adds the answer of a model to a call of the engine: an extraction of state, or a judgement.
    fn asked_beside(
        &mut self,
        line: &LogLine,
        agent: Id,
        result: &CallResult,
    ) -> Result<(), NoTest> {
        let Some(call) = self.read.called(result.call) else {
            return Ok(());
        };
        let (extracts, judges) = (call.is_extraction(), call.asks_itself());
        if !extracts && !judges {
            return Ok(());
        }
        let said = match (judges, result.how) {
            (true, _) => {
                let shown = result.body.map(|body| self.read.text(body));
                said_again(result.code.as_deref(), &shown.unwrap_or_default())
            }
            (false, How::Done) => {
                let writes = result.writes.iter();
                let written: Map<String, Json> = writes
                    .filter_map(|w| Some((w.name.to_string(), self.read.json(w.value?))))
                    .collect();
                Some(Json::Object(written).to_string())
            }
            (false, _) => None,
        };
        let Some(said) = said else {
            return Err(cannot(line.n, "an answer of a model could not be used"));
        };
        let purpose = if extracts {
            Purpose::Extract
        } else {
            Purpose::Answer
        };
        self.beside(line, agent, purpose, &said);
        Ok(())
    }

    /// Adds the answer of a routing model as a script has it: a name, the number of an exit, or a call.
    fn routed(&mut self, line: &LogLine, agent: Id, route: &Route) -> Result<(), NoTest> {
        if route.refused.is_some() {
            return Err(cannot(
                line.n,
                "the answer of a routing model could not be used",
            ));
        }
        let read = route.read.map(|read| self.read.json(read));
        let exit = read.as_ref().and_then(|read| read["exit"].as_u64());
        let mut key = self.key(line, agent);
        let answer = match &route.chosen {
            _ if exit.is_some() => exit.unwrap_or_default().to_string().into(),
            Choice::Agents(members) => match members.as_slice() {
                [member] => Json::from(&**member),
                _ => return Err(cannot(line.n, "a model chose several members")),
            },
            Choice::Speak { role, .. } => Json::from(&**role),
            Choice::Task { task, goal, .. } => Json::from(&**goal.as_ref().unwrap_or(task)),
            Choice::Finish => FINISH.into(),
            Choice::Answer(body) => {
                let text = plain(&self.read.text(*body));
                if self.answers_itself(line, agent) {
                    text.into()
                } else {
                    json!({ "call": { "done": { "summary": text } } })
                }
            }
            Choice::Restate(left) => {
                key.push_str("#continue");
                match left {
                    Some(left) => {
                        let request = plain(&self.read.text(*left));
                        json!({ "call": { "continue_with": { "request": request } } })
                    }
                    None => json!({ "call": { "nothing_left": {} } }),
                }
            }
            Choice::Stay | Choice::Enter { .. } | Choice::Say { .. } => {
                return Err(cannot(line.n, "a model chose the route"));
            }
        };
        self.script.entry(key).or_default().push(answer);
        Ok(())
    }

    /// Returns true if a router is a concierge, whose model answers the user with a text of its own.
    fn answers_itself(&self, line: &LogLine, agent: Id) -> bool {
        let seen = &self.read.seen;
        let mut branches = seen.branches.iter();
        let on = branches.find(|branch| branch.id == line.branch);
        let def = on.map(|on| on.snapshot.agent(agent).def.clone());
        let network = seen.network.as_ref();
        let def = network.and_then(|network| network.agents.get(&def?));
        def.is_some_and(
            |def| matches!(&def.does, Does::Route(route) if matches!(route.by, RouteBy::Tasks(_))),
        )
    }

    fn answer(&self, commit: &Commit, k: usize, text: Option<String>) -> Json {
        let agent = commit.pushes[k].agent;
        let following = commit.pushes[k + 1..].iter();
        let following = following.filter(|push| push.agent == agent);
        let mut asked: Vec<Json> = calls_of_answer(following.map(|push| &push.what))
            .map(|call| json!({ &*call.called(): self.read.json(call.args) }))
            .collect();
        let said = text.map(|text| Json::from(plain(&text)));
        let mut answer = Map::new();
        match said {
            Some(said) if asked.is_empty() => return said,
            Some(said) => drop(answer.insert("text".into(), said)),
            None => {}
        }
        if asked.len() == 1 {
            answer.insert("call".into(), asked.remove(0));
        } else if !asked.is_empty() {
            answer.insert("call".into(), asked.into());
        }
        Json::Object(answer)
    }

    fn called(&mut self, call: &Call) {
        if let Target::Branches(branches) = &call.target
            && self.is_joined(call.id)
        {
            let names: Vec<String> = branches.iter().map(|id| self.name(*id)).collect();
            let given = self.read.json(call.args);
            let mut step = json!({ "join": names });
            if !given["then"].is_null() {
                step["then"] = json!({ "tool": given["then"] });
            }
            if !given["args"].is_null() {
                step["then"]["args"] = given["args"].clone();
            }
            self.steps.push(step);
        }
        let runs = matches!(call.target, Target::Tool(_)) && outside(self.read, &call.name);
        self.calls.insert(call.id, (call.name.to_string(), runs));
    }

    /// Returns true if a person joined the branches. An agent's own fork is called by its model instead.
    fn is_joined(&self, call: Id) -> bool {
        let line = self.read.line(call.line());
        let commit = line.and_then(|line| line.commit.as_ref());
        let mut admitted = commit.into_iter().flat_map(|commit| &commit.admitted);
        admitted.any(|admission| admission.kind == Admitted::Join)
    }

    fn result(&mut self, n: Line, result: &CallResult) -> Result<(), NoTest> {
        let Some((tool, true)) = self.calls.get(&result.call) else {
            return Ok(());
        };
        let shown = result.body.map(|body| self.read.json(body));
        let shown = shown.unwrap_or_default();
        let gives = match (result.how, &result.code) {
            (How::Done | How::Simulated | How::DoneBefore, _) => self.gave(n, result, shown)?,
            (How::Failed, Some(code)) => {
                json!({ "error": code, "message": without(code, shown) })
            }
            (How::Refused, _) => return Ok(()),
            _ => return Err(cannot(n, &format!("`{tool}` ended as {:?}", result.how))),
        };
        let began = self.began.get(&result.call).copied();
        let order = (began.unwrap_or(n), result.call);
        let outcomes = self.tools.entry(tool.clone()).or_default();
        outcomes.push((order, gives));
        Ok(())
    }

    /// Returns the outcome of a call that gave a result, with the artifacts that it made.
    fn gave(&self, n: Line, result: &CallResult, shown: Json) -> Result<Json, NoTest> {
        let mut made = Map::new();
        for artifact in &result.artifacts {
            let name = &artifact.name;
            let content = self.read.contents.get(&artifact.hash);
            let text = content.map(|content| std::str::from_utf8(content));
            let Some(Ok(text)) = text else {
                let what = format!("`{name}` is an artifact that is no text, or a long one");
                return Err(cannot(n, &what));
            };
            made.insert(name.to_string(), text.into());
        }
        let is_special = |fields: &Map<String, Json>| {
            let mut special = SPECIAL.iter();
            special.any(|key| fields.contains_key(*key))
        };
        Ok(if !made.is_empty() {
            json!({ "result": shown, "artifacts": made })
        } else if shown.as_object().is_some_and(is_special) {
            // Otherwise its fields might be read as those of an outcome.
            json!({ "after": "0s", "result": shown })
        } else {
            shown
        })
    }
}

/// Keys that make an object of a test an outcome, and not a result.
const SPECIAL: [&str; 4] = ["error", "unknown", "after", "artifacts"];

/// Returns the message of a failure. What a model saw of it begins with the code, which the test has by itself.
fn without(code: &str, shown: Json) -> Json {
    let Json::String(text) = shown else {
        return shown;
    };
    if text == code {
        return "".into();
    }
    let message = text
        .strip_prefix(code)
        .and_then(|rest| rest.strip_prefix(": "));
    message.unwrap_or(&text).into()
}

/// Escapes a text for a script, because the texts of scripts are templates.
fn plain(text: &str) -> String {
    if text.contains("endraw") {
        // It could end a raw block.
        return text.replace('{', "{{ '{' }}");
    }
    if text.contains("{{") || text.contains("{%") || text.contains("{#") {
        return format!("{{% raw %}}{text}{{% endraw %}}");
    }
    text.to_owned()
}

/// Returns true if a tool reaches outside of the process. A tool that only writes state does so again in the test.
fn outside(read: &Recorded, tool: &str) -> bool {
    use steersman_machine::network::Source;
    let def = read
        .seen
        .network
        .as_ref()
        .and_then(|network| network.tools.get(tool));
    def.is_some_and(|def| {
        matches!(
            def.source,
            Source::Http(_) | Source::Command { .. } | Source::Native { .. } | Source::Mcp { .. }
        )
    })
}

/// Adds the decisions of people in a line.
fn people(read: &Recorded, line: &LogLine, steps: &mut Vec<Json>) {
    for entry in &line.ledger {
        // Typed input is sealed and cannot be read, so the test uses a placeholder.
        if let LedgerEntry::Released {
            why: Why::Input,
            how: Release::Go,
            by,
            ..
        } = entry
        {
            let mut step = json!({ "answer": PLACEHOLDER });
            if let Some(role) = by.person().and_then(By::named) {
                step["role"] = (&**role).into();
            }
            steps.push(step);
        }
        let LedgerEntry::Released {
            effect,
            why: why @ (Why::Approval | Why::Repeat),
            how,
            by,
            body,
            ..
        } = entry
        else {
            continue;
        };
        // One decision may end an approval and also allow a repetition.
        let released = |of: Why| {
            line.ledger.iter().any(|entry| {
                matches!(entry, LedgerEntry::Released { effect: e, why, .. } if e == effect && *why == of)
            })
        };
        if *why == Why::Repeat && released(Why::Approval) {
            continue;
        }
        let wished = read.line(effect.line());
        let wished = wished
            .and_then(|l| l.commit.as_ref())
            .into_iter()
            .flat_map(|c| &c.wished);
        let call = wished
            .into_iter()
            .find(|w| w.id == *effect)
            .and_then(|w| w.what.call());
        let Some(call) = call else { continue };
        let made = read
            .lines
            .iter()
            .find(|l| l.n == call.line())
            .and_then(|l| l.commit.as_ref());
        let tool = made
            .into_iter()
            .flat_map(|c| &c.pushes)
            .find_map(|push| match &push.what {
                Interaction::Call(made) if made.id == call => Some(made.name.to_string()),
                _ => None,
            });
        let mut step = match how {
            Release::Go if released(Why::Repeat) => json!({ "approve": tool, "repeat": true }),
            Release::Go => json!({ "approve": tool }),
            Release::Refused => json!({ "reject": tool }),
            Release::Cancelled if answered_late(line, *effect).is_some() => {
                json!({ "approve": tool, "refused": true })
            }
            _ => continue,
        };
        if let (Release::Refused, Some(body)) = (how, body) {
            step["say"] = read.text(*body).into();
        }
        let by = by.person().or_else(|| answered_late(line, *effect));
        if let Some(role) = by.and_then(By::named) {
            step["role"] = (&**role).into();
        }
        steps.push(step);
    }
}

/// Returns the person whose approval did not count, because what the call reads had changed since the question.
fn answered_late(line: &LogLine, effect: Id) -> Option<&By> {
    let released = |entry: &LedgerEntry| matches!(entry, LedgerEntry::Released { effect: of, how: Release::Cancelled, .. } if *of == effect);
    line.ledger.iter().find(|entry| released(entry))?;
    let mut admitted = line.commit.iter().flat_map(|commit| &commit.admitted);
    let late =
        |admission: &&Admission| admission.kind == Admitted::Edited && admission.id == Some(effect);
    admitted.find(late)?.by.as_ref()
}
