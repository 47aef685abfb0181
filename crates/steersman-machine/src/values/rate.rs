//! Rates: the maximum number of requests or tokens in a span of time, as `5/s`, `100/min` or `100/min, 40000 tokens/min`.

/// A rate: quotas of requests and, for a model, of tokens.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    /// Quota of requests.
    pub requests: Option<Quota>,
    /// Quota of tokens, input and output together.
    pub tokens: Option<Quota>,
}

/// At most `most` units within any span of `within` milliseconds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quota {
    /// Maximum number of units in a span.
    pub most: u64,
    /// Length of the span in milliseconds.
    pub within: u64,
}

/// Maximum number of requests that a quota may allow. The limiter remembers each request of the span.
pub(crate) const MOST_REQUESTS: u64 = 100_000;

impl Rate {
    /// Parses a rate: parts with commas between them, each `N/UNIT` or `N tokens/UNIT`, with the units `s`, `min`, `h` and `d`.
    /// `None` means that the text is not a rate, that a number is 0 or too large, or that a quota comes twice.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rate = Self::default();
        for part in text.split(',') {
            let (what, unit) = part.split_once('/')?;
            let within = match unit.trim() {
                "s" => 1_000,
                "min" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                _ => return None,
            };
            let what = what.trim();
            let tokens = what.strip_suffix("tokens");
            let number = tokens.unwrap_or(what).trim_end();
            if number.is_empty() || !number.bytes().all(|c| c.is_ascii_digit()) {
                return None;
            }
            let most: u64 = number.parse().ok().filter(|most| *most > 0)?;
            let (slot, bound) = match tokens {
                Some(_) => (&mut rate.tokens, 1 << 50),
                None => (&mut rate.requests, MOST_REQUESTS),
            };
            if most > bound || slot.is_some() {
                return None;
            }
            *slot = Some(Quota { most, within });
        }
        Some(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        let quota = |most, within| Some(Quota { most, within });
        let rate = |requests, tokens| Some(Rate { requests, tokens });
        assert_eq!(Rate::parse("5/s"), rate(quota(5, 1_000), None));
        assert_eq!(Rate::parse("100/min"), rate(quota(100, 60_000), None));
        assert_eq!(
            Rate::parse("100/min, 40000 tokens/min"),
            rate(quota(100, 60_000), quota(40_000, 60_000))
        );
        assert_eq!(Rate::parse("9 tokens/d"), rate(None, quota(9, 86_400_000)));
        for text in [
            "",
            "5",
            "5/",
            "/s",
            "0/s",
            "-1/s",
            "1.5/s",
            "5/fortnight",
            "5/s, 6/min",
            "5 apples/s",
            "999999999/s",
            "5/s,",
            "tokens/s",
        ] {
            assert_eq!(Rate::parse(text), None, "{text}");
        }
    }
}
