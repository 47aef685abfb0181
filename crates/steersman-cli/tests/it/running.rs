//! Lists and views tell of a session while it runs, and after its process was killed.

use crate::world::World;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const DESK: &str = r#"name: desk
tools:
  look: { description: Looks., effect: read, timeout: 10m, command: [sh, -c, "touch begun; cat gate"] }
agents: { desk: { system: You settle., tools: [look] } }
"#;
const SCRIPT: &str = "desk: [ { call: { look: {} } }, Seen. ]\n";

/// A session whose tool runs until somebody writes into `gate`.
fn looking(world: &World) -> Child {
    world.write("steersman.yaml", DESK);
    world.write("script.yaml", SCRIPT);
    let made = Command::new("mkfifo")
        .arg(world.folder.join("gate"))
        .status();
    assert!(made.unwrap().success());
    begun(world)
}

/// Runs the definition until its tool has begun.
fn begun(world: &World) -> Child {
    let run = world
        .command(&["run", "--script-all", "script.yaml", "--input", "Go."])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while !world.folder.join("begun").exists() {
        assert!(began.elapsed() < Duration::from_mins(1), "nothing begins");
        std::thread::yield_now();
    }
    run
}

/// The sums are those of the lines so far, in lists and in filters, whether or not the session came to rest.
#[test]
fn a_session_that_runs_or_was_killed_has_its_sums_and_its_effects() {
    let world = World::new();
    let mut run = looking(&world);
    let sums = |status: &str| {
        // A `read` tool may begin before the answer that asked for it is on disk.
        let began = Instant::now();
        let all = loop {
            let all = world.json_lines(&["sessions", "--where", "tokens > 0"]);
            if !all.is_empty() || began.elapsed() > Duration::from_mins(1) {
                break all;
            }
        };
        assert_eq!(all.len(), 1, "{status}: {all:?}");
        assert_eq!(all[0]["status"], status, "{all:?}");
        assert_eq!(all[0]["model_calls"], 1, "{all:?}");
        let (_, shown) = world.json(&["show", "last"]);
        assert_eq!(all[0]["tokens"], shown["tokens"], "{all:?} {shown:#}");
    };
    let stands = |word: &str| {
        let effects = world.json_lines(&["effects", "last"]);
        assert_eq!(effects[0]["standing"], word, "{effects:?}");
        let told = world.run(&["effects", "last"]);
        assert!(told.out.contains(word), "{told:?}");
    };
    sums("running");
    stands("running");
    run.kill().unwrap();
    run.wait().unwrap();
    sums("interrupted");
    stands("not finished");
    assert_eq!(world.run(&["fsck"]).code, Some(0));
    // Nothing is at work without a process.
    let (_, timeline) = world.json(&["timeline", "last"]);
    let spans = timeline["lanes"][0]["spans"].as_array().unwrap();
    let open: Vec<&str> = spans
        .iter()
        .filter(|span| span["open"] == true)
        .filter_map(|span| span["what"].as_str())
        .collect();
    assert_eq!(open, ["unowned"], "{timeline:#}");
    let drawn = world.run(&["timeline", "last"]);
    assert!(drawn.all().contains("x no process drove it"), "{drawn:?}");
}

/// `show` names a line by a tool, and each command that it prints can be typed: names of tools on MCP servers have a dot.
#[test]
fn the_line_of_a_tool_with_a_dot_is_an_address() {
    let world = World::example("research");
    world.write(
        "steersman.yaml",
        "name: desk\nmcp: { library: { command: [steersman, example-service, research, --notes, notes], effect: read } }\n\
         agents: { desk: { system: You search., tools: [library.search] } }\n",
    );
    world.write(
        "one.yaml",
        "desk: [ { call: { library.search: { query: lamps } } }, Read. ]\n",
    );
    let ran = world.run(&[
        "run",
        "--script-all",
        "one.yaml",
        "--input",
        "What do lamps cost?",
        "--json",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = world.run(&["show", "last"]);
    let mut typed = shown.err.lines().map(|row| row.split("   ").next());
    let typed = typed.find_map(|command| command.filter(|c| c.contains("@library.search")));
    let typed = typed.unwrap_or_else(|| panic!("{shown:?}"));
    let context = world.shell(typed);
    assert_eq!(context.code, Some(0), "{context:?}");
    assert!(context.out.contains("What do lamps cost?"), "{context:?}");
}

/// A refused act may have taken up the session, to ask it: the command shows what it wrote there.
#[test]
fn a_refused_act_says_that_it_took_up_the_session() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        r#"name: desk
state: { receipt: { type: string, optional: true } }
tools: { pay: { description: Pays., effect: unsafe, set: { receipt: "{{ result.id }}" }, command: [sh, -c, "touch begun; cat gate"] } }
agents: { desk: { system: You pay., tools: [pay] } }
"#,
    );
    world.write("script.yaml", "desk: [ { call: { pay: {} } }, Paid. ]\n");
    let made = Command::new("mkfifo")
        .arg(world.folder.join("gate"))
        .status();
    assert!(made.unwrap().success());
    let mut run = begun(&world);
    run.kill().unwrap();
    run.wait().unwrap();
    let ran = world.run(&["run", "--resume", "last"]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    let before = world.json(&["show", "last"]).1["line"].clone();
    let ran = world.run(&["resolve", "last", "--done"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let now = world.json(&["show", "last"]).1["line"].clone();
    assert_ne!(before, now, "the refusal is a line of the new owner");
    let told = format!("took up the session to ask it, and let it go again at line {now}");
    assert!(ran.err.contains(&told), "{ran:?}");
    assert!(ran.err.contains(&format!("@{now}")), "{ran:?}");
    let ran = world.run(&["resolve", "last", "--done={\"id\": \"r-1\"}"]);
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Paid."), "{ran:?}");
}
