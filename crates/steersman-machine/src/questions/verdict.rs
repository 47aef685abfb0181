//! Verdicts: parses the judgements of models.

use crate::network::Output;
use crate::stored::codes::{ACCEPT, Code, REVISE};
use crate::stored::outcome::Answer;
use serde_json::Value as Json;

/// Verdict of a judgement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Nothing must be changed.
    Accept,
    /// The required changes. If an agent judges its own draft, the new draft.
    Revise(String),
    /// The judgement cannot be used, for this reason. A draft or result stays as it is.
    Unusable(String),
}

impl Verdict {
    /// Returns the code of the verdict, for the result of the judgement's call.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Accept => ACCEPT,
            Self::Revise(_) => REVISE,
            Self::Unusable(_) => Code::Unusable.text(),
        }
    }
}

/// Parses a reviewer's judgement: an object with `accept` or `revise`, alone, in a code fence or inside other text; or the word
/// `accept` alone.
pub(crate) fn judge_verdict(text: &str) -> Verdict {
    let text = text.trim();
    if text.is_empty() {
        return Verdict::Unusable("the judgement is empty".to_owned());
    }
    if is_accept(text) {
        return Verdict::Accept;
    }
    // An object inside another JSON value is not a judgement.
    let is_other_json = crate::values::json::read::<Json>(text).is_ok_and(|json| !json.is_object());
    match object(text).filter(|_| !is_other_json) {
        Some(json) => of_object(&json),
        None => Verdict::Unusable(format!(
            "the judgement is neither `{ACCEPT}` nor an object with `{ACCEPT}` and `{REVISE}`"
        )),
    }
}

/// Rebuilds a judge's answer from the code and the text with which the judgement's call closed. The answer has the same
/// verdict. `None` means that the judgement was unusable: its text is not stored.
pub fn said_again(code: Option<&str>, text: &str) -> Option<String> {
    match code {
        Some(ACCEPT) => Some(ACCEPT.to_owned()),
        Some(REVISE) => Some(serde_json::json!({ REVISE: text }).to_string()),
        _ => None,
    }
}

/// Reads an agent's judgement on its own draft. A text that is not a judgement is the new draft. Calls are not read here: an agent
/// that calls something goes back to work.
pub(crate) fn of_itself(answer: &Answer, output: Option<&Output>) -> Verdict {
    let text = answer.text.as_deref().unwrap_or_default().trim();
    if text.is_empty() {
        return Verdict::Unusable("the judgement is empty".to_owned());
    }
    if is_accept(text) {
        return Verdict::Accept;
    }
    let structured = output.is_some_and(|output| !output.is_text());
    let json = object(text).filter(|json| json.get(ACCEPT).is_some() || json.get(REVISE).is_some());
    // An object with a field `accept` or `revise` is a draft if it fits the answer's type.
    let is_draft = structured
        && crate::values::json::read::<Json>(text).is_ok_and(|json| {
            output.is_some_and(|output| crate::values::types::misfit(&output.ty, &json).is_none())
        });
    // A text that only quotes an object is a draft.
    let whole = text.starts_with('{') || text.starts_with("```");
    match json {
        Some(json) if !is_draft && (whole || structured) => of_object(&json),
        _ => Verdict::Revise(text.to_owned()),
    }
}

fn of_object(json: &Json) -> Verdict {
    let wants = match json.get(REVISE) {
        None | Some(Json::Null | Json::Bool(_)) => None,
        Some(Json::String(text)) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
        Some(json) => Some(json.to_string()),
    };
    match (json.get(ACCEPT) == Some(&Json::Bool(true)), wants) {
        (true, None) => Verdict::Accept,
        (true, Some(_)) => Verdict::Unusable(format!(
            "the judgement accepts, and says what to `{REVISE}` all the same"
        )),
        (false, Some(text)) => Verdict::Revise(text),
        (false, None) => Verdict::Unusable(format!(
            "the judgement does not accept, and does not say what to `{REVISE}`"
        )),
    }
}

fn is_accept(text: &str) -> bool {
    let word = text.trim_matches(|c: char| !c.is_alphanumeric());
    ["accept", "accepted"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
}

/// Returns the JSON object in a text. Servers without structured answers often put the JSON into a code fence, or words around
/// it.
fn object(text: &str) -> Option<Json> {
    let (from, to) = (text.find('{')?, text.rfind('}')?);
    let inner = text.get(from..=to)?;
    crate::values::json::read::<Json>(inner)
        .ok()
        .filter(Json::is_object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judgement_is_parsed_with_and_without_words_around_it() {
        let revise = |text: &str| Verdict::Revise(text.to_owned());
        assert_eq!(judge_verdict("accept"), Verdict::Accept);
        assert_eq!(judge_verdict("**Accepted.**"), Verdict::Accept);
        assert_eq!(judge_verdict(r#"{"accept":true}"#), Verdict::Accept);
        assert_eq!(
            judge_verdict("Here:\n```json\n{\"accept\": false, \"revise\": \"Cite.\"}\n```"),
            revise("Cite.")
        );
        assert_eq!(judge_verdict(r#"{"revise":"Cite."}"#), revise("Cite."));
        assert_eq!(
            judge_verdict(r#"{"accept":false,"revise":{"total":3}}"#),
            revise(r#"{"total":3}"#)
        );
        for nothing in [r#""""#, "null", "false"] {
            let both = format!(r#"{{"accept":true,"revise":{nothing}}}"#);
            assert_eq!(judge_verdict(&both), Verdict::Accept, "{both}");
        }
        for bad in [
            "",
            "I accept nothing",
            r#"{"accept":false}"#,
            r#"{"accept":true,"revise":"Stop it."}"#,
            r#"{"accept":true,"revise":{"total":3}}"#,
            r#"{"accept":true,"revise":["Stop it."]}"#,
            r#"[{"accept":true}]"#,
            "{",
            "[true]",
        ] {
            assert!(matches!(judge_verdict(bad), Verdict::Unusable(_)), "{bad}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_judgement_is_the_new_draft() {
        let of = |text: &str| {
            let answer = Answer {
                text: Some(text.to_owned()),
                ..Answer::default()
            };
            of_itself(&answer, None)
        };
        assert_eq!(of("accept"), Verdict::Accept);
        assert_eq!(of(r#"{"accept": true}"#), Verdict::Accept);
        let new = Verdict::Revise("A better one.".to_owned());
        assert_eq!(of(r#"{"accept": false, "revise": "A better one."}"#), new);
        assert_eq!(of("A better one."), new);
        let quotes = r#"Send {"accept": true} to it."#;
        assert_eq!(of(quotes), Verdict::Revise(quotes.to_owned()));
        assert!(matches!(of(" "), Verdict::Unusable(_)));
    }
}
