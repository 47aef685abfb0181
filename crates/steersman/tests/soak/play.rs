//! The sessions of the soak.

use crate::model;
use serde_json::json;
use std::path::Path;
use steersman::machine::values::expression::Expr;
use steersman::{
    By, Fork, Network, Scorer, Search, SearchMethod, SearchPlan, Session, StartOptions, Steersman,
    Turn, tool,
};

/// Number of kinds of sessions.
pub(crate) const KINDS: u64 = 10;

const DEFINITION: &str = r#"
steersman: 1
name: soak
config: { url: { type: string, env: SOAK_URL, live: true } }
events: { paid: { fields: { nr: string }, id: "{{ event.nr }}" } }
models: { default: { url: "{{ config.url }}", model: m, calls: native } }
state: { sum: { type: integer, default: 0, reduce: sum } }
tools:
  roll: { description: Rolls., parameters: { eyes: integer }, set: { sum: "{{ args.eyes }}" } }
  fetch: { description: Reads a page., effect: read, http: { url: "{{ config.url }}/page" } }
  pay: { native: 1, description: Pays., parameters: { cents: integer }, effect: unsafe, approve: true, simulate: pretended }
  nap: { description: Naps., wait: { time: 20ms }, result: Rested. }
  hear: { description: Waits., wait: { event: paid, match: { nr: "1" } }, result: Heard. }
agents:
  desk: { system: You lead., tools: [roll, fetch, pay, nap, hear, helper, { tool: fork, as: race, join: any }] }
  helper: { description: Helps., system: You help., tools: [roll, fetch] }
entry: desk
"#;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pay {
    cents: u64,
}

/// A program that drives sessions.
pub(crate) struct World {
    pub(crate) steersman: Steersman,
    network: Network,
}

impl World {
    pub(crate) async fn open(store: &Path) -> Self {
        let url = model::serve().await;
        let env = move |name: &str| (name == "SOAK_URL").then(|| url.clone());
        let setup = Steersman::options().env(env);
        let pay = tool("pay", 1, |pay: Pay| async move {
            Ok::<_, String>(format!("{} paid", pay.cents))
        });
        let network = Network::from_yaml(DEFINITION).tool(pay).build();
        Self {
            steersman: setup.open(store).await.unwrap(),
            network: network.unwrap(),
        }
    }

    /// Plays the session of this number to its end. The number decides its kind.
    pub(crate) async fn session(&self, n: u64) {
        let plan = match n % KINDS {
            0 | 5 => "loop",
            1 => "wait",
            2 => "event",
            3 | 4 => "approve",
            6 => "agents",
            7 => "race",
            _ => "roll",
        };
        let session = self.start(plan).await;
        match n % KINDS {
            // a cancel of what waits
            4 => {
                let cancel = steersman::CancelWhat::Session;
                session.cancel(cancel, By::user()).await.unwrap();
            }
            // parked, and taken up again
            5 => {
                let id = session.id().to_owned();
                session.stop().await;
                let session = self.steersman.session(&id).await.unwrap();
                drop(session.ask("roll").await.unwrap());
                session.stop().await;
                return self.is_read(&id).await;
            }
            8 => fork(&session).await,
            9 => search(&session).await,
            _ => {}
        }
        self.ends(&session).await;
        let id = session.id().to_owned();
        session.stop().await;
        self.is_read(&id).await;
    }

    async fn start(&self, plan: &str) -> Session {
        let options = StartOptions {
            say: Some(plan.to_owned()),
            ..StartOptions::default()
        };
        let session = self.steersman.start_with(&self.network, options).await;
        let session = session.unwrap();
        drop(session.settled().await.unwrap());
        session
    }

    /// Answers everything that a session asks, until it answers or stops.
    async fn ends(&self, session: &Session) {
        loop {
            let settled = session.driven().settled().await.unwrap();
            match Turn::from(&*settled) {
                Turn::Answer(_) | Turn::Stopped(_) => return,
                Turn::Asks(questions) => {
                    session.approve(&questions[0], By::user()).await.unwrap();
                }
                Turn::Waits(waits) => match waits.iter().find(|wait| wait.text() == "paid") {
                    Some(_) => {
                        let fields = json!({ "nr": "1" });
                        session.event("paid", &fields).await.unwrap();
                    }
                    // a time passes
                    None => drop(session.driven().settled_otherwise(&settled).await.unwrap()),
                },
            }
        }
    }

    /// Reads the beginning of a session's events, and lets go of them.
    async fn is_read(&self, id: &str) {
        let mut events = self.steersman.events(id, steersman::Cursor::default());
        for _ in 0..5 {
            events.next().await.unwrap().unwrap();
        }
    }
}

async fn fork(session: &Session) {
    let fork = Fork {
        say: Some("loop".to_owned()),
        ..Fork::default()
    };
    let branch = session.fork(fork).await.unwrap();
    drop(session.settled().await.unwrap());
    session.adopt(branch).await.unwrap();
}

async fn search(session: &Session) {
    let plan = SearchPlan {
        score: Some(Scorer::Expr(Expr::parse("state.sum").unwrap())),
        seed: Some(1),
        ..SearchPlan::of(SearchMethod::BestOf, 3)
    };
    let say = Some("loop".to_owned());
    let search = Search {
        say,
        ..Search::here(plan)
    };
    let search = session.search(search).await.unwrap();
    drop(session.settled().await.unwrap());
    session.adopt_found(search).await.unwrap();
}
