//! The file of a store has one owner under any name, and a store that may not know of every effect is not driven.

use crate::world::{Ran, World};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A definition that pays. From payment number `until` on, the tool waits until the file `go` exists.
fn till(until: u32) -> World {
    let world = World::new();
    world.write(
        "till/steersman.yaml",
        &format!(
            "steersman: 1\nname: till\ntools:\n  pay:\n    description: Pays.\n    parameters: {{ n: integer }}\n    effect: unsafe\n    command: [sh, -c, \"echo paid >> book; if test $(wc -l < book) -ge {until}; then until test -e go; do sleep 0.02; done; fi; echo ok\"]\nagents: {{ desk: {{ system: You pay., tools: [pay] }} }}\n"
        ),
    );
    let calls: Vec<String> = (1..=until + 2)
        .map(|n| format!("{{ call: {{ pay: {{ n: {n} }} }} }}, "))
        .collect();
    let calls = calls.concat();
    world.write("script.yaml", &format!("desk: [ {calls}Paid. ]\n"));
    world
}

const RUN: &[&str] = &[
    "run",
    "till",
    "--script-all",
    "script.yaml",
    "--input",
    "Pay.",
];
const RESUME: &[&str] = &["run", "--resume", "last", "--script-all", "script.yaml"];

fn book(world: &World) -> usize {
    let book = std::fs::read_to_string(world.folder.join("till/book"));
    book.unwrap_or_default().lines().count()
}

fn until(what: &str, mut is: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < Duration::from_mins(1), "never: {what}");
        std::thread::yield_now();
    }
}

/// A process that owns a session and is in the middle of a payment.
fn paying(world: &World, payments: u32) -> Child {
    let child = world
        .command(RUN)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("paid", || book(world) == payments as usize);
    child
}

fn killed(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn at(world: &World, name: &str) -> std::path::PathBuf {
    world.folder.join(".steersman").join(name)
}

fn with<'a>(args: &[&'a str], store: &'a str) -> Vec<&'a str> {
    [args, &["--store", store]].concat()
}

/// Asserts that the store was refused for this reason.
fn is_refused(ran: &Ran, why: &str) {
    assert_eq!(ran.code, Some(4), "{why}: {ran:?}");
    assert!(ran.err.contains(why), "{why}: {ran:?}");
}

#[test]
fn a_second_owner_is_refused_whatever_the_store_is_called() {
    let world = till(1);
    let mut owner = paying(&world, 1);
    std::os::unix::fs::symlink(at(&world, "sessions.db"), world.folder.join("link.db")).unwrap();
    let ran = world.run(&with(RESUME, "link.db"));
    is_refused(&ran, &format!("owned by process {}", owner.id()));
    std::fs::hard_link(at(&world, "sessions.db"), world.folder.join("hard.db")).unwrap();
    is_refused(&world.run(&with(RESUME, "hard.db")), "has 2 names");
    std::fs::remove_file(world.folder.join("hard.db")).unwrap();
    // A store that is open is refused under a new name too.
    std::fs::rename(at(&world, "sessions.db"), world.folder.join("moved.db")).unwrap();
    is_refused(&world.run(&with(RESUME, "moved.db")), "under another name");
    std::fs::rename(world.folder.join("moved.db"), at(&world, "sessions.db")).unwrap();
    let looked = world.run(&with(&["show", "last"], "link.db"));
    assert_eq!(looked.code, Some(0), "{looked:?}");
    assert!(owner.try_wait().unwrap().is_none());
    killed(owner);
    // A second name was left: lines that were written under it may be in a journal next to it.
    std::fs::hard_link(at(&world, "sessions.db"), world.folder.join("hard.db")).unwrap();
    is_refused(&world.run(&with(RESUME, "hard.db")), "has 2 names");
    std::fs::remove_file(world.folder.join("hard.db")).unwrap();
    let ran = world.run(&with(RESUME, "link.db"));
    assert_eq!((ran.code, book(&world)), (Some(7), 1), "{ran:?}");
}

#[test]
fn an_owner_whose_locks_vanished_writes_nothing_more_and_nobody_follows_while_it_lives() {
    for gone in ["sessions.db.owners", "sessions.db"] {
        let world = till(1);
        let owner = paying(&world, 1);
        let path = at(&world, gone);
        if path.is_dir() {
            std::fs::remove_dir_all(&path).unwrap();
            let ran = world.run(RESUME);
            is_refused(&ran, "the folder with its locks was removed");
        } else {
            std::fs::rename(&path, world.folder.join("taken.db")).unwrap();
            std::fs::copy(world.folder.join("taken.db"), &path).unwrap();
            let ran = world.run(RESUME);
            is_refused(&ran, "replaced while another process has it open");
        }
        world.write("till/go", "");
        let ended = owner.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(4), "{gone}: {err}");
        assert!(err.contains("nothing more is written"), "{gone}: {err}");
        assert_eq!(book(&world), 1, "{gone}");
        if path.is_dir() {
            // The owner has ended: the effect that it started is in doubt, and not repeated.
            let ran = world.run(RESUME);
            assert_eq!((ran.code, book(&world)), (Some(7), 1), "{ran:?}");
        }
    }
}

/// The owner waits for a tool and writes nothing, so no write of its own shows that the journal is gone. Others are
/// refused until the journal is back.
#[test]
fn a_journal_that_was_removed_under_an_idle_owner_loses_no_message() {
    let world = till(1);
    let owner = paying(&world, 1);
    let journal = at(&world, "sessions.db-wal");
    std::fs::remove_file(&journal).unwrap();
    std::fs::remove_file(at(&world, "sessions.db-shm")).unwrap();
    for command in [&send(".steersman/sessions.db")[..], &["pending"]] {
        is_refused(&world.run(command), "while another process has it open");
    }
    until("put back", || journal.exists());
    killed(owner);
    let ran = world.run(RESUME);
    assert_eq!((ran.code, book(&world)), (Some(7), 1), "{ran:?}");
    let ran = world.run(&["fsck"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// A bind mount. It is unmounted when this is dropped.
struct Mount<'a>(&'a Path);

impl<'a> Mount<'a> {
    fn bind(from: &Path, to: &'a Path) -> Self {
        let done = Command::new("mount")
            .arg("--bind")
            .args([from, to])
            .status();
        assert!(done.unwrap().success());
        Self(to)
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

/// A test of the module `disk` calls this, which runs where file systems can be mounted.
pub(crate) fn a_second_owner_is_refused_through_a_bind_mount() {
    let world = till(1);
    let owner = paying(&world, 1);
    let folder = world.folder.join("elsewhere");
    std::fs::create_dir(&folder).unwrap();
    let mount = Mount::bind(&world.folder.join(".steersman"), &folder);
    let ran = world.run(&with(RESUME, "elsewhere/sessions.db"));
    is_refused(&ran, &format!("owned by process {}", owner.id()));
    let file = world.folder.join("file.db");
    world.write("file.db", "");
    let other = Mount::bind(&at(&world, "sessions.db"), &file);
    is_refused(&world.run(&with(RESUME, "file.db")), "a bind mount");
    killed(owner);
    // Its journal is next to the other name.
    is_refused(&world.run(&with(RESUME, "file.db")), "a bind mount");
    drop(other);
    let ran = world.run(&with(RESUME, "elsewhere/sessions.db"));
    assert_eq!((ran.code, book(&world)), (Some(7), 1), "{ran:?}");
    drop(mount);
}

/// A closed store with three payments.
fn paid() -> World {
    let world = till(3);
    world.write("till/go", "");
    world.write(
        "script.yaml",
        "desk: [ { call: { pay: { n: 1 } } }, { call: { pay: { n: 2 } } }, { call: { pay: { n: 3 } } }, Paid., More. ]\n",
    );
    let ran = world.run(RUN);
    assert_eq!((ran.code, book(&world)), (Some(0), 3), "{ran:?}");
    world
}

/// The ids of all sessions, newest first.
fn ids(world: &World) -> Vec<String> {
    let all = world.json_lines(&["sessions", "--all"]);
    let ids = all.iter().map(|session| session["session"].as_str());
    ids.map(|id| id.unwrap().to_owned()).collect()
}

fn send(store: &str) -> Vec<&str> {
    with(
        &["send", "last", "More?", "--script-all", "script.yaml"],
        store,
    )
}

fn says_more(world: &World, session: &str, store: &str) {
    let more = ["send", session, "More?", "--script-all", "script.yaml"];
    let ran = world.run(&with(&more, store));
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "More."), "{ran:?}");
}

#[test]
fn a_copy_is_not_driven_before_a_person_accepts_it() {
    let world = paid();
    assert_eq!(world.run(RUN).code, Some(0));
    let ids = ids(&world);
    assert_eq!(ids.len(), 2);
    let backup = world.run(&["backup", "backup.db"]);
    assert!(backup.err.contains("--accept-store"), "{backup:?}");
    std::fs::copy(at(&world, "sessions.db"), world.folder.join("copy.db")).unwrap();
    for store in ["backup.db", "copy.db"] {
        let why = "it is a copy, was moved, or was restored from a backup";
        let refused = [
            world.run(&send(store)),
            world.run(&with(RESUME, store)),
            world.run(&with(&["send", "last", "More?", "--no-run"], store)),
            world.run(&with(&["hold", "pay"], store)),
            world.run(&with(&["erase", "last", "--yes"], store)),
            world.run(&with(&["gc", "--yes"], store)),
        ];
        for ran in refused {
            is_refused(&ran, why);
            assert!(ran.err.contains("doctor --accept-store"), "{ran:?}");
        }
        for look in [
            &["show", "last"][..],
            &["sessions"],
            &["pending"],
            &["fsck"],
            &["log", "last"],
            &["effects", "last"],
            &["export", "last"],
            &["artifacts", "last"],
            &["why", "last"],
        ] {
            let ran = world.run(&with(look, store));
            assert_eq!(ran.code, Some(0), "{look:?} {ran:?}");
            assert!(
                ran.err.contains("opens for reading only"),
                "{look:?} {ran:?}"
            );
        }
        let doctor = world.run(&with(&["doctor"], store));
        assert_eq!(doctor.code, Some(1), "{doctor:?}");
        let accepted = world.run(&with(&["doctor", "--accept-store"], store));
        assert_eq!(accepted.code, Some(0), "{accepted:?}");
        for id in &ids {
            says_more(&world, id, store);
            let [shown, log] = ["show", "log"].map(|look| world.run(&with(&[look, id], store)).out);
            let told = "a person accepted the store: it was a copy";
            assert!(shown.contains(told), "{shown}");
            assert!(log.contains("store accepted"), "{log}");
        }
        let again = world.run(&with(&["doctor", "--accept-store"], store));
        assert!(again.err.contains("nothing to accept"), "{again:?}");
        assert_eq!(world.run(&with(&["fsck"], store)).code, Some(0));
    }
    // The original is driven without a question, also after its copies were driven.
    says_more(&world, "last", ".steersman/sessions.db");
    let shown = world.run(&["show", "last"]).out;
    assert!(!shown.contains("accepted the store"), "{shown}");
}

#[test]
fn a_store_that_was_moved_or_restored_in_its_place_is_not_driven() {
    let world = paid();
    assert_eq!(world.run(&["backup", "backup.db"]).code, Some(0));
    assert_eq!(world.run(&send(".steersman/sessions.db")).code, Some(0));
    let file = at(&world, "sessions.db");
    let now = std::fs::read(&file).unwrap();
    // The backup is written over the content of the store: lines are missing.
    std::fs::write(
        &file,
        std::fs::read(world.folder.join("backup.db")).unwrap(),
    )
    .unwrap();
    is_refused(&world.run(RESUME), "it lost what it had acknowledged");
    let fsck = world.run(&["fsck"]);
    is_refused(&fsck, "it lost what it had acknowledged");
    std::fs::write(&file, &now).unwrap();
    assert_eq!(world.run(&["fsck"]).code, Some(0));
    // A copy takes the place of the file.
    std::fs::copy(&file, at(&world, "other")).unwrap();
    std::fs::rename(at(&world, "other"), &file).unwrap();
    is_refused(&world.run(RESUME), "its mark names another file");
    // The file is moved without its mark.
    let world = paid();
    std::fs::rename(at(&world, "sessions.db"), world.folder.join("moved.db")).unwrap();
    is_refused(
        &world.run(&with(RESUME, "moved.db")),
        "it has no mark beside it",
    );
    // The folder is renamed: the file is the same, and its mark is there.
    let world = paid();
    std::fs::rename(world.folder.join(".steersman"), world.folder.join("kept")).unwrap();
    says_more(&world, "last", "kept/sessions.db");
}

/// A copy writes into the existing files, so their inodes and times of creation stay. The store is refused, and nothing
/// is paid again.
#[test]
fn a_folder_that_was_copied_back_into_its_place_pays_nothing_again() {
    let world = paid();
    world.write(
        "script.yaml",
        "desk: [ { call: { pay: { n: 1 } } }, { call: { pay: { n: 2 } } }, { call: { pay: { n: 3 } } }, Paid., { call: { pay: { n: 4 } } }, More. ]\n",
    );
    let store = ".steersman/sessions.db";
    let left = world.run(&with(&["send", "last", "More?", "--no-run"], store));
    assert_eq!(left.code, Some(0), "{left:?}");
    let copy = |from: &str, to: &str| {
        let done = Command::new("cp")
            .args(["-a", from, to])
            .current_dir(&world.folder)
            .status();
        assert!(done.unwrap().success());
    };
    copy(".steersman", "kept");
    let ran = world.run(RESUME);
    assert_eq!((ran.code, book(&world)), (Some(0), 4), "{ran:?}");
    copy("kept/.", ".steersman/");
    let ran = world.run(RESUME);
    is_refused(&ran, "there are 2 files of it where one belongs");
    assert_eq!(book(&world), 4);
    let accepted = world.run(&["doctor", "--accept-store"]);
    assert_eq!(accepted.code, Some(0), "{accepted:?}");
    assert_eq!(world.run(&["fsck"]).code, Some(0));
}

/// The owner, the mode and the times of all files change, as at each start of a container: the store is driven.
#[test]
fn a_store_whose_folder_got_another_owner_is_driven() {
    let world = paid();
    let typed = "chown -R \"$(id -u):$(id -g)\" .steersman && chmod -R go-rwx .steersman && find .steersman -exec touch {} +";
    let done = Command::new("sh")
        .args(["-c", typed])
        .current_dir(&world.folder)
        .status();
    assert!(done.unwrap().success());
    says_more(&world, "last", ".steersman/sessions.db");
}

#[test]
fn a_backup_that_was_put_before_the_journal_of_a_killed_process_is_not_driven() {
    let world = paid();
    assert_eq!(world.run(&["backup", "backup.db"]).code, Some(0));
    assert_eq!(world.run(&send(".steersman/sessions.db")).code, Some(0));
    std::fs::remove_file(world.folder.join("till/go")).unwrap();
    killed(paying(&world, 4));
    let journal = std::fs::read(at(&world, "sessions.db-wal")).unwrap();
    std::fs::copy(world.folder.join("backup.db"), at(&world, "sessions.db")).unwrap();
    let why = "was not written behind this file";
    for command in [RESUME, RUN, &["fsck"], &["gc", "--yes"]] {
        is_refused(&world.run(command), why);
    }
    // Commands that look read the file without the journal.
    let shown = world.run(&["show", "last"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(
        shown.err.contains(why) && !shown.out.contains("More."),
        "{shown:?}"
    );
    let accepted = world.run(&["doctor", "--accept-store"]);
    assert_eq!(accepted.code, Some(0), "{accepted:?}");
    let stray = at(&world, "sessions.db-wal.stray-1");
    assert_eq!(std::fs::read(stray).unwrap(), journal);
    says_more(&world, "last", ".steersman/sessions.db");
    assert_eq!(world.run(&["fsck"]).code, Some(0));
    assert_eq!(book(&world), 4, "nothing was paid again");
}

#[test]
fn a_copy_of_a_store_in_which_nothing_unsafe_began_just_opens() {
    let world = World::new();
    world.write(
        "desk/steersman.yaml",
        "name: desk\nagents: { desk: { system: You talk. } }\n",
    );
    world.write("script.yaml", "desk: [ One., Two. ]\n");
    let ran = world.run(&[
        "run",
        "desk",
        "--script-all",
        "script.yaml",
        "--input",
        "Go.",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!at(&world, "sessions.db.mark").exists());
    std::fs::copy(at(&world, "sessions.db"), world.folder.join("copy.db")).unwrap();
    let ran = world.run(&send("copy.db"));
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Two."), "{ran:?}");
}

/// The only file in the folder of the store's mark.
fn mark(world: &World) -> std::path::PathBuf {
    let mut files = std::fs::read_dir(at(world, "sessions.db.mark")).unwrap();
    let mark = files.next().unwrap().unwrap().path();
    assert!(files.next().is_none());
    mark
}

/// The files of a store as a killed process left them.
struct Left {
    file: Vec<u8>,
    journal: Vec<u8>,
    mark: Vec<u8>,
}

impl Left {
    fn by(world: &World) -> Self {
        Self {
            file: std::fs::read(at(world, "sessions.db")).unwrap(),
            journal: std::fs::read(at(world, "sessions.db-wal")).unwrap(),
            mark: std::fs::read(mark(world)).unwrap(),
        }
    }

    fn put_back(&self, world: &World, journal: &[u8]) {
        let _ = std::fs::remove_file(at(world, "sessions.db-shm"));
        std::fs::write(at(world, "sessions.db"), &self.file).unwrap();
        std::fs::write(at(world, "sessions.db-wal"), journal).unwrap();
        std::fs::write(mark(world), &self.mark).unwrap();
    }
}

const PAGE: usize = 2_048;
const FRAME: usize = 24 + PAGE;

/// A bit of the journal is flipped, or the journal is cut: no payment is repeated, and missing lines are reported.
/// `STEERSMAN_FLIPS` is the number of cuts and of flips.
#[test]
fn a_log_that_lost_its_end_pays_nothing_again_and_says_so() {
    let world = till(4);
    killed(paying(&world, 4));
    let left = Left::by(&world);
    let journal = &left.journal;
    let whole = world.json(&["fsck"]).1["lines"].as_u64().unwrap();
    let looks = crate::crash::count("STEERSMAN_FLIPS", 12) as usize;
    let (frames, bits) = (journal.len() / FRAME, journal.len() * 8);
    let cuts = (0..=frames).step_by((frames / looks).max(1));
    let mut damaged: Vec<Vec<u8>> = cuts
        .map(|frame| {
            journal[..if frame == 0 { 0 } else { 32 + frame * FRAME }.min(journal.len())].to_vec()
        })
        .collect();
    for bit in (0..bits).step_by((bits / looks).max(1)) {
        let mut flipped = journal.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        damaged.push(flipped);
    }
    let (mut told, mut lost) = (0, 0);
    for (k, journal) in damaged.iter().enumerate() {
        left.put_back(&world, journal);
        let fsck = world.run(&["fsck", "--json"]);
        let last = fsck.out.lines().last().unwrap_or("null");
        let found: serde_json::Value = serde_json::from_str(last).unwrap();
        let is_whole = found["lines"].as_u64() == Some(whole);
        lost += u32::from(!is_whole);
        assert!(is_whole || fsck.code == Some(4), "{k}: {fsck:?}");
        let ran = world.run(RESUME);
        assert_eq!(book(&world), 4, "{k}: {ran:?}");
        if !is_whole {
            is_refused(&ran, "opens for reading only");
            told += 1;
        }
    }
    println!(
        "{} journals, {lost} without lines that were acknowledged, {told} told",
        damaged.len()
    );
    assert!(lost > 0 && lost == told);
    // With the undamaged journal the session goes on, and the last payment is in doubt.
    left.put_back(&world, &left.journal);
    let ran = world.run(RESUME);
    assert_eq!((ran.code, book(&world)), (Some(7), 4), "{ran:?}");
}

#[test]
fn a_store_that_lost_lines_is_driven_once_a_person_says_so() {
    let world = till(2);
    killed(paying(&world, 2));
    let left = Left::by(&world);
    left.put_back(&world, &[]);
    is_refused(&world.run(RESUME), "opens for reading only");
    let doctor = world.run(&["doctor"]);
    assert!(doctor.out.contains("--accept-store"), "{doctor:?}");
    let accepted = world.run(&["doctor", "--accept-store"]);
    assert_eq!(accepted.code, Some(0), "{accepted:?}");
    world.write("till/go", "");
    let ran = world.run(RESUME);
    assert!(matches!(ran.code, Some(0 | 7)), "{ran:?}");
    let shown = world.run(&["show", "last"]);
    assert!(
        shown
            .out
            .contains("a person accepted the store: it had lost lines"),
        "{shown:?}"
    );
}

/// A SQLite file of another program is not changed, even if it has tables with our names.
#[test]
fn a_file_of_another_program_with_our_tables_is_left_alone() {
    let world = paid();
    let foreign = world.folder.join("foreign.db");
    std::fs::copy(at(&world, "sessions.db"), &foreign).unwrap();
    let conn = rusqlite::Connection::open(&foreign).unwrap();
    conn.execute_batch(
        "PRAGMA application_id = 0; PRAGMA user_version = 0; PRAGMA journal_mode = DELETE",
    )
    .unwrap();
    drop(conn);
    let before = std::fs::read(&foreign).unwrap();
    for args in [
        &["gc"][..],
        &["gc", "--yes"],
        &["backup", "copy.db"],
        &["fsck"],
        &["sessions"],
        &["show", "last"],
        &["erase", "last", "--yes"],
        &["memory", "forget", "1", "--yes"],
        &["doctor", "--accept-store"],
        &["run", "--resume", "last"],
        &["send", "last", "More?"],
    ] {
        let ran = world.run(&with(args, "foreign.db"));
        is_refused(&ran, "a SQLite file of another program");
        assert_eq!(std::fs::read(&foreign).unwrap(), before, "{args:?}");
    }
    let doctor = world.run(&with(&["doctor"], "foreign.db"));
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(doctor.out.contains("another program"), "{doctor:?}");
    for beside in [
        "copy.db",
        "foreign.db-wal",
        "foreign.db.owners",
        "foreign.db.mark",
    ] {
        assert!(!world.folder.join(beside).exists(), "{beside}");
    }
}

/// A session whose id is damaged is reported, and all other sessions are verified.
#[test]
fn a_damaged_id_is_damage_and_the_rest_is_verified() {
    let world = paid();
    assert_eq!(world.run(RUN).code, Some(0));
    let ids = ids(&world);
    let file = at(&world, "sessions.db");
    let whole = std::fs::read(&file).unwrap();
    // Behind the first character in which the ids differ, so that the damaged one stays in its place in the order.
    let [id, other] = [0, 1].map(|nth| ids[nth].as_bytes());
    let apart = (0..id.len()).find(|at| id[*at] != other[*at]).unwrap();
    let is_id = |at: &usize| whole[*at..].starts_with(id);
    let mut looked = 0;
    for place in (0..whole.len()).filter(is_id) {
        for bit in [1, 0x80] {
            let mut bytes = whole.clone();
            bytes[place + apart + 1] ^= bit;
            std::fs::write(&file, bytes).unwrap();
            let fsck = world.run(&["fsck"]);
            assert_eq!(fsck.code, Some(4), "{fsck:?}");
            assert!(fsck.err.contains("session number"), "{fsck:?}");
            assert!(fsck.err.contains("1 session, "), "the other one: {fsck:?}");
            looked += 1;
        }
    }
    assert!(looked >= 4, "the table and its index: {looked}");
}

/// An index is damaged and hides a waiting message: `pending` lists the message nevertheless, and `run --all` reports
/// the damage and drives another session.
#[test]
fn an_index_that_hides_what_waits_is_told_and_passed_over() {
    let world = paid();
    assert_eq!(world.run(RUN).code, Some(0));
    let sessions = ids(&world);
    let sends = |id: &str| world.run(&["send", id, "More?", "--no-run"]).code == Some(0);
    assert!(sends(&sessions[1]));
    let file = at(&world, "sessions.db");
    let (good, end) = {
        let conn = rusqlite::Connection::open(&file).unwrap();
        let root = "SELECT rootpage FROM sqlite_master WHERE name = 'inbox_waiting'";
        let root: usize = conn.query_row(root, [], |r| r.get::<_, u32>(0)).unwrap() as usize;
        (std::fs::read(&file).unwrap(), root * PAGE)
    };
    let marked = std::fs::read(mark(&world)).unwrap();
    let mut hidden = 0;
    for bit in 0..16 {
        let mut bytes = good.clone();
        bytes[end - 1 - bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&file, &bytes).unwrap();
        std::fs::write(mark(&world), &marked).unwrap();
        let listed = world.run(&["pending"]);
        let told = listed.out.matches("message for session").count();
        assert_eq!(told, 1, "{listed:?}");
        let is_damaged = listed.err.contains("steersman fsck");
        let code = if is_damaged { 4 } else { 0 };
        assert_eq!(listed.code, Some(code), "{listed:?}");
        if !is_damaged || hidden > 2 {
            continue;
        }
        hidden += 1;
        let (told, said) = (world.folder.join("told"), world.folder.join("said"));
        let mut all = world
            .command(&["run", "--all", "--script-all", "script.yaml", "--json"])
            .stdout(std::fs::File::create(&told).unwrap())
            .stderr(std::fs::File::create(&said).unwrap())
            .spawn()
            .unwrap();
        let read = |path| std::fs::read_to_string(path).unwrap();
        // Writes of several sessions may share a transaction, and fail together.
        until("undriven", || read(&told).contains("\"undriven\""));
        assert!(sends(&sessions[0]));
        until("More.", || {
            let ended = all.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "bit {bit}: {} {}",
                read(&told),
                read(&said)
            );
            read(&told).contains("\"More.\"")
        });
        assert!(read(&told).contains("\"damaged\""), "{}", read(&told));
        killed(all);
        for beside in ["sessions.db-wal", "sessions.db-shm"] {
            let _ = std::fs::remove_file(at(&world, beside));
        }
    }
    assert!(hidden > 0);
}

/// The list of what a session waits for is damaged: `pending` still prints the right rows, and `fsck` reports the
/// damage.
#[test]
fn a_list_that_shows_something_else_is_found() {
    let world = till(1);
    world.write(
        "till/steersman.yaml",
        "name: till\ntools:\n  ask_boss: { description: Asks the boss., parameters: { question: string }, ask: boss }\nagents: { boss: { person: { role: boss } }, desk: { system: You ask., tools: [ask_boss] } }\nentry: desk\n",
    );
    world.write(
        "script.yaml",
        "desk: [ { call: { ask_boss: { question: May I? } } } ]\n",
    );
    let ran = world.run(RUN);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let pending = world.run(&["pending"]).out;
    assert!(pending.contains("question ask_boss"), "{pending}");
    for damage in [
        "replace(waits, 'boss', 'bess')",
        "replace(waits, '\"effect\"', '\"effecu\"')",
        "'[]'",
        "''",
    ] {
        let conn = rusqlite::Connection::open(at(&world, "sessions.db")).unwrap();
        conn.execute_batch(&format!("UPDATE session SET waits = {damage}"))
            .unwrap();
        drop(conn);
        assert_eq!(world.run(&["pending"]).out, pending, "{damage}");
        let fsck = world.run(&["fsck"]);
        assert_eq!(fsck.code, Some(4), "{fsck:?}");
        assert!(
            fsck.out.contains("something else than what it waits for"),
            "{fsck:?}"
        );
    }
}

/// The table of events is damaged: a session that waits for an event goes on waiting, and `pending` reports the damage.
#[test]
fn a_box_that_cannot_be_read_ends_no_wait() {
    let world = World::new();
    world.write(
        "desk/steersman.yaml",
        "name: desk\nevents: { mail: { fields: { nr: string }, id: \"{{ event.nr }}\" } }\ntools: { letter: { description: Waits., wait: { event: mail, match: { nr: \"7\" }, timeout: 1h } } }\nagents: { desk: { system: You read mail., tools: [letter] } }\n",
    );
    world.write("script.yaml", "desk: [ { call: { letter: {} } }, Read. ]\n");
    let run = [
        "run",
        "desk",
        "--script-all",
        "script.yaml",
        "--input",
        "Wait.",
    ];
    assert_eq!(world.run(&run).code, Some(5));
    let file = at(&world, "sessions.db");
    let root = {
        let conn = rusqlite::Connection::open(&file).unwrap();
        let root = "SELECT rootpage FROM sqlite_master WHERE name = 'event'";
        conn.query_row(root, [], |r| r.get::<_, u32>(0)).unwrap() as usize
    };
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[(root - 1) * PAGE] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let resumed = world.run(RESUME);
    assert_eq!(resumed.code, Some(5), "{resumed:?}");
    let listed = world.run(&["pending"]);
    assert_eq!(listed.code, Some(4), "{listed:?}");
    assert!(listed.out.contains("letter"), "{listed:?}");
    assert!(listed.err.contains("table event"), "{listed:?}");
    let fields = "{\"nr\": \"7\"}";
    let script = ["--script-all", "script.yaml"];
    let send = [&["send", "last", "--event", "mail", fields][..], &script].concat();
    let sent = world.run(&send);
    assert_eq!(sent.code, Some(0), "{sent:?}");
}

/// While an owner waits for a tool, the folder of its store is renamed and another store takes its place. The owner
/// ends, and writes nothing to the other store.
#[test]
fn a_store_in_the_place_of_a_moved_one_is_left_alone() {
    let (world, other) = (till(1), paid());
    let sent = ["send", "last", "More?", "--no-run"];
    assert_eq!(other.run(&sent).code, Some(0));
    let owner = paying(&world, 1);
    let folder = world.folder.join(".steersman");
    std::fs::rename(&folder, world.folder.join("moved")).unwrap();
    std::fs::rename(other.folder.join(".steersman"), &folder).unwrap();
    world.write("till/go", "");
    let ended = owner.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(4), "{err}");
    assert!(err.contains("the file was moved to"), "{err}");
    assert!(err.contains("moved/sessions.db"), "{err}");
    assert!(!at(&world, "sessions.db-wal").exists());
    let ran = world.run(&sent);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for store in [".steersman/sessions.db", "moved/sessions.db"] {
        let fsck = world.run(&with(&["fsck"], store));
        assert_eq!(fsck.code, Some(0), "{fsck:?}");
    }
    let ran = world.run(&with(RESUME, "moved/sessions.db"));
    assert_eq!((ran.code, book(&world)), (Some(7), 1), "{ran:?}");
}

/// A trigger could delete acknowledged lines in the transaction that writes them, and an emptied copy looks like a new
/// store. Every command refuses both.
#[test]
fn what_others_made_of_a_store_is_told_by_every_command() {
    let world = paid();
    let conn = rusqlite::Connection::open(at(&world, "sessions.db")).unwrap();
    conn.execute_batch("CREATE TRIGGER t AFTER INSERT ON line BEGIN DELETE FROM line; END")
        .unwrap();
    drop(conn);
    let copy = world.folder.join("copy");
    std::fs::create_dir(&copy).unwrap();
    let copied = Command::new("cp")
        .arg("-a")
        .args([&at(&world, "."), &copy])
        .status();
    assert!(copied.unwrap().success());
    std::fs::write(copy.join("sessions.db"), "").unwrap();
    for (store, why) in [
        (".steersman/sessions.db", "a trigger `t` on `line`"),
        ("copy/sessions.db", "all that was written to it is missing"),
    ] {
        for command in [&["sessions"][..], &["fsck"], &["pending"], RUN, RESUME] {
            is_refused(&world.run(&with(command, store)), why);
        }
        is_refused(&world.run(&send(store)), why);
        let doctor = world.run(&with(&["doctor"], store));
        assert_eq!(doctor.code, Some(1), "{doctor:?}");
        assert!(doctor.out.contains(why), "{doctor:?}");
    }
    assert_eq!(book(&world), 3);
}
