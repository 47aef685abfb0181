//! Screens that operators read: rows that fit the screen, times, reasons, sums, progress.

use crate::hostile::{on_terminal_of, server, typed_on_terminal_of};
use crate::network;
use crate::world::World;
use serde_json::json;
use std::process::Stdio;

/// A desk that asks for an approval with long arguments, and says much.
const DESK: &str = r#"name: desk
tools:
  look: { description: Looks., parameters: { what: string }, effect: read, command: [echo, "{{ args.what }}"] }
  pay: { description: Pays., parameters: { to: string, about: string }, effect: unsafe, approve: { when: "true" }, command: [echo, ok] }
agents:
  desk: { system: You settle., tools: [look, pay] }
"#;

/// A desk with a session that waits, and one that answered at length.
fn desk() -> World {
    let world = World::new();
    world.write("steersman.yaml", DESK);
    let words = "one two three four five six seven eight nine ten ".repeat(500);
    world.write(
        "script.yaml",
        &format!(
            "desk:\n  - {{ text: \"{}\", call: {{ look: {{ what: \"{}\" }} }} }}\n  - {{ call: {{ pay: {{ to: anna, about: \"{}\" }} }} }}\n  - Paid.\n",
            words.trim(),
            "the letter of monday ".repeat(20),
            "a very long reason ".repeat(20),
        ),
    );
    let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "Pay anna."]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    world
}

/// The rows of a command's data on a terminal of this width, without colours.
fn rows(world: &World, width: usize, args: &[&str]) -> Vec<String> {
    plain(&on_terminal_of(world, width, args))
}

/// The rows on a terminal without colours. A status that replaces another one is a row of its own.
fn plain(shown: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut rest = shown;
    while let Some(at) = rest.find('\u{1b}') {
        plain.push_str(&rest[..at]);
        let end = rest[at..].find(|c: char| c.is_ascii_alphabetic());
        rest = &rest[at + end.unwrap() + 1..];
    }
    plain.push_str(rest);
    plain
        .lines()
        .flat_map(|line| line.trim_end_matches('\r').split('\r'))
        .map(|line| line.trim_end().to_owned())
        .collect()
}

#[test]
fn rows_boxes_and_tables_fit_the_terminal() {
    let world = desk();
    for width in [60, 80, 120, 200] {
        for args in [
            &["show", "last"][..],
            &["show", "last", "--full"],
            &["show", "last", "--times"],
            &["sessions"],
            &["pending"],
            &["effects", "last"],
            &["why", "last"],
            &["graph", "."],
        ] {
            let rows = rows(&world, width, args);
            let longest = rows.iter().map(|row| row.chars().count()).max().unwrap();
            let wide: Vec<_> = rows
                .iter()
                .filter(|row| row.chars().count() > width)
                .collect();
            assert!(wide.is_empty(), "{args:?} at {width}: {wide:#?}");
            // A row that is cut or wrapped fills its room.
            if ["show", "pending", "effects"].contains(&args[0]) {
                assert!(
                    longest + 12 > width,
                    "{args:?} at {width}: {longest}, {rows:#?}"
                );
            }
        }
    }
    // A file has the same width, whatever the terminal.
    let file = world.run(&["show", "last"]).out;
    assert!(file.lines().all(|row| row.chars().count() <= 90), "{file}");
    assert!(file.lines().any(|row| row.chars().count() == 88), "{file}");
}

/// Commands whose output people take as a whole, or a program reads.
const WHOLE: [&str; 6] = ["completions", "export", "import", "lsp", "mcp", "schema"];

/// All that any command says on a narrow terminal fits it, but for commands to copy.
#[test]
fn what_any_command_says_fits_a_narrow_terminal() {
    let world = network::desk();
    let mut wide = Vec::new();
    for typed in network::COMMANDS {
        let name = typed.split(' ').next().unwrap();
        if WHOLE.contains(&name) {
            continue;
        }
        let live = if name == "top" {
            " --every 250ms --refreshes 1"
        } else {
            ""
        };
        // A server ends when it is told to.
        let ended = if name == "serve" { "timeout 1 " } else { "" };
        let typed = format!("{ended}steersman {typed}{live} </dev/null");
        for row in plain(&typed_on_terminal_of(&world, 60, &typed)) {
            if row.chars().count() > 60 && !row.contains("steersman ") {
                wide.push(format!("{typed}: {row}"));
            }
        }
    }
    assert!(wide.is_empty(), "{wide:#?}");
}

/// A list of many tools is folded on a terminal, below its beginning. A pipe has it on one row.
#[test]
fn a_long_list_goes_on_below_its_beginning() {
    let world = World::new();
    let tools: Vec<String> = (0..100)
        .map(|n| {
            format!("  look_{n}: {{ description: Looks., effect: read, command: [\"true\"] }}\n")
        })
        .collect();
    let names: Vec<String> = (0..100).map(|n| format!("look_{n}")).collect();
    world.write(
        "steersman.yaml",
        &format!(
            "tools:\n{}agents: {{ desk: {{ system: You look., tools: [{}] }} }}\n",
            tools.concat(),
            names.join(", ")
        ),
    );
    let rows = rows(&world, 60, &["check"]);
    let first = rows
        .iter()
        .position(|row| row.starts_with("  read "))
        .unwrap();
    assert!(rows.len() > 20, "{rows:#?}");
    assert!(
        rows[first + 1].starts_with("              look_"),
        "{rows:#?}"
    );
    assert!(
        rows.iter().all(|row| row.chars().count() <= 60),
        "{rows:#?}"
    );
    let piped = world.run(&["check"]).out;
    assert!(
        piped
            .lines()
            .any(|row| row.contains("look_0, ") && row.contains("look_99")),
        "{piped}"
    );
}

/// `check` counts each limit that may end an answer.
#[test]
fn the_worst_case_has_the_limits_of_the_session_and_of_agents() {
    let world = World::new();
    let agents = |limits: &str| format!("agents: {{ desk: {{ system: You help.{limits} }} }}\n");
    let session = "limits: { model_calls: { max: 1, per: session, on_limit: fail } }\n";
    for (definition, wanted) in [
        (
            format!("{session}{}", agents("")),
            "1 model call a session, then it fails\n              2,000,000 tokens a session\n",
        ),
        (
            format!(
                "limits: {{ model_calls: {{ max: 40, per: session }} }}\n{}",
                agents(", limits: { model_calls: 5, tokens: 1000, wall_time: 2m }")
            ),
            "5 model calls an answer, then a forced answer; of all agents 40 model calls a session, then a forced answer\n              \
             1,000 tokens a session; 2 min a session\n",
        ),
        (
            // A router's own limit counts what its members do.
            "agents:\n  desk: { system: You help., description: Helps. }\n  \
             team: { route: { sequence: [desk] }, limits: { model_calls: { max: 7, on_limit: fail }, tokens: 900 } }\nentry: team\n"
                .to_owned(),
            "7 model calls an answer, then it fails\n              900 tokens a session\n",
        ),
    ] {
        world.write("steersman.yaml", &definition);
        let checked = world.run(&["check"]);
        assert!(checked.out.contains(wanted), "{checked:?}");
    }
}

/// The cause of a stop and what to do are said where it is met, with commands that work.
#[test]
fn a_stop_says_its_cause_its_remedy_and_the_command() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "agents: { desk: { system: You help. } }\n",
    );
    world.write("script.yaml", "desk: [ { error: invalid_request } ]\n");
    let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "Hello."]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let cause = "Cause: the provider refuses the request";
    for said in [
        ran,
        world.run(&["show", "last"]),
        world.run(&["why", "last"]),
    ] {
        assert!(said.err.contains(cause), "{said:?}");
        assert!(said.err.contains("steersman context "), "{said:?}");
    }

    world.write(
        "script.yaml",
        "desk: [ { error: provider_error }, Done. ]\n",
    );
    let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "Hello."]);
    assert!(ran.err.contains("Next:  steersman retry "), "{ran:?}");
    world.write("script.yaml", "desk: [ Done. ]\n");
    let retried = world.run(&["retry", "last", "--script-all", "script.yaml"]);
    assert_eq!(
        (retried.code, retried.out.trim()),
        (Some(0), "Done."),
        "{retried:?}"
    );

    let explained = world.run(&["explain", "provider_overloaded"]);
    assert_eq!(explained.code, Some(0), "{explained:?}");
    assert!(
        explained
            .out
            .contains("the server failed, or the connection to it"),
        "{explained:?}"
    );
    assert!(
        explained.out.contains("steersman retry SESSION"),
        "{explained:?}"
    );
    // Two parts of a session have this code.
    let (_, both) = world.json(&["explain", "timeout"]);
    assert_eq!(both["remedies"][0]["of"], "model", "{both}");
    assert_eq!(both["remedies"][1]["of"], "call", "{both}");
    assert_eq!(world.run(&["explain", "e0101"]).code, Some(0));
    assert_eq!(world.run(&["explain", "nosuch"]).code, Some(2));

    // A network fails of what its member failed of.
    world.write("steersman.yaml", ROUTED);
    world.write("script.yaml", "worker: [ { error: provider_error } ]\n");
    let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "Hello."]);
    for said in [
        ran,
        world.run(&["show", "last"]),
        world.run(&["why", "last"]),
    ] {
        assert!(
            said.err
                .contains("Cause: the server failed, or the connection to it."),
            "{said:?}"
        );
        assert!(said.err.contains("steersman retry "), "{said:?}");
    }

    // A limit says how to go on beyond it.
    world.write(
        "steersman.yaml",
        "agents: { desk: { system: You help., tools: [look], limits: { model_calls: { max: 1, on_limit: fail } } } }\n\
         tools: { look: { description: Looks., effect: read, command: [\"true\"] } }\n",
    );
    world.write("script.yaml", "desk: [ { call: { look: {} } }, Done. ]\n");
    let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "Hello."]);
    assert!(ran.err.contains("--rebind --input"), "{ran:?}");
    assert!(
        ran.err.contains("raise the limit in the definition"),
        "{ran:?}"
    );
}

/// A model call that took long has its duration in the row of its answer.
#[test]
fn a_long_model_call_has_its_duration() {
    let world = World::new();
    world.write("clock", "2026-11-21T10:00:00Z");
    let clock = world.folder.join("clock");
    let address = server(move |first| {
        if !first.starts_with("POST ") || !first.contains("/chat/completions ") {
            return ("404 Not Found", "", String::new());
        }
        std::fs::write(&clock, "2026-11-21T10:00:04Z").unwrap();
        let delta = json!({ "role": "assistant", "content": "Four seconds." });
        let piece = json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": "stop" }] });
        let body = format!("data: {piece}\n\ndata: [DONE]\n\n");
        ("200 OK", "content-type: text/event-stream\r\n", body)
    });
    world.write(
        "steersman.yaml",
        &format!(
            "models: {{ default: {{ provider: compatible, model: m, url: \"{address}/v1\" }} }}\n\
             agents: {{ desk: {{ system: You help. }} }}\n"
        ),
    );
    let ran = world.run(&["run", "--input", "Wait.", "--clock", "clock"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = world.run(&["show", "last"]).out;
    let row = shown
        .lines()
        .find(|row| row.contains("Four seconds."))
        .unwrap();
    assert!(row.ends_with("model 4 s"), "{shown}");
}

/// Rows of `run --all` begin with their time where that is wanted.
#[test]
fn the_rows_of_all_sessions_have_their_times() {
    let world = World::new();
    world.write("steersman.yaml", MAIL);
    world.write("script.yaml", "desk: [ Thanks. ]");
    world.write("clock", "2026-11-20T10:00:07Z");
    let drive = |times: &[&str], id: &str| {
        let event = format!(r#"{{"id": "{id}"}}"#);
        let sent = world.run(&[
            "send",
            ".",
            "--event",
            "mail",
            &event,
            "--no-run",
            "--clock",
            "clock",
            "--script-all",
            "script.yaml",
        ]);
        assert_eq!(sent.code, Some(0), "{sent:?}");
        let all = [
            "run",
            "--all",
            "--until-idle",
            "--verbose",
            "--clock",
            "clock",
            "--script-all",
            "script.yaml",
        ];
        let ran = world.run(&[&all[..], times].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.out
    };
    let out = drive(&["--times"], "1");
    let thanks = out.lines().find(|row| row.contains("Thanks.")).unwrap();
    assert!(thanks.contains(":00:07"), "{out}");
    assert!(!drive(&[], "2").contains(":00:07"));
}

/// The progress of all sessions is one line on a terminal, and counts those that wait.
#[test]
fn the_progress_counts_sessions_that_wait() {
    let world = desk();
    world.write(
        "more.yaml",
        &DESK.replace("approve: { when: \"true\" }", "approve: true"),
    );
    world.write(
        "script.yaml",
        "desk: [ Hello., { call: { pay: { to: a, about: b } } } ]\n",
    );
    let ran = world.run(&[
        "run",
        "more.yaml",
        "--script-all",
        "script.yaml",
        "--input",
        "Hello.",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let sent = world.run(&["send", "last", "Pay.", "--no-run"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let typed = "steersman run --all --until-idle --script-all script.yaml </dev/null";
    let shown = typed_on_terminal_of(&world, 80, typed);
    assert!(shown.contains("\r\u{1b}[K  0/1, 0.0000"), "{shown:?}");
    let last = plain(&shown)
        .into_iter()
        .rfind(|row| row.starts_with("1/1"))
        .unwrap();
    assert_eq!(last, "1/1, 1 waiting, 0.0000", "{shown:?}");
    assert!(shown.contains("steersman pending"), "{shown:?}");
}

#[test]
fn long_messages_are_shortened_unless_all_is_wanted() {
    let world = desk();
    let short = world.run(&["show", "last"]).out;
    assert!(short.contains(" words more: --full"), "{short}");
    assert!(short.lines().count() < 60, "{short}");
    let words = |text: &str| text.matches("seven").count();
    assert!(words(&short) < 100, "{short}");
    let full = world.run(&["show", "last", "--full"]).out;
    assert_eq!(words(&full), 500);
    assert!(!full.contains("words more"), "{full}");
}

#[test]
fn times_and_durations_are_shown() {
    let mut world = World::new();
    world.set("TZ", "UTC");
    world.write("steersman.yaml", DESK);
    world.write("clock", "2026-11-21T23:59:58Z");
    world.write(
        "script.yaml",
        "desk:\n  - { call: { pay: { to: a, about: b } } }\n  - Paid.\n",
    );
    let clock = ["--clock", "clock", "--script-all", "script.yaml"];
    let ran = world.run(&[&["run", "--input", "Pay."][..], &clock].concat());
    assert_eq!(ran.code, Some(5), "{ran:?}");
    world.write("clock", "2026-11-22T08:00:01Z");
    let ran = world.run(&[&["approve", "last"][..], &clock].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for command in ["show", "log"] {
        let shown = world.run(&[command, "last", "--times"]).out;
        let days: Vec<&str> = shown
            .lines()
            .filter(|row| row.starts_with("2026-"))
            .collect();
        assert_eq!(days, ["2026-11-21", "2026-11-22"], "{shown}");
        assert!(shown.contains("23:59:58"), "{shown}");
        assert!(shown.contains("08:00:01"), "{shown}");
        // Without the option, a file has no times.
        assert!(!world.run(&[command, "last"]).out.contains("23:59:58"));
        // A terminal has them, if it is wide enough.
        let on = |width| rows(&world, width, &[command, "last"]).join("\n");
        assert!(on(80).contains("23:59:58"), "{}", on(80));
        assert!(!on(60).contains("23:59:58"), "{}", on(60));
    }
    let log = world.run(&["log", "last", "--times"]).out;
    assert!(log.contains(" took "), "{log}");
    let took: Vec<_> = world
        .lines("last")
        .into_iter()
        .filter(|line| line["took"][0]["millis"].is_u64())
        .collect();
    assert!(took.len() >= 3, "two model calls and a tool: {took:?}");
}

#[test]
fn letters_have_a_legend() {
    let world = desk();
    let shown = world.run(&["show", "last"]).out;
    assert!(shown.contains("TC call of a tool"), "{shown}");
    let (_, page) = world.json(&["show", "last"]);
    let letters = page["agents"][0]["letters"].as_str().unwrap();
    for letter in letters.split(' ') {
        assert!(page["legend"][letter].is_string(), "{letter} in {page}");
    }
}

/// A router over a member whose model is down.
const ROUTED: &str = "name: net
agents:
  front: { route: { rules: [ { when: calls.worker.ok > 0, to: finish }, { to: worker } ] } }
  worker: { system: You work. }
entry: front
";

#[test]
fn the_first_cause_of_a_failure_is_named_and_filtered_by() {
    let world = World::new();
    world.write("steersman.yaml", ROUTED);
    world.write(
        "script.yaml",
        "worker: [ { error: provider_overloaded } ]\n",
    );
    let run = ["run", "--script-all", "script.yaml", "--input", "Hi."];
    for _ in 0..2 {
        assert_eq!(world.run(&run).code, Some(1));
    }
    world.write("script.yaml", "worker: [ Hello. ]\n");
    assert_eq!(world.run(&run).code, Some(0));
    let ran = world.run(&["sessions"]);
    assert_eq!(
        ran.out.matches("provider_overloaded of worker").count(),
        2,
        "{ran:?}"
    );
    assert!(
        ran.err.contains("3 sessions: 2 failed, 1 answered; cost "),
        "{ran:?}"
    );
    let failed = world.json_lines(&["sessions", "--where", "failed = provider_*"]);
    assert_eq!(failed.len(), 2);
    assert_eq!(
        failed[0]["reason"]["code"], "provider_overloaded",
        "{failed:?}"
    );
    assert_eq!(failed[0]["reason"]["agent"], "worker", "{failed:?}");
    let by = world.json_lines(&["sessions", "--by", "code"]);
    assert_eq!(by.len(), 1, "{by:?}");
    assert_eq!(
        (&by[0]["code"], &by[0]["sessions"]),
        (&"provider_overloaded".into(), &2.into())
    );
    let by = world.json_lines(&["sessions", "--by", "status"]);
    let sum: u64 = by
        .iter()
        .map(|row| row["model_calls"].as_u64().unwrap())
        .sum();
    assert_eq!((by.len(), sum), (2, 1), "{by:?}");
    assert!(by[0]["cost"].is_number(), "{by:?}");
    // The guide's own line takes them up.
    let retry = [
        "retry",
        "--where",
        "failed = provider_*",
        "--yes",
        "--script-all",
        "script.yaml",
    ];
    let ran = world.run(&retry);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let by = world.json_lines(&["sessions", "--by", "status"]);
    assert_eq!(
        (&by[0]["status"], &by[0]["sessions"]),
        (&"answered".into(), &3.into())
    );
}

#[test]
fn reruns_count_only_if_asked() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "name: desk\nagents: { desk: { system: You help. } }\n",
    );
    world.write("script.yaml", "desk: [ Hello. ]\n");
    let run = ["run", "--script-all", "script.yaml", "--input", "Hi."];
    assert_eq!(world.run(&run).code, Some(0));
    assert_eq!(
        world.run(&["rerun", "last", "--definition", "."]).code,
        Some(0)
    );
    let count = |args: &[&str]| world.json_lines(args)[0]["sessions"].clone();
    assert_eq!(count(&["sessions", "--by", "network"]), 1);
    assert_eq!(count(&["sessions", "--by", "network", "--reruns"]), 2);
    let ran = world.run(&["sessions"]);
    assert!(ran.err.contains("1 rerun not counted: --reruns"), "{ran:?}");
}

#[test]
fn all_are_driven_until_nothing_is_left_with_one_line_of_progress() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "name: desk\nagents: { desk: { system: You help. } }\n",
    );
    let ask = ["run", "--script-all", "script.yaml", "--input", "Hi."];
    for first in ["Hello.", "Hello.", "{ error: provider_overloaded }"] {
        world.write("script.yaml", &format!("desk: [ {first} ]\n"));
        world.run(&ask);
    }
    world.write("script.yaml", "desk: [ Hello., Again. ]\n");
    let sessions: Vec<String> = world
        .json_lines(&["sessions"])
        .iter()
        .map(|row| row["session"].as_str().unwrap().to_owned())
        .collect();
    for session in &sessions {
        let ran = world.run(&["send", session, "More?", "--no-run"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let all = [
        "run",
        "--all",
        "--until-idle",
        "--script-all",
        "script.yaml",
    ];
    let ran = world.run(&all);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.out.lines().count(), 1, "{ran:?}");
    assert!(ran.out.starts_with("3/3, "), "{ran:?}");
    // Nothing is left, so it ends at once.
    let ran = world.run(&all);
    assert!(ran.out.starts_with("0/0, "), "{ran:?}");
    world.write(
        "script.yaml",
        "desk: [ Hello., Again., { error: provider_error } ]\n",
    );
    world.run(&["send", &sessions[0], "More?", "--no-run"]);
    let ran = world.run(&all);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("failed (provider_error)"), "{ran:?}");
    assert!(ran.out.contains("1/1, 1 failed, "), "{ran:?}");
    let (code, told) = world.json(&all);
    assert_eq!((code, &told["status"]), (Some(0), &"idle".into()), "{told}");
}

#[test]
fn what_lies_in_a_box_is_named_with_time_and_reason() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "name: shop\nevents: { paid: { fields: { order: string }, id: \"{{ event.order }}\" } }\nagents: { desk: { system: You help., tools: [wait_paid] } }\ntools: { wait_paid: { description: Waits., parameters: { order: string }, wait: { event: paid, match: { order: \"{{ args.order }}\" } } } }\n",
    );
    let ran = world.run(&["send", ".", "--event", "paid", "{\"order\": \"4711\"}"]);
    let told = world.run(&["pending"]);
    assert!(told.out.contains("4711"), "{ran:?} {told:?}");
    assert!(told.out.contains("(just now): no session"), "{told:?}");
    assert!(
        told.out
            .contains("no session waits for it; it is dropped in "),
        "{told:?}"
    );
}

#[test]
fn owners_in_a_row_are_one_row() {
    let world = desk();
    for _ in 0..5 {
        let ran = world.run(&["run", "--resume", "last", "--script-all", "script.yaml"]);
        assert_eq!(ran.code, Some(5), "{ran:?}");
    }
    let shown = world.run(&["show", "last"]).out;
    assert_eq!(shown.matches("taken up 5 times").count(), 1, "{shown}");
    assert!(!shown.contains("took over"), "{shown}");
}

#[test]
fn the_start_of_a_slow_server_is_told() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "name: desk\nmcp: { slow: { command: [sh, -c, \"exec sleep 8\"] } }\nagents: { desk: { system: You help., tools: [\"slow.*\"] } }\n",
    );
    world.write("script.yaml", "desk: [ Hello. ]\n");
    let mut command = world.command(&["run", "--script-all", "script.yaml", "--input", "Hi."]);
    let ran = command.stdin(Stdio::null()).output().unwrap();
    let err = String::from_utf8(ran.stderr).unwrap();
    assert!(err.contains("Starts the servers slow."), "{err}");
}

/// A store with a session that waits, one that answered and one whose process died.
fn fleet() -> World {
    let world = desk();
    let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "Pay bert."]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let done = world.run(&["approve", "last", "--script-all", "script.yaml"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    world
}

#[test]
fn top_shows_the_fleet_as_one_table_without_a_terminal() {
    let world = fleet();
    let shown = world.run(&["top"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let rows: Vec<&str> = shown.out.lines().collect();
    assert_eq!(rows[0], "2 sessions: 1 answered, 1 waits");
    // One look is enough to measure the last minute.
    assert!(rows[1].contains(" calls/min, "), "{rows:?}");
    assert!(!rows[1].contains("now 0 calls/min"), "{rows:?}");
    let heading = "NETWORK  SESSIONS  RUNNING  WAITING  FAILED OR LIMIT";
    let at = rows
        .iter()
        .position(|row| row.starts_with(heading))
        .unwrap();
    assert!(
        rows[at + 1].starts_with("desk     2         0        1        0"),
        "{rows:?}"
    );
    assert!(shown.out.contains("approval by user"), "{rows:?}");
    let (code, top) = world.json(&["top"]);
    assert_eq!(code, Some(0));
    assert_eq!(top["all"]["sessions"], 2);
    assert!(top["rates"]["model_calls"].as_u64() > Some(0), "{top}");
    assert_eq!(top["networks"][0]["waiting"], 1);
    assert_eq!(top["waits"][0]["sessions"], 1);
    let short = world.run(&["top", "--every", "10ms"]);
    assert_eq!(short.code, Some(2), "{short:?}");
}

#[test]
fn top_is_drawn_again_on_a_terminal_and_fits_it() {
    let world = fleet();
    for width in [60, 80, 120, 200] {
        let args = ["top", "--every", "250ms", "--refreshes", "2"];
        let shown = on_terminal_of(&world, width, &args);
        assert_eq!(shown.matches("2 sessions: ").count(), 2, "{shown:?}");
        let rows = rows(&world, width, &args);
        let wide: Vec<_> = rows
            .iter()
            .filter(|row| row.chars().count() > width)
            .collect();
        assert!(wide.is_empty(), "at {width}: {wide:#?}");
    }
}

const MAIL: &str = r#"name: desk
events:
  mail: { fields: { id: string }, id: "{{ event.id }}", start: { message: "Mail {{ event.id }} came." } }
agents: { desk: { system: You answer. } }
"#;

/// A session that should have gone on is stuck: every list says so, and says what helps.
#[test]
fn stuck_sessions_are_named_with_what_helps() {
    let world = World::new();
    world.write("steersman.yaml", MAIL);
    world.write("script.yaml", "desk: [ Thanks. ]");
    world.write("clock", "2026-11-20T10:00:00Z");
    let clock = ["--clock", "clock", "--script-all", "script.yaml"];
    let sent = world.run(
        &[
            &["send", ".", "--event", "mail", r#"{"id": "1"}"#][..],
            &clock,
        ]
        .concat(),
    );
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let why = "should go on since";
    let listed = world.run(&["sessions"]);
    assert!(listed.out.contains(why), "{listed:?}");
    assert!(listed.err.contains("1 session is stuck."), "{listed:?}");
    assert!(listed.err.contains("steersman doctor"), "{listed:?}");
    let (_, row) = world.json(&["sessions"]);
    assert!(row["stuck"].as_str().unwrap().contains(why), "{row}");
    let doctor = world.run(&["doctor"]);
    let all = format!("{}{}", doctor.out, doctor.err);
    assert!(
        all.contains(why) && all.contains("steersman run --resume"),
        "{all}"
    );
    let (_, top) = world.json(&["top"]);
    assert!(
        top["stuck"][0]["why"].as_str().unwrap().contains(why),
        "{top}"
    );

    // The hint helps.
    let ran = world.run(&[
        "run",
        "--all",
        "--until-idle",
        "--script-all",
        "script.yaml",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let listed = world.run(&["sessions"]);
    assert!(
        !listed.out.contains(why) && !listed.err.contains("stuck"),
        "{listed:?}"
    );
    assert_eq!(
        world.json(&["sessions"]).1["stuck"],
        serde_json::Value::Null
    );
}
