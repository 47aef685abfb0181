//! The pages of `examples/front-ends` in Chromium (`scripts/chromium.sh`), used as a person uses them. An error in the browser's console fails a test.

use crate::killed::{answer_with, chats, request};
use crate::served::{Served, provider};
use crate::world::{self, World, examples};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc;
use std::thread;

/// Starts the browser with its DevTools on two pipes, and ends it if a test hangs.
const START: &str =
    r#"exec timeout -s KILL 300 "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>chromium.log"#;
const FLAGS: [&str; 12] = [
    "--headless=new",
    "--remote-debugging-pipe",
    // The tests may run as root, and in a container.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--window-size=820,900",
];

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    count: u64,
    /// The page, once there is one.
    page: Option<String>,
    is_loaded: bool,
    /// Errors and warnings of the console.
    pub(crate) faults: Vec<String>,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let close = json!({ "id": 0, "method": "Browser.close" });
        write!(self.to, "{close}\0").ok();
        self.child.wait().ok();
    }
}

impl Browser {
    pub(crate) fn start(world: &World) -> Self {
        let place = std::env::var("STEERSMAN_CHROMIUM").expect("the folder of Chromium");
        let program = Path::new(&place).join("chromium");
        let profile = format!("--user-data-dir={}/profile", world.folder.display());
        let mut child = world
            .program("sh", &["-c", START, program.to_str().unwrap()])
            .args(FLAGS)
            .arg(profile)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let mut browser = Self {
            child,
            to,
            from,
            count: 0,
            page: None,
            is_loaded: false,
            faults: Vec::new(),
        };
        browser.opens_page();
        browser
    }

    /// Opens another page, to which everything goes from now on.
    fn opens_page(&mut self) {
        self.page = None;
        let target = self.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let page = self.call("Target.attachToTarget", attach);
        self.page = page["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
        // A page without a window has no focus, and takes no keys.
        let focus = json!({ "enabled": true });
        self.call("Emulation.setFocusEmulationEnabled", focus);
    }

    /// Opens an address in another tab, to which everything goes from now on.
    pub(crate) fn opens_tab(&mut self, url: &str) {
        self.opens_page();
        self.load("Page.navigate", json!({ "url": url }));
    }

    /// The tab that everything goes to.
    pub(crate) fn tab(&self) -> String {
        self.page.clone().expect("there is a page")
    }

    pub(crate) fn turns_to(&mut self, tab: &str) {
        self.page = Some(tab.to_owned());
    }

    /// Calls a method of the DevTools, and returns its result.
    pub(crate) fn call(&mut self, method: &str, params: Json) -> Json {
        self.count += 1;
        let id = self.count;
        let mut call = json!({ "id": id, "method": method, "params": params });
        if let Some(page) = &self.page {
            call["sessionId"] = json!(page);
        }
        write!(self.to, "{call}\0").unwrap();
        self.to.flush().unwrap();
        loop {
            let mut told = self.read();
            if told["id"] == id {
                assert!(told["error"].is_null(), "{method}: {told}");
                return told["result"].take();
            }
            self.hear(&told);
        }
    }

    fn read(&mut self) -> Json {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser has ended: chromium.log");
        serde_json::from_slice(&bytes).unwrap()
    }

    fn hear(&mut self, event: &Json) {
        let params = &event["params"];
        let is_fault = match event["method"].as_str().unwrap_or_default() {
            "Page.loadEventFired" => {
                self.is_loaded = true;
                false
            }
            "Runtime.exceptionThrown" => true,
            "Runtime.consoleAPICalled" => params["type"] != "log",
            "Log.entryAdded" => ["error", "warning"]
                .map(Json::from)
                .contains(&params["entry"]["level"]),
            _ => false,
        };
        if is_fault {
            self.faults.push(params.to_string());
        }
    }

    pub(crate) fn load(&mut self, method: &str, params: Json) {
        self.is_loaded = false;
        self.call(method, params);
        while !self.is_loaded {
            let event = self.read();
            self.hear(&event);
        }
    }

    /// Waits for an error in the console, and returns those that came.
    pub(crate) fn complains(&mut self) -> Vec<String> {
        while self.faults.is_empty() {
            let event = self.read();
            self.hear(&event);
        }
        std::mem::take(&mut self.faults)
    }

    /// Returns the value of an expression of JavaScript, and that of a promise once it has one.
    pub(crate) fn value(&mut self, expression: &str) -> Json {
        let params =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut told = self.call("Runtime.evaluate", params);
        assert!(told["exceptionDetails"].is_null(), "{expression}: {told}");
        told["result"]["value"].take()
    }

    /// Waits until a condition holds.
    pub(crate) fn wait(&mut self, condition: &str) {
        let instead = self.value(&format!(
            "new Promise((done) => {{
                setTimeout(() => done(document.body.innerText), 30000);
                const look = () => {{ if ({condition}) {{ watch.disconnect(); done(); }} }};
                const watch = new MutationObserver(look);
                watch.observe(document, {{ subtree: true, childList: true, characterData: true, attributes: true }});
                look();
            }})"
        ));
        assert_eq!(instead, Json::Null, "{condition}");
    }

    /// Waits until the newest element that fits a selector has a text.
    pub(crate) fn sees(&mut self, selector: &str, text: &str) {
        let (selector, text) = (json!(selector), json!(text));
        self.wait(&format!(
            "[...document.querySelectorAll({selector})].at(-1)?.textContent.includes({text})"
        ));
    }

    /// Types a text into an element, in place of what is there.
    pub(crate) fn types(&mut self, selector: &str, text: &str) {
        let selector = json!(selector);
        self.value(&format!(
            "{{ const field = document.querySelector({selector}); field.focus(); field.select() }}"
        ));
        self.call("Input.insertText", json!({ "text": text }));
    }

    fn presses_enter(&mut self) {
        self.presses("Enter");
    }

    /// Presses a key: a character, or a key by its name.
    pub(crate) fn presses(&mut self, key: &str) {
        let (code, text) = match key {
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            "Tab" => (9, ""),
            "End" => (35, ""),
            "Home" => (36, ""),
            "ArrowLeft" => (37, ""),
            "ArrowUp" => (38, ""),
            "ArrowRight" => (39, ""),
            "ArrowDown" => (40, ""),
            " " => (32, " "),
            text => (0, text),
        };
        for kind in ["keyDown", "keyUp"] {
            let key = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text });
            self.call("Input.dispatchKeyEvent", key);
        }
    }

    /// Clicks on the button with a text, where it is on the screen.
    pub(crate) fn clicks(&mut self, text: &str) {
        let place = self.value(&format!(
            "{{
                const all = [...document.querySelectorAll('button')];
                const button = all.find((button) => button.textContent === {});
                button.scrollIntoView({{ block: 'center' }});
                const {{ x, y, width, height }} = button.getBoundingClientRect();
                [x + width / 2, y + height / 2]
            }}",
            json!(text)
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let mouse = json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", mouse);
        }
    }

    /// Writes a picture of the page, if somebody wants to look at it.
    pub(crate) fn pictured(&mut self, name: &str) {
        if let Ok(folder) = std::env::var("STEERSMAN_PICTURES") {
            let picture = self.call("Page.captureScreenshot", json!({}));
            let picture = STANDARD.decode(picture["data"].as_str().unwrap()).unwrap();
            std::fs::write(Path::new(&folder).join(format!("{name}.png")), picture).unwrap();
        }
    }

    /// Fills in the form of a page, and waits until one can write.
    fn connects(&mut self, served: &Served) {
        self.types("[name=server]", &served.at);
        self.types("[name=token]", served.token());
        self.clicks("Connect");
        self.wait("!document.querySelector('textarea').disabled");
    }

    fn says(&mut self, text: &str) {
        self.types("textarea", text);
        self.presses_enter();
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
fn site(folder: &Path) -> String {
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
    answer_with(stream, "200 OK", "text/html", &page);
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
    (origin, served, Browser::start(world))
}

const SCRIPTED: [&str; 2] = ["--script-all", "script.yaml"];

#[test]
#[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
fn a_payment_is_changed_approved_and_refused_over_ag_ui() {
    let world = example();
    let (origin, served, mut page) = open(&world, &SCRIPTED);
    let address = json!({ "url": format!("{origin}/agui.html") });
    page.load("Page.navigate", address.clone());
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
    page.load("Page.reload", json!({}));
    assert_eq!(
        page.value("document.querySelector('[name=token]').value"),
        ""
    );
    page.connects(&served);
    page.sees("article", "It is <b>settled</b>. <img src=x");
    page.sees(".call .result", "120.00 went to Anna.");
    page.sees("article.user", "Send 150 to Anna.");
    page.shows_only_text();

    page.load("Page.navigate", address);
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
    let address = json!({ "url": format!("{origin}/chat.html") });
    page.load("Page.navigate", address);
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
        let address = json!({ "url": format!("{origin}/{name}.html") });
        page.load("Page.navigate", address);
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
