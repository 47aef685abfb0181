//! A person acts in the console, in Chromium (`scripts/chromium.sh`) and Firefox (`scripts/firefox.sh`): by keys alone, over several sessions, and with texts that would harm
//! a page.

use crate::browser::Browser;
use crate::console::{Desk, SCRIPT};
use reqwest::Method;
use serde_json::{Value as Json, json};

/// A text that does something in a page that takes it as markup, as an address, or in its own direction.
const HOSTILE: &str = "<img src=x onerror=\"document.title='hit'\"><script>document.title='hit'</script> ]]> [a](javascript:document.title='hit') \u{202e}kcab";

impl Desk {
    /// Moves the focus with the tabulator until a condition on the element `it` holds.
    fn tabs_to(&mut self, condition: &str) {
        self.moves_to(condition, |page| page.presses("Tab"));
    }

    /// Moves the focus with a key until a condition on the element `it` holds.
    fn moves_to(&mut self, condition: &str, moves: impl Fn(&mut Browser)) {
        for _ in 0..120 {
            moves(&mut self.page);
            let look = format!("((it) => {condition})(document.activeElement)");
            if self.page.value(&look) == json!(true) {
                return;
            }
        }
        let at = self.page.value("document.body.innerText");
        panic!("no element with {condition}: {at}");
    }

    /// Moves the focus to a button or a link by its text, and presses it.
    fn enters(&mut self, text: &str) {
        self.tabs_to(&format!("it.textContent.trim() === {}", json!(text)));
        self.page.presses("Enter");
        self.has_focus();
    }

    fn keys(&mut self, keys: &str) {
        for key in keys.split(' ') {
            self.page.presses(key);
        }
        self.has_focus();
    }

    /// Types a text where the focus is, in place of what is there.
    fn writes(&mut self, text: &str) {
        self.page.value("document.activeElement.select()");
        self.page.inserts(text);
    }

    /// A session is begun, decided, forked, compared and adopted by keys alone.
    fn does_all_by_keys(&mut self) {
        self.keys("n");
        self.page
            .wait("document.activeElement.matches('dialog textarea')");
        self.writes("My kettle (order 4711) is broken.");
        self.enters("Begin refund");
        self.page.wait("location.hash.startsWith('#/s/')");
        let session = self.page.value("location.hash.split('/')[2]");
        let session = session.as_str().unwrap().to_owned();
        self.page
            .wait("document.querySelector('.questions .fields input')");
        self.keys("a");
        self.writes("2500");
        self.page.presses("Enter");
        self.page.sees(
            ".toast",
            "Approved with cents: 2500 in place of cents: 3990.",
        );
        self.page
            .sees(".story-row.said .clamp", "It is on its way.");
        self.page.wait("!document.querySelector('.questions')");
        self.has_focus();
        // A doubt is resolved in the inbox.
        self.keys("g i");
        self.page
            .wait("document.querySelector('.card.doubt .answer')");
        self.enters("Give up…");
        self.enters("End the call as failed");
        self.page.sees(".toast", "Resolved.");
        self.has_focus();
        // The newest session is the first in the list. A fork begins at one of its lines.
        self.keys("g s");
        self.page.wait("document.querySelector('.row.session')");
        self.goes(&format!("#/s/{session}"));
        self.page
            .wait("document.querySelectorAll('.story-row').length > 8");
        self.tabs_to("it.matches('.rows')");
        self.keys("End Enter");
        self.page.wait("document.querySelector('.pane .chain li')");
        self.keys("f");
        self.page
            .wait("document.activeElement.matches('dialog textarea')");
        self.writes("And now?");
        self.tabs_to("it.matches('dialog input')");
        self.writes("other");
        self.enters("Fork dry");
        self.page
            .wait("location.hash.includes('branch=') && !document.querySelector('dialog')");
        self.page.wait("document.querySelector('.story-row')");
        self.keys("7");
        self.page.wait("document.querySelector('.branches .acts')");
        self.enters("Compare");
        self.page.wait("document.querySelector('.verdict')");
        self.tabs_to("it.matches('.diff th:last-child a')");
        self.page.presses("Enter");
        self.page.wait("document.querySelector('.tabs')");
        self.page.wait("document.querySelector('.story-row')");
        self.keys("7");
        self.page
            .wait("document.querySelector('.branches .acts button')");
        self.enters("Adopt…");
        // The focus is on the button that leaves everything as it is.
        self.moves_to(
            "it.textContent.trim() === 'Adopt other'",
            Browser::tabs_back,
        );
        self.page.presses("Enter");
        self.page.sees(".toast", "Adopted.");
        self.has_focus();
        let branches = self.asks(&format!("/v1/sessions/{session}/branches"));
        let adopted = branches["items"].as_array().unwrap().iter();
        let mut adopted = adopted.filter(|branch| branch["adopted"].is_u64());
        assert!(adopted.next().is_some(), "{branches:#}");
        self.stays_clean();
    }

    fn statuses(&self) -> Vec<Json> {
        let found = self.asks("/v1/sessions");
        let rows = found["items"].as_array().unwrap().iter();
        rows.map(|row| row["status"].clone()).collect()
    }
}

mod chromium {
    use super::*;

    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn a_session_is_begun_decided_forked_compared_and_adopted_by_keys_alone() {
        Desk::open().does_all_by_keys();
    }

    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn the_map_is_walked_by_keys_and_its_outline_has_the_same_entries() {
        let mut desk = Desk::open();
        let of = format!("#/s/{}", desk.session(0));
        let map = desk.asks(&format!("/v1/sessions/{}/map", desk.session(0)));
        let entries = map["lines"].as_array().unwrap().len();
        desk.goes(&format!("{of}/map?view=map"));
        desk.page
            .wait("document.querySelector('.lanes canvas')?.width > 0");
        desk.tabs_to("it.matches('.lanes')");
        desk.keys("ArrowRight ArrowRight");
        let second = map["lines"][0].as_u64().unwrap() + map["lines"][1].as_u64().unwrap();
        desk.page.sees(".told code", &format!("@{second}"));
        // The canvas is painted in the colours of the theme.
        let painted = |of: &str| {
            format!(
                "{{ const canvas = document.querySelector('{of} canvas');
                const {{ data }} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
                new Set(new Uint32Array(data.buffer)).size > 4 }}"
            )
        };
        assert_eq!(desk.page.value(&painted(".lanes")), true);
        desk.keys("ArrowDown");
        desk.page.sees(".told b", "try");
        // What is not all in sight has a strip below, with the whole, which leads anywhere.
        assert_eq!(
            desk.page.value("document.querySelector('.whole') === null"),
            true
        );
        desk.page.looks((700, 600), "light");
        desk.keys("+ + + + + + + +");
        desk.page.wait("document.querySelector('.whole canvas')");
        assert_eq!(desk.page.value(&painted(".whole")), true);
        let end = "{ const { x, y, width } = document.querySelector('.whole').getBoundingClientRect(); [x + width - 4, y + 8] }";
        let end = desk.page.value(end);
        desk.page.clicks_at(&end);
        let [lanes, seen] = [
            "document.querySelector('.lanes')",
            "document.querySelector('.whole i').style",
        ];
        desk.page.wait(&format!("{lanes}.scrollLeft > 0 && {lanes}.scrollLeft + {lanes}.clientWidth >= {lanes}.scrollWidth - 1"));
        desk.page.wait(&format!(
            "Math.abs(parseFloat({seen}.left) + parseFloat({seen}.width) - 100) < 1"
        ));
        desk.page.pictured("console-map-whole");
        // Both canvases follow the theme.
        let canvases = "[...document.querySelectorAll('.lanes canvas, .whole canvas')]";
        desk.page.value(&format!(
            "{{ window.light = {canvases}.map((one) => one.toDataURL()); light.length }}"
        ));
        desk.page.looks((700, 600), "dark");
        desk.page.wait(&format!(
            "{canvases}.length === 2 && {canvases}.every((one, n) => one.toDataURL() !== light[n])"
        ));
        desk.page.pictured("console-map-whole-dark");
        desk.page.looks((700, 600), "light");
        desk.page.wait(&format!(
            "{canvases}.every((one, n) => one.toDataURL() === light[n])"
        ));
        desk.page.clicks("Fit");
        desk.page.wait("!document.querySelector('.whole')");
        desk.tabs_to("it.matches('.lanes')");
        desk.keys("Enter");
        desk.page
            .wait("document.querySelector('.pane .chain li, .pane .help')");
        desk.keys("Escape");
        desk.page.wait("!document.querySelector('.pane')");
        desk.goes(&format!("{of}/map?view=outline"));
        desk.page.wait(&format!(
            "document.querySelectorAll('.entry:not(.lane)').length === {entries}"
        ));
        desk.tabs_to("it.matches('.rows')");
        desk.keys("Home j ArrowLeft");
        desk.keys("Home ArrowLeft");
        desk.page
            .wait("document.querySelector('.entry.lane[aria-expanded=false]')");
        desk.page.wait(&format!(
            "document.querySelectorAll('.entry:not(.lane)').length < {entries}"
        ));
        desk.stays_clean();
    }

    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn a_rerun_says_what_it_does_and_its_differences_are_those_of_the_server() {
        let mut desk = Desk::open();
        let session = desk.session(0).to_owned();
        desk.goes(&format!("#/s/{session}/rerun?at=2"));
        desk.page.sees(".before b", "nothing");
        // Live, it wants the id of the session.
        desk.page
            .value("document.querySelector('.check input').click()");
        desk.page.sees(".before .badly", "The world.");
        desk.page
            .wait("document.querySelector('button[type=submit]').disabled");
        desk.page
            .types("label input[autocomplete=off]", &session[..6]);
        desk.page
            .wait("!document.querySelector('button[type=submit]').disabled");
        desk.page
            .value("document.querySelector('.check input').click()");
        desk.page.types("textarea", "Something else.");
        desk.page.types("[type=number]", "2");
        desk.activates("Run it 2 times");
        desk.page
            .wait("document.querySelectorAll('.runs tbody tr').length === 2");
        desk.page.sees(".strip b", "2");
        desk.page.pictured("console-rerun-done");
        desk.page
            .value("document.querySelector('.runs .acts a').click()");
        desk.page.wait("document.querySelector('.verdict')");
        let sides = desk.page.value("location.hash.split('?')[1]");
        let told = desk.asks(&format!("/v1/diff?{}", sides.as_str().unwrap()));
        assert_eq!(told["empty"], false, "{told:#}");
        let verdict = if told["differs"] == true {
            "different results"
        } else {
            "by another way"
        };
        desk.page.sees(".verdict", verdict);
        let calls = desk.page.value("[...document.querySelectorAll('.diff tbody tr:nth-child(2) td')].slice(0, 2).map((cell) => Number(cell.textContent))");
        assert_eq!(
            calls,
            json!([told["model_calls"]["a"], told["model_calls"]["b"]])
        );
        // The rerun itself leads back to what it repeats.
        desk.page
            .value("document.querySelector('.diff th:last-child a').click()");
        desk.page.sees(".bar", "A rerun of");
        desk.stays_clean();
    }

    /// A run with another prompt: what was changed, and both sessions in one scale.
    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn differences_show_what_was_changed_and_both_maps() {
        let mut desk = Desk::open();
        let session = desk.session(0).to_owned();
        desk.goes(&format!("#/s/{session}/rerun?at=1"));
        desk.page.sees(".before b", "nothing");
        desk.page.types(".again .pair input", "agents.desk.system");
        desk.page
            .wait("document.querySelector('.again .pair textarea').value.startsWith('Order ')");
        desk.page.types(".again .pair textarea", "You are kind.");
        desk.activates("Run it once");
        desk.page.wait("document.querySelector('.runs .acts a')");
        desk.page
            .value("document.querySelector('.runs .acts a').click()");
        desk.page
            .wait("document.querySelector('h3')?.textContent === 'Changed: agents.desk.system'");
        let sides = "['INS', 'DEL'].map((not) => [...document.querySelector('h3 + pre').childNodes].filter((one) => one.nodeName !== not).map((one) => one.textContent).join(''))";
        let prompts = [
            "Order {{ state.order | default('unknown') }}.",
            "You are kind.",
        ];
        assert_eq!(desk.page.value(sides), json!(prompts));
        let maps = "[...document.querySelectorAll('.maps .sheet canvas')].map((one) => one.getAttribute('aria-label').split(':')[1])";
        desk.page.wait(&format!("{maps}.length === 2"));
        desk.page.pictured("console-differences");
        assert_eq!(
            desk.page.value(maps),
            json!([" main desk, try desk ended", " main desk"])
        );
        // An entry leads to its place in the map of its session.
        desk.page
            .value("document.querySelector('.maps .lanes').focus()");
        desk.page.presses("End");
        desk.page.presses("Enter");
        desk.page
            .wait("location.hash.includes('/map?') && document.querySelector('.pane')");
        desk.stays_clean();
    }

    /// The rows of a session that have some words, and the way from one of them to its place in the story.
    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn words_are_found_in_a_session() {
        let mut desk = Desk::open();
        let session = desk.session(0).to_owned();
        desk.goes(&format!("#/s/{session}"));
        desk.page
            .wait("document.querySelectorAll('.story-row').length > 5");
        desk.keys("/");
        desk.page
            .wait("document.activeElement.matches('.find input')");
        desk.page.inserts("A KETTLE");
        desk.page.presses("Enter");
        desk.page.sees(".bar", "1 row with “A KETTLE”");
        desk.page
            .wait("document.querySelectorAll('.story-row').length === 1");
        desk.page
            .value("document.querySelector('.story-row').click()");
        desk.page.wait("document.querySelector('.pane .chain li')");
        desk.page
            .value("[...document.querySelectorAll('.bar a')].find((one) => one.textContent.endsWith('in the story')).click()");
        desk.page.wait("document.querySelectorAll('.story-row').length > 5 && document.querySelector('.row.active')");
        let (line, at) = (
            desk.page
                .value("document.querySelector('.row.active .line').textContent"),
            desk.page
                .value("new URLSearchParams(location.hash.split('?')[1]).get('at')"),
        );
        assert_eq!(line, at);
        desk.stays_clean();
    }

    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn an_entry_begins_with_its_parameters() {
        let mut desk = Desk::open();
        desk.goes("#/definitions/refund");
        desk.opens("Talk to clerk…");
        // What is missing is said where it was sent.
        desk.activates("Begin refund");
        desk.page.sees("dialog .trouble", "order");
        desk.page.complains();
        desk.page.types("dialog label:first-child > input", "4711");
        desk.page.types("dialog label:last-child > input", "2");
        desk.page.pictured("console-entry");
        desk.activates("Begin refund");
        desk.page.sees(".story-row.said .clamp", "Filed.");
        let address = desk.page.value("location.hash.split('?')[0]");
        desk.goes(&format!("{}/contexts", address.as_str().unwrap()));
        desk.page
            .sees(".segment:first-child pre", "Order 4711, 3 copies.");
        desk.stays_clean();
    }

    /// A session that failed is found by its filter, says why, and is tried again.
    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn what_failed_is_found_and_tried_again() {
        let fails = SCRIPT.replace(
            "chooser:\n",
            "\"chooser@100.1\": [ It works now. ]\nchooser:\n  - { error: bad_request }\n",
        );
        let mut desk = Desk::with(&fails);
        desk.goes("#/?where=status+%3D+failed");
        let session = desk.session(3).to_owned();
        let row = format!(".row.session[data-key='{session}']");
        desk.page.sees(&format!("{row} .badly"), "bad_request");
        desk.page
            .value(&format!("document.querySelector({}).click()", json!(row)));
        desk.page.sees(".bar.warn b", "bad_request");
        desk.opens("Retry…");
        desk.activates("Retry 1 session");
        desk.page.sees(".story-row.said .clamp", "It works now.");
        desk.page.wait("!document.querySelector('.bar.warn')");
        desk.stays_clean();
    }

    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn a_token_is_shown_once_and_several_sessions_are_paused_and_resumed() {
        let mut desk = Desk::open();
        desk.goes("#/server");
        desk.page.wait("document.querySelector('.panel .grid')");
        desk.opens("New token…");
        desk.page
            .clicks("Make a token that may read, write, decide");
        desk.page.wait("document.querySelector('.secret')");
        let token = desk
            .page
            .value("document.querySelector('.secret').textContent");
        let token = token.as_str().unwrap().to_owned();
        let name = token.split('_').nth(1).unwrap().to_owned();
        assert!(token.starts_with("stm_"), "{token}");
        desk.activates("I have it");
        desk.page.wait("!document.querySelector('dialog')");
        let held = desk.page.value("document.documentElement.outerHTML + JSON.stringify([{...sessionStorage}, {...localStorage}])");
        assert!(!held.as_str().unwrap().contains(&token));
        let tokens = || desk.asks("/v1/tokens");
        let revoked = |all: &Json| {
            let mut all = all["items"].as_array().unwrap().iter();
            all.find(|one| one["name"] == *name).unwrap()["revoked"].is_string()
        };
        assert!(!revoked(&tokens()));
        desk.page.wait(&format!(
            "[...document.querySelectorAll('.panel tr')].some((row) => row.textContent.includes({}))",
            json!(name)
        ));
        desk.page.value(&format!(
            "[...document.querySelectorAll('.panel tr')].find((row) => row.textContent.includes({})).querySelector('button').click()",
            json!(name)
        ));
        desk.activates(&format!("Revoke {name}"));
        desk.page.sees(".toast", "Revoked.");
        assert!(revoked(&desk.asks("/v1/tokens")));

        desk.goes("#/");
        desk.page
            .wait("document.querySelectorAll('.row.session').length >= 5");
        desk.activates("Select");
        desk.page
            .wait("document.querySelectorAll('.row.session [type=checkbox]').length >= 4");
        for n in [0, 1] {
            desk.page.value(&format!(
                "document.querySelectorAll('.row.session [type=checkbox]')[{n}].click()"
            ));
        }
        desk.page.sees(".chosen b", "2 sessions selected");
        desk.opens("Pause…");
        desk.activates("Pause 2 sessions");
        desk.page
            .wait("document.querySelectorAll('.fates [role=status]').length === 2");
        desk.page.pictured("console-orders");
        desk.activates("Close");
        desk.page
            .wait("document.querySelectorAll('.row.session .status.warn').length === 2");
        let paused = desk
            .statuses()
            .iter()
            .filter(|status| **status == "paused")
            .count();
        assert_eq!(paused, 2, "{:?}", desk.statuses());
        desk.opens("Resume…");
        desk.activates("Resume 2 sessions");
        desk.page
            .wait("document.querySelectorAll('.fates [role=status]').length === 2");
        desk.activates("Close");
        desk.page
            .wait("document.querySelectorAll('.row.session .status.warn').length === 0");
        desk.stays_clean();
    }

    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn hostile_texts_stay_texts_on_every_screen() {
        let hostile = json!(HOSTILE).to_string();
        let script = SCRIPT
            .replace(
                "\"I look it up. <img src=x onerror=\\\"document.title = 'hit'\\\">\"",
                &hostile,
            )
            .replace("order: \"4711\"", &format!("order: {hostile}"))
            .replace(
                "content: Ann has two addresses.",
                &format!("content: {hostile}"),
            )
            .replace("\"Which of the two?\"", &hostile);
        assert!(script.matches("onerror").count() >= 4, "{script}");
        let mut desk = Desk::with(&script);
        let of = format!("/v1/sessions/{}", desk.session(0));
        let long = "x".repeat(100_000);
        for (path, body) in [
            (format!("{of}/messages"), json!({ "text": HOSTILE })),
            (format!("{of}/messages"), json!({ "text": long })),
            (
                format!("{of}/branches"),
                json!({ "at": 2, "label": "other", "say": HOSTILE }),
            ),
            (
                "/v1/tokens".to_owned(),
                json!({ "note": HOSTILE, "allows": ["read"], "subject": HOSTILE, "roles": [HOSTILE] }),
            ),
        ] {
            crate::console::asks(&desk.served, Method::POST, &path, Some(&body));
        }
        let screens = desk.screens();
        for size in [(1280, 800), (390, 844)] {
            desk.page.looks(size, "light");
            for (route, selector) in &screens {
                desk.goes(route);
                desk.shows(route, selector);
                let made = desk.page.value(
                    "[document.title, document.querySelectorAll('main [src=x], main [onerror], main script, main a[href^=javascript]').length,
                      document.body.innerText.includes('\\u202e')]",
                );
                assert_eq!(made, json!(["Steersman", 0, false]), "{route}");
            }
        }
        desk.stays_clean();
    }
}

mod firefox {
    use super::*;

    #[test]
    #[ignore = "needs Firefox: STEERSMAN_FIREFOX=$(scripts/firefox.sh)"]
    fn a_session_is_begun_decided_forked_compared_and_adopted_by_keys_alone() {
        Desk::firefox("light").does_all_by_keys();
    }
}
