//! Requests of routing models, and the texts that a routed agent adds to the contexts of its members.

use super::talk::{Entry, Talk, What, Who};
use super::{Content, History, Laid, RenderCache, Request, Segment};
use crate::network::{Does, Part, Route, RouteBy, Seen, StateNode, ViewDef};
use crate::questions::ask::{About, Question};
use crate::questions::summary;
use crate::snapshot::{Place, Snapshot};
use crate::stored::bounds::HEARD;
use crate::stored::ids::{Body, Id, Line, Name};
use crate::values::expression::EvalError;
use crate::view::{Cx, View};
use std::fmt::Write as _;

/// Returns the request of a router that asks a model.
pub(super) fn request(
    cx: &Cx<'_>,
    history: &dyn History,
    snapshot: &Snapshot,
    agent: Id,
    question: &Question,
    cache: &mut RenderCache,
) -> Request {
    let state = snapshot.agent(agent);
    let talk = cache.talk.get_or_insert_default();
    talk.follow(history, agent, state.stack.last);
    if let About::Summary(policy) = &question.about {
        return super::beside::summary(cx, history, talk, question, policy);
    }
    let tools = question.tools();
    let system = Content::System(question.system.clone());
    let mut segments = vec![
        Segment::new(Part::System, system),
        Segment::new(Part::Tools, Content::Tools(tools)),
    ];
    let (summary, said) = talk.said(HEARD, summary::VIEW);
    if let Some(summary) = summary {
        let text = super::history::summary(history, summary);
        segments.push(Segment::new(Part::History, Content::User(text)));
    }
    for entry in said {
        let text = line(history, entry);
        segments.push(Segment::new(Part::History, Content::User(text)));
    }
    let mut closing = String::new();
    if let Some(why) = state.routing.why {
        let why = history.text(why);
        let _ = write!(closing, "Your last answer could not be used: {why}\n\n");
    }
    closing.push_str(&question.closing);
    segments.push(Segment::new(Part::Now, Content::User(closing)));
    let params = super::parameters_of(cx.network, &question.model);
    let (model, choice) = (&question.model, question.choice());
    let request = cache.finish(
        cx.network,
        model,
        params,
        Laid::of(segments),
        choice,
        None,
        None,
    );
    Request {
        purpose: question.purpose(),
        ..request
    }
}

/// Returns an entry of the conversation as text, with its speaker.
pub(super) fn line(history: &dyn History, entry: &Entry) -> String {
    let who = match &entry.who {
        Who::Outside(None) => "user",
        Who::Outside(Some(role)) => role,
        Who::Member(member) => member,
    };
    match &entry.what {
        What::Said(body) => {
            let text = history.text(*body);
            format!("{who}: {}", super::history::called(&text))
        }
        What::Did(call, result) => {
            let seen = &call.called();
            let gave = result.as_ref().and_then(|result| result.body);
            let gave = gave.map_or_else(|| "(no result)".into(), |body| history.text(body));
            let args = super::history::shown_args(history, call);
            format!("{who} called {seen} {args}: {gave}")
        }
    }
}

/// Surroundings of a member: the routed agent above it, its view on the others, and the state of the graph.
pub(super) struct Surroundings<'a> {
    pub(super) above: Id,
    pub(super) view: ViewDef,
    /// Policy of the summary that replaces older messages.
    pub(super) summary: Option<Name>,
    node: Option<(&'a StateNode, &'a Place)>,
}

/// Returns the surroundings of an agent, also while it rests. `None` if it is not a member of a routed agent.
pub(super) fn surroundings<'a>(
    cx: &Cx<'a>,
    snapshot: &'a Snapshot,
    agent: Id,
) -> Option<Surroundings<'a>> {
    let state = snapshot.agent(agent);
    let above = state.family.parent?;
    let parent = snapshot.agent(above);
    let Does::Route(route) = &cx.network.agents.get(&parent.def)?.does else {
        return None;
    };
    let Route { by, view, .. } = route;
    let routing = &parent.routing;
    let node = match (by, &routing.at) {
        (RouteBy::States(graph), Some(at)) => graph.states.get(at).zip(routing.places.get(at)),
        _ => None,
    };
    let def = cx.network.agents.get(&state.def)?;
    let own = def.view.as_ref();
    let of_state = node.and_then(|(node, _)| node.view.as_ref());
    let seen = own.or(of_state).unwrap_or(view).clone();
    let summary = match own {
        _ if matches!(seen.of, Seen::Own | Seen::SinceEntry) => None,
        Some(_) => summary::policy_of(route, def),
        None => seen.summary.as_ref().map(|_| summary::VIEW.into()),
    };
    Some(Surroundings {
        above,
        view: seen,
        summary,
        node,
    })
}

impl Surroundings<'_> {
    /// Returns the first line that the member sees, also of its own messages. `None` means that it sees all.
    pub(super) fn since(&self) -> Option<Line> {
        let entered = self.node.map(|(_, place)| place.entered);
        entered.filter(|_| self.view.of == Seen::SinceEntry)
    }

    /// Returns the texts around a speaker's own system prompt: the scene before it, and the speaker's instructions after it.
    pub(super) fn around(
        &self,
        cx: &Cx<'_>,
        snapshot: &Snapshot,
        agent: Id,
    ) -> Result<(String, String), EvalError> {
        let Some((node, place)) = self.node else {
            return Ok((String::new(), String::new()));
        };
        let above = View::new(cx, snapshot, Some(self.above));
        let scene = node.scene.as_ref().map(|scene| scene.render(&above));
        let own = View::new(cx, snapshot, Some(agent));
        let role = place.last.as_deref().unwrap_or_default();
        let speaker = node.speaker(role, &snapshot.agent(agent).def);
        let instructions = speaker.and_then(|speaker| speaker.instructions.as_ref());
        let instructions = instructions.map(|instructions| instructions.render(&own));
        Ok((
            scene.transpose()?.unwrap_or_default(),
            instructions.transpose()?.unwrap_or_default(),
        ))
    }
}

/// Returns the message of a call to a member: the messages and calls of the others. `None` if the member sees none of them.
pub(super) fn told(
    history: &dyn History,
    talk: &Talk,
    around: &Surroundings<'_>,
    call: Id,
) -> Option<String> {
    let seen = talk.seen(
        call,
        &around.view,
        around.summary.as_deref(),
        around.since(),
    );
    let lines = match seen.entries.as_slice() {
        [] if seen.summary.is_none() => return None,
        // A single message from outside is shown without its speaker, because the user addresses the member.
        [only] if seen.summary.is_none() && only.who == Who::Outside(None) => match &only.what {
            What::Said(body) => super::history::called(&history.text(*body)),
            What::Did(..) => line(history, only),
        },
        all => {
            let lines: Vec<String> = all.iter().map(|e| line(history, e)).collect();
            lines.join("\n")
        }
    };
    Some(match seen.summary {
        Some(summary) => {
            let summary = super::history::summary(history, summary);
            format!("{summary}\n\nNewest:\n{lines}")
        }
        None => lines,
    })
}

/// Returns the messages from outside that the message of a call to a member repeats.
pub(super) fn given(talk: &Talk, around: &Surroundings<'_>, call: Id) -> Vec<Body> {
    if around.view.of == Seen::Own {
        return talk.asked_before(call).into_iter().collect();
    }
    let seen = talk.seen(
        call,
        &around.view,
        around.summary.as_deref(),
        around.since(),
    );
    let entries = seen.entries.iter();
    entries.filter_map(|entry| entry.said_outside()).collect()
}

/// Returns a system prompt with the texts before and after it.
pub(super) fn framed(system: String, around: &(String, String)) -> String {
    let parts = [&around.0, &system, &around.1];
    let parts: Vec<&str> = parts
        .iter()
        .map(|part| part.trim_end())
        .filter(|part| !part.trim().is_empty())
        .collect();
    match parts.as_slice() {
        [_] if around.0.is_empty() && around.1.is_empty() => system,
        parts => parts.join("\n\n"),
    }
}
