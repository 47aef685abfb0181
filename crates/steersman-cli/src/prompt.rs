//! Asks the person at the terminal. Used only if there is one.

use crate::error::CommandError;
use crate::printer::{Printer, on_screen};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{Editor, Helper};
use std::borrow::Cow;

/// Ends the terminal's bracketed paste mode, and begins the next line.
const NO_PASTE: &str = "\u{1b}[?2004l\r\n";

/// The input of a person.
pub(crate) enum Typed {
    Line(String),
    /// The person typed Ctrl-C or Ctrl-D.
    Left,
}

/// A prompt with a history of typed lines.
#[derive(Default)]
pub(crate) struct Prompt {
    editor: Option<Editor<Mask, DefaultHistory>>,
    /// The state of the terminal before the first question.
    before: Option<Termios>,
}

impl Prompt {
    /// Asks for a line.
    pub(crate) async fn line(&mut self, prompt: &str) -> Result<Typed, CommandError> {
        self.read(prompt, false).await
    }

    /// Asks for a line that is neither shown nor kept in the history.
    pub(crate) async fn hidden(&mut self, prompt: &str) -> Result<Typed, CommandError> {
        self.read(prompt, true).await
    }

    /// Restores the terminal when a question is abandoned.
    pub(crate) fn give_back(&self, printer: &Printer) {
        printer.control(NO_PASTE);
        if let Some(before) = &self.before {
            // A closed terminal needs no restoring.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }

    async fn read(&mut self, prompt: &str, hidden: bool) -> Result<Typed, CommandError> {
        if self.before.is_none() {
            self.before = tcgetattr(std::io::stdin()).ok();
        }
        let mut editor = match self.editor.take() {
            Some(editor) => editor,
            None => Editor::new().map_err(failed)?,
        };
        editor.set_helper(Some(Mask(hidden)));
        let prompt = on_screen(prompt);
        let (editor, typed) = tokio::task::spawn_blocking(move || {
            let typed = editor.readline(&prompt);
            (editor, typed)
        })
        .await
        .map_err(|e| CommandError::usage(e.to_string()))?;
        let editor = self.editor.insert(editor);
        match typed {
            Ok(line) => {
                if !hidden {
                    let _ = editor.add_history_entry(&line);
                }
                Ok(Typed::Line(line))
            }
            Err(ReadlineError::Interrupted | ReadlineError::Eof) => Ok(Typed::Left),
            Err(error) => Err(failed(error)),
        }
    }
}

fn failed(error: ReadlineError) -> CommandError {
    CommandError::usage(format!("the terminal cannot be read: {error}"))
}

/// Shows asterisks instead of typed text, if true.
struct Mask(bool);

impl Helper for Mask {}
impl Validator for Mask {}
impl Completer for Mask {
    type Candidate = String;
}
impl Hinter for Mask {
    type Hint = String;
}

impl Highlighter for Mask {
    fn highlight<'l>(&self, line: &'l str, _pos: usize) -> Cow<'l, str> {
        if self.0 {
            Cow::Owned("*".repeat(line.chars().count()))
        } else {
            Cow::Borrowed(line)
        }
    }
    fn highlight_char(&self, _line: &str, _pos: usize, kind: CmdKind) -> bool {
        self.0 && kind != CmdKind::MoveCursor
    }
}
