//! Changes by hooks to the texts of a request. The texts can be changed and added to; calls, results and tools stay, so that every
//! result keeps its call.

use super::{Content, History, Request, Segment, Segments};
use crate::network::Part;
use crate::network::hooks::{self, Edits, TextOf};
use crate::snapshot::Snapshot;
use crate::stored::commit::Moment;
use crate::stored::ids::{Digest, Id, Name};
use crate::view::Cx;

/// Returns the texts of a request as a hook gets them.
pub(crate) fn texts(request: &Request) -> hooks::Request {
    let texts = request.segments.iter().enumerate();
    let texts = texts.filter_map(|(at, segment)| {
        let (of, text) = said(&segment.content)?;
        Some(hooks::Text {
            segment: Some(at),
            of,
            text: text.to_owned(),
        })
    });
    hooks::Request {
        texts: texts.collect(),
    }
}

fn said(content: &Content) -> Option<(TextOf, &str)> {
    match content {
        Content::System(text) => Some((TextOf::System, text)),
        Content::User(text) => Some((TextOf::User, text)),
        Content::Assistant { text, .. } => Some((TextOf::Assistant, text.as_deref()?)),
        Content::Result { text, .. } => Some((TextOf::Result, text)),
        Content::Tools(_) | Content::File(_) => None,
    }
}

/// Returns the changes by hooks to the request of an effect, in order.
pub fn before_model(history: &dyn History, effect: Id) -> Vec<(Name, Edits)> {
    let all = history.hooked(effect).into_iter();
    let of_request = all.filter(|hooked| hooked.at == Moment::BeforeModel);
    of_request
        .map(|hooked| {
            let text = history.text(hooked.change);
            // An erased change reads as none.
            (hooked.hook, serde_json::from_str(&text).unwrap_or_default())
        })
        .collect()
}

/// Returns a request with what hooks changed before it left.
pub(super) fn edited(
    cx: &Cx<'_>,
    history: &dyn History,
    snapshot: &Snapshot,
    agent: Id,
    request: Request,
) -> Request {
    let owed = snapshot.agent(agent).stack.owed;
    let Some(effect) = owed.filter(|_| !cx.network.hooks.is_empty()) else {
        return request;
    };
    let all = before_model(history, effect);
    all.iter()
        .fold(request, |request, (_, edits)| request.edited(edits))
}

impl Request {
    /// Returns the request with the changes of a hook. The digest covers them.
    #[must_use]
    pub fn edited(mut self, edits: &Edits) -> Self {
        if edits.texts.is_empty() && edits.added.is_empty() {
            return self;
        }
        let mut segments = Segments::default();
        for (at, segment) in self.segments.iter().enumerate() {
            let text = edits.texts.get(&at);
            segments.push(match text {
                Some(text) => Segment::new(segment.part, with(&segment.content, text)),
                None => segment.clone(),
            });
        }
        for text in &edits.added {
            segments.push(Segment::new(Part::Now, Content::User(text.clone())));
        }
        // The previous request is compared only up to the first changed segment.
        if let Some((first, _)) = edits.texts.first_key_value() {
            self.prefix = self.prefix.min(self.segments.bytes_of(*first));
        }
        let mut whole = self.digest.0.to_vec();
        serde_json::to_writer(&mut whole, edits).expect("plain data can be written as JSON");
        self.digest = Digest::of(&whole);
        self.segments = segments;
        self
    }
}

fn with(content: &Content, text: &str) -> Content {
    let mut content = content.clone();
    match &mut content {
        Content::System(of) | Content::User(of) | Content::Result { text: of, .. } => {
            text.clone_into(of);
        }
        Content::Assistant { text: of, .. } => *of = Some(text.to_owned()),
        Content::Tools(_) | Content::File(_) => {}
    }
    content
}
