//! Budgets over sessions, as the program shows them.

use crate::world::World;
use serde_json::json;

const BUD: &str = r#"name: bud
timezone: Europe/Oslo
models: { default: scripted }
budgets:
  daily: { calls: 1 }
schedules:
  nightly: { cron: "30 6 * * *", start: { message: Look. } }
agents: { desk: { system: You answer. } }
"#;

const CLOCK: [&str; 4] = ["--clock", "clock", "--script", "script.yaml"];

#[test]
fn a_call_that_does_not_fit_waits_is_shown_and_is_let_through() {
    let world = World::new();
    world.write("steersman.yaml", BUD);
    world.write("script.yaml", "desk: [ One., Two. ]");
    world.write("clock", "2026-11-27T10:30:00Z");

    let check = world.run(&["check"]);
    for row in [
        "  schedule    nightly: 30 6 * * * (Europe/Oslo), begins with desk   once `steersman schedule` has stored it",
        "  budget      daily: 1 call a day (Europe/Oslo) of all sessions, then calls wait for the next one",
    ] {
        assert!(check.out.lines().any(|line| line == row), "{check:?}");
    }
    let json = world.json(&["check"]).1;
    assert_eq!(
        json["schedules"]["nightly"],
        "30 6 * * * (Europe/Oslo), begins with desk"
    );
    assert!(json["budgets"]["daily"].is_string(), "{json}");

    let first = world.run(&[&["run", "-i", "Hi."][..], &CLOCK].concat());
    assert_eq!(first.code, Some(0), "{first:?}");
    let second = world.run(&[&["run", "-i", "Hi."][..], &CLOCK].concat());
    assert!(second.all().contains("budget by anybody"), "{second:?}");
    assert!(second.all().contains("tried again by itself"), "{second:?}");

    let pending = world.json(&["pending"]).1;
    assert_eq!(pending["kind"], "budget", "{pending}");
    let text = pending["text"].as_str().unwrap_or_default();
    assert!(
        text.starts_with(
            "The budget `daily` does not allow the call: 1 call per day for all sessions of `bud`, 0 calls left"
        ) && text.contains("The next day begins 2026-11-28T00:00:00+01:00"),
        "{text}"
    );
    assert!(world.run(&["sessions"]).out.contains("waits"));
    assert!(world.run(&["top"]).all().contains("budget"));

    let approve = world.run(&[&["approve", "last"][..], &CLOCK].concat());
    assert_eq!(approve.code, Some(0), "{approve:?}");
    let resumed = world.run(&[&["run", "--resume", "last"][..], &CLOCK].concat());
    assert!(resumed.all().contains("One."), "{resumed:?}");
}

#[test]
fn a_new_day_lets_the_waiting_call_go_on_by_itself() {
    let world = World::new();
    world.write("steersman.yaml", BUD);
    world.write("script.yaml", "desk: [ One., Two. ]");
    world.write("clock", "2026-11-27T10:30:00Z");
    for _ in 0..2 {
        world.run(&[&["run", "-i", "Hi."][..], &CLOCK].concat());
    }
    assert!(world.run(&["sessions"]).out.contains("waits"));
    world.write("clock", "2026-11-28T10:30:00Z");
    let idle = [
        "run",
        "--all",
        "--until-idle",
        "--clock",
        "clock",
        "--script-all",
        "script.yaml",
    ];
    let idle = world.run(&idle);
    assert_eq!(idle.code, Some(0), "{idle:?}");
    let sessions = world.run(&["sessions"]).out;
    assert!(!sessions.contains("waits"), "{sessions}");
}

/// `doctor` tells the use of each budget of a definition, by each value of a label, and what waits for it.
#[test]
fn doctor_tells_what_is_used_of_budgets_and_what_waits() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        r#"name: bud
models: { default: scripted }
labels: { customer: "{{ args.customer }}" }
budgets:
  monthly: { calls: 3, tokens: 90000, per: month }
  each: { label: customer, calls: 1, per: month }
  keys: { of: key, calls: 9, per: month }
events:
  order: { fields: { n: integer, customer: string }, id: "{{ event.n }}", start: { args: { customer: "{{ event.customer }}" } } }
agents: { desk: { system: You answer., parameters: { customer: string } } }
"#,
    );
    world.write("script.yaml", "desk: [ One., Two. ]");
    let told = |world: &World| -> Vec<String> {
        let rows = world.json_lines(&["doctor", "."]);
        let budgets = rows.iter().filter(|row| row["about"] == "budget");
        budgets
            .map(|row| format!("{} {}", row["health"], row["text"]).replace('"', ""))
            .collect()
    };
    assert_eq!(told(&world), Vec::<String>::new(), "there is no store yet");
    for (n, customer) in ["acme", "acme", "zeta"].into_iter().enumerate() {
        let order = json!({ "n": n, "customer": customer }).to_string();
        let order = ["send", ".", "--event", "order", &order];
        let ran = world.run(&[&order[..], &["--script", "script.yaml"]].concat());
        assert!(matches!(ran.code, Some(0 | 6)), "{ran:?}");
    }
    let idle = [
        "run",
        "--all",
        "--until-idle",
        "--script-all",
        "script.yaml",
    ];
    let idle = world.run(&idle);
    assert_eq!(idle.code, Some(0), "{idle:?}");
    let told = told(&world);
    let begins = |row: &String, with: &str| row.starts_with(with);
    for with in [
        "note `each` for the label customer = `acme`: 1 of 1 call used this month; the next one begins ",
        "note `each` for the label customer = `zeta`: 1 of 1 call used this month; the next one begins ",
        "ok `monthly` for all sessions of `bud`: 38 of 90,000 tokens, 2 of 3 calls used this month; ",
        "ok `keys` is counted for each key by itself",
        "note 1 session waits for `each`",
    ] {
        assert!(
            told.iter().any(|row| begins(row, with)),
            "{with}: {told:#?}"
        );
    }
    assert_eq!(told.len(), 5, "{told:#?}");
}

/// The table of exit codes in the guide to operating: only a failure counts. What waits is counted, and told as data.
#[test]
fn until_idle_ends_with_0_if_only_doubts_budgets_and_limits_are_left() {
    let world = World::new();
    let go = r#"events: { go: { fields: { id: string }, id: "{{ event.id }}", start: { message: Go. } } }"#;
    let limits = ", limits: { model_calls: { max: 1, on_limit: fail } }";
    let budgets = "budgets: { daily: { calls: 1 } }";
    for (name, effect, command, more, own) in [
        ("doubt", "unsafe", "exit 1", "", ""),
        ("limit", "read", "echo ok", "", limits),
        ("budget", "read", "echo ok", budgets, ""),
        ("failure", "read", "echo ok", "", ""),
    ] {
        let agent = if name == "failure" { "clerk" } else { "desk" };
        let definition = format!(
            "name: {name}\n{go}\n{more}\n\
             tools: {{ act: {{ description: Acts., effect: {effect}, command: [sh, -c, \"{command}\"] }} }}\n\
             agents: {{ {agent}: {{ system: You act., tools: [act]{own} }} }}\n"
        );
        world.write(&format!("{name}.yaml"), &definition);
    }
    world.write("script.yaml", "desk: [ { call: { act: {} } }, Done. ]");
    world.write("down.yaml", "clerk: [ { error: provider_error } ]");
    world.write("clock", "2026-11-27T10:30:00Z");
    let all = ["run", "--all", "--until-idle", "--clock", "clock"];
    let begins = |name: &str, script: &str| {
        let event = ["send", name, "--event", "go", r#"{"id": "1"}"#];
        let script = ["--script-all", script];
        let sent = world.run(&[&event[..], &script, &all[3..]].concat());
        assert_eq!(sent.code, Some(0), "{sent:?}");
    };
    for name in ["doubt.yaml", "limit.yaml", "budget.yaml"] {
        begins(name, "script.yaml");
    }
    let (code, told) = world.json(&all);
    let counts = json!({ "status": "idle", "sessions": 3, "done": 3, "waiting": 2, "failed": 0, "cost": 0.0 });
    assert_eq!((code, told), (Some(0), counts));
    let mut left: Vec<String> = world
        .json_lines(&["sessions"])
        .iter()
        .map(|row| format!("{} {}", row["network"], row["status"]).replace('"', ""))
        .collect();
    left.sort();
    assert_eq!(left, ["budget waits", "doubt doubt", "limit limit"]);

    begins("failure.yaml", "down.yaml");
    let (code, told) = world.json(&all);
    assert_eq!((code, &told["failed"]), (Some(1), &json!(1)), "{told}");
}

/// Two clocks: one is right, the other four days ahead. What was used today is known after the clock was set right, and what was used
/// of the day that the wrong clock showed counts when that day comes.
#[test]
fn a_clock_that_was_ahead_forgets_nothing() {
    let world = World::new();
    world.write("steersman.yaml", BUD);
    world.write("script.yaml", "desk: [ One. ]");
    world.write("right", "2026-11-27T10:30:00Z");
    world.write("ahead", "2026-12-01T10:30:00Z");
    let run = |clock: &str| {
        let clock = ["--clock", clock, "--script", "script.yaml"];
        world.run(&[&["run", "-i", "Hi."][..], &clock].concat())
    };
    for clock in ["right", "ahead"] {
        let ran = run(clock);
        assert!(ran.all().contains("One."), "{ran:?}");
    }
    for (clock, day) in [("right", 28), ("ahead", 2), ("right", 28)] {
        let ran = run(clock);
        assert!(ran.all().contains("budget by anybody"), "{ran:?}");
        let pending = world.json_lines(&["pending"]);
        let next = format!("-{day:02}T00:00:00+01:00");
        let told =
            |row: &serde_json::Value| row["text"].as_str().unwrap_or_default().contains(&next);
        assert!(pending.iter().any(told), "{clock}: {pending:#?}");
    }
    world.write("right", "2026-12-01T23:30:00Z");
    let next_day = run("right");
    assert!(next_day.all().contains("One."), "{next_day:?}");
}
