//! Two processes and one session: one owns it. The other is refused as an owner, but can look at the session and act on
//! it.

use crate::world::{Service, World};
use std::process::Stdio;
use std::time::{Duration, Instant};

const SAID: &str = "My kettle (order 4711) arrived broken. I want my money back.";

#[test]
fn a_second_owner_is_refused_and_an_act_reaches_the_first() {
    let mut world = World::example("support");
    let service = Service::support(&mut world, true);
    let (code, _) = world.json(&[
        "run",
        "support",
        "--script-all",
        "support/script.yaml",
        "--input",
        SAID,
    ]);
    assert_eq!(code, Some(5));
    // The shop books the refund and does not answer: this process owns the session until it is killed.
    let mut owner = world
        .command(&["approve", "last", "--as", "supervisor"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while service.refunds() == 0 {
        assert!(began.elapsed() < Duration::from_secs(30), "it never paid");
        std::thread::yield_now();
    }
    let second = world.run(&["run", "--resume", "last"]);
    assert_eq!(second.code, Some(4), "{second:?}");
    assert!(second.err.contains(&owner.id().to_string()), "{second:?}");
    // Commands that only look need no owner.
    for look in ["show", "graph", "why"] {
        assert_eq!(world.run(&[look, "last"]).code, Some(0), "{look}");
    }
    // An act goes to the inbox, from which the owner takes it.
    let (code, told) = world.json(&["send", "last", "Is it done?", "--no-run"]);
    assert_eq!((code, &told["status"]), (Some(0), &"inbox".into()));
    owner.kill().unwrap();
    owner.wait().unwrap();
    // A dead owner does not keep the session.
    world.write(
        "after.yaml",
        "desk: [ never, never, It is done. ]\npolicy: [ never ]\n",
    );
    let (code, told) = world.json(&["run", "--resume", "last", "--script-all", "after.yaml"]);
    assert_eq!(
        (code, &told["answer"]),
        (Some(0), &"It is done.".into()),
        "{told}"
    );
    assert_eq!(service.refunds(), 1, "found by the probe, not repeated");
}
