//! The texts of a log, as far as it was read.

use crate::error::CommandError;
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman_machine::stored::commit::{LogLine, Text};
use steersman_machine::stored::ids::{Bodies, Body};
use steersman_runtime::known::Known;
use steersman_runtime::store::Store;

/// Texts by the line that brought them. Large texts are stored outside of the log and fetched when their line is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts(BTreeMap<Body, Arc<str>>);

impl Texts {
    /// Adds the texts of a line.
    pub(crate) async fn learn(
        &mut self,
        line: &LogLine,
        store: &dyn Store,
    ) -> Result<(), CommandError> {
        for (k, text) in line.bodies.iter().enumerate() {
            let text: Arc<str> = match text {
                Text::Here(text) => text.clone(),
                Text::Erased { .. } => "[erased]".into(),
                Text::Blob { hash, .. } => match store.blob(hash).await? {
                    Some(bytes) => String::from_utf8_lossy(&bytes).into(),
                    None => "[missing]".into(),
                },
            };
            let k = u32::try_from(k).expect("a line holds fewer than 2^20 texts");
            self.0.insert(Body::new(line.n, k), text);
        }
        Ok(())
    }

    /// Masks the values of these secrets in the texts of a line.
    pub(crate) fn veil(&mut self, line: &LogLine, known: &Known) {
        let texts = self.0.range_mut(Body::new(line.n, 0)..);
        for (_, text) in texts.take(line.bodies.len()) {
            if known.occurs_in(text) {
                *text = known.masked(text).into();
            }
        }
    }
}

impl Bodies for Texts {
    fn text(&self, body: Body) -> Arc<str> {
        self.0
            .get(&body)
            .cloned()
            .unwrap_or_else(|| "[not read]".into())
    }
}
