//! Fallback models, rates and circuit breakers that sessions share, and costs.

use crate::spy::Spy;
use crate::world::{NOON, answered, asked};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use steersman_definition::{self as definition, Files};
use steersman_machine::network::Network;
use steersman_machine::stored::commit::{LedgerEntry, LogLine, Usage};
use steersman_machine::stored::ids::{Line, Name, Time};
use steersman_machine::stored::outcome::{Answer, Failure, Retry};
use steersman_machine::values::price::Price;
use steersman_runtime::bind::BindError;
use steersman_runtime::clock::{Clock, Virtual};
use steersman_runtime::engine::{Engine, EngineError, Options, Parts, StartOptions};
use steersman_runtime::ledger::Amount;
use steersman_runtime::model::{
    BoundModel, Left, Model, ModelCall, Models, ModelsError, Report, Sink,
};
use steersman_runtime::seal::Sealer;
use steersman_runtime::session::{Session, Settled};
use steersman_runtime::store::SessionQuery;
use steersman_runtime::{Boxed, Env};
use tokio_util::sync::CancellationToken;

/// The next action of a model. A model without one answers.
#[derive(Clone)]
pub(crate) enum Does {
    Fails(&'static str, Retry),
    /// Answers, with this report of the server.
    Reports(Report),
    /// Answers with this usage: input, cached and output tokens.
    Used(u64, u64, u64),
    /// Never answers.
    Hangs,
}

/// A session, and the time of its answer.
pub(crate) type Answered = (Arc<str>, Time);

/// Models of several places that do what a test tells them, and record their calls.
#[derive(Clone, Default)]
pub(crate) struct Rack {
    next: Arc<Mutex<BTreeMap<Name, Vec<Does>>>>,
    asked: Arc<Mutex<Vec<(i64, Name, String)>>>,
    /// Sessions that were answered, with the times.
    pub(crate) answered: Arc<Mutex<Vec<Answered>>>,
    clock: Option<Virtual>,
    prices: BTreeMap<Name, Price>,
}

impl Rack {
    pub(crate) fn will(&self, model: &str, does: impl IntoIterator<Item = Does>) {
        let mut next = self.next.lock().unwrap();
        next.entry(model.into()).or_default().extend(does);
    }

    fn take(&self, model: &Name) -> Option<Does> {
        let mut next = self.next.lock().unwrap();
        let list = next.get_mut(model)?;
        (!list.is_empty()).then(|| list.remove(0))
    }

    /// Returns the number of calls of all models.
    pub(crate) fn tries(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// From now on all models answer.
    pub(crate) fn forget(&self) {
        self.next.lock().unwrap().clear();
    }

    /// Returns the models that were called, in order.
    fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked
            .iter()
            .map(|(_, model, _)| model.to_string())
            .collect()
    }

    fn times(&self) -> Vec<i64> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|(at, ..)| at - NOON.0).collect()
    }
}

struct One(Rack, Name);

impl Model for One {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a dyn Sink,
        _cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let Self(rack, name) = self;
            let now = rack.clock.as_ref().map_or(0, |clock| clock.now().0);
            let params = call.request.params.iter();
            let params = params.map(|(name, value)| format!("{name}={value}"));
            let params = params.collect::<Vec<_>>().join(" ");
            let asked = (now, call.request.model.clone(), params);
            rack.asked.lock().unwrap().push(asked);
            let mut usage = Usage::default();
            match rack.take(name) {
                Some(Does::Fails(code, retry)) => {
                    return Err(Failure {
                        code: code.into(),
                        message: format!("{name} fails"),
                        retry,
                    });
                }
                Some(Does::Reports(report)) => sink.report(report),
                Some(Does::Used(input, cached, output)) => {
                    (usage.input, usage.cached, usage.output) = (input, cached, output);
                }
                Some(Does::Hangs) => std::future::pending().await,
                None => {}
            }
            let mut answered = rack.answered.lock().unwrap();
            answered.push((call.session.clone(), Time(now)));
            Ok(Answer {
                text: Some(format!("I am {name}.")),
                usage,
                ..Answer::default()
            })
        })
    }

    fn label(&self) -> Name {
        self.1.clone()
    }
}

impl Models for Rack {
    fn resolve<'a>(
        &'a self,
        network: &'a Network,
        _env: &'a Env,
        _folder: &'a Path,
    ) -> Boxed<'a, Result<Vec<BoundModel>, ModelsError>> {
        let bound = network.models.iter().map(|(name, def)| BoundModel {
            name: name.clone(),
            // Models without a name of their own share one place.
            provider: def.named().unwrap_or("rack").into(),
            model: Some(name.to_string()),
            price: self.prices.get(name).copied(),
            ..BoundModel::default()
        });
        Box::pin(std::future::ready(Ok(bound.collect())))
    }

    fn model(&self, bound: &BoundModel) -> Result<Arc<dyn Model>, ModelsError> {
        if &*bound.name == "absent" {
            return Err(ModelsError {
                name: bound.name.clone(),
                message: "there is none".into(),
            });
        }
        Ok(Arc::new(One(self.clone(), bound.name.clone())))
    }
}

pub(crate) struct Stage {
    pub(crate) rack: Rack,
    pub(crate) clock: Virtual,
    pub(crate) engine: Engine,
}

impl Stage {
    pub(crate) fn set(rack: Rack) -> Self {
        Self::over(rack, Spy::default())
    }

    pub(crate) fn over(rack: Rack, store: Spy) -> Self {
        let clock = Virtual::at(NOON);
        let rack = Rack {
            clock: Some(clock.clone()),
            ..rack
        };
        let engine = Engine::new(Parts {
            store: Arc::new(store),
            clock: Arc::new(clock.clone()),
            models: Arc::new(rack.clone()),
            toolsets: Vec::new(),
            sealer: Sealer::new(&[7; 32]),
            options: Options {
                env: Arc::new(|_| None),
                ..Options::default()
            },
        });
        Self {
            rack,
            clock,
            engine,
        }
    }

    pub(crate) async fn start(&self, definition: &str) -> Session {
        self.try_start(definition).await.unwrap()
    }

    async fn try_start(&self, definition: &str) -> Result<Session, EngineError> {
        let options = StartOptions {
            say: Some("Go.".into()),
            seed: Some(7),
            ..StartOptions::default()
        };
        self.engine.start(network(definition), options).await
    }

    /// Lets time pass until the session waits only for people, or has ended.
    pub(crate) async fn settle(&self, session: &Session) -> Settled {
        loop {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            let outside = session.outside().await.unwrap();
            let due = outside.due.filter(|due| *due > self.clock.now());
            match due {
                Some(due) => self.clock.advance(since(due, self.clock.now())),
                None if outside.running == 0 => return (*session.settled().await.unwrap()).clone(),
                // A call waits for its turn.
                None => self.clock.advance(10),
            }
        }
    }

    pub(crate) async fn lines(&self, session: &Session) -> Vec<Arc<LogLine>> {
        let mut feed = self.engine.feed(session.id(), Line::NONE);
        feed.lines().await.unwrap()
    }

    async fn usage(&self, session: &Session) -> Vec<Usage> {
        let lines = self.lines(session).await;
        let commits = lines.iter().filter_map(|line| line.commit.as_ref());
        commits.flat_map(|commit| commit.usage.clone()).collect()
    }
}

pub(crate) fn network(text: &str) -> Arc<Network> {
    let text = format!("steersman: 1\nname: test\n{text}");
    let (network, found) = definition::compile(&Files::new("test.yaml", text));
    Arc::new(network.unwrap_or_else(|| panic!("{found:?}")))
}

pub(crate) fn since(due: Time, now: Time) -> u64 {
    u64::try_from(due.0 - now.0).unwrap()
}

const CHAIN: &str = "
models:
  default: { provider: scripted, model: one, max_tokens: 100, fallback: [second, third] }
  second:  { provider: scripted, model: two, max_tokens: 200, temperature: 0.5 }
  third:   { provider: scripted, model: three }
agents: { main: { system: You talk., params: { top_p: 1 } } }
";

pub(crate) fn fails(code: &'static str) -> Does {
    Does::Fails(code, Retry::Policy)
}

#[tokio::test]
async fn another_model_answers_when_the_first_gave_up() {
    let stage = Stage::set(Rack::default());
    stage
        .rack
        .will("default", vec![fails("provider_overloaded"); 9]);
    stage
        .rack
        .will("second", [Does::Fails("unauthorized", Retry::Never)]);
    let session = stage.start(CHAIN).await;
    assert_eq!(answered(&stage.settle(&session).await), "I am third.");
    let asked = stage.rack.asked();
    assert_eq!(
        asked,
        [
            "default", "default", "default", "default", "default", "second", "third"
        ]
    );
    let params: Vec<String> = {
        let asked = stage.rack.asked.lock().unwrap();
        asked[4..]
            .iter()
            .map(|(_, _, params)| params.clone())
            .collect()
    };
    assert_eq!(
        params,
        [
            "max_tokens=100 top_p=1",
            "max_tokens=200 temperature=0.5 top_p=1",
            "top_p=1"
        ]
    );
    let usage = stage.usage(&session).await;
    assert_eq!(usage.len(), 1);
    assert_eq!(usage[0].model.as_deref(), Some("three/third"));
}

#[tokio::test]
async fn what_another_model_would_not_mend_is_not_asked_of_it() {
    for code in ["invalid_request", "context_overflow", "script_missing"] {
        let stage = Stage::set(Rack::default());
        stage
            .rack
            .will("default", [Does::Fails(code, Retry::Never)]);
        let session = stage.start(CHAIN).await;
        let settled = stage.settle(&session).await;
        assert_eq!(stage.rack.asked(), ["default"], "{code}");
        assert_eq!(settled.word(), "failed", "{code}");
    }
}

#[tokio::test]
async fn a_long_pause_is_not_waited_for_where_another_model_is_at_hand() {
    let hour = Retry::After(3_600_000);
    let stage = Stage::set(Rack::default());
    stage
        .rack
        .will("default", [Does::Fails("rate_limited", hour)]);
    let first = stage.start(CHAIN).await;
    assert_eq!(answered(&stage.settle(&first).await), "I am second.");
    // The next session does not call `default` at all.
    let second = stage.start(CHAIN).await;
    assert_eq!(answered(&stage.settle(&second).await), "I am second.");
    assert_eq!(stage.rack.asked(), ["default", "second", "second"]);
    assert_eq!(stage.rack.times()[2], 0);
    // Without a fallback the pause is a timer, and no failed attempt.
    let alone = "models: { default: { provider: scripted, model: one } }\nagents: { main: { system: You talk. } }";
    let third = stage.start(alone).await;
    assert_eq!(answered(&stage.settle(&third).await), "I am default.");
    assert_eq!(*stage.rack.times().last().unwrap(), 3_600_000);
}

#[tokio::test]
async fn a_model_that_this_process_cannot_have_is_passed_over() {
    let stage = Stage::set(Rack::default());
    let definition = "
models: { default: { provider: scripted, fallback: [spare] }, absent: { provider: scripted, fallback: [spare] }, spare: scripted }
agents: { main: { system: You talk., model: absent } }
";
    let session = stage.start(definition).await;
    assert_eq!(answered(&stage.settle(&session).await), "I am spare.");
}

#[tokio::test]
async fn sessions_share_one_rate_and_take_turns() {
    let definition = "
models: { default: { provider: scripted, rate: 2/s } }
agents: { main: { system: You talk. } }
";
    let stage = Stage::set(Rack::default());
    let mut sessions = Vec::new();
    for _ in 0..7 {
        sessions.push(stage.start(definition).await);
    }
    for session in &sessions {
        assert_eq!(answered(&stage.settle(session).await), "I am default.");
    }
    let times = stage.rack.times();
    assert_eq!(times.len(), 7);
    for (at, first) in times.iter().enumerate() {
        let within = times[at..]
            .iter()
            .take_while(|other| **other < first + 1_000);
        assert!(within.count() <= 2, "{times:?}");
    }
    assert!((3_000..3_500).contains(times.last().unwrap()), "{times:?}");
}

#[tokio::test]
async fn what_a_server_says_is_left_holds_for_all_sessions() {
    let stage = Stage::set(Rack::default());
    let none_left = Report {
        requests: Some(Left {
            left: 0,
            millis: 20_000,
        }),
        ..Report::default()
    };
    stage.rack.will("default", [Does::Reports(none_left)]);
    let definition = "models: { default: scripted }\nagents: { main: { system: You talk. } }";
    let first = stage.start(definition).await;
    let _ = stage.settle(&first).await;
    let second = stage.start(definition).await;
    let _ = stage.settle(&second).await;
    let times = stage.rack.times();
    assert!((20_000..20_050).contains(&times[1]), "{times:?}");
}

#[tokio::test]
async fn a_place_that_is_out_of_order_is_left_alone() {
    let stage = Stage::set(Rack::default());
    stage.rack.will("default", vec![fails("unreachable"); 5]);
    let alone = "models: { default: { provider: scripted, model: one, retry: { for: 0s } } }\nagents: { main: { system: You talk. } }";
    let first = stage.start(alone).await;
    assert_eq!(stage.settle(&first).await.word(), "failed");
    let opened = *stage.rack.times().last().unwrap();
    // While the breaker is open nobody calls the place. A session without a fallback waits.
    let second = stage.start(alone).await;
    assert_eq!(answered(&stage.settle(&second).await), "I am default.");
    let times = stage.rack.times();
    assert_eq!(times.len(), 6, "{times:?}");
    assert!(times[5] >= opened + 10_000, "{times:?}");
    // A session with a fallback calls that at once.
    stage.rack.will("default", vec![fails("timeout"); 5]);
    let third = stage.start(CHAIN).await;
    assert_eq!(answered(&stage.settle(&third).await), "I am second.");
    let before = stage.rack.asked().len();
    let now = stage.clock.now();
    let fourth = stage.start(CHAIN).await;
    assert_eq!(answered(&stage.settle(&fourth).await), "I am second.");
    assert_eq!(stage.rack.asked()[before..], ["second"]);
    assert_eq!(stage.clock.now(), now);
}

fn price(input: u64, output: u64) -> Price {
    Price {
        input,
        cached: input / 10,
        cache_write: input,
        output,
    }
}

#[tokio::test]
async fn what_answered_is_paid_at_its_own_price() {
    let rack = Rack {
        prices: [
            ("default".into(), price(1_000_000, 2_000_000)),
            ("second".into(), price(10_000_000, 20_000_000)),
        ]
        .into(),
        ..Rack::default()
    };
    let stage = Stage::set(rack);
    let refused = Does::Fails("unauthorized", Retry::Never);
    stage
        .rack
        .will("default", [Does::Used(1_000, 0, 10), refused]);
    stage.rack.will("second", [Does::Used(1_000, 500, 10)]);
    let first = stage.start(CHAIN).await;
    let _ = stage.settle(&first).await;
    let second = stage.start(CHAIN).await;
    let _ = stage.settle(&second).await;
    let cost = async |session: &Session| {
        let usage = stage.usage(session).await;
        let seen = stage.engine.inspect(session.id()).await.unwrap();
        assert_eq!(Some(seen.ledger.spent.micros), usage[0].micros);
        assert_eq!(seen.ledger.lost.tokens, 0);
        seen.ledger.spent.micros
    };
    assert_eq!(cost(&first).await, 1_020);
    assert_eq!(cost(&second).await, 5_000 + 500 + 200);
}

const LIMITED: &str = "
models:
  default: { provider: scripted, model: one, max_tokens: 100, price: { input: 0, output: 1 }, fallback: [dear] }
  dear:    { provider: scripted, model: two, max_tokens: 100, price: { input: 0, output: 1000 } }
agents: { main: { system: You talk. } }
limits: { cost: 0.25 }
";

#[tokio::test]
async fn escrow_covers_the_dearest_of_the_chain_and_a_person_may_grant_more() {
    let stage = Stage::set(Rack::default());
    stage
        .rack
        .will("default", [Does::Used(10, 0, 100), Does::Used(10, 0, 100)]);
    // 0.1 is the cost of the longest answer of the most expensive model. It is drawn although the cheaper `default` answers.
    let session = stage.start(LIMITED).await;
    assert_eq!(answered(&stage.settle(&session).await), "I am default.");
    let seen = stage.engine.inspect(session.id()).await.unwrap();
    assert_eq!(seen.ledger.spent.micros, 100);
    let lines = stage.lines(&session).await;
    let entries = lines.iter().flat_map(|line| &line.ledger);
    let drawn: u64 = entries
        .filter_map(|entry| match entry {
            LedgerEntry::Escrow { micros, .. } => Some(*micros),
            _ => None,
        })
        .sum();
    assert!(drawn >= 100_000, "{drawn}");
}

#[tokio::test]
async fn a_budget_of_money_is_kept_and_asked_for() {
    let stage = Stage::set(Rack::default());
    let tight = LIMITED.replace("0.25", "0.15");
    stage.rack.will("default", [Does::Used(10, 0, 60_000)]);
    let session = stage.start(&tight).await;
    let _ = stage.settle(&session).await;
    let id = session.id().to_owned();
    let seen = stage.engine.inspect(&id).await.unwrap();
    // The answer was longer than its bound: it is paid all the same.
    assert_eq!(seen.ledger.spent.micros, 60_000);
    session.say("More.").await.unwrap();
    let settled = stage.settle(&session).await;
    let Settled::Asks(pending) = &settled else {
        panic!("{settled:?}")
    };
    assert_eq!(
        &*pending[0].text,
        "The next call may cost 0.10: of 0.15 that the session may spend, 0.06 is spent. Allow 0.10 more?"
    );
    session.approve(asked(&settled), "any").await.unwrap();
    assert_eq!(answered(&stage.settle(&session).await), "I am default.");
    let seen = stage.engine.inspect(&id).await.unwrap();
    // The grant is exactly what the call may cost.
    assert_eq!(seen.ledger.granted, Amount::new(0, 100_000));
}

#[tokio::test]
async fn money_is_limited_only_where_every_price_is_known() {
    let stage = Stage::set(Rack::default());
    let definition = "
models: { default: { provider: auto, fallback: [spare] }, spare: { provider: auto, price: { input: 1, output: 2 } } }
agents: { main: { system: You talk., limits: { cost: { max: 1, per: answer } } } }
";
    match stage.try_start(definition).await {
        Err(EngineError::Bind(BindError::NoPrice { name, label })) => {
            assert_eq!((&*name, &*label), ("default", "rack/default"));
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it begins"),
    }
    let sessions = stage
        .engine
        .store()
        .sessions(&SessionQuery::default())
        .await;
    assert!(sessions.unwrap().is_empty());
}

/// Impossible usage counts as the bound of its call, so one approval is enough for the next call, each time.
#[tokio::test]
async fn absurd_usage_parks_no_session_at_its_budget() {
    const MAX: u64 = u64::MAX;
    let stage = Stage::set(Rack::default());
    stage
        .rack
        .will("default", vec![Does::Used(MAX, MAX, MAX); 4]);
    let definition = LIMITED.replace("cost: 0.25", "tokens: { max: 150, on_limit: ask }");
    let session = stage.start(&definition).await;
    assert_eq!(answered(&stage.settle(&session).await), "I am default.");
    for _ in 0..3 {
        session.say("And now?").await.unwrap();
        let settled = stage.settle(&session).await;
        session.approve(asked(&settled), "any").await.unwrap();
        assert_eq!(answered(&stage.settle(&session).await), "I am default.");
    }
}

/// The first call may cost more than the limit: the question names its cost, and one approval is enough.
#[tokio::test]
async fn a_person_is_asked_for_what_the_next_call_may_cost() {
    let stage = Stage::set(Rack::default());
    let session = stage.start(&LIMITED.replace("0.25", "0.01")).await;
    let settled = stage.settle(&session).await;
    let Settled::Asks(pending) = &settled else {
        panic!("{settled:?}")
    };
    assert_eq!(
        &*pending[0].text,
        "The next call may cost 0.10: of 0.01 that the session may spend, 0.00 is spent. Allow 0.10 more?"
    );
    session.approve(asked(&settled), "any").await.unwrap();
    assert_eq!(answered(&stage.settle(&session).await), "I am default.");

    let stage = Stage::set(Rack::default());
    let fails = LIMITED.replace("0.25", "{ max: 0.01, on_limit: fail }");
    let session = stage.start(&fails).await;
    let settled = stage.settle(&session).await;
    let Settled::Failed { code, message } = &settled else {
        panic!("{settled:?}")
    };
    assert_eq!(
        (&**code, &**message),
        (
            "limit",
            "The next call may cost 0.10: of 0.01 that the session may spend, 0.00 is spent"
        )
    );
}

/// Owners die while a model is called: each lost call counts as its bound and no more, and the session goes on.
#[tokio::test]
async fn as_many_kills_draw_as_many_bounds() {
    const KILLS: u64 = 5;
    for (limit, tight) in [
        ("{ cost: 0.65 }", true),
        ("{ tokens: 1000 }", true),
        ("{ tokens: 100000 }", false),
    ] {
        let definition = LIMITED.replace("{ cost: 0.25 }", limit);
        let store = Spy::default();
        let rack = Rack::default();
        rack.will("default", (0..KILLS).map(|_| Does::Hangs));
        let mut stage = Stage::over(rack.clone(), store.clone());
        let mut session = stage.start(&definition).await;
        let id = session.id().to_owned();
        for kill in 1..=KILLS {
            while rack.asked().len() < kill as usize {
                tokio::task::yield_now().await;
            }
            drop(session);
            stage.engine.kill().await;
            store.mend();
            stage = Stage::over(rack.clone(), store.clone());
            session = stage.engine.open(&id).await.unwrap();
        }
        assert_eq!(
            answered(&stage.settle(&session).await),
            "I am default.",
            "{limit}"
        );
        let ledger = stage.engine.inspect(&id).await.unwrap().ledger;
        // The longest answer has 100 tokens, the most expensive one costs 0.1, and the request is some words.
        if limit.contains("cost") {
            assert_eq!(ledger.lost.micros, KILLS * 100_000);
        } else if tight {
            let lost = ledger.lost.tokens;
            assert!((KILLS * 100..=KILLS * 120).contains(&lost), "{lost}");
        } else {
            // Only a small part of a large budget is drawn ahead.
            let lost = ledger.lost.tokens;
            assert!(lost <= KILLS * 100_000 / 50, "{lost}");
        }
        assert_eq!(ledger.slice, Amount::default());
    }
}

/// A usage that is too large overflows no sum, whatever field it is in: of rates, budgets, compaction or rows.
#[tokio::test]
async fn absurd_usage_in_any_field_ends_no_session() {
    const DEFINITION: &str = r#"
models: { default: { provider: scripted, model: one, max_tokens: 100, window: 100000, rate: "1000000 tokens/s", price: { input: 5, output: 10 } } }
agents: { main: { system: You talk. } }
"#;
    const MAX: u64 = u64::MAX;
    for told in [
        (MAX, 0, 0),
        (0, MAX, 0),
        (0, 0, MAX),
        (7, MAX, 3),
        (MAX, MAX, MAX),
    ] {
        let stage = Stage::set(Rack::default());
        let (input, cached, output) = told;
        let claim = vec![Does::Used(input, cached, output); 4];
        stage.rack.will("default", claim);
        let session = stage.start(DEFINITION).await;
        for _ in 0..4 {
            assert_eq!(answered(&stage.settle(&session).await), "I am default.");
            session.say("And now?").await.unwrap();
        }
        assert_eq!(answered(&stage.settle(&session).await), "I am default.");
        let spent = stage
            .engine
            .inspect(session.id())
            .await
            .unwrap()
            .ledger
            .spent;
        assert!(spent.tokens < 10_000, "{told:?}: {spent:?}");
        assert!(spent.micros < 10_000, "{told:?}: {spent:?}");
    }
}

/// Impossible numbers are recorded as they were reported, and count as the bound of the call.
#[tokio::test]
async fn what_a_provider_tells_is_believed_within_reason() {
    for (told, counts) in [
        ((u64::MAX, u64::MAX), 100),
        ((7, 1 << 53), 100),
        ((7, 300), 300),
    ] {
        let stage = Stage::set(Rack::default());
        stage.rack.will("default", [Does::Used(told.0, 0, told.1)]);
        let session = stage
            .start(&LIMITED.replace("cost: 0.25", "tokens: 1000"))
            .await;
        assert_eq!(answered(&stage.settle(&session).await), "I am default.");
        let seen = stage.engine.inspect(session.id()).await.unwrap();
        let spent = seen.ledger.spent.tokens;
        assert!((counts..counts + 20).contains(&spent), "{told:?}: {spent}");
        let usage = stage.usage(&session).await;
        assert_eq!(usage[0].tokens(), spent, "{told:?}");
        let lines = stage.lines(&session).await;
        let kept: Vec<(u64, u64)> = lines
            .iter()
            .flat_map(|line| &line.ledger)
            .filter_map(|entry| match entry {
                LedgerEntry::Unbelievable { input, output, .. } => Some((*input, *output)),
                _ => None,
            })
            .collect();
        let expected = if counts == 100 {
            vec![told]
        } else {
            Vec::new()
        };
        assert_eq!(kept, expected);
        assert_eq!(seen.ledger.unbelievable, expected.len() as u64);
    }
}
