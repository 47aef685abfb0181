//! Keys that seal are exchanged: what an older one sealed opens and is recognised as long as that key is here, and what is
//! missing is named.

use crate::world::World;
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use steersman::runtime::seal::Sealer;

const DESK: &str = r#"name: desk
state: { token: { type: secret, optional: true } }
tools:
  login: { description: Logs in., effect: read, command: [cat, token.json], set: { token: "{{ result.token }}" }, result: Logged in. }
  pay:
    description: Pays.
    parameters: { cents: integer, token: any }
    effect: unsafe
    command: [sh, -c, 'echo "$TOKEN" >> paid']
    env: { TOKEN: "{{ args.token }}" }
  look: { description: Looks., effect: read, command: [sh, -c, 'echo "$TOKEN" >> looked'], env: { TOKEN: "{{ state.token }}" } }
agents: { desk: { system: You help., tools: [login, look, pay] } }
"#;

/// A script that pays with the same token again and again. Each time it is sealed again: with the old key, then with the new one.
fn script() -> String {
    let (old, new) = (Sealer::new(&[1; 32]), Sealer::new(&[2; 32]));
    let pay = |cents: u32, sealer: &Sealer| {
        let token = sealer.seal(&"tok-4711".into());
        json!({ "call": { "pay": { "cents": cents, "token": token } } })
    };
    let login = || json!({ "call": { "login": {} } });
    let steps = json!({ "desk": [
        login(), pay(500, &old), "Paid.",
        pay(500, &old), "Not again.",
        login(), pay(500, &new), "Not now.",
        { "call": { "look": {} } }, pay(700, &new), "That did not work.",
    ] });
    steps.to_string()
}

fn digits(byte: u8) -> String {
    format!("{byte:02x}").repeat(32)
}

fn id(byte: u8) -> String {
    let sealer = Sealer::new(&[byte; 32]);
    sealer.keys().next().unwrap().to_string()
}

fn paid(world: &World) -> usize {
    let paid = std::fs::read_to_string(world.folder.join("paid"));
    paid.unwrap()
        .lines()
        .filter(|line| *line == "tok-4711")
        .count()
}

fn says(world: &World, text: &str, code: i32) {
    let ran = world.run(&["send", "last", text, "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(code), "{ran:?}");
}

/// The call that a person would have to allow, because the same one was done before.
fn is_asked_and_rejected(world: &World) {
    let pending = world.json_lines(&["pending"]);
    assert_eq!(pending.len(), 1, "{pending:?}");
    let asked = pending[0].to_string();
    assert!(asked.contains("The same call was done before"), "{asked}");
    let ran = world.run(&["reject", "last", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

fn sealing(world: &World) -> Vec<(String, String)> {
    let findings = world.json_lines(&["doctor"]);
    let sealing = findings.iter().filter(|f| f["about"] == "sealing");
    let text = |f: &serde_json::Value, name: &str| f[name].as_str().unwrap().to_owned();
    sealing
        .map(|f| (text(f, "health"), text(f, "text")))
        .collect()
}

#[test]
fn after_a_rotation_old_secrets_open_and_equal_calls_are_recognised() {
    let mut world = World::new();
    world.write("steersman.yaml", DESK);
    world.write("script.yaml", &script());
    world.write("token.json", r#"{ "token": "tok-4711" }"#);
    let file = world.folder.join(".steersman/key");
    std::fs::write(&file, digits(1)).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let first = ["run", "--script-all", "script.yaml", "--input", "Pay."];
    let ran = world.run(&first);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(paid(&world), 1, "the secret was opened for the tool");

    // The new key goes before the old one in the key file.
    std::fs::write(&file, format!("{}\n{}\n", digits(2), digits(1))).unwrap();
    says(&world, "Again.", 5);
    is_asked_and_rejected(&world);
    // The equal token is sealed with the new key now.
    says(&world, "Log in, and again.", 5);
    is_asked_and_rejected(&world);
    assert_eq!(paid(&world), 1);
    let [(well, seals), (also, opens)] = &sealing(&world)[..] else {
        panic!("{:?}", sealing(&world));
    };
    assert_eq!([&**well, &**also], ["ok", "ok"]);
    assert!(
        seals.starts_with(&format!("key {} seals: ", id(2))),
        "{seals}"
    );
    assert!(
        opens.contains(" opens ") && opens.ends_with(" older values"),
        "{opens}"
    );

    // Another machine, without the new key: nothing runs without its secret, and the missing key is named.
    world.set("STEERSMAN_KEY", &digits(3));
    says(&world, "Look, and pay more.", 0);
    assert!(!world.folder.join("looked").exists());
    assert_eq!(paid(&world), 1);
    let log = world.run(&["log", "last", "--json"]).out;
    let missing = format!(
        "a value is sealed with key {}, and this machine has key {}: give it key {}, too",
        id(2),
        id(3),
        id(2)
    );
    for name in ["state.token", "args"] {
        assert!(
            log.contains(&format!("`{name}`: {missing}")),
            "{name} in {log}"
        );
    }
    let found = sealing(&world);
    let bad: Vec<_> = found
        .iter()
        .filter(|(health, _)| health == "missing")
        .collect();
    assert_eq!(bad.len(), 2, "{found:?}");
    assert!(
        bad.iter()
            .any(|(_, text)| text.starts_with(&format!("key {} is not here", id(2))))
    );
    let exported = world.run(&["export", "last"]);
    let told = format!("need key {}, which is not here", id(2));
    assert!(
        exported.err.contains(&told) || exported.err.contains(&told.replace("need", "needs")),
        "{exported:?}"
    );
}

/// The two payments have different digests, because their tokens were sealed with different keys. The guard found them equal, and
/// so does the count.
#[test]
fn an_allowed_repetition_is_counted_whichever_keys_sealed_the_two() {
    let world = World::new();
    let pay = |key: u8| {
        let token = Sealer::new(&[key; 32]).seal(&"tok-4711".into());
        json!({ "call": { "pay": { "cents": 500, "token": token } } })
    };
    let steps = json!({ "desk": [pay(1), "Paid.", pay(2), "Paid again."] });
    world.write("steersman.yaml", DESK);
    world.write("script.yaml", &steps.to_string());
    let file = world.folder.join(".steersman/key");
    std::fs::write(&file, digits(1)).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let first = ["run", "--script-all", "script.yaml", "--input", "Pay."];
    let ran = world.run(&first);
    assert_eq!(ran.code, Some(0), "{ran:?}");

    std::fs::write(&file, format!("{}\n{}\n", digits(2), digits(1))).unwrap();
    says(&world, "Again.", 5);
    let again = ["approve", "last", "--repeat", "--script-all", "script.yaml"];
    let ran = world.run(&again);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(paid(&world), 2);

    let effects = world.json_lines(&["effects", "last"]);
    let paid: Vec<_> = effects.iter().filter(|e| e["tool"] == "pay").collect();
    assert_eq!(paid[1]["repeats"], paid[0]["effect"], "{effects:#?}");
    let told = world.run(&["effects", "last"]);
    assert!(
        told.err.contains("pay: 2 intended, 2 done, 1 repeated"),
        "{told:?}"
    );
    assert!(
        told.out.contains("repeats ") && told.out.contains("(user"),
        "{told:?}"
    );
}

/// While keys are exchanged in several processes, one seals with the new key and another still with the old one.
#[test]
fn a_key_that_only_opens_lets_others_seal_with_it_already() {
    let mut world = World::new();
    let ask = "parameters: { pin: { type: secret, ask: \"Your pin?\" } }";
    world.write(
        "steersman.yaml",
        &format!("name: desk\ntools:\n  open: {{ description: Opens., {ask}, effect: unsafe, command: [sh, -c, 'echo \"$PIN\" > opened'], env: {{ PIN: \"{{{{ args.pin }}}}\" }} }}\nagents: {{ desk: {{ system: You help., tools: [open] }} }}\n"),
    );
    world.write(
        "script.yaml",
        "desk:\n  - call: { open: {} }\n  - Opened.\n",
    );
    world.set("STEERSMAN_KEY", &format!("{} {}", digits(1), digits(2)));
    let run = ["run", "--script-all", "script.yaml", "--input", "Open."];
    assert_eq!(world.run(&run).code, Some(5));
    world.set("STEERSMAN_KEY", &format!("{} {}", digits(2), digits(1)));
    let answered = world.run(&["answer", "last", "pin-4711", "--no-run"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    world.set("STEERSMAN_KEY", &format!("{}\n{}\n", digits(1), digits(2)));
    let ran = world.run(&["run", "--resume", "last", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let opened = std::fs::read_to_string(world.folder.join("opened")).unwrap();
    assert_eq!(opened.trim(), "pin-4711");
    for wrong in ["", "ab", &format!("{} {}", digits(1), &digits(2)[1..])] {
        world.set("STEERSMAN_KEY", wrong);
        let ran = world.run(&["run", "--resume", "last"]);
        assert_ne!(ran.code, Some(0), "{ran:?}");
        assert!(
            ran.err.contains("STEERSMAN_KEY does not hold 1 to 8 keys"),
            "{ran:?}"
        );
    }
}

/// The keys of the file, by their ids, as `key` lists them.
fn listed(world: &World) -> Vec<(String, String, u64)> {
    let keys = world.json_lines(&["key"]);
    let text = |key: &serde_json::Value, name: &str| key[name].as_str().unwrap().to_owned();
    keys.iter()
        .map(|key| {
            (
                text(key, "key"),
                text(key, "does"),
                key["values"].as_u64().unwrap(),
            )
        })
        .collect()
}

/// A new key seals at once, or first only opens while other processes seal with the old one. What older keys sealed opens.
#[test]
fn the_key_that_seals_is_exchanged_by_a_command() {
    let mut world = World::new();
    world.write("steersman.yaml", DESK);
    world.write("token.json", r#"{ "token": "tok-4711" }"#);
    let login = json!({ "call": { "login": {} } });
    let look = json!({ "call": { "look": {} } });
    let steps = json!({ "desk": [login, "Well.", look, "Well.", login, look, "Well."] });
    world.write("script.yaml", &steps.to_string());
    let ran = world.run(&["key", "rotate", "--store", "none.db"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let ran = world.run(&["run", "--script-all", "script.yaml", "--input", "Log in."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let file = world.folder.join(".steersman/key");
    let before = std::fs::read_to_string(&file).unwrap();
    let [(first, _, values)] = &listed(&world)[..] else {
        panic!("{:?}", listed(&world));
    };
    assert!(*values > 0);

    let ran = world.run(&["key", "rotate", "--prepare"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let does = |world: &World| -> Vec<(String, String)> {
        let all = listed(world).into_iter();
        all.map(|(key, does, _)| (key, does)).collect()
    };
    let [(a, seals), (second, opens)] = &does(&world)[..] else {
        panic!("{:?}", does(&world));
    };
    assert_eq!((a, &**seals, &**opens), (first, "seals", "opens"));
    assert!(
        ran.err
            .contains(&format!("steersman key rotate --to {second}")),
        "{ran:?}"
    );
    let ran = world.run(&["key", "rotate", "--to", second]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let order =
        |world: &World| -> Vec<String> { does(world).into_iter().map(|(key, _)| key).collect() };
    assert_eq!(order(&world), [second.clone(), first.clone()]);

    let ran = world.run(&["key", "rotate"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let [third, b, c] = &order(&world)[..] else {
        panic!("{:?}", order(&world));
    };
    assert_eq!((b, c), (second, first));
    says(&world, "Look.", 0);
    says(&world, "Log in, and look.", 0);
    let looked = std::fs::read_to_string(world.folder.join("looked")).unwrap();
    assert_eq!(looked, "tok-4711\ntok-4711\n");
    assert!(
        listed(&world)
            .iter()
            .any(|(key, does, values)| key == third && does == "seals" && *values > 0)
    );
    let after = std::fs::read_to_string(&file).unwrap();
    assert!(
        after.ends_with(&format!("{}\n", before.trim())),
        "the first key is kept"
    );
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );

    let ran = world.run(&["key", "rotate", "--to", "00000000"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("has no key 00000000") && ran.err.contains(third.as_str()),
        "{ran:?}"
    );
    for _ in 0..5 {
        assert_eq!(world.run(&["key", "rotate"]).code, Some(0));
    }
    let ran = world.run(&["key", "rotate"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("holds 8 keys"), "{ran:?}");
    assert_eq!(listed(&world).len(), 8, "the file is left as it is");
    let shown = world.run(&["key"]).all();
    assert!(
        before
            .split_whitespace()
            .all(|digits| !shown.contains(digits))
    );
    world.set("STEERSMAN_KEY", &digits(3));
    let ran = world.run(&["key", "rotate"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("STEERSMAN_KEY"), "{ran:?}");
}
