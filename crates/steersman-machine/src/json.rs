//! JSON as it comes from outside, read without a loss.
//!
//! A whole number takes 64 bits here. One that does not fit (an amount in the smallest unit of a chain, a serial number) would
//! be rounded to the nearest fraction by every common reader of JSON, and nobody would notice: it is read as the text of its
//! digits instead. Where a whole number is declared that is a misfit, which says so; everywhere else each digit is there.
//! Numbers with a fraction or an exponent are 64-bit floating point, as they are for most who write them. Where values are
//! compared, [`comparable`] and [`canonical`] say what is the same: the value, and not its spelling.

use crate::types::canonical;
use serde::de::DeserializeOwned;
use serde_json::{Number, Value as Json};
use std::borrow::Cow;

/// No whole number of fewer characters is beyond 64 bits.
const SHORT: usize = 19;

/// Reads JSON; whole numbers that 64 bits do not hold are texts of their digits.
pub fn read<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(&exact(text))
}

/// No fraction is a whole number of more digits.
const LONGEST: usize = 309;

/// The one value that a text of JSON has, however it is written: texts are compared by it. A whole number that is written with
/// a fraction or an exponent is the one that its digits say.
pub fn comparable(text: &str) -> serde_json::Result<Json> {
    let written = rewritten(text, |number| {
        let whole = whole(number);
        quoted(whole.as_deref().unwrap_or(number)).or(whole)
    });
    serde_json::from_str(&written).map(|json: Json| canonical(&json))
}

/// The same JSON with whole numbers that 64 bits do not hold in quotes. What is no JSON stays what it is.
pub fn exact(text: &str) -> Cow<'_, str> {
    rewritten(text, quoted)
}

fn quoted(number: &str) -> Option<String> {
    is_beyond(number).then(|| format!("\"{number}\""))
}

/// The digits of a number with a fraction or an exponent that is a whole one; none of anything else.
fn whole(number: &str) -> Option<String> {
    if !number.contains(['.', 'e', 'E']) || serde_json::from_str::<Number>(number).is_err() {
        return None;
    }
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let (before, behind) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [before, behind].concat();
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    let leading = digits.len() - significant.len();
    let digits = significant.trim_end_matches('0');
    // Where the point stands behind these digits.
    let point = i64::try_from(before.len()).ok()? - i64::try_from(leading).ok()?;
    let point = point.checked_add(exponent.parse().ok()?)?;
    let zeros = usize::try_from(point).ok()?.checked_sub(digits.len())?;
    (digits.len() + zeros <= LONGEST).then(|| format!("{sign}{digits}{}", "0".repeat(zeros)))
}

/// The same JSON with other texts in the place of some of its numbers.
fn rewritten(text: &str, other: impl Fn(&str) -> Option<String>) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = behind_string(bytes, at + 1),
            b'-' | b'0'..=b'9' => {
                let end = bytes[at..].iter().position(|byte| !is_of_number(*byte));
                let end = end.map_or(bytes.len(), |len| at + len);
                if let Some(number) = other(&text[at..end]) {
                    out.push_str(&text[copied..at]);
                    out.push_str(&number);
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Whether this text is a whole number, as JSON writes them, that 64 bits do not hold.
pub fn is_beyond(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    digits.len() >= SHORT
        && !digits.starts_with('0')
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && number.parse::<i64>().is_err()
        && number.parse::<u64>().is_err()
}

fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')
}

/// Where it goes on behind a string whose first character is here.
fn behind_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::{Json, exact};
    use serde_json::json;

    #[test]
    fn no_digit_is_lost() {
        for (text, meant) in [
            (r#"{"n": 18446744073709551615}"#, json!({ "n": u64::MAX })),
            (r#"{"n": -9223372036854775808}"#, json!({ "n": i64::MIN })),
            (
                r"[18446744073709551616,-9223372036854775809, 7]",
                json!(["18446744073709551616", "-9223372036854775809", 7]),
            ),
            ("12345678901234567890123", json!("12345678901234567890123")),
            (
                r#"{"a\"12345678901234567890123": "\\", "b":12345678901234567890123}"#,
                json!({ "a\"12345678901234567890123": "\\", "b": "12345678901234567890123" }),
            ),
            ("1.5e22", json!(1.5e22)),
        ] {
            assert_eq!(super::read::<Json>(text).unwrap(), meant, "{text}");
        }
        for none in [
            "00000000000000000000001",
            "\"\\",
            "1234567890123456789012-3",
        ] {
            assert_eq!(exact(none), none);
            assert!(super::read::<Json>(none).is_err(), "{none}");
        }
    }
}
