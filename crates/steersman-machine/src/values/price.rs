//! Prices of models, and costs in whole millionths of the currency.

use serde::{Deserialize, Serialize};

/// Millionths of one unit of the currency.
const MICROS: u64 = 1_000_000;
/// Number of tokens that a price is for.
const PER: u128 = 1_000_000;

/// Price of a million tokens, in millionths of the currency. **Stored** as JSON in the binding of a session.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Price of input tokens that are not in a cache.
    pub input: u64,
    /// Price of input tokens that the provider read from its cache.
    pub cached: u64,
    /// Price of input tokens that the provider wrote to its cache on request.
    pub cache_write: u64,
    /// Price of output tokens.
    pub output: u64,
}

/// Tokens of one model call, as they are billed.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// All input tokens.
    pub input: u64,
    /// The part of the input that the provider read from its cache.
    pub cached: u64,
    /// The part of the input that the provider wrote to its cache on request.
    pub cache_write: u64,
    /// All tokens of the answer.
    pub output: u64,
}

impl Price {
    /// Returns the cost of these tokens in millionths of the currency, rounded up. An overflow gives the greatest number.
    pub fn of(&self, tokens: Tokens) -> u64 {
        // A server may report more cached tokens than were sent. Only as many as were sent are billed.
        let cached = tokens.cached.min(tokens.input);
        let written = tokens.cache_write.min(tokens.input - cached);
        let plain = tokens.input - cached - written;
        let parts = [
            (plain, self.input),
            (cached, self.cached),
            (written, self.cache_write),
            (tokens.output, self.output),
        ];
        let sum = parts
            .iter()
            .map(|(n, price)| u128::from(*n) * u128::from(*price))
            .fold(0_u128, u128::saturating_add);
        u64::try_from(sum.div_ceil(PER)).unwrap_or(u64::MAX)
    }

    /// Returns the highest possible cost of a call that sends `input` tokens and receives `output` tokens.
    pub fn at_most(&self, input: u64, output: u64) -> u64 {
        let highest = self.input.max(self.cached).max(self.cache_write);
        let bound = Self {
            input: highest,
            ..*self
        };
        bound.of(Tokens {
            input,
            output,
            ..Tokens::default()
        })
    }
}

/// Parses a decimal amount of money into millionths. Smaller parts are rounded up. `None` means that the text is not an amount, or
/// that the amount is too large.
pub fn micros(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let all = |text: &str| text.bytes().all(|c| c.is_ascii_digit());
    if whole.is_empty() && part.is_empty() || !all(whole) || !all(part) {
        return None;
    }
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let (kept, rest) = part.split_at(part.len().min(6));
    let padded = format!("{kept:0<6}");
    let part: u64 = padded.parse().ok()?;
    let up = u64::from(rest.bytes().any(|c| c != b'0'));
    whole.checked_mul(MICROS)?.checked_add(part + up)
}

/// Writes millionths as an amount for people, with at least two decimal places and no more than needed: `0.30`.
pub fn money(micros: u64) -> String {
    let part = format!("{:06}", micros % MICROS);
    let kept = part.trim_end_matches('0').len().max(2);
    format!("{}.{}", micros / MICROS, &part[..kept])
}

/// Writes a number with commas between thousands: `9,100`.
pub fn digits(n: u64) -> String {
    let text = n.to_string();
    let mut out = String::new();
    for (i, digit) in text.chars().enumerate() {
        if i > 0 && (text.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_rounded_up_and_never_overflow() {
        let price = Price {
            input: 250_000,
            cached: 25_000,
            cache_write: 312_500,
            output: 2_000_000,
        };
        let of = |input, cached, cache_write, output| {
            price.of(Tokens {
                input,
                cached,
                cache_write,
                output,
            })
        };
        assert_eq!(of(1_000_000, 0, 0, 1_000_000), 2_250_000);
        assert_eq!(of(1, 0, 0, 0), 1);
        assert_eq!(of(0, 0, 0, 0), 0);
        assert_eq!(of(1_000, 400, 200, 10), 100 + 10 + 63 + 20);
        // More cached tokens than were sent.
        assert_eq!(of(1_000, 5_000, 9, 0), 25);
        assert_eq!(of(u64::MAX, 0, 0, u64::MAX), u64::MAX);
        assert!(price.at_most(1_000, 10) >= of(1_000, 0, 1_000, 10));
    }

    #[test]
    fn amounts_are_read_and_written_exactly() {
        for (text, amount) in [
            ("3", 3_000_000),
            ("0.30", 300_000),
            ("0.025", 25_000),
            (".5", 500_000),
            ("0.0000001", 1),
            ("1.", 1_000_000),
        ] {
            assert_eq!(micros(text), Some(amount), "{text}");
        }
        for text in ["", ".", "-1", "1e3", "one", "1.2.3", "99999999999999"] {
            assert_eq!(micros(text), None, "{text}");
        }
        assert_eq!(money(300_000), "0.30");
        assert_eq!(money(3_000_000), "3.00");
        assert_eq!(money(25_001), "0.025001");
    }
}
