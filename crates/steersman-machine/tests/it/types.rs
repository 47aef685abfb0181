//! The forms by which values are compared: canonical JSON, hexadecimal digits.

use serde_json::{Value as Json, json};
use steersman_machine::ids::{Digest, hex, unhex};
use steersman_machine::types::canonical;

#[test]
fn equal_values_have_one_canonical_text() {
    let text = |json: &Json| canonical(json).to_string();
    let one = json!({ "b": [{ "y": 1, "x": null }, 2], "a": { "d": 1, "c": "é" } });
    let other = json!({ "a": { "c": "é", "d": 1 }, "b": [{ "x": null, "y": 1 }, 2] });
    assert_eq!(text(&one), text(&other));
    assert_eq!(
        text(&one),
        r#"{"a":{"c":"é","d":1},"b":[{"x":null,"y":1},2]}"#
    );
    assert_eq!(canonical(&one), one, "it is the same value");
    // The order of a list is part of it.
    assert_ne!(text(&json!([1, 2])), text(&json!([2, 1])));
}

#[test]
fn bytes_come_back_from_their_digits() {
    let bytes: Vec<u8> = (0..=255).collect();
    assert_eq!(unhex(&hex(&bytes)), Some(bytes.clone()));
    assert_eq!(unhex(&hex(&bytes).to_uppercase()), Some(bytes));
    assert_eq!(unhex(""), Some(Vec::new()));
    for odd in ["0", "0g", "+1", "é0", "0x00", " 00"] {
        assert_eq!(unhex(odd), None, "{odd}");
    }
    assert_eq!(Digest([0xa0; 16]).to_string(), "a0".repeat(16));
}
