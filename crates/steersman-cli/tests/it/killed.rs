//! The refund of the comparison, killed inside its tool: our half of `scripts/killed-refund.sh`, with a shop in this process. The
//! other half needs Python packages from a network, so the script itself is run by hand.

use crate::world::{self, World};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Far more than a step of the test needs.
const PATIENCE: Duration = Duration::from_mins(1);

/// Reads a request, and returns its first line and its body. What breaks off has none.
pub(crate) fn request(stream: &TcpStream) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
    reader.read_line(&mut first).ok();
    loop {
        line.clear();
        reader.read_line(&mut line).ok();
        if let Some(n) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = n.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return (String::new(), Vec::new());
    }
    (first, body)
}

/// Answers a request with JSON, and closes the connection.
pub(crate) fn answer(stream: TcpStream, json: &str) {
    answer_with(stream, "200 OK", "application/json", json);
}

/// The requests to a model's server for an answer, each with its body. It is asked for what it is before, and does not know.
pub(crate) fn chats(listener: &TcpListener) -> impl Iterator<Item = (TcpStream, Vec<u8>)> {
    listener.incoming().flatten().filter_map(|stream| {
        let (first, body) = request(&stream);
        if first.contains("/chat/completions") {
            return Some((stream, body));
        }
        answer_with(stream, "404 Not Found", "application/json", "{}");
        None
    })
}

/// Answers a request with a status and a body, and closes the connection.
pub(crate) fn answer_with(mut stream: TcpStream, status: &str, media: &str, body: &str) {
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {media}\r\nconnection: close");
    let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    // The process that asked may be dead.
    stream.write_all(answer.as_bytes()).ok();
}

/// A shop that books a refund and does not answer: the process that asked is killed first. It tells each booking, and answers
/// each search for a refund.
fn shop(listener: &TcpListener, booked: &Sender<()>) {
    let mut open = Vec::new();
    for stream in listener.incoming() {
        let stream = stream.unwrap();
        if request(&stream).0.starts_with("POST") {
            // The connection stays open, and nothing is said on it.
            open.push(stream);
            if booked.send(()).is_err() {
                return;
            }
            continue;
        }
        answer(stream, r#"{"found": true, "id": "r-1"}"#);
    }
}

/// The lines of a part of the page's transcript, without their marks.
fn shown(page: &str, part: &str) -> String {
    let (_, rest) = page.split_once(part).expect("the page has this part");
    let rest = rest.split("the shop's book").next().unwrap();
    let lines = rest.lines().filter_map(|line| line.strip_prefix("  | "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn our_half_of_the_comparison_prints_what_the_page_says_and_pays_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (booked, bookings): (Sender<()>, Receiver<()>) = channel();
    std::thread::spawn(move || shop(&listener, &booked));
    let mut world = World::new();
    world.set("SHOP_URL", &format!("http://{address}"));
    let folder = world::root().join("scripts/killed-refund");
    let script = folder.join("script.yaml");
    let scripted = ["--script-all", script.to_str().unwrap()];
    let begin = ["run", folder.to_str().unwrap()];
    let said = ["--input", "My kettle arrived broken."];
    let mut first = world
        .command(&[&begin[..], &scripted, &said].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    bookings
        .recv_timeout(PATIENCE)
        .expect("a refund is asked for");
    first.kill().unwrap();
    first.wait().unwrap();
    let both = world.folder.join("both.txt");
    let file = std::fs::File::create(&both).unwrap();
    let second = world
        .command(&[&["run", "--resume", "last"][..], &scripted].concat())
        .stdout(Stdio::from(file.try_clone().unwrap()))
        .stderr(Stdio::from(file))
        .status()
        .unwrap();
    assert_eq!(second.code(), Some(0));
    assert!(bookings.try_recv().is_err(), "it is not paid again");
    let printed = std::fs::read_to_string(both).unwrap();
    let page = world::root().join("docs/concepts/comparison.md");
    let page = std::fs::read_to_string(page).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let shown = shown(&page, &format!("\nSteersman {version}\n"));
    // Two lines of hints follow, which the page leaves out.
    let lines: Vec<&str> = printed.trim().lines().map(str::trim_end).collect();
    let hints = lines.len().saturating_sub(2);
    assert_eq!(
        world::settled(&lines[..hints].join("\n")),
        world::settled(&shown),
        "{printed}"
    );
    assert!(page.contains("LangGraph: 2. Steersman: 1."));
}
