//! Providers that a definition may name, and the hosted models that are known by name: their list prices and their context
//! windows. A definition overrides prices and windows.

use steersman_machine::network::{AUTO, LOCAL, SCRIPTED};
use steersman_machine::values::price::{Price, micros};

/// Words for a provider. `false` marks a reserved word, which no provider has yet. The other settings of a provider are in a table
/// of the adapters, and a test there compares the names.
pub(crate) const PROVIDERS: &[(&str, bool)] = &[
    (AUTO, true),
    (LOCAL, true),
    ("openai", true),
    ("anthropic", true),
    ("gemini", true),
    ("responses", true),
    ("azure", true),
    ("vertex", true),
    ("bedrock", true),
    ("compatible", true),
    (SCRIPTED, true),
];

/// Prices by provider and model, in US dollars per million tokens. Price lists change, so the table names its date.
static PRICES: &str = include_str!("prices.csv");

/// Context windows of well-known models, in tokens for a request and its answer together, by prefix of the model's name. The
/// first prefix that matches counts. The numbers are those that the providers publish for late 2025, and for November 2026 of
/// `gpt-6`; a definition overrides them with `window`.
const WINDOWS: [(&str, u64); 9] = [
    ("claude-", 200_000),
    ("gpt-6", 1_050_000),
    ("gpt-5", 400_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    ("gemini-2.5", 1_048_576),
    ("gemini-3", 1_048_576),
];

/// Returns the maximum number of tokens that a request to this model and its answer may have together, if known.
pub fn window(model: &str) -> Option<u64> {
    // Bedrock puts a region and the maker in front: `eu.anthropic.claude-haiku-4-5-20251001-v1:0`.
    let model = model
        .rsplit_once("anthropic.")
        .map_or(model, |(_, name)| name);
    let known = WINDOWS.iter().find(|(name, _)| model.starts_with(name));
    known.map(|(_, window)| *window)
}

/// Returns the table's price of a provider's model. A date at the end of the name, which names one release (`-20251001`,
/// `-2025-08-07`), is ignored.
pub fn price(provider: &str, model: &str) -> Option<Price> {
    let provider = listed_as(provider);
    let exact = |model: &str| {
        let row = rows().find(|row| row[0] == provider && row[1] == model)?;
        Some(Price {
            input: micros(row[2])?,
            cached: micros(row[3])?,
            cache_write: micros(row[4])?,
            output: micros(row[5])?,
        })
    };
    exact(model).or_else(|| exact(undated(model)?))
}

/// Returns true if the table has prices of this provider.
pub(crate) fn is_listed(provider: &str) -> bool {
    let provider = listed_as(provider);
    rows().any(|row| row[0] == provider)
}

/// Returns the provider under which the table lists the models of this one: the same models at the same list prices.
fn listed_as(provider: &str) -> &str {
    match provider {
        "responses" => "openai",
        "vertex" => "gemini",
        other => other,
    }
}

fn rows() -> impl Iterator<Item = [&'static str; 6]> {
    let lines = PRICES.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        cells.try_into().ok()
    })
}

/// Returns the name without the date at its end. `None` means that the name ends in no date.
fn undated(model: &str) -> Option<&str> {
    let digits = model
        .bytes()
        .rev()
        .take_while(|c| matches!(c, b'0'..=b'9' | b'-'));
    let at = model.len() - digits.count();
    let (name, date) = model.split_at(at);
    let count = date.bytes().filter(u8::is_ascii_digit).count();
    let date = date.starts_with('-').then_some(count)?;
    // The name before the date may end in digits, too: `claude-haiku-4-5-20251001`.
    match date {
        8 => Some(name),
        9.. => {
            let cut = model.len()
                - if model.as_bytes()[model.len() - 3] == b'-' {
                    11
                } else {
                    9
                };
            model.get(..cut).filter(|_| model.as_bytes()[cut] == b'-')
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_can_be_read() {
        let lines = PRICES.lines();
        let lines = lines.filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        let mut seen = std::collections::BTreeSet::new();
        for line in lines {
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            assert_eq!(cells.len(), 6, "{line}");
            let price = price(cells[0], cells[1]).expect(line);
            assert!(
                price.cached <= price.input && price.input <= price.output,
                "{line}"
            );
            assert!(price.cache_write >= price.input, "{line}");
            assert!(seen.insert((cells[0], cells[1])), "{line} is listed twice");
        }
        assert!(seen.len() > 10);
    }

    #[test]
    fn a_window_is_known_by_the_beginning_of_a_name() {
        assert_eq!(window("claude-haiku-4-5"), Some(200_000));
        let bedrock = "eu.anthropic.claude-haiku-4-5-20251001-v1:0";
        assert_eq!(window(bedrock), Some(200_000));
        assert_eq!(window("gemini-3.8-flash"), Some(1_048_576));
        assert_eq!(window("my-claude-like"), None);
    }

    #[test]
    fn a_date_at_the_end_of_a_name_is_ignored() {
        let of = |model| price("anthropic", model);
        assert_eq!(of("claude-haiku-4-5-20251001"), of("claude-haiku-4-5"));
        assert!(of("claude-haiku-4-5").is_some());
        let of = |model| price("openai", model);
        assert_eq!(of("gpt-5-mini-2025-08-07"), of("gpt-5-mini"));
        assert_eq!(of("gpt-5-2025-08-07"), of("gpt-5"));
        assert!(of("gpt-5").is_some());
        assert_eq!(of("gpt-5-huge"), None);
        assert_eq!(of("2025"), None);
        assert_eq!(price("compatible", "gpt-5"), None);
        assert_eq!(price("responses", "gpt-5"), price("openai", "gpt-5"));
        assert_eq!(
            price("vertex", "gemini-2.5-pro"),
            price("gemini", "gemini-2.5-pro")
        );
        assert!(price("vertex", "gemini-2.5-pro").is_some());
    }
}
