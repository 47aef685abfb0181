//! The console of several people and several tabs, in Chromium (`scripts/chromium.sh`): who may do what, and that each act is done once.

use crate::console::{Desk, asks};
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Makes each answer to an act get lost once, after the server has carried it out.
const LOSES: &str = "{
    const asks = window.fetch;
    window.lost = 0;
    window.fetch = async (...of) => {
        const answer = await asks(...of);
        if (of[1]?.method !== 'POST' || window.lost > 0) return answer;
        window.lost += 1;
        throw new TypeError('Failed to fetch');
    };
}";

/// The files below a folder that hold a text, in the encodings that a browser stores.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(holding(&path, text));
            continue;
        }
        // Sockets and links to locks are no files.
        let bytes = fs::read(&path).unwrap_or_default();
        let has = |what: &[u8]| bytes.windows(what.len()).any(|part| part == what);
        if has(text.as_bytes()) || has(&wide) {
            found.push(path.display().to_string());
        }
    }
    found
}

impl Desk {
    /// Makes a token, and returns it with its name.
    fn token(&self, body: &Json) -> (String, String) {
        let made = asks(&self.served, Method::POST, "/v1/tokens", Some(body));
        let text = |of: &str| made[of].as_str().unwrap().to_owned();
        (text("token"), text("name"))
    }

    /// Opens a tab that asks the other tabs for their token.
    fn tab(&mut self, route: &str) {
        let url = format!("{}/{route}", self.served.at);
        self.page.opens_tab(&url);
    }

    /// Signs out, and in again with a token.
    fn signs_in(&mut self, token: &str, route: &str) {
        self.page
            .value("document.querySelector('[aria-label=\"Sign out\"]').click()");
        self.page
            .wait("document.querySelector('dialog[open] .bad')");
        self.page
            .value("document.querySelector('dialog[open] .bad').click()");
        self.page.wait("document.querySelector('.signin input')");
        self.page.types(".signin input", token);
        self.page.presses("Enter");
        self.page.wait("document.querySelector('.rail')");
        self.goes(route);
    }
}

mod chromium {
    use super::*;

    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn two_tabs_answer_a_question_once() {
        let mut desk = Desk::open();
        desk.goes("#/inbox");
        desk.page
            .wait("document.querySelectorAll('.card').length === 4");
        let first = desk.page.tab();
        desk.tab("#/inbox");
        desk.page
            .wait("document.querySelectorAll('.card').length === 4");
        let second = desk.page.tab();
        // A double click is one act.
        desk.page.turns_to(&first);
        desk.page.value("{ const home = [...document.querySelectorAll('button')].find((one) => one.textContent === 'home'); home.click(); home.click() }");
        desk.page.sees(".toast", "Answered: home.");
        desk.page.turns_to(&second);
        desk.page
            .wait("document.querySelectorAll('.card').length === 3");
        desk.page.turns_to(&first);
        desk.page
            .wait("document.querySelectorAll('.card').length === 3");
        let told = desk
            .page
            .value("[...document.querySelectorAll('.toast')].map((one) => one.textContent.trim())");
        assert_eq!(told.as_array().unwrap().len(), 1, "{told}");
        desk.stays_clean();
    }

    /// A browser has six connections to a server. A tab that is not in sight gives its own back, and hears what it missed when it is.
    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn seven_tabs_work_at_once() {
        let mut desk = Desk::open();
        let route = format!("#/s/{}", desk.session(0));
        desk.goes(&route);
        let is_live = "document.querySelectorAll('.story-row').length > 5 && document.querySelector('.live.is')";
        desk.page.wait(is_live);
        let first = desk.page.tab();
        // Half a minute after a tab was left, nobody has come back.
        let turns = |to: &str| {
            format!(
                "{{ const later = setTimeout;
                    window.setTimeout = (act, ms, ...more) => later(act, ms === 30000 ? 0 : ms, ...more);
                    Object.defineProperty(document, 'visibilityState', {{ configurable: true, value: '{to}' }});
                    document.dispatchEvent(new Event('visibilitychange'));
                    window.setTimeout = later; }}"
            )
        };
        for _ in 1..7 {
            desk.page.value(&turns("hidden"));
            desk.tab(&route);
            desk.page.wait(is_live);
        }
        desk.activates("Approve pay");
        desk.page
            .sees(".story-row.said .clamp", "It is on its way.⟨202e⟩");
        desk.page.turns_to(&first);
        desk.page.value(&turns("visible"));
        desk.page
            .sees(".story-row.said .clamp", "It is on its way.⟨202e⟩");
        desk.page.wait("document.querySelector('.live.is')");
        desk.stays_clean();
    }

    /// A computer that slept does not know that its connections are dead. Its clock tells.
    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn a_computer_that_slept_is_live_again() {
        let mut desk = Desk::open();
        desk.goes(&format!("#/s/{}", desk.session(0)));
        desk.page.wait("document.querySelector('.live.is')");
        desk.page.value(
            "{ const [now, sent] = [Date.now, fetch];
               window.opened = 0;
               window.fetch = (where, ...more) => { window.opened += String(where).includes('/events') ? 1 : 0; return sent(where, ...more); };
               Date.now = () => now() + 3600000; }",
        );
        let slept = Instant::now();
        desk.page
            .wait("opened === 1 && document.querySelector('.live.is')");
        let took = slept.elapsed();
        assert!(took < Duration::from_secs(5), "{took:?}");
        desk.activates("Approve pay");
        desk.page
            .sees(".story-row.said .clamp", "It is on its way.⟨202e⟩");
        desk.stays_clean();
    }

    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn a_press_decides_nothing_while_the_list_moves_under_it() {
        let mut desk = Desk::open();
        desk.goes("#/inbox");
        desk.page
            .wait("document.querySelectorAll('.card').length === 4");
        let seen = desk.page.value(
            "new Promise((done) => {
                const find = (text) => [...document.querySelectorAll('button')].find((one) => one.textContent === text);
                const look = () => {
                    if (!document.querySelector('.settling')) return;
                    watch.disconnect();
                    const next = find('Approve pay');
                    next.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, detail: 1 }));
                    setTimeout(() => done([document.querySelectorAll('.over').length, next.disabled]));
                };
                const watch = new MutationObserver(look);
                watch.observe(document, { subtree: true, childList: true, attributes: true });
                find('home').click();
            })",
        );
        // The answered question keeps its place, and the other one was not sent.
        assert_eq!(seen, json!([1, false]));
        let path = format!("/v1/sessions/{}/questions", desk.session(0));
        assert_eq!(desk.asks(&path)["items"].as_array().unwrap().len(), 1);
        desk.page.wait("!document.querySelector('.settling')");
        desk.activates("Approve pay");
        desk.page.sees(".toast", "Approved.");
        desk.stays_clean();
    }

    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn an_act_whose_answer_is_lost_is_done_once() {
        let mut desk = Desk::open();
        let session = desk.session(0).to_owned();
        desk.goes(&format!("#/s/{session}"));
        desk.page
            .wait("document.querySelector('.questions .fields input')");
        desk.page.value(LOSES);
        desk.activates("Approve pay");
        desk.page.wait("window.lost === 1");
        // It is repeated by itself or by the person, with the same key.
        desk.page
            .wait("document.querySelector('.toast, .questions .refused, .questions .trouble')");
        if desk
            .page
            .value("!!document.querySelector('.questions .refused, .questions .trouble')")
            == true
        {
            desk.activates("Approve pay");
        }
        desk.page.wait("!document.querySelector('.questions')");
        let effects = desk.asks(&format!("/v1/sessions/{session}/effects"));
        assert_eq!(
            effects["sums"]["pay"],
            json!({ "intended": 1, "done": 1, "repeated": 0 })
        );
    }

    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn a_token_shows_what_it_may_see_and_no_more() {
        let mut desk = Desk::open();
        let session = desk.session(0).to_owned();
        let mailer = desk.session(2).to_owned();
        // A token that may only read decides nothing, and its owner is told what is missing.
        let (reads, name) = desk.token(&json!({ "allows": ["read"], "roles": ["user"] }));
        desk.signs_in(&reads, "#/inbox");
        desk.page.wait("document.querySelector('.card')");
        desk.page.wait("[...document.querySelectorAll('.card button')].every((one) => one.disabled) || !document.querySelector('.card button')");
        desk.goes(&format!("#/s/{session}/contexts"));
        desk.page.sees("main", "does not allow it");
        assert_eq!(
            desk.page.value("document.querySelector('.segment')"),
            Json::Null
        );
        // A token of somebody else sees an empty store.
        let (theirs, _) = desk.token(&json!({ "allows": ["read", "write"], "subject": "other" }));
        desk.signs_in(&theirs, "#/");
        desk.page.wait("document.querySelector('.empty')");
        for route in ["", "/map", "/effects", "/state", "/branches"] {
            desk.goes(&format!("#/s/{mailer}{route}"));
            desk.page.sees("main", "no session");
        }
        let text = desk.page.value("document.documentElement.outerHTML");
        assert!(!text.as_str().unwrap().contains("4711"), "{text}");
        // One that is revoked while the page is open ends with a question for another one.
        desk.signs_in(&reads, "#/");
        desk.page.wait("document.querySelector('.row.session')");
        let path = format!("/v1/tokens/{name}");
        let revoked = asks_no_body(&desk, &path);
        assert!(revoked.is_success(), "{revoked}");
        desk.page.reloads();
        desk.page.wait("document.querySelector('.signin input')");
        let text = desk.page.value("document.documentElement.outerHTML");
        assert!(!text.as_str().unwrap().contains("4711"), "{text}");
    }

    fn asks_no_body(desk: &Desk, path: &str) -> reqwest::StatusCode {
        let request = desk.served.request(Method::DELETE, path);
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async { request.send().await.unwrap().status() })
    }

    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn the_profile_of_the_browser_holds_no_token() {
        let mut desk = Desk::open();
        desk.goes(&format!("#/s/{}", desk.session(0)));
        desk.page.wait("document.querySelector('.story-row')");
        // The tab still has it after it loads again.
        desk.page.reloads();
        desk.page.wait("document.querySelector('.story-row')");
        let token = desk.served.token().to_owned();
        let world = desk.closes();
        let profile = world.folder.join("profile");
        assert!(profile.join("Default").is_dir());
        assert_eq!(holding(&profile, &token), Vec::<String>::new());
    }

    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn every_screen_fits_narrow_and_enlarged_and_in_forced_colours() {
        let mut desk = Desk::open();
        let screens = desk.screens();
        // 320 pixels are what is left of 1280 at four times the size.
        for (size, features) in [
            ((320, 640), json!([])),
            (
                (640, 400),
                json!([{ "name": "prefers-reduced-motion", "value": "reduce" }]),
            ),
            (
                (1280, 800),
                json!([{ "name": "forced-colors", "value": "active" }]),
            ),
        ] {
            desk.page.looks(size, "light");
            desk.page.call(
                "Emulation.setEmulatedMedia",
                json!({ "features": features }),
            );
            for (route, selector) in &screens {
                desk.goes(route);
                desk.shows(route, selector);
                // A control that lies outside of what can be scrolled to cannot be pressed.
                let clipped = desk.page.value(
                    "[...document.querySelectorAll('button, a, input, select, textarea')].filter((one) => {
                        const { left, right, width, height } = one.getBoundingClientRect();
                        const scrolls = one.closest('.tabs, .chips, .rows, pre, table, .wide, .lanes, .picture, nav');
                        return width > 0 && height > 0 && !scrolls && (left < -1 || right > innerWidth + 1);
                    }).map((one) => one.outerHTML)",
                );
                assert_eq!(clipped, json!([]), "{route} {size:?}");
                let name = route.replace(|c: char| !c.is_alphanumeric(), "-");
                desk.page
                    .pictured(&format!("console-fits-{}-{name}", size.0));
            }
        }
        desk.stays_clean();
    }
}
