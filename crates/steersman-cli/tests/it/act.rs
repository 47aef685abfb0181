//! Acting on sessions from outside: inbox, ids, interrupts, cancels, questions, doubts.

use crate::world::{Service, World};

const SAID: &str = "My kettle (order 4711) arrived broken. I want my money back.";

fn parked() -> (World, Service) {
    let mut world = World::example("support");
    let service = Service::support(&mut world, false);
    let (code, _) = world.json(&[
        "run",
        "support",
        "--script-all",
        "support/script.yaml",
        "--input",
        SAID,
    ]);
    assert_eq!(code, Some(5));
    (world, service)
}

#[test]
fn what_is_sent_without_running_waits_in_the_inbox() {
    let (world, service) = parked();
    let (code, told) = world.json(&["approve", "last", "--as", "supervisor", "--no-run"]);
    assert_eq!((code, &told["status"]), (Some(0), &"inbox".into()));
    assert_eq!(service.refunds(), 0);
    let (_, shown) = world.json(&["show", "last"]);
    assert_eq!(shown["inbox"], 1);
    let (code, told) = world.json(&["run", "--resume", "last"]);
    assert_eq!((code, &told["status"]), (Some(0), &"answered".into()));
    assert_eq!(service.refunds(), 1);
}

#[test]
fn who_may_not_decide_changes_nothing() {
    let (world, service) = parked();
    let log = |world: &World| world.json_lines(&["log", "last"]);
    let before = log(&world);
    for args in [
        &["approve", "last"][..],
        &["approve", "last", "--as", "clerk"],
        &["approve", "last", "--as", "clerk", "--no-run"],
        &["reject", "last", "--say", "no"],
    ] {
        let refused = world.run(args);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains("only `supervisor` may"), "{refused:?}");
    }
    assert_eq!(log(&world), before);
    let (_, shown) = world.json(&["show", "last"]);
    assert_eq!(shown["inbox"], 0);
    let (code, _) = world.json(&["approve", "last", "--as", "supervisor"]);
    assert_eq!((code, service.refunds()), (Some(0), 1));
}

#[test]
fn who_decides_twice_pays_once() {
    let (world, service) = parked();
    // Both decisions are in the inbox before the session is driven. The second finds nothing open.
    for id in ["a", "b"] {
        let approve = ["approve", "last", "--as", "supervisor", "--no-run"];
        let ran = world.run(&approve);
        assert_eq!(ran.code, Some(0), "{id} {ran:?}");
    }
    assert_eq!(world.json(&["show", "last"]).1["inbox"], 2);
    let (code, told) = world.json(&["run", "--resume", "last"]);
    assert_eq!((code, &told["status"]), (Some(0), &"answered".into()));
    assert_eq!(service.refunds(), 1);
    assert_eq!(world.json(&["show", "last"]).1["inbox"], 0);
    let log = world.run(&["log", "last", "--json"]).out;
    assert!(log.contains("refused"), "the second is in the log: {log}");
    for args in [
        &["approve", "last", "--as", "supervisor"][..],
        &["reject", "last", "--as", "supervisor", "--say", "no"],
    ] {
        let late = world.run(args);
        assert_eq!(late.code, Some(2), "{late:?}");
        assert!(late.err.contains("is open in"), "{late:?}");
    }
    assert_eq!(service.refunds(), 1);
}

/// An event is refused if no session has its key, or if its session does not exist. An event for a cancelled session
/// stays in the inbox.
#[test]
fn an_event_for_a_session_that_is_gone_is_told_so() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        r#"name: desk
events:
  changed: { fields: { order: string, nr: integer }, id: "{{ event.nr }}", session: "{{ event.order }}" }
  placed: { fields: { order: string, nr: integer }, id: "{{ event.nr }}", session: "{{ event.order }}", start: { message: "Order {{ event.order }}." } }
tools: { await_change: { description: Waits., wait: { event: changed } } }
agents: { desk: { system: You wait., tools: [await_change] } }
"#,
    );
    world.write(
        "script.yaml",
        "desk: [ { call: { await_change: {} } }, Changed., Thanks. ]\n",
    );
    let event = |to: &str, name: &str, nr: u32| {
        let fields = format!(r#"{{"order": "seven", "nr": {nr}}}"#);
        world.run(&[
            "send",
            to,
            "--event",
            name,
            &fields,
            "--script-all",
            "script.yaml",
        ])
    };
    let none = event(".", "changed", 1);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(
        none.err
            .contains("no session of `desk` has the key `seven`, and event `changed` begins none"),
        "{none:?}"
    );
    let nobody = event("zzzz", "changed", 1);
    assert_eq!(nobody.code, Some(2), "{nobody:?}");
    assert!(nobody.err.contains("zzzz"), "{nobody:?}");
    assert!(world.json_lines(&["sessions"]).is_empty());
    // Nothing of the refused event was kept: its id is accepted when the session exists.
    assert_eq!(event(".", "placed", 1).code, Some(0));
    let ran = world.run(&["run", "--resume", "last", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let known = event(".", "placed", 1);
    assert_eq!(known.code, Some(0), "{known:?}");
    assert!(
        known.err.contains("It was accepted before, by session "),
        "{known:?}"
    );
    assert_eq!(world.run(&["cancel", "last"]).code, Some(0));
    // The cancelled session takes nothing: the event stays in its inbox, and `show` counts it.
    assert_eq!(event(".", "changed", 2).code, Some(0));
    let ran = world.run(&["run", "--resume", "last", "--script-all", "script.yaml"]);
    assert_ne!(ran.code, Some(4), "{ran:?}");
    assert_eq!(world.json(&["show", "last"]).1["inbox"], 1);
}

#[test]
fn an_id_is_accepted_once() {
    let (world, _service) = parked();
    let first = world.run(&["send", "last", "Is it done?", "--id", "m-1", "--no-run"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let again = world.run(&["send", "last", "Is it done?", "--id", "m-1", "--no-run"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(
        again.err.contains("It was accepted before, by session "),
        "{again:?}"
    );
    let other = world.run(&["send", "last", "Is it late?", "--id", "m-1", "--no-run"]);
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(
        other
            .err
            .contains("`m-1` was accepted before, and said something else then; nothing was done"),
        "{other:?}"
    );
    assert_eq!(world.json(&["show", "last"]).1["inbox"], 1);
}

#[test]
fn an_interrupt_cancels_what_waits() {
    let (world, service) = parked();
    world.write("after.yaml", "desk: [ never, never, Then not. ]\n");
    let (code, told) = world.json(&[
        "send",
        "last",
        "Leave it.",
        "--interrupt",
        "--script-all",
        "after.yaml",
    ]);
    assert_eq!((code, &told["answer"]), (Some(0), &"Then not.".into()));
    assert_eq!(service.refunds(), 0);
    assert_eq!(
        world.run(&["approve", "last", "--as", "supervisor"]).code,
        Some(2)
    );
}

#[test]
fn a_cancelled_session_stays_cancelled_and_can_be_talked_to() {
    let (world, service) = parked();
    let (code, told) = world.json(&["cancel", "last"]);
    assert_eq!((code, &told["status"]), (Some(0), &"cancelled".into()));
    assert_eq!(service.refunds(), 0);
    world.write("after.yaml", "desk: [ never, never, Here I am. ]\n");
    let (code, told) = world.json(&["send", "last", "Hello?", "--script-all", "after.yaml"]);
    assert_eq!((code, &told["answer"]), (Some(0), &"Here I am.".into()));
}

#[test]
fn a_question_is_answered_from_another_process() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "agents: { desk: { system: You ask., tools: [ask] } }\n",
    );
    world.write(
        "script.yaml",
        "desk:\n  - call: { ask: { question: Which colour? } }\n  - \"So it is {{ request.last }}.\"\n",
    );
    let (code, told) = world.json(&["run", "--script-all", "script.yaml", "--input", "Paint it."]);
    assert_eq!(code, Some(5), "{told}");
    assert_eq!(told["pending"][0]["text"], "Which colour?");
    let (code, told) = world.json(&["answer", "last", "green"]);
    assert_eq!(
        (code, &told["answer"]),
        (Some(0), &"So it is green.".into()),
        "{told}"
    );
}

#[test]
fn an_event_finds_the_session_that_waits_for_it() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        r#"name: desk
events: { answer: { fields: { ticket: string, text: string }, id: "{{ event.ticket }}" } }
tools:
  ask_customer:
    description: Asks the customer.
    parameters: { ticket: string }
    wait: { event: answer, match: { ticket: "{{ args.ticket }}" }, timeout: 4h, on_timeout: No answer came. }
    result: "{{ result.text }}"
agents: { support: { system: You help., tools: [ask_customer] } }
"#,
    );
    world.write(
        "script.yaml",
        "support:\n  - call: { ask_customer: { ticket: T-9 } }\n  - \"They say {{ request.last }}.\"\n",
    );
    let (code, told) = world.json(&["run", "--script-all", "script.yaml", "--input", "Ask."]);
    assert_eq!(code, Some(5), "{told}");
    assert_eq!(told["pending"][0]["kind"], "event");
    // An event for another ticket stays in the inbox.
    let other = r#"{"ticket": "T-8", "text": "no"}"#;
    let right = r#"{"ticket": "T-9", "text": "yes"}"#;
    assert_eq!(
        world.run(&["send", ".", "--event", "answer", other]).code,
        Some(0)
    );
    assert_eq!(
        world.run(&["send", ".", "--event", "answer", right]).code,
        Some(0)
    );
    let (_, again) = world.json(&["send", ".", "--event", "answer", right]);
    assert_eq!(again["status"], "known");
    let other = r#"{"ticket": "T-9", "text": "no"}"#;
    let refused = world.run(&["send", ".", "--event", "answer", other]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused
            .err
            .contains("was accepted before, with other fields"),
        "{refused:?}"
    );
    let wrong = world.run(&["send", ".", "--event", "answer", r#"{"ticket": 9}"#]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    let (code, told) = world.json(&["run", "--resume", "last"]);
    assert_eq!(
        (code, &told["answer"]),
        (Some(0), &"They say yes.".into()),
        "{told}"
    );
}

#[test]
fn an_event_to_a_session_is_judged_and_says_where_it_lies() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        r#"name: desk
events: { answer: { fields: { ticket: string }, id: "{{ event.ticket }}" } }
tools: { await_answer: { description: Waits., wait: { event: answer, match: { ticket: T-9 } } } }
agents: { support: { system: You help., tools: [await_answer] } }
"#,
    );
    world.write(
        "script.yaml",
        "support: [ { call: { await_answer: {} } }, It came. ]\n",
    );
    let (code, told) = world.json(&["run", "--script-all", "script.yaml", "--input", "Wait."]);
    assert_eq!(code, Some(5), "{told}");
    // An event with an unknown name or with wrong fields is refused, and is not in the inbox.
    for (event, fields) in [
        ("anwser", r#"{"ticket": "T-9"}"#),
        ("answer", r#"{"ticket": 9}"#),
    ] {
        let refused = world.run(&["send", "last", "--event", event, fields]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
    }
    assert_eq!(world.json(&["show", "last"]).1["inbox"], 0);
    // A valid event that no call waits for stays in the inbox, and so does a message while calls are open.
    let early = ["send", "last", "--event", "answer", r#"{"ticket": "T-8"}"#];
    let (code, told) = world.json(&early);
    assert_eq!(
        (code, &told["status"]),
        (Some(0), &"inbox".into()),
        "{told}"
    );
    assert_eq!(told["why"], "nobody waits for such a `answer` yet");
    let (code, told) = world.json(&early);
    assert_eq!(
        (code, &told["status"]),
        (Some(0), &"known".into()),
        "its id is accepted once"
    );
    let said = world.run(&["send", "last", "Is it there?"]);
    assert!(
        said.err.contains("waits: `support` has calls open"),
        "{said:?}"
    );
    let (code, told) = world.json(&["send", "last", "--event", "answer", r#"{"ticket": "T-9"}"#]);
    assert_eq!((code, &told["answer"]), (Some(0), &"It came.".into()));
}

#[test]
fn a_cancel_begins_nothing_of_what_was_said_meanwhile() {
    let (world, service) = parked();
    let ran = world.run(&["send", "last", "And the other one?", "--no-run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let calls = |world: &World| world.json(&["show", "last"]).1["model_calls"].clone();
    let before = calls(&world);
    let (code, told) = world.json(&["cancel", "last"]);
    assert_eq!((code, &told["status"]), (Some(0), &"cancelled".into()));
    assert_eq!((calls(&world), service.refunds()), (before, 0));
    let again = world.run(&["cancel", "last"]);
    assert_eq!(again.code, Some(0), "the message is open: {again:?}");
    let again = world.run(&["cancel", "last"]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.err.contains("nothing is open"), "{again:?}");
}

#[test]
fn only_the_role_counts_and_not_what_the_definition_calls_the_person() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "tools: { pay: { description: Pays., effect: unsafe, approve: { by: clerk }, command: [echo, paid] } }
agents:
  clerk: { person: { role: \"head of finance\" } }
  desk: { system: You pay., tools: [pay] }
",
    );
    world.write("script.yaml", "desk: [ call: { pay: {} }, Paid. ]\n");
    let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "Pay."]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.err.contains("--as 'head of finance'"), "{ran:?}");
    let listed = |filter: &str| world.json_lines(&["pending", "--where", filter]).len();
    assert_eq!(listed("for = \"head of finance\""), 1);
    // The person is `clerk` in the definition, and no role has this name.
    let ran = world.run(&["pending", "--where", "for = clerk"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let known = "roles are head of finance, user";
    assert!(ran.err.contains(known), "{ran:?}");
    let refused = world.run(&["approve", "last", "--as", "clerk"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let ran = world.run(&["approve", "last", "--as", "head of finance"]);
    assert_eq!(ran.out.trim(), "Paid.", "{ran:?}");
}

#[test]
fn an_event_for_a_network_has_the_id_of_its_definition() {
    let world = World::new();
    world.write(
        "desk/steersman.yaml",
        "events: { mail: { fields: { nr: string }, id: \"{{ event.nr }}\", start: { message: Mail. } } }
agents: { desk: { system: You read mail. } }
",
    );
    let payload = "{\"nr\": \"1\"}";
    let ran = world.run(&["send", "desk", "--event", "mail", payload, "--id", "x"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("`id` of the event"), "{ran:?}");
    assert!(!world.folder.join(".steersman/sessions.db").exists());
}

/// An event for a network drives no session. If one session waits for events, the output names it.
#[test]
fn an_event_for_a_network_names_who_waits_for_it() {
    let world = World::new();
    world.write(
        "desk/steersman.yaml",
        "name: desk
events: { mail: { fields: { nr: string }, id: \"{{ event.nr }}\" } }
tools: { letter: { description: Waits., wait: { event: mail, match: { nr: \"7\" }, timeout: 1h } } }
agents: { desk: { system: You read mail., tools: [letter] } }
",
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
    let sent = |nr: u32| {
        let payload = format!("{{\"nr\": \"{nr}\"}}");
        let ran = world.run(&["send", "desk", "--event", "mail", &payload]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        world.filter(&ran.err)
    };
    let ran = world.run(&run);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let told = sent(1);
    assert!(told.contains("steersman run --resume aaSESS"), "{told}");
    assert!(told.contains("until Ctrl-C"), "{told}");
    // If two sessions wait, none is named.
    assert_eq!(world.run(&run).code, Some(5));
    let told = sent(2);
    assert!(!told.contains("--resume"), "{told}");
}

#[test]
fn a_name_in_a_script_that_no_agent_has_is_found_before_anything_is_said() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "name: desk\nagents: { desk: { system: You help. } }\n",
    );
    world.write("script.yaml", "desk: [ One. ]\ndesc: [ Two. ]\n");
    let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "Hi."]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("the script answers for `desc`"), "{ran:?}");
    assert!(world.json_lines(&["sessions"]).is_empty());

    // Instances may have any name, but not one that is nearly that of an agent for which nothing else is written.
    world.write(
        "steersman.yaml",
        "name: desk\nagents:\n  desk: { system: You help., tools: [ { agent: searcher, named: true } ] }\n  searcher: { description: Looks., system: You look. }\nentry: desk\n",
    );
    let run = |script: &str| {
        world.write("script.yaml", script);
        world.run(&["run", "--script-all", "script.yaml", "--input", "Hi."])
    };
    let ran = run("desk: [ One. ]\nsearchr: [ Two. ]\n");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("the script answers for `searchr`"),
        "{ran:?}"
    );
    let ran = run("desk: [ One. ]\ndesc/costs: [ Two. ]\n");
    assert!(
        ran.err.contains("the script answers for `desc/costs`"),
        "{ran:?}"
    );
    for fine in ["costs", "desk/searchr", "searcher", "desk/costs"] {
        let ran = run(&format!("desk: [ One. ]\n{fine}: [ Two. ]\n"));
        assert_eq!(ran.code, Some(0), "{fine}: {ran:?}");
    }
}

/// If two effects of a tool are in doubt, its name does not settle either, and the hint does not suggest the name as a
/// result. If only one is, the name is enough.
#[test]
fn what_is_in_doubt_is_named_by_its_tool_where_only_one_is() {
    let world = World::new();
    let pays = |calls: &str| {
        let _ = std::fs::remove_file(world.folder.join("began"));
        world.write(
            "steersman.yaml",
            r#"name: desk
tools:
  pay: { description: Pays., parameters: { cents: integer }, effect: unsafe, command: [sh, -c, "echo x >> began; while [ $(wc -l < began) -lt 2 ]; do :; done; kill -9 $PPID"] }
  log: { description: Logs., effect: unsafe, command: [sh, -c, "echo x >> began; while kill -0 $PPID; do :; done"] }
agents:
  desk: { system: You settle., tools: [pay, log] }
"#,
        );
        world.write(
            "script.yaml",
            &format!("desk: [ {{ call: [{calls}] }}, Done. ]\n"),
        );
        let ran = world.run(&["run", "--input", "Pay.", "--script-all", "script.yaml"]);
        assert_eq!(ran.code, None, "killed: {ran:?}");
        let ran = world.run(&["run", "--resume", "last", "--script-all", "script.yaml"]);
        assert_eq!(ran.code, Some(7), "{ran:?}");
    };
    pays("{ pay: { cents: 5 } }, { pay: { cents: 6 } }");
    let several = world.run(&["resolve", "last", "pay", "--done"]);
    let unknown = world.run(&["resolve", "last", "paid", "--done"]);
    for ran in [&several, &unknown] {
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(!ran.err.contains("--done=pa"), "{ran:?}");
        assert_eq!(ran.err.matches("(doubt pay)").count(), 2, "{ran:?}");
    }
    assert!(unknown.err.contains("--done=RESULT"), "{unknown:?}");
    pays("{ pay: { cents: 5 } }, { log: {} }");
    let ran = world.run(&["resolve", "last", "pay", "--done", "--no-run", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_question_with_options_says_what_to_type() {
    let world = World::new();
    world.write(
        "steersman.yaml",
        "steersman: 1\nname: ask\nagents: { desk: { system: You ask., tools: [ask] } }\nentry: desk\n",
    );
    world.write(
        "script.yaml",
        "desk: [ { call: { ask: { question: \"Shall I?\", options: [\"yes, do\", later] } } }, Well. ]\n",
    );
    let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "Hi."]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let ran = world.run(&["pending"]);
    assert!(ran.err.contains("'yes, do'"), "{ran:?}");
    let (code, told) = world.json(&["answer", "last", "yes, do"]);
    assert_eq!(
        (code, &told["answer"]),
        (Some(0), &"Well.".into()),
        "{told}"
    );
}
