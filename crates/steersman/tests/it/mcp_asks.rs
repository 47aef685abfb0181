//! Questions that an MCP server asks a person while its tool runs: the session asks them, answers them, and survives the death of its
//! process in the middle of one.

use crate::mcp::{Folder, answer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use steersman::machine::stored::commit::{LedgerEntry, Release, Why};
use steersman::machine::stored::ids::{Line, Time};
use steersman::runtime::clock::{Clock, System, Virtual};
use steersman::runtime::pending::{Pending, PendingKind};
use steersman::runtime::store::Store;
use steersman::runtime::store::memory::MemoryStore;
use steersman::{Act, By, CancelWhat, Error, Question, Resolution, Session, Steersman, Turn};

/// A definition with one tool of the server, of this class. `greets`: how the server greets.
fn definition(tool: &str, class: &str, greets: &str) -> String {
    format!(
        "name: helper\nmcp:\n  s: {{ command: [sh, server.sh, diary, {greets}], effect: {class} }}\n\
         agents: {{ main: {{ system: You help., tools: [s.{tool}] }} }}\n"
    )
}

fn script(tool: &str) -> String {
    format!(r#"main: [ {{ call: {{ s.{tool}: {{}} }} }}, "{{{{ request.last }}}}" ]"#)
}

/// A server's folder and a store, which outlive processes.
struct World {
    folder: Folder,
    store: Arc<dyn Store>,
    tool: String,
}

impl World {
    fn new(tool: &str, class: &str, greets: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self {
            folder: Folder::new(&format!("asks-{count}"), &definition(tool, class, greets)),
            store: Arc::new(MemoryStore::new()),
            tool: tool.to_owned(),
        }
    }

    fn process(&self) -> Steersman {
        self.process_with(Arc::new(System))
    }

    fn process_with(&self, clock: Arc<dyn Clock>) -> Steersman {
        let setup = Steersman::options().script_all(script(&self.tool));
        let setup = setup.clock(clock);
        setup.over_shared(self.store.clone(), &[1; 32])
    }

    fn asked(&self) -> String {
        let diary = std::fs::read_to_string(self.folder.0.join("diary")).unwrap();
        let lines = diary.lines().filter(|line| line.starts_with("asked"));
        lines.collect::<Vec<_>>().join(", ")
    }

    /// The server does what it waits to do.
    fn goes(&self) {
        std::fs::write(self.folder.0.join("diary"), "asked\ngo\n").unwrap();
    }
}

/// A session that has called the tool, in its first process.
async fn called(tool: &str, class: &str, greets: &str) -> (World, Steersman, Session, Turn) {
    let world = World::new(tool, class, greets);
    let steersman = world.process();
    let session = steersman.start(&world.folder.network()).await.unwrap();
    let turn = session.ask("Go.").await.unwrap();
    (world, steersman, session, turn)
}

fn question(turn: Turn) -> Question {
    match turn {
        Turn::Asks(mut questions) if questions.len() == 1 => questions.remove(0),
        other => panic!("{other:?}"),
    }
}

/// Returns what the session waits for, as any process reads it.
async fn pending(steersman: &Steersman, id: &str) -> Vec<Pending> {
    steersman.engine().inspect(id).await.unwrap().pending
}

fn refusal(acted: Result<(), Error>) -> String {
    match acted {
        Err(Error::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// Returns how the questions of servers ended: by whom, and the words in the log.
async fn ends(steersman: &Steersman, id: &str) -> Vec<(Release, String, String)> {
    let mut feed = steersman.engine().feed(id, Line::NONE);
    let mut ends = Vec::new();
    for line in feed.lines().await.unwrap() {
        for entry in &line.ledger {
            if let LedgerEntry::Released {
                why: Why::Elicited,
                how,
                by,
                body,
                ..
            } = entry
            {
                let text = body.map(|body| {
                    let text = &line.bodies[body.k() as usize];
                    format!("{text:?}")
                });
                ends.push((*how, by.word().to_owned(), text.unwrap_or_default()));
            }
        }
    }
    ends
}

#[tokio::test]
async fn what_a_server_asks_is_a_question_of_the_call() {
    let (world, steersman, session, turn) = called("books", "unsafe", "asks").await;
    let asked_of = question(turn);
    assert_eq!(asked_of.kind(), PendingKind::Question);
    assert_eq!(
        (asked_of.text(), asked_of.tool()),
        ("Which day?", Some("s.books"))
    );
    let all = pending(&steersman, session.id()).await;
    let [one] = &all[..] else {
        panic!("{all:?}");
    };
    assert_eq!(one.because.as_deref(), Some("the server `s` asks"));
    assert_eq!(one.needs, ["when (date)", "seats (whole number, else 1)"]);
    // What does not fit is refused, and the question stays open.
    let wrong = refusal(session.answer(&asked_of, "Monday", By::user()).await);
    assert!(
        wrong.starts_with("the answer is a JSON object with the fields"),
        "{wrong}"
    );
    let fields = r#"{"when":"2026-12-24","seats":0}"#;
    let wrong = refusal(session.answer(&asked_of, fields, By::user()).await);
    assert_eq!(wrong, "`seats`: it is at least 1");
    let wrong = refusal(session.approve(&asked_of, By::user()).await);
    assert_eq!(wrong, "the field when (date) is missing");
    let wrong = refusal(session.answer(&asked_of, fields, By::role("ops")).await);
    assert_eq!(wrong, "only `user` may answer this, not `ops`");
    session
        .answer(&asked_of, r#"{"when":"2026-12-24"}"#, By::user())
        .await
        .unwrap();
    let said = answer(session.settled().await.unwrap());
    assert_eq!(said, "booked when:2026-12-24,seats:1");
    assert_eq!(world.asked(), "asked", "the same call went on");
    let late = refusal(session.answer(&asked_of, "{}", By::user()).await);
    assert!(late.starts_with("nothing is open under"), "{late}");
    session.stop().await;
}

#[tokio::test]
async fn a_person_declines_or_consents() {
    let (_world, _steersman, session, turn) = called("books", "read", "asks").await;
    let act = Act::reject(&question(turn), Some("No trips."), By::user());
    session.act(act).await.unwrap();
    assert_eq!(answer(session.settled().await.unwrap()), "declined");
    session.stop().await;
    let (_world, _steersman, session, turn) = called("confirms", "read", "asks").await;
    session.approve(&question(turn), By::user()).await.unwrap();
    assert_eq!(answer(session.settled().await.unwrap()).trim(), "booked");
    session.stop().await;
}

#[tokio::test]
async fn equal_questions_of_one_call_are_asked_each() {
    let (_world, _steersman, session, turn) = called("books_twice", "unsafe", "asks").await;
    let first = question(turn);
    session
        .answer(&first, r#"{"when":"2026-12-24"}"#, By::user())
        .await
        .unwrap();
    let second = question(session.settled().await.unwrap());
    assert_ne!(first.id(), second.id());
    session
        .answer(&second, r#"{"when":"2026-12-31"}"#, By::user())
        .await
        .unwrap();
    let said = answer(session.settled().await.unwrap());
    assert_eq!(said, "booked when:2026-12-31,seats:1");
    session.stop().await;
}

#[tokio::test]
async fn a_person_may_take_longer_than_a_call() {
    let world = World::new("books", "unsafe", "asks");
    let clock = Virtual::at(Time(1_767_614_400_000));
    let steersman = world.process_with(Arc::new(clock.clone()));
    let session = steersman.start(&world.folder.network()).await.unwrap();
    let asked_of = question(session.ask("Go.").await.unwrap());
    clock.advance(24 * 3_600_000);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    session
        .answer(&asked_of, r#"{"when":"2026-12-24"}"#, By::user())
        .await
        .unwrap();
    let said = answer(session.settled().await.unwrap());
    assert_eq!(said, "booked when:2026-12-24,seats:1");
    assert_eq!(world.asked(), "asked");
    session.stop().await;
}

#[tokio::test]
async fn secrets_are_not_asked_for() {
    for (tool, why) in [
        ("logs_in", "`password` looks like a secret"),
        (
            "sends_away",
            "nobody is sent to an address that a server names",
        ),
    ] {
        let (_world, steersman, session, turn) = called(tool, "unsafe", "asks").await;
        assert_eq!(answer(turn), "declined", "{tool}");
        let ends = ends(&steersman, session.id()).await;
        let [(Release::Refused, by, said)] = &ends[..] else {
            panic!("{tool}: {ends:?}");
        };
        assert_eq!(by, "rule");
        assert!(said.contains(why), "{tool}: {said}");
        session.stop().await;
    }
}

#[tokio::test]
async fn a_repeatable_call_is_made_again_with_the_recorded_answer() {
    for class in ["read", "idempotent"] {
        let (world, steersman, session, turn) = called("books_twice", class, "asks").await;
        let first = question(turn);
        session
            .answer(&first, r#"{"when":"2026-12-24"}"#, By::user())
            .await
            .unwrap();
        let second = question(session.settled().await.unwrap());
        let id = session.id().to_owned();
        // The process dies while the second question is open.
        steersman.engine().kill().await;

        let steersman = world.process();
        let session = steersman.session(&id).await.unwrap();
        let open = question(session.settled().await.unwrap());
        assert_eq!(open.id(), second.id(), "{class}: the same question is open");
        assert_eq!(
            world.asked(),
            "asked",
            "{class}: nothing runs before the answer"
        );
        session
            .answer(&open, r#"{"when":"2026-12-31"}"#, By::user())
            .await
            .unwrap();
        let said = answer(session.settled().await.unwrap());
        assert_eq!(said, "booked when:2026-12-31,seats:1", "{class}");
        assert_eq!(world.asked(), "asked, asked", "{class}");
        let answers = ends(&steersman, &id).await;
        assert_eq!(answers.len(), 2, "{class}: no question twice: {answers:?}");
        session.stop().await;
    }
}

#[tokio::test]
async fn an_unsafe_call_whose_process_dies_is_in_doubt() {
    let (world, steersman, session, turn) = called("books", "unsafe", "asks").await;
    let late = question(turn);
    let id = session.id().to_owned();
    steersman.engine().kill().await;

    let steersman = world.process();
    let session = steersman.session(&id).await.unwrap();
    let doubt = question(session.settled().await.unwrap());
    assert_eq!(doubt.kind(), PendingKind::Doubt);
    let over = refusal(session.answer(&late, "{}", By::user()).await);
    assert!(over.contains("waits for something else"), "{over}");
    assert_eq!(world.asked(), "asked", "nothing is repeated");
    // Somebody knows that nothing was booked: the call is made again, and asks again.
    session
        .resolve(&doubt, Resolution::NotPerformed, By::user())
        .await
        .unwrap();
    let again = question(session.settled().await.unwrap());
    session
        .answer(&again, r#"{"when":"2026-12-24"}"#, By::user())
        .await
        .unwrap();
    let said = answer(session.settled().await.unwrap());
    assert_eq!(said, "booked when:2026-12-24,seats:1");
    session.stop().await;
}

#[tokio::test]
async fn a_stop_leaves_the_question_of_a_repeatable_call_open() {
    let (world, steersman, session, turn) = called("books", "idempotent", "asks").await;
    let asked_of = question(turn);
    let id = session.id().to_owned();
    steersman.stop().await;
    let steersman = world.process();
    let all = pending(&steersman, &id).await;
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].id(), asked_of.id());
    let session = steersman.session(&id).await.unwrap();
    session
        .answer(&asked_of, r#"{"when":"2026-12-24"}"#, By::user())
        .await
        .unwrap();
    let said = answer(session.settled().await.unwrap());
    assert_eq!(said, "booked when:2026-12-24,seats:1");
    session.stop().await;
}

/// The server says how its call ends, so nothing is in doubt.
#[tokio::test]
async fn a_stop_ends_the_question_of_an_unsafe_call() {
    let (world, steersman, session, turn) = called("books", "unsafe", "asks").await;
    question(turn);
    let id = session.id().to_owned();
    steersman.stop().await;
    let steersman = world.process();
    let ends = ends(&steersman, &id).await;
    let [(Release::Cancelled, by, said)] = &ends[..] else {
        panic!("{ends:?}");
    };
    assert_eq!(by, "rule");
    assert!(said.contains("was stopped"), "{said}");
    let session = steersman.session(&id).await.unwrap();
    assert_eq!(answer(session.settled().await.unwrap()), "nobody answered");
    assert_eq!(world.asked(), "asked");
    session.stop().await;
}

#[tokio::test]
async fn a_cancelled_call_asks_nobody_any_more() {
    let (_world, steersman, session, turn) = called("books", "read", "asks").await;
    let asked_of = question(turn);
    session
        .cancel(CancelWhat::Effect(asked_of.id().effect), By::user())
        .await
        .unwrap();
    let _ = session.settled().await.unwrap();
    assert!(pending(&steersman, session.id()).await.is_empty());
    let late = refusal(session.answer(&asked_of, "{}", By::user()).await);
    assert!(late.starts_with("nothing is open under"), "{late}");
    session.stop().await;
}

/// A server that dies while it waits has told nothing: its class decides.
#[tokio::test]
async fn the_question_of_a_server_that_dies_stays_only_where_the_call_may_be_repeated() {
    let (world, steersman, session, turn) = called("books_badly", "read", "asks").await;
    let asked_of = question(turn);
    world.goes();
    // The end of the server is noticed, and nothing is decided by it.
    while runs(&steersman, session.id()).await {
        tokio::task::yield_now().await;
    }
    let all = pending(&steersman, session.id()).await;
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].id(), asked_of.id());
    session.stop().await;

    let (world, steersman, session, turn) = called("books_badly", "unsafe", "asks").await;
    question(turn);
    world.goes();
    let doubt = loop {
        let all = pending(&steersman, session.id()).await;
        match &all[..] {
            [one] if one.kind == PendingKind::Doubt => break one.id(),
            [_] => tokio::task::yield_now().await,
            other => panic!("{other:?}"),
        }
    };
    session
        .resolve(doubt, Resolution::Fail, By::user())
        .await
        .unwrap();
    let said = answer(session.settled().await.unwrap());
    assert!(said.contains("may have happened"), "{said}");
    session.stop().await;
}

/// Returns true if an attempt of the session is at work in this process.
async fn runs(steersman: &Steersman, id: &str) -> bool {
    let driven = steersman.engine().driven(id).unwrap();
    driven.outside().await.unwrap().running > 0
}

/// A server that speaks the protocol of 2026-07-28 alone: its first answer asks, and the next request brings the answer. Nothing
/// runs in between, so any process goes on, also with an unsafe call.
#[tokio::test]
async fn requests_that_stand_alone_wait_without_a_process() {
    for class in ["unsafe", "idempotent", "read"] {
        let (world, steersman, session, turn) = called("reserves", class, "alone").await;
        let asked_of = question(turn);
        assert_eq!(asked_of.text(), "Which day?");
        let id = session.id().to_owned();
        steersman.engine().kill().await;

        let steersman = world.process();
        let session = steersman.session(&id).await.unwrap();
        let open = question(session.settled().await.unwrap());
        assert_eq!(open.id(), asked_of.id(), "{class}");
        session
            .answer(&open, r#"{"when":"2026-12-24"}"#, By::user())
            .await
            .unwrap();
        let said = answer(session.settled().await.unwrap());
        assert!(
            said.starts_with("booked when:2026-12-24,seats:1"),
            "{class}: {said}"
        );
        assert_eq!(
            world.asked(),
            "asked, asked again",
            "{class}: no request twice"
        );
        session.stop().await;
    }
}
