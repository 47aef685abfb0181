//! What a result says: the one place in which a large text becomes an artifact.

use crate::artifact;
use crate::bounds;
use crate::commit::Kind;
use crate::ids::{Body, Id, Name};
use crate::interaction::{Artifact, Write};
use crate::tick::Tick;
use std::sync::Arc;

/// What a result says.
#[derive(Default)]
pub(crate) enum Said {
    #[default]
    Nothing,
    Text(String),
    /// A text that stands elsewhere as well.
    Body(Body),
}

/// Everything that a result carries.
#[derive(Default)]
pub(crate) struct Ending<'a> {
    pub(crate) code: Option<&'a str>,
    pub(crate) said: Said,
    pub(crate) writes: Vec<Write>,
    pub(crate) artifacts: Vec<Artifact>,
    pub(crate) by: Option<Name>,
    /// The mode in which its caller is next.
    pub(crate) mode: Option<Name>,
}

/// What a result carries, as it goes onto the stack: [`Tick::fitted`] alone makes it.
pub(crate) struct Fitted<'a> {
    pub(super) code: Option<&'a str>,
    pub(super) body: Option<Body>,
    pub(super) writes: Vec<Write>,
    pub(super) artifacts: Vec<Artifact>,
    pub(super) by: Option<Name>,
    pub(super) mode: Option<Name>,
}

impl Tick<'_> {
    /// **The one way of a text into a result.** A text that is larger than a context takes becomes an artifact of the caller,
    /// and the result has its beginning and its name, whoever gave it: a tool, an agent, a person, an event, a recording.
    ///
    /// What a routed agent calls answers in its place, and no model of its own reads that: it stays as it is.
    pub(crate) fn fitted<'e>(&mut self, owner: Id, call: Id, ending: Ending<'e>) -> Fitted<'e> {
        let Ending {
            code,
            said,
            writes,
            mut artifacts,
            by,
            mode,
        } = ending;
        let whole = match &said {
            Said::Nothing => None,
            Said::Text(text) => Some(Arc::from(&**text)),
            Said::Body(body) => Some(self.text(*body)),
        };
        let spilled = whole.and_then(|whole| self.spilled(owner, call, &whole, &mut artifacts));
        let body = match (spilled, said) {
            (Some(beginning), _) => Some(self.body(beginning)),
            (None, Said::Text(text)) => Some(self.body(text)),
            (None, Said::Body(body)) => Some(body),
            (None, Said::Nothing) => None,
        };
        Fitted {
            code,
            body,
            writes,
            artifacts,
            by,
            mode,
        }
    }

    /// What a result says in the place of a text that does not fit; none: it fits.
    fn spilled(
        &mut self,
        owner: Id,
        call: Id,
        text: &str,
        artifacts: &mut Vec<Artifact>,
    ) -> Option<String> {
        let agent = self.agent(owner);
        let open = &self.snapshot.call(owner, call)?.call;
        let stem = artifact::spill_name(&open.name, &agent.path, open.number);
        let tool = self.network.tools.get(&open.name);
        let most = tool.map_or(bounds::SPILL, |tool| tool.render.spill);
        let stands = tool.is_none() && agent.kind == Kind::Routed;
        if text.len() <= most || stands {
            return None;
        }
        let (beginning, content) = artifact::spill(&stem, text);
        artifacts.push(Artifact {
            scope: owner,
            call,
            name: content.name.as_str().into(),
            media: content.media.as_str().into(),
            hash: *blake3::hash(&content.bytes).as_bytes(),
            len: content.bytes.len() as u64,
        });
        self.contents.push(content);
        Some(beginning)
    }
}
