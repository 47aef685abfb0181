//! Files that come with messages, in the requests of models that take them.

use crate::context::print;
use std::sync::Arc;
use steersman_machine::context::{Content, RenderCache, Request, explain, for_model, request};
use steersman_machine::network::{FileKind, Network};
use steersman_machine::stored::bounds::SHOWN_FILES;
use steersman_machine::stored::ids::{Body, Id};
use steersman_machine::stored::outcome::NewArtifact;
use steersman_testkit::log::{Log, network};
use steersman_testkit::world::World;

const MAIN: Id = Id::MAIN;

const DESK: &str = r#"
models:
  default: { provider: scripted, takes: [image, pdf] }
  plain: scripted
  told: { provider: scripted, takes: { kinds: [], instead: "({{ name }}: {{ media }}, {{ bytes }})" } }
  pictures: { provider: scripted, takes: { kinds: image, largest: 16MiB, instead: "No {{ media }} here." } }
agents:
  desk: { system: You help. }
"#;

/// A file of this size.
fn file(name: &str, media: &str, len: u64) -> NewArtifact {
    NewArtifact {
        name: name.to_owned(),
        media: media.to_owned(),
        hash: [7; 32],
        len,
        content: None,
    }
}

fn photo() -> NewArtifact {
    file("photo.png", "image/png", 1_200)
}

fn terms() -> NewArtifact {
    file("terms.pdf", "application/pdf", 96_000)
}

fn note() -> NewArtifact {
    file("note.txt", "text/plain", 22)
}

/// The definition, with another model for its agent.
fn with_model(model: &str) -> Arc<Network> {
    let definition = DESK.replace("You help.", &format!("You help., model: {model}"));
    Arc::new(network(&definition))
}

/// A session whose second message brought these files.
fn world(network: Arc<Network>, came: &[NewArtifact]) -> World {
    let mut world = World::new(network);
    world.start(None, Some("Hello.")).expect("it begins");
    world.thinks(MAIN, "desk", "Hi.", &[]).expect("it answers");
    world.bring(MAIN, "What is this?", came).expect("it hears");
    world
}

/// The request of an agent, which a cache does not change.
fn asked(world: &World, agent: &str, cache: &mut RenderCache) -> Request {
    let id = world.agent(MAIN, agent).expect("it began");
    let of = |cache: &mut RenderCache| {
        let request = request(&world.cx(), world, world.at(MAIN), id, cache);
        request.expect("templates render")
    };
    let (warm, fresh) = (of(cache), of(&mut RenderCache::default()));
    assert_eq!(
        warm.digest,
        fresh.digest,
        "{}\n{}",
        print(&warm),
        print(&fresh)
    );
    warm
}

fn of_desk(world: &World) -> Request {
    asked(world, "desk", &mut RenderCache::default())
}

const ATTACHED: &str = "What is this?\\n[Attached: `note.txt` (text/plain, 22 bytes), `photo.png` (image/png, 1200 bytes), `terms.pdf` (application/pdf, 96000 bytes)]";

fn all() -> [NewArtifact; 3] {
    [note(), photo(), terms()]
}

#[test]
fn a_file_follows_its_message_and_counts_by_its_kind() {
    let mut world = world(with_model("default"), &all());
    let mut cache = RenderCache::default();
    let first = asked(&world, "desk", &mut cache);
    let files =
        "History: file photo.png image/png 1200\nHistory: file terms.pdf application/pdf 96000\n";
    let shown = print(&first);
    assert!(
        shown.ends_with(&format!("History: user \"{ATTACHED}\"\n{files}")),
        "{shown}"
    );
    let segments = &first.segments;
    assert_eq!(segments.file_bytes(), 97_200);
    assert_eq!(segments.file_tokens(), 1_600 + 3_000);
    assert_eq!(
        FileKind::Pdf.tokens(1),
        1_600,
        "as much as an image at least"
    );
    // The content is no part of what the digests cover.
    let content: Arc<[u8]> = b"x".as_slice().into();
    let filled = first.clone().with_contents(|_| Some(content.clone()));
    assert_eq!(
        filled.segments.chain(segments.len()),
        segments.chain(segments.len())
    );
    let contents = filled.segments.files().map(|file| file.content.is_some());
    assert_eq!(contents.collect::<Vec<_>>(), [true, true]);
    // The next request begins with the same bytes.
    world.thinks(MAIN, "desk", "A cat.", &[]).unwrap();
    world.say(MAIN, "Sure?").unwrap();
    let second = asked(&world, "desk", &mut cache);
    assert_eq!(second.prefix, first.segments.bytes());
    assert_eq!(second.broke, None);
    let desk = world.agent(MAIN, "desk").unwrap();
    let explained = explain(&world.cx(), &world, world.at(MAIN), desk).unwrap();
    assert_eq!(explained.origins.len(), second.segments.len());
    let at = |wanted: &str| {
        let mut segments = second.segments.iter();
        let at =
            segments.position(|s| matches!(&s.content, Content::File(file) if file.name == wanted));
        &explained.origins[at.unwrap()]
    };
    assert_eq!(at("photo.png").lines, at("terms.pdf").lines);
    assert_eq!(at("photo.png").lines.len(), 1);
}

#[test]
fn a_model_that_takes_no_such_file_gets_what_its_definition_says() {
    let behind = |model: &str| {
        let shown = print(&of_desk(&world(with_model(model), &all())));
        let (_, behind) = shown.split_once(ATTACHED).expect("the message is the same");
        behind.trim_start_matches("\"\n").to_owned()
    };
    assert_eq!(behind("plain"), "");
    assert_eq!(
        behind("told"),
        "History: user \"(note.txt: text/plain, 22)\"\nHistory: user \"(photo.png: image/png, 1200)\"\nHistory: user \"(terms.pdf: application/pdf, 96000)\"\n"
    );
    assert_eq!(
        behind("pictures"),
        "History: user \"No text/plain here.\"\nHistory: file photo.png image/png 1200\nHistory: user \"No application/pdf here.\"\n"
    );
}

#[test]
fn a_fallback_model_gets_what_it_takes() {
    let world = world(with_model("default"), &all());
    let request = of_desk(&world);
    let desk = world.agent(MAIN, "desk").unwrap();
    let of = |model: &str| {
        let request = for_model(&world.cx(), world.at(MAIN), desk, request.clone(), model);
        let digest = request.digest;
        let behind = print(&request).split_once(ATTACHED).unwrap().1.to_owned();
        (digest, behind.trim_start_matches("\"\n").to_owned())
    };
    assert_eq!(of("plain"), (request.digest, String::new()));
    let (_, pictures) = of("pictures");
    assert_eq!(
        pictures,
        "History: file photo.png image/png 1200\nHistory: user \"No application/pdf here.\"\n"
    );
}

#[test]
fn a_file_that_is_too_large_is_told_in_a_sentence() {
    let large = file("large.png", "image/png", (3_584 << 10) + 1);
    let shown = print(&of_desk(&world(with_model("default"), &[large, photo()])));
    let told = "user \"[`large.png` is not shown: it has 3670017 bytes, and files of at most 3670016 are taken.]\"\nHistory: file photo.png";
    assert!(shown.contains(told), "{shown}");
    let own = format!(
        "texts: {{ not_shown: {{ de: \"`{{{{ name }}}}` fehlt.\" }} }}\nstate: {{ language: {{ type: string, default: de }} }}{DESK}"
    );
    let large = file("large.png", "image/png", 4 << 20);
    let shown = print(&of_desk(&world(Arc::new(network(&own)), &[large])));
    assert!(shown.contains("user \"`large.png` fehlt.\""), "{shown}");
}

#[test]
fn the_newest_files_are_shown_if_all_are_too_large_together() {
    let mut world = World::new(with_model("pictures"));
    world.start(None, Some("Hello.")).unwrap();
    let mut cache = RenderCache::default();
    let mut requests = Vec::new();
    for (name, len) in [("a.png", 9 << 20), ("b.png", 10 << 20), ("c.png", 8 << 20)] {
        world.thinks(MAIN, "desk", "Yes.", &[]).unwrap();
        world
            .bring(MAIN, "This one.", &[file(name, "image/png", len)])
            .unwrap();
        requests.push(asked(&world, "desk", &mut cache));
    }
    let names = |request: &Request| -> Vec<String> {
        let files = request.segments.files();
        files.map(|file| file.name.clone()).collect()
    };
    assert_eq!(names(&requests[1]), ["a.png", "b.png"]);
    assert_eq!(names(&requests[2]), ["b.png", "c.png"]);
    let [_, second, third] = &requests[..] else {
        panic!("three were asked for");
    };
    assert!(third.segments.file_bytes() <= SHOWN_FILES as u64);
    let shown = print(third);
    let told = "[`a.png` is not shown: newer files come first, and a request has at most 20971520 bytes of files.]";
    assert!(shown.contains(told), "{shown}");
    assert!(third.prefix < second.segments.bytes());
}

#[test]
fn a_file_is_gone_where_its_message_is() {
    let definition = DESK.replace("You help.", "You help., context: { keep_exchanges: 1 }");
    let mut world = world(Arc::new(network(&definition)), &all());
    let mut cache = RenderCache::default();
    assert_eq!(
        asked(&world, "desk", &mut cache).segments.files().count(),
        2
    );
    for _ in 0..3 {
        world.thinks(MAIN, "desk", "A cat.", &[]).unwrap();
        world.say(MAIN, "And now?").unwrap();
    }
    let request = asked(&world, "desk", &mut cache);
    assert!(!request.segments.has_files(), "{}", print(&request));
    assert!(!print(&request).contains("Attached"));
}

#[test]
fn a_mode_whose_model_takes_none_sees_none() {
    let modes = "
models: { default: { provider: scripted, takes: image }, plain: scripted }
agents:
  desk:
    modes:
      look: { system: You look., exits: [ { after_calls: 2, to: write } ] }
      write: { system: You write., model: plain }
";
    let mut world = world(Arc::new(network(modes)), &[photo()]);
    let mut cache = RenderCache::default();
    let of = |world: &World, cache: &mut RenderCache| {
        let request = asked(world, "desk", cache);
        (request.model.to_string(), request.segments.files().count())
    };
    assert_eq!(of(&world, &mut cache), ("default".to_owned(), 1));
    world.thinks(MAIN, "desk", "A cat.", &[]).unwrap();
    world.bring(MAIN, "And this?", &[photo()]).unwrap();
    assert_eq!(of(&world, &mut cache), ("plain".to_owned(), 0));
}

#[test]
fn members_of_a_route_see_the_files_of_the_messages_that_they_are_given() {
    for view in ["own", "shared"] {
        let definition = format!(
            "models: {{ default: {{ provider: scripted, takes: image }} }}\nagents:\n  line: {{ route: {{ sequence: [first, second] }} }}\n  first: {{ description: Reads., system: You read., view: {view} }}\n  second: {{ description: Answers., system: You answer., view: {view} }}\nentry: line\n"
        );
        let mut world = World::new(Arc::new(network(&definition)));
        world.start(None, Some("Hello.")).unwrap();
        for member in ["first", "second"] {
            assert!(
                !asked(&world, member, &mut RenderCache::default())
                    .segments
                    .has_files()
            );
            world.thinks(MAIN, member, "Hi.", &[]).unwrap();
        }
        world.bring(MAIN, "What is this?", &[photo()]).unwrap();
        for member in ["first", "second"] {
            let request = asked(&world, member, &mut RenderCache::default());
            assert_eq!(
                request.segments.files().count(),
                1,
                "{view} {member}: {}",
                print(&request)
            );
            world.thinks(MAIN, member, "A cat.", &[]).unwrap();
        }
    }
}

#[test]
fn what_came_with_an_erased_text_is_not_shown() {
    let mut log = Log::new(DESK);
    let desk = log.start("desk", "Hello.");
    let mut body = None;
    log.line(|l| {
        let said = l.say(
            desk,
            "What is this?\n[Attached: `photo.png` (image/png, 1200 bytes)]",
        );
        l.came(desk, said, &photo());
        // The same content under the same name is one file.
        l.came(desk, said, &photo());
        body = Some(said);
    });
    let shown = |log: &Log| print(&crate::context::full(log, desk));
    assert!(shown(&log).ends_with("bytes)]\"\nHistory: file photo.png image/png 1200\n"));
    let body: Body = body.unwrap();
    log.erase(body);
    assert!(
        shown(&log).ends_with("History: user \"[erased]\"\n"),
        "{}",
        shown(&log)
    );
}
