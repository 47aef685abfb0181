//! Equal effects: whatever starts the second one, an `unsafe` effect is repeated only if a person approves that.

use crate::world::{Does, World, answered, network};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use steersman_machine::stored::commit::{LedgerEntry, Text};
use steersman_machine::stored::ids::{Id, Line};
use steersman_machine::view::mapping::Fault;
use steersman_runtime::inbox::{Message, Resolution, Wanted};
use steersman_runtime::pending::PendingId;
use steersman_runtime::redefine::Redefine;
use steersman_runtime::session::{Fate, Fork, Session, Settled};

pub(crate) const DESK: &str = "
tools:
  pay: { description: Pays., parameters: { cents: integer }, effect: unsafe, native: 1 }
  mail: { description: Mails., parameters: { cents: integer }, effect: idempotent, native: 1 }
  ring: { description: Rings., parameters: { cents: integer }, effect: unsafe, repeat: allow, native: 1 }
agents: { main: { system: You pay., tools: [pay, mail, ring] } }
";

pub(crate) fn call(tool: &str, cents: u32) -> Json {
    json!({ "call": { tool: { "cents": cents } } })
}

pub(crate) fn twice(tool: &str) -> Json {
    json!({ "call": [{ tool: { "cents": 5 } }, { tool: { "cents": 5 } }] })
}

/// Returns the first open question: its id, its kind and its text.
pub(crate) async fn question(session: &Session) -> (PendingId, &'static str, String) {
    let settled = session.settled().await.unwrap();
    let (Settled::Asks(pending) | Settled::Doubt(pending)) = &*settled else {
        panic!("{settled:?}")
    };
    let first = &pending[0];
    (first.id(), first.kind.word(), first.text.to_string())
}

/// Returns true if the log holds exactly this text.
async fn reads(world: &World, text: &str) -> bool {
    let lines = world.lines().await;
    let mut bodies = lines.iter().flat_map(|line| &line.bodies);
    bodies.any(|body| matches!(body, Text::Here(told) if **told == *text))
}

#[tokio::test]
async fn a_model_that_asks_again_repeats_nothing() {
    let world = World::new(json!({ "main": [call("pay", 5), call("pay", 5), "Paid."] }));
    let session = world.start(DESK, "Pay.").await;
    let (effect, kind, text) = question(&session).await;
    assert_eq!(
        (kind, &*text),
        (
            "repeat",
            "The same call was done before (2.0, done at @3). Do it again?"
        )
    );
    assert_eq!(world.tools.count("pay"), 1);
    let why = Some("Fraud, stop.");
    session.reject(effect, why, "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    assert_eq!(world.tools.count("pay"), 1);
    let told =
        "It is not done again (Fraud, stop.). The same call was done before. It gave: pay is done";
    assert!(reads(&world, told).await, "{}", world.printed().await);
}

#[tokio::test]
async fn a_number_is_the_same_however_a_model_writes_it() {
    let desk = DESK.replace(
        "pay: { description: Pays., parameters: { cents: integer }",
        "pay: { description: Pays., parameters: { cents: number }",
    );
    let pay =
        |args: &str| json!({ "call": { "pay": serde_json::from_str::<Json>(args).unwrap() } });
    for (one, other, is_same) in [
        ("5", "5.0", true),
        ("1e16", "10000000000000000", true),
        ("1e16", "10000000000000001", false),
        ("9007199254740993", "9007199254740992", false),
    ] {
        let written = |cents: &str| pay(&format!(r#"{{"cents":{cents}}}"#));
        let world = World::new(json!({ "main": [written(one), written(other), "Paid."] }));
        let session = world.start(&desk, "Pay.").await;
        let settled = session.settled().await.unwrap();
        let count = world.tools.count("pay");
        if is_same {
            let Settled::Asks(pending) = &*settled else {
                panic!("{one} and {other}: {settled:?}")
            };
            assert_eq!(
                (pending[0].kind.word(), count),
                ("repeat", 1),
                "{one} and {other}"
            );
        } else {
            assert_eq!(
                (answered(&settled).as_str(), count),
                ("Paid.", 2),
                "{one} and {other}"
            );
        }
    }
}

#[tokio::test]
async fn a_person_lets_it_be_done_again() {
    let world =
        World::new(json!({ "main": [call("pay", 5), call("pay", 5), call("pay", 5), "Paid."] }));
    let session = world.start(DESK, "Pay.").await;
    let (effect, ..) = question(&session).await;
    session.approve(effect, "user").await.unwrap();
    // The approval was for that effect only.
    let (_, kind, _) = question(&session).await;
    assert_eq!((kind, world.tools.count("pay")), ("repeat", 2));
}

#[tokio::test]
async fn a_word_survives_the_process() {
    let world = World::new(json!({ "main": [call("pay", 5), call("pay", 5), "Paid."] }));
    let session = world.start(DESK, "Pay.").await;
    let (effect, ..) = question(&session).await;
    session.pause().await.unwrap();
    session.approve(effect, "user").await.unwrap();
    drop(session);
    let world = world.killed().await;
    let session = world.open().await;
    session.resume().await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    assert_eq!(world.tools.count("pay"), 2);
}

/// A call waits for its retry, and meanwhile an equal call is done: the retry is now a repetition.
#[tokio::test]
async fn another_attempt_is_no_way_past_an_equal_effect() {
    let definition = DESK.replace(
        "effect: unsafe, native: 1 }\n  mail",
        "effect: unsafe, retry: 3, native: 1 }\n  mail",
    );
    let world = World::new(json!({ "main": [twice("pay"), "Paid."] }));
    let later = Fault {
        again: Some(600_000),
        ..Fault::new("http_503", "come back later")
    };
    world.tools.will("pay", Does::NotPerformed(later));
    let session = world.start(&definition, "Pay.").await;
    session.settled().await.unwrap();
    assert_eq!(world.tools.count("pay"), 2, "the second was done meanwhile");
    world.clock.advance(700_000);
    for _ in 0..2_000 {
        tokio::task::yield_now().await;
    }
    let (effect, kind, _) = question(&session).await;
    assert_eq!((kind, world.tools.count("pay")), ("repeat", 2));
    session.reject(effect, None, "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
}

#[tokio::test]
async fn an_idempotent_call_that_is_made_again_is_a_new_effect() {
    let world = World::new(json!({ "main": [twice("mail"), call("mail", 5), "Sent."] }));
    let session = world.start(DESK, "Mail.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Sent.");
    assert_eq!(world.tools.count("mail"), 3);
}

#[tokio::test]
async fn a_tool_may_allow_what_was_done() {
    let world = World::new(json!({ "main": [twice("ring"), call("ring", 5), "Rung."] }));
    let session = world.start(DESK, "Ring.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Rung.");
    assert_eq!(world.tools.count("ring"), 3);
    let world = World::new(json!({ "main": [call("ring", 5), call("ring", 5), "Rung."] }));
    world.tools.will("ring", Does::Unknown);
    let session = world
        .start(
            &DESK.replace("repeat: allow", "repeat: allow, on_doubt: fail"),
            "Ring.",
        )
        .await;
    let (_, kind, _) = question(&session).await;
    assert_eq!(
        (kind, world.tools.count("ring")),
        ("repeat", 1),
        "an effect in doubt needs an approval"
    );
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_model_reads_what_is_on_record() {
    let world = World::unattended(json!({ "main": [call("pay", 5), call("pay", 5), "Paid."] }));
    let session = world.start(DESK, "Pay.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    assert_eq!(world.tools.count("pay"), 1);
    let told = "It is not done again. The same call was done before. It gave: pay is done";
    assert!(reads(&world, told).await, "{}", world.printed().await);
}

#[tokio::test]
async fn a_rewind_repeats_no_effect_of_what_it_leaves() {
    for tool in ["pay", "mail"] {
        let world =
            World::new(json!({ "main": [call(tool, 5), "Done.", call(tool, 5), "Again."] }));
        let session = world.start(DESK, "Go.").await;
        assert_eq!(answered(&session.settled().await.unwrap()), "Done.");
        session.rewind(Line(1), Some("Once more.")).await.unwrap();
        let (_, kind, text) = question(&session).await;
        assert_eq!((kind, world.tools.count(tool)), ("repeat", 1));
        assert!(
            text.contains("on another branch (2.0, done at @3)"),
            "{text}"
        );
    }
}

/// The question of an approval names an equal effect that was done, so the approval also covers the repetition.
pub(crate) const APPROVED: &str = "
tools:
  pay:
    description: Pays.
    parameters: { cents: integer }
    effect: unsafe
    approve: { when: true, by: user, ask: Pay it?, timeout: 1h, on_timeout: approve }
    native: 1
agents: { main: { system: You pay., tools: [pay] } }
";

#[tokio::test]
async fn who_approves_a_repetition_knows_it_and_is_asked_once() {
    let world = World::new(json!({ "main": [call("pay", 5), call("pay", 5), "Paid."] }));
    let session = world.start(APPROVED, "Pay.").await;
    let (first, kind, text) = question(&session).await;
    assert_eq!((kind, &*text), ("approval", "Pay it?"));
    session.approve(first, "user").await.unwrap();
    let (second, kind, text) = question(&session).await;
    assert_eq!(kind, "approval");
    assert_eq!(
        text,
        format!(
            "Pay it? The same call was done before ({}, done at @4).",
            first.effect
        )
    );
    session.approve(second, "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    assert_eq!(world.tools.count("pay"), 2);
}

#[tokio::test]
async fn of_two_equal_calls_that_wait_the_second_says_so() {
    let world = World::new(json!({ "main": [twice("pay"), "Paid."] }));
    let session = world.start(APPROVED, "Pay.").await;
    let settled = session.settled().await.unwrap();
    let Settled::Asks(pending) = &*settled else {
        panic!("{settled:?}")
    };
    let (first, second) = (pending[0].id(), pending[1].id());
    assert_eq!(
        &*pending[1].text,
        format!("Pay it? The same call waits beside it ({}).", first.effect)
    );
    session.approve(second, "user").await.unwrap();
    session.settled().await.unwrap();
    assert_eq!(world.tools.count("pay"), 1);
    // The question of the first call named no effect that was done. The second call is done now.
    session.approve(first, "user").await.unwrap();
    let (repeated, kind, text) = question(&session).await;
    assert_eq!((kind, world.tools.count("pay")), ("repeat", 1), "{text}");
    // Another approval of that question does not cover the repetition, which the question did not show.
    let again = session.approve(first, "user").await.unwrap();
    let Fate::Refused(why) = again.fate else {
        panic!("{again:?}")
    };
    let told = format!(
        "{first} is over: {} waits for a word on doing it again",
        first.effect
    );
    assert!(why.starts_with(&told), "{why}");
    assert_eq!(world.tools.count("pay"), 1);
    session.approve(repeated, "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    assert_eq!(world.tools.count("pay"), 2);
}

#[tokio::test]
async fn a_time_out_that_approves_is_no_word_for_a_repetition() {
    let world = World::new(json!({ "main": [call("pay", 5), call("pay", 5), "Paid."] }));
    let session = world.start(APPROVED, "Pay.").await;
    let (first, ..) = question(&session).await;
    session.approve(first, "user").await.unwrap();
    let (second, kind, _) = question(&session).await;
    assert_eq!(kind, "approval");
    world.clock.advance(2 * 3_600_000);
    for _ in 0..2_000 {
        tokio::task::yield_now().await;
    }
    let (held, kind, _) = question(&session).await;
    assert_eq!(
        (held.effect, kind, world.tools.count("pay")),
        (second.effect, "repeat", 1)
    );
}

const SEARCHED: &str = "
state: { paid: { type: integer, default: 0, reduce: sum } }
tools:
  pay: { description: Pays., parameters: { cents: integer }, effect: unsafe, simulate: pretended, set: { paid: 1 }, native: 1 }
  mail: { description: Mails., parameters: { cents: integer }, effect: idempotent, simulate: pretended, set: { paid: 1 }, native: 1 }
agents:
  main: { system: You pay., tools: [pay, mail]SEARCH }
";

async fn refused(session: &Session, branch: Id) -> String {
    match session.adopt(branch, None).await.unwrap().fate {
        Fate::Refused(why) => why,
        fate => panic!("{fate:?}"),
    }
}

/// A branch that a search adopted is not adopted again: its effects would be performed once more.
#[tokio::test]
async fn what_a_search_adopted_is_adopted_once() {
    for tool in ["pay", "mail"] {
        let world = World::new(json!({ "main": [call(tool, 5), "Done."] }));
        let search = ", search: { method: best_of, n: 2, score: state.paid }";
        let definition = SEARCHED.replace("SEARCH", search);
        let session = world.start(&definition, "Go.").await;
        assert_eq!(answered(&session.settled().await.unwrap()), "Done.");
        assert_eq!(world.tools.count(tool), 1, "it was simulated, then done");
        let seen = world.engine.inspect("session").await.unwrap();
        let (branch, known) = seen
            .ledger
            .branches()
            .find(|(_, branch)| branch.adopted.is_some())
            .unwrap();
        let adopted = known.adopted.unwrap();
        let why = refused(&session, branch).await;
        assert_eq!(
            why,
            format!(
                "branch `{branch}` was adopted already at @{}, up to @{}",
                adopted.at, adopted.upto
            )
        );
        for (other, _) in seen.ledger.branches().filter(|(id, _)| *id != seen.current) {
            refused(&session, other).await;
        }
        assert_eq!(answered(&session.settled().await.unwrap()), "Done.");
        assert_eq!(world.tools.count(tool), 1);
    }
}

/// An adoption performs what a dry branch simulated. An effect that the session has done already needs an approval.
#[tokio::test]
async fn an_adoption_repeats_nothing_unasked() {
    for tool in ["pay", "mail"] {
        let world = World::new(json!({
            "main": ["Ready.", call(tool, 5), "Done."],
            "main@one": [call(tool, 5), "Forecast."],
            "main@two": [call(tool, 5), "Forecast, too."],
        }));
        let definition = SEARCHED.replace("SEARCH", "");
        let session = world.start(&definition, "Go.").await;
        assert_eq!(answered(&session.settled().await.unwrap()), "Ready.");
        let mut branches = Vec::new();
        for label in ["one", "two"] {
            let fork = Fork {
                label: Some(label.into()),
                say: Some("What if?".into()),
                ..Fork::default()
            };
            session.fork(fork).await.unwrap();
            session.settled().await.unwrap();
            let seen = world.engine.inspect("session").await.unwrap();
            branches.push(seen.ledger.find_branch(label).unwrap());
        }
        session.adopt(branches[0], None).await.unwrap();
        session.settled().await.unwrap();
        assert_eq!(world.tools.count(tool), 1);
        let why = refused(&session, branches[0]).await;
        assert!(
            why.starts_with("branch `one` was adopted already at @"),
            "{why}"
        );
        let why = refused(&session, branches[1]).await;
        assert!(
            why.starts_with("the current branch went on since the fork"),
            "{why}"
        );
        // After a rewind the other branch can be adopted. It simulated the effect that the first one did.
        session.rewind(Line(2), None).await.unwrap();
        session.settled().await.unwrap();
        session.adopt(branches[1], None).await.unwrap();
        let (effect, kind, text) = question(&session).await;
        assert_eq!((kind, world.tools.count(tool)), ("repeat", 1), "{text}");
        session.reject(effect, None, "user").await.unwrap();
        session.settled().await.unwrap();
        assert_eq!(world.tools.count(tool), 1);
    }
}

/// An attempt that did not happen says nothing about the attempt before it.
#[tokio::test]
async fn what_an_earlier_attempt_may_have_done_stays_in_doubt() {
    let definition = DESK.replace("effect: idempotent,", "effect: idempotent, retry: 2,");
    let world = World::new(json!({
        "main": [call("mail", 5), "Sent, perhaps.", call("mail", 5), "Sent."],
    }));
    world.tools.will("mail", Does::Unknown);
    let conflict = Fault::new("http_409", "such a mail exists");
    world.tools.will("mail", Does::NotPerformed(conflict));
    let session = world.start(&definition, "Mail.").await;
    while world.tools.count("mail") < 2 {
        tokio::task::yield_now().await;
        world.clock.advance(1_000);
    }
    session.settled().await.unwrap();
    let printed = world.printed().await;
    let told = "in_doubt: it may have happened (such a mail exists; an earli";
    assert!(printed.contains(told), "{printed}");
    assert_eq!(world.tools.count("mail"), 2);
    let keys: BTreeSet<String> = world.tools.runs().into_iter().map(|run| run.1).collect();
    assert_eq!(keys.len(), 1, "one key for all attempts");
    session.rewind(Line(1), Some("Mail again.")).await.unwrap();
    let (_, kind, text) = question(&session).await;
    assert_eq!((kind, world.tools.count("mail")), ("repeat", 2), "{text}");
    assert!(text.contains("nobody knows"), "{text}");
}

/// The owner died while the effect ran, and the next owner reads a rewind first.
#[tokio::test]
async fn a_rewind_that_waits_for_the_next_owner_wipes_out_no_doubt() {
    for tool in ["mail", "pay"] {
        let world = World::new(json!({ "main": [call(tool, 5), call(tool, 5), "Done."] }));
        world.tools.will(tool, Does::Hangs);
        let session = world.start(DESK, "Go.").await;
        while world.tools.count(tool) == 0 {
            tokio::task::yield_now().await;
        }
        drop(session);
        let world = world.killed().await;
        let rewind = Message::from(Wanted::Rewind {
            at: Line(1),
            label: None,
            say: Some("Once more.".to_owned()),
        });
        world.engine.deliver("session", rewind).await.unwrap();
        let session = world.open().await;
        assert_eq!(answered(&session.settled().await.unwrap()), "Done.");
        let printed = world.printed().await;
        assert!(printed.contains("in_doubt"), "{printed}");
        let keys: BTreeSet<String> = world.tools.runs().into_iter().map(|run| run.1).collect();
        assert_eq!(keys.len(), 1, "{printed}");
    }
}

/// The question is in the log, and the next owners find it there.
#[tokio::test]
async fn the_next_owner_opens_no_hold_anew() {
    let definition = DESK.replace(
        "effect: unsafe, native: 1 }\n  mail",
        "effect: unsafe, retry: 3, native: 1 }\n  mail",
    );
    let mut world = World::new(json!({ "main": [twice("pay"), "Paid."] }));
    let later = Fault {
        again: Some(600_000),
        ..Fault::new("http_503", "come back later")
    };
    world.tools.will("pay", Does::NotPerformed(later));
    let session = world.start(&definition, "Pay.").await;
    session.settled().await.unwrap();
    world.clock.advance(700_000);
    for _ in 0..2_000 {
        tokio::task::yield_now().await;
    }
    let (held, kind, _) = question(&session).await;
    assert_eq!(kind, "repeat");
    drop(session);
    for _ in 0..2 {
        world = world.killed().await;
        let session = world.open().await;
        assert_eq!(question(&session).await.0, held);
    }
    let lines = world.lines().await;
    let entries = lines.iter().flat_map(|line| &line.ledger);
    let opened = entries.filter(|entry| matches!(entry, LedgerEntry::Hold(_)));
    assert_eq!(opened.count(), 1);
    let session = world.open().await;
    session.approve(held, "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    assert_eq!(world.tools.count("pay"), 3);
}

/// An effect that began as `unsafe` stays unsafe, whatever class a new definition gives its tool.
#[tokio::test]
async fn another_class_makes_no_past_harmless() {
    for class in ["pure", "read", "idempotent"] {
        let harmless = DESK.replacen("effect: unsafe", &format!("effect: {class}"), 1);
        let redefined = async |world: &World| {
            let wanted = Redefine {
                network: network(&harmless),
                folder: None,
                file: None,
                by: "user".into(),
                models: std::collections::BTreeMap::new(),
                config: std::collections::BTreeMap::new(),
            };
            let receipt = world.engine.redefine("session", wanted).await.unwrap();
            assert!(matches!(receipt.fate, Fate::Taken(_)), "{receipt:?}");
        };
        // The payment was done, and is called again.
        let world =
            World::new(json!({ "main": [call("pay", 5), "Paid.", call("pay", 5), "Well."] }));
        let session = world.start(DESK, "Pay.").await;
        session.settled().await.unwrap();
        redefined(&world).await;
        session.say("Once more.").await.unwrap();
        let (_, kind, text) = question(&session).await;
        assert_eq!((kind, world.tools.count("pay")), ("repeat", 1), "{text}");
        // Nobody knows whether the payment was done, and it is called again.
        let world =
            World::new(json!({ "main": [call("pay", 5), "Well.", call("pay", 5), "Well."] }));
        world.tools.will("pay", Does::Unknown);
        let session = world.start(DESK, "Pay.").await;
        let (doubted, kind, _) = question(&session).await;
        assert_eq!(kind, "doubt");
        session
            .resolve(doubted, Resolution::Fail, "user")
            .await
            .unwrap();
        session.settled().await.unwrap();
        redefined(&world).await;
        session.say("Once more.").await.unwrap();
        let (_, kind, text) = question(&session).await;
        assert_eq!((kind, world.tools.count("pay")), ("repeat", 1), "{text}");
    }
}

/// Three equal calls wait. Their questions name each other and no effect that was done, so an approval does not cover the
/// repetition of one that is done since.
#[tokio::test]
async fn a_question_that_told_of_no_repetition_is_no_word_for_one() {
    let thrice = json!({ "call": [{ "pay": { "cents": 5 } }, { "pay": { "cents": 5 } }, { "pay": { "cents": 5 } }] });
    let world = World::new(json!({ "main": [thrice, "Paid."] }));
    let session = world.start(APPROVED, "Pay.").await;
    let settled = session.settled().await.unwrap();
    let Settled::Asks(pending) = &*settled else {
        panic!("{settled:?}")
    };
    let asked: Vec<PendingId> = pending.iter().map(PendingId::from).collect();
    session.reject(asked[0], None, "user").await.unwrap();
    session.approve(asked[1], "user").await.unwrap();
    session.approve(asked[2], "user").await.unwrap();
    let (repeated, kind, text) = question(&session).await;
    assert_eq!((kind, world.tools.count("pay")), ("repeat", 1), "{text}");
    assert_eq!(repeated.effect, asked[2].effect);
    // The next owner knows what the approval covered.
    drop(session);
    let world = world.killed().await;
    let session = world.open().await;
    assert_eq!(question(&session).await.0, repeated);
    session.approve(repeated, "user").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    assert_eq!(world.tools.count("pay"), 2);
}

/// The second attempt is cancelled and provably did nothing. That says nothing about the first attempt.
#[tokio::test]
async fn a_cancel_wipes_out_no_doubt_of_an_earlier_attempt() {
    let definition = DESK.replace("effect: idempotent,", "effect: idempotent, retry: 2,");
    let world = World::new(json!({ "main": [call("mail", 5), call("mail", 5), "Sent."] }));
    world.tools.will("mail", Does::Unknown);
    world.tools.will("mail", Does::Cut);
    let session = world.start(&definition, "Mail.").await;
    while world.tools.count("mail") < 2 {
        tokio::task::yield_now().await;
        world.clock.advance(1_000);
    }
    session.interrupt("Again.").await.unwrap();
    session.settled().await.unwrap();
    assert_eq!(world.tools.count("mail"), 2, "{}", world.printed().await);
    let printed = world.printed().await;
    assert!(printed.contains("in_doubt"), "{printed}");
    // No branch waits for the effect any more, and a person can still resolve its doubt.
    let seen = world.engine.inspect("session").await.unwrap();
    let (left, _) = seen.ledger.effects().next().unwrap();
    assert!(seen.is_left_in_doubt(left));
    let of = PendingId {
        effect: left,
        hold: None,
    };
    let fate = session.resolve(of, Resolution::NotPerformed, "user").await;
    assert!(matches!(fate.unwrap().fate, Fate::Taken(_)));
}

/// After a rewind the same role as before resolves the doubt, and nobody else.
#[tokio::test]
async fn a_rewind_makes_nobody_judge_of_a_doubt() {
    let definition = DESK.replacen(
        "effect: unsafe,",
        "effect: unsafe, on_doubt: { by: boss },",
        1,
    );
    let definition = definition.replace(
        "agents: { main: { system: You pay., tools: [pay, mail, ring] } }",
        "agents:\n  main: { system: You pay., tools: [pay, mail, ring] }\n  boss: { person: { role: boss } }",
    );
    for asked in [true, false] {
        let world = World::new(json!({ "main": [call("pay", 5), "Well."] }));
        world
            .tools
            .will("pay", if asked { Does::Unknown } else { Does::Hangs });
        let session = world.start(&definition, "Pay.").await;
        while world.tools.count("pay") == 0 {
            tokio::task::yield_now().await;
        }
        let (session, of) = if asked {
            let (doubted, kind, _) = question(&session).await;
            assert_eq!(kind, "doubt");
            session.rewind(Line(1), None).await.unwrap();
            (session, doubted)
        } else {
            session.rewind(Line(1), None).await.unwrap();
            drop(session);
            let world = world.killed().await;
            let session = world.open().await;
            let seen = world.engine.inspect("session").await.unwrap();
            let (effect, _) = seen.ledger.effects().next().unwrap();
            (session, PendingId { effect, hold: None })
        };
        let fate = session.resolve(of, Resolution::NotPerformed, "user").await;
        let Fate::Refused(why) = fate.unwrap().fate else {
            panic!("a wrong role resolved it")
        };
        assert!(why.contains("boss"), "{why}");
        let fate = session.resolve(of, Resolution::NotPerformed, "boss").await;
        assert!(matches!(fate.unwrap().fate, Fate::Taken(_)));
    }
}

/// Edited arguments make the call a repetition: the role that approves the tool is asked, and nobody else.
#[tokio::test]
async fn who_approves_a_tool_is_asked_about_edited_repetitions() {
    let definition = format!(
        "{}  clerk: {{ person: {{ role: clerk }} }}\n",
        APPROVED
            .replace("by: user", "by: clerk, edit: [cents]")
            .replace(
                "agents: { main: { system: You pay., tools: [pay] } }",
                "agents:\n  main: { system: You pay., tools: [pay] }"
            )
    );
    let world = World::new(json!({ "main": [call("pay", 5), call("pay", 6), "Paid."] }));
    let session = world.start(&definition, "Pay.").await;
    let (first, ..) = question(&session).await;
    session.approve(first, "clerk").await.unwrap();
    let (second, ..) = question(&session).await;
    let edited = json!({ "cents": 5 });
    session
        .approve_edited(second, &edited, "clerk")
        .await
        .unwrap();
    let (repeated, kind, _) = question(&session).await;
    assert_eq!(kind, "repeat");
    let refused = session.approve(repeated, "user").await.unwrap();
    assert!(matches!(refused.fate, Fate::Refused(_)), "{refused:?}");
    session.approve(repeated, "clerk").await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    assert_eq!(world.tools.count("pay"), 2);
}
