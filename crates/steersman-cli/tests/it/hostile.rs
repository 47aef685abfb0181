//! Hostile files, texts and servers.

use crate::world::{Ran, World};
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use steersman_adapters::sqlite::SqliteStore;
use steersman_machine::stored::ids::Time;
use steersman_runtime::inbox::Wanted;
use steersman_runtime::store::Inbox as _;
use steersman_runtime::store::bounds::WAITING;

/// Sets the title of the window, clears the screen, hides text, starts a colour with a one-byte control, and reverses
/// the text that follows.
const EVIL: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[8m\u{9b}31m\u{202e}tfel";

fn net(world: &World, rest: &str) {
    world.write("net/steersman.yaml", &format!("name: net\n{rest}"));
}

/// Runs a command that must end within 30 seconds. Returns its exit code and standard error.
fn soon(world: &World, args: &[&str]) -> (Option<i32>, String) {
    let mut child = world
        .command(args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(30) {
            child.kill().unwrap();
            panic!("{args:?} does not end");
        }
        std::thread::yield_now();
    }
    let ended = child.wait_with_output().unwrap();
    let err = String::from_utf8(ended.stderr).unwrap();
    (ended.status.code(), err)
}

#[test]
fn a_definition_names_plain_files_of_its_folder() {
    let world = World::new();
    net(&world, "agents: { a: { system: prompt.md } }\n");
    let prompt = world.folder.join("net/prompt.md");
    world.write("secret.txt", "my diary");
    std::os::unix::fs::symlink("../secret.txt", &prompt).unwrap();
    let (code, err) = soon(&world, &["check", "net"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("leads out of the folder"), "{err}");

    std::fs::remove_file(&prompt).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(&prompt)
            .status()
            .unwrap()
            .success()
    );
    let (code, err) = soon(&world, &["check", "net"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("no plain file"), "{err}");

    std::fs::remove_file(&prompt).unwrap();
    world.write("net/shared/prompt.md", "You help.");
    std::os::unix::fs::symlink("shared/prompt.md", &prompt).unwrap();
    assert_eq!(soon(&world, &["check", "net"]).0, Some(0));

    // If the definition itself is a link, its other files may be links into the folder of its target.
    std::os::unix::fs::symlink("net/steersman.yaml", world.folder.join("linked.yaml")).unwrap();
    std::os::unix::fs::symlink("net/shared/prompt.md", world.folder.join("prompt.md")).unwrap();
    assert_eq!(soon(&world, &["check", "linked.yaml"]).0, Some(0));
}

#[test]
fn a_script_and_a_store_end() {
    let world = World::new();
    net(&world, "agents: { a: { system: s } }\n");
    let run = ["run", "net", "--script-all", "/dev/zero", "--input", "Hi"];
    let (code, err) = soon(&world, &run);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("larger than 64 MiB"), "{err}");
    let pipe = world.folder.join("pipe.db");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let (code, err) = soon(&world, &["--store", "pipe.db", "sessions"]);
    assert_eq!(code, Some(4), "{err}");
}

#[test]
fn no_file_that_is_named_is_read_without_end() {
    let world = World::new();
    net(&world, "agents: { a: { system: s } }\n");
    world.write("script.yaml", "a: [ Hello. ]");
    let run = ["run", "net", "--script-all", "script.yaml", "--input", "Hi"];
    let with = |more: &[&'static str]| [&run[..], more].concat();
    let (code, err) = soon(&world, &["import", "aiwaves", "/dev/zero"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("/dev/zero cannot be read"), "{err}");
    assert!(err.contains("larger than 16 MiB"), "{err}");
    assert!(err.contains("the JSON file of a configuration"), "{err}");
    let (code, err) = soon(&world, &with(&["--file", "/dev/zero"]));
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("of an artifact"), "{err}");
    // A clock is read again and again, so it must be a plain file.
    let pipe = world.folder.join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for clock in ["pipe", "/dev/zero"] {
        let (code, err) = soon(&world, &with(&["--clock", clock]));
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains("holds no time"), "{err}");
    }
    assert_eq!(soon(&world, &run).0, Some(0));
}

#[test]
fn what_strangers_wrote_moves_no_cursor() {
    let world = World::new();
    net(
        &world,
        "tools: { t: { description: d, parameters: { x: string }, approve: true, command: [echo] } }\nagents: { a: { system: s, tools: [t] } }\n",
    );
    let script = serde_json::json!({ "a": [{ "text": EVIL, "call": { "t": { "x": EVIL } } }] });
    let script = script.to_string().replace('\u{9b}', "\\u009b");
    world.write("script.yaml", &script);
    let run = |args: &[&str]| {
        let mut args = args.to_vec();
        args.extend(["--color", "always"]);
        world.run(&args)
    };
    let asked = run(&["run", "net", "--script-all", "script.yaml", "--input", EVIL]);
    assert_eq!(asked.code, Some(5), "{asked:?}");
    assert!(asked.err.contains("approval by user"), "{asked:?}");
    let unknown = run(&["show", EVIL]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    for told in [&asked.err, &unknown.err] {
        for bad in [
            "\u{7}",
            "\u{1b}]",
            "\u{1b}[2J",
            "\u{1b}[8m",
            "\u{9b}",
            "\u{202e}",
        ] {
            assert!(!told.contains(bad), "{bad:?} in {told:?}");
        }
        assert!(told.contains("\u{1b}["), "our own colours stay: {told:?}");
    }
    let json = run(&["show", "last", "--json"]);
    assert!(!json.out.contains('\u{202e}') && json.out.contains("\\u202e"));
}

/// Text output shows the beginning of a long number, and pads no other row to its length. JSON has all digits.
#[test]
fn a_number_of_any_length_widens_no_row() {
    const DIGITS: usize = 60_000;
    let world = World::new();
    world.write("serial", &"7".repeat(DIGITS));
    net(
        &world,
        r#"state: { serial: optional string }
labels: { serial: "{{ state.serial }}" }
outcome: { serial: state.serial }
tools:
  look: { description: d, effect: read, command: [cat, ../serial], set: { serial: "{{ result }}" } }
  pay: { description: d, parameters: { to: string }, effect: unsafe, approve: true, command: [echo] }
agents: { a: { system: s, tools: [look, pay] } }
"#,
    );
    let call = serde_json::json!({ "call": { "pay": { "to": "8".repeat(DIGITS) } } });
    let script = serde_json::json!({ "a": [{ "call": { "look": {} } }, call, "Paid."] });
    world.write("script.yaml", &script.to_string());
    let script = ["--script-all", "script.yaml"];
    let run = ["run", "net", "--input", "Pay."];
    let ran = world.run(&[&run[..], &script].concat());
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    let look = |screen: &[&str]| {
        let ran = world.run(screen);
        for row in ran.all().lines() {
            let (shown, len) = (row.trim_end(), row.chars().count());
            assert!(len < 400, "{screen:?}: {len} characters");
            assert!(!shown.contains(&" ".repeat(100)), "{screen:?}: {row}");
        }
    };
    let screens: [&[&str]; 7] = [
        &["show", "last"],
        &["log", "last"],
        &["effects", "last"],
        &["why", "last"],
        &["pending"],
        &["pending", "--all"],
        &["sessions"],
    ];
    for screen in screens {
        look(screen);
    }
    let keeps = |digit: &str, screen: &[&str]| {
        let json = world.run(screen).out;
        assert!(json.contains(&digit.repeat(DIGITS)), "{screen:?}");
    };
    keeps("8", &["pending", "--json"]);
    keeps("7", &["show", "last", "--json"]);
    let ran = world.run(&[&["approve", "last"][..], &script].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for screen in screens {
        look(screen);
    }
    keeps("8", &["effects", "last", "--json"]);
    keeps("7", &["export", "last"]);
}

#[test]
fn nothing_said_begins_nothing() {
    let world = World::new();
    net(&world, "agents: { a: { system: s } }\n");
    world.write("script.yaml", "a: [Hello., Again.]\n");
    let run = ["run", "net", "--script-all", "script.yaml", "--input"];
    for said in ["", "  \n", "-"] {
        let mut args = run.to_vec();
        args.push(said);
        let ran = world.run(&args);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains("nothing to say"), "{ran:?}");
    }
    assert!(world.json_lines(&["sessions"]).is_empty());
    let mut args = run.to_vec();
    args.push("Hi");
    assert_eq!(world.run(&args).code, Some(0));
    let long = "x".repeat(1025);
    for id in ["", "a\nb", &long] {
        assert_eq!(world.run(&["send", "last", "Hi", "--id", id]).code, Some(2));
    }
    let ran = world.run(&["send", "last", "Hi", "--script-all", "gone.yaml"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(world.json(&["show", "last"]).1["answer"], "Hello.");
}

#[test]
fn a_session_that_is_damaged_hides_no_other() {
    let world = World::new();
    net(
        &world,
        "tools:\n  enquire: { description: d, parameters: { question: string }, ask: user }\n  nap: { description: d, effect: read, command: [sh, -c, \"touch begun; sleep 50\"] }\nagents: { a: { system: s, tools: [enquire, nap] } }\n",
    );
    world.write("nap.yaml", "a: [ { call: { nap: {} } } ]\n");
    world.write(
        "ask.yaml",
        "a: [ { call: { enquire: { question: Well? } } } ]\n",
    );
    let run = |script, said| ["run", "net", "--script-all", script, "--input", said];
    // A process dies while a tool runs: `pending` must read the log of this session.
    let mut child = world
        .command(&run("nap.yaml", "to be damaged"))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !world.folder.join("net/begun").exists() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it never began");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = world.run(&run("ask.yaml", "whole"));
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let file = world.folder.join(".steersman/sessions.db");
    let mut bytes = std::fs::read(&file).unwrap();
    // The text is in its line, and in the list of sessions with their last texts.
    let said = bytes.windows(13).enumerate();
    let said: Vec<usize> = said
        .filter(|(_, b)| b == b"to be damaged")
        .map(|(at, _)| at)
        .collect();
    assert!(!said.is_empty());
    for at in said {
        bytes[at] ^= 1;
    }
    std::fs::write(&file, bytes).unwrap();
    let ran = world.run(&["pending", "--json"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert_eq!(ran.out.lines().count(), 1, "{ran:?}");
    assert!(ran.err.contains("line 1"), "{ran:?}");
}

/// Reads a request to its end. Returns its first line.
fn request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let lower = line.to_ascii_lowercase();
        if let Some(n) = lower.strip_prefix("content-length:") {
            length = n.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    first.trim().to_owned()
}

/// A server that answers each request with what `answer` makes of its first line: a status, more headers, a body. Returns
/// its address.
pub(crate) fn server(
    mut answer: impl FnMut(String) -> (&'static str, &'static str, String) + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (status, headers, body) = answer(request(&stream));
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    address
}

/// A server that answers every request with this status and the request line.
fn echo(status: &'static str) -> String {
    server(move |first| (status, "", first))
}

/// A model server that gives these messages of the chat completions API, one for each call.
pub(crate) fn model(messages: Vec<Json>) -> String {
    let mut messages = messages.into_iter();
    server(move |first| {
        if !first.starts_with("POST ") || !first.contains("/chat/completions ") {
            return ("404 Not Found", "", String::new());
        }
        let message = messages.next().expect("the model is called no more often");
        let piece =
            json!({ "choices": [{ "index": 0, "delta": message, "finish_reason": "stop" }] });
        let body = format!("data: {piece}\n\ndata: [DONE]\n\n");
        ("200 OK", "content-type: text/event-stream\r\n", body)
    })
}

/// A call as a model server writes it.
fn called(index: u32, id: &str, tool: &str, args: &str) -> Json {
    json!({ "index": index, "id": id, "type": "function", "function": { "name": tool, "arguments": args } })
}

/// A desk whose model is at this address.
fn desk(world: &World, address: &str, pay: &str) {
    net(
        world,
        &format!(
            "models: {{ default: {{ provider: compatible, model: m, url: \"{address}/v1\" }} }}\n\
             tools:\n  pay: {{ description: Pays., parameters: {{ units: any }}, effect: unsafe, {pay} }}\n\
             agents: {{ a: {{ system: S., tools: [pay] }} }}\n"
        ),
    );
}

#[test]
fn an_approver_sees_every_digit_of_a_number() {
    let world = World::new();
    // No number type of ours holds it.
    let digits = "1234567890123456789012345";
    let args = format!("{{\"units\":{digits}}}");
    let address = model(vec![
        json!({ "role": "assistant", "tool_calls": [called(0, "c1", "pay", &args)] }),
        json!({ "role": "assistant", "content": "Paid." }),
    ]);
    desk(&world, &address, "approve: true, command: [echo]");
    let ran = world.run(&["run", "net", "--input", "Pay."]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let all = |ran: &Ran| {
        let shown = ran.all();
        assert!(shown.contains(digits), "{digits} is not in {shown}");
    };
    all(&ran);
    all(&world.run(&["pending"]));
    all(&world.run(&["pending", "--all"]));
    all(&world.run(&["pending", "--json"]));
    all(&world.run(&["show", "last"]));
    let approved = world.run(&["approve", "last"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    all(&world.run(&["effects", "last"]));
    all(&world.run(&["log", "last"]));
}

/// The tool is run once: the same id with the same arguments is the same call, written twice.
#[test]
fn a_call_that_stands_twice_in_an_answer_is_performed_once() {
    let world = World::new();
    let twice = [0, 1].map(|index| called(index, "c1", "pay", "{\"units\":1}"));
    let address = model(vec![
        json!({ "role": "assistant", "tool_calls": twice }),
        json!({ "role": "assistant", "content": "Paid." }),
    ]);
    desk(
        &world,
        &address,
        "command: [sh, -c, \"echo paid >> book; echo ok\"]",
    );
    let ran = world.run(&["run", "net", "--input", "Pay."]);
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "Paid."), "{ran:?}");
    let book = std::fs::read_to_string(world.folder.join("net/book")).unwrap();
    assert_eq!(book, "paid\n");
}

#[test]
fn a_secret_in_an_address_that_is_given_back_is_masked_as_it_was_written() {
    let mut world = World::new();
    world.set("HELD", "PLANTED é/+ \"x\"~*");
    let address = echo("200 OK");
    net(
        &world,
        &format!(
            "secrets: {{ s: {{ env: HELD }} }}\ntools: {{ t: {{ description: d, effect: read, http: {{ url: \"{address}/{{{{ secrets.s }}}}\", query: {{ q: \"{{{{ secrets.s }}}}\" }} }} }} }}\nagents: {{ a: {{ system: s, tools: [t] }} }}\n"
        ),
    );
    world.write("script.yaml", "a: [ { call: { t: {} } }, Done. ]\n");
    let run = ["run", "net", "--script-all", "script.yaml", "--input", "Go"];
    assert_eq!(world.run(&run).code, Some(0));
    let context = world.run(&["context", "last"]).out;
    assert!(
        context.contains("GET /(secret)?q=(secret) HTTP"),
        "{context}"
    );
    let stored = std::fs::read(world.folder.join(".steersman/sessions.db")).unwrap();
    assert!(!stored.windows(7).any(|b| b == b"PLANTED"));
}

#[test]
fn an_idempotent_effect_that_stays_unknown_asks_nobody_in_vain() {
    let world = World::new();
    let address = echo("500 No");
    net(
        &world,
        &format!(
            "tools: {{ t: {{ description: d, effect: idempotent, retry: 1, http: {{ method: POST, url: \"{address}\" }} }} }}\nagents: {{ a: {{ system: s, tools: [t] }} }}\n"
        ),
    );
    world.write("script.yaml", "a: [ { call: { t: {} } }, Done. ]\n");
    let ran = world.run(&["run", "net", "--script-all", "script.yaml", "--input", "Go"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.err.contains("not repeated"), "{ran:?}");
    let ran = world.run(&["effects", "last"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("unknown for good"), "{ran:?}");
}

#[test]
fn who_says_it_twice_does_not_wait() {
    let world = World::new();
    net(
        &world,
        "tools: { t: { description: d, effect: unsafe, command: [sh, -c, \"touch begun; sleep 50\"] } }\nagents: { a: { system: s, tools: [t] } }\n",
    );
    world.write("script.yaml", "a: [ { call: { t: {} } }, Done. ]\n");
    let mut run = world
        .command(&["run", "net", "--script-all", "script.yaml", "--input", "Go"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !world.folder.join("net/begun").exists() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it never began");
        std::thread::yield_now();
    }
    let id = run.id().to_string();
    let interrupt = || Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(interrupt().success());
    let mut said = String::new();
    let mut err = BufReader::new(run.stderr.take().unwrap());
    while !said.contains("Ctrl-C leaves at once") {
        assert!(err.read_line(&mut said).unwrap() > 0, "{said}");
    }
    assert!(interrupt().success());
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(40), "it waited");
    let ran = world.run(&["run", "--resume", "last"]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
}

/// Quotes a command of our program for a shell.
fn quoted(args: &[&str]) -> String {
    let words: Vec<String> = std::iter::once(env!("CARGO_BIN_EXE_steersman"))
        .chain(args.iter().copied())
        .map(|word| format!("'{}'", word.replace('\'', "'\\''")))
        .collect();
    words.join(" ")
}

/// Runs a command on a terminal with colours. Returns what it writes there.
pub(crate) fn on_terminal(world: &World, args: &[&str]) -> String {
    typed_on_terminal(world, &quoted(args))
}

/// Runs a command on a terminal of a width. Returns its data, without talk.
pub(crate) fn on_terminal_of(world: &World, width: usize, args: &[&str]) -> String {
    let typed = format!("stty cols {width}; {} 2>/dev/null", quoted(args));
    typed_on_terminal(world, &typed)
}

/// Runs on a terminal what is typed there, with the program's path for `steersman`. Returns what is written there.
pub(crate) fn typed_on_terminal_of(world: &World, width: usize, typed: &str) -> String {
    typed_on_terminal(world, &format!("stty cols {width}; {typed}"))
}

/// Begins on a terminal what is typed there. What is written there can be read while it runs.
pub(crate) fn on_terminal_while(world: &World, width: usize, typed: &str) -> Child {
    let mut command = terminal(world, &format!("stty cols {width}; {typed}"));
    command.stdout(Stdio::piped()).spawn().unwrap()
}

fn typed_on_terminal(world: &World, typed: &str) -> String {
    let ran = terminal(world, typed).output().unwrap();
    let shown = String::from_utf8(ran.stdout).unwrap();
    assert!(!shown.is_empty(), "{typed} wrote nothing");
    shown
}

/// A terminal in which something is typed.
fn terminal(world: &World, typed: &str) -> Command {
    let ours = world.command(&[]);
    let mut command = Command::new("script");
    command
        .args(["-qefc", typed, "/dev/null"])
        .current_dir(&world.folder)
        .env_clear()
        .stdin(Stdio::null());
    for (name, value) in ours.get_envs().filter(|(name, _)| *name != "NO_COLOR") {
        command.env(name, value.unwrap());
    }
    command.env("TERM", "xterm");
    command
}

/// Lines with controls that a terminal obeys, other than our own styles, the status line and ends of lines.
fn obeyed(shown: &str) -> Vec<String> {
    let ours = ["0", "1", "2", "4", "31", "32", "33", "36"].map(|code| format!("\u{1b}[{code}m"));
    let status = [
        "\u{1b}[K",
        "\u{1b}[A",
        "\u{1b}[?2004l",
        "\u{1b}[?2004h",
        "\u{1b}[?1049h",
        "\u{1b}[?1049l",
        "\u{1b}[?25h",
        "\u{1b}[?25l",
        "\u{1b}[H",
        "\u{1b}[J",
    ]
    .map(str::to_owned);
    let mut rest = shown.replace("\r\n", "\n").replace("\r\u{1b}[K", "\n");
    for own in ours.iter().chain(&status) {
        rest = rest.replace(own, "");
    }
    let rest = rest.replace("\n\r", "\n").replace("\r  ", "  ");
    let bidi = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}');
    let lines = rest.trim_matches('\r').lines();
    let bad = lines.filter(|line| {
        line.chars()
            .any(|c| c != '\t' && (c.is_control() || bidi(c)))
    });
    bad.map(|line| format!("{line:?}")).collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one list of commands")]
fn a_terminal_shows_what_strangers_wrote_and_obeys_none_of_it() {
    const TOLD: &str = "\\e[35m\\e[2J\\a\\x9b31m\\u202etfel\\u2066\\u200f\\u061c\\x7f\\re";
    let evil = "\u{1b}[35m\u{1b}[2J\u{7}\u{9b}31m\u{202e}tfel\u{2066}\u{200f}\u{61c}\u{7f}\re";
    let world = World::new();
    let server = format!("mcp: {{ s: {{ command: [sh, -c, \"echo '{TOLD}' >&2; exit 1\"] }} }}\n");
    let definition = format!(
        "name: net\nlabels: {{ about: \"{TOLD}\" }}\nstate: {{ note: {{ type: string, default: \"{TOLD}\" }} }}\noutcome: {{ note: state.note }}\ntools:\n  t: {{ description: \"{TOLD}\", parameters: {{ x: string }}, effect: unsafe, approve: {{ when: \"true\", ask: \"{TOLD} {{{{ args.x }}}}\" }}, command: [printf, \"%s\", \"{{{{ args.x }}}}\"], set: {{ note: \"{{{{ result }}}}\" }} }}\nagents:\n  a: {{ description: \"{TOLD}\", system: \"{TOLD}\", tools: [t, artifacts, memory, ask, todo] }}\n"
    );
    world.write("net/steersman.yaml", &definition);
    world.write("served/steersman.yaml", &format!("{server}{definition}"));
    world.write("wrong/steersman.yaml", &format!("name: net\nagents: {{ a: {{ system: \"{TOLD}\", \"{TOLD}\": 1, tools: [\"{TOLD}\"] }} }}\n"));
    let script = format!(
        "a:\n  - {{ text: \"{TOLD}\", call: {{ artifact_write: {{ name: x.md, content: \"{TOLD}\" }} }} }}\n  - {{ call: {{ memory_save: {{ name: m, content: \"{TOLD}\", tags: [\"{TOLD}\"] }} }} }}\n  - {{ call: {{ todo_add: {{ text: \"{TOLD}\" }} }} }}\n  - {{ call: {{ unknown: {{ \"{TOLD}\": \"{TOLD}\" }} }} }}\n  - {{ call: {{ t: {{ x: \"{TOLD}\" }} }} }}\n  - {{ call: {{ ask: {{ question: \"{TOLD}\", options: [\"{TOLD}\"] }} }} }}\n  - \"{TOLD}\"\n"
    );
    world.write("script.yaml", &script);
    let mut bad = Vec::new();
    let mut seen = |args: &[&str]| {
        let shown = on_terminal(&world, args);
        bad.extend(
            obeyed(&shown)
                .into_iter()
                .map(|line| format!("{args:?}: {line}")),
        );
        shown
    };
    let asked = seen(&["run", "net", "--script-all", "script.yaml", "--input", "Hi"]);
    assert!(asked.contains("\u{241b}[35m"), "{asked:?}");
    assert!(asked.contains("<U+202E>"), "{asked:?}");
    seen(&["pending"]);
    seen(&["approve", "last", "--script-all", "script.yaml"]);
    seen(&["pending"]);
    seen(&["answer", "last", "yes", "--script-all", "script.yaml"]);
    // A pipe gets each byte.
    let content = world.run(&["artifacts", "last", "x.md"]);
    assert_eq!(content.out, evil, "{content:?}");
    let told = world.run(&["show", evil]);
    assert!(told.err.contains("\u{1b}[35m"), "{told:?}");
    for command in [
        "show",
        "log",
        "context",
        "effects",
        "timeline",
        "graph",
        "why",
        "artifacts",
        "export",
        "pending",
        "pause",
        "resume",
        "hold",
        "release",
        "retry",
        "cancel",
    ] {
        seen(&[command, "last"]);
    }
    for args in [
        &["artifacts", "last", "x.md"][..],
        &["memory", "list"],
        &["memory", "search", "tfel"],
        &["memory", "show", "1"],
        &["sessions"],
        &["sessions", "--where", evil],
        &["show", "last", "--json"],
        &["export", "last", "--trajectories"],
        &[
            "fork",
            "last",
            "--label",
            "b",
            "--say",
            evil,
            "--script-all",
            "script.yaml",
        ],
        &["rerun", "last", "--definition", "net"],
        &["diff", "last", "last:b"],
        &["join", "last", "b"],
        &["adopt", "last", "b"],
        &["rewind", "last@1"],
        &["search", "last"],
        &["migrate", "last", "net"],
        &["fsck"],
        &["gc"],
        &["top", "--refreshes", "1"],
        &["schedule", "net"],
        &["schedule", "--drop", evil],
        &["doctor"],
        &["backup", "copy.db"],
        &["erase", "last"],
        &["check", "net"],
        &["check", "wrong"],
        &["check", "served", "--servers"],
        &["test", "net"],
        &["import", "aiwaves", evil],
        &["explain", evil],
        &["new", evil],
        &["schema"],
        &["lsp"],
        &["completions", "bash"],
        &["show", evil],
        &[evil],
        &[
            "run",
            "net",
            "--script-all",
            "script.yaml",
            "--set",
            evil,
            "--input",
            evil,
        ],
        &["send", "last", evil, "--script-all", "script.yaml"],
        &["reject", "last", "--because", evil],
        &["resolve", "last"],
    ] {
        seen(args);
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// A message to a full inbox is refused, and its sender is told so. Orders of people still reach the session.
#[test]
fn a_full_inbox_is_told_to_whoever_sends() {
    let world = World::new();
    net(&world, "agents: { a: { system: s } }\n");
    world.write("script.yaml", "a: [Hello.]\n");
    let run = ["run", "net", "--script-all", "script.yaml", "--input", "Hi"];
    assert_eq!(world.run(&run).code, Some(0));
    let id = world.json(&["show", "last"]).1["session"].clone();
    let id = id.as_str().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(async {
        let store = SqliteStore::open(world.folder.join(".steersman/sessions.db")).unwrap();
        let say = |n: u64| {
            Wanted::say("Hi")
                .by("user")
                .encode(format!("m{n}").into(), Time(1))
        };
        let said: Vec<_> = (0..WAITING).map(|n| store.deliver(id, say(n))).collect();
        for said in said {
            assert!(said.await.unwrap());
        }
    });
    let send = ["send", "last", "Hi", "--no-run", "--id", "one-more"];
    let ran = world.run(&send);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    for told in [
        id,
        "is full: 10000 lie there",
        "nothing was done",
        "steersman run --all",
    ] {
        assert!(ran.err.contains(told), "{told}: {ran:?}");
    }
    let known = world.run(&["send", "last", "Hi", "--no-run", "--id", "m7"]);
    assert_eq!(known.code, Some(0), "{known:?}");
    let ran = world.run(&["pause", "last"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// An address of a session is not taken as a path, and the id of an event has a bound.
#[test]
fn ids_that_lead_out_lead_nowhere() {
    let world = World::new();
    net(
        &world,
        "events: { mail: { fields: { nr: string }, id: \"{{ event.nr }}\" } }\nagents: { a: { system: s } }\n",
    );
    let sent = |length: usize| {
        let nr = "x".repeat(length);
        let fields = format!("{{\"nr\": \"{nr}\"}}");
        world.run(&["send", "net", "--event", "mail", &fields])
    };
    let ran = sent(1025);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("it has 1 to 1024 bytes"), "{ran:?}");
    assert!(world.json_lines(&["sessions"]).is_empty());
    assert_eq!(sent(900).code, Some(0));
    for address in ["../x", "/x", "."] {
        let ran = world.run(&["send", address, "Hi"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
    }
}
