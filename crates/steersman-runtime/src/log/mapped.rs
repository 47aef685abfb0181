//! Outcomes of effects as they were before a branch took them, read from the lines that took them.

use crate::past::{ERASED, Past};
use crate::store::StoreError;
use serde_json::Value as Json;
use steersman_machine::stored::commit::{Commit, LogLine, Moment, Push};
use steersman_machine::stored::ids::{Bodies, Id};
use steersman_machine::stored::interaction::{Artifact, CallResult, Interaction};
use steersman_machine::stored::outcome::{Mapped, NewArtifact, NewWrite};
use steersman_machine::stored::parts::NewPart;
use steersman_machine::view::artifact;

/// The text of a result, the parts that follow it, and the artifacts that it made.
type Whole<'r> = (Option<String>, Vec<NewPart>, Vec<&'r Artifact>);

impl Past {
    /// Reconstructs an outcome as it was before a branch took it. `next` is the push after the result, which may be the call that the
    /// outcome opened.
    pub(crate) fn mapped_of(
        &self,
        line: &LogLine,
        result: &CallResult,
        next: Option<&Push>,
    ) -> Result<Mapped, StoreError> {
        let mut writes = Vec::with_capacity(result.writes.len());
        for write in &result.writes {
            // An erased value reads as unset, as in every fold.
            let text = match write.value {
                Some(body) => self.stored(body)?,
                None => None,
            };
            let value = text.map(|text| serde_json::from_str(&text)).transpose();
            let value = value.map_err(|e| {
                self.corrupt(line.n, format!("state.{} is no JSON: {e}", write.name))
            })?;
            writes.push(NewWrite {
                name: write.name.to_string(),
                value,
                seal: false,
            });
        }
        let (shown, more, artifacts) = self.whole(result)?;
        let shown = match self.before_hooks(line, Moment::AfterCall, result.call) {
            Some(Json::String(was)) => Some(was),
            _ => shown,
        };
        Ok(Mapped {
            how: result.how,
            code: result.code.as_ref().map(ToString::to_string),
            shown,
            more,
            writes,
            artifacts: artifacts.into_iter().map(as_new).collect(),
            then: self.followed(result.call, next)?,
            by: result.by.clone(),
            mode: line
                .commit
                .as_ref()
                .and_then(|commit| commit.asked(result.call))
                .map(ToString::to_string),
        })
    }

    /// Returns what the first hook of a moment got. `None` if no hook changed anything.
    pub(crate) fn before_hooks(&self, line: &LogLine, at: Moment, effect: Id) -> Option<Json> {
        let mut hooked = line.commit.iter().flat_map(Commit::hooked);
        let first = hooked.find(|hooked| hooked.at == at && hooked.effect == Some(effect))?;
        let mut change: Json = serde_json::from_str(&self.text(first.change)).ok()?;
        Some(change.get_mut("was")?.take())
    }

    /// Returns the text of a result, the parts that follow it, and the artifacts that it made. If the text was stored as one of the
    /// artifacts, the text is that artifact's content and the other artifacts are returned; if that content was erased, the
    /// shortened text and all artifacts are returned.
    pub(crate) fn whole<'r>(&self, result: &'r CallResult) -> Result<Whole<'r>, StoreError> {
        let made = &result.artifacts;
        let (text, more) = match result.body {
            Some(body) => match self.stored_parts(body)? {
                Some(_) => self.of_outcome(body),
                None => (Some(ERASED.to_owned()), Vec::new()),
            },
            None => (None, Vec::new()),
        };
        let kept = text
            .as_ref()
            .and_then(|text| artifact::kept_whole(text, made));
        let whole = match kept {
            Some(kept) => self.content(&made[kept].hash)?,
            None => None,
        };
        let gone = kept.filter(|_| whole.is_some());
        let left = made.iter().enumerate();
        let left = left.filter(|(k, _)| Some(*k) != gone);
        let left = left.map(|(_, artifact)| artifact).collect();
        Ok((whole.map(|text| text.to_string()).or(text), more, left))
    }

    /// Returns the call that an outcome opened by its `then`: the interaction after the result, in the same chain of calls.
    fn followed(
        &self,
        call: Id,
        next: Option<&Push>,
    ) -> Result<Option<(String, Json)>, StoreError> {
        let Some(Interaction::Call(next)) = next.map(|push| &push.what) else {
            return Ok(None);
        };
        let Some(chain) = next.chain() else {
            return Ok(None);
        };
        if chain != call && self.chain_of(call)? != Some(chain) {
            return Ok(None);
        }
        // Erased arguments become `null`, so that the call is visibly refused as a misfit.
        let args = self.stored(next.args)?;
        let args = args.and_then(|text| serde_json::from_str(&text).ok());
        Ok(Some((next.name.to_string(), args.unwrap_or_default())))
    }

    fn chain_of(&self, call: Id) -> Result<Option<Id>, StoreError> {
        let line = self.line(call.line())?;
        let mut pushes = line.commit.iter().flat_map(|c| &c.pushes);
        Ok(pushes.find_map(|push| match &push.what {
            Interaction::Call(made) if made.id == call => made.chain(),
            _ => None,
        }))
    }
}

fn as_new(artifact: &Artifact) -> NewArtifact {
    NewArtifact {
        name: artifact.name.to_string(),
        media: artifact.media.to_string(),
        hash: artifact.hash,
        len: artifact.len,
        content: None,
    }
}
