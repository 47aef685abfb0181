//! The console in Chromium (`scripts/chromium.sh`) and Firefox (`scripts/firefox.sh`), used as a person uses it, and its pure modules in Node. An
//! error or a warning in the browser's console fails a test.

use crate::browser::Browser;
use crate::served::{Served, provider};
use crate::world::{self, World};
use reqwest::Method;
use serde_json::{Value as Json, json};

const REFUND: &str = r#"
steersman: 1
name: refund
description: A desk that settles complaints about orders.
labels: { order: "{{ state.order }}" }
outcome: { refunded: state.refunded }
memory: { scope: shop }
state:
  order: { type: string, optional: true }
  refunded: { type: integer, optional: true }
tools:
  find_order:
    description: Looks up an order.
    parameters: { order: string }
    effect: read
    command: [echo, "a kettle"]
    set: { order: "{{ args.order }}" }
  pay:
    description: Pays money back.
    parameters: { order: string, cents: { type: integer, minimum: 1 } }
    effect: unsafe
    approve: { when: args.cents > 2000, by: manager, ask: "Refund {{ args.cents }} for order {{ args.order }}?", edit: [cents] }
    command: [echo, "paid {{ args.cents }}"]
    set: { refunded: "{{ args.cents }}" }
  wire:
    description: Wires money.
    parameters: { to: string }
    effect: unsafe
    timeout: 1s
    command: [sleep, "30"]
  login:
    description: Logs in.
    parameters: { user: string, password: { type: secret, ask: "Password of {{ args.user }}?" } }
    effect: read
    command: [echo, in]
  choose:
    description: Lets the customer choose.
    parameters: { question: string, options: [string] }
    ask: user
agents:
  manager: { person: { role: manager } }
  desk: { system: "Order {{ state.order | default('unknown') }}.", tools: [find_order, pay, artifacts] }
  wirer: { system: You wire money., tools: [wire] }
  mailer: { system: You read mail., tools: [login] }
  chooser: { system: You ask., tools: [choose, memory] }
  clerk: { system: "Order {{ args.order }}, {{ args.copies + 1 }} copies.", parameters: { order: string, copies: integer } }
entry: [desk, wirer, mailer, chooser, clerk]
"#;

pub(crate) const SCRIPT: &str = r##"
desk:
  - text: "I look it up. <img src=x onerror=\"document.title = 'hit'\">"
    call: { find_order: { order: "4711" } }
  - call: { artifact_write: { name: note.md, content: "# Refund\n\n* a **kettle** <script>document.title = 'hit'</script>\n" } }
  - call: { pay: { order: "4711", cents: 3990 } }
  - "It is on its way.\u202e"
  - Once more.
  - And again.
wirer:
  - call: { wire: { to: NO93 } }
  - It is settled.
mailer:
  - call: { login: { user: ann } }
  - I am in.
chooser:
  - call: { memory_save: { name: two addresses, content: Ann has two addresses., tags: [ann] } }
  - call: { choose: { question: "Which of the two?", options: [home, office] } }
  - I send it there.
clerk: [ Filed. ]
"##;

/// The sizes and the themes of a page.
const LOOKS: [((u32, u32), &str); 4] = [
    ((1280, 800), "light"),
    ((1280, 800), "dark"),
    ((390, 844), "light"),
    ((390, 844), "dark"),
];

/// A desk that is served, sessions of all its entries, and a browser that is signed in by a code.
pub(crate) struct Desk {
    pub(crate) world: World,
    pub(crate) served: Served,
    pub(crate) page: Browser,
    /// The sessions of the desk, the wirer, the mailer and the chooser.
    sessions: Vec<String>,
}

impl Desk {
    pub(crate) fn open() -> Self {
        Self::with(SCRIPT)
    }

    pub(crate) fn with(script: &str) -> Self {
        Self::seen_in(script, Browser::chromium)
    }

    /// Opens it in Firefox, which keeps its theme.
    pub(crate) fn firefox(theme: &'static str) -> Self {
        Self::seen_in(SCRIPT, |world| Browser::firefox(world, theme))
    }

    fn seen_in(script: &str, browser: impl FnOnce(&World) -> Browser) -> Self {
        provider();
        let world = World::new();
        world.write("steersman.yaml", REFUND);
        world.write("script.yaml", script);
        let served = Served::listening(&world, "127.0.0.1:0");
        let mut page = browser(&world);
        let mut sessions = Vec::new();
        for entry in ["desk", "wirer", "mailer", "chooser"] {
            let body =
                json!({ "definition": "refund", "entry": entry, "message": "Where is my refund?" });
            let turn = asks(&served, Method::POST, "/v1/sessions", Some(&body));
            sessions.push(turn["session"].as_str().unwrap().to_owned());
        }
        let branches = format!("/v1/sessions/{}/branches", sessions[0]);
        let fork = json!({ "at": 2, "label": "try", "say": "Only look it up." });
        asks(&served, Method::POST, &branches, Some(&fork));
        let opened = world.run(&["--server", &served.at, "ui", "--print"]);
        let url = opened.out.trim().to_owned();
        assert!(url.starts_with(&format!("{}/#c=", served.at)), "{url}");
        page.goes_to(&url);
        page.wait("document.querySelectorAll('.row.session').length === 5");
        Self {
            world,
            served,
            page,
            sessions,
        }
    }

    pub(crate) fn session(&self, at: usize) -> &str {
        &self.sessions[at]
    }

    /// Ends the browser and the server. Their files stay as long as the world does.
    pub(crate) fn closes(self) -> World {
        let Self { world, page, .. } = self;
        drop(page);
        world
    }

    /// Goes to a screen.
    pub(crate) fn goes(&mut self, route: &str) {
        self.page
            .value(&format!("location.hash = {}", json!(route)));
    }

    /// Every screen by its address, with what is on it once it is there.
    pub(crate) fn screens(&self) -> Vec<(String, &'static str)> {
        let of = format!("#/s/{}", self.session(0));
        let asked = self.asks(&format!("/v1/sessions/{}/questions", self.session(2)));
        let contexts = self.asks(&format!("/v1/sessions/{}/contexts", self.session(0)));
        let question = asked["items"][0]["id"].as_str().unwrap();
        let context = contexts["items"][0]["effect"].as_str().unwrap();
        let at = |part: &str| format!("{of}{part}");
        vec![
            ("#/".to_owned(), ".row.session a"),
            (
                "#/sessions?where=status+%3D+waits".to_owned(),
                ".row.session a",
            ),
            ("#/inbox".to_owned(), ".card .asks"),
            ("#/inbox?kind=doubt".to_owned(), ".card .asks"),
            (at(""), ".story-row .clamp"),
            (at("?at=2"), ".pane .chain li"),
            (at("?branch=try"), ".story-row .clamp"),
            (at("/map?view=map"), ".lanes canvas"),
            (at("/map?view=map&by=time&at=2"), ".pane .chain li"),
            (at("/map?view=outline"), ".entry.lane"),
            (at("/contexts"), ".segment"),
            (at(&format!("/contexts/{context}")), ".segment"),
            (at("/effects"), ".effects .standing"),
            (at("/state"), ".state code"),
            (at("/artifacts"), ".file .markdown"),
            (at("/branches"), ".branches a"),
            (at("/graph"), ".picture img"),
            (at("/rerun?at=2"), ".before b"),
            (
                format!("#/s/{}/q/{question}", self.session(2)),
                "[type=password]",
            ),
            (
                format!("#/diff?a={0}:main&b={0}:try", self.session(0)),
                ".diff td",
            ),
            ("#/diff".to_owned(), ".sides input"),
            ("#/definitions".to_owned(), ".definition"),
            ("#/definitions/refund".to_owned(), ".picture img"),
            ("#/memories".to_owned(), ".file pre"),
            ("#/server".to_owned(), ".panel .grid"),
            ("#/token".to_owned(), ".signin input"),
        ]
    }

    /// Asks the server for a path.
    pub(crate) fn asks(&self, path: &str) -> Json {
        asks(&self.served, Method::GET, path, None)
    }

    /// Waits for a screen. It is not wider than the window, and each of its controls has a name.
    pub(crate) fn shows(&mut self, route: &str, selector: &str) {
        self.page
            .wait(&format!("document.querySelector({})", json!(selector)));
        let found = self.page.value(
            "[document.documentElement.scrollWidth <= innerWidth || [...document.querySelectorAll('body *')].filter((one) =>
                one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 200)),
              [...document.querySelectorAll('button, a, input, select, textarea')].filter((one) =>
                !(one.textContent.trim() || one.getAttribute('aria-label') || one.labels?.length || one.closest('label'))).map((one) => one.outerHTML)]",
        );
        assert_eq!(found, json!([true, []]), "{route}");
    }

    /// Every screen opens in these sizes and themes, by a link and by a reload.
    fn opens_every_screen(&mut self, looks: &[((u32, u32), &str)]) {
        let screens = self.screens();
        for (size, theme) in looks {
            self.page.looks(*size, theme);
            for (route, selector) in &screens {
                self.goes(route);
                self.shows(route, selector);
                let name = route.replace(['#', '/', '?', '=', '&', ':', '%'], "-");
                let name = self
                    .sessions
                    .iter()
                    .fold(name, |name, id| name.replace(id, "s"));
                self.page
                    .pictured(&format!("console{name}-{}-{theme}", size.0));
            }
            // An address leads to the same screen after a reload.
            for (route, selector) in &screens {
                self.goes(route);
                self.page.reloads();
                self.shows(route, selector);
            }
            self.stays_clean();
        }
    }

    /// A story goes on when its server dies and comes back, and shows each row once.
    fn goes_on_over_a_kill(&mut self) {
        let session = self.session(0).to_owned();
        self.goes(&format!("#/s/{session}"));
        self.page
            .wait("document.querySelectorAll('.story-row').length > 5");
        self.activates("Approve pay");
        self.page
            .sees(".story-row.said .clamp", "It is on its way.⟨202e⟩");
        self.page.types(".say textarea", "Thank you.");
        self.page.presses("Enter");
        self.page.sees(".story-row.said .clamp", "Once more.");
        // The server dies and is started again at the same address. What is on the screen stays, and what comes after is there once.
        let at = self.served.at.trim_start_matches("http://").to_owned();
        self.served.kill();
        self.page.sees(".live.not", "not live since");
        if self.page.is_chromium() {
            // Firefox does not complain of a connection that is refused.
            assert!(!self.page.complains().is_empty());
        }
        self.served = Served::listening(&self.world, &at);
        let say = json!({ "text": "Still there?" });
        asks(
            &self.served,
            Method::POST,
            &format!("/v1/sessions/{session}/messages"),
            Some(&say),
        );
        self.page.sees(".story-row.said .clamp", "And again.");
        self.page.wait("document.querySelector('.live.is')");
        let story = asks(
            &self.served,
            Method::GET,
            &format!("/v1/sessions/{session}/story"),
            None,
        );
        let rows = story["items"].as_array().unwrap().len();
        self.page.wait(&format!(
            "document.querySelectorAll('.story-row').length === {rows}"
        ));
        let found = self
            .page
            .value("[document.querySelectorAll('main [onerror]').length, document.title]");
        assert_eq!(found, json!([0, "Steersman"]));
    }

    /// Adds what axe finds on the page as it is.
    fn ails(&mut self, what: &str, found: &mut Vec<String>) {
        let ails = self.page.value(
            "axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }).then((result) =>
                result.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(' ')}`))",
        );
        for ail in ails.as_array().unwrap() {
            found.push(format!("{what}: {ail}"));
        }
    }

    /// Presses a button once it is there. Screens load while they are looked at, so it may still move.
    pub(crate) fn activates(&mut self, button: &str) {
        let found = format!(
            "[...document.querySelectorAll('button')].find((one) => one.textContent === {})",
            json!(button)
        );
        self.page.wait(&found);
        self.page.value(&format!("{found}.click()"));
    }

    /// Presses a button that opens a dialog.
    pub(crate) fn opens(&mut self, button: &str) {
        self.activates(button);
        self.page.wait("document.querySelector('dialog[open]')");
    }

    /// Something has the focus.
    pub(crate) fn has_focus(&mut self) {
        self.page
            .wait("document.activeElement && document.activeElement !== document.body");
    }

    /// Nothing of what a model said became an element, no request left the server, and nothing was complained about.
    pub(crate) fn stays_clean(&mut self) {
        let found = self.page.value(
            "[document.querySelectorAll('main [onerror], main script, main iframe').length, document.title,
              performance.getEntriesByType('resource').filter((one) => !one.name.startsWith(location.origin) && !one.name.startsWith('blob:')).length]",
        );
        assert_eq!(found, json!([0, "Steersman", 0]));
        assert_eq!(self.page.faults, Vec::<String>::new());
    }
}

/// Asks the server, and returns the body of its answer. A session has settled by then.
pub(crate) fn asks(served: &Served, method: Method, path: &str, body: Option<&Json>) -> Json {
    let request = served.request(method, path).header("prefer", "wait=30");
    let request = match body {
        Some(body) => request.json(body),
        None => request,
    };
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        let response = request.send().await.unwrap();
        let status = response.status();
        let answer = response.text().await.unwrap();
        assert!(status.is_success(), "{path}: {status} {answer}");
        serde_json::from_str(&answer).unwrap()
    })
}

mod chromium {
    use super::*;

    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn every_screen_opens_in_both_themes_and_on_a_phone() {
        let mut desk = Desk::open();
        // The code is gone from the address, and the token is in none.
        let kept = desk
            .page
            .value("JSON.stringify([location.href, {...localStorage}, document.cookie])");
        assert!(!kept.as_str().unwrap().contains("c=") && !kept.as_str().unwrap().contains("stm_"));
        desk.opens_every_screen(&LOOKS);
    }

    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn nothing_on_any_screen_keeps_people_out() {
        let place = std::env::var("STEERSMAN_CHROMIUM").unwrap();
        let axe = std::fs::read_to_string(format!("{place}/node_modules/axe-core/axe.min.js"));
        let axe = axe.expect("axe-core, which scripts/chromium.sh installs");
        let mut desk = Desk::open();
        desk.page.value(&format!("{axe}; 0"));
        let mut screens = desk.screens();
        let session = desk.session(0).to_owned();
        screens.push(("#/s/nosuchsession".to_owned(), ".trouble"));
        screens.push(("#/nowhere".to_owned(), ".empty"));
        screens.push(("#/memories?words=zeppelin".to_owned(), ".empty, .file"));
        let mut found = Vec::new();
        for (size, theme) in LOOKS {
            desk.page.looks(size, theme);
            for (route, selector) in &screens {
                desk.goes(route);
                desk.shows(route, selector);
                desk.ails(&format!("{route} {size:?} {theme}"), &mut found);
            }
            for (route, button) in [
                ("#/server".to_owned(), "New token…"),
                ("#/server".to_owned(), "New webhook…"),
                ("#/".to_owned(), "New session"),
                (format!("#/s/{session}?at=2"), "Fork here…"),
                (format!("#/s/{session}?at=2"), "Rewind…"),
                (format!("#/s/{session}"), "Stop…"),
                (format!("#/s/{session}/branches"), "Adopt…"),
            ] {
                desk.goes(&route);
                desk.opens(button);
                desk.ails(&format!("{button} {size:?} {theme}"), &mut found);
                desk.page.presses("Escape");
                desk.page.wait("!document.querySelector('dialog')");
            }
        }
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn questions_of_all_kinds_are_answered() {
        let mut desk = Desk::open();
        desk.goes("#/inbox");
        desk.page
            .wait("document.querySelectorAll('.card').length === 4");
        // By keys alone: to the field of the first question, a changed amount, and Enter.
        let first = "[...document.querySelectorAll('.card')].find((card) => card.textContent.includes('Refund 3990'))";
        desk.page
            .wait(&format!("{first}.querySelector('.fields input')"));
        desk.page.value(&format!(
            "{first}.querySelector('.fields input').id = 'cents'"
        ));
        desk.page.types("#cents", "2500");
        desk.page.wait("[...document.querySelectorAll('button')].some((one) => one.textContent === 'Approve changed pay')");
        desk.page.presses("Enter");
        desk.page.sees(
            ".toast",
            "Approved with cents: 2500 in place of cents: 3990.",
        );
        desk.page
            .wait("document.querySelectorAll('.card').length === 3");
        desk.activates("home");
        desk.page.sees(".toast", "Answered: home.");
        desk.activates("It did not: run it again…");
        desk.page
            .sees(".card.doubt .says", "runs again, and touches the world");
        desk.activates("Back");
        desk.activates("Give up…");
        desk.activates("End the call as failed");
        desk.page.sees(".toast", "Resolved.");
        // A secret has a page of its own.
        let mailer = desk.session(2).to_owned();
        let asked = asks(
            &desk.served,
            Method::GET,
            &format!("/v1/sessions/{mailer}/questions"),
            None,
        );
        desk.goes(&format!(
            "#/s/{mailer}/q/{}",
            asked["items"][0]["id"].as_str().unwrap()
        ));
        desk.page.wait("document.querySelector('[type=password]')");
        desk.page.types("[type=password]", "tiger lily 7");
        desk.page.clicks("Seal and send");
        desk.page.sees("h2", "Sealed.");
        let held = desk
            .page
            .value("document.documentElement.outerHTML + JSON.stringify({...sessionStorage})");
        assert!(!held.as_str().unwrap().contains("tiger lily"));
        desk.goes("#/inbox");
        desk.page.sees("h2", "Nobody is asked");
        let effects = format!("/v1/sessions/{}/effects", desk.session(0));
        let effects = asks(&desk.served, Method::GET, &effects, None);
        assert_eq!(
            effects["sums"]["pay"],
            json!({ "intended": 1, "done": 1, "repeated": 0 })
        );
        let pay = effects["items"].as_array().unwrap().last().unwrap();
        assert_eq!(pay["args"]["cents"], 2500);
        desk.stays_clean();
    }

    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn a_story_goes_on_over_a_kill_and_shows_each_row_once() {
        Desk::open().goes_on_over_a_kill();
    }
}

mod firefox {
    use super::*;

    #[test]
    #[ignore = "needs Firefox: STEERSMAN_FIREFOX=$(scripts/firefox.sh)"]
    fn every_screen_opens_in_both_themes_and_on_a_phone() {
        for theme in ["light", "dark"] {
            let looks = LOOKS.into_iter().filter(|(_, of)| *of == theme);
            let looks: Vec<_> = looks.collect();
            Desk::firefox(theme).opens_every_screen(&looks);
        }
    }

    #[test]
    #[ignore = "needs Firefox: STEERSMAN_FIREFOX=$(scripts/firefox.sh)"]
    fn a_story_goes_on_over_a_kill_and_shows_each_row_once() {
        Desk::firefox("dark").goes_on_over_a_kill();
    }
}

mod typescript_client {
    use super::*;
    use std::process::Command;

    #[test]
    #[ignore = "needs Node: STEERSMAN_TYPESCRIPT=$(scripts/typescript.sh)"]
    fn the_pure_modules_of_the_console_keep_their_laws() {
        let told = Command::new("node")
            .args(["--test", "pure.test.mjs", "maps.test.mjs"])
            .current_dir(world::root().join("crates/steersman-server/tests/console"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&told.stdout);
        assert!(told.status.success(), "{said}");
        assert!(said.contains("# fail 0"), "{said}");
    }

    #[test]
    #[ignore = "needs Node: STEERSMAN_TYPESCRIPT=$(scripts/typescript.sh)"]
    fn the_modules_of_the_console_fit_together() {
        let place = std::env::var("STEERSMAN_TYPESCRIPT").unwrap();
        let folder = world::root().join("crates/steersman-server/console");
        let told = Command::new(format!("{place}/node_modules/.bin/tsc"))
            .args(["--noEmit", "--allowJs", "--checkJs", "--strict", "false"])
            .args(["--module", "esnext", "--moduleResolution", "bundler"])
            .args(["--target", "es2024", "--lib", "es2024,dom,dom.iterable"])
            .args(["--types", "", "main.mjs"])
            .current_dir(&folder)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&told.stdout);
        // The libraries are as they were published.
        let wrong: Vec<&str> = said
            .lines()
            .filter(|line| line.contains("error") && !line.starts_with("vendor/"))
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(
            told.status.success() || said.contains("vendor/"),
            "{told:?}"
        );
    }
}
