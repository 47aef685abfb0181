//! Texts of results: the only place in which a large text becomes an artifact.

use crate::stored::bounds;
use crate::stored::by::Decider;
use crate::stored::commit::Kind;
use crate::stored::ids::{Bodies, Body, Id, Name};
use crate::stored::interaction::{Artifact, Write};
use crate::stored::parts::NewPart;
use crate::tick::Tick;
use crate::view::artifact;
use std::sync::Arc;

/// Text of a result.
#[derive(Default)]
pub(crate) enum Said {
    #[default]
    Nothing,
    Text(String),
    /// A text that is stored already.
    Body(Body),
}

/// Content of a result, before large texts are replaced.
#[derive(Default)]
pub(crate) struct Ending<'a> {
    pub(crate) code: Option<&'a str>,
    pub(crate) said: Said,
    /// Parts that follow the text.
    pub(crate) more: Vec<NewPart>,
    pub(crate) writes: Vec<Write>,
    pub(crate) artifacts: Vec<Artifact>,
    pub(crate) by: Option<Decider>,
    /// The mode that its caller enters next.
    pub(crate) mode: Option<Name>,
}

/// Content of a result as it goes onto the stack. Only [`Tick::fitted`] makes it.
pub(crate) struct Fitted<'a> {
    pub(super) code: Option<&'a str>,
    pub(super) body: Option<Body>,
    pub(super) writes: Vec<Write>,
    pub(super) artifacts: Vec<Artifact>,
    pub(super) by: Option<Decider>,
    pub(super) mode: Option<Name>,
}

impl Tick<'_> {
    /// **The only way of a text into a result.** A text that is larger than allowed becomes an artifact of the caller; the result
    /// then has the beginning of the text and the artifact's name. This holds for every source: a tool, an agent, a person, an
    /// event, a recording. Parts after a new text follow the beginning. Of a stored body, whose parts are all in the text, only the
    /// artifacts do.
    ///
    /// An agent or person that a routed agent calls is the exception: its text is the routed agent's own answer, which no model
    /// of the router reads, so it stays unchanged. So does the result of a state's own work, which may be the agent's answer.
    pub(crate) fn fitted<'e>(&mut self, owner: Id, call: Id, ending: Ending<'e>) -> Fitted<'e> {
        let Ending {
            code,
            said,
            more,
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
            (Some(beginning), Said::Body(body)) => {
                let (_, mut more) = self.texts.of_outcome(body);
                more.retain(|part| matches!(part, NewPart::Artifact(_)));
                self.body_of(Some(beginning), more)
            }
            (Some(beginning), Said::Text(_) | Said::Nothing) => self.body_of(Some(beginning), more),
            (None, Said::Text(text)) => self.body_of(Some(text), more),
            (None, Said::Body(body)) => Some(body),
            (None, Said::Nothing) => self.body_of(None, more),
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

    /// Returns the replacement of a text that is too large. `None` means that the text fits.
    fn spilled(
        &mut self,
        owner: Id,
        call: Id,
        text: &str,
        artifacts: &mut Vec<Artifact>,
    ) -> Option<String> {
        let agent = self.agent(owner);
        let open = &self.snapshot.call(owner, call)?.call;
        let tool = self.network.tools.get(&open.name);
        let most = tool.map_or(bounds::SPILL, |tool| tool.render.spill);
        let is_exempt = tool.is_none() && agent.kind == Kind::Routed || open.is_own_work();
        if text.len() <= most || is_exempt {
            return None;
        }
        let stem = artifact::spill_name(&open.name, &agent.family.path, open.number);
        let (beginning, content) = artifact::spill(&stem, text);
        artifacts.push(Artifact {
            scope: owner,
            call,
            name: content.name.as_str().into(),
            media: content.media.as_str().into(),
            hash: *blake3::hash(&content.bytes).as_bytes(),
            len: content.bytes.len() as u64,
        });
        self.texts.spill(content);
        Some(beginning)
    }
}
