//! `--step`: the session stops after each line, and the user decides how it continues.

use crate::error::CommandError;
use crate::printer::{Printer, dim};
use crate::prompt::{Prompt, Typed};
use crate::tell::row::{Form, print};
use crate::words::talk_width;
use std::io::{BufRead, Read};
use std::sync::Arc;
use steersman::runtime::engine::Engine;
use steersman::runtime::step::{Go, Step, Steps};
use steersman::runtime::store::MAX_VALUE;
use steersman::views::reader::{Reader as _, Stored};
use steersman::views::story::Story;
use steersman_machine::stored::ids::Line;

/// The keys and texts that a stop accepts.
const KEYS: &str = "Enter: next line   c: go on   q: leave it paused   other text: say it here";

/// Reads the input at each stop: with a prompt at a terminal, otherwise line by line from standard input.
pub(crate) struct Keys {
    printer: Printer,
    prompt: Option<Prompt>,
    /// True if the keys were explained.
    explained: bool,
}

impl Keys {
    pub(crate) fn new(printer: &Printer) -> Self {
        Self {
            prompt: printer.can_ask().then(Prompt::default),
            printer: printer.clone(),
            explained: false,
        }
    }

    /// Asks how the session continues after a line.
    pub(crate) async fn ask(&mut self, line: Line) -> Result<Go, CommandError> {
        if !std::mem::replace(&mut self.explained, true) {
            self.printer.talk(dim(KEYS));
        }
        let typed = if let Some(prompt) = &mut self.prompt {
            prompt.line(&format!("@{line} > ")).await?
        } else {
            self.printer.talk(dim(&format!("@{line} >")));
            piped().await?
        };
        Ok(match typed {
            Typed::Left => Go::Pause,
            Typed::Line(text) => match text.trim() {
                "" => Go::Line,
                "c" => Go::Free,
                "q" => Go::Pause,
                text => Go::Redirect(text.to_owned()),
            },
        })
    }

    /// Abandons the question and restores the terminal.
    pub(crate) fn give_back(&self) {
        if let Some(prompt) = &self.prompt {
            prompt.give_back(&self.printer);
        }
    }
}

/// Returns the next line of standard input.
async fn piped() -> Result<Typed, CommandError> {
    let read = tokio::task::spawn_blocking(|| {
        let mut bytes = Vec::new();
        let mut input = std::io::stdin().lock();
        let mut most = (&mut input).take(MAX_VALUE as u64 + 1);
        most.read_until(b'\n', &mut bytes).map(|_| bytes)
    });
    let bytes = read
        .await
        .map_err(|e| CommandError::usage(e.to_string()))??;
    if bytes.is_empty() {
        return Ok(Typed::Left);
    }
    if bytes.len() > MAX_VALUE {
        return Err(CommandError::usage(format!(
            "a line of standard input is longer than the {MAX_VALUE} bytes of a message"
        )));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| CommandError::usage("standard input is not UTF-8 text"))?;
    Ok(Typed::Line(text))
}

/// Prints the lines of a rerun as they arrive, and asks after each.
struct Stepper {
    engine: Engine,
    printer: Printer,
    keys: Keys,
    story: Story,
    line: Line,
}

impl Stepper {
    async fn ask(&mut self, at: Step) -> Result<Go, CommandError> {
        let mut feed = self.engine.feed(&at.session, self.line);
        let reader = Stored::plain(&self.engine, &at.session);
        for line in feed.lines().await? {
            let line = reader.arrived(line).await?;
            let rows = self.story.line(&line, &reader).await?;
            for row in rows
                .iter()
                .flat_map(|row| print(row, Form::wide(talk_width())))
            {
                self.printer.talk(row);
            }
            self.line = line.n;
        }
        if !at.recorded {
            self.printer.talk(dim("       not on record"));
        }
        self.keys.ask(at.line).await
    }
}

/// Returns the callback that asks after each line of a rerun. If the input cannot be read, the rerun is left paused.
pub(crate) fn steps(engine: &Engine, printer: &Printer) -> Steps {
    let stepper = Arc::new(tokio::sync::Mutex::new(Stepper {
        engine: engine.clone(),
        printer: printer.clone(),
        keys: Keys::new(printer),
        story: Story::told(false),
        line: Line::NONE,
    }));
    Steps::new(move |at| {
        let stepper = stepper.clone();
        Box::pin(async move {
            let mut stepper = stepper.lock().await;
            match stepper.ask(at).await {
                Ok(go) => go,
                Err(error) => {
                    stepper.printer.complain(error.to_string());
                    Go::Pause
                }
            }
        })
    })
}
