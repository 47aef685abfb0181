//! The pictures of the console in the documents, made in Chromium (`scripts/chromium.sh`) from the sessions of `demo --ui`. `UPDATE=1` writes
//! them again.

use crate::browser::Browser;
use crate::served::provider;
use crate::world::{self, World};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// The share of pixels that may differ: a picture shows times and random ids.
const MAY_DIFFER: f64 = 0.03;

/// Returns the share of pixels that differ between two pictures; 1 if they have not the same size.
const DIFFERS: &str = "(async () => {
    const drawn = async (data) => {
        const image = new Image();
        image.src = `data:image/png;base64,${data}`;
        await image.decode();
        const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d');
        canvas.drawImage(image, 0, 0);
        return canvas.getImageData(0, 0, image.width, image.height);
    };
    const [a, b] = await Promise.all([drawn(A), drawn(B)]);
    if (a.width !== b.width || a.height !== b.height) return 1;
    let other = 0;
    for (let at = 0; at < a.data.length; at += 4) {
        const far = [0, 1, 2].reduce((sum, k) => sum + Math.abs(a.data[at + k] - b.data[at + k]), 0);
        if (far > 96) other += 1;
    }
    return other / (a.width * a.height);
})()";

/// The name of a picture, its theme, the screen, what is there when it is ready, and what to click on then. A screen without `#` is one of the
/// session that went on in several ways.
const PICTURES: [(&str, &str, &str, &str, &str); 5] = [
    ("console-story", "light", "", ".story-row .clamp", ""),
    ("console-contexts", "light", "/contexts", ".segment", ""),
    ("console-map", "dark", "/map", ".lanes canvas", ""),
    ("console-inbox", "light", "#/inbox", ".card.doubt", ""),
    ("console-graph", "dark", "/graph", ".picture img", ""),
];

mod chromium {
    use super::*;

    #[test]
    #[ignore = "needs Chromium: STEERSMAN_CHROMIUM=$(scripts/chromium.sh)"]
    fn the_documents_show_the_console_as_it_is() {
        provider();
        let world = World::new();
        let mut command = world.command(&["demo", "--ui", "--print"]);
        let command = command.env("TMPDIR", &world.folder);
        let demo = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut demo = demo.spawn().unwrap();
        let mut url = String::new();
        let mut told = BufReader::new(demo.stdout.take().unwrap());
        told.read_line(&mut url).unwrap();
        let mut page = Browser::chromium(&world);
        page.goes_to(url.trim());
        page.wait("document.querySelectorAll('.row.session').length === 8");
        // The oldest one.
        let session =
            page.value("[...document.querySelectorAll('.row.session')].at(-1).dataset.key");
        let session = session.as_str().unwrap();
        let pictures = PICTURES.map(|(name, theme, screen, ready, click)| {
            page.looks((1280, 760), theme);
            let route = match screen.strip_prefix('#') {
                Some(_) => screen.to_owned(),
                None => format!("#/s/{session}{screen}"),
            };
            page.value(&format!("location.hash = {}", json!(route)));
            page.wait(&format!("document.querySelector({})", json!(ready)));
            if !click.is_empty() {
                page.value(&format!("document.querySelector({}).click()", json!(click)));
            }
            page.wait("!document.querySelector('.bars')");
            page.value(
                "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))",
            );
            (name, page.picture())
        });
        demo.kill().unwrap();
        demo.wait().unwrap();
        assert_eq!(page.faults, Vec::<String>::new());
        page.opens_tab("about:blank");
        let folder = world::root().join("docs/pictures");
        let mut stale = Vec::new();
        for (name, now) in pictures {
            let file = folder.join(format!("{name}.png"));
            if std::env::var_os("UPDATE").is_some() {
                std::fs::write(&file, &now).unwrap();
            }
            let before = STANDARD.encode(std::fs::read(&file).unwrap_or_default());
            let differs = DIFFERS.replace("drawn(A)", &format!("drawn({})", json!(before)));
            let differs = differs.replace(
                "drawn(B)",
                &format!("drawn({})", json!(STANDARD.encode(&now))),
            );
            let differs = page.value(&differs).as_f64().unwrap_or(1.0);
            if differs > MAY_DIFFER {
                stale.push(format!("{} ({:.1} %)", file.display(), differs * 100.0));
            }
        }
        assert_eq!(
            stale,
            Vec::<String>::new(),
            "UPDATE=1 makes them again; look at them"
        );
    }
}
