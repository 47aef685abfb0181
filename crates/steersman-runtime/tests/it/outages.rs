//! Models that do not answer: calls are parked until their place answers, and then go in order.

use crate::places::{Does, Rack, Stage, fails, since};
use crate::spy::Spy;
use crate::world::answered;
use std::sync::Arc;
use steersman_machine::stored::commit::{About, LedgerEntry, Why};
use steersman_machine::stored::ids::{Name, Time};
use steersman_machine::stored::outcome::Retry;
use steersman_runtime::clock::Clock;
use steersman_runtime::engine::StartOptions;
use steersman_runtime::pending::PendingKind;
use steersman_runtime::rerun::Rerun;
use steersman_runtime::session::{Fate, Fork, Session, Settled};
use steersman_runtime::store::SessionQuery;
use steersman_runtime::store::memory::MemoryStore;
use tokio_util::sync::CancellationToken;

const ALONE: &str = "
models: { default: { provider: openai, model: one } }
agents: { main: { system: You talk. } }
";
const HOUR: u64 = 3_600_000;

async fn turns() {
    for _ in 0..60 {
        tokio::task::yield_now().await;
    }
}

/// Lets short times pass until calls of the session wait for a place. Returns how the session settled.
async fn parked(stage: &Stage, session: &Session) -> Settled {
    loop {
        turns().await;
        let outside = session.outside().await.unwrap();
        if outside.place.is_some() {
            return (*session.settled().await.unwrap()).clone();
        }
        match outside.due.filter(|due| *due > stage.clock.now()) {
            Some(due) => stage.clock.advance(since(due, stage.clock.now())),
            None => stage.clock.advance(10),
        }
    }
}

/// Lets this much time pass, in steps.
async fn pass(stage: &Stage, millis: u64) {
    for _ in 0..millis.div_ceil(1_000) {
        stage.clock.advance(1_000);
        turns().await;
    }
}

/// The place that a session waits for.
async fn waits_for(session: &Session) -> Option<Name> {
    session.outside().await.unwrap().place
}

/// Returns the outage entries of the log, as text.
async fn told(stage: &Stage, session: &Session) -> Vec<String> {
    let lines = stage.lines(session).await;
    let entries = lines.iter().flat_map(|line| &line.ledger);
    let told = entries.filter_map(|entry| match entry {
        LedgerEntry::Hold(hold) if hold.why == Why::Outage => Some(format!(
            "down {}",
            hold.about.as_ref().and_then(About::place).unwrap()
        )),
        LedgerEntry::Released { why, how, by, .. } if *why == Why::Outage => {
            Some(format!("{how:?} by {by}"))
        }
        _ => None,
    });
    told.collect()
}

#[tokio::test]
async fn an_outage_is_no_failed_call_but_a_wait_that_the_place_ends() {
    let spy = Spy::default();
    let stage = Stage::over(Rack::default(), spy);
    // Five calls in quick succession, and two that try whether the place answers.
    stage.rack.will("default", vec![fails("unreachable"); 7]);
    let network = crate::places::network(ALONE);
    let said = StartOptions {
        say: Some("Go.".into()),
        ..StartOptions::default()
    };
    let session = stage.engine.start(network.clone(), said).await.unwrap();
    let Settled::Waits(pending) = parked(&stage, &session).await else {
        panic!("it waits");
    };
    turns().await;
    assert_eq!(pending.len(), 1);
    assert_eq!(pending[0].kind, PendingKind::Outage);
    assert_eq!(pending[0].place.as_deref(), Some("one/default"));
    assert_eq!(pending[0].since, stage.clock.now());
    assert_eq!(pending[0].due, Some(stage.clock.now().plus(24 * HOUR)));
    assert!(
        pending[0].text.contains("unreachable"),
        "{}",
        pending[0].text
    );
    assert_eq!(waits_for(&session).await.as_deref(), Some("one/default"));
    // A parked session keeps nothing that it needs only to run: this test and the engine alone hold the network.
    assert_eq!(Arc::strong_count(&network), 2);
    let lines = stage.lines(&session).await.len();
    // The breaker is open for 10 s, then 20, then 40, and lets one call through each time.
    pass(&stage, 35_000).await;
    assert_eq!(stage.rack.tries(), 7);
    let tried = stage.lines(&session).await.split_off(lines);
    let mut entries = tried.iter().flat_map(|line| &line.ledger);
    // The tokens that a try may cost are drawn before it and given back after it. It writes nothing else.
    assert!(
        entries.all(|entry| matches!(
            entry,
            LedgerEntry::Escrow { .. } | LedgerEntry::Settle { .. }
        )),
        "{tried:?}"
    );
    assert_eq!(told(&stage, &session).await, ["down one/default"]);
    pass(&stage, 45_000).await;
    assert_eq!(answered(&session.settled().await.unwrap()), "I am default.");
    assert_eq!(stage.rack.tries(), 8);
    assert_eq!(
        told(&stage, &session).await,
        ["down one/default", "Go by place"]
    );
    assert_eq!(waits_for(&session).await, None);
}

#[tokio::test]
async fn what_no_wait_mends_fails_as_ever() {
    for (code, retry) in [
        ("unauthorized", Retry::Never),
        ("invalid_request", Retry::Never),
        ("model_not_found", Retry::Never),
    ] {
        let stage = Stage::set(Rack::default());
        stage
            .rack
            .will("default", vec![Does::Fails(code, retry); 9]);
        let session = stage.start(ALONE).await;
        let settled = stage.settle(&session).await;
        assert!(
            matches!(settled, Settled::Failed { code: ref c, .. } if &**c == code),
            "{settled:?}"
        );
        assert_eq!(told(&stage, &session).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn of_a_chain_the_place_is_waited_for_that_did_not_answer() {
    let chain = "
models:
  default: { provider: openai, model: one, fallback: [second], retry: { times: 2, for: 1h } }
  second: { provider: openai, model: two }
agents: { main: { system: You talk. } }
";
    let stage = Stage::set(Rack::default());
    stage
        .rack
        .will("default", vec![fails("provider_overloaded"); 2]);
    let refused = Does::Fails("unauthorized", Retry::Never);
    stage.rack.will("second", [refused]);
    let session = stage.start(chain).await;
    let Settled::Waits(pending) = parked(&stage, &session).await else {
        panic!("it waits");
    };
    assert_eq!(pending[0].place.as_deref(), Some("one/default"));
    assert_eq!(pending[0].due, Some(stage.clock.now().plus(HOUR)));
    pass(&stage, 15_000).await;
    assert_eq!(answered(&session.settled().await.unwrap()), "I am default.");
}

#[tokio::test]
async fn an_outage_ends_with_a_code_and_numbers_where_it_is_waited_for_no_longer() {
    let short = "
models: { default: { provider: openai, model: one, retry: { for: 90s } } }
agents: { main: { system: You talk. } }
";
    let stage = Stage::set(Rack::default());
    stage.rack.will("default", vec![fails("unreachable"); 99]);
    let session = stage.start(short).await;
    let _ = parked(&stage, &session).await;
    pass(&stage, 95_000).await;
    let settled = session.settled().await.unwrap();
    let Settled::Failed { code, message } = &*settled else {
        panic!("{settled:?}");
    };
    assert_eq!(&**code, "outage");
    let words = [
        "one/default",
        "no answer since 2",
        "`retry.for`",
        "unreachable",
    ];
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
    assert_eq!(
        told(&stage, &session).await,
        ["down one/default", "Expired by timeout"]
    );
    // With `retry.for: 0s` the call does not wait, and fails with its own code.
    let never = short.replace("90s", "0s");
    let stage = Stage::set(Rack::default());
    stage.rack.will("default", vec![fails("unreachable"); 99]);
    let session = stage.start(&never).await;
    let settled = stage.settle(&session).await;
    assert!(
        matches!(settled, Settled::Failed { ref code, .. } if &**code == "unreachable"),
        "{settled:?}"
    );
}

#[tokio::test]
async fn a_limit_of_time_ends_the_wait_and_nothing_stays_reserved() {
    let limited = "
models: { default: { provider: openai, model: one } }
limits: { tokens: 100000 }
agents: { main: { system: You talk., limits: { wall_time: 10m } } }
";
    let stage = Stage::set(Rack::default());
    stage.rack.will("default", vec![fails("unreachable"); 99]);
    let session = stage.start(limited).await;
    let _ = parked(&stage, &session).await;
    let slice = |seen: &steersman_runtime::engine::Inspection| seen.ledger.slice;
    let seen = stage.engine.inspect(session.id()).await.unwrap();
    assert!(slice(&seen).is_zero(), "{:?}", slice(&seen));
    pass(&stage, 601_000).await;
    let settled = session.settled().await.unwrap();
    assert_eq!(settled.word(), "limit", "{settled:?}");
    let told = told(&stage, &session).await;
    assert_eq!(told, ["down one/default", "Cancelled by rule"]);
    let seen = stage.engine.inspect(session.id()).await.unwrap();
    assert!(slice(&seen).is_zero() && seen.ledger.spent.is_zero());
}

#[tokio::test]
async fn a_new_owner_goes_on_and_a_pause_holds() {
    let store = Spy::over(Arc::new(MemoryStore::new()));
    let stage = Stage::over(Rack::default(), store.clone());
    stage.rack.will("default", vec![fails("unreachable"); 5]);
    let session = stage.start(ALONE).await;
    let _ = parked(&stage, &session).await;
    let id = session.id().to_owned();
    session.pause().await.unwrap();
    pass(&stage, 60_000).await;
    assert_eq!(stage.rack.tries(), 5, "a paused session makes no call");
    session.resume().await.unwrap();
    session.stop().await;
    let other = Stage::over(stage.rack.clone(), store);
    let session = other.engine.open(&id).await.unwrap();
    turns().await;
    assert_eq!(answered(&session.settled().await.unwrap()), "I am default.");
    assert_eq!(
        told(&other, &session).await,
        ["down one/default", "Go by place"]
    );
}

#[tokio::test]
async fn whoever_drives_a_store_finds_those_that_wait() {
    let store = Spy::over(Arc::new(MemoryStore::new()));
    let stage = Stage::over(Rack::default(), store.clone());
    stage.rack.will("default", vec![fails("unreachable"); 8]);
    let mut ids = Vec::new();
    for _ in 0..3 {
        let session = stage.start(ALONE).await;
        let _ = parked(&stage, &session).await;
        ids.push(session.id().to_owned());
        session.stop().await;
    }
    let other = Stage::over(stage.rack.clone(), store);
    let (stop, engine) = (CancellationToken::new(), other.engine.clone());
    let until = stop.clone();
    let all = tokio::spawn(async move { engine.run_all(until).await });
    for _ in 0..400 {
        pass(&other, 1_000).await;
        let waits = SessionQuery {
            status: vec!["waits".into(), "running".into()],
            ..SessionQuery::default()
        };
        if other
            .engine
            .store()
            .sessions(&waits)
            .await
            .unwrap()
            .is_empty()
        {
            break;
        }
    }
    stop.cancel();
    pass(&other, 1_000).await;
    all.await.unwrap().unwrap();
    for id in ids {
        let seen = other.engine.inspect(&id).await.unwrap();
        assert_eq!(seen.settled.word(), "answered");
    }
}

#[tokio::test]
async fn a_person_s_retry_waits_for_the_breaker() {
    let brief = "
models: { default: { provider: openai, model: one, retry: { for: 20s } } }
agents: { main: { system: You talk. } }
";
    let stage = Stage::set(Rack::default());
    stage.rack.will("default", vec![fails("unreachable"); 7]);
    let session = stage.start(brief).await;
    let _ = parked(&stage, &session).await;
    // A call that the outage holds: the retry is taken, and the call is tried when the breaker lets it.
    let receipt = session.retry(None, "user").await.unwrap();
    assert!(matches!(receipt.fate, Fate::Taken(_)), "{receipt:?}");
    turns().await;
    assert_eq!(stage.rack.tries(), 5);
    pass(&stage, 11_000).await;
    assert_eq!(stage.rack.tries(), 6);
    pass(&stage, 10_000).await;
    assert_eq!(session.settled().await.unwrap().word(), "failed");
    // A call that failed on the outage, while the breaker is open.
    let receipt = session.retry(None, "user").await.unwrap();
    assert!(matches!(receipt.fate, Fate::Taken(_)), "{receipt:?}");
    let Settled::Waits(pending) = parked(&stage, &session).await else {
        panic!("it waits");
    };
    assert_eq!(pending[0].kind, PendingKind::Outage);
    stage.rack.forget();
    pass(&stage, 19_000).await;
    assert_eq!(answered(&session.settled().await.unwrap()), "I am default.");
}

#[tokio::test]
async fn a_cancel_and_a_rewind_drop_the_wait() {
    for rewinds in [false, true] {
        let stage = Stage::set(Rack::default());
        let session = stage.start(ALONE).await;
        let _ = stage.settle(&session).await;
        let line = stage.lines(&session).await.last().unwrap().n;
        stage.rack.will("default", vec![fails("unreachable"); 5]);
        session.say("And now?").await.unwrap();
        let _ = parked(&stage, &session).await;
        let ended = if rewinds {
            session.rewind(line, None).await.unwrap();
            "answered"
        } else {
            let all = steersman_runtime::inbox::CancelWhat::Session;
            session.cancel(all, "user").await.unwrap();
            "cancelled"
        };
        turns().await;
        assert_eq!(session.settled().await.unwrap().word(), ended);
        assert_eq!(
            told(&stage, &session).await,
            ["down one/default", "Cancelled by rule"]
        );
        assert_eq!(waits_for(&session).await, None);
        pass(&stage, 60_000).await;
        assert_eq!(stage.rack.tries(), 6);
    }
}

/// A fork of a call that waits for a place waits on its own, and each branch gets an answer of its own.
#[tokio::test]
async fn a_fork_of_what_waits_waits_beside_it() {
    let stage = Stage::set(Rack::default());
    stage.rack.will("default", vec![fails("unreachable"); 5]);
    let session = stage.start(ALONE).await;
    let _ = parked(&stage, &session).await;
    let fork = Fork {
        label: Some("other".into()),
        ..Fork::default()
    };
    session.fork(fork).await.unwrap();
    turns().await;
    pass(&stage, 95_000).await;
    assert_eq!(answered(&session.settled().await.unwrap()), "I am default.");
    let seen = stage.engine.inspect(session.id()).await.unwrap();
    for branch in &seen.branches {
        assert_eq!(seen.settled_on(branch).word(), "answered");
    }
    assert_eq!(
        told(&stage, &session).await,
        [
            "down one/default",
            "down one/default",
            "Go by place",
            "Go by place"
        ]
    );
    assert_eq!(stage.rack.tries(), 7, "one answer for each");
}

/// An adoption that would lose a waiting call is refused. An adopted branch that waits as well goes on waiting.
#[tokio::test]
async fn an_adoption_loses_no_wait() {
    let stage = Stage::set(Rack::default());
    let session = stage.start(ALONE).await;
    let _ = stage.settle(&session).await;
    let fork = |label: &str, say: Option<&str>| Fork {
        label: Some(label.into()),
        say: say.map(str::to_owned),
        ..Fork::default()
    };
    session.fork(fork("before", Some("There?"))).await.unwrap();
    let _ = stage.settle(&session).await;
    stage.rack.will("default", vec![fails("unreachable"); 5]);
    session.say("And now?").await.unwrap();
    let _ = parked(&stage, &session).await;
    session.fork(fork("beside", None)).await.unwrap();
    turns().await;
    let seen = stage.engine.inspect(session.id()).await.unwrap();
    let branch = |label: &str| seen.ledger.find_branch(label).unwrap();
    let fate = session.adopt(branch("before"), None).await.unwrap().fate;
    assert!(
        matches!(&fate, Fate::Refused(why) if why.contains("would lose that")),
        "{fate:?}"
    );
    let fate = session.adopt(branch("beside"), None).await.unwrap().fate;
    assert!(matches!(fate, Fate::Taken(_)), "{fate:?}");
    turns().await;
    let mut all = vec!["down one/default"; 2];
    all.extend(["Cancelled by rule", "Cancelled by rule", "down one/default"]);
    assert_eq!(told(&stage, &session).await, all);
    assert_eq!(waits_for(&session).await.as_deref(), Some("one/default"));
    pass(&stage, 95_000).await;
    assert_eq!(answered(&session.settled().await.unwrap()), "I am default.");
    all.push("Go by place");
    assert_eq!(told(&stage, &session).await, all);
    assert_eq!(stage.rack.tries(), 8, "one answer");
    assert_eq!(waits_for(&session).await, None);
}

/// A call without an answer is not on record, so a rerun has nothing to take. The session goes on waiting.
#[tokio::test]
async fn a_rerun_of_what_waits_takes_nothing_of_it() {
    let stage = Stage::set(Rack::default());
    stage.rack.will("default", vec![fails("unreachable"); 5]);
    let session = stage.start(ALONE).await;
    let _ = parked(&stage, &session).await;
    let tried = stage.rack.tries();
    let again = stage.engine.rerun(session.id(), Rerun::default());
    let again = again.await.unwrap();
    assert_eq!(again.diverged, None);
    assert_eq!((again.recorded_calls, again.live_calls), (0, 0));
    assert_eq!(again.settled.word(), "waits", "as its session stands");
    assert_eq!(stage.rack.tries(), tried, "no model is asked");
    let all = SessionQuery::default();
    let listed = stage.engine.store().sessions(&all).await.unwrap();
    assert!(listed.iter().all(|info| info.left.place.is_none()));
    assert_eq!(waits_for(&session).await.as_deref(), Some("one/default"));
    pass(&stage, 95_000).await;
    assert_eq!(answered(&session.settled().await.unwrap()), "I am default.");
    assert_eq!(stage.rack.tries(), tried + 1);
}

/// 500 sessions wait for a place with room for 100 calls a minute: none waits more than a minute longer than in the order of
/// their calls.
#[tokio::test]
async fn those_that_waited_longest_go_first() {
    const SESSIONS: usize = 500;
    let windowed = "
models: { default: { provider: openai, model: one, rate: 100/min } }
agents: { main: { system: You talk. } }
";
    let stage = Stage::set(Rack::default());
    stage.rack.will("default", vec![fails("unreachable"); 6]);
    let mut sessions: Vec<Session> = Vec::new();
    for _ in 0..SESSIONS {
        let session = stage.start(windowed).await;
        let _ = parked(&stage, &session).await;
        sessions.push(session);
        stage.clock.advance(7);
    }
    let tried = stage.rack.tries();
    assert!(tried < 10, "{tried} asked a place that does not answer");
    let mut began = None;
    for _ in 0..400 {
        pass(&stage, 1_000).await;
        let done = stage.rack.answered.lock().unwrap();
        began = began.or(done.first().map(|(_, at)| *at));
        if done.len() == SESSIONS {
            break;
        }
    }
    let done = stage.rack.answered.lock().unwrap().clone();
    assert_eq!(done.len(), SESSIONS);
    let began = began.unwrap();
    for (nth, session) in sessions.iter().enumerate() {
        let (_, at) = done.iter().find(|(id, _)| **id == *session.id()).unwrap();
        let first_come = Time(began.0 + (nth as i64 / 100) * 60_000);
        let late = at.0 - first_come.0;
        assert!(late <= 60_000, "number {nth} waited {late} ms longer");
    }
}
