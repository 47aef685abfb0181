//! Addresses as people type them: `SESSION[:BRANCH][@LINE]`.

use crate::error::CommandError;
use std::fmt;
pub(crate) use steersman::views::screen::LineName;

/// A parsed address that is not looked up yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) session: SessionName,
    /// Label or id of a branch; `None` means the current one.
    pub(crate) branch: Option<String>,
    pub(crate) line: Option<LineName>,
}

/// The ways to name a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SessionName {
    /// The session that changed last.
    Last,
    /// The session with this label (name and value).
    Label(String, String),
    /// The session whose id begins with this text.
    Prefix(String),
}

impl Address {
    pub(crate) fn parse(text: &str) -> Result<Self, CommandError> {
        let (rest, line) = match text.rsplit_once('@') {
            Some((rest, line)) if !rest.is_empty() && names_line(rest, line) => {
                (rest, Some(LineName::parse(line)?))
            }
            Some((rest, "")) if !rest.is_empty() => {
                return Err(CommandError::usage(format!("`{text}` names no line"))
                    .hint("a line is a number (@12), counted back (@-2), or the first after a tool (@find_order)"));
            }
            _ => (text, None),
        };
        let (session, branch) = match rest.split_once(':') {
            Some((session, branch)) if !rest.contains('=') && !branch.is_empty() => {
                (session, Some(branch.to_owned()))
            }
            _ => (rest, None),
        };
        if session.is_empty() || session.starts_with('@') {
            return Err(CommandError::usage(format!("`{text}` names no session"))
                .hint("`last`, the beginning of an id, or a label: vendor=Acme"));
        }
        let session = match session.split_once('=') {
            Some((label, value)) => SessionName::Label(label.to_owned(), value.to_owned()),
            None if session == "last" => SessionName::Last,
            None => SessionName::Prefix(session.to_ascii_lowercase()),
        };
        Ok(Self {
            session,
            branch,
            line,
        })
    }
}

/// Returns true if the text behind the last @ is a line. Behind a session or a branch it always is, also if the name of its tool
/// has a dot (`library.search`). A label's value may contain an @, as mail addresses do, so there it must look like a line.
fn names_line(rest: &str, line: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !line.is_empty() && (!rest.contains('=') || line.chars().all(plain))
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Last => f.write_str("last"),
            Self::Label(name, value) => write!(f, "{name}={value}"),
            Self::Prefix(prefix) => f.write_str(prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> String {
        match Address::parse(text) {
            Ok(a) => format!("{:?} {:?} {:?}", a.session, a.branch, a.line),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn addresses_are_parsed() {
        for (typed, read) in [
            ("last", "Last None None"),
            ("k7wq", "Prefix(\"k7wq\") None None"),
            ("K7WQ@12", "Prefix(\"k7wq\") None Some(Number(12))"),
            (
                "k7wq:fee@-2",
                "Prefix(\"k7wq\") Some(\"fee\") Some(Back(2))",
            ),
            ("last@refund", "Last None Some(First(\"refund\"))"),
            (
                "last:fee@library.search",
                "Last Some(\"fee\") Some(First(\"library.search\"))",
            ),
            ("last@head", "Last None Some(Back(0))"),
            ("vendor=Acme", "Label(\"vendor\", \"Acme\") None None"),
            (
                "mail=a@b.example",
                "Label(\"mail\", \"a@b.example\") None None",
            ),
            ("due=10:30", "Label(\"due\", \"10:30\") None None"),
            ("", "`` names no session"),
            ("@3", "`@3` names no session"),
            ("k7wq@", "`k7wq@` names no line"),
            ("k7wq@3x", "`@3x` is no line"),
        ] {
            assert_eq!(parts(typed), read, "{typed}");
        }
    }
}
