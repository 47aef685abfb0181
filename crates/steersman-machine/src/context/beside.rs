//! Requests of the engine for itself: extractions and summaries of conversations.

use super::talk::Talk;
use super::{Content, History, Laid, RenderCache, Request, Segment};
use crate::network::{Part, Seen, ToolChoice};
use crate::questions::ask::Question;
use crate::questions::{Purpose, extract};
use crate::snapshot::{OpenCall, Snapshot};
use crate::stored::bounds::HEARD;
use crate::stored::ids::{Body, Id, Name};
use crate::view::Cx;
use std::sync::Arc;

fn user(part: Part, text: String) -> Arc<Segment> {
    Segment::new(part, Content::User(text))
}

/// Returns the request of an extraction.
pub(super) fn extraction(
    cx: &Cx<'_>,
    history: &dyn History,
    snapshot: &Snapshot,
    open: &OpenCall,
    cache: &mut RenderCache,
) -> Request {
    let asked = extract::asked(cx, snapshot, open);
    let mut segments = vec![Segment::new(Part::System, Content::System(asked.system))];
    if let Some(before) = asked.before {
        let before = history.text(before);
        let text = format!("Said before, for information alone:\n{before}");
        segments.push(user(Part::History, text));
    }
    for said in asked.said {
        let text = message(cx, history, snapshot, open.owner, said, cache);
        segments.push(user(Part::History, text));
    }
    let params = super::parameters_of(cx.network, &asked.model);
    // The request shares nothing with the agent's own requests, so it uses no cache.
    let request = RenderCache::default().finish(
        cx.network,
        &asked.model,
        params,
        Laid::of(segments),
        ToolChoice::Auto,
        Some(asked.output.to_string()),
        None,
    );
    Request {
        purpose: Purpose::Extract,
        ..request
    }
}

/// Returns the text of a message. If it is the call of a member that sees the other members, the text is their messages and
/// calls.
fn message(
    cx: &Cx<'_>,
    history: &dyn History,
    snapshot: &Snapshot,
    agent: Id,
    said: Body,
    cache: &mut RenderCache,
) -> String {
    let state = snapshot.agent(agent);
    let call = state
        .input
        .serving
        .filter(|_| state.input.args == Some(said));
    let around = super::route::surroundings(cx, snapshot, agent);
    if let (Some(call), Some(around)) = (call, around)
        && around.view.of != Seen::Own
    {
        let talk = cache.talk.get_or_insert_default();
        talk.follow(
            history,
            around.above,
            snapshot.agent(around.above).stack.last,
        );
        if let Some(told) = super::route::told(history, talk, &around, call) {
            return told;
        }
    }
    super::history::called(&history.text(said))
}

/// Returns the request for a summary: the previous summary, and all messages since.
pub(super) fn summary(
    cx: &Cx<'_>,
    history: &dyn History,
    talk: &Talk,
    question: &Question,
    policy: &Name,
) -> Request {
    let system = Content::System(question.system.clone());
    let mut segments = vec![Segment::new(Part::System, system)];
    let (before, since) = talk.since(policy);
    if let Some(before) = before {
        let text = format!("The summary so far:\n{}", history.text(before));
        segments.push(user(Part::History, text));
    }
    // If earlier summaries failed, there may be any number of messages. The oldest are then left out.
    let left_out = since.len().saturating_sub(2 * HEARD);
    for entry in &since[left_out..] {
        let text = super::route::line(history, entry);
        segments.push(user(Part::History, text));
    }
    segments.push(user(Part::Now, question.closing.clone()));
    let params = super::parameters_of(cx.network, &question.model);
    let request = RenderCache::default().finish(
        cx.network,
        &question.model,
        params,
        Laid::of(segments),
        ToolChoice::Auto,
        None,
        None,
    );
    Request {
        purpose: Purpose::Summary,
        ..request
    }
}
