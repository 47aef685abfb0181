//! Remaining limits that servers report in headers, as provider-neutral data.
//!
//! OpenAI and many servers with its protocol send `x-ratelimit-remaining-requests` and `-tokens` with `x-ratelimit-reset-..`, a
//! span such as `1s`, `6m0s`, `120ms`, or plain seconds. Anthropic sends `anthropic-ratelimit-requests-remaining`, `-tokens-`,
//! `-input-tokens-` and `-output-tokens-` with `..-reset`, a time as RFC 3339.

use reqwest::header::HeaderMap;
use steersman_runtime::model::{Left, Report};

/// Returns the report in an answer's headers; `now` is for servers that send no `Date`.
pub(crate) fn report(headers: &HeaderMap, now: jiff::Timestamp) -> Report {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let now = text("date")
        .and_then(|date| jiff::fmt::rfc2822::parse(date).ok())
        .map_or(now, |date| date.timestamp());
    let openai = |of: &str| {
        let left = text(&format!("x-ratelimit-remaining-{of}"))?;
        let reset = text(&format!("x-ratelimit-reset-{of}"))?;
        Some(Left {
            left: whole(left)?,
            millis: span(reset)?,
        })
    };
    let anthropic = |of: &str| {
        let left = text(&format!("anthropic-ratelimit-{of}-remaining"))?;
        let reset: jiff::Timestamp = text(&format!("anthropic-ratelimit-{of}-reset"))?
            .parse()
            .ok()?;
        let millis = reset.as_millisecond() - now.as_millisecond();
        Some(Left {
            left: whole(left)?,
            millis: u64::try_from(millis).unwrap_or(0),
        })
    };
    let kinds = ["tokens", "input-tokens", "output-tokens"];
    let tokens = kinds.into_iter().filter_map(anthropic);
    Report {
        requests: openai("requests").or_else(|| anthropic("requests")),
        // The limit with the fewest tokens left.
        tokens: openai("tokens").or_else(|| tokens.min_by_key(|left| left.left)),
    }
}

/// Parses a number; some servers write it with a fraction. A negative number becomes zero.
fn whole(text: &str) -> Option<u64> {
    let number: f64 = text.parse().ok().filter(|n: &f64| n.is_finite())?;
    Some(number.max(0.0) as u64)
}

/// Parses `1h2m3.5s`, `120ms` or plain seconds, as milliseconds.
fn span(text: &str) -> Option<u64> {
    if let Ok(seconds) = text.parse::<f64>() {
        let fits = seconds.is_finite() && seconds >= 0.0;
        return fits.then(|| (seconds * 1_000.0).ceil() as u64);
    }
    if text.is_empty() {
        return None;
    }
    let mut rest = text;
    let mut millis = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        millis += number
            * match &rest[..unit] {
                "d" => 86_400_000.0,
                "h" => 3_600_000.0,
                "m" => 60_000.0,
                "s" => 1_000.0,
                "ms" => 1.0,
                "us" | "\u{b5}s" | "\u{3bc}s" => 0.001,
                "ns" => 0.000_001,
                _ => return None,
            };
        rest = &rest[unit..];
    }
    Some(f64::ceil(millis) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &[(&'static str, &str)]) -> Report {
        let headers = list.iter().map(|(name, value)| {
            let name = reqwest::header::HeaderName::from_static(name);
            (name, value.parse().expect("a header"))
        });
        let now = jiff::Timestamp::from_second(1_000_000_000).expect("a moment"); // 2001-09-09T01:46:40Z
        report(&headers.collect(), now)
    }

    fn left(left: u64, millis: u64) -> Left {
        Left { left, millis }
    }

    #[test]
    fn spans_are_read_as_servers_write_them() {
        for (text, millis) in [
            ("1s", Some(1_000)),
            ("6m0s", Some(360_000)),
            ("120ms", Some(120)),
            ("1h2m3.5s", Some(3_723_500)),
            ("7.66", Some(7_660)),
            ("0", Some(0)),
            ("850.5\u{b5}s", Some(1)),
            ("-1", None),
            ("soon", None),
            ("5 minutes", None),
            ("1.2.3s", None),
            ("", None),
        ] {
            assert_eq!(span(text), millis, "{text}");
        }
    }

    #[test]
    fn what_is_left_is_read_from_the_headers_of_both() {
        let openai = of(&[
            ("x-ratelimit-limit-requests", "500"),
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "6m0s"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-tokens", "6ms"),
        ]);
        assert_eq!(
            (openai.requests, openai.tokens),
            (Some(left(0, 360_000)), Some(left(149_984, 6)))
        );
        let anthropic = of(&[
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-requests-reset", "2001-09-09T01:46:41Z"),
            ("anthropic-ratelimit-input-tokens-remaining", "30000"),
            (
                "anthropic-ratelimit-input-tokens-reset",
                "2001-09-09T01:46:42Z",
            ),
            ("anthropic-ratelimit-output-tokens-remaining", "0"),
            (
                "anthropic-ratelimit-output-tokens-reset",
                "2001-09-09T01:47:40Z",
            ),
        ]);
        assert_eq!(
            (anthropic.requests, anthropic.tokens),
            (Some(left(49, 1_000)), Some(left(0, 60_000)))
        );
        // A wrong clock on either side does no harm.
        let dated = of(&[
            ("date", "Mon, 10 Sep 2001 00:00:00 GMT"),
            ("anthropic-ratelimit-requests-remaining", "0"),
            ("anthropic-ratelimit-requests-reset", "2001-09-10T00:00:05Z"),
        ]);
        assert_eq!(dated.requests, Some(left(0, 5_000)));
        // Incomplete or odd headers are ignored.
        let odd = of(&[
            ("x-ratelimit-remaining-requests", "-1"),
            ("x-ratelimit-remaining-tokens", "many"),
            ("x-ratelimit-reset-tokens", "1s"),
        ]);
        assert_eq!(odd, Report::default());
    }
}
