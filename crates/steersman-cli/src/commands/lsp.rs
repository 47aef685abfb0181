//! `lsp`: the language server for definitions.

use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use lsp_server::Message;
use std::io::{BufReader, Write as _, stdin, stdout};
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use steersman::runtime::{files, unreadable};
use steersman_lsp::{Disk, Server};

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
    let (sender, messages) = channel();
    // the thread ends with the program: nothing can interrupt a read of standard input
    thread::spawn(move || {
        let mut input = BufReader::new(stdin());
        loop {
            let read = Message::read(&mut input).transpose();
            let over = matches!(read, None | Some(Err(_)));
            if let Some(read) = read
                && sender.send(read).is_err()
            {
                return;
            }
            if over {
                return;
            }
        }
    });
    let mut server = Server::new(Files);
    while server.over().is_none() {
        let Some(message) = next(&messages, &mut server)? else {
            return Ok(false);
        };
        let message = message.map_err(|error| {
            CommandError::usage(format!(
                "the editor sent no message of the protocol: {error}"
            ))
            .hint("`steersman lsp` is started by an editor, not by hand")
        })?;
        send(&server.handle(message))?;
    }
    Ok(server.over() == Some(true))
}

/// Returns the next message. Diagnostics are computed when none waits, so that typing is not held up.
fn next(
    messages: &Receiver<std::io::Result<Message>>,
    server: &mut Server,
) -> Result<Option<std::io::Result<Message>>, CommandError> {
    match messages.try_recv() {
        Ok(message) => return Ok(Some(message)),
        Err(TryRecvError::Disconnected) => return Ok(None),
        Err(TryRecvError::Empty) => {}
    }
    send(&server.settle())?;
    Ok(messages.recv().ok())
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
