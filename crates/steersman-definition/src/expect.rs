//! Checks the expectations of a test against the session that ran it. The session ran in the machine alone, or in a runtime.

use crate::test::Expect;
use serde_json::{Map, Value as Json};
use steersman_machine::context::{Content, History, RenderCache, Request, purpose, request};
use steersman_machine::network::{Network, ToolChoice};
use steersman_machine::questions::Purpose;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::snapshot::fold::fold;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Bodies, Id};
use steersman_machine::stored::interaction::{Choice, Interaction, Route, Target};
use steersman_machine::trace::letters;
use steersman_machine::values::expression::Expr;
use steersman_machine::values::expression::ast::Node;
use steersman_machine::view::{Cx, View};

/// A session against which expectations are checked.
pub trait Subject {
    /// Returns the definition that is in force.
    fn network(&self) -> &Network;
    /// Returns the texts that the stacks name.
    fn bodies(&self) -> &dyn Bodies;
    /// Returns access to the stacks.
    fn history(&self) -> &dyn History;
    /// Returns the lines that led to the head of a branch, oldest first, including those of the branches it was forked from.
    fn lines(&self, branch: Id) -> Vec<&LogLine>;
    /// Returns the current branch.
    fn current(&self) -> Id;
    /// Returns a branch by its label, `main`, its id, or its number in the newest fork of an agent.
    fn branch_named(&self, name: &str) -> Option<Id>;
    /// Returns the number of branches, `main` included.
    fn branch_count(&self) -> u64;
    /// Returns the snapshot of a branch.
    fn snapshot(&self, branch: Id) -> &Snapshot;
    /// Returns an agent's stack on a branch, oldest first.
    fn stack(&self, branch: Id, agent: Id) -> Vec<Interaction>;
    /// Returns true if adjacent results may be in any order, because calls that run concurrently end in no defined order.
    fn any_order(&self) -> bool {
        false
    }
    /// Returns the number of model calls answered in the whole session, on all branches.
    fn model_calls(&self) -> u64;
    /// Returns the modes of an agent on a branch, in the order in which they began.
    fn modes(&self, branch: Id, agent: Id) -> Vec<String>;
    /// Returns the states that the net of an agent entered on a branch, in order.
    fn states(&self, branch: Id, agent: Id) -> Vec<String>;
    /// Returns everything on a branch that waits for a person or an event, in any order: `approval TOOL`, `question ROLE`,
    /// `doubt TOOL`, `input TOOL`, `event NAME`.
    fn open(&self, branch: Id) -> Vec<String>;
    /// Returns the difference to the end of an undisturbed run; `None` if there is no difference.
    fn disturbed(&self) -> Option<String>;
}

/// Checks expectations. Returns a message for each one that does not hold.
pub fn judge(subject: &dyn Subject, expect: &[Expect]) -> Vec<String> {
    expect
        .iter()
        .filter_map(|e| one(subject, e).err())
        .collect()
}

/// Finds the agent that a script names. The key is a path of names, an agent's own name or the name of its definition. `KEY@BRANCH`
/// looks on that branch, else on the current one. Returns the branch and the agent.
pub fn find(subject: &dyn Subject, key: &str) -> Result<(Id, Id), String> {
    let (name, branch) = match key.split_once('@') {
        Some((name, branch)) => {
            let found = subject.branch_named(branch);
            (
                name,
                found.ok_or_else(|| format!("there is no branch {branch}"))?,
            )
        }
        None => (key, subject.current()),
    };
    let snapshot = subject.snapshot(branch);
    let by = |test: &dyn Fn(Id) -> bool| snapshot.agents.keys().copied().find(|id| test(*id));
    let agent = |id: Id| snapshot.agent(id);
    let found = by(&|id| path(snapshot, id) == name)
        .or_else(|| by(&|id| agent(id).family.named.as_deref() == Some(name)))
        .or_else(|| by(&|id| *agent(id).def == *name));
    found
        .map(|id| (branch, id))
        .ok_or_else(|| format!("there is no agent {name} on branch {branch}"))
}

fn one(subject: &dyn Subject, expect: &Expect) -> Result<(), String> {
    match expect {
        Expect::Stack { agent, is } => {
            let (branch, id) = find(subject, agent)?;
            let has = letters(&subject.stack(branch, id));
            if subject.any_order() && in_any_order(&has) == in_any_order(is) {
                return Ok(());
            }
            same(&format!("stack {agent}"), &has, is)
        }
        Expect::Speakers { agent, is } => {
            let (branch, id) = find(subject, agent)?;
            let spoken: Vec<String> = subject
                .stack(branch, id)
                .iter()
                .filter_map(|i| match i {
                    // An extraction is a call of the engine, not a turn of a speaker.
                    Interaction::Call(call) if call.is_extraction() => None,
                    // A tool that follows another call is not a turn of a speaker either.
                    Interaction::Call(call) if call.chain().is_some() => None,
                    Interaction::Call(call) if !matches!(call.target, Target::Branches(_)) => {
                        Some(call.called().to_string())
                    }
                    Interaction::Route(Route {
                        chosen: Choice::Say { member, .. },
                        refused: None,
                        ..
                    }) => Some(member.to_string()),
                    _ => None,
                })
                .collect();
            same(
                &format!("speakers {agent}"),
                &spoken.join(" "),
                &is.join(" "),
            )
        }
        Expect::Modes { agent, is } => {
            let (branch, id) = find(subject, agent)?;
            let modes = subject.modes(branch, id);
            same(&format!("modes {agent}"), &modes.join(" "), &is.join(" "))
        }
        Expect::States { agent, is } => {
            let (branch, id) = find(subject, agent)?;
            let states = subject.states(branch, id);
            same(&format!("states {agent}"), &states.join(" "), &is.join(" "))
        }
        Expect::ModelCalls { agent, is } => {
            let calls = if agent == "all" {
                subject.model_calls()
            } else {
                let (key, purpose) = asked(agent)?;
                let (branch, id) = find(subject, key)?;
                u64::from(purpose.calls(&subject.snapshot(branch).agent(id).counters))
            };
            same(
                &format!("model_calls {agent}"),
                &calls.to_string(),
                &is.to_string(),
            )
        }
        Expect::Offered { agent, is } => {
            let has = requests(subject, agent)?;
            let has: Vec<String> = has.iter().map(offered).collect();
            let is: Vec<String> = is
                .iter()
                .map(|tools| format!("[{}]", tools.join(" ")))
                .collect();
            same(&format!("offered {agent}"), &has.join(" "), &is.join(" "))
        }
        Expect::Saw {
            agent,
            call,
            texts,
            not,
        } => saw(subject, agent, *call, texts, *not),
        Expect::Answer(is) => same("answer", &answer(subject).unwrap_or_default(), is),
        Expect::That(expr) => that(subject, expr)?,
        Expect::Branches(is) => same(
            "branches",
            &subject.branch_count().to_string(),
            &is.to_string(),
        ),
        Expect::Open(is) => {
            let mut has = subject.open(subject.current());
            let mut is = is.clone();
            has.sort();
            is.sort();
            same("open", &has.join(", "), &is.join(", "))
        }
        Expect::Undisturbed => match subject.disturbed() {
            None => Ok(()),
            Some(how) => Err(format!("same_as undisturbed: {how}")),
        },
    }
}

/// Calls `see` with a view of the state, the calls, the answer and the outcome of the session.
pub(crate) fn with_view<T>(
    subject: &dyn Subject,
    see: impl FnOnce(&View<'_>) -> T,
) -> Result<T, String> {
    let snapshot = subject.snapshot(subject.current());
    let cx = Cx {
        network: subject.network(),
        bodies: subject.bodies(),
    };
    let answered = match (answer(subject), snapshot.root_agent()) {
        (Some(answer), Some(root)) => cx.network.answered(&root.def, &answer),
        _ => Json::Null,
    };
    let view = || View::new(&cx, snapshot, snapshot.root).with("answer", answered.clone());
    let mut outcome = Map::new();
    for (name, expr) in &cx.network.outcome {
        let value = expr
            .eval_lenient(&view())
            .map_err(|e| format!("outcome {name}: {e}"))?;
        let value = serde_json::to_value(&value).map_err(|e| e.to_string())?;
        outcome.insert(name.to_string(), value);
    }
    Ok(see(&view().with("outcome", Json::Object(outcome))))
}

/// Checks an expression over the session. The inner error says that it does not hold, the outer one why it cannot be evaluated.
pub(crate) fn that(subject: &dyn Subject, expr: &Expr) -> Result<Result<(), String>, String> {
    with_view(subject, |view| match view.holds(expr) {
        Ok(true) => Ok(Ok(())),
        Ok(false) => {
            let values = values(expr, view);
            Ok(Err(format!("that {} does not hold{values}", expr.source)))
        }
        Err(e) => Err(format!("that {}: {e}{}", expr.source, values(expr, view))),
    })?
}

/// Most characters of a value that a failed expression read.
const VALUE_SHOWN: usize = 200;

/// Returns the values that an expression reads, as `: state.n is 4, calls.pay.ok is false`.
fn values(expr: &Expr, view: &View<'_>) -> String {
    let mut paths = Vec::new();
    paths_in(expr.node(), &mut paths);
    let told = paths.iter().filter_map(|path| {
        let value = Expr::parse(path).ok()?.eval_lenient(view).ok()?;
        let json = serde_json::to_value(&value).ok()?;
        let text = match json {
            Json::Null => "none".to_owned(),
            json => json.to_string(),
        };
        let short: String = text.chars().take(VALUE_SHOWN).collect();
        let dots = if short.len() < text.len() { ".." } else { "" };
        Some(format!("{path} is {short}{dots}"))
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() {
        return String::new();
    }
    format!(": {}", told.join(", "))
}

/// Collects the paths in an expression (`state.total`, `calls.pay.ok`), each once, in the order of the text.
fn paths_in(node: &Node, paths: &mut Vec<String>) {
    match node.path() {
        Some(path) => {
            let path = path.join(".");
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        None => node
            .children()
            .into_iter()
            .for_each(|node| paths_in(node, paths)),
    }
}

/// Splits a key of a script into an agent and the purpose of its model calls: its own answers, or the word after `#`.
fn asked(key: &str) -> Result<(&str, Purpose), String> {
    let Some((agent, word)) = key.split_once('#') else {
        return Ok((key, Purpose::Answer));
    };
    let mut all = Purpose::BESIDE.iter();
    all.find(|purpose| purpose.beside() == Some(word))
        .map(|purpose| (agent, *purpose))
        .ok_or_else(|| format!("no model call is named `#{word}`"))
}

/// Returns the requests of an agent's answered model calls, oldest first, as this version renders them.
fn requests(subject: &dyn Subject, key: &str) -> Result<Vec<Request>, String> {
    let (key, wanted) = asked(key)?;
    let (branch, agent) = find(subject, key)?;
    let lines = subject.lines(branch);
    let answered = |line: &&LogLine| {
        let pushes = line.commit.iter().flat_map(|commit| &commit.pushes);
        let own = pushes.filter(|push| push.agent == agent);
        own.filter_map(|push| match &push.what {
            Interaction::AssistantMessage {
                effect, partial, ..
            } if !partial => Some(*effect),
            Interaction::Route(route) => route.effect,
            Interaction::Summary(summary) => Some(summary.effect),
            Interaction::Call(call) if call.is_extraction() => Some(call.id),
            _ => None,
        })
        .collect::<Vec<Id>>()
    };
    let wished: Vec<Id> = lines.iter().flat_map(answered).collect();
    let cx = Cx {
        network: subject.network(),
        bodies: subject.bodies(),
    };
    let (mut sent, mut snapshot) = (Vec::new(), Snapshot::empty());
    for line in lines {
        snapshot = fold(snapshot, line);
        if wished.iter().any(|effect| effect.line() == line.n) {
            let mut cache = RenderCache::default();
            let of = purpose(&cx, &snapshot, agent);
            if of.beside() != wanted.beside() {
                continue;
            }
            let rendered = request(&cx, subject.history(), &snapshot, agent, &mut cache);
            sent.push(rendered.map_err(|e| format!("what {key} saw cannot be rendered: {e}"))?);
        }
    }
    Ok(sent)
}

/// Returns the names of the tools of a request. `[]` if tools may not be called and are listed only to keep the prefix the same.
fn offered(request: &Request) -> String {
    if request.choice == ToolChoice::None {
        return "[]".to_owned();
    }
    let tools = request
        .segments
        .iter()
        .filter_map(|segment| match &segment.content {
            Content::Tools(tools) => Some(tools),
            _ => None,
        });
    let names: Vec<&str> = tools.flatten().map(|tool| &*tool.name).collect();
    format!("[{}]", names.join(" "))
}

fn saw(
    subject: &dyn Subject,
    agent: &str,
    call: Option<u64>,
    texts: &[String],
    not: bool,
) -> Result<(), String> {
    let sent = requests(subject, agent)?;
    let request = match call {
        None => sent.last(),
        Some(n) => usize::try_from(n - 1).ok().and_then(|n| sent.get(n)),
    };
    let Some(request) = request else {
        let n = sent.len();
        return Err(format!("saw {agent}: {n} of its model calls were answered"));
    };
    let all: Vec<String> = request
        .segments
        .iter()
        .map(|segment| searchable(&segment.content))
        .collect();
    let all = all.join("\n");
    let wrong: Vec<String> = texts
        .iter()
        .filter(|text| all.contains(&***text) == not)
        .map(|text| format!("{text:?}"))
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let (word, wrong) = (if not { "unseen" } else { "saw" }, wrong.join(", "));
    let but = if not { "is in" } else { "is not in" };
    Err(format!("{word} {agent}: {wrong} {but} the request:\n{all}"))
}

/// Returns a piece of a request as the text that a test searches.
fn searchable(content: &Content) -> String {
    match content {
        Content::System(text) | Content::User(text) => text.clone(),
        Content::Tools(tools) => {
            let tools = tools.iter();
            let tools = tools.map(|tool| format!("{}: {}", tool.name, tool.description));
            tools.collect::<Vec<_>>().join("\n")
        }
        Content::Assistant { text, calls, .. } => {
            let calls = calls
                .iter()
                .map(|call| format!("{} {}", call.name, call.args));
            let text = text.iter().cloned();
            text.chain(calls).collect::<Vec<_>>().join("\n")
        }
        Content::Result { name, text, .. } => format!("{name}: {text}"),
        Content::File(file) => format!("{}: {}, {} bytes", file.name, file.media, file.len),
    }
}

/// Returns the last answer on the current branch: of the root, or of the dialogue below it that has the floor.
pub fn answer(subject: &dyn Subject) -> Option<String> {
    let snapshot = subject.snapshot(subject.current());
    let mut at = snapshot.root?;
    // The floor is with a child that rests at the end of a turn.
    while let Some(child) = snapshot
        .exchange(at)
        .filter(|c| c.closed.is_none())
        .find_map(|c| match c.call.target {
            Target::Agent(child) => Some(child),
            _ => None,
        })
    {
        at = child;
    }
    let body = snapshot.agent(at).turn.answer?;
    Some(subject.bodies().text(body).to_string())
}

/// Returns the letters of a stack, with adjacent results sorted.
fn in_any_order(letters: &str) -> Vec<&str> {
    let mut letters: Vec<&str> = letters.split_whitespace().collect();
    for run in letters.chunk_by_mut(|a, b| is_result(a) && is_result(b)) {
        run.sort_unstable();
    }
    letters
}

fn is_result(letter: &str) -> bool {
    matches!(letter, "TR" | "AR" | "WR" | "UR")
}

fn same(what: &str, has: &str, is: &str) -> Result<(), String> {
    if has == is {
        Ok(())
    } else {
        Err(format!("{what}: expected {is:?}, found {has:?}"))
    }
}

/// Returns the path of an agent in names, from the entry: `parent/adder`.
pub fn path(snapshot: &Snapshot, agent: Id) -> String {
    let (mut at, mut names) = (Some(agent), Vec::new());
    while let Some(id) = at {
        let agent = snapshot.agent(id);
        names.push(
            agent
                .family
                .named
                .clone()
                .unwrap_or_else(|| agent.def.clone()),
        );
        at = agent.family.parent;
    }
    names.reverse();
    names.join("/")
}
