//! The only place that prints: data to stdout, talk to stderr.
//!
//! Colours go through `anstream`, which drops them where nobody would see them. A reader that went away
//! (`steersman log | head`) is no error worth words: [`CommandError::reader_gone`] ends the command quietly.

use crate::cli::{Color, Global};
use crate::error::CommandError;
use anstyle::{AnsiColor, Style};
use serde_json::Value as Json;
use std::io::{IsTerminal, Write};

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

    /// One line of data.
    pub(crate) fn data(&self, text: impl AsRef<str>) -> Result<(), CommandError> {
        let mut out = anstream::stdout().lock();
        writeln!(out, "{}", text.as_ref())?;
        Ok(out.flush()?)
    }

    /// One document of data, on one line.
    pub(crate) fn json(&self, value: &Json) -> Result<(), CommandError> {
        self.data(value.to_string())
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
        let _ = writeln!(anstream::stderr(), "{}", text.as_ref());
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
            self.talk(format!("Next:  {}", bold(command)));
        } else {
            self.talk(format!("Next:  {}   {}", bold(command), dim(why)));
        }
    }
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
