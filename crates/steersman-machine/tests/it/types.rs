//! Forms for comparing values: canonical JSON and hexadecimal digits.

use arbtest::arbitrary::{self, Unstructured};
use serde_json::{Value as Json, json};
use steersman_machine::stored::ids::{Digest, hex, unhex};
use steersman_machine::values::json::{comparable, read};
use steersman_machine::values::types::{arguments_misfit, canonical, equal};
use steersman_testkit::log::network;

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
    // The order of a list matters.
    assert_ne!(text(&json!([1, 2])), text(&json!([2, 1])));
}

#[test]
fn a_number_is_one_number_however_it_is_written() {
    let value = |text: &str| comparable(text).unwrap();
    for same in [
        &["1", "1.0", "1e0", "10e-1", "0.1E+1", "100.00e-2"][..],
        &["0", "-0", "0.0", "0e999"],
        &["-7", "-7.0", "-70e-1"],
        &["0.1", "1e-1", "0.10"],
        &["10000000000000000", "1e16", "10000000000000000.0"],
        &[
            "9007199254740993",
            "9007199254740993.0",
            "9.007199254740993e15",
        ],
        &["18446744073709551615", "18446744073709551615.0"],
        &["100000000000000000000", "1e20", "10e19"],
        &["-9223372036854775809", "-9223372036854775809.0"],
    ] {
        for one in same {
            assert_eq!(value(one), value(same[0]), "{one} and {}", same[0]);
        }
    }
    for (one, other) in [
        ("9007199254740992", "9007199254740993"),
        ("9007199254740992.0", "9007199254740993"),
        ("1e16", "10000000000000001"),
        ("18446744073709551615", "18446744073709551616"),
        ("1", "-1"),
        ("1", "10"),
        ("1", "\"1\""),
        ("0.1", "0.11"),
    ] {
        assert_ne!(value(one), value(other), "{one} and {other}");
    }
    for broken in ["1.e5", "01e5", "+1.0", "1e", ".5"] {
        assert!(comparable(broken).is_err(), "{broken}");
    }
    assert!(equal(
        &json!({ "a": [1e16, 2.0] }),
        &json!({ "a": [10_000_000_000_000_000_u64, 2] })
    ));
    assert!(!equal(
        &json!(9_007_199_254_740_993_u64),
        &json!(9_007_199_254_740_992.0)
    ));
}

/// A number by its value: sign, digits without zeros at the ends, and exponent.
#[derive(Debug, PartialEq, Eq)]
struct Decimal(bool, String, i64);

/// A random spelling of a number with these digits and this exponent.
fn spelled(u: &mut Unstructured<'_>, digits: u64, exponent: i64) -> arbitrary::Result<String> {
    let mut digits = digits.to_string();
    let mut exponent = exponent;
    for _ in 0..u.int_in_range(0..=3)? {
        if exponent > -20 && digits.len() < 40 {
            (exponent, digits) = (exponent - 1, digits + "0");
        }
    }
    if u.arbitrary()? && (0..30).contains(&exponent) {
        digits.push_str(&"0".repeat(exponent.unsigned_abs() as usize));
        exponent = 0;
    }
    let behind = u.int_in_range(0..=digits.len() - 1)?;
    if behind > 0 {
        digits.insert(digits.len() - behind, '.');
        exponent += behind as i64;
    }
    while digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.") {
        digits.remove(0);
    }
    let sign = if u.arbitrary()? { "" } else { "+" };
    Ok(match exponent {
        0 => digits,
        ..0 => format!("{digits}e{exponent}"),
        _ => format!("{digits}E{sign}{exponent}"),
    })
}

#[test]
fn numbers_compare_equal_exactly_where_their_values_are() {
    arbtest::arbtest(|u| {
        // A small range, so that some numbers are equal.
        let number = |u: &mut Unstructured<'_>| -> arbitrary::Result<(Decimal, String)> {
            let (few, near) = (u.int_in_range(0..=30)?, u.int_in_range(0..=3)?);
            let digits = *u.choose(&[few, 9_007_199_254_740_992 + near, u64::MAX - near])?;
            let large = digits > 1_000;
            let exponent = u.int_in_range(if large { 0..=2 } else { -3..=22 })?;
            let negative = u.arbitrary()?;
            let text = spelled(u, digits, exponent)?;
            let text = if negative { format!("-{text}") } else { text };
            let trimmed = digits.to_string();
            let trimmed = trimmed.trim_end_matches('0');
            let zeros = digits.to_string().len() - trimmed.len();
            let value = if trimmed.is_empty() {
                Decimal(false, String::new(), 0)
            } else {
                Decimal(negative, trimmed.to_owned(), exponent + zeros as i64)
            };
            Ok((value, text))
        };
        let ((a, one), (b, other)) = (number(u)?, number(u)?);
        let digest = |text: &str| Digest::of(comparable(text).unwrap().to_string().as_bytes());
        assert_eq!(digest(&one) == digest(&other), a == b, "{one} and {other}");
        // Values that were read are equal exactly if the written numbers are.
        let read = |text: &str| read::<Json>(text).unwrap();
        if a != b && a.2 >= 0 && b.2 >= 0 && !format!("{one}{other}").contains(['.', 'e', 'E']) {
            assert!(!equal(&read(&one), &read(&other)), "{one} and {other}");
        }
        Ok(())
    });
}

/// No fraction holds these bounds, so they are neither stored nor compared as one.
#[test]
fn bounds_are_compared_by_value() {
    let network = network(
        "tools:\n  t:\n    description: T.\n    effect: read\n    native: 1\n    parameters:\n\
         \x20     n: { type: integer, minimum: -9007199254740993, maximum: 9007199254740993 }\n\
         \x20     x: { type: number, optional: true, maximum: 2.0 }\n\
         agents: { a: { system: S., tools: [t] } }\n",
    );
    let misfit = |args: Json| {
        let args = args.as_object().expect("arguments");
        let misfit = arguments_misfit(&network.tool("t").parameters, args);
        misfit.map(|misfit| misfit.to_string())
    };
    for n in [9_007_199_254_740_993_i64, -9_007_199_254_740_993, 0] {
        assert_eq!(misfit(json!({ "n": n, "x": 2 })), None);
    }
    for (args, why) in [
        (
            json!({ "n": 9_007_199_254_740_994_i64 }),
            "`n` is 9007199254740994, must be at most 9007199254740993",
        ),
        (
            json!({ "n": -9_007_199_254_740_994_i64 }),
            "`n` is -9007199254740994, must be at least -9007199254740993",
        ),
        (
            json!({ "n": u64::MAX }),
            "`n` is 18446744073709551615, must be at most 9007199254740993",
        ),
        (json!({ "n": 0, "x": 2.5 }), "`x` is 2.5, must be at most 2"),
    ] {
        assert_eq!(misfit(args).as_deref(), Some(why));
    }
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
