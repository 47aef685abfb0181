//! Secrets are planted wherever a definition can hold one; then everything that was written or printed is searched.

use crate::world::{World, files};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

const KEY: &str = "sk-PLANTED-key-8f2a";
const PASSWORD: &str = "PLANTED-password-41c7";
const TOKEN: &str = "PLANTED-token-d09e";
const FILE: &str = "PLANTED-file-7b33";

#[test]
fn secrets_are_nowhere_in_clear() {
    let mut world = World::new();
    world.set("BANK_KEY", KEY);
    world.write("pin.txt", &format!("{FILE}\n"));
    let (address, seen) = bank();
    world.set("BANK_URL", &address);
    world.write(
        "steersman.yaml",
        r#"name: bank
record: [raw, requests]
config: { bank_url: { type: string, env: BANK_URL, live: true } }
secrets: { key: { env: BANK_KEY }, pin: { file: pin.txt } }
state: { token: { type: secret, optional: true } }
tools:
  login:
    description: Logs the user in.
    parameters: { name: string, password: { type: secret, ask: "Your password?" } }
    effect: read
    http: { method: POST, url: "{{ config.bank_url }}/login", json: "{{ args }}", headers: { x-key: "{{ secrets.key }}", x-pin: "{{ secrets.pin }}" } }
    set: { token: "{{ result.token }}" }
  balance:
    description: The balance.
    effect: read
    requires: state.token is not none
    http: { url: "{{ config.bank_url }}/balance", headers: { authorization: "Bearer {{ state.token }}" } }
agents: { desk: { system: You help., tools: [login, balance] } }
"#,
    );
    world.write(
        "script.yaml",
        "desk:\n  - call: { login: { name: anna } }\n  - call: { balance: {} }\n  - \"You have {{ request.last }}.\"\n",
    );
    let mut printed = String::new();
    let mut run = |args: &[&str], code: i32| {
        let ran = world.run(args);
        assert_eq!(ran.code, Some(code), "{args:?} {ran:?}");
        printed.push_str(&ran.out);
        printed.push_str(&ran.err);
    };
    run(
        &[
            "run",
            "--script-all",
            "script.yaml",
            "--input",
            "What do I have?",
        ],
        5,
    );
    run(&["answer", "last", PASSWORD], 0);
    for args in [
        &["show", "last"][..],
        &["show", "last", "--json"],
        &["log", "last"],
        &["log", "last", "--json"],
        &["context", "last", "--json"],
        &["context", "last@login"],
        &["effects", "last", "--json"],
        &["sessions", "--json"],
        &["pending", "--json"],
    ] {
        run(args, 0);
    }
    let seen = seen.join().unwrap();
    for (what, planted) in [
        ("key", KEY),
        ("password", PASSWORD),
        ("token", TOKEN),
        ("file", FILE),
    ] {
        assert!(
            seen.contains(planted),
            "the bank did not receive the {what}: {seen}"
        );
        assert!(
            !printed.contains(planted),
            "the {what} was printed: {printed}"
        );
    }
    for file in files(&world.folder) {
        if file.ends_with("pin.txt") {
            continue;
        }
        let bytes = std::fs::read(&file).unwrap();
        for planted in [KEY, PASSWORD, TOKEN, FILE] {
            assert!(
                !bytes
                    .windows(planted.len())
                    .any(|w| w == planted.as_bytes()),
                "{planted} is in {}",
                file.display()
            );
        }
    }
}

/// A bank that serves two requests. Returns its address, and a thread that returns all that the bank received.
fn bank() -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let seen = std::thread::spawn(move || {
        let mut all = String::new();
        for _ in 0..2 {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let lower = line.to_ascii_lowercase();
                if let Some(n) = lower.strip_prefix("content-length:") {
                    length = n.trim().parse().unwrap();
                }
                let end = line.trim().is_empty();
                all.push_str(&line);
                if end {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            all.push_str(&String::from_utf8(body).unwrap());
            let answer = format!("{{\"token\": \"{TOKEN}\", \"cents\": 1200}}");
            let answer = if all.contains("/balance") {
                "{\"cents\": 1200}"
            } else {
                &answer
            };
            write!(
                reader.get_mut(),
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
                answer.len()
            )
            .unwrap();
        }
        all
    });
    (address, seen)
}
