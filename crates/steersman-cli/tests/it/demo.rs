//! `demo`: its process is killed after the payment was sent, and resumed; the payment is made once.

use crate::docs::blocks;
use crate::hostile::on_terminal;
use crate::served::provider;
use crate::world::{self, World};
use insta::assert_snapshot;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

#[test]
fn the_demo_pays_once() {
    let world = World::new();
    let ran = world.run(&["demo"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.out, "1 intended, 1 done, 0 repeated\n");
    assert_snapshot!(world.filter(&ran.err));
    // The session stays in the store, where one can look at it.
    let (code, shown) = world.json(&["show", "last"]);
    assert_eq!(code, Some(0));
    let refund = shown["effects"]
        .as_array()
        .unwrap()
        .iter()
        .find(|e| e["tool"] == "refund")
        .unwrap();
    assert_eq!(
        (&refund["attempts"], &refund["repeated"]),
        (&1.into(), &0.into())
    );
}

/// The README shows the lines of the demo that matter.
#[test]
fn the_lines_in_the_readme_are_those_of_the_demo() {
    let readme = std::fs::read_to_string(world::root().join("README.md")).unwrap();
    let shown = blocks(&readme);
    let shown = shown.iter().find(|block| block.fence == "text");
    let ran = World::new().run(&["demo"]);
    let printed = world::settled(&format!("{}{}", ran.err, ran.out));
    let printed: Vec<&str> = printed.lines().map(str::trim).collect();
    let shown = world::settled(&shown.expect("the README has it").text);
    let mut at = 0;
    for line in shown.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let found = printed[at..].iter().position(|printed| *printed == line);
        at += found.unwrap_or_else(|| panic!("`{line}` is not there:\n{}", printed.join("\n"))) + 1;
    }
}

/// The demo runs in a folder of its own. The address of a store is relative to the folder where it was typed.
#[test]
fn the_demo_keeps_its_session_in_the_store_that_was_named() {
    let world = World::new();
    let ran = world.run(&["demo", "--store", "sqlite:named.db"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(world.folder.join("named.db").is_file());
}

/// A person has time to read what happens next; a program gets neither the text nor the pause.
#[test]
fn the_demo_pauses_around_the_kill_on_a_terminal_alone() {
    let told = [
        "The money has left. Now the process is killed.",
        "The next process knows that the refund began, and not how it ended.",
    ];
    let world = World::new();
    let shown = on_terminal(&world, &["demo", "--store", "shown.db"]);
    let at: Vec<_> = told.iter().map(|told| shown.find(told)).collect();
    let killed = shown.find("SIGKILL");
    assert!(
        at[0].is_some() && at[0] < killed && killed < at[1],
        "{shown}"
    );
    let piped = world.run(&["demo", "--store", "piped.db"]);
    assert_eq!(piped.code, Some(0), "{piped:?}");
    for told in told {
        assert!(
            !piped.out.contains(told) && !piped.err.contains(told),
            "{piped:?}"
        );
    }
}

/// The console is opened over sessions of its own, and nothing of them is left.
#[test]
fn the_demo_of_the_console_has_something_for_each_screen() {
    provider();
    let world = World::new();
    let mut command = world.command(&["demo", "--ui", "--print"]);
    let mut child = command
        .env("TMPDIR", &world.folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut url = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut url).unwrap();
    let (at, code) = url.trim().split_once("/#c=").expect(&url);
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        let client = reqwest::Client::new();
        let exchange = client.post(format!("{at}/v1/token/exchange"));
        let exchange = exchange.json(&serde_json::json!({ "code": code }));
        let told: Json = exchange.send().await.unwrap().json().await.unwrap();
        let token = told["token"].as_str().unwrap().to_owned();
        let asks = async |path: &str| -> Json {
            let request = client.get(format!("{at}{path}")).bearer_auth(&token);
            request.send().await.unwrap().json().await.unwrap()
        };
        let questions = asks("/v1/questions").await;
        let kinds = questions["items"].as_array().unwrap().iter();
        let kinds: BTreeSet<&str> = kinds.map(|one| one["kind"].as_str().unwrap()).collect();
        let wanted = ["approval", "doubt", "input", "question"];
        assert_eq!(kinds, BTreeSet::from(wanted), "{questions:#}");
        let sessions = asks("/v1/sessions").await;
        let sessions = sessions["items"].as_array().unwrap();
        assert_eq!(sessions.len(), 7, "{sessions:#?}");
        let rerun = sessions
            .iter()
            .find(|row| row["labels"]["rerun_of"].is_string());
        let rerun = rerun.expect("a rerun");
        let of = rerun["labels"]["rerun_of"].as_str().unwrap();
        let (of, _) = of.split_once('@').unwrap();
        let branches = asks(&format!("/v1/sessions/{of}/branches")).await;
        assert_eq!(
            branches["items"].as_array().unwrap().len(),
            4,
            "{branches:#}"
        );
        let artifacts = asks(&format!("/v1/sessions/{of}/artifacts")).await;
        assert_eq!(artifacts["items"][0]["name"], "note.md", "{artifacts:#}");
        assert_ne!(asks("/v1/memories").await["items"], serde_json::json!([]));
        let again = rerun["session"].as_str().unwrap();
        let diff = asks(&format!("/v1/diff?a={of}&b={again}")).await;
        assert_eq!(diff["differs"], true, "{diff:#}");
    });
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &id])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let left = std::fs::read_dir(&world.folder).unwrap();
    let mut left = left.filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    assert!(!left.any(|name| name.starts_with("steersman-tour-")));
    assert!(!world.run(&["sessions"]).out.contains("refunds"));
}
