//! A server that is a child process: messages as lines on its standard input and output.
//!
//! One line is one message. Other lines on standard output are ignored: the protocol forbids them, but programs print them. A
//! line above the size limit is not read further, and ends the connection. The end of standard error is kept: it often contains
//! the reason for a failure.

use crate::masked::Mask;
use rmcp::RoleClient;
use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::io::{Error, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use steersman_machine::values::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;

/// Maximum number of bytes of one message.
pub(super) const FRAME_MAX: usize = 16 << 20;
/// Number of consecutive lines that are not messages, after which the server is given up.
const GARBAGE_MAX: u32 = 10_000;
/// Maximum number of bytes of the end of standard error that are kept and quoted.
const TOLD_MAX: usize = 1_000;
/// Maximum number of bytes that are quoted of a line that is not a message.
const LINE_MAX: usize = TOLD_MAX / 4;
/// Maximum number of bytes of such a line that are kept: more than are quoted, so that masking sees whole secrets.
const LINE_KEPT: usize = 8 << 10;
/// Time for a server to end by itself after its standard input is closed.
const FAREWELL: Duration = Duration::from_secs(1);
/// Time limit for reading standard error after the conversation ended: [`FAREWELL`], within which the process ends or is killed,
/// and some more.
const LISTEN: Duration = Duration::from_millis(1_500);
/// Code of the error that replaces an answer that cannot be parsed. It is used within this process and never sent.
pub(super) const UNREADABLE: ErrorCode = ErrorCode(-39_001);

/// Texts that a process wrote apart from messages; they may explain a failure. Kept unmasked: secrets are removed when a text is
/// quoted, before it is shortened. The second field is true while standard error is read.
#[derive(Clone, Default)]
pub(super) struct Said(Arc<Mutex<Words>>, watch::Sender<bool>);

#[derive(Default)]
struct Words {
    error: Vec<u8>,
    /// The beginning of the last line that is not a message.
    garbage: Option<Vec<u8>>,
    /// Reason why the connection was given up.
    fault: Option<String>,
}

impl Words {
    fn printed(&self, mask: &Mask) -> String {
        let Some(line) = &self.garbage else {
            return String::new();
        };
        let line = mask.piece(&String::from_utf8_lossy(line));
        let line = mask.first(line.trim(), LINE_MAX);
        format!("; on standard output it printed a line that is not a message: {line}")
    }
}

impl Said {
    fn with<T>(&self, look: impl FnOnce(&mut Words) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the known reasons as the end of a sentence; empty if there are none. Waits for a process that has just ended to
    /// finish writing to standard error.
    pub(super) async fn last_words(&self, mask: &Mask) -> String {
        let mut speaks = self.1.subscribe();
        let silent = speaks.wait_for(|speaks| !speaks);
        let _ = tokio::time::timeout(LISTEN, silent).await;
        self.tail(mask)
    }

    /// Returns the last line that is not a message as the end of a sentence; empty if there is none.
    pub(super) fn printed(&self, mask: &Mask) -> String {
        self.with(|words| words.printed(mask))
    }

    fn tail(&self, mask: &Mask) -> String {
        self.with(|words| {
            let mut tail = String::new();
            if let Some(fault) = &words.fault {
                tail = format!("{tail}; {fault}");
            }
            tail.push_str(&words.printed(mask));
            let error = mask.piece(&String::from_utf8_lossy(&words.error));
            if !error.trim().is_empty() {
                tail = format!("{tail}; its last words on standard error: {}", error.trim());
            }
            tail
        })
    }

    fn keep_error(&self, piece: &[u8]) {
        self.with(|words| {
            words.error.extend_from_slice(piece);
            let over = words.error.len().saturating_sub(TOLD_MAX);
            words.error.drain(..over);
        });
    }
}

/// Kills a process group when dropped.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0.take() {
            // Usually it has ended by itself; that is not an error.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// The connection to a server that runs as a process.
pub(super) struct Pipe {
    stdin: Arc<tokio::sync::Mutex<Option<ChildStdin>>>,
    stdout: BufReader<ChildStdout>,
    /// The beginning of a line that is not complete yet.
    line: Vec<u8>,
    /// Number of consecutive lines that are not messages.
    garbage: u32,
    child: Child,
    group: Group,
    said: Said,
}

impl Pipe {
    /// Starts the program. Its standard streams must be piped and it must lead a process group.
    pub(super) fn start(mut command: Command, said: Said) -> Result<Self, String> {
        let program = command
            .as_std()
            .get_program()
            .to_string_lossy()
            .into_owned();
        let mut child = command
            .spawn()
            .map_err(|error| format!("`{program}` cannot be started: {error}"))?;
        let group = child.id().and_then(|id| i32::try_from(id).ok());
        let group = Group(group.and_then(Pid::from_raw));
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(format!("`{program}` has no standard streams"));
        };
        said.1.send_replace(true);
        tokio::spawn(listen(stderr, said.clone()));
        Ok(Self {
            stdin: Arc::new(tokio::sync::Mutex::new(Some(stdin))),
            stdout: BufReader::with_capacity(64 << 10, stdout),
            line: Vec::new(),
            garbage: 0,
            child,
            group,
            said,
        })
    }

    /// Returns the next line; `None` at the end, or if a line is too long. Cancel-safe.
    async fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            let piece = match self.stdout.fill_buf().await {
                Ok([]) => return None,
                Ok(piece) => piece,
                Err(error) => {
                    self.give_up(format!("its standard output broke: {error}"));
                    return None;
                }
            };
            let end = piece.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(piece.len());
            if self.line.len() + taken > FRAME_MAX {
                let most = FRAME_MAX >> 20;
                self.give_up(format!("it printed a line of more than {most} MiB"));
                self.line = Vec::new();
                return None;
            }
            self.line.extend_from_slice(&piece[..taken]);
            self.stdout.consume(taken + usize::from(end.is_some()));
            if end.is_some() {
                return Some(std::mem::take(&mut self.line));
            }
        }
    }

    fn give_up(&self, fault: String) {
        self.said.with(|words| words.fault = Some(fault));
    }
}

async fn listen(mut stderr: ChildStderr, said: Said) {
    let mut piece = vec![0; 8 << 10];
    while let Ok(len @ 1..) = stderr.read(&mut piece).await {
        said.keep_error(&piece[..len]);
    }
    said.1.send_replace(false);
}

/// The parts of an unreadable answer that identify its request. All others are skipped, at any depth.
#[derive(Deserialize)]
struct Head {
    id: RequestId,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

/// Parses a line as a message.
fn message(line: &[u8]) -> Option<ServerJsonRpcMessage> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let line = json::exact(std::str::from_utf8(line).ok()?);
    match serde_json::from_str(&line) {
        Ok(message) => Some(message),
        Err(error) => unreadable(&line, &error),
    }
}

/// Replaces an answer that does not follow the protocol by an error for the same request, because its sender must not wait for
/// ever. Returns `None` if the text is not an answer.
pub(super) fn unreadable(text: &str, error: &serde_json::Error) -> Option<ServerJsonRpcMessage> {
    let head: Head = serde_json::from_str(text).ok()?;
    head.result.or(head.error)?;
    let data = ErrorData::new(UNREADABLE, error.to_string(), None);
    Some(ServerJsonRpcMessage::error(data, Some(head.id)))
}

impl Transport<RoleClient> for Pipe {
    type Error = Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        let stdin = self.stdin.clone();
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let mut stdin = stdin.lock().await;
            let closed = || Error::from(ErrorKind::BrokenPipe);
            let pipe = stdin.as_mut().ok_or_else(closed)?;
            pipe.write_all(&line).await?;
            pipe.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let line = self.next_line().await?;
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if let Some(message) = message(&line) {
                self.garbage = 0;
                return Some(message);
            }
            self.garbage += 1;
            let mut line = line;
            line.drain(..line.len() - line.trim_ascii_start().len());
            line.truncate(LINE_KEPT);
            line.shrink_to_fit();
            self.said.with(|words| words.garbage = Some(line));
            if self.garbage > GARBAGE_MAX {
                self.give_up("it prints nothing that is a message".to_owned());
                return None;
            }
        }
    }

    /// Closes the server's input, as the protocol requires; if the server does not end by that, its process group is killed.
    async fn close(&mut self) -> Result<(), Error> {
        self.stdin.lock().await.take();
        // Its output is read and dropped: otherwise a full pipe could keep it from ending.
        let mut nowhere = tokio::io::sink();
        let prints = async {
            let _ = tokio::io::copy_buf(&mut self.stdout, &mut nowhere).await;
            std::future::pending().await
        };
        let ended = tokio::time::timeout(FAREWELL, async {
            tokio::select! {
                ended = self.child.wait() => ended,
                ended = prints => ended,
            }
        })
        .await;
        drop(std::mem::replace(&mut self.group, Group(None)));
        if ended.is_err() {
            self.child.wait().await?;
        }
        Ok(())
    }
}
