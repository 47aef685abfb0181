//! A receiver of webhooks on loopback: the test decides how each message is answered.

use serde_json::Value as Json;
use std::time::Duration;
use steersman::adapters::webhook::signature;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use zeroize::Zeroizing;

/// Time in which a message has to come.
const PATIENCE: Duration = Duration::from_mins(1);

/// A receiver.
pub(crate) struct Receiver {
    pub(crate) url: String,
    came: mpsc::Receiver<Got>,
}

/// A message that waits for its answer. If it is dropped, the receiver closes the connection without one.
pub(crate) struct Got {
    pub(crate) head: String,
    pub(crate) body: String,
    answer: oneshot::Sender<String>,
}

impl Receiver {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/told", listener.local_addr().unwrap());
        let (sender, came) = mpsc::channel(64);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(received(stream, sender.clone()));
            }
        });
        Self { url, came }
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Got {
        let came = timeout(PATIENCE, self.came.recv()).await;
        came.expect("no message comes").unwrap()
    }

    /// Takes the next message, which has this kind.
    #[track_caller]
    pub(crate) fn takes<'a>(&'a mut self, kind: &'a str) -> impl Future<Output = Got> + 'a {
        let place = std::panic::Location::caller();
        async move {
            let mut got = self.next().await;
            assert_eq!(got.json()["type"], kind, "{place}: {}", got.body);
            got.answers(200);
            got
        }
    }

    /// Checks that no message has come that was not read.
    #[track_caller]
    pub(crate) fn gets_nothing(&mut self) {
        if let Ok(got) = self.came.try_recv() {
            panic!("a message too many: {}\n{}", got.head, got.body);
        }
    }
}

async fn received(mut stream: TcpStream, sender: mpsc::Sender<Got>) {
    let mut bytes = Vec::new();
    let (head, len) = loop {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let len: usize = field(head, "content-length").unwrap().parse().unwrap();
            break (head.to_owned(), len);
        }
    };
    while bytes.len() < head.len() + 4 + len {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let body = String::from_utf8(bytes[head.len() + 4..].to_vec()).unwrap();
    let (answer, wanted) = oneshot::channel();
    let got = Got { head, body, answer };
    if sender.send(got).await.is_ok()
        && let Ok(answer) = wanted.await
    {
        stream.write_all(answer.as_bytes()).await.ok();
        stream.shutdown().await.ok();
    }
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (known, value) = line.split_once(": ")?;
        known.eq_ignore_ascii_case(name).then_some(value)
    })
}

impl Got {
    pub(crate) fn field(&self, name: &str) -> &str {
        field(&self.head, name).unwrap_or_else(|| panic!("no `{name}`: {}", self.head))
    }

    pub(crate) fn id(&self) -> String {
        self.field("webhook-id").to_owned()
    }

    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn data(&self) -> Json {
        self.json()["data"].clone()
    }

    /// Answers with a status.
    pub(crate) fn answers(&mut self, status: u16) {
        self.answers_with(status, "");
    }

    /// Answers with a status and a header.
    pub(crate) fn answers_with(&mut self, status: u16, header: &str) {
        let (none, _) = oneshot::channel();
        let answer = std::mem::replace(&mut self.answer, none);
        let text = format!(
            "HTTP/1.1 {status} told\r\ncontent-length: 0\r\nconnection: close\r\n{header}\r\n"
        );
        // The sender may have given up.
        answer.send(text).ok();
    }

    /// Returns true if the message is signed with a secret, and with how many.
    pub(crate) fn is_signed(&self, secret: &str) -> (bool, usize) {
        let time = self.field("webhook-timestamp").parse().unwrap();
        let secrets = [Zeroizing::new(secret.to_owned())];
        let signed = signature(&secrets, &self.id(), time, &self.body).unwrap();
        let all: Vec<&str> = self.field("webhook-signature").split(' ').collect();
        (all.contains(&&*signed), all.len())
    }
}
