//! State that people set: a permission for some time, and an instruction for one answer.

use crate::world::World;

const DESK: &str = "
steersman: 1
name: desk
state:
  style: { type: string, optional: true, expires: answer }
  payments: { type: integer, default: 0, by: boss }
  size: { enum: [small, large], default: small }
tools:
  pay:
    description: Pays.
    effect: idempotent
    requires: { that: state.payments > 0, else: The boss has to allow it. }
    command: [echo, paid]
    set: { payments: '{{ state.payments - 1 }}' }
agents:
  desk:
    system: 'You help.{% if state.style is not none %} {{ state.style }}{% endif %}'
    tools: [pay]
  boss: { description: Decides., person: {} }
entry: desk
";

const SCRIPT: &str = "
desk:
  - Hello.
  - Salut.
  - call: { pay: {} }
  - call: { pay: {} }
  - Once.
";

fn begun() -> World {
    let world = World::new();
    world.write("desk/steersman.yaml", DESK);
    world.write("script.yaml", SCRIPT);
    let ran = world.run(&[
        "run",
        "desk",
        "--script-all",
        "script.yaml",
        "--input",
        "Hi.",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    world
}

#[test]
fn an_instruction_is_in_the_prompts_of_one_answer() {
    let world = begun();
    let french = "Answer in French.";
    let state = format!("style={french}");
    let sent = world.run(&["send", "last", "Again.", "--state", &state]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let prompt = world.run(&["context", "last"]).out;
    assert!(prompt.contains(french), "{prompt}");
    let sent = world.run(&["send", "last", "Pay."]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let prompt = world.run(&["context", "last"]).out;
    assert!(!prompt.contains(french), "{prompt}");
    let log = world.run(&["log", "last"]).out;
    assert!(log.contains("style"), "the log has it: {log}");
}

#[test]
fn a_permission_is_given_by_those_who_may_and_used_up() {
    let world = begun();
    for role in [None, Some("clerk")] {
        let mut args = vec!["edit", "last", "--state", "payments=1"];
        args.extend(role.iter().flat_map(|role| ["--as", role]));
        let refused = world.run(&args);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(
            refused
                .err
                .contains("only `boss` may edit `state.payments`"),
            "{refused:?}"
        );
    }
    let given = world.run(&["edit", "last", "--state", "payments=1", "--as", "boss"]);
    assert_eq!(given.code, Some(0), "{given:?}");
    let sent = world.run(&["send", "last", "Hello?"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let sent = world.run(&["send", "last", "Pay twice."]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let log = world.run(&["log", "last"]).out;
    assert!(log.contains("boss"), "the log says who: {log}");
    let effects = world.run(&["effects", "last"]).out;
    let paid: Vec<&str> = effects
        .lines()
        .filter(|row| row.contains("pay()"))
        .collect();
    assert_eq!(paid.len(), 1, "{effects}");
    assert!(paid[0].contains("done"), "{effects}");
}

#[test]
fn what_is_no_entry_of_state_is_refused() {
    let world = begun();
    for (entry, why) in [
        ("payments", "is no entry of state"),
        (
            "payment=1",
            "state has no entry `payment`; did you mean `payments`? (there is: ",
        ),
        (
            "payments=many",
            "`state.payments` cannot be \"many\": it is text, must be an integer",
        ),
        (
            "size=huge",
            "`state.size` cannot be \"huge\": it is `huge`, must be one of small, large",
        ),
    ] {
        let refused = world.run(&["edit", "last", "--state", entry, "--as", "boss"]);
        assert_eq!(refused.code, Some(2), "{entry}: {refused:?}");
        assert!(refused.err.contains(why), "{entry}: {refused:?}");
    }
}
