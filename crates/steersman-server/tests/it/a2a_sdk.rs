//! The official client of the Agent2Agent protocol against the server (`scripts/a2a-sdk.sh`).

use crate::world::{World, whole};
use std::path::Path;
use steersman_server::{NewToken, Permission};

/// Each part of the client's program has sessions of its own.
const SCRIPT: &str = "
desk:
  - call: { refund: { cents: 3990 } }
  - Paid.
  - Still here.
";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the SDK: STEERSMAN_A2A=$(scripts/a2a-sdk.sh)"]
async fn the_python_client_sends_follows_decides_and_cancels() {
    let world = World::new(SCRIPT).await;
    let token = world.token(whole("")).await;
    let reader = NewToken {
        allows: vec![Permission::Read],
        ..whole("")
    };
    let reader = world.token(reader).await;
    let place = std::env::var("STEERSMAN_A2A").expect("the folder of the SDK");
    let out = tokio::process::Command::new(Path::new(&place).join("python/bin/python"))
        // no files of Python in the repository
        .arg("-B")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/a2a/client.py"))
        .env("STEERSMAN_AT", &world.at)
        .env("STEERSMAN_TOKEN", token)
        .env("STEERSMAN_READER", reader)
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .await
        .unwrap();
    let told = String::from_utf8_lossy(&out.stdout);
    let wrong = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{told}\n{wrong}");
    assert!(told.ends_with("elsewhere ok\n"), "{told}");
}
