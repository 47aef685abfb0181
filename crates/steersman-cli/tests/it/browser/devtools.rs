//! Chromium, over its DevTools.

use crate::world::World;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// Starts the browser with its DevTools on two pipes, and ends it if a test hangs.
const START: &str =
    r#"exec timeout -s KILL 600 "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>chromium.log"#;
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

pub(super) struct DevTools {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    count: u64,
    /// The page, once there is one.
    pub(super) page: Option<String>,
    is_loaded: bool,
}

impl Drop for DevTools {
    fn drop(&mut self) {
        let close = json!({ "id": 0, "method": "Browser.close" });
        write!(self.to, "{close}\0").ok();
        self.child.wait().ok();
    }
}

impl DevTools {
    pub(super) fn start(world: &World, faults: &mut Vec<String>) -> Self {
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
        let mut line = Self {
            child,
            to,
            from,
            count: 0,
            page: None,
            is_loaded: false,
        };
        line.opens_page(faults);
        line
    }

    /// Opens another page, to which everything goes from now on.
    pub(super) fn opens_page(&mut self, faults: &mut Vec<String>) {
        self.page = None;
        let blank = json!({ "url": "about:blank" });
        let target = self.call("Target.createTarget", blank, faults);
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let page = self.call("Target.attachToTarget", attach, faults);
        self.page = page["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            self.call(&format!("{domain}.enable"), json!({}), faults);
        }
        // A page without a window has no focus, and takes no keys.
        let focus = json!({ "enabled": true });
        self.call("Emulation.setFocusEmulationEnabled", focus, faults);
    }

    /// Calls a method, and returns its result.
    pub(super) fn call(&mut self, method: &str, params: Json, faults: &mut Vec<String>) -> Json {
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
            self.hear(&told, faults);
        }
    }

    fn read(&mut self) -> Json {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser has ended: chromium.log");
        serde_json::from_slice(&bytes).unwrap()
    }

    /// Waits for an event.
    pub(super) fn hears(&mut self, faults: &mut Vec<String>) {
        let event = self.read();
        self.hear(&event, faults);
    }

    fn hear(&mut self, event: &Json, faults: &mut Vec<String>) {
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
            faults.push(params.to_string());
        }
    }

    pub(super) fn load(&mut self, method: &str, params: Json, faults: &mut Vec<String>) {
        self.is_loaded = false;
        self.call(method, params, faults);
        while !self.is_loaded {
            self.hears(faults);
        }
    }

    pub(super) fn value(&mut self, expression: &str, faults: &mut Vec<String>) -> Json {
        let params =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut told = self.call("Runtime.evaluate", params, faults);
        assert!(told["exceptionDetails"].is_null(), "{expression}: {told}");
        told["result"]["value"].take()
    }

    pub(super) fn presses(&mut self, key: &str, faults: &mut Vec<String>) {
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
            self.call("Input.dispatchKeyEvent", key, faults);
        }
    }

    /// Moves the focus to the element before.
    pub(super) fn tabs_back(&mut self, faults: &mut Vec<String>) {
        for kind in ["keyDown", "keyUp"] {
            let key = json!({ "type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9, "modifiers": 8 });
            self.call("Input.dispatchKeyEvent", key, faults);
        }
    }

    pub(super) fn clicks(&mut self, place: &Json, faults: &mut Vec<String>) {
        for kind in ["mousePressed", "mouseReleased"] {
            let mouse = json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", mouse, faults);
        }
    }

    pub(super) fn picture(&mut self, faults: &mut Vec<String>) -> Vec<u8> {
        let picture = self.call("Page.captureScreenshot", json!({}), faults);
        STANDARD.decode(picture["data"].as_str().unwrap()).unwrap()
    }
}
