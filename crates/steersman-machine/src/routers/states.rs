//! `states`: a graph of states with speakers. After each message the exits are tried: first those that need no model, then one
//! question about all judged ones. If the state stays, the next speaker is chosen.

use super::{Decision, Reads};
use crate::network::texts::{self, Texts};
use crate::network::{Exit, ExitCause, ExitTo, Graph, Order, Route, Speaker, StateNode};
use crate::questions::ask::{About, Question};
use crate::snapshot::{Place, Snapshot};
use crate::stored::ids::{Digest, Id, Name};
use crate::stored::interaction::Choice;
use crate::view::say::say_in;
use crate::view::{Cx, View};
use serde_json::{Map, Value as Json, json};
use std::fmt::Write as _;

/// Returns the next decision in a graph.
pub(super) fn decide(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    agent: Id,
    route: &Route,
    graph: &Graph,
) -> Decision {
    let routing = &snapshot.agent(agent).routing;
    let Some(at) = routing.at.as_ref() else {
        return enter(graph, &graph.start, Map::new());
    };
    let (Some(node), Some(place)) = (graph.states.get(at), routing.places.get(at)) else {
        return Decision::Failed(format!("there is no state `{at}`"));
    };
    let view = View::new(cx, snapshot, Some(agent));
    if !routing.settled {
        match leaves(&view, graph, at, node, place) {
            Ok(None) => {}
            Ok(Some(decision)) => return decision,
            Err(text) => return Decision::Failed(text),
        }
        let judged = judged(node, &view);
        match judged {
            Ok(judged) if judged.is_empty() => {}
            Ok(judged) => return ask_judge(&cx.network.texts, route, node, &view, judged),
            Err(text) => return Decision::Failed(text),
        }
    }
    speaks(cx, snapshot, agent, route, node, place)
}

/// Returns the choice to enter a state.
fn enter(graph: &Graph, state: &Name, read: Map<String, Json>) -> Decision {
    let reset = graph.states.get(state).is_none_or(|node| node.reset);
    let choice = Choice::Enter {
        state: state.clone(),
        reset,
    };
    Decision::Chosen(choice, read)
}

fn leave(graph: &Graph, to: &ExitTo, read: Map<String, Json>) -> Decision {
    match to {
        ExitTo::State(state) => enter(graph, state, read),
        ExitTo::Finish => Decision::Over(read),
    }
}

/// Returns the decision of the first exit that needs no model and whose condition holds.
fn leaves(
    view: &View<'_>,
    graph: &Graph,
    at: &Name,
    node: &StateNode,
    place: &Place,
) -> Result<Option<Decision>, String> {
    let reads = Reads::new(view);
    let mut first = None;
    for (k, exit) in node.exits.iter().enumerate() {
        let holds = match &exit.cause {
            ExitCause::When(when) => when
                .holds(&reads)
                .map_err(|e| format!("exit `{}` of `{at}`: {e}", when.source))?,
            ExitCause::AfterMessages(most) => place.messages >= *most,
            ExitCause::Judge(_) => false,
        };
        if holds {
            first = Some((k, exit));
            break;
        }
    }
    Ok(first.map(|(k, exit)| {
        let mut read = reads.into_values();
        read.insert("exit".to_owned(), json!(k + 1));
        read.insert("messages".to_owned(), json!(place.messages));
        leave(graph, &exit.to, read)
    }))
}

/// Iterates over the exits that a judge decides, in order.
fn judges(node: &StateNode) -> impl Iterator<Item = &Exit> {
    let judged = |exit: &&Exit| matches!(exit.cause, ExitCause::Judge(_));
    node.exits.iter().filter(judged)
}

/// Returns the statements of the judged exits.
fn judged(node: &StateNode, view: &View<'_>) -> Result<Vec<String>, String> {
    let words = judges(node).filter_map(|exit| match &exit.cause {
        ExitCause::Judge(template) => Some(template.render(view)),
        ExitCause::When(_) | ExitCause::AfterMessages(_) => None,
    });
    words
        .collect::<Result<_, _>>()
        .map_err(|e| format!("`judge`: {e}"))
}

fn ask_judge(
    texts: &Texts,
    route: &Route,
    node: &StateNode,
    view: &View<'_>,
    judged: Vec<String>,
) -> Decision {
    let mut system = match scene(node, view) {
        Ok(scene) => scene,
        Err(text) => return Decision::Failed(text),
    };
    system.push_str(&say_in(texts, view, texts::JUDGE, &[]));
    system.push('\n');
    for (k, words) in judged.iter().enumerate() {
        let _ = write!(system, "\n{}. {words}", k + 1);
    }
    Decision::Ask(Question {
        about: About::Exit(judged),
        model: route.asks.model.clone(),
        system,
        closing: "Which statement holds?".to_owned(),
        read: Map::new(),
    })
}

fn scene(node: &StateNode, view: &View<'_>) -> Result<String, String> {
    match &node.scene {
        None => Ok(String::new()),
        Some(scene) => {
            let text = scene.render(view).map_err(|e| format!("`scene`: {e}"))?;
            Ok(format!("{text}\n\n"))
        }
    }
}

/// Returns the decision for the judged exit with this number, from 1. Without a number the state stays.
pub(crate) fn exit(graph: &Graph, at: &Name, number: Option<usize>) -> Decision {
    let node = graph.states.get(at);
    let exit = number.and_then(|n| judges(node?).nth(n - 1));
    match exit {
        None => Decision::Chosen(Choice::Stay, Map::new()),
        Some(exit) => leave(graph, &exit.to, Map::new()),
    }
}

// ---- the next speaker ----------------------------------------------------------------------------------------

fn speaks(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    agent: Id,
    route: &Route,
    node: &StateNode,
    place: &Place,
) -> Decision {
    let view = View::new(cx, snapshot, Some(agent));
    let begins = place.last.is_none();
    let begin = node.begin.as_ref().filter(|_| begins);
    if let Some((begin, speaker)) = begin.and_then(|b| Some((b, node.plays(&b.speaker)?))) {
        let is_person = cx.network.people.contains_key(&speaker.agent);
        return match &begin.say {
            // A person writes their own opening.
            Some(say) if !is_person => match say.render(&view) {
                Ok(text) => Decision::Say(speaker.role.clone(), speaker.agent.clone(), text),
                Err(e) => Decision::Failed(format!("`say`: {e}")),
            },
            _ => chosen(speaker, place, "begins"),
        };
    }
    match node.order {
        _ if node.speakers.len() == 1 => chosen(&node.speakers[0], place, "only"),
        _ if begins => chosen(&node.speakers[0], place, "begins"),
        Order::InTurn => chosen(in_turn(node, place), place, "in_turn"),
        Order::Random => {
            let is_other = |s: &&Speaker| Some(&s.role) != place.last.as_ref();
            let others: Vec<&Speaker> = node.speakers.iter().filter(is_other).collect();
            let k = chance(cx, snapshot, agent, others.len());
            chosen(others[k], place, "random")
        }
        Order::ByModel => ask_who(&cx.network.texts, route, node, &view, place),
    }
}

/// Returns the decision that a speaker speaks, with the reason why it is their turn.
fn chosen(speaker: &Speaker, place: &Place, turn: &str) -> Decision {
    let read = Map::from_iter([
        ("messages".to_owned(), json!(place.messages)),
        ("turn".to_owned(), json!(turn)),
    ]);
    Decision::Chosen(speaks_as(speaker), read)
}

/// Returns the choice that a speaker speaks.
pub(crate) fn speaks_as(speaker: &Speaker) -> Choice {
    Choice::Speak {
        role: speaker.role.clone(),
        member: speaker.agent.clone(),
    }
}

/// Returns the speaker after the last one, in speaking order.
pub(super) fn in_turn<'n>(node: &'n StateNode, place: &Place) -> &'n Speaker {
    let is = |s: &Speaker| Some(&s.role) == place.last.as_ref();
    let last = node.speakers.iter().position(is);
    let next = last.map_or(0, |k| (k + 1) % node.speakers.len());
    &node.speakers[next]
}

/// Returns a random index below `of`. It is derived from the session's seed, the agent and the height of its stack, so that a
/// replay draws the same index.
fn chance(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id, of: usize) -> usize {
    let state = snapshot.agent(agent);
    let seed = View::new(cx, snapshot, Some(agent)).seed();
    let mut bytes = seed.to_le_bytes().to_vec();
    for birth in state.family.path.iter() {
        bytes.extend_from_slice(&birth.to_le_bytes());
    }
    bytes.extend_from_slice(&state.stack.height.to_le_bytes());
    let digest = Digest::of(&bytes).0;
    let number = digest[..8]
        .iter()
        .fold(0_u64, |n, b| n << 8 | u64::from(*b));
    usize::try_from(number % of as u64).expect("below the number of speakers")
}

fn ask_who(
    texts: &Texts,
    route: &Route,
    node: &StateNode,
    view: &View<'_>,
    place: &Place,
) -> Decision {
    let mut system = match scene(node, view) {
        Ok(scene) => scene,
        Err(text) => return Decision::Failed(text),
    };
    system.push_str(&say_in(texts, view, texts::LEADER, &[]));
    system.push('\n');
    for Speaker {
        role, instructions, ..
    } in &node.speakers
    {
        // The model that chooses needs to know who the speakers are. Only plain instructions are shown, not templates.
        let plain = instructions.as_ref().map_or("", |t| t.text().unwrap_or(""));
        let _ = write!(system, "\n- {role}");
        if !plain.is_empty() {
            let _ = write!(system, ": {plain}");
        }
    }
    let closing = match &place.last {
        Some(last) => format!("{last} spoke last. Who speaks next?"),
        None => "Who speaks next?".to_owned(),
    };
    let roles = node.speakers.iter().map(|s| s.role.clone()).collect();
    Decision::Ask(Question {
        about: About::Speaker(roles),
        model: route.asks.model.clone(),
        system,
        closing,
        read: Map::new(),
    })
}
