//! What models see that the engine asks for itself: to fill state from what was said, and to write summaries.

use super::talk::Talk;
use super::{Content, History, Purpose, RenderCache, Request, Segment};
use crate::bounds::HEARD;
use crate::extract;
use crate::ids::{Body, Id, Name};
use crate::network::{Part, Seen, ToolChoice};
use crate::route::Question;
use crate::snapshot::{OpenCall, Snapshot};
use crate::tick::Cx;
use std::sync::Arc;

fn user(part: Part, text: String) -> Arc<Segment> {
    Segment::new(part, Content::User(text))
}

/// What is asked where state is filled from what was said.
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
        let told = told(cx, history, snapshot, open.owner, said, cache);
        segments.push(user(Part::History, told));
    }
    let params = super::parameters_of(cx.network, &asked.model);
    // It has nothing in common with the agent's own requests.
    let request = RenderCache::default().finish(
        cx.network,
        &asked.model,
        params,
        segments,
        ToolChoice::Auto,
        Some(asked.output.to_string()),
        None,
    );
    Request {
        purpose: Purpose::Extract,
        ..request
    }
}

/// What was said. A member is told by its call what the others said, where it sees these.
fn told(
    cx: &Cx<'_>,
    history: &dyn History,
    snapshot: &Snapshot,
    agent: Id,
    said: Body,
    cache: &mut RenderCache,
) -> String {
    let state = snapshot.agent(agent);
    let call = state.serving.filter(|_| state.args == Some(said));
    let around = super::route::surroundings(cx, snapshot, agent);
    if let (Some(call), Some(around)) = (call, around)
        && around.view.of != Seen::Own
    {
        let talk = cache.talk.get_or_insert_default();
        talk.follow(history, around.above, snapshot.agent(around.above).last);
        if let Some(told) = super::route::told(history, talk, &around, call) {
            return told;
        }
    }
    super::history::called(&history.text(said))
}

/// What is asked where a summary is written: the one before, and what was said since.
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
    // Where summaries failed there may be any number: the oldest are left out then.
    let most = since.len().saturating_sub(2 * HEARD);
    for entry in &since[most..] {
        let text = super::route::line(history, entry);
        segments.push(user(Part::History, text));
    }
    segments.push(user(Part::Now, question.closing.clone()));
    let params = super::parameters_of(cx.network, &question.model);
    let request = RenderCache::default().finish(
        cx.network,
        &question.model,
        params,
        segments,
        ToolChoice::Auto,
        None,
        None,
    );
    Request {
        purpose: Purpose::Summary,
        ..request
    }
}
