//! Output that a newcomer reads: reasons for a change of mode, durations, mistakes in scripts and definitions,
//! differences of branches.

use crate::world::{Ran, World};

const MODES: &str = "name: worker
state:
  tired: { type: boolean, default: false }
tools:
  work: { description: Works., parameters: {}, set: { tired: true } }
  wake: { description: Wakes., parameters: {}, set: { tired: false } }
agents:
  worker:
    modes:
      up: { system: Work., tools: [work], exits: [ { after_calls: 3, to: finish } ] }
      bed: { system: Sleep., tools: [wake], exits: [ { when: not state.tired, to: up } ] }
    exits: [ { when: state.tired, to: bed } ]
";

fn scripted(world: &World, args: &[&str]) -> Ran {
    world.run(&[args, &["--script-all", "script.yaml"]].concat())
}

/// A change of mode is told with the condition that held. `finish` is not told as a mode.
#[test]
fn modes_are_told_by_what_changed_them() {
    let world = World::new();
    world.write("steersman.yaml", MODES);
    world.write(
        "script.yaml",
        "worker: [ { call: { work: {} } }, { call: { wake: {} } }, Up., { call: { work: {} } }, { call: { wake: {} } }, More. ]\n",
    );
    let ran = scripted(&world, &["run", "--input", "Go."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    insta::assert_snapshot!("modes_as_they_are_told", world.filter(&ran.err));
    let shown = world.run(&["show", "last"]).out;
    for told in ["because state.tired", "because not state.tired"] {
        assert!(
            ran.err.contains(told) && shown.contains(told),
            "{told}: {shown}"
        );
    }
    let page = world.run(&["why", "last@3"]).out;
    assert!(page.contains("because state.tired"), "{page}");
    assert!(!shown.contains("in finish"), "{shown}");
}

const SLOW: &str = r#"name: desk
tools:
  slow: { description: Takes time., effect: read, command: [sh, -c, "cat next > clock; echo ok"] }
agents: { desk: { system: You help., tools: [slow] } }
"#;

/// A call that is made again on a branch is told with the duration that it had there.
#[test]
fn a_branch_counts_no_time_that_passed_before_it_began() {
    let world = World::new();
    world.write("steersman.yaml", SLOW);
    world.write("script.yaml", "desk: [ { call: { slow: {} } }, Done. ]\n");
    world.write("clock", "2026-11-21T07:00:00Z");
    world.write("next", "2026-11-21T07:00:01Z");
    let at = ["--clock", "clock"];
    let ran = scripted(&world, &[&["run", "--input", "Go."][..], &at].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    world.write("next", "2026-11-21T08:00:02Z");
    for command in [
        &["fork", "last@slow", "--label", "f"][..],
        &["rewind", "last@slow"],
    ] {
        world.write("clock", "2026-11-21T08:00:01Z");
        world.write("steersman.yaml", SLOW);
        world.write("clock", "2026-11-21T09:30:00Z");
        world.write("late", "");
        let ran = scripted(&world, &[command, &at].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(
            !ran.err.contains("1 h") && !ran.err.contains(" min"),
            "{ran:?}"
        );
        assert!(ran.err.contains("slow = ok"), "{ran:?}");
        world.write("clock", "2026-11-21T08:00:02Z");
    }
}

#[test]
fn a_slip_of_the_pen_is_named_with_what_is_meant() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "name: a\nagents: { c: { system: You help. } }\n",
    );
    world.write("script.yaml", "c: [ Yes., { cal: { look: {} } } ]\n");
    let ran = scripted(&world, &["run", "--input", "Hi."]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("c, answer 2") && ran.err.contains("did you mean `call`?"),
        "{ran:?}"
    );
    assert!(!ran.err.contains("offline"), "{ran:?}");
    let faults = |text: &str| {
        world.write("steersman.yaml", text);
        let ran = world.run(&["check"]);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let told = ran.out + &ran.err;
        let lines = told.lines().filter(|line| line.starts_with("error["));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let compact = faults(
        "name: a\nagents: { c: { system: S., context: { compact: { when_tokens: abc } } } }\n",
    );
    assert_eq!(compact.len(), 1, "{compact:?}");
    let aging = faults(
        "name: a\ntools: { look: { description: L., effect: read, command: [date], render: { horizn: 3, stub: gone } } }\nagents: { c: { system: S., tools: [look] } }\n",
    );
    assert_eq!(aging.len(), 1, "{aging:?}");
    let mode = faults(
        "name: a\ntools: { note: { description: N., parameters: {} } }\nagents:\n  c:\n    modes:\n      a: { system: A., exits: [ { after_tool: note, to: b } ] }\n      b: { system: B., tools: [note] }\n",
    );
    assert!(
        mode[0].contains("`note` is not offered in the mode `a`"),
        "{mode:?}"
    );
    world.write(
        "steersman.yaml",
        "name: a\nstate: { n: { type: integer, default: 1 } }\ntools: { t: { description: T., parameters: {}, requires: \"state.n + 'x' == 3\" } }\nagents: { c: { system: S., tools: [t] } }\n",
    );
    let ran = world.run(&["check"]);
    let told = ran.out + &ran.err;
    assert!(told.contains("unlike kinds have no sum"), "{told}");
    world.write(
        "steersman.yaml",
        "name: a\nagents: { c: { system: S. }, d: { system: S., limits: { model_calls: 3 } } }\nentry: [c, d]\n",
    );
    let told = world.run(&["check"]);
    let told = told.out + &told.err;
    assert!(
        told.contains("c: 50 model calls") && told.contains("d: 3 model calls"),
        "{told}"
    );
}

const PRESS: &str = "name: press
tools:
  note: { description: Notes., parameters: { text: string } }
agents:
  desk: { system: You write., tools: [artifacts, note, helper] }
  helper: { description: Helps., system: You help. }
entry: desk
";

/// `diff` of two branches tells what each has alone, and tells nothing twice.
#[test]
fn two_branches_are_compared_by_what_each_has() {
    let world = World::new();
    world.write("steersman.yaml", PRESS);
    let long = "word ".repeat(60);
    world.write(
        "script.yaml",
        &format!(
            "desk:\n  - call: {{ artifact_write: {{ name: report.md, content: Short. }} }}\n  - First.\n  - Second.\n  - Joined.\n  - More.\ndesk@one:\n  - call: {{ artifact_write: {{ name: report.md, content: \"{long}\" }} }}\n  - Extra.\n  - Second.\n"
        ),
    );
    assert_eq!(scripted(&world, &["run", "--input", "Go."]).code, Some(0));
    let fork = ["fork", "last", "--say", "Once more.", "--label", "one"];
    assert_eq!(scripted(&world, &fork).code, Some(0));
    assert_eq!(
        scripted(&world, &["send", "last:one", "And?"]).code,
        Some(0)
    );
    assert_eq!(scripted(&world, &["send", "last", "And?"]).code, Some(0));
    let rate = [
        "artifacts",
        "last",
        "report.md",
        "--rate",
        "2",
        "--reason",
        "thin",
    ];
    let rated = world.run(&rate);
    assert!(
        rated
            .err
            .contains("the rating of `report.md` is 2 of 5 now: thin"),
        "{rated:?}"
    );
    let page = world.page(&["diff", "last", "last:one"]);
    assert!(!page.contains("@person"), "{page}");
    insta::assert_snapshot!(page);
    let shown = world.run(&["show", "last"]);
    let rewind = ":one@head   continues with this branch, and leaves behind";
    assert!(shown.err.contains(rewind), "{shown:?}");
    assert_eq!(
        scripted(&world, &["fork", "last", "--label", "two"]).code,
        Some(0)
    );
    let ran = scripted(&world, &["join", "last", "two"]);
    // The branch got no message: no agent works there, and the join ends at once.
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let page = world.page(&["diff", "last", "last:two"]);
    assert!(page.contains(r#"call join {"branches":["two"]}"#), "{page}");
}

const JUDGED: &str = "name: desk
state: { list: { type: [string], default: [] }, approved: { type: boolean, default: true } }
agents:
  desk: { system: You write., reflect: { by: critic, rounds: 1 } }
  critic: { description: Judges., system: You judge. }
entry: desk
";

/// `why` says why a draft is the answer: its rounds were used up, or another limit was reached.
#[test]
fn why_a_draft_is_the_answer_is_said() {
    for (limits, told) in [
        ("", "not judged again: its rounds were used up"),
        (
            ", limits: { model_calls: 1 }",
            "last draft: the limit `model_calls` was reached",
        ),
    ] {
        let world = World::new();
        let judged = JUDGED.replace("rounds: 1 }", &format!("rounds: 1 }}{limits}"));
        world.write("steersman.yaml", &judged);
        world.write(
            "script.yaml",
            "desk: [ Draft., Better. ]\ncritic: [ { revise: More. } ]\n",
        );
        let ran = scripted(&world, &["run", "--input", "Write."]);
        let why = world.run(&["why", "last"]).out;
        let words: Vec<&str> = why.split_whitespace().collect();
        assert!(words.join(" ").contains(told), "{told}: {ran:?} {why}");
    }
}

/// `show` of a line shows the session as it was there, without the status, labels and commands of today. A failure is
/// not shown as an answer.
#[test]
fn a_line_is_shown_as_it_was() {
    let world = World::new();
    let wide = "the first entry of a list that is so long that all of it fits in no row";
    world.write(
        "steersman.yaml",
        &JUDGED.replace("default: []", &format!("default: [ {wide}, b ]")),
    );
    world.write(
        "script.yaml",
        "desk: [ Draft. ]\ncritic: [ { accept: true } ]\n",
    );
    assert_eq!(
        scripted(&world, &["run", "--input", "Write."]).code,
        Some(0)
    );
    let fork = ["fork", "last", "--say", "More.", "--label", "b"];
    let ran = scripted(&world, &fork);
    assert!(
        ran.err.contains("the script has 1 answer for `desk`"),
        "{ran:?}"
    );
    let diff = world.page(&["diff", "last", "last:b"]);
    assert!(
        diff.contains("failed") && !diff.contains("answers"),
        "{diff}"
    );
    insta::assert_snapshot!(world.page(&["show", "last:main@2"]));
    let state = world.run(&["show", "last:main"]).out;
    let rows: Vec<&str> = state
        .lines()
        .filter(|row| row.contains("approved"))
        .collect();
    assert_eq!(rows.len(), 1, "{state}");
    assert!(
        rows[0].ends_with("approved true") && !rows[0].contains("list"),
        "{state}"
    );
}
