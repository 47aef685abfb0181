//! A process waits for the effects that it started before it ends, also for those that a rewind left.

use crate::world::World;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const DESK: &str = r#"name: desk
tools:
  pay: { description: Pays., effect: unsafe, timeout: 10m, command: [sh, -c, "touch begun; cat gate; echo paid >> book; echo ok"] }
  look: { description: Looks., effect: read, timeout: 10m, command: [cat, door] }
agents: { desk: { system: You settle., tools: [pay, look] } }
"#;

/// Waits until the file exists.
fn until(world: &World, file: &str) {
    let began = Instant::now();
    while !world.folder.join(file).exists() {
        assert!(began.elapsed() < Duration::from_mins(1), "no {file}");
        std::thread::yield_now();
    }
}

#[test]
fn a_payment_that_a_rewind_left_is_not_cut_when_the_command_ends() {
    for leaves_at_once in [false, true] {
        let world = World::new();
        world.write("steersman.yaml", DESK);
        world.write(
            "script.yaml",
            "desk: [ { call: { pay: {} } }, Paid. ]\ndesk@other: [ { call: { look: {} } }, Otherwise. ]\n",
        );
        let (gate, door) = (world.folder.join("gate"), world.folder.join("door"));
        let made = Command::new("mkfifo").args([&gate, &door]).status();
        assert!(made.unwrap().success());
        let mut run = world
            .command(&["run", "--script-all", "script.yaml", "--input", "Go."])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until(&world, "begun");
        // The owner takes the rewind, and tells its result: this command does not wait for the branch.
        let ran = world.run(&["rewind", "last@1", "--label", "other", "--json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let taken = serde_json::from_str::<serde_json::Value>(&ran.out).unwrap();
        assert_eq!(taken["status"], "taken", "{ran:?}");
        std::fs::write(&door, "open").unwrap();
        let mut said = String::new();
        let mut err = BufReader::new(run.stderr.take().unwrap());
        while !said.contains("Ctrl-C leaves at once") {
            assert!(err.read_line(&mut said).unwrap() > 0, "it ended: {said}");
        }
        assert!(!world.folder.join("book").exists());
        if leaves_at_once {
            let id = run.id().to_string();
            let sent = Command::new("kill").args(["-INT", &id]).status().unwrap();
            assert!(sent.success());
        } else {
            std::fs::write(&gate, "go").unwrap();
        }
        let ended = run.wait_with_output().unwrap();
        let out = String::from_utf8(ended.stdout).unwrap();
        let effects = world.run(&["effects", "last"]);
        if leaves_at_once {
            assert_eq!(ended.status.code(), Some(130), "{said}");
            assert!(effects.err.contains("1 intended, 0 done"), "{effects:?}");
        } else {
            assert_eq!((ended.status.code(), &*out), (Some(0), "Otherwise.\n"));
            let book = std::fs::read_to_string(world.folder.join("book")).unwrap();
            assert_eq!(book, "paid\n");
            assert!(
                effects.err.contains("1 intended, 1 done, 0 repeated"),
                "{effects:?}"
            );
            assert_eq!(effects.code, Some(0), "{effects:?}");
        }
    }
}
