//! `artifacts` lists, prints and saves the artifacts of a session and of its branches. No name leads out of the folder.

use crate::world::World;
use insta::assert_snapshot;

const PRESS: &str = "
steersman: 1
name: press
tools:
  page: { description: A long page., effect: read, command: [seq, \"10000\"] }
agents:
  desk: { system: You write., tools: [page, artifacts] }
";

const SCRIPT: &str = r##"
desk:
  - call: { artifact_write: { name: report.md, content: "# Draft\n" } }
  - call: { artifact_write: { name: report.md, content: "# Final\n\nAll is well.\n" } }
  - call: { artifact_write: { name: data/rows.csv, content: "a,b\n1,2\n" } }
  - call: { artifact_write: { name: "/etc/cron.d/x", content: x } }
  - call: { page: {} }
  - Done.
"##;

fn press() -> World {
    let world = World::new();
    world.write("press/steersman.yaml", PRESS);
    world.write("script.yaml", SCRIPT);
    let ran = world.run(&[
        "run",
        "press",
        "--script-all",
        "script.yaml",
        "--input",
        "Write.",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    world
}

#[test]
fn what_a_session_made_is_listed_shown_and_saved() {
    let world = press();
    let mut pages = Vec::new();
    let mut page = |args: &[&str]| pages.push(world.page(args));
    page(&["show", "last"]);
    page(&["artifacts"]);
    page(&["artifacts", "--json"]);
    page(&["artifacts", "last", "report.md"]);
    page(&["artifacts", "last", "report.md", "--version", "1"]);
    page(&["artifacts", "last@2"]);
    page(&["artifacts", "last", "--save", "out"]);
    page(&["artifacts", "last", "report.md", "--save", "out"]);
    page(&[
        "artifacts",
        "last",
        "report.md",
        "--version",
        "1",
        "--save",
        "out",
    ]);
    page(&["artifacts", "last", "report.md", "--version", "7"]);
    page(&["artifacts", "last", "none.md"]);
    page(&["artifacts", "last", "--version", "2"]);
    assert_snapshot!(pages.join("\n"));
    let saved = |name: &str| std::fs::read_to_string(world.folder.join("out").join(name)).unwrap();
    assert_eq!(saved("report.md"), "# Final\n\nAll is well.\n");
    assert_eq!(saved("data/rows.csv"), "a,b\n1,2\n");
    let spilled = std::fs::read_dir(world.folder.join("out")).unwrap();
    let spilled = spilled.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let spilled: Vec<String> = spilled.filter(|name| name.starts_with("page-")).collect();
    assert_eq!(saved(&spilled[0]).lines().count(), 10_000);
}

#[test]
fn the_artifacts_of_a_branch_are_printed_from_it() {
    let world = press();
    let ran = world.run(&["fork", "last@2", "--label", "first"]);
    assert!(ran.code.is_some(), "{ran:?}");
    let ran = world.run(&["artifacts", "last:first"]);
    let told = world.filter(&ran.err);
    let hint = "steersman artifacts aaSESS:first data/rows.csv";
    assert!(told.contains(hint), "{told}");
    let ran = world.run(&["artifacts", "last@3"]);
    let told = world.filter(&ran.err);
    assert!(told.contains("steersman artifacts aaSESS@"), "{told}");
}

#[test]
fn a_content_that_is_damaged_is_found() {
    let world = press();
    let whole = world.run(&["fsck"]);
    assert_eq!(whole.code, Some(0), "{whole:?}");
    let store = rusqlite::Connection::open(world.folder.join(".steersman/sessions.db")).unwrap();
    let damaged = "update blob set bytes = x'00' || substr(bytes, 2) where length(bytes) > 40000";
    assert_eq!(store.execute(damaged, []).unwrap(), 1);
    drop(store);
    let found = world.run(&["fsck"]);
    assert_eq!(found.code, Some(4), "{found:?}");
    assert!(found.out.contains("artifact `page-"), "{found:?}");
    assert!(found.out.contains("does not fit its hash"), "{found:?}");
}

#[test]
fn what_cannot_be_saved_keeps_nothing_else_from_it() {
    let world = World::new();
    world.write("press/steersman.yaml", PRESS);
    world.write(
        "script.yaml",
        "desk:
  - call: { artifact_write: { name: a, content: one } }
  - call: { artifact_write: { name: a/b, content: two } }
  - call: { artifact_write: { name: pipe, content: three } }
  - call: { artifact_write: { name: \"-v\", content: four } }
  - Done.
",
    );
    let ran = world.run(&[
        "run",
        "press",
        "--script-all",
        "script.yaml",
        "--input",
        "Write.",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let out = world.folder.join("out");
    std::fs::create_dir_all(&out).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(out.join("pipe"))
        .status();
    assert!(made.unwrap().success());
    let ran = world.run(&["artifacts", "last", "--save", "out"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("2 of 4 artifacts not saved, 2 saved"),
        "{ran:?}"
    );
    assert!(ran.err.contains("is no file"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(out.join("a")).unwrap(), "one");
    assert_eq!(std::fs::read_to_string(out.join("-v")).unwrap(), "four");
    let ran = world.run(&["artifacts", "last", "a", "--save", "/dev/full"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let listed = world.run(&["artifacts"]);
    assert!(listed.err.contains(" -- -v"), "{listed:?}");
    let shown = world.run(&["artifacts", "last", "--", "-v"]);
    assert_eq!(shown.out.trim(), "four", "{shown:?}");
}

/// If a name is a file and a folder at once, all other artifacts are saved. Nothing is written through a symbolic link.
#[test]
fn an_export_writes_what_can_be_written_and_follows_no_link() {
    let world = World::new();
    world.write("press/steersman.yaml", PRESS);
    world.write(
        "script.yaml",
        "desk:
  - call: { artifact_write: { name: a, content: one } }
  - call: { artifact_write: { name: a/b, content: two } }
  - call: { artifact_write: { name: c/d, content: three } }
  - call: { artifact_write: { name: e, content: four } }
  - Done.
",
    );
    let run = [
        "run",
        "press",
        "--script-all",
        "script.yaml",
        "--input",
        "Go.",
    ];
    assert_eq!(world.run(&run).code, Some(0));
    let export = ["export", "--where", "network = press", "--artifacts", "out"];
    let ran = world.run(&export);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("is there already and is no folder"),
        "{ran:?}"
    );
    assert!(
        ran.err.contains("1 of 4 files not saved, 3 saved"),
        "{ran:?}"
    );
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    let out = world.folder.join("out");
    let index: serde_json::Value = serde_json::from_str(&read(&out.join("index.json"))).unwrap();
    for row in index.as_array().unwrap() {
        match row["file"].as_str() {
            Some(file) => assert!(!read(&out.join(file)).is_empty()),
            None => assert!(row["artifact"] == "a/b" && row["why"].is_string(), "{row}"),
        }
    }
    // One link leads to a folder, the other to a file that does not exist.
    let target = world.folder.join("target");
    std::fs::create_dir_all(&target).unwrap();
    let session = world.json(&["sessions"]).1["session"].clone();
    let of = format!("out2/{}/v1", session.as_str().unwrap());
    for folder in ["kept", &of] {
        let folder = world.folder.join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink(&target, folder.join("c")).unwrap();
        std::os::unix::fs::symlink(target.join("none"), folder.join("e")).unwrap();
    }
    for args in [
        &["artifacts", "last", "--save", "kept"][..],
        &["artifacts", "last", "c/d", "--save", "kept"],
        &["export", "last", "--artifacts", "out2"],
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(2), "{args:?} {ran:?}");
        assert!(ran.err.contains("/c` is a link"), "{args:?} {ran:?}");
    }
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);
    assert_eq!(read(&world.folder.join("kept/a")), "one");
    assert!(world.folder.join("out2/index.json").exists());
}
