//! How often something may be asked for: `5/s`, `100/min`, `100/min, 40000 tokens/min`.

/// How many requests, and of a model how many tokens, within how long.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    /// Requests.
    pub requests: Option<Quota>,
    /// Tokens, in and out.
    pub tokens: Option<Quota>,
}

/// At most so many within any span of so many milliseconds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quota {
    /// So many.
    pub most: u64,
    /// Milliseconds.
    pub within: u64,
}

/// The most that one quota may allow: each that is under way is remembered.
pub const MOST_REQUESTS: u64 = 100_000;

impl Rate {
    /// From its text: parts with commas, each `N/UNIT` or `N tokens/UNIT` with the units `s`, `min`, `h` and `d`.
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
