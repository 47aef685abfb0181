//! The context: the input of a model, rendered again for every call from the snapshot and the stack.
//!
//! The neutral [`Request`], before a provider's encoding, is reproduced byte for byte. [`request`] is a function of network,
//! snapshot and log alone. A [`RenderCache`] only makes it faster: a piece is rendered again if and only if something that its
//! templates read has changed, and the result is the same as with an empty cache. Commits record the boundaries of what is
//! shown as watermarks ([`due_watermarks`]).

mod again;
mod beside;
mod compact;
mod files;
mod history;
pub(crate) mod hooked;
mod notes;
pub(crate) mod policies;
mod route;
mod segments;
mod shown;
mod talk;
mod tools;
mod units;
mod why;

use crate::network::{
    AgentDef, Before, CallStyle, ContextRender, ModelAgent, Network, Part, Seen, Takes, ToolChoice,
    ViewDef,
};
use crate::questions::{Purpose, ToolSpec};
use crate::snapshot::{Agent, Snapshot};
use crate::stored::commit::{Commit, Hooked, Kind};
use crate::stored::ids::{Body, Digest, Id, Line, Name};
use crate::stored::interaction::Interaction;
use crate::values::expression::{EvalError, Template};
use crate::values::types::schema_of;
use crate::view::{Cx, Read, Trace, View};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

pub use files::{FilePart, for_model};
pub(crate) use history::called;
pub use hooked::before_model;
pub use notes::{Spoken, Transcript};
pub(crate) use notes::{newest, relevant};
pub use policies::{due_watermarks, summing};
pub use segments::{Iter, Segments};
pub use why::{Absent, Explained, Origin, explain};

/// Version of the renderer. It grows when the same network and commits would give other requests.
pub const RENDER_VERSION: u16 = 1;

/// Reads stacks and texts. The owner of the log implements it, with a bounded cache of its own.
pub trait History: crate::stored::ids::Bodies {
    /// Returns the interactions that `line` pushed onto `agent`'s stack, oldest first, and the line of the previous push onto that
    /// stack ([`Line::NONE`] at the bottom).
    fn pushes(&self, agent: Id, line: Line) -> (Arc<[Interaction]>, Line);
    /// Returns the text of a body, as [`crate::stored::ids::Bodies::text`] does.
    fn body(&self, body: Body) -> Arc<str> {
        self.text(body)
    }
    /// Returns the changes that hooks made to the request or answer of an effect, as far as the line that wished the effect has them.
    fn hooked(&self, effect: Id) -> Vec<Hooked>;
}

/// Returns the purpose of the model call that an agent owes, or that the engine makes for the agent.
pub fn purpose(cx: &Cx<'_>, snapshot: &Snapshot, agent: Id) -> Purpose {
    if crate::questions::extract::open(snapshot, agent).is_some() {
        return Purpose::Extract;
    }
    if snapshot.agent(agent).kind == Kind::Model {
        return match summing(snapshot, agent) {
            Some(policy) => Purpose::of_summary(&policy),
            None => Purpose::Answer,
        };
    }
    let question = crate::routers::question(cx, snapshot, agent);
    question.map_or(Purpose::Decision, |question| question.purpose())
}

/// A model call before any provider's encoding.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The purpose of the call.
    pub purpose: Purpose,
    /// Name of the model in the definition.
    pub model: Name,
    /// Shared, immutable pieces in the order of the declared parts.
    pub segments: Segments,
    /// Merged parameters in key order: `temperature`, `max_tokens`, and others unchanged.
    pub params: Arc<[(String, Json)]>,
    /// Rule for calls in the answer: free, required, forbidden, or a certain tool.
    pub choice: ToolChoice,
    /// JSON Schema of the wanted answer. `None` means text.
    pub output: Option<Arc<str>>,
    /// Text that the answer begins with.
    pub prefill: Option<Arc<str>>,
    /// The way in which tools are described to the model.
    pub calls: CallStyle,
    /// Chained digest over the whole request.
    pub digest: Digest,
    /// Number of bytes, from the start, that are equal in the agent's previous request. 0 if that went to another model.
    pub prefix: u64,
    /// The part in which the previous request first differs. `None` means that the previous request is a prefix of this one,
    /// that it went to another model, or that there is none.
    pub broke: Option<Name>,
}

/// A piece of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// The part that the segment belongs to: `system`, `tools`, `history`, `now`.
    pub part: Part,
    /// Content of the segment.
    pub content: Content,
    /// Digest of the canonical form.
    pub digest: Digest,
    /// Size of the canonical form in bytes.
    pub len: u64,
}

/// Content of a segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Content {
    /// The system prompt.
    System(String),
    /// The offered tools, in the same order in every request.
    Tools(Vec<ToolSpec>),
    /// Text of a person, a caller or the engine.
    User(String),
    /// A file that came with the message before it.
    File(FilePart),
    /// An answer of the model.
    Assistant {
        /// Text of the answer.
        text: Option<String>,
        /// Calls in the answer.
        calls: Vec<CallSpec>,
        /// JSON that the provider wants back unchanged.
        opaque: Option<String>,
    },
    /// The result of a call. Results follow their `Assistant`, one for each call, in call order.
    Result {
        /// Label of the call: the provider's id, or else one of the machine.
        label: String,
        /// Name of the tool as the model saw it.
        name: String,
        /// Text that the model sees.
        text: String,
        /// True if the call is not known to have succeeded.
        error: bool,
    },
}

/// A call as the model made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallSpec {
    /// The provider's id of the call, or else one of the machine.
    pub label: String,
    /// Name of the tool as the model saw it.
    pub name: String,
    /// Arguments as JSON text.
    pub args: String,
}

/// Rendered pieces that later requests of one agent on one branch may reuse. Dropping the cache only costs time. It must be
/// dropped when a body is erased. A clone shares the pieces, so it costs the same at any length.
#[derive(Clone, Debug, Default)]
pub struct RenderCache {
    agent: Option<Id>,
    binding: Option<Digest>,
    units: units::Units,
    /// The mode in which system prompt and tools were rendered.
    mode: Option<Name>,
    system: Option<Kept>,
    tools: Option<(Vec<bool>, Option<Arc<Segment>>)>,
    previous: Option<Previous>,
    caller: Option<history::Caller>,
    talk: Option<talk::Talk>,
    /// The summary that replaces the compacted part.
    summary: Option<(Body, Kept)>,
    /// Text before and after the agent's own system prompt.
    around: (String, String),
    /// The view of the other members with which the units were rendered, and the line at which the view begins.
    seen: Option<(ViewDef, Option<Line>)>,
    differed: u32,
    /// Number of segments that were looked at, without the units.
    visited: u64,
}

impl RenderCache {
    /// Drops everything that can be rendered again, except the digest and size of each segment, which take little memory. So
    /// the next request can still be compared with the last one, segment by segment.
    #[must_use]
    pub fn at_rest(self) -> Self {
        let previous = self.previous.map(|previous| Previous {
            segments: previous.segments.bare(),
            bare: true,
            ..previous
        });
        Self {
            agent: self.agent,
            binding: self.binding,
            previous,
            differed: self.differed,
            ..Self::default()
        }
    }
}

/// The previous request of the agent. The next one begins with the segments that both have.
#[derive(Clone, Debug)]
struct Previous {
    model: Name,
    segments: Segments,
    /// Number of segments before the agent's own conversation. `None` if the request does not contain it.
    ahead: Option<usize>,
    /// True if the segments are without their content.
    bare: bool,
}

/// The segments of a request, in order, with the agent's own conversation in the middle.
#[derive(Default)]
struct Laid {
    ahead: Vec<Arc<Segment>>,
    /// True if the conversation is in it.
    own: bool,
    behind: Vec<Arc<Segment>>,
}

impl Laid {
    fn of(segments: Vec<Arc<Segment>>) -> Self {
        Self {
            ahead: segments,
            ..Self::default()
        }
    }

    /// Returns the list to which the next segment belongs.
    fn end(&mut self) -> &mut Vec<Arc<Segment>> {
        if self.own {
            &mut self.behind
        } else {
            &mut self.ahead
        }
    }
}

/// A rendered segment and the values that its template read.
#[derive(Clone, Debug)]
struct Kept {
    segment: Option<Arc<Segment>>,
    reads: Vec<Read>,
}

/// Returns the changes by hooks that a commit has for this effect.
pub fn hooked_of(commit: Option<&Commit>, effect: Id) -> Vec<Hooked> {
    let all = commit.into_iter().flat_map(Commit::hooked);
    all.filter(|hooked| hooked.effect == Some(effect))
        .cloned()
        .collect()
}

/// The neutral request of the model call that `agent` owes, or that the engine makes for it, with what hooks changed.
///
/// An error comes from a template or from an expression under `tools`.
///
/// # Panics
/// If the agent owes neither a model call nor a decision of a model.
pub fn request(
    cx: &Cx<'_>,
    history: &dyn History,
    snapshot: &Snapshot,
    agent: Id,
    cache: &mut RenderCache,
) -> Result<Request, EvalError> {
    let request = unedited(cx, history, snapshot, agent, cache)?;
    let request = hooked::edited(cx, history, snapshot, agent, request);
    Ok(files::bounded(cx, snapshot, agent, request))
}

/// The request of [`request`] as it is before hooks change it.
///
/// If the cache was used before, one request in a thousand (by its digest) is rendered in full as well; one in so many as it has
/// segments if these are more, so the cost of a request does not grow with its length. If the full render differs, it is
/// returned, and [`RenderCache::differed`] counts it.
///
/// An error comes from a template or from an expression under `tools`.
///
/// # Panics
/// If the agent owes neither a model call nor a decision of a model.
pub fn unedited(
    cx: &Cx<'_>,
    history: &dyn History,
    snapshot: &Snapshot,
    agent: Id,
    cache: &mut RenderCache,
) -> Result<Request, EvalError> {
    cache.belongs_to(snapshot, agent);
    if let Some(open) = crate::questions::extract::open(snapshot, agent) {
        return Ok(beside::extraction(cx, history, snapshot, open, cache));
    }
    if let Some(policy) = summing(snapshot, agent) {
        return compact::request(cx, history, snapshot, agent, &policy, cache);
    }
    let warm = cache.previous.is_some();
    let request = render(cx, history, snapshot, agent, cache)?;
    let sample = u16::from_le_bytes([request.digest.0[0], request.digest.0[1]]);
    if !warm || usize::from(sample) % request.segments.len().max(1_000) != 0 {
        return Ok(request);
    }
    let mut fresh = RenderCache::default();
    fresh.belongs_to(snapshot, agent);
    let full = render(cx, history, snapshot, agent, &mut fresh)?;
    if full.digest == request.digest {
        return Ok(request);
    }
    fresh.differed = cache.differed + 1;
    *cache = fresh;
    Ok(full)
}

fn render(
    cx: &Cx<'_>,
    history: &dyn History,
    snapshot: &Snapshot,
    agent: Id,
    cache: &mut RenderCache,
) -> Result<Request, EvalError> {
    let state = snapshot.agent(agent);
    let def = cx.network.agent(&state.def);
    let Some(model) = cx.network.in_force(state) else {
        let question = crate::routers::question(cx, snapshot, agent);
        let question = question.expect("a router that asks has a question");
        return Ok(route::request(
            cx, history, snapshot, agent, &question, cache,
        ));
    };
    if cache.mode != state.mode {
        (cache.system, cache.tools) = (None, None);
        let before = def.model(cache.mode.as_ref());
        if before.is_some_and(|before| {
            before.context.render != model.context.render
                || cx.network.takes(&before.model) != cx.network.takes(&model.model)
        }) {
            cache.units = units::Units::default();
            cache.summary = None;
        }
        cache.mode.clone_from(&state.mode);
    }
    let around = route::surroundings(cx, snapshot, agent);
    let takes = cx.network.takes(&model.model);
    if let Some(around) = &around {
        if around.view.of != Seen::Own || !takes.is_none() {
            let above = snapshot.agent(around.above);
            let talk = cache.talk.get_or_insert_default();
            talk.follow(history, around.above, above.stack.last);
        }
        let seen = Some((around.view.clone(), around.since()));
        if cache.seen != seen {
            cache.seen = seen;
            cache.units = units::Units::default();
        }
    }
    let trace = Trace::default();
    let base = View::new(cx, snapshot, Some(agent));
    let at = At {
        cx,
        history,
        snapshot,
        agent,
        base: &base,
        trace: &trace,
        form: &model.context.render,
        takes,
    };
    let mut laid = Laid::default();
    for part in &model.context.parts {
        match part {
            Part::System => at.system(model, around.as_ref(), cache, laid.end())?,
            Part::Tools => at.tools(def, model, cache, laid.end())?,
            Part::History => {
                history::caller(&at, cache, laid.end());
                compact::shown(&at, cache, laid.end())?;
                let seen = around.as_ref().zip(cache.talk.as_ref());
                history::render(&at, seen, &mut cache.units)?;
                history::pinned(&at, seen, &mut cache.units, laid.end())?;
                if laid.own {
                    cache.units.extend(0, &mut laid.behind);
                }
                laid.own = true;
            }
            Part::Now => {
                let text = model.context.now.as_ref().map(|t| t.render(&base));
                let text = text.transpose()?.unwrap_or_default();
                let text = at.with_before(model, text);
                let text = Some(text).filter(|t| !t.trim().is_empty());
                laid.end()
                    .extend(text.map(|t| Segment::new(Part::Now, Content::User(t))));
            }
        }
    }
    if let Some(open) = crate::questions::judgement::open(snapshot, agent) {
        let text = crate::questions::judgement::question(cx, snapshot, open);
        laid.end()
            .push(Segment::new(Part::Now, Content::User(text)));
    }
    let judgement = crate::questions::judgement::wanted(cx, snapshot, agent);
    let mut others = laid.ahead.iter().chain(&laid.behind);
    let has_tools = others.any(|segment| segment.part == Part::Tools);
    let choice = choice(snapshot, agent, model, has_tools);
    let prefill = model.prefill.as_ref().map(|t| t.render(&base));
    let prefill = prefill.transpose()?;
    // An output that is text needs no schema.
    let output = def.output.as_ref().filter(|output| !output.is_text());
    let output = output.map(|output| schema_of(&output.ty));
    let output = judgement.or(output).map(|schema| schema.to_string());
    let params = parameters(cx.network, model, &model.model);
    Ok(cache.finish(
        cx.network,
        &model.model,
        params,
        laid,
        choice,
        output,
        prefill,
    ))
}

/// Returns whether the model may call tools. While the agent must judge arguments, tools are off. An agent that serves a review keeps
/// them, because it may look things up, and one that judges its own draft, because it may go back to work. Such an agent must be
/// free to accept.
fn choice(snapshot: &Snapshot, agent: Id, model: &ModelAgent, has_tools: bool) -> ToolChoice {
    let last_call = snapshot.agent(agent).counters.last_call;
    let judges = crate::questions::judgement::open(snapshot, agent).is_some();
    let reflects = crate::questions::judgement::judges_itself(snapshot, agent);
    match &model.tool_choice {
        _ if last_call || judges => ToolChoice::None,
        ToolChoice::None => ToolChoice::None,
        _ if !has_tools && reflects => ToolChoice::None,
        _ if !has_tools || reflects => ToolChoice::Auto,
        choice => choice.clone(),
    }
}

/// The inputs of rendering.
struct At<'a> {
    cx: &'a Cx<'a>,
    history: &'a dyn History,
    snapshot: &'a Snapshot,
    agent: Id,
    base: &'a View<'a>,
    trace: &'a Trace,
    /// Templates for the parts of the conversation.
    form: &'a ContextRender,
    /// The files that the agent's model takes.
    takes: &'a Takes,
}

impl At<'_> {
    /// Adds to `now` the results of the tools that ran before this turn (`before:`), and the passages that a view asks for.
    fn with_before(&self, model: &ModelAgent, mut now: String) -> String {
        let state = self.snapshot.agent(self.agent);
        for before in model.before.iter().filter(|before| before.show) {
            let result = match state.input.before.get(&before.named) {
                Some(Some(body)) => self.history.text(*body),
                Some(None) if *before.tool == *crate::network::notes::SEARCH => {
                    crate::network::notes::FAILED.into()
                }
                Some(None) | None => continue,
            };
            if !now.is_empty() {
                now.push('\n');
            }
            let _ = write!(now, "[{}] {result}", before.named);
        }
        let is_relevant = |before: &Before| *before.named == *crate::network::notes::RELEVANT;
        self.with_relevant(model.before.iter().any(is_relevant), &mut now);
        now
    }

    fn system(
        &self,
        model: &ModelAgent,
        surroundings: Option<&route::Surroundings<'_>>,
        cache: &mut RenderCache,
        segments: &mut Vec<Arc<Segment>>,
    ) -> Result<(), EvalError> {
        let around = surroundings.map(|s| s.around(self.cx, self.snapshot, self.agent));
        let around = around.transpose()?.unwrap_or_default();
        let same = cache.around == around;
        cache.around = around;
        let fresh = |kept: &Kept| same && self.base.unchanged(&kept.reads, self.trace);
        if !cache.system.as_ref().is_some_and(fresh) {
            let (text, reads) = match &model.system {
                Some(template) => self.template(template, |view| view)?,
                None => (String::new(), Vec::new()),
            };
            let text = route::framed(text, &cache.around);
            let content = (!text.trim().is_empty()).then_some(Content::System(text));
            cache.system = Some(Kept {
                segment: content.map(|content| Segment::new(Part::System, content)),
                reads,
            });
        }
        segments.extend(cache.system.as_ref().and_then(|kept| kept.segment.clone()));
        Ok(())
    }

    fn tools(
        &self,
        def: &AgentDef,
        model: &ModelAgent,
        cache: &mut RenderCache,
        segments: &mut Vec<Arc<Segment>>,
    ) -> Result<(), EvalError> {
        let offered = tools::offered(self, model)?;
        if cache
            .tools
            .as_ref()
            .is_none_or(|(known, _)| *known != offered)
        {
            let specs = tools::specs(self.cx.network, def, model, &offered);
            let content = (!specs.is_empty()).then_some(Content::Tools(specs));
            let segment = content.map(|content| Segment::new(Part::Tools, content));
            cache.tools = Some((offered, segment));
        }
        segments.extend(
            cache
                .tools
                .as_ref()
                .and_then(|(_, segment)| segment.clone()),
        );
        Ok(())
    }

    /// Renders a template and returns the values that it read.
    fn template<'b>(
        &'b self,
        template: &Template,
        names: impl FnOnce(View<'b>) -> View<'b>,
    ) -> Result<(String, Vec<Read>), EvalError> {
        let view = View::new(self.cx, self.snapshot, Some(self.agent));
        let view = names(view.traced(self.trace));
        self.trace.take();
        let text = template.render(&view)?;
        Ok((text, self.trace.take()))
    }
}

impl Segment {
    /// Makes a segment with its digest and size.
    pub fn new(part: Part, content: Content) -> Arc<Self> {
        let bytes = canonical(part, &content);
        Arc::new(Self {
            part,
            content,
            digest: Digest::of(&bytes),
            len: bytes.len() as u64,
        })
    }
}

/// Returns the canonical bytes of a segment, which its digest covers.
fn canonical(part: Part, content: &Content) -> Vec<u8> {
    // Most segments fit, so their bytes are not moved while they grow.
    let mut bytes = Vec::with_capacity(512);
    bytes.extend_from_slice(part_name(part).as_bytes());
    serde_json::to_writer(&mut bytes, content).expect("plain data can be written as JSON");
    bytes
}

fn part_name(part: Part) -> &'static str {
    match part {
        Part::System => "system",
        Part::Tools => "tools",
        Part::History => "history",
        Part::Now => "now",
    }
}

impl RenderCache {
    /// Returns how often a full render differed from this cache. A difference is a bug of the renderer and should be reported.
    pub fn differed(&self) -> u32 {
        self.differed
    }

    /// Returns the number of units of the conversation and of segments that renderings with this cache have looked at. It does not
    /// grow with the length of the conversation, but with what is new in it and with what has changed.
    pub fn visited(&self) -> u64 {
        self.visited + self.units.again.visited
    }

    /// Clears the cache if it belongs to another agent or definition.
    fn belongs_to(&mut self, snapshot: &Snapshot, agent: Id) {
        let binding = snapshot.binding.as_ref().map(|b| b.digest);
        if self.agent != Some(agent) || self.binding != binding {
            *self = Self {
                agent: Some(agent),
                binding,
                ..Self::default()
            };
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of a request, each once"
    )]
    fn finish(
        &mut self,
        network: &Network,
        model: &Name,
        params: Vec<(String, Json)>,
        laid: Laid,
        choice: ToolChoice,
        output: Option<String>,
        prefill: Option<String>,
    ) -> Request {
        let ahead = laid.own.then_some(laid.ahead.len());
        let previous = self.previous.take().filter(|p| p.model == *model);
        let (segments, prefix, broke) = self.joined(previous, laid);
        let calls = network
            .models
            .get(model)
            .map_or_else(Default::default, |m| m.calls);
        let rest = (
            &**model,
            &params,
            choice_word(&choice),
            &output,
            &prefill,
            style_word(calls),
        );
        let chain = segments.chain(segments.len());
        let mut whole = chain.map_or_else(Vec::new, |digest| digest.0.to_vec());
        serde_json::to_writer(&mut whole, &rest).expect("plain data can be written as JSON");
        self.previous = Some(Previous {
            model: model.clone(),
            segments: segments.clone(),
            ahead,
            bare: false,
        });
        Request {
            purpose: Purpose::Answer,
            model: model.clone(),
            segments,
            params: params.into(),
            choice,
            output: output.map(Arc::from),
            prefill: prefill.map(Arc::from),
            calls,
            digest: Digest::of(&whole),
            prefix,
            broke,
        }
    }

    /// Returns the segments of the next request, and what it has in common with the previous one: [`Request::prefix`] and
    /// [`Request::broke`]. Segments at the beginning that are the same are kept, so only the others cost time.
    fn joined(&mut self, previous: Option<Previous>, laid: Laid) -> (Segments, u64, Option<Name>) {
        let (mut old, before, bare) = previous.map_or_else(Default::default, |previous| {
            (previous.segments, previous.ahead, previous.bare)
        });
        let settled = laid.own.then(|| self.units.settle());
        let is_ahead = laid.own && !bare && before == Some(laid.ahead.len()) && {
            old.iter().zip(&laid.ahead)
        }
        .all(|(old, new)| old.digest == new.digest);
        let (mut rest, mut same) = (Vec::new(), 0);
        if is_ahead {
            let settled = settled.unwrap_or_default();
            same = laid.ahead.len() + settled;
            self.units.extend(settled, &mut rest);
        } else {
            rest = laid.ahead;
            if laid.own {
                self.units.extend(0, &mut rest);
            }
        }
        rest.extend(laid.behind);
        let pairs = old.since(same).zip(&rest);
        let equal = pairs.take_while(|(old, new)| old.digest == new.digest);
        let equal = equal.count();
        let common = same + equal;
        let (prefix, broke) =
            shared_prefix(old.bytes_of(common), old.get(common), rest.get(equal), bare);
        self.visited += rest.len() as u64;
        // A cache at rest has no content, so the new ones are kept.
        let kept = if bare { 0 } else { equal };
        old.truncate(if bare { 0 } else { common });
        rest.into_iter()
            .skip(kept)
            .for_each(|segment| old.push(segment));
        (old, prefix, broke)
    }
}

fn choice_word(choice: &ToolChoice) -> String {
    match choice {
        ToolChoice::Auto => "auto".to_owned(),
        ToolChoice::Any => "any".to_owned(),
        ToolChoice::None => "none".to_owned(),
        ToolChoice::Tool(name) => format!("tool {name}"),
    }
}

fn style_word(calls: CallStyle) -> &'static str {
    match calls {
        CallStyle::Auto => "auto",
        CallStyle::Native => "native",
        CallStyle::Structured => "structured",
        CallStyle::Text => "text",
    }
}

/// Returns the number of bytes that two requests share from the start, and the part of the older one in which they first
/// differ. `whole` is the size of the segments that both have, `old` and `new` are the first ones that differ. If the older
/// request is `bare`, only whole segments are compared.
fn shared_prefix(
    whole: u64,
    old: Option<&Arc<Segment>>,
    new: Option<&Arc<Segment>>,
    bare: bool,
) -> (u64, Option<Name>) {
    let Some(broken) = old else {
        return (whole, None);
    };
    let more = match new {
        Some(next) if next.part == broken.part && !bare => {
            let (a, b) = (
                canonical(broken.part, &broken.content),
                canonical(next.part, &next.content),
            );
            a.iter().zip(&b).take_while(|(x, y)| x == y).count() as u64
        }
        _ => 0,
    };
    (whole + more, Some(part_name(broken.part).into()))
}

/// Returns the parameters of this model, overridden by those of the agent, in key order.
pub fn parameters(network: &Network, agent: &ModelAgent, model: &str) -> Vec<(String, Json)> {
    let mut params: BTreeMap<String, Json> = parameters_of(network, model).into_iter().collect();
    params.extend(agent.params.iter().map(|(k, v)| (k.clone(), v.clone())));
    params.into_iter().collect()
}

/// Returns the parameters for a call of this model by an agent in its mode, in key order. For a router these are the parameters
/// of the model alone.
pub fn parameters_for(network: &Network, agent: &Agent, model: &str) -> Vec<(String, Json)> {
    match network.in_force(agent) {
        Some(agent) => parameters(network, agent, model),
        None => parameters_of(network, model),
    }
}

/// Returns the parameters of this model, in key order.
pub fn parameters_of(network: &Network, model: &str) -> Vec<(String, Json)> {
    let mut params: BTreeMap<String, Json> = BTreeMap::new();
    if let Some(def) = network.models.get(model) {
        if let Some(temperature) = def.temperature {
            params.insert("temperature".to_owned(), temperature.into());
        }
        if let Some(max) = def.max_tokens {
            params.insert("max_tokens".to_owned(), max.into());
        }
        params.extend(def.params.iter().map(|(k, v)| (k.clone(), v.clone())));
    }
    params.into_iter().collect()
}
