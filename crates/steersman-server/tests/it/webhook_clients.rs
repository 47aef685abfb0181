//! The library of Standard Webhooks as the receiver of what the server sends (`scripts/standardwebhooks.sh`).

use crate::world::{SCRIPT, World};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use steersman::runtime::store::memory::MemoryStore;
use steersman_server::Options;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// The receiver in a process of its own.
struct Receiver {
    _child: Child,
    to: ChildStdin,
    told: Lines<BufReader<ChildStdout>>,
}

impl Receiver {
    fn start() -> Self {
        let place = std::env::var("STEERSMAN_STANDARDWEBHOOKS").expect("the folder of the library");
        let mut child = Command::new(Path::new(&place).join("bin/python"))
            // no files of Python in the repository
            .arg("-B")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/webhooks/receiver.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let told = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            _child: child,
            to,
            told,
        }
    }

    async fn next(&mut self) -> String {
        let line = timeout(Duration::from_mins(1), self.told.next_line()).await;
        line.expect("nothing is told").unwrap().unwrap()
    }

    async fn knows(&mut self, secret: &Json) {
        let line = format!("{}\n", secret.as_str().unwrap());
        self.to.write_all(line.as_bytes()).await.unwrap();
        self.to.flush().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the library: STEERSMAN_STANDARDWEBHOOKS=$(scripts/standardwebhooks.sh)"]
async fn the_python_library_verifies_each_message_and_both_secrets() {
    let options = Options {
        webhooks_may_reach: ["127.0.0.1".parse().unwrap()].into_iter().collect(),
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), SCRIPT, options).await;
    let server = world.server.clone();
    let delivering = tokio::spawn(async move { server.deliver(|_| {}).await });
    let all = world.all("").await;
    let mut receiver = Receiver::start();
    let port = receiver.next().await;
    let url = format!("http://127.0.0.1:{port}/told");
    let made = all
        .post("/v1/webhooks", json!({ "url": url }))
        .await
        .is(201);
    receiver.knows(&made["secret"]).await;
    assert_eq!(receiver.next().await, "begins");
    let session = all.start("My kettle is broken.").await;
    assert_eq!(receiver.next().await, "question.asked verified");
    assert_eq!(receiver.next().await, "session.settled verified");
    // While the secret is exchanged, both verify.
    let rotation = format!("/v1/webhooks/{}/rotation", made["name"].as_str().unwrap());
    let new = all.post(&rotation, json!({})).await.is(201);
    let question = all.question(&session).await;
    let approve = format!("/v1/sessions/{session}/questions/{question}/approve");
    all.post(&approve, json!({ "as": "manager" })).await.is(202);
    assert_eq!(receiver.next().await, "artifact.made verified");
    assert_eq!(receiver.next().await, "session.settled verified");
    receiver.knows(&new["secret"]).await;
    assert_eq!(receiver.next().await, "another secret");
    all.say(&session, "Thank you.").await;
    assert_eq!(receiver.next().await, "session.settled verified");
    world.server.stop();
    delivering.await.unwrap();
}
