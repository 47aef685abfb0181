//! The only place that prints: data to stdout, talk to stderr.
//!
//! What models, tools, servers, files and people wrote stands between our own words, and may hold whatever a terminal
//! obeys: sequences that move its cursor, hide text or set its title, and characters that turn the order of others. So each
//! of these is shown as a mark of its own ([`mark`]), wherever it came from, and none is ever obeyed. Our own styles are
//! told apart by a seal that nobody else knows ([`seal`]). What goes into a file or a pipe is left as it is, byte for byte.
//!
//! A reader that went away (`steersman log | head`) is no error worth words: [`CommandError::reader_gone`] ends the command
//! quietly.

use crate::cli::{Color, Global};
use crate::error::CommandError;
use crate::words::turns;
use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use serde_json::Value as Json;
use std::fmt::Write as _;
use std::hash::{BuildHasher, Hasher};
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
            Color::Always => ColorChoice::Always.write_global(),
            Color::Never => ColorChoice::Never.write_global(),
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
        let mut out = std::io::stdout().lock();
        let reader = Reader::of(&out);
        writeln!(out, "{}", reader.gets(text.as_ref()))?;
        Ok(out.flush()?)
    }

    /// Data as it is, for whoever reads stdout; a terminal gets what can be read of it.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), CommandError> {
        let mut out = std::io::stdout().lock();
        if Reader::of(&out) == Reader::Program {
            out.write_all(bytes)?;
        } else {
            let text = String::from_utf8_lossy(bytes);
            out.write_all(Reader::of(&out).gets(&text).as_bytes())?;
        }
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

    /// Whether talk is shown with our styles.
    pub(crate) fn is_styled(&self) -> bool {
        Reader::of(&std::io::stderr()) == Reader::Screen { styled: true }
    }

    /// A line of talk of another process of this program, which has made it fit for a screen with styles already.
    pub(crate) fn relay(&self, row: &str) {
        if !self.quiet {
            // nobody is left to tell if stderr is gone
            let _ = writeln!(std::io::stderr().lock(), "{row}");
        }
    }

    /// A line of talk that `--quiet` does not silence.
    pub(crate) fn complain(&self, text: impl AsRef<str>) {
        let mut err = std::io::stderr().lock();
        let reader = Reader::of(&err);
        // nobody is left to tell if stderr is gone
        let _ = writeln!(err, "{}", reader.gets(text.as_ref()));
    }

    /// Says on one line of a terminal how things stand, in the place of what was said there before.
    pub(crate) fn status(&self, text: &str) {
        if !self.quiet {
            let mut err = std::io::stderr().lock();
            let reader = Reader::of(&err);
            let _ = write!(err, "\r\x1b[K  {}", reader.gets(text));
            let _ = err.flush();
        }
    }

    /// Takes back what was said so.
    pub(crate) fn clear_status(&self) {
        self.control("\r\x1b[K");
    }

    /// What a terminal obeys, of our own.
    pub(crate) fn control(&self, sequence: &'static str) {
        if !self.quiet {
            let mut err = std::io::stderr().lock();
            let _ = err.write_all(sequence.as_bytes());
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

/// Who reads what is printed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Reader {
    /// A screen, with our styles or without.
    Screen { styled: bool },
    /// A file or a program: nothing of what was written is changed, and no style is added.
    Program,
}

impl Reader {
    fn of(stream: &impl RawStream) -> Self {
        let styled = AutoStream::choice(stream) != ColorChoice::Never;
        // whoever asks for colours means to look at it
        if styled || stream.is_terminal() {
            Self::Screen { styled }
        } else {
            Self::Program
        }
    }

    /// A text as this reader gets it.
    fn gets(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for (k, part) in text.split(seal()).enumerate() {
            // between two seals stands a style of ours
            let own = k % 2 == 1;
            match self {
                Self::Screen { styled: true } if own => out.push_str(part),
                Self::Screen { .. } | Self::Program if own => {}
                Self::Screen { .. } => part.chars().for_each(|c| mark(c, &mut out)),
                Self::Program => out.push_str(part),
            }
        }
        out
    }
}

/// Stands before and behind each of our own styles. It is drawn anew in each process, so no text from elsewhere holds it.
fn seal() -> &'static str {
    static SEAL: OnceLock<String> = OnceLock::new();
    SEAL.get_or_init(|| {
        let drawn = std::hash::RandomState::new().build_hasher().finish();
        format!("\u{fdd0}{drawn:016x}\u{fdd1}")
    })
}

/// A character as a screen shows it: what it would obey is shown, and not done.
fn mark(c: char, out: &mut String) {
    match c {
        '\n' | '\t' => out.push(c),
        '\0'..='\u{1f}' => out.extend(char::from_u32(0x2400 + u32::from(c))),
        '\u{7f}' => out.push('\u{2421}'),
        c if c.is_control() || turns(c) => {
            // writing to a text cannot fail
            let _ = write!(out, "<U+{:04X}>", u32::from(c));
        }
        c => out.push(c),
    }
}

/// A text as a prompt shows it, which another library prints.
pub(crate) fn on_screen(text: &str) -> String {
    let styled = AutoStream::choice(&std::io::stdout()) != ColorChoice::Never;
    Reader::Screen { styled }.gets(text)
}

/// A text without our styles, for a file.
pub(crate) fn plain(text: &str) -> String {
    Reader::Program.gets(text)
}

/// Wrong use of the command line, as clap tells it: what was typed stands in it.
pub(crate) fn wrong_use(error: &clap::Error) {
    let typed = std::env::args_os().skip(1);
    let obeyed = |c: char| c.is_control() || turns(c);
    let mut typed = typed.map(|word| word.to_string_lossy().into_owned());
    if error.use_stderr() && typed.any(|word| word.chars().any(obeyed)) {
        let mut err = std::io::stderr().lock();
        let text = error.render().to_string();
        let _ = write!(err, "{}", Reader::of(&err).gets(&text));
    } else {
        let _ = error.print();
    }
}

fn styled(style: Style, text: &str) -> String {
    let seal = seal();
    format!("{seal}{style}{seal}{text}{seal}{style:#}{seal}")
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
    use super::{Reader, bold, red};

    #[test]
    fn a_screen_gets_nothing_that_would_do_more_than_be_read() {
        for (text, shown) in [
            ("Paid 5.00\rNothing", "Paid 5.00\u{240d}Nothing"),
            ("one\ntwo\tthree", "one\ntwo\tthree"),
            ("\u{1b}[2Jgone\u{1b}[1A", "\u{241b}[2Jgone\u{241b}[1A"),
            ("\u{1b}[31mred\u{1b}[0m", "\u{241b}[31mred\u{241b}[0m"),
            (
                "\u{1b}[8mhidden\u{7}\u{7f}",
                "\u{241b}[8mhidden\u{2407}\u{2421}",
            ),
            ("\u{9b}31m", "<U+009B>31m"),
            (
                "\u{202e}desrever\u{200f}\u{61c}",
                "<U+202E>desrever<U+200F><U+061C>",
            ),
        ] {
            for styled in [false, true] {
                assert_eq!(Reader::Screen { styled }.gets(text), shown, "{text:?}");
            }
            assert_eq!(Reader::Program.gets(text), text);
        }
    }

    #[test]
    fn our_own_styles_are_for_screens_that_have_them() {
        let text = format!("{} and {}", bold("one\u{1b}[0m"), red("two"));
        let shown = Reader::Screen { styled: true }.gets(&text);
        assert_eq!(
            shown,
            "\u{1b}[1mone\u{241b}[0m\u{1b}[0m and \u{1b}[1m\u{1b}[31mtwo\u{1b}[0m"
        );
        assert_eq!(
            Reader::Screen { styled: false }.gets(&text),
            "one\u{241b}[0m and two"
        );
        assert_eq!(Reader::Program.gets(&text), "one\u{1b}[0m and two");
    }
}
