//! The only place that prints: data to stdout, talk to stderr.
//!
//! Colours go through `anstream`, which drops them where nobody would see them. A reader that went away
//! (`steersman log | head`) is no error worth words: [`CommandError::reader_gone`] ends the command quietly.

use crate::cli::{Color, Global};
use crate::error::CommandError;
use crate::words::turns;
use anstyle::{AnsiColor, Style};
use serde_json::Value as Json;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

/// Prints.
#[derive(Clone, Debug)]
pub(crate) struct Printer {
    json: bool,
    quiet: bool,
}

#[expect(
    clippy::unused_self,
    reason = "who holds a printer may print, whether or not a flag has a say in it"
)]
impl Printer {
    pub(crate) fn new(global: &Global) -> Self {
        match global.color {
            Color::Auto => {}
            Color::Always => anstream::ColorChoice::Always.write_global(),
            Color::Never => anstream::ColorChoice::Never.write_global(),
        }
        let named = std::env::var_os("STEERSMAN_STORE").map(std::path::PathBuf::from);
        if let Some(store) = &global.store
            && named.as_ref() != Some(store)
        {
            // the first printer and the last one say the same
            let _ = STORE.set(quoted(&store.display().to_string()));
        }
        Self {
            json: global.json,
            quiet: global.quiet,
        }
    }

    /// Whether data is wanted as JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether somebody sits there who can be asked: both ends are a terminal and no JSON is wanted.
    pub(crate) fn can_ask(&self) -> bool {
        !self.json && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
    }

    /// One line of data. A terminal gets nothing that would do more than be read; a program gets the text as it is.
    pub(crate) fn data(&self, text: impl AsRef<str>) -> Result<(), CommandError> {
        let text = text.as_ref();
        let screen = std::io::stdout().is_terminal().then(|| harmless(text));
        let mut out = anstream::stdout().lock();
        writeln!(out, "{}", screen.as_deref().unwrap_or(text))?;
        Ok(out.flush()?)
    }

    /// Data as it is, for whoever reads stdout.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), CommandError> {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes)?;
        Ok(out.flush()?)
    }

    /// One document of data, on one line. Controls that JSON leaves as they are it may hold escaped as well.
    pub(crate) fn json(&self, value: &Json) -> Result<(), CommandError> {
        let mut text = String::new();
        for c in value.to_string().chars() {
            if c.is_control() || turns(c) {
                // writing to a text cannot fail
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            } else {
                text.push(c);
            }
        }
        self.data(text)
    }

    /// A line of talk: progress, what happens, what to type next.
    pub(crate) fn talk(&self, text: impl AsRef<str>) {
        if !self.quiet {
            self.complain(text);
        }
    }

    /// A line of talk that `--quiet` does not silence.
    pub(crate) fn complain(&self, text: impl AsRef<str>) {
        // nobody is left to tell if stderr is gone
        let _ = writeln!(anstream::stderr(), "{}", harmless(text.as_ref()));
    }

    /// Talk without an end of line, as it streams in.
    pub(crate) fn stream(&self, text: &str) {
        if !self.quiet {
            let mut err = anstream::stderr();
            let _ = write!(err, "{text}");
            let _ = err.flush();
        }
    }

    /// What to type next.
    pub(crate) fn next(&self, command: impl AsRef<str>, why: &str) {
        let command = command.as_ref();
        if why.is_empty() {
            self.talk(format!("Next:  {}", typed(command)));
        } else {
            self.talk(format!("Next:  {}   {}", typed(command), dim(why)));
        }
    }
}

/// The store, if it was named on the command line: what is to be typed next names it, too.
static STORE: OnceLock<String> = OnceLock::new();

/// A command to type, with the store of this one.
pub(crate) fn typed(command: &str) -> String {
    bold(&here(command))
}

/// Commands in a text, with the store of this one.
pub(crate) fn here(text: &str) -> String {
    match STORE.get() {
        Some(store) => text.replace("steersman ", &format!("steersman --store {store} ")),
        None => text.to_owned(),
    }
}

/// A text as a shell takes it for one word.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// What models, tools, files and people wrote stands between our own words: of all that a terminal would obey, colours
/// and styles are left, but for the one that hides text.
fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(style) = style_at(rest) {
            out.push_str(style);
            rest = &rest[style.len()..];
            continue;
        }
        if c == '\n' || c == '\t' || !(c.is_control() || turns(c)) {
            out.push(c);
        }
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// The escape sequence for colours and styles with which a text begins.
fn style_at(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("\u{1b}[")?;
    let end = inner.find(|c: char| !(c.is_ascii_digit() || c == ';'))?;
    let hides = inner[..end].split(';').any(|code| code == "8");
    (inner[end..].starts_with('m') && !hides).then(|| &text[..end + 3])
}

fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// What matters.
pub(crate) fn bold(text: &str) -> String {
    styled(Style::new().bold(), text)
}
/// What may be skipped.
pub(crate) fn dim(text: &str) -> String {
    styled(Style::new().dimmed(), text)
}
/// What went well.
pub(crate) fn green(text: &str) -> String {
    styled(AnsiColor::Green.on_default(), text)
}
/// What went wrong.
pub(crate) fn red(text: &str) -> String {
    styled(AnsiColor::Red.on_default().bold(), text)
}
/// What waits or may have happened.
pub(crate) fn yellow(text: &str) -> String {
    styled(AnsiColor::Yellow.on_default(), text)
}
/// Who acts.
pub(crate) fn cyan(text: &str) -> String {
    styled(AnsiColor::Cyan.on_default(), text)
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn a_terminal_gets_nothing_that_would_do_more_than_be_read() {
        for (text, shown) in [
            ("Paid 5.00\rNothing", "Paid 5.00Nothing"),
            ("one\r\ntwo\tthree", "one\ntwo\tthree"),
            ("\u{1b}[2Jgone\u{1b}[1A", "[2Jgone[1A"),
            ("\u{1b}[31mred\u{1b}[0m", "\u{1b}[31mred\u{1b}[0m"),
            ("\u{1b}[8mhidden", "[8mhidden"),
            ("\u{202e}desrever", "desrever"),
        ] {
            assert_eq!(harmless(text), shown, "{text:?}");
        }
    }
}
