//! Events in, messages out; and the law: what is told live equals what is told later, without the streamed pieces.

use super::a2a::{Form as TaskForm, State, Task};
use super::chat::{Chat, Form as ChatForm, Functions};
use super::mcp::{Call, Form as CallForm, Progress};
use super::responses::{Form, Responses};
use super::turn::{End, Speakers, Turn};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman::machine::stored::ids::{Id, Line, Time};
use steersman::runtime::session::Settled;
use steersman::{Called, Event, EventKind, How, Network};

pub(super) const LINE: Line = Line(3);

pub(super) fn id(text: &str) -> Id {
    text.parse().unwrap()
}

pub(super) fn event(cursor: &str, kind: EventKind) -> Event {
    let cursor: steersman::Cursor = cursor.parse().unwrap();
    Event {
        cursor,
        line: Some(cursor.line()),
        at: Some(Time(7_000)),
        branch: Id::MAIN,
        agent: Some("desk".into()),
        agent_id: Some(id("1.0")),
        kind,
    }
}

pub(super) fn piece(kind: EventKind) -> Event {
    Event {
        line: None,
        at: None,
        ..event("3.2", kind)
    }
}

pub(super) fn accepted(message: &str) -> EventKind {
    EventKind::Accepted {
        message: message.into(),
        by: None,
        who: None,
        parent: None,
    }
}

pub(super) fn said(effect: &str, text: &str) -> EventKind {
    EventKind::Said {
        effect: id(effect),
        text: text.into(),
        partial: false,
    }
}

/// A turn: the agent says something, calls a tool, answers, and rests.
pub(super) fn events() -> Vec<Event> {
    let heard = EventKind::Heard {
        by: None,
        who: None,
        text: "Hello.".into(),
        parts: Vec::new(),
    };
    let used = EventKind::Used {
        effect: Some(id("3.0")),
        model: None,
        served: None,
        input: 10,
        cached: 4,
        cache_write: 0,
        output: 5,
        reasoning: 1,
        micros: None,
        prefix: 0,
        broke: None,
        finish: None,
        took: 1,
        first: None,
    };
    let called = EventKind::Called {
        call: id("4.1"),
        name: "look".into(),
        target: Called::Tool,
        arguments: json!({ "at": "kettle" }),
    };
    let ended = EventKind::Ended {
        call: id("4.1"),
        name: "look".into(),
        how: How::Done,
        code: None,
        text: "hot".into(),
        parts: Vec::new(),
        by: None,
        who: None,
    };
    let finished = EventKind::Finished {
        task: false,
        ok: true,
        code: None,
        text: "It boils.".into(),
    };
    let mut all = vec![
        event("2.1", said("1.1", "Before.")),
        event("3.1", accepted("openai/1")),
        event("3.2", heard),
        event("4.1", used),
        event("4.2", said("3.0", "I look.")),
        event("4.3", called),
        event("5.1", ended),
        event("6.1", said("5.0", "It boils.")),
        event("6.2", finished),
    ];
    let answered = Settled::Answered {
        before: Vec::new(),
        text: "It boils.".into(),
        task: false,
    };
    let settled = steersman::Turn::from(&answered);
    all.push(piece(EventKind::Settled(settled)));
    all
}

/// The same events with streamed pieces ahead of each text, cut at this byte, after `void` attempts that are taken back.
pub(super) fn streamed(cut: usize, void: u32) -> Vec<Event> {
    let mut live = Vec::new();
    for event in events() {
        if let (EventKind::Said { effect, text, .. }, true) =
            (&event.kind, event.line >= Some(LINE))
        {
            let effect = *effect;
            let of = |attempt, text: &str| {
                piece(EventKind::Piece {
                    effect,
                    attempt,
                    text: text.to_owned(),
                })
            };
            for attempt in 1..=void {
                live.push(of(attempt, "Perhaps "));
                live.push(piece(EventKind::Withdrawn { effect, attempt }));
            }
            let (head, tail) = text.split_at(cut.min(text.len()));
            live.extend(
                [head, tail]
                    .iter()
                    .filter(|text| !text.is_empty())
                    .map(|text| of(void + 1, text)),
            );
        }
        live.push(event);
    }
    live
}

fn turn() -> Turn {
    let network = Network::from_yaml("agents: { desk: { system: You answer. } }")
        .build()
        .unwrap();
    Turn::new(LINE, Speakers::of(network.checked(), id("1.0")))
}

fn chat() -> Chat {
    let form = ChatForm {
        session: "s".into(),
        id: "chatcmpl-s-3".to_owned(),
        model: "desk".to_owned(),
        functions: Functions::default(),
        roles: Vec::new(),
        page: None,
        usage: true,
    };
    Chat::new(form, turn())
}

fn response() -> Responses {
    let form = Form {
        session: "s".into(),
        line: LINE,
        model: "desk".to_owned(),
        definition: "desk".into(),
        roles: Vec::new(),
        page: None,
    };
    Responses::new(form, turn())
}

fn call() -> Call {
    let form = CallForm {
        session: "s".into(),
        roles: Vec::new(),
        page: None,
    };
    Call::new(form, turn())
}

fn content(chunks: &[Json]) -> String {
    let deltas = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str());
    deltas.collect()
}

#[test]
fn a_chat_tells_a_turn() {
    let mut chat = chat();
    let chunks: Vec<Json> = events()
        .iter()
        .flat_map(|event| chat.event(event))
        .collect();
    assert_eq!(
        chunks[0]["choices"][0]["delta"],
        json!({ "role": "assistant", "content": "" })
    );
    assert_eq!(content(&chunks), "I look.\n\nIt boils.");
    let [.., end, usage] = &chunks[..] else {
        panic!("{chunks:#?}")
    };
    assert_eq!(end["choices"][0]["finish_reason"], "stop");
    assert_eq!(usage["usage"]["prompt_tokens_details"]["cached_tokens"], 4);
    let whole = chat.completion().unwrap();
    assert_eq!(
        whole["choices"][0]["message"]["content"],
        "I look.\n\nIt boils."
    );
    assert_eq!(
        (&whole["usage"], &whole["created"]),
        (&usage["usage"], &json!(7))
    );
}

#[test]
fn what_is_told_live_is_what_is_told_later() {
    let (mut later, mut later_response) = (chat(), response());
    let mut numbered = Vec::new();
    for event in &events() {
        later.event(event);
        numbered.extend(later_response.event(event));
    }
    let text = later.text().to_owned();
    for void in 0..3 {
        for cut in 0..=9 {
            let (mut chat, mut response) = (chat(), response());
            let (mut chunks, mut messages) = (Vec::new(), Vec::new());
            for event in &streamed(cut, void) {
                chunks.extend(chat.event(event));
                messages.extend(response.event(event));
            }
            assert_eq!(content(&chunks), chat.text());
            if void == 0 {
                assert_eq!(chat.text(), text, "cut {cut}");
                assert_eq!(chat.completion(), later.completion());
            } else {
                // The client has seen what was taken back; a blank line and the text follow.
                assert_eq!(chat.text().replace("Perhaps \n\n", ""), text, "cut {cut}");
            }
            assert_eq!(
                response.document(),
                later_response.document(),
                "cut {cut}, void {void}"
            );
            // Each message that completes something has the same number.
            let done = |messages: &[Json]| -> Vec<(String, u64)> {
                let kinds = messages.iter().map(|message| {
                    let kind = message["type"].as_str().unwrap().to_owned();
                    (kind, message["sequence_number"].as_u64().unwrap())
                });
                let begins = |kind: &str| {
                    let (_, end) = kind.rsplit_once('.').unwrap_or_default();
                    matches!(end, "added" | "delta")
                };
                kinds.filter(|(kind, _)| !begins(kind)).collect()
            };
            assert_eq!(done(&messages), done(&numbered), "cut {cut}, void {void}");
            let numbers = messages
                .iter()
                .map(|message| message["sequence_number"].as_u64().unwrap());
            assert!(numbers.is_sorted_by(|a, b| a < b), "{messages:#?}");
        }
    }
}

fn owner() -> EventKind {
    EventKind::Owner {
        epoch: 2,
        owner: "other".into(),
        build: "1".into(),
    }
}

#[test]
fn a_turn_that_goes_on_ends_after_something_happened() {
    let mut turn = turn();
    for event in &events() {
        turn.event(event);
    }
    let (settled, ended) = (events().pop().unwrap(), turn.end.clone());
    turn.goes_on();
    for event in [&settled, &event("7.1", owner()), &settled] {
        turn.event(event);
        assert_eq!(turn.end, None, "{event:?}");
    }
    turn.event(&event("8.1", said("7.0", "More.")));
    turn.event(&settled);
    assert_eq!(turn.end, ended);
}

#[test]
fn a_turn_ends_where_the_next_message_is_taken() {
    let mut all = events();
    all.pop();
    all.push(event("7.1", owner()));
    all.push(event("7.2", accepted("openai/2")));
    all.push(event("7.3", said("7.0", "Not of this turn.")));
    let mut response = response();
    for event in &all {
        response.event(event);
    }
    let turn = response.turn();
    assert_eq!((&turn.end, turn.head), (&Some(End::Answered), Line(6)));
    let texts: Vec<Arc<str>> = vec!["I look.".into(), "It boils.".into()];
    assert_eq!(response.text(), texts.join("\n\n"));
    // The words of a rewind are taken after its line, and are its own.
    let mut turn = self::turn();
    let own = [
        event("3.1", accepted("openai/1")),
        event("4.1", accepted("openai/1/4.0")),
        event("4.2", said("4.0", "Mine.")),
    ];
    for event in &own {
        turn.event(event);
    }
    assert_eq!((turn.end, turn.head), (None, Line(4)));
}

#[test]
fn a_call_tells_its_progress_and_a_result() {
    let mut call = call();
    let told: Vec<Progress> = events()
        .iter()
        .flat_map(|event| call.event(event))
        .collect();
    let told: Vec<(f64, &str)> = told
        .iter()
        .map(|one| (one.progress, one.message.as_str()))
        .collect();
    let wanted = [
        (1.0, "I look."),
        (2.0, "look is called"),
        (3.0, "look: done"),
        (4.0, "It boils."),
    ];
    assert_eq!(told, wanted);
    let outcome = call.outcome();
    assert_eq!(outcome.text, "I look.\n\nIt boils.");
    assert_eq!(outcome.structured["turn"], "answered");
    assert!(!outcome.is_error);
}

#[test]
fn a_call_tells_live_what_it_tells_later_and_its_progress_grows() {
    let mut later = call();
    let told: Vec<Progress> = events()
        .iter()
        .flat_map(|event| later.event(event))
        .collect();
    for (cut, void) in (0..=9).flat_map(|cut| [(cut, 0), (cut, 2)]) {
        let mut call = call();
        let mut live = Vec::new();
        for event in &streamed(cut, void) {
            live.extend(call.event(event));
            if event.line >= Some(LINE) {
                // A tool reports more often than anybody can tell apart.
                for n in 0..60 {
                    live.extend(call.event(&piece(EventKind::Progress {
                        effect: id("4.1"),
                        done: f64::from(n),
                        total: None,
                        message: Some("still looking".to_owned()),
                    })));
                }
            }
        }
        assert!(
            live.is_sorted_by(|a, b| a.progress < b.progress),
            "{live:#?}"
        );
        live.retain(|one| one.progress.fract() == 0.0);
        assert_eq!(live, told, "cut {cut}, void {void}");
        assert_eq!(call.outcome(), later.outcome(), "cut {cut}, void {void}");
    }
}

#[test]
fn a_call_that_ended_early_says_so() {
    let mut call = call();
    for event in &events()[..5] {
        call.event(event);
    }
    let outcome = call.outcome();
    assert_eq!(outcome.structured["turn"], "working");
    assert!(
        outcome
            .text
            .starts_with("I look.\n\nThe session is still at work.")
    );
    assert!(!outcome.is_error && call.forms().is_empty());
}

fn task() -> Task {
    let form = TaskForm {
        session: "s".into(),
        line: LINE,
        roles: Vec::new(),
        page: None,
        at: "http://here/v1/sessions/s".to_owned(),
    };
    Task::new(form, turn())
}

/// The artifacts of a client that applies the updates of a stream, without empty ones.
fn applied(updates: &[Json]) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for update in updates {
        let update = &update["artifactUpdate"];
        let Some(id) = update["artifact"]["artifactId"].as_str() else {
            continue;
        };
        let part = &update["artifact"]["parts"][0];
        let text = part["text"].as_str().or(part["url"].as_str()).unwrap();
        let known = all.iter_mut().find(|(known, _)| known == id);
        match known {
            Some((_, so_far)) if update["append"] == true => so_far.push_str(text),
            Some((_, so_far)) => text.clone_into(so_far),
            None => {
                assert_eq!(
                    update["append"], false,
                    "nothing is there to append to: {update:#}"
                );
                all.push((id.to_owned(), text.to_owned()));
            }
        }
    }
    all.retain(|(_, text)| !text.is_empty());
    all
}

#[test]
fn a_task_tells_a_turn() {
    let mut task = task();
    assert_eq!(task.state(), State::Submitted);
    let updates: Vec<Json> = events()
        .iter()
        .flat_map(|event| task.event(event))
        .collect();
    assert_eq!(updates[0]["task"]["status"]["state"], "TASK_STATE_WORKING");
    let states = updates.iter().filter_map(|update| {
        let status = &update["statusUpdate"]["status"];
        let data = &status["message"]["parts"][0]["data"];
        status["state"]
            .as_str()
            .map(|state| (state, data["tool"].as_str(), data["ok"].as_bool()))
    });
    let wanted = [
        ("TASK_STATE_WORKING", Some("look"), None),
        ("TASK_STATE_WORKING", Some("look"), Some(true)),
        ("TASK_STATE_COMPLETED", None, None),
    ];
    assert_eq!(states.collect::<Vec<_>>(), wanted);
    let document = task.document();
    assert_eq!(
        (&document["id"], &document["contextId"]),
        (&json!("s-3"), &json!("s"))
    );
    assert_eq!(document["status"]["timestamp"], "1970-01-01T00:00:07Z");
    assert_eq!(document["metadata"]["usage"]["inputTokens"], 10);
    assert_eq!(document["artifacts"][1]["parts"][0]["text"], "It boils.");
}

#[test]
fn a_task_tells_live_what_it_tells_later() {
    let mut later = task();
    for event in &events() {
        later.event(event);
    }
    let artifacts = later.document()["artifacts"].clone();
    let wanted: Vec<(String, String)> = artifacts
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let text = |json: &Json| json.as_str().unwrap().to_owned();
            (text(&one["artifactId"]), text(&one["parts"][0]["text"]))
        })
        .collect();
    for (cut, void) in (0..=9).flat_map(|cut| [(cut, 0), (cut, 1), (cut, 2)]) {
        let mut task = task();
        let updates: Vec<Json> = streamed(cut, void)
            .iter()
            .flat_map(|event| task.event(event))
            .collect();
        assert_eq!(applied(&updates), wanted, "cut {cut}, void {void}");
        assert_eq!(task.document(), later.document(), "cut {cut}, void {void}");
    }
}
