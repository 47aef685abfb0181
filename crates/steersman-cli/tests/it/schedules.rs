//! Schedules of a store: what the program puts there, begins and shows.

use crate::docs::blocks;
use crate::hostile::on_terminal_of;
use crate::world::{self, World};
use std::process::Stdio;

const CLERK: &str = r#"name: clerk
timezone: Europe/Oslo
schedules:
  nightly: { cron: "30 6 * * *", start: { message: "The day is {{ schedule.date }}." } }
  hourly: { every: 1h, start: { message: "Look." } }
agents: { clerk: { system: You look. } }
"#;

fn clerk() -> World {
    let world = World::new();
    world.write("steersman.yaml", CLERK);
    world.write("script.yaml", "clerk: [ Nothing new. ]");
    world.write("clock", "2026-11-27T10:30:00Z");
    world
}

const CLOCK: [&str; 2] = ["--clock", "clock"];
const DRIVE: [&str; 7] = [
    "run",
    "--all",
    "--until-idle",
    "--clock",
    "clock",
    "--script-all",
    "script.yaml",
];

#[test]
fn schedules_are_put_into_the_store_begun_shown_and_deleted() {
    let world = clerk();
    let put = world.run(&[&["schedule", "."][..], &CLOCK].concat());
    assert_eq!(put.code, Some(0), "{put:?}");
    let rows: Vec<&str> = put.out.lines().collect();
    assert_eq!(
        rows,
        [
            "SCHEDULE  NETWORK  NEXT              LAST  MISSED  TIMES",
            "hourly    clerk    2026-11-27 12:00  -     0       every 1h Europe/Oslo",
            "nightly   clerk    2026-11-28 06:30  -     0       30 6 * * * Europe/Oslo",
        ]
    );
    let idle = world.run(&DRIVE);
    assert_eq!(
        (idle.code, idle.out.as_str()),
        (Some(0), "0/0, 0.0000\n"),
        "{idle:?}"
    );

    // The machine slept a day.
    world.write("clock", "2026-11-28T10:30:00Z");
    let idle = world.run(&DRIVE);
    assert_eq!(idle.code, Some(0), "{idle:?}");
    assert!(idle.out.contains("2/2, 0.0000"), "{idle:?}");
    let missed: Vec<&str> = idle
        .out
        .lines()
        .filter(|row| row.contains("missed"))
        .collect();
    let [missed] = missed[..] else {
        panic!("{idle:?}");
    };
    let told = "schedule hourly, due 2026-11-28T10:00:00Z; 23 times before it were missed";
    assert!(missed.contains(told), "{missed}");

    for command in ["sessions", "schedule"] {
        let shown = world.run(&[command]).out;
        for row in [
            "hourly    clerk    2026-11-28 12:00  2026-11-28 11:00  23      every 1h Europe/Oslo",
            "nightly   clerk    2026-11-29 06:30  2026-11-28 06:30  0       30 6 * * * Europe/Oslo",
        ] {
            assert!(shown.contains(row), "{command}: {shown}");
        }
    }
    let listed = world.run(&["schedule", "--json"]).out;
    let first: serde_json::Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    assert_eq!(first["schedule"], "hourly");
    assert_eq!(first["rule"], "every 1h");
    assert_eq!(first["next"], "2026-11-28T11:00:00Z");
    assert_eq!(first["missed"], 23);

    // A definition that only a schedule names stays.
    let swept = world.run(&["gc", "--yes"]);
    assert_eq!(swept.code, Some(0), "{swept:?}");
    world.write("clock", "2026-11-28T11:00:00Z");
    let idle = world.run(&DRIVE);
    assert!(idle.out.contains("1/1"), "{idle:?}");

    let dropped = world.run(&["schedule", "--drop", "clerk"]);
    assert_eq!(dropped.code, Some(0), "{dropped:?}");
    let none = world.run(&["schedule"]);
    assert!(none.err.contains("No schedules in "), "{none:?}");
    world.write("clock", "2026-11-29T11:00:00Z");
    let idle = world.run(&DRIVE);
    assert!(idle.out.contains("0/0"), "{idle:?}");
}

/// Each time begins one session, however many processes drive the store.
#[test]
fn two_processes_begin_one_session_for_each_time() {
    let world = clerk();
    let put = world.run(&[&["schedule", "."][..], &CLOCK].concat());
    assert_eq!(put.code, Some(0), "{put:?}");
    for hour in 11..15 {
        world.write("clock", &format!("2026-11-27T{hour}:30:00Z"));
        let both = [(); 2].map(|()| {
            let mut command = world.command(&DRIVE);
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        });
        for mut process in both {
            assert!(process.wait().unwrap().success());
        }
        let sessions = world.json_lines(&["sessions"]);
        let begun = sessions.iter().filter(|row| row["session"].is_string());
        assert_eq!(begun.count(), hour - 10, "{sessions:?}");
        assert!(
            sessions.iter().all(|row| row["status"] != "failed"),
            "{sessions:?}"
        );
    }
}

#[test]
fn tables_of_schedules_fit_the_terminal() {
    let world = clerk();
    let put = world.run(&[&["schedule", "."][..], &CLOCK].concat());
    assert_eq!(put.code, Some(0), "{put:?}");
    for width in [60, 80, 120, 200] {
        let shown = on_terminal_of(&world, width, &["schedule"]);
        assert!(shown.contains("nightly"), "{shown}");
        for row in shown.lines() {
            let plain = row.replace("\u{1b}[2m", "").replace("\u{1b}[0m", "");
            assert!(
                plain.trim_end().chars().count() <= width,
                "{width}: {row:?}"
            );
        }
    }
}

#[test]
fn what_cannot_be_scheduled_is_refused_with_help() {
    let world = clerk();
    world.write("plain.yaml", "agents: { clerk: { system: You look. } }");
    world.write("wrong.yaml", &CLERK.replace("30 6", "30 26"));
    for (args, code, wanted) in [
        (
            &["schedule", "plain.yaml"][..],
            2,
            "`plain` has no `schedules`",
        ),
        (&["schedule", "wrong.yaml"], 3, "`26` is no hour (0-23)"),
        (&["schedule", ".", "--drop", "clerk"], 2, "--drop"),
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(code), "{args:?}: {ran:?}");
        assert!(ran.err.contains(wanted), "{args:?}: {ran:?}");
    }
    let put = world.run(&["schedule", "."]);
    assert_eq!(put.code, Some(0), "{put:?}");
    let ran = world.run(&["schedule", "--drop", "clrk"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("no schedule of `clrk` is in the store"),
        "{ran:?}"
    );
    assert!(ran.err.contains("steersman schedule"), "{ran:?}");
}

/// A single time begins one session, also if nobody was there then. Stored again, it does not come again.
#[test]
fn a_single_time_begins_one_session() {
    let world = clerk();
    let text = CLERK.replace("cron: \"30 6 * * *\"", "at: 2026-12-24 18:00");
    let text = text.replace(
        "  hourly: { every: 1h, start: { message: \"Look.\" } }\n",
        "",
    );
    world.write("steersman.yaml", &text);
    let check = world.run(&["check"]).out;
    assert!(
        check.contains("at 2026-12-24 18:00 (Europe/Oslo)"),
        "{check}"
    );
    let put = world.run(&[&["schedule", "."][..], &CLOCK].concat()).out;
    let row = "nightly   clerk    2026-12-24 18:00  -     0       at 2026-12-24 18:00 Europe/Oslo";
    assert!(put.contains(row), "{put}");
    world.write("clock", "2026-12-26T10:30:00Z");
    let idle = world.run(&DRIVE);
    assert!(idle.out.contains("1/1, 0.0000"), "{idle:?}");
    assert!(!idle.out.contains("missed"), "{idle:?}");
    let again = world.run(&[&["schedule", "."][..], &CLOCK].concat()).out;
    assert!(again.contains("nightly   clerk    -"), "{again}");
    world.write("clock", "2028-12-26T10:30:00Z");
    let idle = world.run(&DRIVE);
    assert!(idle.out.contains("0/0"), "{idle:?}");
}

/// The guide to patterns shows what `schedule` prints.
#[test]
fn the_guide_to_patterns_shows_its_schedules() {
    let page = world::root().join("docs/guides/patterns.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = blocks(&page);
    let definition = blocks
        .iter()
        .find(|block| block.file.as_deref() == Some("nightly.yaml"));
    let world = World::new();
    world.write("nightly.yaml", &definition.expect("it is shown").text);
    world.write("clock", "2026-11-27T10:30:00Z");
    let put = world.run(&[&["schedule", "nightly.yaml"][..], &CLOCK].concat());
    let shown = blocks.iter().find_map(|block| {
        block
            .text
            .strip_prefix("$ steersman schedule nightly.yaml\n")
    });
    let shown = shown.expect("the page has it");
    let rows: Vec<&str> = shown
        .lines()
        .filter(|row| !row.starts_with("Next:"))
        .collect();
    assert_eq!(put.out.lines().collect::<Vec<_>>(), rows, "{put:?}");
}
