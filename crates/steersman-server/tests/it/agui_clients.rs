//! The official client of AG-UI against the server (`scripts/agui-client.sh`).

use crate::agui::front;
use crate::world::{World, whole};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use steersman::Steersman;
use steersman::machine::stored::codes::FailureCode;
use steersman::machine::stored::outcome::{Answer as Said, Failure};
use steersman::runtime::Boxed;
use steersman::runtime::model::{Delta, Model, ModelCall, Sink};
use steersman::runtime::store::memory::MemoryStore;
use steersman_server::Options;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// A model whose first attempt breaks off, which then answers, and then streams until it is cancelled: pieces are provisional, and the
/// first ones are gone while the session passes from one owner to the next. Each turn begins when the client says that it listens.
#[derive(Clone, Default)]
struct Fickle {
    calls: Arc<AtomicU32>,
    listens: Arc<Notify>,
}

impl Model for Fickle {
    fn label(&self) -> Arc<str> {
        "fickle".into()
    }

    fn call<'a>(
        &'a self,
        _: &'a ModelCall,
        sink: &'a dyn Sink,
        cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Said, Failure>> {
        let nth = self.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let pieces: &[&str] = match nth {
                0 => &["Perhaps "],
                1 => &["It boils ", "water."],
                _ => &["Hm"],
            };
            if nth != 1 {
                self.listens.notified().await;
            }
            for piece in pieces {
                sink.delta(Delta::Text((*piece).to_owned()));
            }
            match nth {
                0 => {
                    return Err(Failure::new(
                        FailureCode::ProviderOverloaded,
                        "it broke off",
                    ));
                }
                1 => {}
                _ => {
                    let mut pause = tokio::time::interval(Duration::from_millis(10));
                    while cancel.run_until_cancelled(pause.tick()).await.is_some() {
                        sink.delta(Delta::Text(pieces.concat()));
                    }
                }
            }
            Ok(Said {
                text: Some(pieces.concat()),
                ..Said::default()
            })
        })
    }
}

/// Each thread of the client is a session of its own.
const SCRIPT: &str = r#"
front:
  - text: I pay.
    call: { refund: { cents: 3990, order: "4711" } }
  - Paid.
  - call: { helper: { message: Look. } }
  - "It says: {{ request.last }}"
  - call: { customer: { question: Which one? } }
  - "So {{ request.last }}."
helper: [ Nothing there. ]
"#;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the client: STEERSMAN_AGUI=$(scripts/agui-client.sh)"]
async fn the_javascript_client_runs_interrupts_and_resumes() {
    let place: PathBuf = std::env::var("STEERSMAN_AGUI")
        .expect("the folder of the client")
        .into();
    let options = Options {
        definitions: vec![front()],
        ..Options::default()
    };
    let world = World::over(Arc::new(MemoryStore::new()), SCRIPT, options).await;
    let model = Fickle::default();
    let setup = Steersman::options().model("default", model.clone());
    let slow = World::of(setup, Arc::new(MemoryStore::new()), Options::default()).await;
    let driving = slow.server.clone();
    tokio::spawn(async move { driving.drive(|_| {}).await });
    let go = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let goes = go.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while go.accept().await.is_ok() {
            model.listens.notify_one();
        }
    });
    let token = world.token(whole("")).await;
    let waits = slow.token(whole("")).await;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agui/client.mjs");
    let out = tokio::process::Command::new("node")
        .arg(file)
        .env("STEERSMAN_AT", &world.at)
        .env("STEERSMAN_TOKEN", token)
        .env("STEERSMAN_GO", goes)
        .env("STEERSMAN_SLOW_AT", &slow.at)
        .env("STEERSMAN_SLOW_TOKEN", waits)
        .env("STEERSMAN_AGUI", place)
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .await
        .unwrap();
    let told = String::from_utf8_lossy(&out.stdout);
    let wrong = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{told}\n{wrong}");
    assert!(told.ends_with("errors ok\n"), "{told}");
}
