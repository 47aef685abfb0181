//! A browser that tests use as a person does: Chromium over its DevTools, or Firefox over WebDriver BiDi.

mod bidi;
mod devtools;

use crate::world::World;
use bidi::Bidi;
use devtools::DevTools;
use serde_json::{Value as Json, json};
use std::path::Path;

/// The way in which a browser is told what to do.
enum Line {
    DevTools(DevTools),
    Bidi(Box<Bidi>),
}

/// A browser with one page, or with several of which one is used.
pub(crate) struct Browser {
    line: Line,
    /// Errors and warnings of the console.
    pub(crate) faults: Vec<String>,
}

impl Browser {
    pub(crate) fn chromium(world: &World) -> Self {
        let mut faults = Vec::new();
        Self {
            line: Line::DevTools(DevTools::start(world, &mut faults)),
            faults,
        }
    }

    /// Starts Firefox. Its pages have this theme as long as it runs.
    pub(crate) fn firefox(world: &World, theme: &'static str) -> Self {
        let mut faults = Vec::new();
        Self {
            line: Line::Bidi(Box::new(Bidi::start(world, theme, &mut faults))),
            faults,
        }
    }

    pub(crate) fn is_chromium(&self) -> bool {
        matches!(self.line, Line::DevTools(_))
    }

    /// Calls a method of Chromium's DevTools, and returns its result.
    pub(crate) fn call(&mut self, method: &str, params: Json) -> Json {
        match &mut self.line {
            Line::DevTools(line) => line.call(method, params, &mut self.faults),
            Line::Bidi(_) => panic!("{method} is one of Chromium's"),
        }
    }

    /// Goes to an address, and waits until it is loaded.
    pub(crate) fn goes_to(&mut self, url: &str) {
        let faults = &mut self.faults;
        match &mut self.line {
            Line::DevTools(line) => line.load("Page.navigate", json!({ "url": url }), faults),
            Line::Bidi(line) => line.goes_to(url, faults),
        }
    }

    pub(crate) fn reloads(&mut self) {
        let faults = &mut self.faults;
        match &mut self.line {
            Line::DevTools(line) => line.load("Page.reload", json!({}), faults),
            Line::Bidi(line) => line.reloads(faults),
        }
    }

    /// Opens an address in another tab, to which everything goes from now on.
    pub(crate) fn opens_tab(&mut self, url: &str) {
        match &mut self.line {
            Line::DevTools(line) => line.opens_page(&mut self.faults),
            Line::Bidi(_) => panic!("this test is Chromium's"),
        }
        self.goes_to(url);
    }

    /// The tab that everything goes to.
    pub(crate) fn tab(&self) -> String {
        match &self.line {
            Line::DevTools(line) => line.page.clone().expect("there is a page"),
            Line::Bidi(line) => line.page.clone(),
        }
    }

    pub(crate) fn turns_to(&mut self, tab: &str) {
        match &mut self.line {
            Line::DevTools(line) => line.page = Some(tab.to_owned()),
            Line::Bidi(line) => tab.clone_into(&mut line.page),
        }
    }

    /// Gives the page a size and a theme.
    pub(crate) fn looks(&mut self, (width, height): (u32, u32), theme: &str) {
        match &mut self.line {
            Line::DevTools(_) => {
                let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
                self.call("Emulation.setDeviceMetricsOverride", size);
                let media =
                    json!({ "features": [{ "name": "prefers-color-scheme", "value": theme }] });
                self.call("Emulation.setEmulatedMedia", media);
            }
            Line::Bidi(line) => {
                assert_eq!(line.theme, theme, "Firefox has a theme as long as it runs");
                line.resizes((width, height), &mut self.faults);
            }
        }
    }

    /// Waits for an error in the console, and returns those that came.
    pub(crate) fn complains(&mut self) -> Vec<String> {
        while self.faults.is_empty() {
            match &mut self.line {
                Line::DevTools(line) => line.hears(&mut self.faults),
                Line::Bidi(line) => line.hears(&mut self.faults),
            }
        }
        std::mem::take(&mut self.faults)
    }

    /// Returns the value of an expression of JavaScript, and that of a promise once it has one.
    pub(crate) fn value(&mut self, expression: &str) -> Json {
        let faults = &mut self.faults;
        match &mut self.line {
            Line::DevTools(line) => line.value(expression, faults),
            Line::Bidi(line) => line.value(expression, faults),
        }
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
        self.inserts(text);
    }

    /// Types a text where the focus is.
    pub(crate) fn inserts(&mut self, text: &str) {
        let faults = &mut self.faults;
        match &mut self.line {
            Line::DevTools(line) => {
                line.call("Input.insertText", json!({ "text": text }), faults);
            }
            Line::Bidi(line) => line.types(text, faults),
        }
    }

    /// Presses a key: a character, or a key by its name.
    pub(crate) fn presses(&mut self, key: &str) {
        let faults = &mut self.faults;
        match &mut self.line {
            Line::DevTools(line) => line.presses(key, faults),
            Line::Bidi(line) => line.presses(key, faults),
        }
    }

    /// Moves the focus to the element before.
    pub(crate) fn tabs_back(&mut self) {
        let faults = &mut self.faults;
        match &mut self.line {
            Line::DevTools(line) => line.tabs_back(faults),
            Line::Bidi(line) => line.tabs_back(faults),
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
                [Math.round(x + width / 2), Math.round(y + height / 2)]
            }}",
            json!(text)
        ));
        self.clicks_at(&place);
    }

    /// Clicks on a place of the screen: `[x, y]` in pixels.
    pub(crate) fn clicks_at(&mut self, place: &Json) {
        let faults = &mut self.faults;
        match &mut self.line {
            Line::DevTools(line) => line.clicks(place, faults),
            Line::Bidi(line) => line.clicks(place, faults),
        }
    }

    /// Returns a picture of the page, as a PNG.
    pub(crate) fn picture(&mut self) -> Vec<u8> {
        let faults = &mut self.faults;
        match &mut self.line {
            Line::DevTools(line) => line.picture(faults),
            Line::Bidi(line) => line.picture(faults),
        }
    }

    /// Writes a picture of the page, if somebody wants to look at it.
    pub(crate) fn pictured(&mut self, name: &str) {
        if let Ok(folder) = std::env::var("STEERSMAN_PICTURES") {
            let file = Path::new(&folder).join(format!("{name}.png"));
            std::fs::write(file, self.picture()).unwrap();
        }
    }
}
