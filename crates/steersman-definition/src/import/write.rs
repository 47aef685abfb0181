//! Writes readable YAML: plain scalars where possible, blocks for prompts, comments.

use std::fmt::Write as _;

/// Buffer of YAML lines, indented by two spaces for each level.
#[derive(Debug, Default)]
pub(super) struct Yaml(String);

impl Yaml {
    /// Appends one line.
    pub(super) fn line(&mut self, depth: usize, text: impl AsRef<str>) {
        // writing to a text cannot fail
        let _ = writeln!(self.0, "{:1$}{2}", "", depth * 2, text.as_ref());
    }

    /// Appends a comment, with one line for each line of `text`.
    pub(super) fn comment(&mut self, depth: usize, text: &str) {
        for line in text.lines() {
            let line = tame(line);
            self.line(depth, format!("# {}", line.trim_end()).trim_end());
        }
    }

    /// Appends a key with a text, on one line if that is readable, else as a block. Trailing whitespace is dropped.
    pub(super) fn text(&mut self, depth: usize, key: &str, text: &str) {
        self.keyed(depth, key, depth + 1, text);
    }

    /// Appends a key with a text as the first key of a list item. The item's other keys are one level deeper, and the lines of
    /// a block two levels.
    pub(super) fn item(&mut self, depth: usize, key: &str, text: &str) {
        self.keyed(depth, &format!("- {key}"), depth + 2, text);
    }

    fn keyed(&mut self, depth: usize, key: &str, inner: usize, text: &str) {
        let text = text.replace("\r\n", "\n");
        let text = text.trim_end();
        let odd = |c: char| c != '\n' && unprintable(c);
        let block = text.contains(['\n', '"', '\\'])
            && !text.starts_with(char::is_whitespace)
            && !text.contains(odd);
        if !block {
            return self.line(depth, format!("{key}: {}", scalar(text)));
        }
        self.line(depth, format!("{key}: |-"));
        for line in text.lines() {
            if line.is_empty() {
                self.0.push('\n');
            } else {
                self.line(inner, line);
            }
        }
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

/// Returns a text as a YAML scalar on one line, quoted if needed.
pub(super) fn scalar(text: &str) -> String {
    let first = text.chars().next();
    let plain = first.is_some_and(|c| c.is_ascii_alphabetic())
        && !text.ends_with(' ')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || " _-./".contains(c));
    // a one-line prompt with such an ending would be read as a path
    let path = [".md", ".txt", ".j2"].iter().any(|end| text.ends_with(end));
    if plain && !is_reserved_in_yaml(text) && !path {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if unprintable(c) => {
                let _ = match u32::from(c) {
                    n @ 0..=0xffff => write!(out, "\\u{n:04x}"),
                    n => write!(out, "\\U{n:08x}"),
                };
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns true if some YAML readers do not read this word as text.
fn is_reserved_in_yaml(text: &str) -> bool {
    let words = ["true", "false", "null", "yes", "no", "on", "off"];
    words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Returns true for characters that YAML does not allow unescaped, that end a line, or that change the reading direction.
fn unprintable(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' | '\u{200e}' | '\u{200f}'
                | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Replaces unprintable characters and line ends by spaces.
pub(super) fn tame(text: &str) -> String {
    text.chars()
        .map(|c| if unprintable(c) { ' ' } else { c })
        .collect()
}

/// Escapes a text so that it is a template which renders exactly that text.
pub(super) fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '{' {
            out.push(c);
            continue;
        }
        match chars.peek() {
            Some(&next @ ('{' | '%' | '#')) => {
                chars.next();
                let _ = write!(out, "{{{{ \"{{{next}\" }}}}");
            }
            // text appended later may begin with a character that would complete a tag
            None => out.push_str("{{ \"{\" }}"),
            Some(_) => out.push('{'),
        }
    }
    out
}

/// Returns a name of the format that is similar to `text` and not taken. If `text` gives none, or has letters outside
/// ASCII, the name is made of `otherwise`.
pub(super) fn name(text: &str, otherwise: &str, taken: &dyn Fn(&str) -> bool) -> String {
    const MOST: usize = 40;
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.is_empty() && !out.ends_with('_') {
            out.push('_');
        }
    }
    let drops_letters = text.chars().any(|c| c.is_alphabetic() && !c.is_ascii());
    if drops_letters {
        // a name without its non-ASCII letters would be misleading
        out.clear();
    }
    out.truncate(MOST);
    let mut base = out.trim_matches('_').to_owned();
    if !base.starts_with(|c: char| c.is_ascii_lowercase()) {
        base = if base.is_empty() {
            otherwise.to_owned()
        } else {
            format!("{otherwise}_{base}")
        };
    }
    if is_reserved_in_yaml(&base) {
        base = format!("{otherwise}_{base}");
    }
    let mut name = base.clone();
    let mut n = 2;
    while taken(&name) {
        name = format!("{base}_{n}");
        n += 1;
    }
    name
}
