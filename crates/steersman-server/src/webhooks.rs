//! Webhooks: addresses that are told what happens in the sessions of a tenant, as Standard Webhooks 1.0.0 describes it.
//!
//! ```text
//!   lines on disk --[facts]--> facts --[sender]--> POST, signed --2xx--> the cursor moves
//!        ^                                            |
//!        +----------- read again from the cursor -----+ no 2xx: the same later, under the same id
//! ```
//!
//! The log is the outbox: nothing is written when something happens, and a fact follows from the lines alone. So its id is the same in every
//! attempt and every process, and nothing is lost with a process. A receiver may get a fact more than once; it knows it by its id.

mod facts;
mod sender;

use crate::problem::Problem;
use crate::routes::label_of;
use serde::Deserialize;
use std::sync::Arc;
use steersman::SessionInfo;
use steersman::machine::stored::ids::Name;
use steersman::runtime::store::WebhookId;

/// Declares the kinds of facts, in the order in which lists name them.
macro_rules! kinds {
    ($($(#[$doc:meta])+ $name:ident = $word:literal;)+) => {
        /// A kind of fact.
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        pub(crate) enum Kind { $($(#[$doc])+ $name,)+ }

        impl Kind {
            /// All kinds.
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns the word that receivers see.
            pub(crate) fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)+ }
            }
        }
    };
}

kinds! {
    /// The session settled: it answered, asks, waits or is paused.
    Settled = "session.settled";
    /// The session stopped without an answer.
    Failed = "session.failed";
    /// Somebody is asked.
    Asked = "question.asked";
    /// It is not known whether an effect happened.
    Doubt = "effect.in_doubt";
    /// A call made an artifact.
    Artifact = "artifact.made";
}

/// A condition on sessions: parameters of the list of sessions, as a query string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Only {
    definition: Option<Name>,
    key: Option<Name>,
    label: Option<(Name, Arc<str>)>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Conditions {
    definition: Option<String>,
    key: Option<String>,
    label: Option<String>,
}

impl Only {
    /// Reads a condition. Without a text every session fits.
    pub(crate) fn read(text: Option<&str>) -> Result<Self, String> {
        let Some(text) = text else {
            return Ok(Self::default());
        };
        let uri = format!("/?{text}").parse::<axum::http::Uri>();
        let uri = uri.map_err(|error| error.to_string())?;
        let read = axum::extract::Query::<Conditions>::try_from_uri(&uri);
        let read = read.map_err(|error| error.body_text())?.0;
        let label = read.label.as_deref().map(label_of).transpose();
        Ok(Self {
            definition: read.definition.map(Into::into),
            key: read.key.map(Into::into),
            label: label.map_err(|problem: Problem| problem.sentence())?,
        })
    }

    /// Returns true if a session fits.
    fn fits(&self, info: &SessionInfo) -> bool {
        let is = |wanted: &Option<Name>, own: Option<&Name>| {
            wanted.as_ref().is_none_or(|wanted| own == Some(wanted))
        };
        let has = |wanted: &(Name, Arc<str>)| info.labels.contains(wanted);
        is(&self.definition, Some(&info.network))
            && is(&self.key, info.key.as_ref())
            && self.label.as_ref().is_none_or(has)
    }
}

/// Returns the name of a webhook as people read it: its tenant, if it has one, and its own name.
fn shown(hook: &WebhookId) -> String {
    match &*hook.tenant {
        "" => hook.name.to_string(),
        tenant => format!("{} of {tenant}", hook.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_has_parameters_of_the_list_of_sessions() {
        let read = |text| Only::read(Some(text));
        let all = read("definition=desk&key=order%204&label=team:red").unwrap();
        assert_eq!(all.definition.as_deref(), Some("desk"));
        assert_eq!(all.key.as_deref(), Some("order 4"));
        assert_eq!(all.label, Some(("team".into(), "red".into())));
        assert_eq!(read(""), Ok(Only::default()));
        for wrong in ["status=waits", "label=team", "definition=a b"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
