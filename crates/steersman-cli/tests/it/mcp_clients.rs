//! The official clients of the Model Context Protocol against `serve` and `mcp` (`scripts/mcp-clients.sh`).

use crate::served::{Served, provider};
use crate::world::{self, World};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The definition of the guide.
fn world() -> World {
    let world = World::new();
    crate::mcp_server::write(&world);
    world
}

/// The folder with the clients.
fn place() -> PathBuf {
    std::env::var("STEERSMAN_MCP_CLIENTS")
        .expect("the folder of the clients")
        .into()
}

#[track_caller]
fn succeeds(program: &Path, args: &[&str], file: &str, told: &str) {
    provider();
    let world = world();
    let served = Served::start(&world);
    let ours = world.command(&[]);
    let file = world::root()
        .join("crates/steersman-cli/tests/mcp")
        .join(file);
    let out = Command::new(program)
        .args(args)
        .arg(file)
        .arg("other.db")
        .current_dir(&world.folder)
        .envs(
            ours.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("STEERSMAN_AT", &served.at)
        .env("STEERSMAN_TOKEN", served.token())
        .env("STEERSMAN_PROGRAM", env!("CARGO_BIN_EXE_steersman"))
        .env("STEERSMAN_MCP_JS", place().join("js"))
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .unwrap();
    let wrong = String::from_utf8_lossy(&out.stderr);
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{said}\n{wrong}");
    assert_eq!(said, told, "{wrong}");
}

#[test]
#[ignore = "needs the clients: STEERSMAN_MCP_CLIENTS=$(scripts/mcp-clients.sh)"]
fn the_python_client_calls_and_decides_in_both_versions() {
    let told = "http legacy ok\nhttp auto ok\nhttp 2026-07-28 ok\nprocess legacy ok\nprocess auto ok\nprocess 2026-07-28 ok\n";
    // no files of Python in the repository
    succeeds(
        &place().join("python/bin/python"),
        &["-B"],
        "client.py",
        told,
    );
}

#[test]
#[ignore = "needs the clients: STEERSMAN_MCP_CLIENTS=$(scripts/mcp-clients.sh)"]
fn the_javascript_client_calls_and_decides() {
    succeeds(
        Path::new("node"),
        &[],
        "client.mjs",
        "http ok\nprocess ok\n",
    );
}
