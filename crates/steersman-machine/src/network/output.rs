//! The value that an agent's answer gives, by the type of its `output`.

use super::{Network, Output};
use crate::values::types::TypeKind;
use serde_json::Value as Json;

impl Network {
    /// Returns the value of an answer for expressions: what the `output` of this agent declares, if that is no text.
    pub fn answered(&self, agent: &str, answer: &str) -> Json {
        let output = self.agents.get(agent).and_then(|def| def.output.as_ref());
        let output = output.filter(|output| !output.is_text());
        let value = output.and_then(|output| output.value(answer).ok());
        value.unwrap_or_else(|| Json::from(answer))
    }
}

impl Output {
    /// Returns true if the type is a text. An answer is then taken as it is, without parsing.
    pub fn is_text(&self) -> bool {
        matches!(self.ty.kind, TypeKind::String { .. })
    }

    /// Returns the value of an answer. For the type text, an answer that is a JSON string gives the string inside, and any
    /// other answer is taken as it is. For any other type the answer is parsed as JSON.
    ///
    /// # Errors
    /// The answer is not JSON, and the type is not a text.
    pub(crate) fn value(&self, answer: &str) -> Result<Json, String> {
        match crate::values::json::read::<Json>(answer) {
            Ok(json) if !self.is_text() || json.is_string() => Ok(json),
            Ok(_) => Ok(Json::from(answer)),
            Err(_) if self.is_text() => Ok(Json::from(answer)),
            Err(e) => Err(format!("it is not JSON: {e}")),
        }
    }
}
