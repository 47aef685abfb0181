//! Reads JSON from outside without loss.
//!
//! A whole number has 64 bits here. Common JSON parsers silently round a larger one to floating point, for example an amount in
//! the smallest unit of a blockchain, or a serial number. This module reads it as the text of its digits instead. If a type
//! declares a whole number, that text does not fit; everywhere else no digit is lost. Numbers with a fraction or an exponent
//! are 64-bit floating point. [`comparable`] and [`canonical`] give equal values for equal numbers, whatever their spelling.

use crate::values::types::canonical;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value as Json};
use std::borrow::Cow;

/// A whole number with fewer digits always fits 64 bits.
const SHORT: usize = 19;

/// Parses JSON. A whole number that does not fit 64 bits becomes the text of its digits.
pub fn read<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(&exact(text))
}

/// Maximum number of digits of a whole number that is written with a fraction or an exponent.
const LONGEST: usize = 309;

/// Returns a canonical value of a JSON text, so that texts can be compared whatever their spelling. A whole number that is
/// written with a fraction or an exponent becomes a whole number: `1.5e3` becomes `1500`.
pub fn comparable(text: &str) -> serde_json::Result<Json> {
    let written = rewritten(text, |number| {
        let whole = whole(number);
        quoted(whole.as_deref().unwrap_or(number)).or(whole)
    });
    serde_json::from_str(&written).map(|json: Json| canonical(&json))
}

/// Returns the JSON with quotes around whole numbers that do not fit 64 bits. Invalid JSON is unchanged.
pub fn exact(text: &str) -> Cow<'_, str> {
    rewritten(text, quoted)
}

fn quoted(number: &str) -> Option<String> {
    is_beyond(number).then(|| format!("\"{number}\""))
}

/// Returns the digits of a whole number that is written with a fraction or an exponent; `None` for any other number.
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
    // Position of the decimal point, counted from the first significant digit.
    let point = i64::try_from(before.len()).ok()? - i64::try_from(leading).ok()?;
    let point = point.checked_add(exponent.parse().ok()?)?;
    let zeros = usize::try_from(point).ok()?.checked_sub(digits.len())?;
    (digits.len() + zeros <= LONGEST).then(|| format!("{sign}{digits}{}", "0".repeat(zeros)))
}

/// Returns the JSON with some of its numbers replaced by other text.
fn rewritten(text: &str, other: impl Fn(&str) -> Option<String>) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = behind_string(bytes, at + 1),
            b'-' | b'0'..=b'9' => {
                let end = bytes[at..].iter().position(|byte| !is_of_number(*byte));
                let end = end.map_or(bytes.len(), |len| at + len);
                // A number is no key of an object: quotes would make JSON of what is none.
                if let Some(number) = other(&text[at..end]).filter(|_| !is_before_colon(bytes, end))
                {
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

/// Returns true if the text is a whole number, as JSON writes it, that does not fit 64 bits.
pub(crate) fn is_beyond(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    digits.len() >= SHORT
        && !digits.starts_with('0')
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && number.parse::<i64>().is_err()
        && number.parse::<u64>().is_err()
}

/// Returns true if the next character from `at` on that is no blank is a colon.
fn is_before_colon(bytes: &[u8], at: usize) -> bool {
    let mut rest = bytes[at..].iter();
    rest.find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
}

fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')
}

/// Returns the position after a string whose first character is at `at`.
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

/// Name of the only field of a sealed secret.
pub const SEALED: &str = "$sealed";

/// Returns true if this JSON is a sealed secret.
pub fn is_sealed(json: &Json) -> bool {
    json.as_object()
        .is_some_and(|o| o.len() == 1 && o.contains_key(SEALED))
}

/// Parses the arguments that a model gave. Empty text is an empty object.
pub(crate) fn arguments(args: &str) -> Result<Map<String, Json>, String> {
    if args.trim().is_empty() {
        return Ok(Map::new());
    }
    match read(args) {
        Ok(Json::Object(args)) => Ok(args),
        Ok(_) => Err("the arguments are not a JSON object".to_owned()),
        Err(e) => Err(format!("the arguments are not JSON: {e}")),
    }
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
        for unchanged in [
            "00000000000000000000001",
            "\"\\",
            "1234567890123456789012-3",
        ] {
            assert_eq!(exact(unchanged), unchanged);
            assert!(super::read::<Json>(unchanged).is_err(), "{unchanged}");
        }
    }
}
