//! A model that is down: the session waits, with exit code 5, and goes on when the model is back.

use crate::world::World;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;

/// The server of a model. It has a port, but refuses connections until it is started.
struct Server {
    runtime: Runtime,
    socket: Option<TcpSocket>,
    address: SocketAddr,
}

impl Server {
    fn down() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self {
            runtime: Runtime::new().unwrap(),
            address: socket.local_addr().unwrap(),
            socket: Some(socket),
        }
    }

    fn start(&mut self) {
        let _entered = self.runtime.enter();
        let listener = self.socket.take().unwrap().listen(64).unwrap();
        let listener = listener.into_std().unwrap();
        listener.set_nonblocking(false).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let _ = serve(&stream.unwrap());
            }
        });
    }
}

fn serve(stream: &TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut length, mut asks) = (0, None);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        asks.get_or_insert(line.starts_with("POST"));
        let lower = line.to_ascii_lowercase();
        if let Some(n) = lower.strip_prefix("content-length:") {
            length = n.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (kind, body) = if asks == Some(true) {
        let piece = "{\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Here again.\"},\"finish_reason\":\"stop\"}]}";
        (
            "text/event-stream",
            format!("data: {piece}\n\ndata: [DONE]\n\n"),
        )
    } else {
        ("application/json", "{\"data\":[{\"id\":\"m\"}]}".to_owned())
    };
    let length = body.len();
    write!(
        &mut &*stream,
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn world(server: &Server) -> World {
    let world = World::new();
    let address = server.address;
    world.write(
        "steersman.yaml",
        &format!(
            "name: desk\nmodels:\n  default: {{ provider: compatible, model: m, url: \"http://{address}/v1\", retry: {{ times: 1 }} }}\n\
             agents: {{ desk: {{ system: You help. }} }}\n"
        ),
    );
    world
}

#[test]
fn a_model_that_is_down_parks_the_session_and_resume_goes_on() {
    let mut server = Server::down();
    let world = world(&server);
    let place = format!("compatible/m at http://{}/v1", server.address);
    let ran = world.run(&["run", "--input", "Hi."]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(
        ran.err.contains(&format!("`{place}` does not answer")),
        "{ran:?}"
    );
    assert!(ran.err.contains("steersman resume"), "{ran:?}");
    // Commands that look name the place; `pending` also says since when.
    let pending = world.json_lines(&["pending"]);
    assert_eq!(pending.len(), 1, "{pending:?}");
    assert_eq!(pending[0]["kind"], "outage");
    assert_eq!(pending[0]["place"], place.as_str());
    assert!(pending[0]["since"].is_string() && pending[0]["due"].is_string());
    let listed = world.run(&["pending"]);
    assert!(listed.out.contains(&place), "{listed:?}");
    let (code, shown) = world.json(&["show", "last"]);
    assert_eq!(
        (code, &shown["holds"][0]["place"]),
        (Some(0), &place.as_str().into())
    );
    let (_, sessions) = world.json(&["sessions"]);
    assert_eq!(sessions["status"], "waits");
    assert_eq!(sessions["places"][0]["place"], place.as_str(), "{sessions}");
    for command in [
        &["show", "last"][..],
        &["log", "last"],
        &["sessions"],
        &["why", "last"],
    ] {
        let told = world.run(command);
        assert!(told.out.contains(&place), "{command:?}: {told:?}");
    }
    let checked = world.run(&["fsck"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    // It is still down.
    let ran = world.run(&["resume", "last"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    server.start();
    let ran = world.run(&["resume", "last"]);
    assert_eq!(
        (ran.code, ran.out.trim()),
        (Some(0), "Here again."),
        "{ran:?}"
    );
    assert_eq!(world.json_lines(&["pending"]).len(), 0);
    let checked = world.run(&["fsck"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

#[test]
fn a_command_that_stays_goes_on_when_the_model_is_there() {
    let mut server = Server::down();
    let world = world(&server);
    let mut run = world.command(&["run", "--input", "Hi.", "--wait", "10m"]);
    let mut run = run
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(run.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("`--wait`") {
        line.clear();
        assert!(told.read_line(&mut line).unwrap() > 0, "it ended");
    }
    server.start();
    let rest = std::thread::spawn(move || {
        let mut rest = String::new();
        told.read_to_string(&mut rest).unwrap();
        rest
    });
    let ended = run.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", rest.join().unwrap());
    assert_eq!(
        String::from_utf8(ended.stdout).unwrap().trim(),
        "Here again."
    );
    let wrong = world.run(&["run", "--input", "Hi.", "--wait", "soon"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn a_command_that_stayed_as_long_as_it_may_leaves_the_session_waiting() {
    let server = Server::down();
    let world = world(&server);
    let ran = world.run(&["run", "--input", "Hi.", "--wait", "1s"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(
        ran.err.contains("Waits up to 1 s for it (`--wait`)"),
        "{ran:?}"
    );
    assert!(ran.err.contains("steersman resume"), "{ran:?}");
    assert_eq!(world.json(&["sessions"]).1["status"], "waits");
}

/// An address of the definition is asked, too: it is bound as a template and rendered for each call.
#[test]
fn the_doctor_asks_the_address_that_a_definition_names() {
    let mut server = Server::down();
    let world = world(&server);
    let of_model = || {
        let findings = world.json_lines(&["doctor", "."]);
        let model = findings.into_iter().find(|f| f["about"] == "model");
        model.expect("the model is told")
    };
    let found = of_model();
    assert_eq!(found["health"], "missing", "{found}");
    let text = found["text"].as_str().unwrap();
    assert!(text.contains("does not answer"), "{text}");
    assert_eq!(world.run(&["doctor", "."]).code, Some(1));
    server.start();
    let found = of_model();
    assert_eq!(found["health"], "ok", "{found}");
    let text = found["text"].as_str().unwrap();
    assert!(text.contains("its server answers (200)"), "{text}");
}

/// A rerun skips waits for a time, and does not take a skip for an outage: it fails with what the place said.
#[test]
fn a_rerun_does_not_wait_for_a_place_that_does_not_answer() {
    let server = Server::down();
    let world = world(&server);
    world.write("script.yaml", "desk: [ Hello. ]\n");
    let ran = world.run(&["run", "--input", "Hi.", "--script-all", "script.yaml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = world.run(&["rerun", "last", "--model", "other"]);
    assert_eq!(ran.code, Some(8), "{ran:?}");
    assert!(ran.err.contains("It failed (unreachable)"), "{ran:?}");
    assert!(!ran.all().contains(" for 86401 s"), "{ran:?}");
    let sessions = world.json_lines(&["sessions", "--where", "status = failed"]);
    assert_eq!(sessions[0]["reason"]["code"], "unreachable", "{sessions:?}");
    let waits = world.json_lines(&["pending"]);
    assert!(waits.is_empty(), "{waits:?}");
}
