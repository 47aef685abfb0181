//! Challenges of servers (`WWW-Authenticate`): the things that they want before they do anything.

use serde::{Deserialize, Serialize};

/// Maximum number of bytes of a challenge that are read.
const CHALLENGE_MAX: usize = 8 << 10;
/// Maximum number of scopes of a list.
const SCOPES_MAX: usize = 100;

/// The things that a server wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Challenge {
    /// The scopes that it wants; empty if it names none.
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    /// Address of its metadata, as it says.
    #[serde(default)]
    pub(crate) metadata: Option<String>,
    /// Its error, such as `insufficient_scope`.
    #[serde(default)]
    pub(crate) error: Option<String>,
}

impl Challenge {
    /// Reads the value of the header. Parts that cannot be read are left out.
    pub(crate) fn read(header: &str) -> Self {
        let mut challenge = Self::default();
        let mut rest = &header[..header.floor_char_boundary(CHALLENGE_MAX)];
        while let Some((name, value, after)) = parameter(rest) {
            rest = after;
            match name.to_ascii_lowercase().as_str() {
                "scope" if challenge.scopes.is_empty() => challenge.scopes = scopes(&value),
                "resource_metadata" if challenge.metadata.is_none() => {
                    challenge.metadata = Some(value);
                }
                "error" if challenge.error.is_none() => challenge.error = Some(value),
                _ => {}
            }
        }
        challenge
    }

    /// Returns true if the token is known and allows too little.
    pub(crate) fn wants_more(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

/// Reads a list of scopes, which blanks separate. Each is there once.
pub(crate) fn scopes(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for scope in text.split_whitespace().take(SCOPES_MAX) {
        if !all.iter().any(|known| known == scope) {
            all.push(scope.to_owned());
        }
    }
    all
}

/// Returns the scopes of both lists, each once, those of the first list first.
pub(crate) fn union(one: &[String], other: &[String]) -> Vec<String> {
    scopes(&[one.join(" "), other.join(" ")].join(" "))
}

/// Finds the next `NAME=VALUE` or `NAME="VALUE"`. Returns it, and the text behind it.
fn parameter(text: &str) -> Option<(&str, String, &str)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*');
    let mut from = 0;
    loop {
        let equals = from + text[from..].find('=')?;
        let before = text[..equals].trim_end();
        let begins = before
            .char_indices()
            .rev()
            .find(|(_, c)| !is_name(*c))
            .map_or(0, |(at, c)| at + c.len_utf8());
        let name = &before[begins..];
        let value = text[equals + 1..].trim_start();
        if name.is_empty() {
            from = equals + 1;
            continue;
        }
        let Some(quoted) = value.strip_prefix('"') else {
            let ends = |c: char| c == ',' || c.is_whitespace();
            let end = value.find(ends).unwrap_or(value.len());
            return Some((name, value[..end].to_owned(), &value[end..]));
        };
        let (mut read, mut escaped) = (String::new(), false);
        for (at, c) in quoted.char_indices() {
            match c {
                _ if escaped => {
                    read.push(c);
                    escaped = false;
                }
                '\\' => escaped = true,
                '"' => return Some((name, read, &quoted[at + 1..])),
                c => read.push(c),
            }
        }
        // The quotation mark that ends it is missing.
        return None;
    }
}

#[cfg(test)]
mod tests {
    use super::{Challenge, union};

    fn read(header: &str) -> (String, Option<String>, Option<String>) {
        let read = Challenge::read(header);
        (read.scopes.join(" "), read.metadata, read.error)
    }

    #[test]
    fn challenges_are_read_in_every_spelling() {
        let at = Some("https://a.example/.well-known/x".to_owned());
        let more = Some("insufficient_scope".to_owned());
        for header in [
            r#"Bearer error="insufficient_scope", scope="read write", resource_metadata="https://a.example/.well-known/x""#,
            r#"bearer SCOPE="read  write read",error=insufficient_scope ,Resource_Metadata=https://a.example/.well-known/x"#,
            r#"Basic realm="a, scope=\"no\"", Bearer scope = "read write", resource_metadata = "https://a.example/.well-known/x", error="insufficient_scope""#,
        ] {
            assert_eq!(
                read(header),
                ("read write".to_owned(), at.clone(), more.clone()),
                "{header}"
            );
        }
        for nothing in [
            "",
            "Bearer",
            "=",
            "==\"",
            "Bearer scope=\"a",
            "\"=\"=",
            "é=ü",
        ] {
            assert_eq!(read(nothing), (String::new(), None, None), "{nothing}");
        }
        assert_eq!(read("Bearer =x, scope=a").0, "a");
    }

    #[test]
    fn an_endless_challenge_is_read_to_its_bound() {
        let long = format!("Bearer scope=\"{}\", error=late", "ä ".repeat(100_000));
        assert_eq!(read(&long), (String::new(), None, None));
        let many: Vec<String> = (0..1_000).map(|n| n.to_string()).collect();
        assert_eq!(super::scopes(&many.join(" ")).len(), 100);
    }

    #[test]
    fn scopes_are_united_in_order() {
        let list = |text: &str| super::scopes(text);
        assert_eq!(union(&list("b a"), &list("a c")), list("b a c"));
    }

    /// Numbers that follow from one number.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            usize::try_from(self.0 % end as u64).expect("it is below a usize")
        }

        /// Makes a text of these pieces.
        fn text(&mut self, pieces: &[&str], longest: usize) -> String {
            let length = self.below(longest);
            let pieces = (0..length).map(|_| pieces[self.below(pieces.len())]);
            pieces.collect()
        }
    }

    const PIECES: [&str; 24] = [
        "Bearer",
        "Basic",
        " ",
        "\t",
        ",",
        "=",
        "==",
        "\"",
        "\\",
        "\\\"",
        "scope",
        "SCOPE",
        "error",
        "insufficient_scope",
        "resource_metadata",
        "realm",
        "https://a.example/x?y=z",
        "a",
        "-",
        "*",
        "é",
        "\u{2028}",
        "\0",
        "read write",
    ];

    #[test]
    fn any_text_is_read_within_bounds() {
        let mut numbers = Numbers(7);
        for _ in 0..50_000 {
            let header = numbers.text(&PIECES, 40);
            let read = Challenge::read(&header);
            for scope in &read.scopes {
                assert!(
                    !scope.is_empty() && !scope.contains(char::is_whitespace),
                    "{header:?}"
                );
            }
            assert_eq!(union(&read.scopes, &read.scopes), read.scopes, "{header:?}");
            let json = serde_json::to_string(&read).expect("it is data");
            assert_eq!(
                serde_json::from_str::<Challenge>(&json).expect("it was written"),
                read
            );
        }
    }

    #[test]
    fn what_is_quoted_is_read_as_it_was() {
        let mut numbers = Numbers(11);
        for _ in 0..20_000 {
            let [realm, metadata, error] = [(); 3].map(|()| numbers.text(&PIECES, 12));
            let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
            let header = format!(
                "Basic realm=\"{}\", Bearer resource_metadata=\"{}\" ,error = \"{}\"",
                quoted(&realm),
                quoted(&metadata),
                quoted(&error)
            );
            assert_eq!(
                read(&header),
                (String::new(), Some(metadata), Some(error)),
                "{header}"
            );
        }
    }
}
