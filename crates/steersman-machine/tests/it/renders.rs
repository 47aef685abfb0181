//! Parts of a conversation in the form that `context.render` gives them.

use super::context::{DEFINITION, ask, exchange, full, print, step, valid};
use arbtest::arbtest;
use steersman_machine::context::{Content, Origin, RenderCache, explain};
use steersman_machine::stored::by::By;
use steersman_machine::stored::ids::Id;
use steersman_machine::stored::interaction::{End, Origin as From};
use steersman_testkit::log::Log;

/// The definition of the other tests, with a template for each kind of part.
fn definition() -> String {
    let render = r#"keep_exchanges: 4, render: {
      user: "{{ message.from }} ({{ state.note }}): {{ message.text }}",
      engine: "Note well: {{ message.text }}",
      assistant: "{{ message.text }} [{{ message.from }}]",
      call: "I call {{ tool }}: {{ args.n | default(0) }}.",
      result: "{{ tool }} gave {{ result }} ({{ state.other }})" }"#;
    let text = DEFINITION.replace("keep_exchanges: 4", render);
    assert_ne!(text, DEFINITION);
    text
}

/// A log in which several kinds of senders spoke.
fn talk() -> (Log, Id) {
    let mut log = Log::new(&definition());
    let desk = log.start("desk", "Look at it.");
    let (look, noted) = log.line(|l| {
        l.answer(desk, Some("I look."));
        (
            l.call(desk, "look", r#"{"what":"x","n":1}"#),
            l.call(desk, "noted", r#"{"n":3}"#),
        )
    });
    log.line(|l| l.failed(desk, noted, "http_404", "http_404: not there"));
    log.line(|l| l.result(desk, look, "a house"));
    log.line(|l| {
        let body = l.text("Answer now.");
        l.said(desk, From::Conclude, body);
    });
    log.line(|l| {
        l.answer(desk, Some("A house."));
        l.finished(desk, End::Turn);
    });
    log.line(|l| {
        let body = l.text("Is it big?");
        let by = By {
            role: "chief".into(),
            ..By::default()
        };
        l.said(desk, From::Outside(by), body);
    });
    (log, desk)
}

#[test]
fn each_kind_of_part_is_rendered_by_its_template() {
    let (mut log, desk) = talk();
    let mut cache = RenderCache::default();
    let first = ask(&log, desk, &mut cache);
    valid(&first);
    insta::assert_snapshot!(print(&first), @r#"
    System: system "You help. Note: none yet."
    Tools: tools ["look", "see", "told", "login", "helper", "reader"]
    History: user "user (none yet): Look at it."
    History: assistant "I look. [desk]\nI call look: 1.\nI call noted: 3."
    History: user "[look] look gave a house (0)\n[noted] http_404: not there"
    History: user "Note well: Answer now."
    History: assistant "A house. [desk]"
    History: user "chief (none yet): Is it big?"
    Now: user "It is 2023-11-14."
    "#);
    // Without a change nothing is rendered again: the whole request is a prefix of the next one.
    let visited = cache.visited();
    let again = ask(&log, desk, &mut cache);
    assert_eq!(
        (again.prefix, again.broke.as_deref()),
        (first.segments.bytes(), None)
    );
    assert!(cache.visited() - visited <= first.segments.len() as u64);
    log.line(|l| l.write(desk, "other", "7"));
    let other = ask(&log, desk, &mut cache);
    assert!(
        print(&other).contains("look gave a house (7)"),
        "{}",
        print(&other)
    );
    assert_eq!(other.digest, full(&log, desk).digest);
    log.line(|l| l.write(desk, "note", r#""fine""#));
    let noted = ask(&log, desk, &mut cache);
    assert!(print(&noted).contains("user (fine): Look at it."));
    assert!(
        !print(&noted).contains("user (none yet)"),
        "{}",
        print(&noted)
    );
    assert_eq!(noted.digest, full(&log, desk).digest);
}

#[test]
fn an_explanation_names_the_template_and_the_line_that_it_read() {
    let (mut log, desk) = talk();
    log.line(|l| l.write(desk, "note", r#""fine""#));
    let set = log
        .snapshot
        .cell(desk, &"note".into())
        .expect("written")
        .line;
    let explained = explain(&log.cx(), &log, &log.snapshot, desk).expect("templates render");
    let of = |text: &str| -> &Origin {
        let mut segments = explained.request.segments.iter();
        let at = segments.position(|segment| match &segment.content {
            Content::User(shown) => shown.contains(text),
            Content::Assistant { text: shown, .. } => {
                shown.as_ref().is_some_and(|shown| shown.contains(text))
            }
            _ => false,
        });
        &explained.origins[at.expect("it is shown")]
    };
    let message = of("Look at it.");
    let key = |origin: &Origin| origin.template.clone().unwrap_or_default();
    assert_eq!(key(message), "agents.desk.context.render.user");
    let read: Vec<_> = message
        .reads
        .iter()
        .map(|read| (&*read.path, read.written))
        .collect();
    assert_eq!(read, [("state.note", Some(set))]);
    assert_eq!(key(of("Answer now.")), "agents.desk.context.render.engine");
    assert_eq!(key(of("A house.")), "agents.desk.context.render.assistant");
}

/// A provider wants the reasoning back that led to a call. Reasoning of an answer without calls belongs to its unchanged text.
#[test]
fn the_providers_own_data_stays_with_calls() {
    let mut log = Log::new(&DEFINITION.replace(
        "keep_exchanges: 4",
        r#"keep_exchanges: 4, render: { assistant: "{{ message.text | upper }}" }"#,
    ));
    let desk = log.start("desk", "Look.");
    let look = log.line(|l| {
        l.thought(desk, Some("I look."), Some(r#"{"signed":1}"#), false);
        l.call(desk, "look", r#"{"what":"x"}"#)
    });
    log.line(|l| l.result(desk, look, "a house"));
    log.line(|l| {
        l.thought(desk, Some("A house."), Some(r#"{"signed":2}"#), false);
        l.finished(desk, End::Turn);
    });
    log.line(|l| {
        l.thought(desk, Some("DONE."), Some(r#"{"signed":3}"#), false);
        l.finished(desk, End::Turn);
    });
    let request = full(&log, desk);
    valid(&request);
    let answers = request
        .segments
        .iter()
        .filter_map(|segment| match &segment.content {
            Content::Assistant { text, opaque, .. } => Some((text.as_deref()?, opaque.as_deref())),
            _ => None,
        });
    let answers: Vec<_> = answers.collect();
    assert_eq!(
        answers,
        [
            ("I LOOK.", Some(r#"{"signed":1}"#)),
            ("A HOUSE.", None),
            ("DONE.", Some(r#"{"signed":3}"#)),
        ]
    );
}

/// A message that is being answered stays after its exchanges have left, and follows the state there, too.
#[test]
fn a_message_before_the_boundary_follows_the_state() {
    let mut log = Log::new(&definition());
    let desk = log.start("desk", "Do many things.");
    let mut cache = RenderCache::default();
    for n in 0..12 {
        exchange(&mut log, desk, n);
        ask(&log, desk, &mut cache);
    }
    let is_first = |text: &str| text.contains("user \"user (none yet): Do many things.\"");
    assert!(is_first(&print(&ask(&log, desk, &mut cache))));
    log.line(|l| l.write(desk, "note", r#""late""#));
    let request = ask(&log, desk, &mut cache);
    let shown = print(&request);
    assert!(
        shown.contains("user \"user (late): Do many things.\"") && !is_first(&shown),
        "{shown}"
    );
    assert_eq!(request.digest, full(&log, desk).digest);
}

#[test]
fn incremental_equals_full_with_templates() {
    let definition = definition();
    arbtest(|u| {
        let mut log = Log::new(&definition);
        let desk = log.start("desk", "Begin.");
        let mut cache = RenderCache::default();
        let mut saved = vec![log.snapshot.clone()];
        let mut open: Vec<(Id, bool)> = Vec::new();
        for _ in 0..u.int_in_range(1..=40)? {
            step(u, &mut log, desk, &mut open, &mut saved)?;
            if u.ratio(3, 4)? {
                let (warm, cold) = (ask(&log, desk, &mut cache), full(&log, desk));
                valid(&cold);
                assert_eq!(print(&warm), print(&cold));
                assert_eq!((warm.digest, warm.segments), (cold.digest, cold.segments));
            }
        }
        Ok(())
    })
    .budget_ms(1_000);
}
