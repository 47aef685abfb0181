//! The store of version 1 of the stored forms, which `tests/compat/v1/made.sh` made once: each later program reads it, tells the
//! same of it, and goes on with its sessions.

use crate::world::{World, copy, files, root};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Commands that only look, with what they told when the store was made in a file of `tests/compat/v1/told/`.
const LOOKS: [(&str, &[&str]); 3] = [
    ("sessions", &["sessions", "--all", "--reruns"]),
    ("pending", &["pending"]),
    ("memory", &["memory"]),
];
/// Commands that look at each session.
const OF_EACH: [&str; 4] = ["log", "show", "effects", "context"];

fn kept() -> PathBuf {
    root().join("tests/compat/v1")
}

/// A copy of the kept store, with its definition.
pub(crate) fn world() -> World {
    let mut world = World::new();
    let store = world.folder.join(".steersman");
    copy(&kept().join("store"), &store);
    // A checkout has no rights of its own.
    let own = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(store.join("key"), own).unwrap();
    copy(&kept().join("scripts"), &world.folder.join("scripts"));
    let definition = world.folder.join("steersman.yaml");
    std::fs::copy(kept().join("steersman.yaml"), definition).unwrap();
    world.set("DESK_KEY", "k-1");
    world
}

/// Returns what differs: all that was told then is told now, and more may be.
fn lost(then: &Json, now: &Json, at: &str, found: &mut Vec<String>) {
    match (then, now) {
        (Json::Object(then), Json::Object(now)) => {
            for (key, was) in then {
                let at = format!("{at}.{key}");
                match now.get(key) {
                    Some(is) => lost(was, is, &at, found),
                    None => found.push(format!("{at} is gone")),
                }
            }
        }
        (Json::Array(then), Json::Array(now)) if then.len() == now.len() => {
            for (k, (was, is)) in then.iter().zip(now).enumerate() {
                lost(was, is, &format!("{at}[{k}]"), found);
            }
        }
        _ if then == now => {}
        _ => found.push(format!("{at} was {then} and is {now}")),
    }
}

/// Everything that is told of the store: by name of a file, JSON documents.
fn told(world: &World) -> BTreeMap<String, Vec<Json>> {
    let mut all = BTreeMap::new();
    for (name, typed) in LOOKS {
        all.insert(name.to_owned(), world.json_lines(typed));
    }
    for session in &all["sessions"].clone() {
        let id = session["session"].as_str().unwrap();
        for command in OF_EACH {
            all.insert(format!("{command}-{id}"), world.json_lines(&[command, id]));
        }
    }
    all
}

/// True if what is kept is to be written. Only what is not there is written.
fn writes() -> bool {
    std::env::var_os("STEERSMAN_COMPAT").is_some_and(|how| how == "write")
}

/// `tests/compat/sums.txt` has the length and the hash of each kept file. A file may grow at its end, by rows for what is new.
#[test]
fn kept_files_never_change() {
    let mut all = BTreeMap::new();
    for folder in [
        "tests",
        "crates/steersman-machine/tests",
        "crates/steersman-runtime/tests",
    ] {
        for path in files(&root().join(folder).join("compat/v1")) {
            let name = path.strip_prefix(root()).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            all.insert(name.to_str().unwrap().to_owned(), bytes);
        }
    }
    let path = root().join("tests/compat/sums.txt");
    let mut sums = std::fs::read_to_string(&path).unwrap_or_default();
    let listed: Vec<String> = sums.lines().map(ToOwned::to_owned).collect();
    for row in listed {
        let mut parts = row.split(' ');
        let mut part = || {
            parts
                .next()
                .unwrap_or_else(|| panic!("`{row}` has three parts"))
        };
        let (hash, len, name) = (part(), part().parse::<usize>().unwrap(), part());
        let bytes = all.remove(name);
        let bytes = bytes.unwrap_or_else(|| panic!("{name} is gone: it is kept for ever"));
        let then = bytes.get(..len).unwrap_or_default();
        let now = blake3::hash(then).to_hex();
        assert_eq!(
            now.as_str(),
            hash,
            "{name} has changed: what is stored by a release stays readable"
        );
    }
    if writes() {
        for (name, bytes) in std::mem::take(&mut all) {
            let (hash, len) = (blake3::hash(&bytes).to_hex(), bytes.len());
            sums.extend([hash.as_str(), &format!(" {len} {name}\n")]);
        }
        std::fs::write(&path, sums).unwrap();
    }
    let new: Vec<&String> = all.keys().collect();
    assert!(
        new.is_empty(),
        "{new:?} are not in {}: STEERSMAN_COMPAT=write adds them",
        path.display()
    );
}

#[test]
fn the_kept_store_is_told_as_it_was() {
    let world = world();
    let folder = kept().join("told");
    let all = told(&world);
    if writes() {
        std::fs::create_dir_all(&folder).unwrap();
        for (name, documents) in &all {
            let lines = documents.iter().map(|document| format!("{document}\n"));
            let lines: String = lines.collect();
            let path = folder.join(format!("{name}.jsonl"));
            // A file that exists stays as it is.
            if !path.exists() {
                std::fs::write(path, lines).unwrap();
            }
        }
    }
    let mut found = Vec::new();
    let mut files = 0;
    for file in std::fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let then = text.lines().map(serde_json::from_str::<Json>);
        let then: Vec<Json> = then.collect::<Result<_, _>>().unwrap();
        let now = all.get(&name).cloned().unwrap_or_default();
        lost(&Json::Array(then), &Json::Array(now), &name, &mut found);
        files += 1;
    }
    assert!(files > OF_EACH.len() * 6, "{files} files");
    assert!(found.is_empty(), "{}", found.join("\n"));
    let whole = world.run(&["fsck"]);
    assert_eq!(whole.code, Some(0), "{whole:?}");
}

/// A shop as in `made.sh`. Returns its address, and the number of payments.
fn shop() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let paid = Arc::new(AtomicUsize::new(0));
    let counted = paid.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let len = stream.read(&mut request).unwrap_or_default();
            if request[..len].starts_with(b"POST /pay") {
                counted.fetch_add(1, Ordering::SeqCst);
            }
            let text = r#"{"token": "t-4711"}"#;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{text}", text.len());
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (address, paid)
}

#[test]
fn sessions_of_the_kept_store_go_on() {
    let mut world = world();
    let (address, paid) = shop();
    world.set("SHOP_URL", &address);
    let world = world;
    // It lies in another place than its mark says, as a store that was restored from a backup.
    let accepted = world.run(&["doctor", "--accept-store"]);
    assert!(accepted.all().contains("Accepted."), "{accepted:?}");
    let waiting = world.json_lines(&["pending"]);
    let of = |kind: &str| {
        let found = waiting.iter().find(|p| p["kind"] == kind);
        let found = found.unwrap_or_else(|| panic!("no {kind} in {waiting:?}"));
        (
            found["session"].as_str().unwrap().to_owned(),
            found["id"].as_str().unwrap().to_owned(),
        )
    };
    let driven = |typed: &[&str], script: &str| {
        let script = format!("scripts/{script}.yaml");
        let ran = world.run(&[typed, &["--script-all", &script]].concat());
        assert!(matches!(ran.code, Some(0 | 5)), "{typed:?}: {ran:?}");
        ran.all()
    };
    // A payment that waits for its approval.
    let (session, question) = of("approval");
    let told = driven(&["approve", &session, &question, "--as", "boss"], "pay");
    assert!(told.contains("Paid."), "{told}");
    assert_eq!(paid.load(Ordering::SeqCst), 1);
    // A call that may have happened.
    let (session, question) = of("doubt");
    let told = driven(
        &["resolve", &session, &question, "--done={\"ok\":true}"],
        "call",
    );
    assert!(told.contains("Called."), "{told}");
    // A wait for an event, and the message that came meanwhile.
    let (session, _) = of("event");
    let event = [
        "send",
        ".",
        "--event",
        "left",
        r#"{"order": 4713, "at": "noon"}"#,
    ];
    let sent = world.run(&event);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let told = driven(&["run", "--resume", &session], "leave");
    assert!(
        told.contains("It left.") && told.contains("Hurry."),
        "{told}"
    );
    // A secret on a branch that was forked.
    let (session, question) = of("input");
    let told = driven(&["answer", &session, &question, "hunter2"], "first");
    assert!(told.contains("login = "), "{told}");
    // A rerun follows the recording without a difference.
    let first = world.json_lines(&["sessions"]);
    let first = first.last().unwrap()["session"]
        .as_str()
        .unwrap()
        .to_owned();
    let rerun = world.run(&["rerun", &first]);
    assert_eq!(rerun.code, Some(0), "{rerun:?}");
    let whole = world.run(&["fsck"]);
    assert_eq!(whole.code, Some(0), "{whole:?}");
}
