//! Diagnostics as JSON: for programs, and in the shapes of the Language Server Protocol: `Diagnostic`, and `CodeAction` for the fix.

use super::{Diagnostic, Place, Severity, floor_char};
use serde_json::{Value as Json, json};

impl Place {
    /// Returns the range as the Language Server Protocol counts: lines from 0, columns in UTF-16 units from 0.
    pub fn lsp_range(&self) -> Json {
        let at = |byte: usize| {
            let before = &self.text[..floor_char(&self.text, byte)];
            let line = before.matches('\n').count();
            let start = before.rfind('\n').map_or(0, |at| at + 1);
            let character: usize = before[start..].chars().map(char::len_utf16).sum();
            json!({ "line": line, "character": character })
        };
        json!({ "start": at(self.span.start), "end": at(self.span.end.max(self.span.start)) })
    }
}

impl Diagnostic {
    /// Returns the diagnostic as JSON for programs. Lines and columns count from 1; 0 means that it is at no place.
    pub fn json(&self) -> Json {
        let severity = match self.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        let (line, column) = self.at.as_ref().map_or((0, 0), Place::position);
        let labels = self.labels.iter().map(|(at, text)| {
            let (line, column) = at.position();
            json!({ "file": &*at.path, "line": line, "column": column, "text": text })
        });
        json!({
            "code": self.code,
            "severity": severity,
            "message": self.message,
            "file": self.at.as_ref().map(|at| &*at.path),
            "line": line,
            "column": column,
            "label": self.label,
            "labels": labels.collect::<Vec<_>>(),
            "notes": self.notes,
            "help": self.help,
        })
    }

    /// Returns the diagnostic as a `Diagnostic` of the Language Server Protocol. Its message has all that [`Diagnostic::render`]
    /// says without a place. `uri` gives the address of a file from its path. A diagnostic that is in no file is at the
    /// beginning.
    pub fn lsp(&self, uri: &dyn Fn(&str) -> String) -> Json {
        let start = json!({ "line": 0, "character": 0 });
        let range = self.at.as_ref().map(Place::lsp_range);
        let range = range.unwrap_or_else(|| json!({ "start": start, "end": start }));
        let mut message = self.message.clone();
        let label = self.label.as_ref().map(|label| ("", label));
        let notes = self.notes.iter().map(|note| ("note: ", note));
        let help = self.help.as_ref().map(|help| ("help: ", help));
        for (kind, text) in label.into_iter().chain(notes).chain(help) {
            message.extend(["\n", kind, text]);
        }
        let related = self.labels.iter().map(|(at, text)| {
            json!({
                "location": { "uri": uri(&at.path), "range": at.lsp_range() },
                "message": text,
            })
        });
        json!({
            "range": range,
            "severity": match self.severity {
                Severity::Error => 1,
                Severity::Warning => 2,
                Severity::Note => 3,
            },
            "code": self.code,
            "source": "steersman",
            "message": message,
            "relatedInformation": related.collect::<Vec<_>>(),
        })
    }

    /// Returns the fix as a `CodeAction` of the Language Server Protocol; `None` if there is no fix. Its `diagnostics` are left
    /// out: they would be this one.
    pub fn lsp_action(&self, uri: &dyn Fn(&str) -> String) -> Option<Json> {
        let patch = self.patch.as_ref()?;
        let (first, _) = patch.changes.first()?;
        let edits = patch.changes.iter();
        let edits = edits.map(|(at, with)| json!({ "range": at.lsp_range(), "newText": with }));
        let edits: Vec<Json> = edits.collect();
        Some(json!({
            "title": patch.title,
            "kind": "quickfix",
            "isPreferred": true,
            "edit": { "changes": { uri(&first.path): edits } },
        }))
    }

    /// Returns the diagnostic with each path changed, so that it is shown from where a reader stands.
    #[must_use]
    pub fn with_paths(mut self, path: &dyn Fn(&str) -> String) -> Self {
        let labels = self.labels.iter_mut().map(|(at, _)| at);
        let changes = self.patch.iter_mut().flat_map(|patch| &mut patch.changes);
        let changes = changes.map(|(at, _)| at);
        for at in self.at.iter_mut().chain(labels).chain(changes) {
            at.path = path(&at.path).into();
        }
        self
    }
}
