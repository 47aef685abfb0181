//! Lists of parts as bytes.

use super::lines::{SALT, every};
use super::{PREV, encoded, line_of};
use steersman_machine::stored::codec::{self, CodecError, Skimmed};
use steersman_machine::stored::commit::{Commit, LogLine, Text};
use steersman_machine::stored::ids::{Body, Id, Line};
use steersman_machine::stored::interaction::{Reduce, Write as StateWrite};
use steersman_machine::stored::parts::Part;

/// A list of parts names texts of its line that lie before it and are no lists. Any other list has no end or no text, and no
/// program writes it: the line is refused.
#[test]
fn a_list_of_parts_names_texts_before_it() {
    let list = |parts: &[Part]| Text::Parts(parts.into());
    let text = || Text::Here("a text".into());
    let sound = line_of(vec![text(), list(&[Part::Text(0), Part::Text(0)])]);
    assert!(codec::verify(&encoded(&sound), &PREV, &SALT).is_ok());
    for bodies in [
        vec![list(&[Part::Text(0)])],
        vec![list(&[Part::Text(1)]), text()],
        vec![text(), list(&[Part::Text(7)])],
        vec![text(), list(&[Part::Text(0)]), list(&[Part::Text(1)])],
    ] {
        let why = codec::decode(&encoded(&line_of(bodies.clone()))).unwrap_err();
        assert!(
            matches!(why, CodecError::Malformed("text", _)),
            "{bodies:?}: {why}"
        );
    }
    // A list is no value of state.
    let value = StateWrite {
        scope: Id::new(Line(1), 0),
        name: "plan".into(),
        value: Some(Body::new(Line(3), 1)),
        reduce: Reduce::Last,
        expires: None,
    };
    let mut written = sound;
    written.commit = Some(Commit {
        edits: vec![value],
        ..Commit::default()
    });
    assert!(codec::decode(&encoded(&written)).is_err());
}

/// A text whose bytes are those of a list has another hash than the list: neither passes for the other.
#[test]
fn a_list_of_parts_and_a_text_of_its_bytes_have_unlike_hashes() {
    // The bytes of the list: the form, and no parts.
    let tombstone = |text: Text| {
        let erased = codec::erase(&encoded(&line_of(vec![text])), 0, &SALT).unwrap();
        codec::decode(&erased).unwrap().0.bodies.remove(0)
    };
    let list = tombstone(Text::Parts([].into()));
    assert_ne!(list, tombstone(Text::Here("\0\0".into())));
    assert_eq!(list, tombstone(Text::Parts([].into())));
}

/// A list of parts of a kind that this program does not know was written by a newer one.
#[test]
fn a_text_of_an_unknown_form_is_newer() {
    let (_, line) = every()
        .into_iter()
        .find(|(name, _)| *name == "texts")
        .unwrap();
    let parts = Text::Parts([].into());
    let of = |text: Text| LogLine {
        bodies: vec![text],
        ..line.clone()
    };
    let (known, _) = codec::encode(&of(parts), &PREV, &SALT);
    // The last text takes three bytes before the hash of the line: its length and kind, the form, the number of parts.
    let at = known.len() - 32 - 2;
    assert_eq!(known[at..at + 2], [0, 0], "form 0 without parts");
    let mut newer = known.clone();
    newer[at] = 1;
    let why = codec::decode(&newer).unwrap_err();
    assert!(matches!(why, CodecError::Malformed("text", _)), "{why}");
    assert!(!why.is_newer());
    assert_eq!(
        codec::verify(&newer, &PREV, &SALT),
        Err(CodecError::Hash(line.n))
    );
}

/// The texts of a line can be had without the line, whatever else it holds.
#[test]
fn the_texts_of_every_line_are_skimmed() {
    let mut texts = 0;
    for (name, line) in every() {
        let (bytes, _) = codec::encode(&line, &PREV, &SALT);
        let skimmed: Vec<Skimmed<'_>> = codec::skim(&bytes).unwrap().collect();
        let held = line.bodies.iter().filter_map(|text| match text {
            Text::Here(text) => Some(Skimmed::Here(text)),
            Text::Blob { hash, .. } => Some(Skimmed::Blob(*hash)),
            Text::Erased { .. } | Text::Parts(_) => None,
        });
        assert_eq!(skimmed, held.collect::<Vec<_>>(), "{name}");
        texts += skimmed.len();
    }
    assert!(texts > 10, "{texts}");
}
