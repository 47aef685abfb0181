//! Changes by hooks to the texts of a request. The texts can be changed and added to; calls, results and tools stay, so that every
//! result keeps its call.

use super::{Content, History, Request, Segment, Segments};
use crate::network::Part;
use crate::network::hooks::Edits;
use crate::snapshot::Snapshot;
use crate::stored::commit::Moment;
use crate::stored::ids::{Digest, Id, Name};
use crate::view::Cx;
use serde::Deserialize;
use serde_json::{Value as Json, json};

/// Returns the texts of a request as a hook gets them.
pub(crate) fn texts(request: &Request) -> Json {
    let texts = request.segments.iter().enumerate();
    let texts = texts.filter_map(|(at, segment)| {
        let (of, text) = said(&segment.content)?;
        Some(json!({ "segment": at, "of": of, "text": text }))
    });
    json!({ "texts": texts.collect::<Vec<Json>>() })
}

fn said(content: &Content) -> Option<(&'static str, &str)> {
    match content {
        Content::System(text) => Some(("system", text)),
        Content::User(text) => Some(("user", text)),
        Content::Assistant { text, .. } => Some(("assistant", text.as_deref()?)),
        Content::Result { text, .. } => Some(("result", text)),
        Content::Tools(_) => None,
    }
}

#[derive(Deserialize)]
struct Texts {
    texts: Vec<Text>,
}

#[derive(Deserialize)]
struct Text {
    segment: Option<usize>,
    text: String,
}

/// Returns the difference between the texts that a hook got and those that it gave.
pub(crate) fn edits(was: &Json, is: &Json) -> Result<Edits, String> {
    let read = |value: &Json| Texts::deserialize(value).map_err(|e| format!("its texts: {e}"));
    let (was, is) = (read(was)?, read(is)?);
    let mut edits = Edits::default();
    for text in is.texts {
        match text.segment {
            Some(at) => {
                let same = was.texts.iter().find(|old| old.segment == Some(at));
                if same.is_some_and(|old| old.text != text.text) {
                    edits.texts.insert(at, text.text);
                }
            }
            None => edits.added.push(text.text),
        }
    }
    Ok(edits)
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
        // What follows the first changed segment is not compared with the previous request.
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
        Content::Tools(_) => {}
    }
    content
}
