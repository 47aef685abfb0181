//! The pages of `examples/front-ends` in Chromium (`scripts/chromium.sh`), used as a person uses them. An error in the browser's console fails a test.

use crate::browser::Browser;
use crate::killed::{answer_with, chats, request};
use crate::served::{Served, provider};
use crate::world::{self, World, examples};
use serde_json::json;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc;
use std::thread;

impl Browser {
    /// Fills in the form of a page, and waits until one can write.
    fn connects(&mut self, served: &Served) {
        self.types("[name=server]", &served.at);
        self.types("[name=token]", served.token());
        self.clicks("Connect");
        self.wait("!document.querySelector('textarea').disabled");
    }

    fn says(&mut self, text: &str) {
        self.types("textarea", text);
        self.presses("Enter");
    }

    /// The token is in no place from which something else could read it.
    fn keeps_nothing(&mut self, served: &Served) {
        let kept = self.value("JSON.stringify([location.href, {...localStorage}, {...sessionStorage}, document.cookie])");
        assert!(!kept.as_str().unwrap().contains(served.token()), "{kept}");
    }

    /// Nothing of what the model said became an element.
    fn shows_only_text(&mut self) {
        let made = self.value("[document.querySelectorAll('main img, main b, main script').length, document.title.includes('hit')]");
        assert_eq!(made, json!([0, false]));
    }
}

/// Serves files to the browser from an origin of their own.
pub(crate) fn site(folder: &Path) -> String {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", socket.local_addr().unwrap());
    let folder = folder.to_owned();
    thread::spawn(move || {
        for stream in socket.incoming().flatten() {
            let folder = folder.clone();
            // A browser opens connections on which it sends nothing.
            thread::spawn(move || file(&folder, stream));
        }
    });
    origin
}

fn file(folder: &Path, stream: TcpStream) -> Option<()> {
    let (line, _) = request(&stream);
    let name = line.split_whitespace().nth(1)?.trim_start_matches('/');
    let page = std::fs::read_to_string(folder.join(name)).unwrap();
    let end = Path::new(name).extension();
    let kind = match end.and_then(|end| end.to_str()) {
        Some("mjs") => "text/javascript",
        _ => "text/html",
    };
    answer_with(stream, "200 OK", kind, &page);
    Some(())
}

/// Serves a model that stops in the middle of each answer until it hears that it may go on. Returns its address.
fn slow_model(go_on: mpsc::Receiver<()>) -> String {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", socket.local_addr().unwrap());
    thread::spawn(move || {
        for (mut stream, _) in chats(&socket) {
            let piece = |text: &str, end: Option<&str>| {
                let choice =
                    json!({ "index": 0, "delta": { "content": text }, "finish_reason": end });
                format!("data: {}\n\n", json!({ "choices": [choice] }))
            };
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            write!(stream, "{head}{}", piece("One, ", None)).unwrap();
            stream.flush().unwrap();
            if go_on.recv().is_err() {
                return;
            }
            write!(stream, "{}data: [DONE]\n\n", piece("two.", Some("stop"))).unwrap();
        }
    });
    url
}

/// The example, with a model that says what no page should take as markup.
fn example() -> World {
    provider();
    let world = World::new();
    world::copy(&examples().join("front-ends"), &world.folder);
    world.write(
        "script.yaml",
        "desk:
  - text: I send it as soon as you agree.
    call: { send_money: { to: Anna, cents: 15000 } }
  - It is <b>settled</b>. <img src=x onerror=\"document.title = 'hit'\"><script>document.title = 'hit'</script>
",
    );
    world
}

fn open(world: &World, more: &[&str]) -> (String, Served, Browser) {
    let origin = site(&examples().join("front-ends/pages"));
    let args = [&["--listen", "127.0.0.1:0", "--origin", &origin][..], more].concat();
    let served = Served::with(world, &args);
    (origin, served, Browser::chromium(world))
}

const SCRIPTED: [&str; 2] = ["--script-all", "script.yaml"];

#[test]
#[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
fn a_payment_is_changed_approved_and_refused_over_ag_ui() {
    let world = example();
    let (origin, served, mut page) = open(&world, &SCRIPTED);
    let address = format!("{origin}/agui.html");
    page.goes_to(&address);
    page.types("[name=server]", &served.at);
    page.types("[name=token]", "steersman_wrong");
    page.clicks("Connect");
    page.wait("document.querySelector('#note').textContent !== ''");
    page.pictured("agui-wrong-token");
    let refused = page.complains();
    assert!(
        refused.len() == 1 && refused[0].contains("401"),
        "{refused:?}"
    );

    page.connects(&served);
    page.says("Send 150 to Anna.");
    page.sees(".ask", "Send 150.00 to Anna?");
    page.sees(".ask pre", "\"cents\": 15000");
    page.sees(".call strong", "send_money");
    page.wait("document.querySelector('textarea').disabled");
    page.pictured("agui-asks");
    page.types(".ask [name=cents]", "12000");
    page.clicks("Approve");
    page.sees("article", "It is <b>settled</b>. <img src=x");
    page.sees(".call .result", "120.00 went to Anna.");
    page.wait("!document.querySelector('.ask') && !document.querySelector('textarea').disabled");
    page.shows_only_text();
    page.keeps_nothing(&served);
    page.pictured("agui-sent");

    // The address leads to the thread, and to nothing without the token.
    page.reloads();
    assert_eq!(
        page.value("document.querySelector('[name=token]').value"),
        ""
    );
    page.connects(&served);
    page.sees("article", "It is <b>settled</b>. <img src=x");
    page.sees(".call .result", "120.00 went to Anna.");
    page.sees("article.user", "Send 150 to Anna.");
    page.shows_only_text();

    page.goes_to(&address);
    page.connects(&served);
    page.says("Send 150 to Anna.");
    page.sees(".ask", "Send 150.00 to Anna?");
    page.types(".ask label:last-of-type input", "That is too much.");
    page.clicks("Reject");
    page.sees(".call .failed", "That is too much.");
    page.pictured("agui-refused");
    assert_eq!(page.faults, Vec::<String>::new());
}

#[test]
#[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
fn a_payment_is_approved_over_the_api_of_openai() {
    let world = example();
    let (origin, served, mut page) = open(&world, &SCRIPTED);
    let address = format!("{origin}/chat.html");
    page.goes_to(&address);
    page.connects(&served);
    assert_eq!(
        page.value("document.querySelector('select').value"),
        "front-ends"
    );
    page.says("Send 150 to Anna.");
    page.sees(".ask", "Send 150.00 to Anna?");
    page.sees("article", "I send it as soon as you agree.");
    page.sees(".ask pre", "\"cents\": 15000");
    page.pictured("chat-asks");
    page.clicks("Approve");
    page.sees("article", "It is <b>settled</b>. <img src=x");
    page.wait("!document.querySelector('textarea').disabled");
    page.shows_only_text();
    page.keeps_nothing(&served);
    page.pictured("chat-sent");
    let told = world.run(&["show", "last"]);
    assert!(told.out.contains("150.00 went to Anna."), "{}", told.out);
    assert_eq!(page.faults, Vec::<String>::new());
}

#[test]
#[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
fn words_are_shown_as_they_come() {
    provider();
    let world = World::new();
    let (more, go_on) = mpsc::sync_channel(1);
    let url = slow_model(go_on);
    world.write(
        "steersman.yaml",
        &format!(
            "steersman: 1
name: front-ends
models: {{ default: {{ provider: compatible, url: \"{url}\", model: m, calls: native }} }}
agents: {{ desk: {{ system: You count. }} }}
entry: desk
"
        ),
    );
    let (origin, served, mut page) = open(&world, &[]);
    for name in ["agui", "chat"] {
        let address = format!("{origin}/{name}.html");
        page.goes_to(&address);
        page.connects(&served);
        page.says("Count to two.");
        page.sees("article.assistant", "One, ");
        let told = page.value("[...document.querySelectorAll('article')].at(-1).textContent");
        assert_eq!(told, "One, ", "{name}");
        page.pictured(&format!("{name}-streams"));
        more.send(()).unwrap();
        page.sees("article.assistant", "One, two.");
    }
    assert_eq!(page.faults, Vec::<String>::new());
}
