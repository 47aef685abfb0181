//! Disks that refuse writes: full, read-only, or with a limit on files. Some tests mount a file system;
//! `cargo xtask ci` runs them and needs the right to mount.

use crate::world::World;
use std::path::Path;
use std::process::Command;
use steersman_adapters::sqlite::SqliteStore;
use steersman_runtime::store::{Lists as _, SessionQuery};

const SAID: &str = "Why was the shop down last night?";

/// A mounted file system. It is unmounted when this is dropped.
struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    fn mount(at: &'a Path, options: &str) -> Self {
        std::fs::create_dir_all(at).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(at)
            .output();
        let mounted = mounted.expect("there is a `mount`");
        assert!(mounted.status.success(), "{mounted:?}");
        Self(at)
    }

    fn remount(&self, options: &str) {
        let status = Command::new("mount")
            .args(["-o", &format!("remount,{options}")])
            .arg(self.0)
            .status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
#[ignore = "mounts a file system of its own: needs to be root"]
fn a_full_disk_is_said_and_nothing_is_lost() {
    let world = World::example("react");
    let at = world.folder.join("small");
    let disk = Disk::mount(&at, "size=4m");
    let store = at.join("sessions.db");
    let store = store.to_str().unwrap();
    let args = [
        "run",
        "react",
        "--script-all",
        "react/script.yaml",
        "--input",
        SAID,
        "--store",
        store,
    ];
    let first = world.run(&args);
    // The limit of six calls is reached, and it answers.
    assert_eq!(first.code, Some(6), "{first:?}");
    // Fill the rest of the disk.
    let filler = std::fs::write(at.join("filler"), vec![7_u8; 8 << 20]);
    assert!(filler.is_err());
    let mut refused = None;
    for _ in 0..200 {
        let ran = world.run(&args);
        if ran.code != Some(6) {
            refused = Some(ran);
            break;
        }
    }
    let refused = refused.expect("a full disk refuses at some time");
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(!refused.err.contains("panicked"), "{refused:?}");
    // All that was acknowledged is there, and with free space new sessions start again.
    std::fs::remove_file(at.join("filler")).unwrap();
    let shown = world.run(&["sessions", "--all", "--json", "--store", store]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.out.contains("\"limit\""), "{shown:?}");
    let again = world.run(&args);
    assert_eq!(again.code, Some(6), "{again:?}");
    drop(disk);
}

#[test]
#[ignore = "mounts a file system of its own: needs to be root"]
fn a_read_only_store_can_be_looked_at_and_refuses_the_rest() {
    let world = World::example("react");
    let at = world.folder.join("locked");
    let disk = Disk::mount(&at, "size=8m");
    let store = at.join("sessions.db");
    let store = store.to_str().unwrap();
    let args = [
        "run",
        "react",
        "--script-all",
        "react/script.yaml",
        "--input",
        SAID,
        "--store",
        store,
    ];
    assert_eq!(world.run(&args).code, Some(6));
    disk.remount("ro");
    let refused = world.run(&args);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    let shown = world.run(&["show", "last", "--store", store]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let refused = world.run(&["send", "last", "And now?", "--store", store]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
}

#[test]
#[ignore = "mounts a file system of its own: needs to be root"]
fn a_second_owner_is_refused_through_a_bind_mount() {
    crate::store::a_second_owner_is_refused_through_a_bind_mount();
}

#[test]
fn what_is_no_store_is_left_alone() {
    let world = World::example("react");
    let before = "this is a letter, not a database";
    world.write("letter.db", before);
    let ran = world.run(&[
        "run",
        "react",
        "--script-all",
        "react/script.yaml",
        "--input",
        SAID,
        "--store",
        "letter.db",
    ]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let after = std::fs::read_to_string(world.folder.join("letter.db")).unwrap();
    assert_eq!(after, before);
    for command in ["sessions", "pending"] {
        let ran = world.run(&[command, "--store", "nowhere/at/all.db"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let told = "`nowhere/at/all.db` does not exist";
        assert!(ran.err.contains(told), "{ran:?}");
    }
    assert!(
        !world.folder.join("nowhere").exists(),
        "looking makes nothing"
    );
}

/// A limit on the size of files (`ulimit -f`) is reported like a full disk, at whichever write it takes effect.
#[test]
#[cfg(unix)]
fn a_file_that_may_not_grow_is_said_and_nothing_is_lost() {
    let mut told = 0;
    for blocks in [1, 40, 80, 160, 240, 320, 480] {
        let world = World::example("react");
        let typed = "run react --script-all react/script.yaml --input Why? --store sessions.db";
        let ran = world.shell(&format!("ulimit -f {blocks}; steersman {typed}"));
        assert!(ran.code.is_some_and(|code| code < 128), "{blocks}: {ran:?}");
        if ran.err.contains("error:") {
            told += 1;
            assert_eq!(ran.code, Some(4), "{blocks}: {ran:?}");
        }
        if world.folder.join("sessions.db").exists() {
            let verified = world.run(&["fsck", "--store", "sessions.db"]);
            let nothing = verified.err.contains("there is nothing in it yet");
            assert!(
                verified.code == Some(0) || nothing,
                "{blocks}: {verified:?}"
            );
        }
    }
    assert!(told > 1, "{told}");
}

/// A container that makes backups sees the folder of a service read-only. When the service changes the store, a handle
/// that is open there reports it, and never reads a mixture of two states.
#[test]
#[ignore = "mounts a file system of its own: needs to be root"]
fn a_store_that_is_read_only_here_and_changed_elsewhere_gives_no_mixture() {
    let world = World::example("react");
    let (at, there) = (world.folder.join("service"), world.folder.join("sidecar"));
    let disk = Disk::mount(&at, "size=16m");
    std::fs::create_dir_all(&there).unwrap();
    let bind = |args: &[&str]| {
        let status = Command::new("mount").args(args).arg(&there).status();
        assert!(status.unwrap().success());
    };
    bind(&["--bind", at.to_str().unwrap()]);
    let bound = Disk(&there);
    bind(&["-o", "remount,bind,ro"]);
    let store = at.join("sessions.db");
    let args = [
        "run",
        "react",
        "--script-all",
        "react/script.yaml",
        "--input",
        SAID,
        "--store",
        store.to_str().unwrap(),
    ];
    assert_eq!(world.run(&args).code, Some(6));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let seen = SqliteStore::open(there.join("sessions.db")).unwrap();
        let all = SessionQuery::default();
        assert_eq!(seen.sessions(&all).await.unwrap().len(), 1);
        seen.backup(&world.folder.join("one.db")).await.unwrap();
        assert_eq!(world.run(&args).code, Some(6));
        let refused = seen.sessions(&all).await.unwrap_err();
        assert!(
            refused.to_string().contains("changed from elsewhere"),
            "{refused}"
        );
        let again = SqliteStore::open(there.join("sessions.db")).unwrap();
        assert_eq!(again.sessions(&all).await.unwrap().len(), 2);
        again.backup(&world.folder.join("two.db")).await.unwrap();
    });
    drop((bound, disk));
}
