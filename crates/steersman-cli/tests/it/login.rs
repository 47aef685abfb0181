//! `login`: a person signs in at an MCP server.

use crate::world::{Ran, World};
use serde_json::Value as Json;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;
use steersman_testkit::library::{Library, browse, fields};

/// A definition with the library as its server.
fn world(library: &Library) -> World {
    let world = World::new();
    let url = library.url();
    world.write(
        "steersman.yaml",
        &format!(
            "name: reader\nmcp:\n  books: {{ url: \"{url}\", oauth: person, effect: unsafe, retry: 0 }}\n\
             agents: {{ main: {{ system: You read., tools: [\"books.*\"] }} }}\n"
        ),
    );
    world.write(
        "script.yaml",
        "main: [ { call: { books.find: {} } }, \"{{ request.last }}\" ]\n",
    );
    world
}

const RUN: [&str; 5] = ["run", "--script-all", "script.yaml", "--input", "Go."];

/// Runs a command that prints an address, with a browser that goes there. `pastes`: the address to which it is sent is typed. Returns
/// what the command printed, and the page that the browser showed at last.
pub(crate) fn signs_in(world: &World, typed: &[&str], pastes: bool) -> (Ran, String) {
    let mut child = world
        .command(typed)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    let address = match serde_json::from_str::<Json>(&first) {
        Ok(json) => json["address"].as_str().unwrap().to_owned(),
        Err(_) => first.trim().to_owned(),
    };
    let mut page = String::new();
    if address.starts_with("http") {
        let (status, to, body) = browse(&address);
        assert_eq!(status, 302, "{body}");
        let to = to.unwrap();
        if pastes {
            let mut stdin = child.stdin.take().unwrap();
            writeln!(stdin, "\n  {to}").unwrap();
        } else {
            let (other, _) = to.split_once('?').unwrap();
            assert_eq!(browse(&format!("{other}?code=1&state=2")).0, 404);
            assert_eq!(browse(&to.replace("/signed-in", "/favicon.ico")).0, 404);
            page = browse(&to).2;
        }
    }
    let ended = child.wait_with_output().unwrap();
    out.read_to_string(&mut first).unwrap();
    let ran = Ran {
        code: ended.status.code(),
        out: first,
        err: String::from_utf8(ended.stderr).unwrap(),
    };
    (ran, page)
}

#[test]
fn a_person_signs_in_and_out() {
    let library = Library::start();
    let world = world(&library);
    let none = world.run(&RUN);
    assert_eq!(none.code, Some(1), "{none:?}");
    assert!(
        none.err.contains("wants a sign-in: steersman login books"),
        "{none:?}"
    );
    assert!(!none.err.contains("start_timeout"), "{none:?}");
    let listed = world.json(&["login"]).1;
    assert_eq!(listed["stands"], "signed out", "{listed}");

    let (signed, page) = signs_in(&world, &["login", "books"], false);
    assert_eq!(signed.code, Some(0), "{signed:?}");
    assert!(
        signed.err.contains("Signed in at `books`, with read."),
        "{signed:?}"
    );
    assert!(page.contains("You are signed in."), "{page}");
    let ran = world.run(&RUN);
    assert_eq!(
        (ran.code, ran.out.trim_end()),
        (Some(0), "found"),
        "{ran:?}"
    );
    let checked = world.run(&["check", "--servers"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.out.contains("books.find"), "{checked:?}");
    let listed = world.json(&["login"]).1;
    assert_eq!(
        (&listed["stands"], &listed["issuer"]),
        (&"signed in".into(), &library.origin.as_str().into())
    );
    let table = world.run(&["login"]).out;
    assert!(
        table.starts_with("SERVER") && table.contains("signed in"),
        "{table}"
    );

    // Nothing that the program wrote has a token in the open.
    let tokens = library.tokens();
    assert!(!tokens.is_empty());
    for file in std::fs::read_dir(world.folder.join(".steersman")).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap_or_default();
        for token in &tokens {
            let found = bytes
                .windows(token.len())
                .any(|window| window == token.as_bytes());
            assert!(!found, "{token}");
        }
    }

    let out = world.json(&["login", "books", "--forget"]).1;
    assert_eq!(
        (&out["forgotten"], &out["still_valid"]),
        (&true.into(), &Json::Null),
        "{out}"
    );
    assert!(!tokens.iter().any(|token| library.is_valid(token)));
    assert_eq!(world.run(&RUN).code, Some(1));
    let again = world.run(&["login", "books", "--forget"]);
    assert!(again.err.contains("Nobody had signed in"), "{again:?}");
}

/// A call of class `unsafe` waits for the sign-in without a process, and is carried out once.
#[test]
fn a_call_waits_until_somebody_signs_in_on_another_computer() {
    let library = Library::start();
    library.rules(|rules| rules.is_open = true);
    let world = world(&library);
    let waits = world.run(&RUN);
    assert_eq!(waits.code, Some(5), "{waits:?}");
    assert!(waits.all().contains("steersman login books"), "{waits:?}");
    let (signed, _) = signs_in(&world, &["login", "books", "--paste", "--json"], true);
    assert_eq!(signed.code, Some(0), "{signed:?}");
    let last: Json = serde_json::from_str(signed.out.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["server"], &last["stands"]),
        (&"books".into(), &"signed in".into())
    );
    let approved = world.run(&["approve", "last", "--script-all", "script.yaml"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    assert!(approved.out.contains("found"), "{approved:?}");
    assert_eq!(library.calls(), 1);
}

#[test]
fn a_sign_in_is_for_a_tenant_and_a_subject() {
    let library = Library::start();
    let world = world(&library);
    let ada = ["--tenant", "acme", "--subject", "ada"];
    let typed = [&["login", "books"][..], &ada].concat();
    let (signed, _) = signs_in(&world, &typed, false);
    assert_eq!(signed.code, Some(0), "{signed:?}");
    let stands = |of: &[&str]| world.json(&[&["login"], of].concat()).1["stands"].clone();
    assert_eq!(stands(&ada), "signed in");
    for other in [
        &[][..],
        &["--tenant", "acme"],
        &["--subject", "ada"],
        &["--tenant", "acme", "--subject", "bob"],
    ] {
        assert_eq!(stands(other), "signed out", "{other:?}");
    }
    assert_eq!(world.run(&RUN).code, Some(1), "a session without a subject");
    let erased = world.run(&["erase", "--tenant", "acme", "--subject", "ada", "--yes"]);
    assert_eq!(erased.code, Some(0), "{erased:?}");
    assert_eq!(stands(&ada), "signed out");
}

#[test]
fn what_cannot_be_signed_in_says_why() {
    let library = Library::start();
    let world = world(&library);
    let none = world.run(&["login", "boks"]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.err.contains("it has books"), "{none:?}");
    world.write(
        "plain.yaml",
        "name: p\nmcp: { files: { command: [cat] } }\nagents: { a: { system: s } }\n",
    );
    let plain = ["--definition", "plain.yaml"];
    let none = world.run(&[&["login", "files"][..], &plain].concat());
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.err.contains("oauth: person"), "{none:?}");
    let none = world.run(&[&["login"][..], &plain].concat());
    assert!(
        none.err.contains("No MCP server of this definition"),
        "{none:?}"
    );
    // The person refuses at the authorization server.
    library.rules(|rules| rules.says = Some("https://evil.example".into()));
    let (refused, page) = signs_in(&world, &["login", "books"], false);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.err.contains("is from `https://evil.example`"),
        "{refused:?}"
    );
    assert!(page.contains("The sign-in failed."), "{page}");
    assert_eq!(library.came("POST /token"), []);
    let asked = library.came("GET /authorize");
    assert_eq!(asked.len(), 1);
    assert!(fields(&asked[0].body).is_empty());
}

/// A refresh token that is good once was exchanged, and the process is killed before it has stored what it got for it. The stored one is worth
/// nothing then: the call waits for a sign-in, and is carried out once.
#[test]
fn a_kill_between_a_renewal_and_its_storing_costs_a_sign_in_and_no_call() {
    let library = Library::start();
    library.rules(|rules| rules.rotates = true);
    let world = world(&library);
    let (signed, _) = signs_in(&world, &["login", "books"], false);
    assert_eq!(signed.code, Some(0), "{signed:?}");
    library.revoke(false);
    library.rules(|rules| (rules.loses, rules.is_open) = (true, true));
    let asked = library.came("POST /token").len();
    let mut killed = world.command(&RUN).spawn().unwrap();
    while library.came("POST /token").len() == asked {
        std::thread::yield_now();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    library.rules(|rules| rules.loses = false);
    let waits = world.run(&RUN);
    assert_eq!(waits.code, Some(5), "{waits:?}");
    assert!(waits.all().contains("steersman login books"), "{waits:?}");
    let (signed, _) = signs_in(&world, &["login", "books"], false);
    assert_eq!(signed.code, Some(0), "{signed:?}");
    let approved = world.run(&["approve", "last", "--script-all", "script.yaml"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    assert_eq!(library.calls(), 1);
}
