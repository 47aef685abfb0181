//! A client over the pure function, with files in memory.

use lsp_server::{Message, Notification, Request, ResponseError};
use serde_json::{Value as Json, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use steersman_lsp::{Disk, Server};

/// Files by path; a test changes them while the server runs.
pub(crate) type Texts = Rc<RefCell<BTreeMap<PathBuf, String>>>;

struct Memory(Texts);

impl Disk for Memory {
    fn text(&self, path: &Path) -> Option<String> {
        self.0.borrow().get(path).cloned()
    }
    fn yaml_in(&self, folder: &Path) -> Vec<String> {
        let texts = self.0.borrow();
        let inside = texts.keys().filter(|path| path.parent() == Some(folder));
        let names = inside.filter_map(|path| path.file_name()?.to_str());
        names
            .filter(|name| Path::new(name).extension().is_some_and(|end| end == "yaml"))
            .map(str::to_owned)
            .collect()
    }
    fn unreadable(&self, _folder: &Path, _documents: &str) -> Option<String> {
        None
    }
}

pub(crate) struct Client {
    pub(crate) server: Server,
    pub(crate) disk: Texts,
    asked: i32,
    version: i64,
    /// The last diagnostics of each address.
    pub(crate) diagnostics: BTreeMap<String, Json>,
}

pub(crate) fn uri(path: &str) -> String {
    format!("file:///w/{path}")
}

impl Client {
    /// Starts a server over files in the folder `/w`.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let texts = files
            .iter()
            .map(|(path, text)| (Path::new("/w").join(path), (*text).to_owned()));
        let disk: Texts = Rc::new(RefCell::new(texts.collect()));
        let mut client = Self {
            server: Server::new(Memory(disk.clone())),
            disk,
            asked: 0,
            version: 0,
            diagnostics: BTreeMap::new(),
        };
        client
            .ask("initialize", json!({ "capabilities": {} }))
            .unwrap();
        client.tell("initialized", json!({}));
        client
    }

    /// Starts a server over one definition and opens it.
    pub(crate) fn over(text: &str) -> Self {
        let mut client = Self::new(&[("steersman.yaml", text)]);
        client.open("steersman.yaml", text);
        client.settle();
        client
    }

    fn hear(&mut self, messages: Vec<Message>) -> Option<Result<Json, ResponseError>> {
        let mut answer = None;
        for message in messages {
            match message {
                Message::Notification(told) => {
                    assert_eq!(told.method, "textDocument/publishDiagnostics");
                    let uri = told.params["uri"].as_str().unwrap().to_owned();
                    self.diagnostics
                        .insert(uri, told.params["diagnostics"].clone());
                }
                Message::Response(response) => {
                    assert!(answer.is_none(), "two answers");
                    answer = Some(response.response_result);
                }
                Message::Request(request) => panic!("the server asks {}", request.method),
            }
        }
        answer
    }

    pub(crate) fn ask(&mut self, method: &str, params: Json) -> Result<Json, ResponseError> {
        self.asked += 1;
        let request = Request::new(self.asked.into(), method.to_owned(), params);
        let messages = self.server.handle(request.into());
        self.hear(messages).expect("each request has an answer")
    }

    pub(crate) fn tell(&mut self, method: &str, params: Json) {
        let messages = self
            .server
            .handle(Notification::new(method.to_owned(), params).into());
        assert!(
            self.hear(messages).is_none(),
            "a notification has no answer"
        );
    }

    pub(crate) fn settle(&mut self) {
        let messages = self.server.settle();
        assert!(self.hear(messages).is_none());
    }

    pub(crate) fn open(&mut self, path: &str, text: &str) {
        let document =
            json!({ "uri": uri(path), "languageId": "yaml", "version": 0, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
    }

    /// Sends changes of an open document.
    pub(crate) fn change(&mut self, path: &str, changes: Json) {
        self.version += 1;
        let document = json!({ "uri": uri(path), "version": self.version });
        let params = json!({ "textDocument": document, "contentChanges": changes });
        self.tell("textDocument/didChange", params);
    }

    /// Asks about a position of a document; `more` is added to the parameters.
    pub(crate) fn at(
        &mut self,
        method: &str,
        path: &str,
        at: (usize, usize),
        more: Json,
    ) -> Result<Json, ResponseError> {
        let mut params = json!({
            "textDocument": { "uri": uri(path) },
            "position": { "line": at.0, "character": at.1 },
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            params[key] = value.clone();
        }
        self.ask(method, params)
    }

    /// Returns the codes of the diagnostics of a file, as they were last published.
    pub(crate) fn codes(&self, path: &str) -> Vec<String> {
        let found = self.diagnostics.get(&uri(path)).and_then(Json::as_array);
        let codes = found
            .into_iter()
            .flatten()
            .map(|found| found["code"].as_str().unwrap().to_owned());
        codes.collect()
    }
}

/// Returns the offset of a position.
pub(crate) fn offset(text: &str, at: &Json) -> usize {
    let line = at["line"].as_u64().unwrap() as usize;
    let column = at["character"].as_u64().unwrap() as usize;
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let mut units = 0;
    for (byte, c) in text[start..].char_indices() {
        if units >= column {
            return start + byte;
        }
        units += c.len_utf16();
    }
    text.len()
}

/// Applies the edits of one document.
pub(crate) fn apply(text: &str, edits: &Json) -> String {
    let mut edits: Vec<(usize, usize, String)> = edits
        .as_array()
        .unwrap()
        .iter()
        .map(|edit| {
            let range = &edit["range"];
            let with = edit["newText"].as_str().unwrap().to_owned();
            (
                offset(text, &range["start"]),
                offset(text, &range["end"]),
                with,
            )
        })
        .collect();
    edits.sort();
    let mut text = text.to_owned();
    for (start, end, with) in edits.into_iter().rev() {
        text.replace_range(start..end, &with);
    }
    text
}
