//! The official clients of OpenAI against the server (`scripts/openai-clients.sh`).

use crate::world::{World, whole};
use std::path::{Path, PathBuf};
use std::process::Output;
use steersman_server::{NewToken, Permission};

/// Each part of a client's program has sessions of its own.
const SCRIPT: &str = r#"
desk:
  - call: { refund: { cents: 3990 } }
  - Paid.
  - "To: {{ request.last }}"
  - Still here.
"#;

/// The folder with the clients.
fn place() -> PathBuf {
    std::env::var("STEERSMAN_OPENAI")
        .expect("the folder of the clients")
        .into()
}

async fn run(program: &Path, args: &[&str], file: &str) -> Output {
    let world = World::new(SCRIPT).await;
    let token = world.token(whole("")).await;
    let reader = NewToken {
        allows: vec![Permission::Read],
        ..whole("")
    };
    let reader = world.token(reader).await;
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/openai")
        .join(file);
    tokio::process::Command::new(program)
        .args(args)
        .arg(file)
        .env("STEERSMAN_AT", &world.at)
        .env("STEERSMAN_TOKEN", token)
        .env("STEERSMAN_READER", reader)
        .env("STEERSMAN_OPENAI_JS", place().join("js"))
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .await
        .unwrap()
}

#[track_caller]
fn succeeded(out: &Output, last: &str) {
    let told = String::from_utf8_lossy(&out.stdout);
    let wrong = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{told}\n{wrong}");
    assert!(told.ends_with(last), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the clients: STEERSMAN_OPENAI=$(scripts/openai-clients.sh)"]
async fn the_python_client_chats_and_gets_responses() {
    // no files of Python in the repository
    let out = run(&place().join("python/bin/python"), &["-B"], "client.py").await;
    succeeded(&out, "errors ok\n");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the clients: STEERSMAN_OPENAI=$(scripts/openai-clients.sh)"]
async fn the_javascript_client_chats_and_gets_responses() {
    let out = run(Path::new("node"), &[], "client.mjs").await;
    succeeded(&out, "errors ok\n");
}
