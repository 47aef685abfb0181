//! Each command that `pending` advises, typed as it is printed, moves the session.

use crate::world::World;

const TOOLS: &str = r#"name: desk
events: { mail: { fields: { nr: string }, id: "{{ event.nr }}" } }
tools:
  pay: { description: Pays., parameters: { cents: integer }, effect: unsafe, approve: true, command: [echo, ok] }
  send: { description: Sends., effect: unsafe, command: [echo, ok] }
  question: { description: Asks., parameters: { question: string }, ask: user }
  wait_for_mail: { description: Waits., wait: { event: mail, match: { nr: "7" } } }
agents:
  desk: { system: You settle., tools: [pay, send, question, wait_for_mail] }
"#;

/// A state that `pending` lists: the definition and script, and the commands that lead to it.
struct State {
    name: &'static str,
    limits: &'static str,
    script: &'static str,
    typed: &'static [&'static [&'static str]],
}

const HOLD: &[&str] = &["hold", "last", "--tool", "send"];
const PAUSE: &[&str] = &["pause", "last"];
const SAY: &[&str] = &["send", "last", "And soon."];

fn states() -> Vec<State> {
    let state = |name, limits, script, typed| State {
        name,
        limits,
        script,
        typed,
    };
    let pay = "desk: [ { call: { pay: { cents: 5 } } }, Paid., Soon. ]\n";
    let ask = "desk: [ { call: { question: { question: Really? } } }, Good., Soon. ]\n";
    let mail = "desk: [ { call: { wait_for_mail: {} } }, It came., Soon. ]\n";
    let send = "desk: [ Hello., { call: { send: {} } }, Sent., Soon. ]\n";
    vec![
        state("an approval", "", pay, &[]),
        state("an approval, and something said", "", pay, &[SAY]),
        state("a question", "", ask, &[]),
        state("a question, and something said", "", ask, &[SAY]),
        state("an event", "", mail, &[]),
        state("an event, and something said", "", mail, &[SAY]),
        state(
            "a limit",
            "limits: { tokens: 100 }\n",
            "desk: [ Hello., Soon. ]\n",
            &[],
        ),
        state(
            "a limit, and something said",
            "limits: { tokens: 100 }\n",
            "desk: [ Hello., Soon. ]\n",
            &[SAY],
        ),
        state(
            "a hold",
            "",
            send,
            &[HOLD, SAY, &["run", "--resume", "last"]],
        ),
        state(
            "an approval, something said, and a pause",
            "",
            pay,
            &[PAUSE, SAY],
        ),
    ]
}

/// The commands that a page advises.
fn advised(page: &str) -> Vec<String> {
    let lines = page.lines().filter_map(|line| line.split_once("Next:  "));
    lines
        .flat_map(|(_, rest)| rest.split("   "))
        .filter(|part| part.starts_with("steersman "))
        .map(str::to_owned)
        .collect()
}

fn world(state: &State) -> World {
    let world = World::new();
    world.write("steersman.yaml", &format!("{TOOLS}{}", state.limits));
    world.write("script.yaml", state.script);
    let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "Go."]);
    assert!(matches!(ran.code, Some(0 | 5)), "{}: {ran:?}", state.name);
    for typed in state.typed {
        world.run(typed);
    }
    world
}

#[test]
fn what_pending_advises_moves_the_session() {
    for state in states() {
        let commands = advised(&world(&state).run(&["pending"]).all());
        assert!(!commands.is_empty(), "{}", state.name);
        for n in 0..commands.len() {
            // Each command runs in a new world, where the session has another id.
            let world = world(&state);
            let pending = world.run(&["pending"]);
            let typed = advised(&pending.all())[n].replace("{...}", r#"{"nr": "7"}"#);
            let before = world.run(&["log", "last", "--json"]).out.lines().count();
            let ran = world.shell(&typed);
            let after = world.run(&["log", "last", "--json"]).out.lines().count();
            assert!(
                after > before,
                "{}: `{typed}` moves nothing: {ran:?} {pending:?}",
                state.name
            );
        }
    }
}
