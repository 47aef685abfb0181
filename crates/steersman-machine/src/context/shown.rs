//! Messages, answers and summaries in the form that a context gives them (`context.render`). What the log has stays as it is.

use super::history::{called, summary};
use super::{At, Content};
use crate::stored::ids::{Body, Name};
use crate::stored::interaction::Origin;
use crate::values::expression::{EvalError, Template, shown_json};
use crate::view::{Read, artifact, complete};
use serde_json::{Map, Value as Json, json};

/// Sender of a message of the engine, for templates.
const ENGINE: &str = "engine";
/// Sender of a message that came back in the user's words, for templates.
const USER: &str = "user";

/// Returns true if the engine made the text of a message.
pub(super) fn is_of_engine(from: &Origin) -> bool {
    match from {
        Origin::Outside(_)
        | Origin::Call(_)
        | Origin::Agent(_)
        | Origin::Released(_)
        | Origin::Continuation => false,
        Origin::Route
        | Origin::Correction
        | Origin::Limit
        | Origin::Conclude
        | Origin::Net
        | Origin::Reflect { .. } => true,
    }
}

impl At<'_> {
    /// Renders a message to the agent. `told` is the text of a call to a member that sees the other members. A text without
    /// words leaves the message out.
    pub(super) fn user(
        &self,
        from: &Origin,
        body: Body,
        told: Option<String>,
        reads: &mut Vec<Read>,
    ) -> Result<Option<Content>, EvalError> {
        let template = if is_of_engine(from) {
            &self.form.engine
        } else {
            &self.form.user
        };
        let Some(template) = template else {
            let text = told.unwrap_or_else(|| self.message(from, body));
            return Ok(Some(Content::User(text)));
        };
        let text = told.unwrap_or_else(|| self.words(from, body));
        let artifacts = artifact::attached(self.snapshot, body);
        let message = message(&text, &self.sender(from), &artifacts);
        let args = match from {
            Origin::Call(_) => Some(self.arguments(body)),
            _ => None,
        };
        let text = self.attempt(
            template,
            |view| {
                let view = view.with("message", message);
                match args {
                    Some(args) => view.with("args", args),
                    None => view,
                }
            },
            reads,
        )?;
        Ok(worded(text).map(Content::User))
    }

    /// Renders a message of a person before the session began.
    pub(super) fn earlier_user(
        &self,
        body: Body,
        reads: &mut Vec<Read>,
    ) -> Result<Option<Content>, EvalError> {
        let text = self.history.text(body);
        match &self.form.user {
            Some(template) => self.made(template, message(&text, USER, &[]), reads),
            None => Ok(Some(text.to_string())),
        }
        .map(|text| text.map(Content::User))
    }

    /// Renders the text of an answer. It is empty if the template leaves it out.
    pub(super) fn spoken(
        &self,
        who: &str,
        text: Option<Body>,
        reads: &mut Vec<Read>,
    ) -> Result<String, EvalError> {
        let text = text.map_or_else(String::new, |body| self.history.text(body).to_string());
        match &self.form.assistant {
            Some(template) if !text.is_empty() => {
                let made = self.made(template, message(&text, who, &[]), reads)?;
                Ok(made.unwrap_or_default())
            }
            _ => Ok(text),
        }
    }

    /// Renders a summary of the conversation.
    pub(super) fn summary(
        &self,
        body: Body,
        reads: &mut Vec<Read>,
    ) -> Result<Option<Content>, EvalError> {
        let text = match &self.form.summary {
            Some(template) => {
                let text = self.history.text(body);
                self.made(template, message(&text, ENGINE, &[]), reads)?
            }
            None => Some(summary(self.history, body)),
        };
        Ok(text.map(Content::User))
    }

    fn made(
        &self,
        template: &Template,
        message: Json,
        reads: &mut Vec<Read>,
    ) -> Result<Option<String>, EvalError> {
        let text = self.attempt(template, |view| view.with("message", message), reads)?;
        Ok(worded(text))
    }

    /// Returns the sender of a message, as `message.from` names it.
    fn sender(&self, from: &Origin) -> Name {
        match from {
            Origin::Outside(by) => by.role.clone(),
            Origin::Agent(_) => self.speaker(from).unwrap_or_else(|| USER.into()),
            Origin::Call(_) => {
                let parent = self.snapshot.agent(self.agent).family.parent;
                let parent = parent.and_then(|parent| self.snapshot.agents.get(&parent));
                parent.map_or_else(|| USER.into(), |parent| parent.def.clone())
            }
            from if is_of_engine(from) => ENGINE.into(),
            _ => USER.into(),
        }
    }

    /// Returns the text of a message without its sender.
    pub(super) fn words(&self, from: &Origin, body: Body) -> String {
        let text = self.history.text(body);
        match from {
            Origin::Call(_) => called(&text),
            _ => text.to_string(),
        }
    }

    /// Returns the arguments of a call of the agent, with the defaults of its parameters.
    fn arguments(&self, body: Body) -> Json {
        let text = self.history.text(body);
        let given = crate::values::json::read::<Map<String, Json>>(&text).unwrap_or_default();
        let def = self.cx.network.agent(&self.snapshot.agent(self.agent).def);
        let args = match &def.parameters {
            crate::values::types::Parameters::Fields(fields) => complete(given, fields),
            crate::values::types::Parameters::Schema(_) => given,
        };
        shown_json(&Json::Object(args))
    }
}

/// Returns `message` for a template.
fn message(text: &str, from: &str, artifacts: &[Name]) -> Json {
    let artifacts: Vec<&str> = artifacts.iter().map(|name| &**name).collect();
    json!({ "text": text, "from": from, "artifacts": artifacts })
}

/// Returns a text, if there is more in it than white space.
fn worded(text: String) -> Option<String> {
    (!text.trim().is_empty()).then_some(text)
}
