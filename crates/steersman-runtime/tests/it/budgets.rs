//! Budgets that sessions share: what they draw together, across sessions, processes, kills and periods.

use crate::places::{Does, Rack, Stage, fails, network, since};
use crate::spy::Spy;
use crate::world::{NOON, answered, asked};
use steersman_machine::stored::commit::{LedgerEntry, Why};
use steersman_machine::stored::ids::Time;
use steersman_runtime::clock::Clock as _;
use steersman_runtime::engine::StartOptions;
use steersman_runtime::inbox::CancelWhat;
use steersman_runtime::session::{Fate, Session, Settled};

const HOUR: i64 = 3_600_000;

/// A definition with one budget. An answer has at most 100 tokens, and the request is some words.
fn with(budget: &str) -> String {
    format!(
        "models: {{ default: {{ provider: scripted, max_tokens: 100 }} }}\n\
         labels: {{ customer: \"{{{{ args.customer }}}}\" }}\n\
         budgets: {{ shared: {budget} }}\n\
         agents: {{ main: {{ system: You talk., parameters: {{ customer: {{ type: string, optional: true }} }} }} }}\n"
    )
}

/// Lets everything go on that does not wait for a time.
async fn rest(stage: &Stage, session: &Session) -> Settled {
    for _ in 0..2_000 {
        tokio::task::yield_now().await;
        if session.outside().await.unwrap().running == 0 {
            return (*session.settled().await.unwrap()).clone();
        }
        stage.clock.advance(10);
    }
    panic!("a session does not rest");
}

fn question(settled: &Settled) -> (String, Option<Time>) {
    let Settled::Asks(pending) = settled else {
        panic!("{settled:?}")
    };
    (pending[0].text.to_string(), pending[0].due)
}

#[tokio::test]
async fn sessions_wait_for_the_next_period_of_a_budget_that_is_used_up() {
    let stage = Stage::set(Rack::default());
    let definition = with("{ calls: 2, per: hour, timezone: Europe/Oslo }");
    for _ in 0..2 {
        let session = stage.start(&definition).await;
        assert_eq!(answered(&rest(&stage, &session).await), "I am default.");
    }
    let third = stage.start(&definition).await;
    let (text, due) = question(&rest(&stage, &third).await);
    assert_eq!(
        text,
        "The budget `shared` does not allow the call: 2 calls per hour for all sessions of `test`, 0 calls left, up to 1 call needed. \
         The next hour begins 2026-01-05T14:00:00+01:00. Make the call now all the same?"
    );
    // It looks again sooner than the period ends, because another call may give something back.
    assert!(since(due.unwrap(), stage.clock.now()) <= 15 * 60_000);
    assert_eq!(stage.rack.tries(), 2);
    assert_eq!(answered(&stage.settle(&third).await), "I am default.");
    let at = stage.rack.answered.lock().unwrap().last().unwrap().1;
    assert_eq!(at.0 / HOUR, NOON.0 / HOUR + 1);
    let lines = stage.lines(&third).await;
    let holds = lines.iter().flat_map(|line| &line.ledger);
    let holds = holds.filter(|e| matches!(e, LedgerEntry::Hold(hold) if hold.why == Why::Budget));
    assert!((1..=5).contains(&holds.count()));
}

#[tokio::test]
async fn a_budget_may_fail_the_call() {
    let stage = Stage::set(Rack::default());
    let definition = with("{ calls: 1, then: fail }");
    let first = stage.start(&definition).await;
    assert_eq!(answered(&rest(&stage, &first).await), "I am default.");
    let second = stage.start(&definition).await;
    let settled = rest(&stage, &second).await;
    let Settled::Failed { code, message } = &settled else {
        panic!("{settled:?}")
    };
    assert_eq!(&**code, "limit");
    assert!(
        message.contains("The budget `shared` does not allow"),
        "{message}"
    );
}

#[tokio::test]
async fn a_person_lets_a_call_through_and_another_one_refuses_it() {
    let stage = Stage::set(Rack::default());
    let definition = with("{ calls: 1 }");
    let first = stage.start(&definition).await;
    assert_eq!(answered(&rest(&stage, &first).await), "I am default.");
    let second = stage.start(&definition).await;
    let settled = rest(&stage, &second).await;
    second.approve(asked(&settled), "any").await.unwrap();
    assert_eq!(answered(&rest(&stage, &second).await), "I am default.");
    let ledger = stage.engine.inspect(second.id()).await.unwrap().ledger;
    assert_eq!(ledger.granted.tokens, 0, "the session's own limit stays");
    // Only that call: the next one of the session waits again.
    second.say("More.").await.unwrap();
    let settled = rest(&stage, &second).await;
    second
        .reject(asked(&settled), Some("Not today."), "any")
        .await
        .unwrap();
    let settled = rest(&stage, &second).await;
    let Settled::Failed { code, message } = &settled else {
        panic!("{settled:?}")
    };
    assert_eq!((&**code, &**message), ("limit", "Not today."));
}

/// Two processes: what their running calls may use at most counts, and what they did not use is given back.
#[tokio::test]
async fn processes_over_one_store_draw_from_one_budget() {
    let (store, rack) = (Spy::default(), Rack::default());
    let one = Stage::over(rack.clone(), store.clone());
    let other = Stage::over(rack.clone(), store.clone());
    let definition = with("{ tokens: 250, per: day }");
    rack.will("default", [Does::Hangs, Does::Hangs]);
    let first = one.start(&definition).await;
    let second = other.start(&definition).await;
    while rack.tries() < 2 {
        tokio::task::yield_now().await;
    }
    let third = one.start(&definition).await;
    let (text, _) = question(&rest(&one, &third).await);
    assert!(text.contains("250 tokens per day"), "{text}");
    assert_eq!(rack.tries(), 2);
    // A call that is cut counts with what it sent.
    for session in [&first, &second] {
        let all = CancelWhat::Session;
        let _ = session.cancel(all, "user").await.unwrap();
    }
    one.clock.advance(15 * 60_000);
    assert_eq!(answered(&rest(&one, &third).await), "I am default.");
}

/// The time at which a waiting call tries again is one of the clock. A person need not wait for it: the call draws from the budget again at once, and is not
/// let through.
#[tokio::test]
async fn a_waiting_call_draws_again_when_a_person_says_so() {
    let stage = Stage::set(Rack::default());
    let definition = with("{ calls: 1, per: day }");
    stage.rack.will("default", [Does::Hangs]);
    let first = stage.start(&definition).await;
    while stage.rack.tries() < 1 {
        tokio::task::yield_now().await;
    }
    let second = stage.start(&definition).await;
    let (text, due) = question(&rest(&stage, &second).await);
    // Nothing is left yet, so it waits on, until a later time.
    stage.clock.advance(60_000);
    assert!(matches!(
        second.retry(None, "user").await.unwrap().fate,
        Fate::Taken(_)
    ));
    let (again, later) = question(&rest(&stage, &second).await);
    assert_eq!((again, stage.rack.tries()), (text, 1));
    assert!(later > due, "{later:?} {due:?}");
    // The clock was a day ahead, and is set right: the time at which the call tries again is far away.
    stage.clock.set(Time(NOON.0 - 24 * HOUR));
    let effect = asked(&rest(&stage, &second).await).effect;
    let _ = second.retry(Some(effect), "user").await.unwrap();
    assert_eq!(answered(&rest(&stage, &second).await), "I am default.");
    assert_eq!(
        stage
            .engine
            .inspect(second.id())
            .await
            .unwrap()
            .ledger
            .granted
            .tokens,
        0
    );
    drop(first);
}

/// A process dies during a call: the most that the call may have used counts until the period is over.
#[tokio::test]
async fn a_kill_during_a_call_counts_as_the_most_that_it_may_have_used() {
    let (store, rack) = (Spy::default(), Rack::default());
    let mut stage = Stage::over(rack.clone(), store.clone());
    let definition = with("{ calls: 3, per: day }");
    rack.will("default", [Does::Hangs, Does::Hangs]);
    let mut session = stage.start(&definition).await;
    let id = session.id().to_owned();
    for kill in 1..=2 {
        while rack.tries() < kill {
            tokio::task::yield_now().await;
        }
        drop(session);
        stage.engine.kill().await;
        store.mend();
        stage = Stage::over(rack.clone(), store.clone());
        session = stage.engine.open(&id).await.unwrap();
    }
    assert_eq!(answered(&rest(&stage, &session).await), "I am default.");
    session.say("More.").await.unwrap();
    let (text, _) = question(&rest(&stage, &session).await);
    assert!(text.contains("3 calls per day"), "{text}");
    assert_eq!(answered(&stage.settle(&session).await), "I am default.");
    let at = stage.rack.answered.lock().unwrap().last().unwrap().1;
    assert_eq!(at.0, NOON.0 + 12 * HOUR);
}

#[tokio::test]
async fn calls_that_were_never_made_cost_nothing() {
    let stage = Stage::set(Rack::default());
    let definition = with("{ calls: 2 }");
    stage
        .rack
        .will("default", [fails("unreachable"), fails("unreachable")]);
    for _ in 0..2 {
        let session = stage.start(&definition).await;
        assert_eq!(answered(&stage.settle(&session).await), "I am default.");
    }
    assert_eq!(stage.rack.tries(), 4);
}

#[tokio::test]
async fn each_value_of_a_label_has_the_budget_by_itself_in_all_networks() {
    let stage = Stage::set(Rack::default());
    let definition = with("{ calls: 1, label: customer }");
    let begin = async |name: &str, customer: Option<&str>| {
        let text = definition.replace("test", name);
        let mut network = (*network(&text)).clone();
        network.name = name.into();
        let args = customer.map(|customer| serde_json::json!({ "customer": customer }));
        let options = StartOptions {
            say: Some("Go.".into()),
            args,
            ..StartOptions::default()
        };
        let session = stage.engine.start(network.into(), options).await.unwrap();
        rest(&stage, &session).await
    };
    assert_eq!(
        answered(&begin("desk", Some("Acme")).await),
        "I am default."
    );
    assert_eq!(
        answered(&begin("desk", Some("Bolt")).await),
        "I am default."
    );
    let (text, _) = question(&begin("shop", Some("Acme")).await);
    assert!(text.contains("the label customer = `Acme`"), "{text}");
    // A session without the label is not counted.
    for _ in 0..2 {
        assert_eq!(answered(&begin("desk", None).await), "I am default.");
    }
}

#[tokio::test]
async fn a_budget_of_money_counts_what_calls_cost() {
    let stage = Stage::set(Rack::default());
    // A call may cost 0.1 at most.
    let definition = with("{ cost: 0.15, of: key }");
    let definition = definition.replace(
        "max_tokens: 100",
        "max_tokens: 100, price: { input: 0, output: 1000 }",
    );
    stage
        .rack
        .will("default", [Does::Used(10, 0, 20), Does::Used(10, 0, 60)]);
    for _ in 0..2 {
        let session = stage.start(&definition).await;
        assert_eq!(answered(&rest(&stage, &session).await), "I am default.");
    }
    let session = stage.start(&definition).await;
    let (text, _) = question(&rest(&stage, &session).await);
    assert!(text.contains("0.15 per day for one key of"), "{text}");
    assert!(text.contains("0.07 left, up to 0.10 needed"), "{text}");
}

/// Begins a session at a time. Returns true if its call fitted into the budget, and false if it failed.
async fn fits(stage: &Stage, definition: &str, days: i64) -> bool {
    stage.clock.set(Time(NOON.0 + days * 24 * HOUR));
    let session = stage.start(definition).await;
    match rest(stage, &session).await {
        Settled::Failed { code, .. } => {
            assert_eq!(&*code, "limit");
            false
        }
        settled => answered(&settled) == "I am default.",
    }
}

/// Two processes, of which one has a clock that is days ahead, and clocks that jump forth and back: the use of each day stays known.
#[tokio::test]
async fn a_clock_that_jumps_forgets_no_use_of_a_period() {
    let (store, rack) = (Spy::default(), Rack::default());
    let right = Stage::over(rack.clone(), store.clone());
    let ahead = Stage::over(rack, store);
    let definition = with("{ calls: 2, per: day, then: fail }");
    assert!(fits(&right, &definition, 0).await);
    for (at, is_left) in [(3, true), (1, true), (3, true), (3, false), (400, true)] {
        assert_eq!(fits(&ahead, &definition, at).await, is_left, "day {at}");
    }
    // The first process, whose clock is right, has one call left today. Then its clock jumps, too, also to the past.
    for (at, is_left) in [
        (0, true),
        (0, false),
        (40, true),
        (-2, true),
        (0, false),
        (1, true),
        (1, false),
        (3, false),
        (0, false),
    ] {
        assert_eq!(fits(&right, &definition, at).await, is_left, "day {at}");
    }
}

/// Months differ in length, and so do days when the clock is changed for summer and winter.
#[tokio::test]
async fn each_period_begins_with_nothing_used_whatever_its_length() {
    for (per, days) in [
        (
            "month",
            &[0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][..],
        ),
        ("day", &[81, 82, 83, 84, 85, 291, 292, 293, 294, 295]),
        ("week", &[75, 82, 89, 285, 292, 299]),
    ] {
        let stage = Stage::set(Rack::default());
        let budget = format!("{{ calls: 1, per: {per}, timezone: Europe/Oslo, then: fail }}");
        let definition = with(&budget);
        for day in days {
            assert!(fits(&stage, &definition, *day).await, "{per} {day}");
            assert!(!fits(&stage, &definition, *day).await, "{per} {day}");
        }
    }
}
