//! Effects that hang, panic, are refused, end late, exceed a budget or wait.

use crate::world::{Does, World, answered, asked};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman_machine::stored::commit::LedgerEntry;
use steersman_machine::stored::ids::Time;
use steersman_machine::view::mapping::Fault;
use steersman_runtime::engine::StartOptions;
use steersman_runtime::session::{Fate, Settled};
use tokio::sync::Semaphore;

pub(crate) const TOOLS: &str = r#"
state: { token: { type: secret, optional: true } }
events:
  paid: { fields: { invoice: string, cents: integer }, id: "{{ event.invoice }}" }
tools:
  look: { description: Looks., parameters: { what: { type: string, default: it } }, effect: read, timeout: 10s, retry: 2, native: 1 }
  pay: { description: Pays., parameters: { cents: integer }, effect: unsafe, timeout: 10s, native: 1 }
  file: { description: Files., effect: idempotent, timeout: 10s, retry: 2, native: 1 }
  login:
    description: Logs in.
    parameters: { password: { type: secret, ask: "Your password?" } }
    effect: read
    set: { token: "{{ result.token }}" }
    result: Logged in.
    native: 1
  unlock:
    description: Unlocks.
    parameters:
      password: { type: secret, ask: "The password?" }
      word: { type: secret, ask: "The word?" }
    effect: read
    native: 1
  await_payment: { description: Waits., parameters: { invoice: string }, wait: { event: paid, match: { invoice: "{{ args.invoice }}" }, timeout: 4h, on_timeout: Nothing came. } }
  nap: { description: Waits., wait: { time: 1h } }
  await_both:
    description: Waits.
    wait: { all: [ { event: paid, match: { invoice: "1" } }, { event: paid, match: { invoice: "2" } }, { time: 1h } ] }
    result: "{{ result[0].cents + result[1].cents }} cents."
  await_any: { description: Waits., wait: { any: [ { event: paid, match: { invoice: "1" } }, { event: paid, match: { invoice: "2" } }, { time: 1h } ] } }
  await_branches: { description: Waits., wait: { branches: all } }
  transfer: { description: Pays., parameters: { cents: integer }, effect: unsafe, native: 1, approve: { by: user } }
agents:
  boss: { person: { role: boss } }
  main: { system: You work., tools: [look, pay, file, login, unlock, await_payment, nap, ask, await_both, await_any, await_branches, { tool: transfer, approve: { by: boss } }] }
entry: main
"#;

fn calls(call: Json) -> World {
    World::new(json!({ "main": [{ "call": call }, "So be it.", "And on."] }))
}

pub(crate) async fn until_run(world: &World, tool: &str, count: usize) {
    while world.tools.count(tool) < count {
        tokio::task::yield_now().await;
    }
    settle().await;
}

/// Lets every task run as far as it can.
pub(crate) async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_read_tool_that_hangs_is_cut_and_tried_again() {
    let world = calls(json!({ "look": {} }));
    world.tools.will("look", Does::Hangs);
    let session = world.start(TOOLS, "Go.").await;
    until_run(&world, "look", 1).await;
    world.clock.advance(10_000);
    settle().await;
    world.clock.advance(2_000);
    settle().await;
    world.clock.advance(2_000);
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
    assert_eq!(world.tools.count("look"), 2);
}

#[tokio::test]
async fn an_unsafe_tool_that_hangs_is_in_doubt() {
    let world = calls(json!({ "pay": { "cents": 5 } }));
    world.tools.will("pay", Does::Hangs);
    let session = world.start(TOOLS, "Go.").await;
    until_run(&world, "pay", 1).await;
    world.clock.advance(10_000);
    settle().await;
    world.clock.advance(2_000);
    let settled = session.settled().await.unwrap();
    let Settled::Doubt(pending) = &*settled else {
        panic!("{settled:?}")
    };
    assert!(pending[0].text.contains("10000 ms"), "{}", pending[0].text);
}

#[tokio::test]
async fn a_tool_that_panics_is_a_result() {
    let world = calls(json!({ "look": {} }));
    for _ in 0..3 {
        world.tools.will("look", Does::Panics);
    }
    let session = world.start(TOOLS, "Go.").await;
    for attempt in 1..3 {
        until_run(&world, "look", attempt).await;
        world.clock.advance(30_000);
    }
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
    assert!(
        world
            .printed()
            .await
            .contains("panicked: the tool is broken")
    );
}

#[tokio::test]
async fn a_panic_of_an_unsafe_tool_proves_nothing() {
    let world = calls(json!({ "pay": { "cents": 5 } }));
    world.tools.will("pay", Does::Panics);
    let session = world.start(TOOLS, "Go.").await;
    let settled = session.settled().await.unwrap();
    assert!(matches!(&*settled, Settled::Doubt(_)), "{settled:?}");
}

#[tokio::test]
async fn a_retry_after_of_an_hour_is_a_timer_in_the_log() {
    let world = calls(json!({ "look": {} }));
    let busy = Fault {
        again: Some(3_600_000),
        ..Fault::new("http_429", "too many requests")
    };
    world.tools.will("look", Does::NotPerformed(busy));
    let session = world.start(TOOLS, "Go.").await;
    let settled = session.settled().await.unwrap();
    let Settled::Waits(pending) = &*settled else {
        panic!("{settled:?}")
    };
    assert_eq!(pending[0].kind.word(), "again");
    assert_eq!(pending[0].due, Some(Time(crate::world::NOON.0 + 3_600_000)));
    // The next process waits for the rest of the hour.
    drop(session);
    let world = world.killed().await;
    let session = world.open().await;
    assert!(matches!(
        &*session.settled().await.unwrap(),
        Settled::Waits(_)
    ));
    assert_eq!(world.tools.count("look"), 1);
    world.clock.advance(3_600_000);
    settle().await;
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
    assert_eq!(world.tools.count("look"), 2);
}

#[tokio::test]
async fn a_person_s_retry_ends_a_short_delay() {
    for named in [true, false] {
        let world = calls(json!({ "look": {} }));
        let busy = Fault {
            again: Some(30_000),
            ..Fault::new("http_429", "too many requests")
        };
        world.tools.will("look", Does::NotPerformed(busy));
        let session = world.start(TOOLS, "Go.").await;
        until_run(&world, "look", 1).await;
        let seen = session.inspect().await.unwrap();
        let mut calls = seen.current_branch().unwrap().snapshot.calls.values();
        let effect = calls.find_map(|call| call.effect).unwrap();
        let look = named.then_some(effect);
        let fate = session.retry(look, "user").await.unwrap().fate;
        assert!(matches!(fate, Fate::Taken(_)), "{fate:?}");
        settle().await;
        assert_eq!(world.tools.count("look"), 2);
        assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
    }
}

#[tokio::test]
async fn a_clock_that_jumps_back_never_turns_the_log_back() {
    let world = calls(json!({ "look": {} }));
    let gate = Arc::new(Semaphore::new(0));
    world
        .tools
        .will("look", Does::Gate(gate.clone(), json!("seen")));
    let session = world.start(TOOLS, "Go.").await;
    until_run(&world, "look", 1).await;
    world.clock.set(Time(0));
    gate.add_permits(1);
    session.settled().await.unwrap();
    let times: Vec<Time> = world.lines().await.iter().map(|line| line.at).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[tokio::test]
async fn a_clock_that_jumps_ahead_cuts_no_tool() {
    let world = calls(json!({ "pay": { "cents": 5 } }));
    let gate = Arc::new(Semaphore::new(0));
    world
        .tools
        .will("pay", Does::Gate(gate.clone(), json!("paid")));
    let session = world.start(TOOLS, "Go.").await;
    until_run(&world, "pay", 1).await;
    world.clock.set(Time(crate::world::NOON.0 + 86_400_000));
    settle().await;
    gate.add_permits(1);
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
}

#[tokio::test]
async fn calls_of_one_exchange_run_at_once_within_their_bound() {
    let many: Vec<Json> = (0..12)
        .map(|k| json!({ "look": { "what": k.to_string() } }))
        .collect();
    let world = calls(json!(many));
    let gate = Arc::new(Semaphore::new(0));
    for _ in 0..12 {
        world
            .tools
            .will("look", Does::Gate(gate.clone(), json!("seen")));
    }
    let session = world.start(TOOLS, "Go.").await;
    until_run(&world, "look", 8).await;
    assert_eq!(world.tools.count("look"), 8);
    gate.add_permits(3);
    until_run(&world, "look", 11).await;
    assert_eq!(world.tools.count("look"), 11);
    gate.add_permits(9);
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
}

#[tokio::test]
async fn a_secret_is_asked_for_and_lies_nowhere_in_clear() {
    let world = calls(json!({ "login": {} }));
    world
        .tools
        .will("login", Does::Done(json!({ "token": "t0psecret-token" })));
    let session = world.start(TOOLS, "Go.").await;
    let settled = session.settled().await.unwrap();
    let Settled::Asks(pending) = &*settled else {
        panic!("{settled:?}")
    };
    assert_eq!(
        (pending[0].kind.word(), &*pending[0].text),
        ("input", "Your password?")
    );
    session
        .answer(pending[0].id(), "t0psecret-password", "user")
        .await
        .unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
    let mut everything = Vec::new();
    for line in world.lines().await {
        everything.push(format!("{line:?}"));
    }
    everything.push(format!(
        "{:?}",
        world.engine.inspect("session").await.unwrap().branches
    ));
    assert!(everything.concat().contains("$sealed"));
    assert!(!everything.concat().contains("t0psecret"));
    assert!(everything.concat().contains("Logged in."));
}

/// Each answer names its question: of two secrets, one is given before the owner dies and one after, and each is kept for
/// its own parameter.
#[tokio::test]
async fn two_secrets_that_two_owners_were_given_are_not_mixed_up() {
    let world = calls(json!({ "unlock": {} }));
    let session = world.start(TOOLS, "Go.").await;
    let first = asked(&session.settled().await.unwrap());
    session.answer(first, "the-first", "user").await.unwrap();
    let second = asked(&session.settled().await.unwrap());
    assert_eq!(second.effect, first.effect);
    // The answer to the first question is not taken for the second.
    let late = session.answer(first, "the-first", "user").await.unwrap();
    assert!(matches!(late.fate, Fate::Refused(_)), "{late:?}");
    session.stop().await;
    let world = world.killed().await;
    let session = world.open().await;
    world.tools.will("unlock", Does::Done(json!("open")));
    session.answer(second, "the-second", "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
    assert_eq!(world.tools.passwords(), ["the-first"]);
    let lines = world.lines().await;
    let about = lines
        .iter()
        .flat_map(|l| &l.ledger)
        .filter_map(|e| match e {
            LedgerEntry::Released { about, .. } => about.as_ref()?.parameter().map(|name| &**name),
            _ => None,
        });
    assert_eq!(about.collect::<Vec<_>>(), ["password", "word"]);
}

#[tokio::test]
async fn a_secret_that_was_given_survives_the_process() {
    let world = calls(json!({ "login": {} }));
    let session = world.start(TOOLS, "Go.").await;
    let effect = asked(&session.settled().await.unwrap());
    world.tools.will("login", Does::Hangs);
    world
        .tools
        .will("login", Does::Done(json!({ "token": "x" })));
    session
        .answer(effect, "t0psecret-password", "user")
        .await
        .unwrap();
    until_run(&world, "login", 1).await;
    drop(session);
    let world = world.killed().await;
    let session = world.open().await;
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
    assert_eq!(
        world.tools.passwords(),
        ["t0psecret-password", "t0psecret-password"]
    );
}

#[tokio::test]
async fn an_event_meets_the_wait_that_its_fields_match() {
    let world = calls(json!({ "await_payment": { "invoice": "4711" } }));
    let session = world.start(TOOLS, "Go.").await;
    let settled = session.settled().await.unwrap();
    assert!(
        matches!(&*settled, Settled::Waits(p) if p[0].kind.word() == "event"),
        "{settled:?}"
    );
    let other = session
        .event("paid", &json!({ "invoice": "1", "cents": 1 }))
        .await
        .unwrap();
    assert!(matches!(other.fate, Fate::Waits(_)), "{other:?}");
    assert_eq!(session.fate_of(&other.id).await, other.fate);
    let ours = session
        .event("paid", &json!({ "invoice": "4711", "cents": 9 }))
        .await
        .unwrap();
    assert!(matches!(ours.fate, Fate::Taken(_)), "{ours:?}");
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
}

#[tokio::test]
async fn a_wait_ends_by_its_time() {
    let world = calls(json!({ "await_payment": { "invoice": "4711" } }));
    let session = world.start(TOOLS, "Go.").await;
    session.settled().await.unwrap();
    drop(session);
    let world = world.killed().await;
    world.clock.advance(4 * 3_600_000);
    let session = world.open().await;
    settle().await;
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
    assert!(world.printed().await.contains("Nothing came."));
}

#[tokio::test]
async fn a_nap_is_over_when_its_time_has_come() {
    let world = calls(json!({ "nap": {} }));
    let session = world.start(TOOLS, "Go.").await;
    assert!(matches!(
        &*session.settled().await.unwrap(),
        Settled::Waits(_)
    ));
    world.clock.advance(3_599_000);
    settle().await;
    assert!(matches!(
        &*session.settled().await.unwrap(),
        Settled::Waits(_)
    ));
    world.clock.advance(1_000);
    settle().await;
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
}

#[tokio::test]
async fn parts_of_a_wait_come_one_by_one_and_survive_the_process() {
    let world = calls(json!({ "await_both": {} }));
    let session = world.start(TOOLS, "Go.").await;
    session.settled().await.unwrap();
    let second = json!({ "invoice": "2", "cents": 9 });
    let taken = session.event("paid", &second).await.unwrap();
    assert!(matches!(taken.fate, Fate::Taken(_)), "{taken:?}");
    drop(session);
    let world = world.killed().await;
    let session = world.open().await;
    settle().await;
    let again = json!({ "invoice": "2", "cents": 1 });
    let left = session.event("paid", &again).await.unwrap();
    assert!(!matches!(left.fate, Fate::Taken(_)), "{left:?}");
    world.clock.advance(3_600_000);
    settle().await;
    assert!(matches!(
        &*session.settled().await.unwrap(),
        Settled::Waits(_)
    ));
    drop(session);
    let world = world.killed().await;
    let session = world.open().await;
    let first = json!({ "invoice": "1", "cents": 8 });
    let taken = session.event("paid", &first).await.unwrap();
    assert!(matches!(taken.fate, Fate::Taken(_)), "{taken:?}");
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
    assert!(world.printed().await.contains("17 cents."));
}

#[tokio::test]
async fn the_first_of_several_events_ends_a_wait() {
    for (invoice, by_time) in [("1", false), ("2", false), ("", true)] {
        let world = calls(json!({ "await_any": {} }));
        let session = world.start(TOOLS, "Go.").await;
        session.settled().await.unwrap();
        if by_time {
            world.clock.advance(3_600_000);
            settle().await;
        } else {
            let fields = json!({ "invoice": invoice, "cents": 9 });
            let taken = session.event("paid", &fields).await.unwrap();
            assert!(matches!(taken.fate, Fate::Taken(_)), "{taken:?}");
        }
        assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
    }
}

#[tokio::test]
async fn a_wait_for_branches_says_that_there_are_none() {
    let world = calls(json!({ "await_branches": {} }));
    let session = world.start(TOOLS, "Go.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
    assert!(world.printed().await.contains("no_branches"));
}

#[tokio::test]
async fn two_approvers_decide_one_after_the_other() {
    let world = calls(json!({ "transfer": { "cents": 5 } }));
    world.tools.will("transfer", Does::Done(json!("paid")));
    let session = world.start(TOOLS, "Go.").await;
    let first = asked(&session.settled().await.unwrap());
    session.approve(first, "user").await.unwrap();
    settle().await;
    assert_eq!(world.tools.count("transfer"), 0);
    let effect = asked(&session.settled().await.unwrap());
    assert_eq!(effect.effect, first.effect);
    let late = session.approve(first, "boss").await.unwrap();
    assert!(matches!(late.fate, Fate::Refused(_)), "{late:?}");
    let wrong = session.approve(effect, "user").await.unwrap();
    assert!(matches!(wrong.fate, Fate::Refused(_)), "{wrong:?}");
    drop(session);
    let world = world.killed().await;
    let session = world.open().await;
    session.approve(effect, "boss").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
    assert_eq!(world.tools.count("transfer"), 1);
}

#[tokio::test]
async fn a_question_is_answered_by_who_is_asked() {
    let world = calls(json!({ "ask": { "question": "Really?", "options": ["yes", "no"] } }));
    let session = world.start(TOOLS, "Go.").await;
    let settled = session.settled().await.unwrap();
    let effect = asked(&settled);
    let wrong = session.answer(effect, "perhaps", "user").await.unwrap();
    assert!(
        matches!(&wrong.fate, Fate::Refused(why) if why.contains("yes, no")),
        "{wrong:?}"
    );
    session.answer(effect, "yes", "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "So be it.");
    assert_eq!(world.stack("main").await, "U A UI UR A F");
}

#[tokio::test]
async fn a_budget_is_a_state_and_more_can_be_granted() {
    let definition = format!("limits: {{ tokens: 9000 }}\n{TOOLS}");
    let world = World::new(json!({ "main": ["One.", "Two.", "Three.", "Four."] }));
    let session = world.start(&definition, "Go.").await;
    let mut settled = session.settled().await.unwrap();
    for _ in 0..3 {
        if !matches!(&*settled, Settled::Answered { .. }) {
            break;
        }
        session.say(&"On, ".repeat(400)).await.unwrap();
        settled = session.settled().await.unwrap();
    }
    let Settled::Asks(pending) = &*settled else {
        panic!("{settled:?}")
    };
    assert_eq!(pending[0].kind.word(), "budget");
    let seen = world.engine.inspect("session").await.unwrap();
    assert!(seen.ledger.spent.tokens <= 9_000, "{:?}", seen.ledger.spent);
    session.approve(pending[0].id(), "user").await.unwrap();
    let settled = session.settled().await.unwrap();
    assert!(matches!(&*settled, Settled::Answered { .. }), "{settled:?}");
}

/// Talks to a session until it does not answer, four times at most. Returns how it settled last.
async fn talked_to(limits: &str) -> (World, Arc<Settled>) {
    let definition = format!("limits: {{ {limits} }}\n{TOOLS}");
    let world = World::new(json!({ "main": ["One.", "Two.", "Three.", "Four."] }));
    let session = world.start(&definition, "Go.").await;
    let mut settled = session.settled().await.unwrap();
    for _ in 0..3 {
        if !matches!(&*settled, Settled::Answered { .. }) {
            break;
        }
        session.say(&"On, ".repeat(400)).await.unwrap();
        settled = session.settled().await.unwrap();
    }
    (world, settled)
}

#[tokio::test]
async fn a_budget_that_fails_fails() {
    let (world, settled) = talked_to("tokens: { max: 9000, on_limit: fail }").await;
    assert!(matches!(&*settled, Settled::Failed { .. }), "{settled:?}");
    let stack = world.stack("main").await;
    assert!(
        stack.starts_with("U A F") && stack.ends_with("UR F"),
        "{stack}"
    );
}

/// The machine counts a budget per answer. It is no budget of the session, so no tokens are drawn for it.
#[tokio::test]
async fn tokens_of_an_answer_are_counted_by_the_machine() {
    let (world, settled) = talked_to("tokens: { max: 9000, per: answer, on_limit: fail }").await;
    assert!(matches!(&*settled, Settled::Answered { .. }), "{settled:?}");
    assert_eq!(world.stack("main").await, "U A F UR A F UR A F UR A F");
    let (_, settled) = talked_to("tokens: { max: 9000, per: session, on_limit: fail }").await;
    assert!(
        !matches!(&*settled, Settled::Answered { .. }),
        "{settled:?}"
    );
}

#[tokio::test]
async fn a_crash_loop_spends_its_budget_and_stops() {
    let definition = format!("limits: {{ tokens: 50000 }}\n{TOOLS}");
    let mut world = World::new(json!({ "main": ["One."] }));
    drop(world.start(&definition, "Go.").await);
    for round in 0..10 {
        // The disk gets the claim and the draw of tokens, and never the answer.
        world.store.write_only(2, crate::spy::Behind::Silence);
        let session = world.open().await;
        settle().await;
        let seen = world.engine.inspect("session").await.unwrap();
        if !seen.pending.is_empty() {
            assert_eq!(seen.pending[0].kind.word(), "budget");
            assert!(round > 0);
            return;
        }
        drop(session);
        world = world.killed().await;
    }
    panic!("the budget never stops it");
}

/// The unused part of the bounds of ended calls is given back: a kill costs the bounds of the calls that run, and at most 2 %
/// of what is left of the limit.
#[tokio::test]
async fn a_kill_costs_no_calls_that_ended_before_it() {
    // A call reserves over 8,192 tokens, and uses some words.
    const DEFINITION: &str = "
limits: { tokens: 100000 }
tools: { look: { description: Looks., effect: read, native: 1 } }
agents:
  main: { system: You look., tools: [look, helper] }
  helper: { description: Helps., system: You help. }
entry: main
";
    let helper = json!({ "helper": { "message": "Help." } });
    for helpers in [0, 5] {
        let mut calls = vec![helper.clone(); helpers];
        calls.push(json!({ "look": {} }));
        let mut world = World::new(json!({
            "main": [{ "call": calls }, "And on."],
            "helper": ["Helped."],
        }));
        world.tools.will("look", Does::Hangs);
        let session = world.start(DEFINITION, "Go.").await;
        until_run(&world, "look", 1).await;
        drop(session);
        world = world.killed().await;
        let session = world.open().await;
        assert_eq!(answered(&session.settled().await.unwrap()), "And on.");
        let ledger = world.engine.inspect("session").await.unwrap().ledger;
        assert!(ledger.lost.tokens <= 2_000, "{:?}", ledger.lost);
        assert_eq!(ledger.calls, helpers as u64 + 2);
    }
}

#[tokio::test]
async fn paused_nothing_begins() {
    let world = calls(json!({ "look": {} }));
    let session = world.start(TOOLS, "Go.").await;
    answered(&session.settled().await.unwrap());
    session.pause().await.unwrap();
    session.say("More.").await.unwrap();
    assert!(matches!(
        &*session.settled().await.unwrap(),
        Settled::Paused
    ));
    session.resume().await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "And on.");
}

#[tokio::test]
async fn a_message_is_accepted_once() {
    let world = World::new(json!({ "main": ["One.", "Two.", "Three."] }));
    let session = world.start(TOOLS, "Go.").await;
    session.settled().await.unwrap();
    let say = |text: &str| steersman_runtime::inbox::Wanted::say(text).into();
    session.send_as("once".into(), say("Again.")).await.unwrap();
    let twice = session.send_as("once".into(), say("Again.")).await.unwrap();
    assert_eq!(twice.fate, Fate::Known);
    assert_eq!(answered(&session.settled().await.unwrap()), "Two.");
}

#[tokio::test]
async fn a_model_that_is_missing_an_answer_fails_the_session_in_words() {
    let world = World::new(json!({ "main": [] }));
    let session = world.start(TOOLS, "Go.").await;
    let settled = session.settled().await.unwrap();
    let Settled::Failed { code, message } = &*settled else {
        panic!("{settled:?}")
    };
    assert_eq!(&**code, "script_missing");
    assert!(message.contains("0 answers for `main`"), "{message}");
}

#[tokio::test]
async fn cancelling_a_session_ends_it() {
    let world = calls(json!({ "look": {} }));
    world.tools.will("look", Does::Hangs);
    let session = world.start(TOOLS, "Go.").await;
    until_run(&world, "look", 1).await;
    session
        .cancel(steersman_runtime::inbox::CancelWhat::Session, "user")
        .await
        .unwrap();
    assert!(matches!(
        &*session.settled().await.unwrap(),
        Settled::Cancelled
    ));
    assert_eq!(world.stack("main").await, "U A TC TR F");
}

#[tokio::test]
async fn sessions_that_share_one_slot_get_it_in_turn() {
    const ONE: &str = r"
tools:
  look: { description: Looks., effect: read, parallel: 1, native: 1 }
agents:
  main: { system: You look., tools: [look] }
";
    let script =
        json!({ "main": [{ "call": { "look": {} } }, { "call": { "look": {} } }, "Seen."] });
    let world = World::new(script);
    let gate = Arc::new(Semaphore::new(0));
    world
        .tools
        .will("look", Does::Gate(gate.clone(), json!("A lamp.")));
    let network = crate::world::network(ONE);
    let mut sessions = Vec::new();
    for n in 0..16 {
        let options = StartOptions {
            id: Some(format!("session{n}").into()),
            say: Some("Look.".to_owned()),
            ..StartOptions::default()
        };
        sessions.push(world.engine.start(network.clone(), options).await.unwrap());
    }
    until_run(&world, "look", 1).await;
    assert_eq!(world.tools.count("look"), 1, "one at once");
    // A paused session keeps no slot from the others.
    let paused = &sessions[15];
    paused.pause().await.unwrap();
    gate.add_permits(1);
    for session in &sessions[..15] {
        assert_eq!(answered(&session.settled().await.unwrap()), "Seen.");
    }
    paused.resume().await.unwrap();
    assert_eq!(answered(&paused.settled().await.unwrap()), "Seen.");
    assert_eq!(world.tools.count("look"), 32);
}
