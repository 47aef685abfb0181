//! `lsp`: the language server for definitions.

use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use lsp_server::Message;
use std::io::{BufReader, Write as _, stdin, stdout};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use steersman::runtime::{files, unreadable};
use steersman_lsp::{Check, Disk, Done, Server};

pub(crate) const LISTED: &str = "Serve an editor: errors while typing, completion, rename";

/// Serve an editor over standard input and output with the Language Server Protocol. An editor starts this; nothing is to be typed
/// here.
#[derive(Debug, clap::Args)]
pub(crate) struct LspArgs {
    /// Accepted because many editors add it; standard input and output are used anyway.
    #[arg(long, hide = true)]
    stdio: bool,
}

pub(crate) async fn run(
    _args: LspArgs,
    _global: &Global,
    _printer: &Printer,
) -> Result<Exit, CommandError> {
    let served = tokio::task::spawn_blocking(serve).await;
    let orderly = served.map_err(std::io::Error::other)??;
    if orderly {
        Ok(Exit::Answered)
    } else {
        Err(CommandError::usage(
            "the editor went away without `shutdown`",
        ))
    }
}

/// Answers messages until the client leaves. Returns true if it said so before.
fn serve() -> Result<bool, CommandError> {
    let (sender, heard) = channel();
    let checks = checker(sender.clone());
    // the thread ends with the program: nothing can interrupt a read of standard input
    thread::spawn(move || {
        let mut input = BufReader::new(stdin());
        loop {
            let read = Message::read(&mut input).transpose();
            let over = matches!(read, None | Some(Err(_)));
            let read = read.map_or(Heard::Left, Heard::Message);
            if sender.send(read).is_err() || over {
                return;
            }
        }
    });
    let mut server = Server::new(Files);
    let mut is_checking = false;
    while server.over().is_none() {
        // A check begins when no message waits, so that none is checked whose text changes at once.
        let next = heard.try_recv().or_else(|_| {
            if !is_checking && let Some(check) = server.due() {
                is_checking = checks.send(check).is_ok();
            }
            heard.recv()
        });
        match next {
            Ok(Heard::Message(message)) => {
                let message = message.map_err(|error| {
                    CommandError::usage(format!(
                        "the editor sent no message of the protocol: {error}"
                    ))
                    .hint("`steersman lsp` is started by an editor, not by hand")
                })?;
                send(&server.handle(message))?;
            }
            Ok(Heard::Checked(Some(checked))) => {
                is_checking = false;
                send(&server.checked(*checked))?;
            }
            Ok(Heard::Checked(None)) => {
                return Err(std::io::Error::other("a check panicked").into());
            }
            Ok(Heard::Left) | Err(_) => return Ok(false),
        }
    }
    Ok(server.over() == Some(true))
}

/// A message of a thread of the server.
enum Heard {
    /// A message of the client.
    Message(std::io::Result<Message>),
    /// The client closed its stream.
    Left,
    /// The result of a check; `None` if it panicked.
    Checked(Option<Box<Done>>),
}

/// Begins the thread that runs checks: an answer does not wait for one.
fn checker(tell: Sender<Heard>) -> Sender<Check> {
    let (sender, checks) = channel::<Check>();
    thread::spawn(move || {
        for check in checks {
            let checked = catch_unwind(AssertUnwindSafe(|| Box::new(check.run())));
            if tell.send(Heard::Checked(checked.ok())).is_err() {
                return;
            }
        }
    });
    sender
}

fn send(messages: &[Message]) -> Result<(), CommandError> {
    let mut output = stdout().lock();
    for message in messages {
        message.write(&mut output)?;
    }
    output.flush()?;
    Ok(())
}

/// The files of this computer. What a definition names must be in its folder, which the paths of a definition say already.
struct Files;

/// Maximum number of bytes read from one file. Definitions are limited to far less, with a diagnostic.
const MOST: usize = 64 << 20;

impl Disk for Files {
    fn text(&self, path: &Path) -> Option<String> {
        let bytes = files::plain(path, MOST).ok()?;
        files::text(bytes).ok()
    }

    fn yaml_in(&self, folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let is_yaml = |name: &String| {
            let ending = Path::new(name).extension();
            ending.is_some_and(|ending| ending == "yaml" || ending == "yml")
        };
        let mut names: Vec<String> = names.filter(is_yaml).collect();
        names.sort_unstable();
        names
    }

    fn unreadable(&self, folder: &Path, documents: &str) -> Option<String> {
        unreadable(folder, documents)
    }
}
