//! What an answer gives, and what lies within a type.

use super::{Output, Type, TypeKind};
use serde_json::Value as Json;

impl Output {
    /// Whether it is a text, which is answered as it is.
    pub fn is_text(&self) -> bool {
        matches!(self.ty.kind, TypeKind::String { .. })
    }

    /// What an answer gives; of a text the text, whether it is written as JSON or not.
    ///
    /// # Errors
    /// It is not JSON, where something else than a text is wanted.
    pub(crate) fn value(&self, answer: &str) -> Result<Json, String> {
        match crate::json::read::<Json>(answer) {
            Ok(json) if !self.is_text() || json.is_string() => Ok(json),
            Ok(_) => Ok(Json::from(answer)),
            Err(_) if self.is_text() => Ok(Json::from(answer)),
            Err(e) => Err(format!("it is not JSON: {e}")),
        }
    }
}

impl Type {
    /// The first that a test gives for this type or one within it.
    pub fn find<T>(&self, test: &dyn Fn(&Self) -> Option<T>) -> Option<T> {
        test(self).or_else(|| match &self.kind {
            TypeKind::List(of) => of.find(test),
            TypeKind::Fields(fields) => fields.iter().find_map(|(_, ty)| ty.find(test)),
            _ => None,
        })
    }
}
