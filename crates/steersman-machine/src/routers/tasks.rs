//! `tasks`: a model finds the task that a message is about. The task's agent keeps the floor until the task is done or the agent
//! gives the floor back. Tasks that must be done before it (`after:`) run first. Then the requested task continues without a new
//! message.

use super::{Decision, Reads};
use crate::network::{Desk, GoOn, Route, Task, texts};
use crate::questions::ask::{About, Question};
use crate::snapshot::{Agent, Snapshot};
use crate::stored::ids::{Body, Id, Name};
use crate::stored::interaction::Choice;
use crate::view::say::{say, say_in};
use crate::view::{Cx, View};
use serde_json::{Map, Value as Json, json};
use std::fmt::Write as _;

/// Returns the next decision at a desk.
pub(super) fn decide(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    agent: Id,
    route: &Route,
    desk: &Desk,
) -> Decision {
    let routing = &snapshot.agent(agent).routing;
    match &routing.over {
        None => ask(cx, snapshot, agent, route, desk),
        // A member without a task answers once.
        Some(over) if desk.task(over).is_none() => Decision::Over(Map::new()),
        // A member that failed or ran out of time is not asked for the same task again.
        Some(over)
            if routing
                .last
                .as_ref()
                .is_some_and(|(_, how, _)| !how.is_ok()) =>
        {
            let read = Map::from_iter([("failed".to_owned(), json!(over))]);
            match &desk.default {
                Some(default) => Decision::Chosen(Choice::Agents(vec![default.clone()]), read),
                None => Decision::Over(read),
            }
        }
        Some(_) => match desk.go_on {
            GoOn::None => Decision::Over(Map::new()),
            GoOn::ByModel => Decision::Ask(ask_what_is_left(cx, snapshot, agent, route)),
            GoOn::Request => match routing.goals.last() {
                None => Decision::Over(Map::new()),
                Some((goal, asked)) => resume(cx, snapshot, agent, desk, goal, *asked),
            },
        },
    }
}

/// Resumes the task that the user asked for.
fn resume(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    agent: Id,
    desk: &Desk,
    goal: &Name,
    asked: Option<Body>,
) -> Decision {
    match (begins(cx, snapshot, agent, desk, goal), asked) {
        (Ok(Begins { choice, read }), Some(asked)) => Decision::Resume(choice, asked, read),
        (Ok(Begins { choice, read }), None) => Decision::Chosen(choice, read),
        // The requested task cannot begin, so the turn ends with the result of the task before it.
        (Err(why), _) => Decision::Over(Map::from_iter([("refused".to_owned(), json!(why))])),
    }
}

/// The choice of a task that may begin, and the values that its conditions read.
pub(crate) struct Begins {
    pub(crate) choice: Choice,
    pub(crate) read: Map<String, Json>,
}

/// Returns the task that begins if `goal` is requested: `goal` itself, or the first task that must be done before it. An error
/// is the reason, as a text for the model.
pub(crate) fn begins(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    agent: Id,
    desk: &Desk,
    goal: &Name,
) -> Result<Begins, String> {
    let view = View::new(cx, snapshot, Some(agent));
    let reads = Reads::new(&view);
    let wanted = desk
        .task(goal)
        .ok_or_else(|| format!("there is no task `{goal}`"))?;
    let first = first_open(&reads, snapshot.agent(agent), desk, wanted, 0)?;
    for requires in &first.requires {
        let holds = requires.that.holds(&reads);
        let reason = |text: String| {
            let otherwise = requires.otherwise.as_ref();
            otherwise.and_then(|t| t.render(&view).ok()).unwrap_or(text)
        };
        match holds {
            Ok(true) => {}
            Ok(false) => {
                let text = format!("`{}` does not hold", requires.that.source);
                return Err(format!("`{}` cannot begin: {}", first.name, reason(text)));
            }
            Err(e) => return Err(format!("`{}` cannot begin: {e}", first.name)),
        }
    }
    let choice = Choice::Task {
        task: first.name.clone(),
        agent: first.agent.clone(),
        goal: Some(goal.clone()),
    };
    Ok(Begins {
        choice,
        read: reads.into_values(),
    })
}

/// Returns the first open task that must be done before this one, or this one if there is none.
fn first_open<'n>(
    reads: &Reads<'_>,
    agent: &Agent,
    desk: &'n Desk,
    task: &'n Task,
    depth: usize,
) -> Result<&'n Task, String> {
    // `check` refuses cycles; this guards against endless recursion.
    if depth > desk.tasks.len() {
        return Err(format!("`{}` waits for itself", task.name));
    }
    for before in task.after.iter().filter_map(|name| desk.task(name)) {
        let done = match &before.done {
            None => agent.routing.done.contains(&before.name),
            Some(done) => done
                .holds(reads)
                .map_err(|e| format!("`done` of `{}`: {e}", before.name))?,
        };
        if !done {
            return first_open(reads, agent, desk, before, depth + 1);
        }
    }
    Ok(task)
}

fn ask(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id, route: &Route, desk: &Desk) -> Decision {
    let view = View::new(cx, snapshot, Some(agent));
    let own = desk.orchestrator.system.as_ref();
    let mut system = match own.map(|t| t.render(&view)) {
        Some(Ok(system)) => system,
        Some(Err(e)) => return Decision::Failed(format!("`system` of the orchestrator: {e}")),
        None => say_in(&cx.network.texts, &view, texts::ORCHESTRATOR, &[]),
    };
    system.push_str("\n\nTasks:");
    let mut offered: Vec<(Name, Name)> = Vec::new();
    for task in &desk.tasks {
        offered.push((task.name.clone(), task.agent.clone()));
        let words = cx.network.description_of(&task.agent);
        let _ = write!(system, "\n- {}: {words}", task.name);
    }
    if let Some(default) = &desk.default {
        offered.push((default.clone(), default.clone()));
        let words = cx.network.description_of(default);
        let _ = write!(
            system,
            "\n- {default}: {words} Also for all that is none of the others."
        );
    }
    let speaks = desk.orchestrator.speaks;
    let closing = if speaks {
        "What is the newest message about? Or answer it yourself."
    } else {
        "What is the newest message about?"
    };
    let model = desk.orchestrator.model.as_ref();
    Decision::Ask(Question {
        about: About::Task(offered, speaks),
        model: model.unwrap_or(&route.asks.model).clone(),
        system,
        closing: closing.to_owned(),
        read: Map::new(),
    })
}

fn ask_what_is_left(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id, route: &Route) -> Question {
    Question {
        about: About::Left,
        model: route.asks.model.clone(),
        system: say(cx, snapshot, agent, texts::CONTINUE, &[]),
        closing: "Is something left to be done?".to_owned(),
        read: Map::new(),
    }
}
