//! Questions that the signature views of the console answer, in Chromium (`scripts/chromium.sh`): each in at most three presses from where a person
//! stands. A press is a click on something that is seen, or a key.

use crate::console::Desk;
use reqwest::Method;
use serde_json::json;

/// A person who counts presses.
struct Asker {
    desk: Desk,
    presses: u32,
}

impl Asker {
    fn begins(route: &str, selector: &str) -> Self {
        let mut desk = Desk::open();
        desk.goes(route);
        desk.page
            .wait(&format!("document.querySelector({})", json!(selector)));
        Self { desk, presses: 0 }
    }

    /// Presses what is seen and fits a selector.
    fn presses(&mut self, selector: &str) {
        self.presses += 1;
        let found = format!("document.querySelector({})", json!(selector));
        self.desk.page.wait(&found);
        let seen = format!("(({found}).checkVisibility() ? ({found}).click() : 'hidden')");
        assert_eq!(self.desk.page.value(&seen), json!(null), "{selector}");
    }

    /// Presses the link, the button or the row that begins with a text.
    fn presses_text(&mut self, selector: &str, text: &str) {
        let mark = format!(
            "[...document.querySelectorAll({})].find((one) => one.textContent.trim().startsWith({}))",
            json!(selector),
            json!(text)
        );
        self.desk.page.wait(&mark);
        self.desk
            .page
            .value(&format!("({mark}).dataset.pressed = 'here', 0"));
        self.presses("[data-pressed=here]");
        self.desk
            .page
            .value("document.querySelector('[data-pressed]')?.removeAttribute('data-pressed'), 0");
    }

    fn reads(&mut self, selector: &str, text: &str) {
        self.desk.page.sees(selector, text);
    }

    fn ends(&mut self) {
        assert!(self.presses <= 3, "{} presses", self.presses);
        self.desk.stays_clean();
    }
}

mod chromium {
    use super::*;

    /// Map: where did the session fork, and what became of each branch?
    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn the_map_shows_where_a_session_forked_and_which_branch_is_current() {
        let mut asker = Asker::begins("#/", ".row.session");
        let session = asker.desk.session(0).to_owned();
        asker.presses(&format!(".row.session[data-key='{session}']"));
        asker.presses_text(".tabs a", "Map");
        asker.desk.page.wait(
            "document.querySelector('.lanes canvas')?.getAttribute('aria-label').match(/main desk current.*try desk ended/)",
        );
        let lanes = asker
            .desk
            .page
            .value("[...document.querySelectorAll('.names li')].map((one) => one.title)");
        assert_eq!(lanes, json!(["main, desk, current", "try, desk, ended"]));
        // The line at which it left is one of the branches' rows.
        asker.presses_text(".tabs a", "Branches");
        asker.reads(".branches tr:last-child td:nth-child(2)", "main @2");
        asker.ends();
    }

    /// Contexts: what was new in what the model saw, and how much of the rest was kept byte for byte?
    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn the_contexts_show_what_was_new_to_the_model_and_what_was_kept() {
        let mut asker = Asker::begins("#/", ".row.session");
        let session = asker.desk.session(0).to_owned();
        asker.presses(&format!(".row.session[data-key='{session}']"));
        asker.presses_text(".tabs a", "Contexts");
        asker.reads(".legend", "kept from the call @");
        asker.desk.page.wait("document.querySelector('.segment.new, .segment.part') && document.querySelector('.segment.kept, .segment.part')");
        let context = asker.desk.asks(&format!("/v1/sessions/{session}/contexts"));
        let last = &context["items"].as_array().unwrap().last().unwrap()["effect"];
        let diff = asker.desk.asks(&format!(
            "/v1/sessions/{session}/contexts/{}?show=diff",
            last.as_str().unwrap()
        ));
        let kept = diff["prefix"].as_u64().unwrap();
        let shares = asker.desk.page.value(
            "[...document.querySelectorAll('.segment.kept .num')].length + document.querySelectorAll('.segment.part').length",
        );
        assert!(kept > 0 && shares.as_u64().unwrap() > 0, "{diff:#}");
        asker.ends();
    }

    /// Effects: which payment may have happened, and what was it?
    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn the_effects_show_what_may_have_happened() {
        let mut asker = Asker::begins("#/", ".row.session");
        let session = asker.desk.session(1).to_owned();
        asker.presses(&format!(".row.session[data-key='{session}']"));
        asker.presses_text(".tabs a", "Effects");
        asker.reads(".effects tr.doubt", "NO93");
        asker.reads(".effects tr.doubt .standing", "doubt");
        asker.ends();
    }

    /// Inbox: what do people have to decide in all sessions, and what exactly happens if one approves?
    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn the_inbox_shows_what_an_approval_does_and_takes_it() {
        let mut asker = Asker::begins("#/", ".row.session");
        asker.presses("a[href='#/inbox']");
        asker
            .desk
            .page
            .wait("document.querySelectorAll('.card').length === 4");
        asker.desk.page.wait(
            "[...document.querySelectorAll('.card .says')].some((one) => one.textContent === 'It runs once, with exactly these arguments.')",
        );
        asker.presses_text(".card button", "Approve pay");
        asker.reads(".toast", "Approved.");
        let effects = asker
            .desk
            .asks(&format!("/v1/sessions/{}/effects", asker.desk.session(0)));
        let pay = effects["items"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["tool"] == "pay");
        assert_eq!(pay.unwrap()["args"]["cents"], 3990);
        asker.ends();
    }

    /// Rerun: what would the model have done with another message, and at what cost?
    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn a_rerun_shows_what_another_message_would_have_done() {
        let mut asker = Asker::begins("#/", ".row.session");
        let session = asker.desk.session(0).to_owned();
        let at = json!({ "definition": "refund", "entry": "desk", "message": "Hello." });
        crate::console::asks(&asker.desk.served, Method::POST, "/v1/sessions", Some(&at));
        asker.desk.goes(&format!("#/s/{session}?at=1"));
        asker.presses_text(".pane a", "Rerun from here");
        asker.reads(".before b", "Nothing.");
        asker.desk.page.types("textarea", "Only look it up.");
        asker.presses_text("button", "Run it once");
        asker
            .desk
            .page
            .wait("document.querySelector('.runs tbody tr')");
        asker.presses(".runs .acts a");
        asker.reads(".verdict", "They came to different results.");
        asker.ends();
    }
}
