//! Firefox, over WebDriver BiDi (<https://www.w3.org/TR/webdriver-bidi/>), which it speaks itself.

use crate::world::World;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use std::fs;
use std::io::{BufRead, BufReader, Read as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use tungstenite::{Message, WebSocket, client};

/// Starts the browser, and ends it if a test hangs.
const START: &str = r#"exec timeout -s KILL 600 "$0" "$@" </dev/null >/dev/null"#;

/// Settings of a profile that sends nothing anywhere but to this computer.
const SETTINGS: &str = r#"
user_pref("app.update.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("network.proxy.type", 1);
user_pref("network.proxy.http", "127.0.0.1");
user_pref("network.proxy.http_port", 9);
user_pref("network.proxy.ssl", "127.0.0.1");
user_pref("network.proxy.ssl_port", 9);
user_pref("network.proxy.no_proxies_on", "127.0.0.1");
"#;

/// The setting of the theme, without its value.
const THEME: &str = "layout.css.prefers-color-scheme.content-override";

pub(super) struct Bidi {
    child: Child,
    socket: WebSocket<TcpStream>,
    count: u64,
    pub(super) page: String,
    pub(super) theme: &'static str,
}

impl Drop for Bidi {
    fn drop(&mut self) {
        let close = json!({ "id": 0, "method": "browser.close", "params": {} });
        self.socket.send(Message::text(close.to_string())).ok();
        self.child.wait().ok();
    }
}

impl Bidi {
    pub(super) fn start(world: &World, theme: &'static str, faults: &mut Vec<String>) -> Self {
        let place = std::env::var("STEERSMAN_FIREFOX").expect("the folder of Firefox");
        let program = Path::new(&place).join("firefox-esr");
        let profile = world.folder.join("firefox");
        fs::create_dir(&profile).unwrap();
        let dark = u8::from(theme != "dark");
        let settings = format!("{SETTINGS}user_pref(\"{THEME}\", {dark});\n");
        fs::write(profile.join("user.js"), settings).unwrap();
        let mut child = world
            .program("sh", &["-c", START, program.to_str().unwrap()])
            .args([
                "--headless",
                "--no-remote",
                "--remote-debugging-port",
                "0",
                "--profile",
            ])
            .arg(&profile)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let address = listens(&mut child);
        let stream = TcpStream::connect(&address).unwrap();
        let url = format!("ws://{address}/session");
        let (socket, _) = client(url, stream).expect("it speaks WebDriver BiDi");
        let mut line = Self {
            child,
            socket,
            count: 0,
            page: String::new(),
            theme,
        };
        line.call("session.new", &json!({ "capabilities": {} }), faults);
        let events = json!({ "events": ["log.entryAdded"] });
        line.call("session.subscribe", &events, faults);
        // The first window has no focus, and takes no keys.
        line.page = line.opens_tab(faults);
        line
    }

    /// Opens a tab in front of the others.
    fn opens_tab(&mut self, faults: &mut Vec<String>) -> String {
        let tab = self.call("browsingContext.create", &json!({ "type": "tab" }), faults);
        let tab = tab["context"].as_str().unwrap().to_owned();
        self.activates(&tab, faults);
        tab
    }

    fn activates(&mut self, tab: &str, faults: &mut Vec<String>) {
        let tab = json!({ "context": tab });
        self.call("browsingContext.activate", &tab, faults);
    }

    /// Calls a method, and returns its result.
    fn call(&mut self, method: &str, params: &Json, faults: &mut Vec<String>) -> Json {
        self.count += 1;
        let id = self.count;
        let call = json!({ "id": id, "method": method, "params": params });
        self.socket.send(Message::text(call.to_string())).unwrap();
        loop {
            let mut told = self.read();
            if told["id"] == id {
                assert_eq!(told["type"], "success", "{method}: {told}");
                return told["result"].take();
            }
            hear(&told, faults);
        }
    }

    fn read(&mut self) -> Json {
        loop {
            if let Message::Text(text) = self.socket.read().expect("Firefox goes on") {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    /// Waits for an event.
    pub(super) fn hears(&mut self, faults: &mut Vec<String>) {
        let event = self.read();
        hear(&event, faults);
    }

    pub(super) fn goes_to(&mut self, url: &str, faults: &mut Vec<String>) {
        let to = json!({ "context": self.page, "url": url, "wait": "complete" });
        self.call("browsingContext.navigate", &to, faults);
    }

    pub(super) fn reloads(&mut self, faults: &mut Vec<String>) {
        let again = json!({ "context": self.page, "wait": "complete" });
        self.call("browsingContext.reload", &again, faults);
    }

    pub(super) fn resizes(&mut self, (width, height): (u32, u32), faults: &mut Vec<String>) {
        let viewport = json!({ "width": width, "height": height });
        let size = json!({ "context": self.page, "viewport": viewport, "devicePixelRatio": 1 });
        self.call("browsingContext.setViewport", &size, faults);
    }

    pub(super) fn value(&mut self, expression: &str, faults: &mut Vec<String>) -> Json {
        let target = json!({ "context": self.page });
        let params = json!({ "expression": expression, "awaitPromise": true, "target": target });
        let told = self.call("script.evaluate", &params, faults);
        assert_eq!(told["type"], "success", "{expression}: {told}");
        plain(&told["result"])
    }

    fn acts(&mut self, source: Json, faults: &mut Vec<String>) {
        let acts = json!({ "context": self.page, "actions": [source] });
        self.call("input.performActions", &acts, faults);
    }

    pub(super) fn types(&mut self, text: &str, faults: &mut Vec<String>) {
        let keys: Vec<Json> = text.chars().flat_map(pressed).collect();
        self.acts(
            json!({ "type": "key", "id": "keys", "actions": keys }),
            faults,
        );
    }

    pub(super) fn presses(&mut self, key: &str, faults: &mut Vec<String>) {
        let code = match key {
            "Enter" => '\u{e006}',
            "Escape" => '\u{e00c}',
            "Tab" => '\u{e004}',
            "End" => '\u{e010}',
            "Home" => '\u{e011}',
            "ArrowLeft" => '\u{e012}',
            "ArrowUp" => '\u{e013}',
            "ArrowRight" => '\u{e014}',
            "ArrowDown" => '\u{e015}',
            text => text.chars().next().unwrap(),
        };
        self.types(&code.to_string(), faults);
        if key == "Tab" && self.value("document.hasFocus()", faults) == false {
            // Behind the last element comes the window, which takes no keys here. A look at another tab leads back to the page.
            let other = self.opens_tab(faults);
            let page = self.page.clone();
            self.activates(&page, faults);
            let other = json!({ "context": other });
            self.call("browsingContext.close", &other, faults);
        }
    }

    /// Moves the focus to the element before.
    pub(super) fn tabs_back(&mut self, faults: &mut Vec<String>) {
        let shift = |kind: &str| json!({ "type": kind, "value": "\u{e008}" });
        let [down, up] = pressed('\u{e004}');
        let keys = [shift("keyDown"), down, up, shift("keyUp")];
        self.acts(
            json!({ "type": "key", "id": "keys", "actions": keys }),
            faults,
        );
    }

    pub(super) fn clicks(&mut self, place: &Json, faults: &mut Vec<String>) {
        let acts = json!([
            { "type": "pointerMove", "x": place[0], "y": place[1] },
            { "type": "pointerDown", "button": 0 },
            { "type": "pointerUp", "button": 0 },
        ]);
        self.acts(
            json!({ "type": "pointer", "id": "mouse", "actions": acts }),
            faults,
        );
    }

    pub(super) fn picture(&mut self, faults: &mut Vec<String>) -> Vec<u8> {
        let of = json!({ "context": self.page });
        let picture = self.call("browsingContext.captureScreenshot", &of, faults);
        STANDARD.decode(picture["data"].as_str().unwrap()).unwrap()
    }
}

/// Waits until the browser listens, and returns its address. Its later messages are read and dropped, so that it never waits for a reader.
fn listens(child: &mut Child) -> String {
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    loop {
        line.clear();
        assert_ne!(said.read_line(&mut line).unwrap(), 0, "Firefox ended");
        if let Some((_, address)) = line.split_once("BiDi listening on ws://") {
            thread::spawn(move || {
                let mut rest = Vec::new();
                said.read_to_end(&mut rest).ok();
            });
            return address.trim().to_owned();
        }
    }
}

fn pressed(key: char) -> [Json; 2] {
    ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key.to_string() }))
}

fn hear(event: &Json, faults: &mut Vec<String>) {
    let entry = &event["params"];
    let is_bad = ["error", "warn"].map(Json::from).contains(&entry["level"]);
    if event["method"] == "log.entryAdded" && is_bad {
        faults.push(entry.to_string());
    }
}

/// Returns a value of a page as JSON. What is none, such as an element, is an empty object.
fn plain(value: &Json) -> Json {
    let inner = &value["value"];
    match value["type"].as_str().unwrap_or_default() {
        "string" | "number" | "boolean" => inner.clone(),
        "array" => inner.as_array().into_iter().flatten().map(plain).collect(),
        "object" => {
            let fields = inner.as_array().into_iter().flatten();
            let fields = fields.map(|pair| {
                let name = pair[0].as_str().unwrap_or_default();
                (name.to_owned(), plain(&pair[1]))
            });
            Json::Object(fields.collect())
        }
        "null" | "undefined" => Json::Null,
        _ => json!({}),
    }
}
