//! What a test expects, judged against whatever ran it: the machine alone, or a whole session.

use crate::test::Expect;
use serde_json::{Map, Value as Json};
use steersman_machine::commit::LogLine;
use steersman_machine::context::{
    Content, History, Purpose, RenderCache, Request, purpose, request,
};
use steersman_machine::effect::Bodies;
use steersman_machine::expression::Expr;
use steersman_machine::extract::is_extraction;
use steersman_machine::fold::fold;
use steersman_machine::ids::Id;
use steersman_machine::interaction::{Choice, Interaction, Route, Target};
use steersman_machine::network::{Network, ToolChoice};
use steersman_machine::snapshot::Snapshot;
use steersman_machine::tick::Cx;
use steersman_machine::trace::letters;
use steersman_machine::view::View;

/// What expectations are judged against.
pub trait Subject {
    /// The definition.
    fn network(&self) -> &Network;
    /// Texts that the stacks name.
    fn bodies(&self) -> &dyn Bodies;
    /// The stacks.
    fn history(&self) -> &dyn History;
    /// The lines that led to where a branch stands, oldest first, those of the branches it was forked from included.
    fn lines(&self, branch: Id) -> Vec<&LogLine>;
    /// The current branch.
    fn current(&self) -> Id;
    /// A branch by its label, `main`, its id, or its number in the newest fork of an agent.
    fn branch_named(&self, name: &str) -> Option<Id>;
    /// How many branches there are, `main` included.
    fn branch_count(&self) -> u64;
    /// Where a branch stands.
    fn snapshot(&self, branch: Id) -> &Snapshot;
    /// An agent's stack on a branch, oldest first.
    fn stack(&self, branch: Id, agent: Id) -> Vec<Interaction>;
    /// Whether results that stand together may stand in any order: which of two calls that run at once ends first is
    /// nobody's promise.
    fn any_order(&self) -> bool {
        false
    }
    /// Model calls answered in the whole session, on all branches.
    fn model_calls(&self) -> u64;
    /// Modes of an agent on a branch, in the order in which they began.
    fn modes(&self, branch: Id, agent: Id) -> Vec<String>;
    /// States that the net of an agent entered on a branch, in order.
    fn states(&self, branch: Id, agent: Id) -> Vec<String>;
    /// What waits for somebody outside on a branch: `approval TOOL`, `question ROLE`, `doubt TOOL`, `input TOOL`,
    /// `event NAME`. In any order.
    fn open(&self, branch: Id) -> Vec<String>;
    /// Why it does not end as an undisturbed run does; none if it does.
    fn disturbed(&self) -> Option<String>;
}

/// What of these expectations does not hold, each in words.
pub fn judge(subject: &dyn Subject, expect: &[Expect]) -> Vec<String> {
    expect
        .iter()
        .filter_map(|e| one(subject, e).err())
        .collect()
}

/// An agent as scripts name it, on the branch behind `@`: by its path of names, its name, or its definition's name.
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
        .or_else(|| by(&|id| agent(id).named.as_deref() == Some(name)))
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
                    // Nobody speaks where the engine asks for itself.
                    Interaction::Call(call) if is_extraction(&call.name) => None,
                    // Nor where a tool follows what was waited for.
                    Interaction::Call(call) if call.chain.is_some() => None,
                    Interaction::Call(call) if !matches!(call.target, Target::Branches(_)) => {
                        Some(call.seen.as_ref().unwrap_or(&call.name).to_string())
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
        Expect::That(expr) => that(subject, expr),
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

/// Whether an expression holds over the state, what was called and what the session came to.
fn that(subject: &dyn Subject, expr: &Expr) -> Result<(), String> {
    let snapshot = subject.snapshot(subject.current());
    let cx = Cx {
        network: subject.network(),
        bodies: subject.bodies(),
    };
    let view = || {
        View::new(&cx, snapshot, snapshot.root)
            .with("answer", answer(subject).map_or(Json::Null, Json::from))
    };
    let mut outcome = Map::new();
    for (name, expr) in &cx.network.outcome {
        let value = expr
            .eval_lenient(&view())
            .map_err(|e| format!("outcome {name}: {e}"))?;
        let value = serde_json::to_value(&value).map_err(|e| e.to_string())?;
        outcome.insert(name.to_string(), value);
    }
    let view = view().with("outcome", Json::Object(outcome));
    match view.holds(expr) {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("that {} does not hold", expr.source)),
        Err(e) => Err(format!("that {}: {e}", expr.source)),
    }
}

/// An agent as scripts name it, and what its model is asked for: its own answers, or what stands behind `#`.
fn asked(key: &str) -> Result<(&str, Purpose), String> {
    let Some((agent, word)) = key.split_once('#') else {
        return Ok((key, Purpose::Answer));
    };
    let mut all = Purpose::BESIDE.iter();
    all.find(|purpose| purpose.beside() == Some(word))
        .map(|purpose| (agent, *purpose))
        .ok_or_else(|| format!("no model call is named `#{word}`"))
}

/// What the model calls of an agent that were answered were sent, oldest first, as this version renders it.
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
            Interaction::Call(call) if is_extraction(&call.name) => Some(call.id),
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

/// The tools of a request; none where they are told, so that the prefix stays, and may not be called.
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
        .map(|segment| told(&segment.content))
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
    let but = if not { "stood in" } else { "did not stand in" };
    Err(format!(
        "{word} {agent}: {wrong} {but} what it was sent:\n{all}"
    ))
}

/// A piece of a request as the text that a test looks into.
fn told(content: &Content) -> String {
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
    }
}

/// The last answer of the root on the current branch: its own, or of the dialogue that has the floor below it.
pub fn answer(subject: &dyn Subject) -> Option<String> {
    let snapshot = subject.snapshot(subject.current());
    let mut at = snapshot.root?;
    // The floor lies with a child that rests at the end of a turn.
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
    let body = snapshot.agent(at).answer?;
    Some(subject.bodies().text(body).to_string())
}

/// Letters of a stack, those of results that stand together sorted.
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

/// The path of an agent in names, from the entry: `parent/adder`.
pub fn path(snapshot: &Snapshot, agent: Id) -> String {
    let (mut at, mut names) = (Some(agent), Vec::new());
    while let Some(id) = at {
        let agent = snapshot.agent(id);
        names.push(agent.named.clone().unwrap_or_else(|| agent.def.clone()));
        at = agent.parent;
    }
    names.reverse();
    names.join("/")
}
