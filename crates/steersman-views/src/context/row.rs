//! Contexts as data.

use super::ModelCall;
use crate::shown;
use crate::words::{Word, arguments};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use std::sync::Arc;
use steersman_machine::context::{Content, Explained, Origin, Request, Segment as Rendered};
use steersman_machine::network::hooks::Edits;
use steersman_machine::questions::Purpose;
use steersman_machine::stored::ids::{Id, Line, Name};

/// Maximum number of characters of an excerpt of a segment.
const EXCERPT: usize = 44;

/// A context: the request of a model call.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Context {
    /// Id of the effect.
    #[serde(serialize_with = "shown::text", deserialize_with = "shown::read::text")]
    pub effect: Id,
    /// Id of the agent.
    #[serde(serialize_with = "shown::text", deserialize_with = "shown::read::text")]
    pub agent: Id,
    /// The agent and the purpose of the call, as scripts name them.
    pub name: String,
    /// The line that wished the call.
    #[serde(serialize_with = "shown::line", deserialize_with = "shown::read::line")]
    pub wished: Line,
    /// The line that took the answer.
    #[serde(
        serialize_with = "shown::maybe_line",
        deserialize_with = "shown::read::maybe_line"
    )]
    pub answered: Option<Line>,
    /// Name of the model in the definition.
    pub model: Name,
    /// Digest of the request as this version renders it.
    pub digest: String,
    /// True if the digest is that of the request that was sent; `None` if none was sent yet or no answer came.
    pub as_sent: Option<bool>,
    /// Parameters of the model.
    pub params: Map<String, Json>,
    /// JSON Schema of the wanted answer.
    pub output: Option<Arc<str>>,
    /// Size of the request, in bytes.
    pub bytes: u64,
    /// The parts of the request, in order.
    pub segments: Vec<Segment>,
    /// Tokens and cost, once it was answered.
    pub usage: Option<Used>,
}

/// A part of a context.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Segment {
    /// The part that it belongs to: `system`, `tools`, `history`, `now`.
    pub part: String,
    /// Size of the segment, in bytes.
    pub bytes: u64,
    /// Content of the segment.
    pub content: Content,
    /// The changes that hooks made in it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hooked: Option<HookedSegment>,
}

/// A part of a context that hooks changed or added.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct HookedSegment {
    /// The hooks, in the order in which they were asked.
    pub by: Vec<Name>,
    /// Its content before that. `None` means that a hook added it.
    pub unedited: Option<Content>,
}

/// Tokens of a model call.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Used {
    /// Provider and model that answered.
    pub model: Option<Name>,
    /// Number of input tokens, including those that were cached.
    pub input: u64,
    /// Input tokens that the provider had cached.
    pub cached: u64,
    /// Number of output tokens.
    pub output: u64,
    /// Price in millionths of the currency, if it is known.
    pub micros: Option<u64>,
    /// Bytes, from the start, that the request shares with the agent's previous request.
    pub prefix: u64,
    /// The part that broke the shared prefix; `None` if nothing did.
    pub broke: Option<Name>,
}

/// A context with the origin of each part.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Explanation {
    /// Id of the effect.
    #[serde(serialize_with = "shown::text", deserialize_with = "shown::read::text")]
    pub effect: Id,
    /// Id of the agent.
    #[serde(serialize_with = "shown::text", deserialize_with = "shown::read::text")]
    pub agent: Id,
    /// The agent and the purpose of the call, as scripts name them.
    pub name: String,
    /// The line that wished the call.
    #[serde(serialize_with = "shown::line", deserialize_with = "shown::read::line")]
    pub wished: Line,
    /// The line that took the answer.
    #[serde(
        serialize_with = "shown::maybe_line",
        deserialize_with = "shown::read::maybe_line"
    )]
    pub answered: Option<Line>,
    /// The parts of the request, in order.
    pub segments: Vec<Origins>,
    /// Parts of the agent's stack that are not in the request.
    pub absent: Vec<Gone>,
}

/// A part of a context and its origin.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Origins {
    /// The part, in short.
    #[serde(flatten)]
    pub piece: Piece,
    /// The template that made it; `None` means a text of the engine, or an unchanged text of the conversation.
    pub template: Option<String>,
    /// Variables that the template read.
    pub reads: Vec<Read>,
    /// Lines of the log that it shows.
    #[serde(
        serialize_with = "shown::lines",
        deserialize_with = "shown::read::lines"
    )]
    pub lines: Vec<Line>,
    /// The policy that changed it, if one did.
    pub policy: Option<Policy>,
}

/// A part of a context in short.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Piece {
    /// The part that it belongs to: `system`, `tools`, `history`, `now`.
    pub part: String,
    /// Size of the piece, in bytes.
    pub bytes: u64,
    /// The beginning of its content, in one row.
    pub says: String,
}

/// A variable that a template read.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Read {
    /// Name of the variable, as far as it was read.
    pub path: String,
    /// Row of the template that names the variable; 0 if no row has the whole name.
    pub line: usize,
    /// The line of the log that wrote the value, if it is known.
    #[serde(
        serialize_with = "shown::maybe_line",
        deserialize_with = "shown::read::maybe_line"
    )]
    pub written: Option<Line>,
}

/// A policy that changed a part of a context.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Policy {
    /// Name of the policy, such as a tool whose results age.
    pub name: Name,
    /// Boundary of the policy, as a number of exchanges.
    pub at: u32,
    /// The replacement: `stub`, `summary`, `elide`.
    pub is: Word,
}

/// A part of the agent's stack that is not in the request.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Gone {
    /// Name of the part: a tool for its call, or `exchanges N to M`.
    pub what: String,
    /// The policy that left it out.
    pub policy: Name,
    /// Boundary of the policy.
    pub at: u32,
    /// First and last line of the part.
    #[serde(
        serialize_with = "shown::two_lines",
        deserialize_with = "shown::read::two_lines"
    )]
    pub lines: (Line, Line),
}

/// The difference between two contexts of an agent.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Change {
    /// The agent and the purpose of the call, as scripts name them.
    pub name: String,
    /// The line of the earlier call.
    #[serde(serialize_with = "shown::line", deserialize_with = "shown::read::line")]
    pub before: Line,
    /// The line of the later call.
    #[serde(serialize_with = "shown::line", deserialize_with = "shown::read::line")]
    pub now: Line,
    /// Size of the later context in bytes.
    pub bytes: u64,
    /// Bytes, from the start, that both share.
    pub prefix: u64,
    /// The part that broke the shared prefix; `None` if the context only grew.
    pub broke: Option<Name>,
    /// Parts that both begin with.
    pub same: Vec<Piece>,
    /// Parts of the earlier context after these.
    pub gone: Vec<Piece>,
    /// Parts of the later context after these.
    pub came: Vec<Piece>,
}

/// The share of each context that is equal to the previous one, with sums.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Caches {
    /// The calls, in order.
    pub calls: Vec<Cached>,
    /// Size of all contexts in bytes.
    pub bytes: u64,
    /// Bytes that they share with the contexts before them.
    pub prefix: u64,
    /// Input tokens of all calls.
    pub input: u64,
    /// Input tokens that the providers had cached.
    pub cached: u64,
}

/// The share of one context that is equal to the previous one.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Cached {
    /// The line that took the answer.
    #[serde(serialize_with = "shown::line", deserialize_with = "shown::read::line")]
    pub line: Line,
    /// The agent and the purpose of the call, as scripts name them.
    pub agent: String,
    /// Size of the context, in bytes.
    pub bytes: u64,
    /// Bytes, from the start, that it shares with the agent's previous context.
    pub prefix: u64,
    /// Input tokens of the call.
    pub input: u64,
    /// Input tokens that the provider had cached.
    pub cached: u64,
    /// The part that broke the shared prefix.
    pub broke: Option<Name>,
}

/// The changes by hooks to a request, and the request before them.
pub(super) struct Hooked {
    pub(super) edits: Vec<(Name, Edits)>,
    pub(super) unedited: Option<Request>,
}

impl Hooked {
    fn segment(&self, at: usize) -> Option<HookedSegment> {
        let unedited = self.unedited.as_ref()?;
        let mut len = unedited.segments.len();
        let mut by = Vec::new();
        for (hook, edits) in &self.edits {
            let added = len..len + edits.added.len();
            len = added.end;
            if edits.texts.contains_key(&at) || added.contains(&at) {
                by.push(hook.clone());
            }
        }
        let unedited = unedited.segments.get(at);
        let unedited = unedited.map(|segment| segment.content.clone());
        (!by.is_empty()).then_some(HookedSegment { by, unedited })
    }
}

impl Context {
    pub(super) fn of(call: &ModelCall, name: String, request: &Request, hooked: &Hooked) -> Self {
        let sent = call.usage.as_ref().and_then(|usage| usage.request);
        let segments = request.segments.iter().enumerate();
        let segments = segments.map(|(at, segment)| Segment {
            part: part(segment),
            bytes: segment.len,
            content: segment.content.clone(),
            hooked: hooked.segment(at),
        });
        Self {
            effect: call.effect,
            agent: call.agent,
            name,
            wished: call.wished,
            answered: call.answered,
            model: request.model.clone(),
            digest: request.digest.to_string(),
            as_sent: sent.map(|digest| digest == request.digest),
            params: request.params.iter().cloned().collect(),
            output: request.output.clone(),
            bytes: request.segments.bytes(),
            segments: segments.collect(),
            usage: call.usage.as_ref().map(|usage| Used {
                model: usage.model.clone(),
                input: usage.input,
                cached: usage.cached,
                output: usage.output,
                micros: usage.micros,
                prefix: usage.prefix,
                broke: usage.broke.clone(),
            }),
        }
    }
}

impl Explanation {
    pub(super) fn of(call: &ModelCall, name: String, explained: &Explained) -> Self {
        let segments = explained.request.segments.iter().zip(&explained.origins);
        let absent = explained.absent.iter().map(|absent| Gone {
            what: absent.what.clone(),
            policy: absent.policy.clone(),
            at: absent.mark,
            lines: absent.lines,
        });
        Self {
            effect: call.effect,
            agent: call.agent,
            name,
            wished: call.wished,
            answered: call.answered,
            segments: segments.map(|(s, origin)| Origins::of(s, origin)).collect(),
            absent: absent.collect(),
        }
    }
}

impl Origins {
    fn of(segment: &Rendered, origin: &Origin) -> Self {
        let reads = origin.reads.iter().map(|read| Read {
            path: read.path.clone(),
            line: read.row,
            written: read.written,
        });
        let policy = origin.aged.as_ref().map(|(name, at, is)| Policy {
            name: name.clone(),
            at: *at,
            is: (*is).into(),
        });
        Self {
            piece: Piece::of(segment),
            template: origin.template.clone(),
            reads: reads.collect(),
            lines: origin.lines.clone(),
            policy,
        }
    }
}

impl Piece {
    fn of(segment: &Rendered) -> Self {
        Self {
            part: part(segment),
            bytes: segment.len,
            says: excerpt(segment),
        }
    }
}

impl Change {
    pub(super) fn of(
        name: String,
        (earlier, old): (&ModelCall, &Request),
        (call, new): (&ModelCall, &Request),
    ) -> Self {
        let pairs = old.segments.iter().zip(&new.segments);
        let same = pairs.take_while(|(a, b)| a.digest == b.digest).count();
        Self {
            name,
            before: earlier.line(),
            now: call.line(),
            bytes: new.segments.bytes(),
            prefix: new.prefix,
            broke: new.broke.clone(),
            same: new
                .segments
                .iter()
                .take(same)
                .map(|s| Piece::of(s))
                .collect(),
            gone: old.segments.since(same).map(|s| Piece::of(s)).collect(),
            came: new.segments.since(same).map(|s| Piece::of(s)).collect(),
        }
    }
}

impl Caches {
    pub(super) fn add(&mut self, cached: Cached) {
        self.bytes += cached.bytes;
        self.prefix += cached.prefix;
        self.input += cached.input;
        self.cached += cached.cached;
        self.calls.push(cached);
    }
}

impl Cached {
    pub(super) fn of(call: &ModelCall, agent: String, request: &Request) -> Self {
        // A call with another purpose shares no prefix with the agent's own calls.
        let own = matches!(request.purpose, Purpose::Answer | Purpose::Decision);
        let usage = call.usage.as_ref();
        let (input, cached) = usage.map_or((0, 0), |usage| (usage.input, usage.cached));
        Self {
            line: call.line(),
            agent,
            bytes: request.segments.bytes(),
            prefix: if own { request.prefix } else { 0 },
            input,
            cached,
            broke: request.broke.clone().filter(|_| own),
        }
    }
}

fn part(segment: &Rendered) -> String {
    format!("{:?}", segment.part).to_ascii_lowercase()
}

/// Returns the content of a segment in one row.
fn excerpt(segment: &Rendered) -> String {
    let text = match &segment.content {
        Content::System(text) | Content::User(text) => text.clone(),
        Content::Tools(tools) => {
            let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
            names.join(", ")
        }
        Content::Assistant { text, calls, .. } => {
            let calls = calls
                .iter()
                .map(|call| format!("{}({})", call.name, arguments(&call.args)));
            let parts: Vec<String> = text.iter().cloned().chain(calls).collect();
            parts.join(" ")
        }
        Content::Result { name, text, .. } => format!("= {name} {text}"),
        Content::File(file) => format!("{} {}, {} bytes", file.name, file.media, file.len),
    };
    let row: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if row.chars().count() <= EXCERPT {
        return row;
    }
    let cut: String = row.chars().take(EXCERPT - 1).collect();
    format!("{cut}…")
}
