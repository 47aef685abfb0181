//! The only place that prints: data to standard output, talk to standard error.
//!
//! Text from models, tools, servers, files and people may contain anything that a terminal obeys: sequences that move the
//! cursor, hide text or set the title, and characters that change the order of others. Each such character is replaced by a
//! visible mark ([`mark`]) and never obeyed. The program's own styles are enclosed in a seal that no other text can contain
//! ([`seal`]). Output to a file or a pipe is left as it is, byte for byte.
//!
//! On a terminal a row that is wider than the layout goes on in the next row, below its last column ([`fold`]). So no command has to
//! see to sentences, lists and hints that are too long. Tables, frames and pictures have the width of the terminal already, and what
//! a person may copy as a whole ([`Printer::whole`], a command to type) is not divided.
//!
//! A reader that went away (`steersman log | head`) is not reported: [`CommandError::reader_gone`] ends the command
//! quietly.

use crate::cli::{Color, Global};
use crate::error::{CommandError, Exit};
use crate::remote::{SERVER, works_at_server};
use crate::words::{relayed, screen, turns};
use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use serde_json::Value as Json;
use std::fmt::Write as _;
use std::hash::{BuildHasher, Hasher};
use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

/// Prints data and talk, as the global options say.
#[derive(Clone, Debug)]
pub(crate) struct Printer {
    json: bool,
    quiet: bool,
}

#[expect(
    clippy::unused_self,
    reason = "only the holder of a printer may print, even if the method reads no option of it"
)]
impl Printer {
    pub(crate) fn new(global: &Global) -> Self {
        match global.color {
            Color::Auto => {}
            Color::Always => ColorChoice::Always.write_global(),
            Color::Never => ColorChoice::Never.write_global(),
        }
        if let Some(columns) = global.columns {
            relayed(columns);
        }
        let named = std::env::var_os("STEERSMAN_STORE").map(std::path::PathBuf::from);
        let store = global.store.as_ref();
        let store = store.filter(|store| named.as_ref() != Some(*store));
        let store = store.map(|store| format!("--store {} ", quoted(&store.display().to_string())));
        let named = std::env::var(SERVER).ok();
        let server = global.server().filter(|url| named.as_deref() != Some(*url));
        let server = server.map(|url| format!("--server {} ", quoted(url)));
        let options: String = store.into_iter().chain(server).collect();
        if !options.is_empty() {
            // All printers are made from the same options.
            let _ = OPTIONS.set(options);
        }
        Self {
            json: global.json,
            quiet: global.quiet,
        }
    }

    /// Returns true if data is printed as JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Returns true if a person can be asked: standard input and output are terminals, and JSON is off.
    pub(crate) fn can_ask(&self) -> bool {
        !self.json && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
    }

    /// Prints one line of data. On a terminal, control characters are replaced, and a row that is too wide is folded; a program gets
    /// the text as it is.
    pub(crate) fn data(&self, text: impl AsRef<str>) -> Result<(), CommandError> {
        let mut out = std::io::stdout().lock();
        let reader = Reader::of(&out);
        writeln!(out, "{}", reader.fits(text.as_ref(), screen(&out)))?;
        Ok(out.flush()?)
    }

    /// Prints a text that people take as a whole, such as an answer or a document. Its rows are never folded.
    pub(crate) fn whole(&self, text: impl AsRef<str>) -> Result<(), CommandError> {
        let mut out = std::io::stdout().lock();
        let reader = Reader::of(&out);
        writeln!(out, "{}", reader.gets(text.as_ref()))?;
        Ok(out.flush()?)
    }

    /// Prints bytes as they are to a program; on a terminal, their readable form.
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

    /// Prints a view as one document on one line.
    pub(crate) fn view(&self, view: &impl serde::Serialize) -> Result<(), CommandError> {
        let document = serde_json::to_value(view)
            .map_err(|e| CommandError::new(Exit::Failed, e.to_string()))?;
        self.json(&document)
    }

    /// Prints one document on one line. Control characters that JSON permits unescaped are escaped as well.
    pub(crate) fn json(&self, value: &Json) -> Result<(), CommandError> {
        let mut text = String::new();
        for c in value.to_string().chars() {
            if c.is_control() || turns(c) {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            } else {
                text.push(c);
            }
        }
        self.whole(text)
    }

    /// Prints a line of talk: progress, events, commands to type next.
    pub(crate) fn talk(&self, text: impl AsRef<str>) {
        if !self.quiet {
            self.complain(text);
        }
    }

    /// Returns true if talk is not printed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Returns true if talk is printed with styles.
    pub(crate) fn is_styled(&self) -> bool {
        Reader::of(&std::io::stderr()) == Reader::Screen { styled: true }
    }

    /// Prints a line of talk from another process of this program, which has prepared it for a styled screen.
    pub(crate) fn relay(&self, row: &str) {
        if !self.quiet {
            // If standard error is gone, the failure cannot be reported.
            let _ = writeln!(std::io::stderr().lock(), "{row}");
        }
    }

    /// Prints a line of talk that `--quiet` does not silence.
    pub(crate) fn complain(&self, text: impl AsRef<str>) {
        let mut err = std::io::stderr().lock();
        let reader = Reader::of(&err);
        // If standard error is gone, the failure cannot be reported.
        let _ = writeln!(err, "{}", reader.fits(text.as_ref(), screen(&err)));
    }

    /// Prints an excerpt of a file with marks below it, which `--quiet` does not silence. Its rows are never folded.
    pub(crate) fn excerpt(&self, text: impl AsRef<str>) {
        let mut err = std::io::stderr().lock();
        let reader = Reader::of(&err);
        // If standard error is gone, the failure cannot be reported.
        let _ = writeln!(err, "{}", reader.gets(text.as_ref()));
    }

    /// Shows a status on one line of a terminal, and replaces the previous status.
    pub(crate) fn status(&self, text: &str) {
        if !self.quiet {
            let mut err = std::io::stderr().lock();
            let reader = Reader::of(&err);
            let _ = write!(err, "\r\x1b[K  {}", reader.gets(text));
            let _ = err.flush();
        }
    }

    /// Shows lines at the bottom of a terminal; the cursor stays on the last one.
    pub(crate) fn region(&self, rows: &[String]) {
        if !self.quiet && !rows.is_empty() {
            let mut err = std::io::stderr().lock();
            let reader = Reader::of(&err);
            let rows: Vec<String> = rows
                .iter()
                .map(|row| format!("  {}", reader.gets(row)))
                .collect();
            let _ = write!(err, "{}", rows.join("\n"));
            let _ = err.flush();
        }
    }

    /// Removes the status.
    pub(crate) fn clear_status(&self) {
        self.control("\r\x1b[K");
    }

    /// Writes a terminal sequence of the program itself.
    pub(crate) fn control(&self, sequence: &'static str) {
        if !self.quiet {
            let mut err = std::io::stderr().lock();
            let _ = err.write_all(sequence.as_bytes());
            let _ = err.flush();
        }
    }

    /// Prints the command to type next.
    pub(crate) fn next(&self, command: impl AsRef<str>, why: &str) {
        let command = command.as_ref();
        if why.is_empty() {
            self.talk(format!("Next:  {}", typed(command)));
        } else {
            self.talk(format!("Next:  {}   {}", typed(command), dim(why)));
        }
    }
}

/// The options for the store and the server, if the command line named them. Commands to type next then name them too.
static OPTIONS: OnceLock<String> = OnceLock::new();

/// Renders a command to type, with the options for the store and the server. It is not divided where a row is folded.
pub(crate) fn typed(command: &str) -> String {
    let seal = seal();
    format!(
        "{seal}{ONE}{seal}{}{seal}{DIVISIBLE}{seal}",
        bold(&here(command))
    )
}

/// Marks, in place of a style, the beginning and the end of a text that is not divided.
const ONE: &str = "one";
const DIVISIBLE: &str = "divisible";

/// Adds the options for the store and the server to the commands in a text.
pub(crate) fn here(text: &str) -> String {
    match OPTIONS.get() {
        Some(options) => with_options(text, options),
        None => text.to_owned(),
    }
}

/// Adds options to the commands in a text. A command that works on no server gets none if one is named, since it runs where the store is.
fn with_options(text: &str, options: &str) -> String {
    let mut parts = text.split("steersman ");
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let command = part.split(|c: char| !c.is_ascii_lowercase()).next();
        let elsewhere = options.contains("--server ") && !command.is_some_and(works_at_server);
        told.push_str("steersman ");
        told.push_str(if elsewhere { "" } else { options });
        told.push_str(part);
    }
    told
}

/// Quotes a text as one word for a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The reader of the output.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Reader {
    /// A screen, with or without styles.
    Screen { styled: bool },
    /// A file or a program: the text is unchanged and has no styles.
    Program,
}

impl Reader {
    fn of(stream: &impl RawStream) -> Self {
        let styled = AutoStream::choice(stream) != ColorChoice::Never;
        // A user who asks for colours intends to look at the output.
        if styled || stream.is_terminal() {
            Self::Screen { styled }
        } else {
            Self::Program
        }
    }

    /// Returns the text as this reader gets it.
    fn gets(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for (k, part) in text.split(seal()).enumerate() {
            // The text between two seals is a style of the program.
            let own = k % 2 == 1;
            if own && [ONE, DIVISIBLE].contains(&part) {
                continue;
            }
            match self {
                Self::Screen { styled: true } if own => out.push_str(part),
                Self::Screen { .. } | Self::Program if own => {}
                Self::Screen { .. } => part.chars().for_each(|c| mark(c, &mut out)),
                Self::Program => out.push_str(part),
            }
        }
        out
    }

    /// Returns the text as this reader gets it, folded to the width of a screen.
    fn fits(self, text: &str, screen: Option<usize>) -> String {
        match (self, screen) {
            (Self::Screen { styled }, Some(width)) => {
                let lines = cells(text, styled);
                let lines = lines.into_iter().map(|line| fold(line, width));
                lines.collect::<Vec<_>>().join("\n")
            }
            (Self::Screen { .. } | Self::Program, _) => self.gets(text),
        }
    }
}

/// A part of a row on a screen.
struct Cell {
    text: String,
    /// Number of columns; a style has none.
    columns: usize,
    /// True for a blank at which the row may be divided.
    blank: bool,
}

/// Returns the lines of a text as a screen shows them.
fn cells(text: &str, styled: bool) -> Vec<Vec<Cell>> {
    let mut lines = vec![Vec::new()];
    let mut one = false;
    for (k, part) in text.split(seal()).enumerate() {
        if k % 2 == 1 {
            match part {
                ONE => one = true,
                DIVISIBLE => one = false,
                style if styled => lines.last_mut().expect("never empty").push(Cell {
                    text: style.to_owned(),
                    columns: 0,
                    blank: false,
                }),
                _ => {}
            }
            continue;
        }
        for c in part.chars() {
            if c == '\n' {
                lines.push(Vec::new());
                continue;
            }
            let mut text = String::new();
            mark(c, &mut text);
            let columns = text.chars().count();
            let blank = c == ' ' && !one;
            let line = lines.last_mut().expect("never empty");
            line.push(Cell {
                text,
                columns,
                blank,
            });
        }
    }
    lines
}

/// Joins the cells of a row. If it is wider than the screen, it goes on in further rows, each below the last column of the first one
/// that begins in its left half.
fn fold(line: Vec<Cell>, width: usize) -> String {
    let columns = |cells: &[Cell]| cells.iter().map(|cell| cell.columns).sum::<usize>();
    if columns(&line) <= width {
        return line.into_iter().map(|cell| cell.text).collect();
    }
    let below = last_column(&line, width / 2);
    let mut out = String::new();
    let mut at = 0;
    // True at the start of a further row, which begins without the blanks at which the one before was divided.
    let mut is_start = false;
    // A word is what stands between two blanks at which the row may be divided.
    for word in line.split_inclusive(|cell| cell.blank) {
        let (word, blank) = match word.split_last() {
            Some((blank, word)) if blank.blank => (word, 1),
            _ => (word, 0),
        };
        let needs = columns(word);
        if at + needs > width && at > below {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.push_str(&" ".repeat(below));
            at = below;
            is_start = true;
        }
        is_start &= needs == 0;
        // A word that is wider than the screen is divided, unless it is to be copied: then the terminal divides it.
        let is_one = word.iter().any(|cell| cell.text == " ");
        for cell in word {
            if at + cell.columns > width && at > below && !is_one {
                out.push('\n');
                out.push_str(&" ".repeat(below));
                at = below;
            }
            out.push_str(&cell.text);
            at += cell.columns;
        }
        if blank > 0 && !is_start {
            out.push(' ');
            at += 1;
        }
    }
    out.truncate(out.trim_end_matches(' ').len());
    out
}

/// Returns the column at which the last part of a row begins that two blanks or more separate from what stands before it, up to a
/// bound; else the indentation of the row.
fn last_column(line: &[Cell], most: usize) -> usize {
    let (mut at, mut blanks, mut found) = (0, 0, None);
    for cell in line.iter().filter(|cell| cell.columns > 0) {
        let blank = cell.text == " ";
        if !blank && (blanks >= 2 || found.is_none()) && at <= most {
            found = Some(at);
        }
        blanks = if blank { blanks + 1 } else { 0 };
        at += cell.columns;
    }
    found.unwrap_or_default()
}

/// Encloses each of the program's own styles. It is random in each process, so no other text contains it.
fn seal() -> &'static str {
    static SEAL: OnceLock<String> = OnceLock::new();
    SEAL.get_or_init(|| {
        let drawn = std::hash::RandomState::new().build_hasher().finish();
        format!("\u{fdd0}{drawn:016x}\u{fdd1}")
    })
}

/// Appends a character as a screen shows it: a control character becomes a visible mark.
fn mark(c: char, out: &mut String) {
    match c {
        '\n' | '\t' => out.push(c),
        '\0'..='\u{1f}' => out.extend(char::from_u32(0x2400 + u32::from(c))),
        '\u{7f}' => out.push('\u{2421}'),
        c if c.is_control() || turns(c) => {
            // Writing to a string cannot fail.
            let _ = write!(out, "<U+{:04X}>", u32::from(c));
        }
        c => out.push(c),
    }
}

/// Prepares a text for a prompt, which another library prints.
pub(crate) fn on_screen(text: &str) -> String {
    let styled = AutoStream::choice(&std::io::stdout()) != ColorChoice::Never;
    Reader::Screen { styled }.gets(text)
}

/// Removes the styles from a text, for a file.
pub(crate) fn plain(text: &str) -> String {
    Reader::Program.gets(text)
}

/// Prints clap's usage error. It contains what was typed, so control characters are replaced.
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

/// Style for important text.
pub(crate) fn bold(text: &str) -> String {
    styled(Style::new().bold(), text)
}
/// Style for text that may be skipped.
pub(crate) fn dim(text: &str) -> String {
    styled(Style::new().dimmed(), text)
}
/// Style for success.
pub(crate) fn green(text: &str) -> String {
    styled(AnsiColor::Green.on_default(), text)
}
/// Style for failure.
pub(crate) fn red(text: &str) -> String {
    styled(AnsiColor::Red.on_default().bold(), text)
}
/// Style for what waits or may have happened.
pub(crate) fn yellow(text: &str) -> String {
    styled(AnsiColor::Yellow.on_default(), text)
}
/// Style for the actor.
pub(crate) fn cyan(text: &str) -> String {
    styled(AnsiColor::Cyan.on_default(), text)
}

#[cfg(test)]
mod tests {
    use super::{Reader, bold, dim, red, typed, with_options};

    #[test]
    fn commands_name_the_server_where_they_work_on_it() {
        let server = "--server http://x ";
        let told = |text, options| with_options(text, options);
        assert_eq!(
            told("steersman show 1", server),
            "steersman --server http://x show 1"
        );
        assert_eq!(
            told("`steersman serve`, or `steersman pending`", server),
            "`steersman serve`, or `steersman --server http://x pending`"
        );
        assert_eq!(
            told("steersman token new", "--store s.db "),
            "steersman --store s.db token new"
        );
    }

    #[test]
    fn wide_rows_go_on_below_their_last_column() {
        let shown = |text: &str, styled| Reader::Screen { styled }.fits(text, Some(20));
        for (text, rows) in [
            ("just fits into this.", "just fits into this."),
            (
                "one two three four five six",
                "one two three four\nfive six",
            ),
            ("  one two three four five", "  one two three four\n  five"),
            (
                "word    one two three four",
                "word    one two\n        three four",
            ),
            (
                "far too wide   one two three",
                "far too wide   one\ntwo three",
            ),
            ("abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrst\nuvwxyz"),
            (
                "one\n  two three four five six",
                "one\n  two three four\n  five six",
            ),
        ] {
            assert_eq!(shown(text, false), rows, "{text}");
            assert_eq!(Reader::Program.fits(text, Some(20)), text);
            assert_eq!(Reader::Screen { styled: false }.fits(text, None), text);
        }
        // A command is not divided, and a style goes on in the next row.
        let row = format!(
            "Next:  {}   {}",
            typed("go --all --now"),
            dim("does it at once")
        );
        assert_eq!(
            shown(&row, false),
            "Next:  go --all --now\n       does it at\n       once"
        );
        assert_eq!(shown(&row, true).matches('\u{1b}').count(), 4);
        assert!(
            shown(&typed("steersman show --store a/b c"), false).contains("show --store a/b c")
        );
        assert_eq!(Reader::Program.gets(&typed("go")), "go");
    }

    #[test]
    fn control_characters_become_marks_on_a_screen() {
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
    fn styles_are_printed_only_on_styled_screens() {
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
