//! The language server for definitions: a function of messages. Messages of a client go into [`Server::handle`], which returns the
//! messages for the client; diagnostics follow from [`Server::due`] and [`Server::checked`]. The server opens no files and no streams:
//! a [`Disk`] gives it the files that the client has not opened, and the program reads and writes the messages.
//!
//! [`steersman_definition::language`] knows a definition: its keys, names and places. This crate knows the protocol and which file
//! belongs to which definition.

mod answer;
mod text;
mod workspace;

use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use steersman_definition::language::Checked;
use workspace::{Due, Workspace};

/// The files of the computer, as far as a definition may name them.
pub trait Disk {
    /// Returns the text of a file; `None` if it cannot be read.
    fn text(&self, path: &Path) -> Option<String>;
    /// Returns the names of the YAML files in a folder, sorted.
    fn yaml_in(&self, folder: &Path) -> Vec<String>;
    /// Returns the reason why documents in a folder cannot be read; `None` if they can.
    fn unreadable(&self, folder: &Path, documents: &str) -> Option<String>;
}

/// A language server.
pub struct Server {
    workspace: Workspace,
    phase: Phase,
}

/// The life of a server, as the protocol says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Only `initialize` is answered.
    New,
    Running,
    /// `shutdown` was asked for; only `exit` may follow.
    Down,
    /// `exit` came; true if after `shutdown`.
    Over(bool),
}

/// The part of a definition that must be up to date for an answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Needs {
    /// The text alone. Names and types may be those of a moment ago.
    Lines,
    /// The names and their places.
    Names,
    /// The diagnostics with their fixes.
    Diagnostics,
}

/// A request that is not answered with a result.
struct Refusal {
    code: ErrorCode,
    why: String,
}

impl Refusal {
    fn new(code: ErrorCode, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { code, why }
    }
}

impl Server {
    /// Creates a server that reads files from a disk.
    pub fn new(disk: impl Disk + 'static) -> Self {
        Self {
            workspace: Workspace::new(Box::new(disk)),
            phase: Phase::New,
        }
    }

    /// Returns `None` while the server runs. After `exit`, returns true if `shutdown` came first.
    pub fn over(&self) -> Option<bool> {
        match self.phase {
            Phase::Over(orderly) => Some(orderly),
            Phase::New | Phase::Running | Phase::Down => None,
        }
    }

    /// Takes a message of the client and returns the messages that it causes.
    pub fn handle(&mut self, message: Message) -> Vec<Message> {
        match message {
            Message::Request(request) => self.request(request),
            Message::Notification(notification) => {
                self.notification(notification);
                publish(self.workspace.forget())
            }
            // the server asks the client nothing
            Message::Response(_) => Vec::new(),
        }
    }

    /// Returns a definition whose texts have changed, to be checked. Who has no further message calls it, runs the check, in
    /// another thread if messages are to be answered meanwhile, and gives the result to [`Server::checked`].
    pub fn due(&self) -> Option<Check> {
        self.workspace.due().map(Check)
    }

    /// Takes the result of a check and returns the diagnostics. A result of texts that have changed since is dropped, and the check is
    /// due again.
    pub fn checked(&mut self, checked: Done) -> Vec<Message> {
        let Done(main, checked, revision) = checked;
        publish(self.workspace.take(main, checked, revision))
    }

    /// Checks the definitions whose texts have changed, and returns their diagnostics.
    pub fn settle(&mut self) -> Vec<Message> {
        let mut published = Vec::new();
        while let Some(check) = self.due() {
            published.extend(self.checked(check.run()));
        }
        published
    }

    fn request(&mut self, request: Request) -> Vec<Message> {
        let Request { id, method, params } = request;
        let mut out = Vec::new();
        let answer = match (self.phase, method.as_str()) {
            (Phase::New, "initialize") => {
                self.phase = Phase::Running;
                Ok(capabilities())
            }
            (Phase::New, _) => Err(Refusal::new(
                ErrorCode::ServerNotInitialized,
                "`initialize` comes first",
            )),
            (Phase::Down | Phase::Over(_), _) => Err(Refusal::new(
                ErrorCode::InvalidRequest,
                "the server was shut down",
            )),
            (Phase::Running, "shutdown") => {
                self.phase = Phase::Down;
                Ok(Json::Null)
            }
            (Phase::Running, method) => {
                match answer::needs(method) {
                    Needs::Lines if !self.workspace.is_unread() => {}
                    Needs::Names if !self.workspace.is_unread() => self.workspace.look(),
                    Needs::Lines | Needs::Names | Needs::Diagnostics => out = self.settle(),
                }
                self.answer(method, params)
            }
        };
        out.push(respond(id, answer));
        out
    }

    fn answer(&self, method: &str, params: Json) -> Result<Json, Refusal> {
        let workspace = &self.workspace;
        match method {
            "textDocument/completion" => answer::completion(workspace, &read(params)?),
            "textDocument/hover" => answer::hover(workspace, &read(params)?),
            "textDocument/definition" => answer::definition(workspace, &read(params)?),
            "textDocument/references" => answer::references(workspace, &read(params)?),
            "textDocument/prepareRename" => answer::prepare_rename(workspace, &read(params)?),
            "textDocument/rename" => answer::rename(workspace, &read(params)?),
            "textDocument/codeAction" => Ok(answer::code_action(workspace, &read(params)?)),
            _ => Err(Refusal::new(
                ErrorCode::MethodNotFound,
                format!("`{method}` is not offered"),
            )),
        }
    }

    /// Takes a notification. One that is malformed is passed over, because nobody waits for an answer.
    fn notification(&mut self, notification: Notification) {
        let Notification { method, params } = notification;
        if method == "exit" {
            self.phase = Phase::Over(self.phase == Phase::Down);
            return;
        }
        if self.phase != Phase::Running {
            return;
        }
        match method.as_str() {
            "textDocument/didOpen" => read(params).map_or((), |it| self.workspace.open(it)),
            "textDocument/didChange" => read(params).map_or((), |it| self.workspace.change(it)),
            "textDocument/didClose" => read(params).map_or((), |it| self.workspace.close(&it)),
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => {
                self.workspace.look_again();
            }
            _ => {}
        }
    }
}

/// A check that is due.
pub struct Check(Due);

/// The result of a check.
pub struct Done(PathBuf, Checked, u64);

impl Check {
    /// Runs the check.
    pub fn run(self) -> Done {
        let Due {
            main,
            files,
            revision,
        } = self.0;
        Done(main, Checked::of(files), revision)
    }
}

fn publish(published: Vec<Json>) -> Vec<Message> {
    let method = "textDocument/publishDiagnostics";
    let message = |params| Message::from(Notification::new(method.to_owned(), params));
    published.into_iter().map(message).collect()
}

fn read<T: DeserializeOwned>(params: Json) -> Result<T, Refusal> {
    let read = serde_json::from_value(params);
    read.map_err(|error| Refusal::new(ErrorCode::InvalidParams, error.to_string()))
}

fn respond(id: RequestId, answer: Result<Json, Refusal>) -> Message {
    Message::from(match answer {
        Ok(result) => Response::new_ok(id, result),
        Err(refusal) => Response::new_err(id, refusal.code as i32, refusal.why),
    })
}

fn capabilities() -> Json {
    json!({
        "capabilities": {
            "positionEncoding": "utf-16",
            "textDocumentSync": { "openClose": true, "change": 2, "save": true },
            "completionProvider": { "triggerCharacters": [".", " ", "{", "-", "|"] },
            "hoverProvider": true,
            "definitionProvider": true,
            "referencesProvider": true,
            "renameProvider": { "prepareProvider": true },
            "codeActionProvider": { "codeActionKinds": ["quickfix"] },
        },
        "serverInfo": { "name": "steersman", "version": env!("CARGO_PKG_VERSION") },
    })
}
