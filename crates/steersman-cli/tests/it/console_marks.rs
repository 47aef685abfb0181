//! The speed of the console in Chromium (`scripts/chromium.sh`), next to a bare page in the same browser that shows the same: a list of the rows
//! in sight, rectangles on a canvas, blocks of text. A slow machine makes both slow, so what is bounded is how they compare. What is no time, such
//! as the number of elements, is bounded itself.
//!
//! `STEERSMAN_MARKS=FILE` writes the figures to a file, as a table.

use crate::browser::Browser;
use crate::chromium::site;
use crate::console::asks;
use crate::served::{Served, provider};
use crate::world::{self, World};
use reqwest::Method;
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::time::Instant;

const BUSY: &str = r#"
steersman: 1
name: busy
limits: { tokens: 1000000000 }
state: { seen: { type: integer, optional: true } }
tools:
  note:
    description: Notes something.
    parameters: { n: integer, text: { type: string, optional: true } }
    set: { seen: "{{ args.n }}" }
  look: { description: Looks something up., parameters: { n: integer }, effect: read, command: [echo, found] }
agents:
  desk: { system: You note., tools: [note, look], limits: { model_calls: 100000, ticks: 1000000, parallel: 40 } }
  long: { system: You note at length., tools: [note], context: { keep_exchanges: 500 }, limits: { model_calls: 100000 } }
entry: [desk, long]
"#;

/// Answers of each turn that call the tool, before the one that ends it, and calls in each of them: the first turn, which is looked at, has 10,050
/// interactions; the other one is followed.
const TURNS: [usize; 2] = [150, 75];
const CALLS: usize = 33;
/// Answers of a turn whose calls are effects.
const EFFECTS: usize = 10;
/// Answers of the session with one large context, and bytes of each: 1 MiB in 400 segments.
const SEGMENTS: usize = 200;
const BYTES: usize = 5200;

fn script() -> String {
    let mut text = String::from("desk:\n");
    let mut n = 0;
    for (turn, answers) in TURNS.into_iter().enumerate() {
        for answer in 0..answers {
            let tool = if answer < EFFECTS { "look" } else { "note" };
            text.push_str("  - { call: [");
            for _ in 0..CALLS {
                n += 1;
                write!(text, " {{ {tool}: {{ n: {n} }} }},").unwrap();
            }
            text.push_str(" ] }\n");
        }
        writeln!(text, "  - \"Turn {turn} is over.\"").unwrap();
    }
    text.push_str("long:\n");
    for n in 0..SEGMENTS {
        let long = format!("{n} words. ").repeat(BYTES / 10);
        writeln!(
            text,
            "  - {{ call: {{ note: {{ n: {n}, text: \"{long}\" }} }} }}"
        )
        .unwrap();
    }
    text.push_str("  - It is long.\n");
    text
}

/// A page that shows what the console shows, made with the same libraries, and does nothing else. It loads the files of the console, too, and runs
/// none of them.
const BARE: &str = r#"<!doctype html><meta charset="utf-8"><title>bare</title><link rel="icon" href="data:,">FILES
<style>
  body { margin: 0; font: 14px/1.45 system-ui, sans-serif }
  #list { height: 100vh; overflow: auto; position: relative }
  .row { position: absolute; left: 0; right: 0; height: 30px; display: grid; grid-template-columns: 4rem 8rem 1fr 6rem; overflow: hidden; white-space: nowrap }
</style>
<div id="list"></div>
<script type="module">
import { h, render } from './console/vendor/preact.mjs';
import htm from './console/vendor/htm.mjs';
const html = htm.bind(h);
const [server, token] = location.hash.slice(1).split('&').map(decodeURIComponent);
window.get = async (path) => (await fetch(server + path, { headers: { authorization: `Bearer ${token}` } })).json();
const list = document.querySelector('#list');
let rows = [];
const paint = () => {
  const from = Math.max(0, Math.floor(list.scrollTop / 30) - 13);
  const to = Math.min(rows.length, from + Math.ceil(list.clientHeight / 30) + 26);
  render(html`<div style=${{ height: `${rows.length * 30}px` }}>${rows.slice(from, to).map((row, n) => html`
    <div key=${from + n} class="row" style=${{ top: `${(from + n) * 30}px` }}>${[row.line ?? '', row.who ?? row.network, row.text ?? row.status, row.at ?? row.updated].map((text) => html`<span>${text}</span>`)}</div>`)}</div>`, list);
};
list.onscroll = paint;
window.shows = (all) => {
  rows = all;
  paint();
};
window.blocks = (all) => render(html`<div>${all.map((one) => html`<pre class="row block" style="position: static; height: auto">${JSON.stringify(one)}</pre>`)}</div>`, list);
if (server) {
  await get('/v1/me');
  shows((await get('/v1/sessions?limit=100')).items);
}
</script>
"#;

/// Notes the time at which something is there first, in every page that is opened.
const NOTES: &str = "
  window.first = {};
  const noted = (name, selector) => {
    const look = () => document.querySelector(selector) && !(name in first) && (first[name] = performance.now());
    new MutationObserver(look).observe(document, { subtree: true, childList: true });
  };
  noted('row', '.row:not(.header)');
";

/// The milliseconds between frames while an element is scrolled up to its start.
const SCROLLS: &str = "new Promise((done) => {
    const box = document.querySelector(SELECTOR);
    box.scrollTop = box.scrollHeight;
    const frames = [];
    let [last, still] = [performance.now(), 0];
    const step = (now) => {
      frames.push(now - last);
      last = now;
      still = box.scrollTop === 0 ? still + 1 : 0;
      if (still > 40 || frames.length > 3000) return done(frames.slice(1, frames.length - still));
      box.scrollTop = Math.max(0, box.scrollTop - 600);
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  })";

/// The milliseconds of each painting of all entries of a map.
const PAINTS: &str = "(async () => {
    const [scale, { colours, paint }] = [await import('/console/map/scale.mjs'), await import('/console/map/paint.mjs')];
    const model = scale.joined(null, MAP);
    const laid = scale.lanes(model, null);
    const step = 1200 / model.all.length;
    const x = scale.places(model.all, step, false);
    const drawn = { x, step, laid, bars: scale.bars(model, laid.of, x, step), spans: scale.spans(model, laid, x), lines: scale.lines(model, laid.of) };
    const canvas = document.createElement('canvas');
    document.body.append(canvas);
    const view = { left: 0, top: 0, width: 1200, height: Math.max(300, laid.lanes.length * scale.LANE) };
    canvas.style.cssText = `display: block; width: ${view.width}px; height: ${view.height}px`;
    const tones = colours(canvas);
    const times = [];
    for (let n = 0; n < 40; n += 1) {
      const from = performance.now();
      paint(canvas, { ...drawn, at: n, only: -1, colours: tones }, view);
      canvas.getContext('2d').getImageData(0, 0, 1, 1);
      times.push(performance.now() - from);
    }
    canvas.remove();
    return [times, drawn.bars.map((bar) => [bar.x, bar.y, bar.w, bar.h])];
  })()";

const RECTANGLES: &str = "(() => {
    const canvas = document.createElement('canvas');
    document.body.append(canvas);
    const times = [];
    const all = BARS;
    for (let n = 0; n < 40; n += 1) {
      const from = performance.now();
      canvas.width = 1200;
      canvas.height = 300;
      const pen = canvas.getContext('2d');
      for (const [n, [x, y, w, h]] of all.entries()) {
        pen.fillStyle = n % 2 ? '#5578d0' : '#b9791c';
        pen.fillRect(x, y, w, h);
      }
      pen.getImageData(0, 0, 1, 1);
      times.push(performance.now() - from);
    }
    canvas.remove();
    return times;
  })()";

/// A figure, what it is compared with, and what it must not exceed.
struct Mark {
    what: &'static str,
    reached: f64,
    bare: Option<f64>,
    /// A share of the bare page's figure, or a figure if there is none.
    bound: f64,
    unit: &'static str,
}

impl Mark {
    fn share(&self) -> f64 {
        self.bare.map_or(self.reached, |bare| self.reached / bare)
    }
}

/// Returns the value at a share of the numbers, in order of size.
fn quantile(numbers: &Json, share: f64) -> f64 {
    let numbers = numbers.as_array().unwrap().iter();
    let mut numbers: Vec<f64> = numbers.map(|one| one.as_f64().unwrap()).collect();
    numbers.sort_by(f64::total_cmp);
    numbers[((numbers.len() - 1) as f64 * share).round() as usize]
}

/// The console and the bare page, each in a tab of one browser, over a store with a long session and one with a large context.
struct Bench {
    page: Browser,
    served: Served,
    console: String,
    bare: String,
    /// The end of the address of the bare page: the server, and a token.
    server: String,
    session: String,
    long: String,
    marks: Vec<Mark>,
}

impl Bench {
    fn open(world: &World) -> Self {
        world.write("steersman.yaml", BUSY);
        world.write("script.yaml", &script());
        let console = world::root().join("crates/steersman-server/console");
        let copy = world.folder.join("console");
        world::copy(&console, &copy);
        let files = world::files(&copy).into_iter();
        let files = files.filter(|file| file.extension().is_some_and(|end| end == "mjs"));
        let files = files.map(|file| {
            let name = file.strip_prefix(&world.folder).unwrap();
            format!("<link rel=\"modulepreload\" href=\"{}\">", name.display())
        });
        world.write(
            "bare.html",
            &BARE.replace("FILES", &files.collect::<String>()),
        );
        let begins = |entry: &str| {
            let run = [
                "run",
                "--quiet",
                "--json",
                "--entry",
                entry,
                "--input",
                "Note it all.",
            ];
            let script = ["--script-all", "script.yaml"];
            let ran = world.run(&[&run[..], &script].concat());
            assert_eq!(ran.code, Some(0), "{ran:?}");
            let (_, listed) = world.json(&["sessions", "--limit", "1"]);
            listed["session"].as_str().unwrap().to_owned()
        };
        let (long, session) = (begins("long"), begins("desk"));
        let origin = site(&world.folder);
        let args = ["--quiet", "--listen", "127.0.0.1:0", "--origin", &origin];
        let script = ["--script-all", "script.yaml"];
        let served = Served::with(world, &[&args[..], &script].concat());
        let mut page = Browser::chromium(world);
        for domain in ["HeapProfiler", "Network"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        let opened = world.run(&["--server", &served.at, "ui", "--print"]);
        page.goes_to(opened.out.trim());
        page.wait("document.querySelectorAll('.row.session').length === 3");
        let console = page.tab();
        page.opens_tab(&format!("{origin}/bare.html"));
        let bare = page.tab();
        for tab in [&console, &bare] {
            page.turns_to(tab);
            page.looks((1280, 800), "light");
            let notes = json!({ "source": NOTES });
            page.call("Page.addScriptToEvaluateOnNewDocument", notes);
        }
        let server = [&*served.at, served.token()].join(" ");
        Self {
            page,
            served,
            console,
            bare,
            server,
            session,
            long,
            marks: Vec::new(),
        }
    }

    fn turns_to_console(&mut self) {
        let tab = self.console.clone();
        self.page.turns_to(&tab);
        self.page.call("Page.bringToFront", json!({}));
    }

    fn turns_to_bare(&mut self) {
        let tab = self.bare.clone();
        self.page.turns_to(&tab);
        self.page.call("Page.bringToFront", json!({}));
    }

    /// Measures both sides in turn, and notes the least of each: what else the machine does makes them slower, and nothing makes them faster.
    fn compares(
        &mut self,
        (what, unit): (&'static str, &'static str),
        bound: f64,
        console: impl Fn(&mut Self) -> f64,
        bare: impl Fn(&mut Self) -> f64,
    ) {
        let least = |sides: [f64; 3]| sides.into_iter().fold(f64::INFINITY, f64::min);
        let pairs = [(); 3].map(|()| {
            self.turns_to_console();
            let reached = console(self);
            self.turns_to_bare();
            (reached, bare(self))
        });
        self.marks.push(Mark {
            what,
            reached: least(pairs.map(|(reached, _)| reached)),
            bare: Some(least(pairs.map(|(_, bare)| bare))),
            bound,
            unit,
        });
    }

    fn notes(&mut self, (what, unit): (&'static str, &'static str), reached: f64, bound: f64) {
        self.marks.push(Mark {
            what,
            reached,
            bare: None,
            bound,
            unit,
        });
    }

    /// Milliseconds until something is there that an act brings.
    fn until(&mut self, act: &str, selector: &str) -> f64 {
        let told = self.page.value(&format!(
            "new Promise((done) => {{
                setTimeout(() => done(-1), 30000);
                const from = performance.now();
                const look = () => document.querySelector({0}) && requestAnimationFrame(() => done(performance.now() - from));
                new MutationObserver(look).observe(document, {{ subtree: true, childList: true, attributes: true }});
                {act};
            }})",
            json!(selector)
        ));
        let took = told.as_f64().unwrap();
        assert!(took > 0.0, "{selector}");
        took
    }

    /// The least memory that the page has after it was cleaned, in MB.
    fn heap(&mut self) -> f64 {
        self.page.call("HeapProfiler.collectGarbage", json!({}));
        let used = self.page.call("Runtime.getHeapUsage", json!({}));
        used["usedSize"].as_f64().unwrap() / 1e6
    }

    /// From the start of the page to the first session.
    fn starts(&mut self) {
        let first = |bench: &mut Self| {
            bench.page.call("Network.clearBrowserCache", json!({}));
            bench.page.reloads();
            bench.page.wait("window.first.row");
            bench.page.value("first.row").as_f64().unwrap()
        };
        let server = self.server.clone();
        self.turns_to_bare();
        let hash = format!(
            "location.hash = {0}.split(' ').map(encodeURIComponent).join('&')",
            json!(server)
        );
        self.page.value(&hash);
        self.compares(
            (
                "the console is there: from its address to the first row",
                "ms",
            ),
            3.0,
            first,
            first,
        );
    }

    /// From the list to the first rows of a session of 10,000 interactions.
    fn opens(&mut self) {
        let session = self.session.clone();
        let (of, rows) = (
            session.clone(),
            format!("/v1/sessions/{session}/story?last=true&limit=200&chars=1200"),
        );
        self.compares(
            ("the session of 10,000 interactions: from the list to its first rows", "ms"),
            3.0,
            |bench| {
                bench.page.value("location.hash = '#/'");
                bench.page.wait("document.querySelector('.row.session')");
                bench.until(&format!("location.hash = '#/s/{of}'"), ".story-row")
            },
            |bench| {
                bench.page.value("shows([])");
                let act = format!("Promise.all([get('/v1/sessions/{of}'), get({})]).then(([, part]) => shows(part.items))", json!(rows));
                bench.until(&act, ".row")
            },
        );
        self.turns_to_console();
        let sent = self.page.value("performance.clearResourceTimings(), 0");
        assert_eq!(sent, json!(0));
        self.page.reloads();
        self.page.wait("document.querySelector('.story-row')");
        let sent = self.page.value("performance.getEntriesByType('resource').reduce((all, one) => all + one.transferSize, 0)");
        self.notes(
            ("sent for that, the console's files included", "KB"),
            sent.as_f64().unwrap() / 1e3,
            1_000.0,
        );
    }

    /// Scrolling the session from its end to its beginning, of which the console loads 200 rows at a time.
    fn scrolls(&mut self) {
        let session = self.session.clone();
        self.turns_to_bare();
        self.page.value(&format!(
            "(async () => {{
                const all = [];
                let [from, part] = [1, null];
                do {{
                    part = await get(`/v1/sessions/{session}/story?from=${{from}}&limit=200&chars=1200`);
                    all.push(...part.items);
                    from = part.next;
                }} while (part.next !== null);
                shows(all);
                return all.length;
            }})()"
        ));
        let (of, back) = (format!("'#/s/{session}'"), "'#/'");
        self.compares(
            ("scrolling all of it: the slowest of 20 frames", "ms"),
            1.5,
            |bench| {
                bench.page.value(&format!("location.hash = {back}"));
                bench.page.wait("document.querySelector('.row.session')");
                bench.page.value(&format!("location.hash = {of}"));
                bench.page.wait("document.querySelector('.story-row')");
                quantile(
                    &bench.page.value(&SCROLLS.replace("SELECTOR", "'.rows'")),
                    0.95,
                )
            },
            |bench| {
                quantile(
                    &bench.page.value(&SCROLLS.replace("SELECTOR", "'#list'")),
                    0.95,
                )
            },
        );
        self.turns_to_console();
        // Rows further up may still be on their way.
        self.page.wait("(document.querySelector('.rows').scrollTop = 0, document.querySelector('.story-row .line').textContent === '1')");
        // An address leads to a line that is far up, and was not read.
        self.page.reloads();
        self.page
            .value(&format!("location.hash = '#/s/{session}?at=7'"));
        self.page.sees(".row.active .line", "7");
        self.page.wait("document.querySelector('.pane .buttons')");
    }

    /// Painting all entries of the map at once.
    fn paints(&mut self) {
        let map = asks(
            &self.served,
            Method::GET,
            &format!("/v1/sessions/{}/map", self.session),
            None,
        );
        let entries = map["lines"].as_array().unwrap().len();
        assert!(entries > 10_000, "{entries}");
        let paints = PAINTS.replace("MAP", &map.to_string());
        self.turns_to_console();
        let bars = self.page.value(&paints)[1].to_string();
        let rectangles = RECTANGLES.replace("BARS", &bars);
        self.compares(
            ("painting all entries of its map", "ms"),
            2.0,
            |bench| quantile(&bench.page.value(&paints)[0], 0.5),
            |bench| quantile(&bench.page.value(&rectangles), 0.5),
        );
    }

    /// The context of the last call of the other session, and what is new in it.
    fn contexts(&mut self) {
        let of = self.long.clone();
        let all = asks(
            &self.served,
            Method::GET,
            &format!("/v1/sessions/{of}/contexts"),
            None,
        );
        let items = all["items"].as_array().unwrap();
        let [before, last] = [items.len() - 2, items.len() - 1]
            .map(|n| items[n]["effect"].as_str().unwrap().to_owned());
        let place = |effect: &str, show: &str| {
            format!("get('/v1/sessions/{of}/contexts/{effect}?show={show}')")
        };
        let parts = [
            place(&last, "whole"),
            place(&last, "why"),
            place(&last, "diff"),
            place(&before, "whole"),
        ]
        .join(", ");
        let act = format!(
            "Promise.all([{parts}]).then(([whole]) => blocks(whole.segments.map((one) => one.content)))"
        );
        let whole = format!("/v1/sessions/{of}/contexts/{last}?show=whole");
        let whole = asks(&self.served, Method::GET, &whole, None);
        let segments = whole["segments"].as_array().unwrap().len();
        assert!(segments > 2 * SEGMENTS, "{segments}");
        let count = format!("document.querySelectorAll('.segment').length === {segments}");
        self.compares(
            (
                "a context of 1 MiB in 400 segments, and what is new in it",
                "ms",
            ),
            3.0,
            |bench| {
                bench.page.value(&format!("location.hash = '#/s/{of}'"));
                bench.page.wait("document.querySelector('.story-row')");
                let act = format!("location.hash = '#/s/{of}/contexts/{last}'");
                let took = bench.until(&act, ".segment.new, .segment.part");
                bench.page.wait(&count);
                took
            },
            |bench| {
                bench.page.value("blocks([]), 0");
                bench.until(&act, ".block")
            },
        );
    }

    /// Elements on the screens of the long session.
    fn elements(&mut self) {
        let of = self.session.clone();
        self.turns_to_console();
        let mut most = 0.0_f64;
        for (part, selector) in [
            ("", ".story-row"),
            ("/map?view=map", ".lanes canvas"),
            ("/map?view=outline", ".entry"),
            ("/contexts", ".calls-table tbody tr"),
            ("/effects", ".effects .standing"),
            ("/state", ".state code"),
            ("/branches", ".branches a"),
        ] {
            self.page
                .value(&format!("location.hash = '#/s/{of}{part}'"));
            self.page
                .wait(&format!("document.querySelector({})", json!(selector)));
            let count = self.page.value("document.querySelectorAll('*').length");
            most = most.max(count.as_f64().unwrap());
        }
        self.notes(("elements on any of its screens", ""), most, 2_500.0);
    }

    /// A turn of 5,000 interactions is followed.
    fn follows(&mut self) {
        let of = self.session.clone();
        self.turns_to_console();
        self.page.value(&format!("location.hash = '#/s/{of}'"));
        self.page
            .wait("document.querySelector('.story-row') && document.querySelector('.live.is')");
        let before = self.heap();
        self.page.value(
            "window.longest = 0;
             new PerformanceObserver((list) => { for (const one of list.getEntries()) longest = Math.max(longest, one.duration); }).observe({ type: 'longtask' }), 0",
        );
        let begun = Instant::now();
        let say = json!({ "text": "Once more." });
        asks(
            &self.served,
            Method::POST,
            &format!("/v1/sessions/{of}/messages"),
            Some(&say),
        );
        let told = format!("Turn {} is over.", TURNS.len() - 1);
        for _ in 0..8 {
            let found = self.page.value(&format!(
                "new Promise((done) => {{
                    setTimeout(() => done(false), 25000);
                    const look = () => document.querySelector('.rows')?.textContent.includes({0}) && done(true);
                    new MutationObserver(look).observe(document, {{ subtree: true, childList: true, characterData: true }});
                    look();
                }})",
                json!(told)
            ));
            if found == true {
                break;
            }
        }
        self.page.sees(".story-row.said .clamp", &told);
        let seconds = begun.elapsed().as_secs_f64();
        let longest = self.page.value("longest").as_f64().unwrap();
        let after = self.heap();
        let events = (TURNS[1] * (2 * CALLS + 1)) as f64;
        assert!(events / seconds > 100.0, "{events} events in {seconds} s");
        self.notes(
            (
                "5,000 events that come while it is followed: the longest task",
                "ms",
            ),
            longest,
            250.0,
        );
        self.notes(("memory that they leave", "MB"), after - before, 60.0);
    }

    /// The figures as a table.
    fn table(&self) -> String {
        let mut text = String::from(
            "| mark | reached | bare page | compared | bound |\n|---|---:|---:|---:|---:|\n",
        );
        for mark in &self.marks {
            let bare = mark
                .bare
                .map_or(String::new(), |bare| format!("{bare:.1} {}", mark.unit));
            let share = mark
                .bare
                .map_or(String::new(), |_| format!("{:.2}", mark.share()));
            let bound = if mark.bare.is_some() { "x" } else { mark.unit };
            writeln!(
                text,
                "| {} | {:.1} {} | {bare} | {share} | {} {bound} |",
                mark.what, mark.reached, mark.unit, mark.bound
            )
            .unwrap();
        }
        text
    }
}

/// Other programs take frames from one page and none from the other, so this has the computer for itself.
mod alone {
    use super::*;

    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn the_console_is_as_fast_as_what_it_shows_allows() {
        provider();
        let world = World::new();
        let mut bench = Bench::open(&world);
        bench.starts();
        bench.opens();
        bench.scrolls();
        bench.paints();
        bench.contexts();
        bench.elements();
        bench.follows();
        let table = bench.table();
        println!("{table}");
        if let Ok(file) = std::env::var("STEERSMAN_MARKS") {
            std::fs::write(file, &table).unwrap();
        }
        let missed = bench.marks.iter().filter(|mark| mark.share() > mark.bound);
        let missed: Vec<&str> = missed.map(|mark| mark.what).collect();
        assert_eq!(missed, Vec::<&str>::new(), "{table}");
    }
}
