//! Runs the tests of a definition: the whole network, offline, in memory, on a virtual clock.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), steersman::Error> {
//! let network = steersman::Network::from_yaml("
//! agents: { greeter: { system: You greet. } }
//! tests:
//!   greets: { script: { greeter: [ Hello. ] }, steps: [ { say: Hi } ], expect: [ { answer: Hello. } ] }
//! ").build()?;
//! let report = steersman::testing::run(&network, "greets").await;
//! assert!(report.failures.is_empty(), "{:?}", report.failures);
//! # Ok(())
//! # }
//! ```

mod mortal;
mod outcomes;
mod steps;
pub(crate) mod subject;

use crate::grading::{EXPECT, Judges};
use crate::models::Scripted;
use crate::{Error, Network, Steersman};
use mortal::Mortal;
use outcomes::{Ran, ToolOutcomes};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use steersman_definition::test::{Answer, Script, Test};
use steersman_machine::stored::ids::Time;
use steersman_runtime::clock::{Clock as _, Virtual};
use steersman_runtime::model::Models;
use steersman_runtime::model::scripted::{Script as Answers, ScriptedModel};
use steersman_runtime::seal::Sealer;
use steersman_runtime::store::{NewMemory, Rated, Scope};
use steersman_views::grade::{Graded, Verdict};
use steps::Run;

use steersman_adapters::catalog::Catalog;
use steersman_adapters::command::CommandTools;
use steersman_adapters::http::HttpTools;

/// The time at which tests begin: 2026-01-05, a Monday, 08:00 UTC.
const BEGIN: Time = Time(1_767_600_000_000);
/// Real time after which a step counts as stuck; the long one for sessions that are read again for each event, and for real models.
const PATIENCE: Duration = Duration::from_secs(30);
const LONG_PATIENCE: Duration = Duration::from_mins(10);

/// The result of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The name of the test.
    pub name: String,
    /// Descriptions of everything that failed; empty if the test passed.
    pub failures: Vec<String>,
    /// Number of lines in the log of its session.
    pub lines: u64,
    /// Number of model calls.
    pub model_calls: u64,
    /// The cost of the models, in millionths of the currency of their prices. Scripts cost nothing.
    pub micros: u64,
    /// For each tool whose commands or requests ran for real, the number of runs.
    pub real: BTreeMap<String, u64>,
}

/// Options of a test run.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// Runs the test twice and compares, as [`replay`] does.
    pub twice: bool,
    /// Runs commands and requests of class `pure` or `read` for real, if the test has no outcomes for them.
    pub real: bool,
    /// Asks the models of the definition instead of the script of the test. Outcomes of tools that are left over are then no failure.
    pub live: bool,
}

/// Runs a test by its name, without any access to the outside. An unknown name is a failure.
pub async fn run(network: &Network, name: &str) -> Report {
    run_as(network, name, How::default()).await
}

/// Runs a test by its name, with options.
pub async fn run_as(network: &Network, name: &str, how: How) -> Report {
    if how.twice {
        replayed(network, name, how).await
    } else {
        played(network, name, how, false).await.0
    }
}

/// Runs a test by its name, and measures its session by the grades of the definition. The first measurement is that of the test
/// itself, [`EXPECT`]. Run 0 has the seed of the test, and each further run the next one. The script of the
/// test answers for judges that it has answers for.
pub async fn run_graded(
    network: &Network,
    name: &str,
    how: How,
    run: u64,
    judges: &Judges,
) -> (Report, Vec<Graded>) {
    let mut report = Report {
        name: name.to_owned(),
        ..Report::default()
    };
    let mut graded = Vec::new();
    let played = match network.test(name) {
        None => Err(format!("there is no test `{name}`")),
        Some(test) => {
            let test = Test {
                seed: test.seed.wrapping_add(run),
                ..test.clone()
            };
            let judges = judges.clone().answering(&script(&test.script));
            graded_run(network, &test, how, &judges, &mut report, &mut graded).await
        }
    };
    report.failures.extend(played.err());
    let verdict = match report.failures.first() {
        None => Verdict::Passed(None),
        Some(_) => Verdict::Failed(report.failures.join("\n")),
    };
    let expect = Graded {
        grade: EXPECT.to_owned(),
        case: name.to_owned(),
        verdict,
        micros: 0,
    };
    graded.insert(0, expect);
    (report, graded)
}

async fn graded_run(
    network: &Network,
    test: &Test,
    how: How,
    judges: &Judges,
    report: &mut Report,
    graded: &mut Vec<Graded>,
) -> Result<(), String> {
    let stage = Stage::set(network, test, how, false).await?;
    let mut run = Run::new(&stage, network, test);
    let played = run.play(report).await;
    report.real = stage.ran();
    *graded = run.graded(&report.name, judges).await?;
    played.map(drop)
}

/// Runs a test twice. The second time its sessions are read again from the store between any two events. Within each run every net
/// and router in Rust is asked twice per decision. A difference is a failure, because such sessions could not be replayed.
pub async fn replay(network: &Network, name: &str) -> Report {
    replayed(network, name, How::default()).await
}

async fn replayed(network: &Network, name: &str, how: How) -> Report {
    let found = crate::nets::Found::default();
    let network = network.asked_twice(&found);
    let (mut report, first) = played(&network, name, how, false).await;
    let (again, second) = played(&network, name, how, true).await;
    for (tool, n) in again.real {
        *report.real.entry(tool).or_default() += n;
    }
    let mut faults = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
    faults.sort();
    faults.dedup();
    if faults.is_empty() && first != second && !second.is_empty() {
        let mut lines = first.lines().zip(second.lines());
        let differs = lines.find(|(a, b)| a != b);
        faults.push(match differs {
            Some((a, b)) => format!(
                "it ran otherwise the second time: {} then {}",
                a.trim(),
                b.trim()
            ),
            None => "it ran otherwise the second time: one run did more".to_owned(),
        });
    }
    if faults.is_empty() && report.failures.is_empty() {
        let second = again.failures.into_iter();
        faults.extend(second.map(|failure| format!("the second time: {failure}")));
    }
    report.failures.extend(faults);
    report
}

/// Runs a test, and reruns its session with nothing changed. Any model call and any difference is a failure.
pub async fn rerun(network: &Network, name: &str) -> Report {
    rerun_with(network, name, None).await
}

/// Like [`rerun`], under another definition that has a different digest but sends every model the same requests.
pub async fn rerun_under(network: &Network, name: &str, other: &Network) -> Report {
    rerun_with(network, name, Some(other)).await
}

async fn rerun_with(network: &Network, name: &str, other: Option<&Network>) -> Report {
    let mut report = Report {
        name: name.to_owned(),
        ..Report::default()
    };
    let Some(test) = network.test(name) else {
        report.failures.push(format!("there is no test `{name}`"));
        return report;
    };
    let played = match Stage::set(network, test, How::default(), false).await {
        Ok(stage) => {
            let run = Run::new(&stage, network, test);
            Box::pin(run.play_and_rerun(&mut report, other)).await
        }
        Err(failure) => Err(failure),
    };
    report.failures.extend(played.err());
    report
}

/// Runs a test. Returns the report, and a text that is equal for equal runs. `cold`: sessions are read again from the store for each
/// event.
async fn played(network: &Network, name: &str, how: How, cold: bool) -> (Report, String) {
    let mut report = Report {
        name: name.to_owned(),
        ..Report::default()
    };
    let Some(test) = network.test(name) else {
        report.failures.push(format!("there is no test `{name}`"));
        return (report, String::new());
    };
    let played = match Stage::set(network, test, how, cold).await {
        Ok(stage) => {
            let played = Run::new(&stage, network, test).play(&mut report).await;
            report.real = stage.ran();
            played
        }
        Err(failure) => Err(failure),
    };
    let essence = played.unwrap_or_else(|failure| {
        report.failures.push(failure);
        String::new()
    });
    (report, essence)
}

/// Everything that outlives a kill: the store, the clock, the scripted answers.
struct Stage {
    store: Arc<Mortal>,
    clock: Virtual,
    models: ScriptedModel,
    /// The models that are asked instead of the script, in a live run.
    asked: Option<Arc<dyn Models>>,
    tools: Arc<ToolOutcomes>,
    sealer: Sealer,
    how: How,
    /// True if sessions are read again from the store for each event.
    cold: bool,
    /// For each tool that ran for real, the number of runs.
    ran: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl Stage {
    /// Sets the stage for a test: its store holds the memories that the test declares.
    async fn set(network: &Network, test: &Test, how: How, cold: bool) -> Result<Self, String> {
        let stage = Self::empty(network, test, how, cold)?;
        stage.remember(network, test).await?;
        Ok(stage)
    }

    fn empty(network: &Network, test: &Test, how: How, cold: bool) -> Result<Self, String> {
        let clock = Virtual::at(BEGIN);
        let registered = network.tools().map(|tool| tool.name().into()).collect();
        let tools = ToolOutcomes::new(&test.tools, registered, how.real, clock.clone());
        let asked = || Arc::new(Scripted::over(Catalog::default(), None)) as Arc<dyn Models>;
        Ok(Self {
            store: Arc::new(Mortal::new()),
            clock,
            models: ScriptedModel::new(answers(&test.script)?),
            asked: how.live.then(asked),
            tools: Arc::new(tools),
            sealer: Sealer::ephemeral(),
            how,
            cold,
            ran: Arc::default(),
        })
    }

    /// Returns the real time after which a step counts as stuck.
    fn patience(&self) -> Duration {
        if self.cold || self.how.live {
            LONG_PATIENCE
        } else {
            PATIENCE
        }
    }

    /// Sets another stage, for a test whose real runs count for the same report.
    async fn another(&self, network: &Network, test: &Test) -> Result<Self, String> {
        Ok(Self {
            ran: self.ran.clone(),
            ..Self::set(network, test, self.how, self.cold).await?
        })
    }

    /// Returns the tools that ran for real, with the number of runs.
    fn ran(&self) -> BTreeMap<String, u64> {
        let ran = self.ran.lock();
        ran.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stores the memories that the test declares.
    async fn remember(&self, network: &Network, test: &Test) -> Result<(), String> {
        let engine = self.process(network).engine().clone();
        let name = &network.checked().name;
        for (k, seed) in test.memory.iter().enumerate() {
            let new = NewMemory {
                key: format!("test/{k}").into(),
                part: Scope::default(),
                scope: seed.scope.as_deref().unwrap_or(name).into(),
                name: seed.name.as_str().into(),
                tags: seed.tags.iter().map(|tag| tag.as_str().into()).collect(),
                media: "text/plain".into(),
                content: seed.content.as_bytes().into(),
                session: None,
                effect: None,
                network: name.clone(),
                by: "test".into(),
                at: self.clock.now(),
                until: None,
                replaces: Vec::new(),
            };
            let id = engine.save_memory(new).await;
            let id = id.map_err(|e| format!("memory `{}`: {e}", seed.name))?;
            if let Some(rating) = seed.rating {
                let rated = Rated {
                    rating,
                    reason: None,
                    by: "user".into(),
                };
                let rated = engine.rate_memory(id, rated).await;
                rated.map_err(|e| format!("memory `{}`: {e}", seed.name))?;
            }
        }
        Ok(())
    }

    /// Starts a process over the store.
    fn process(&self, network: &Network) -> Steersman {
        let http = Ran {
            tools: HttpTools::default(),
            ran: self.ran.clone(),
        };
        let commands = Ran {
            tools: CommandTools::default(),
            ran: self.ran.clone(),
        };
        let steersman = crate::Setup::default().for_tests(
            self.store.clone(),
            Arc::new(self.clock.clone()),
            self.asked
                .clone()
                .unwrap_or_else(|| Arc::new(self.models.clone())),
            vec![self.tools.clone(), Arc::new(http), Arc::new(commands)],
            self.sealer.clone(),
            self.cold,
        );
        steersman.register(network);
        steersman
    }
}

/// Converts a script into the form that the scripted model reads.
fn answers(script: &Script) -> Result<Answers, String> {
    Answers::parse(&self::script(script)).map_err(|e| e.to_string())
}

/// Returns a script as JSON.
fn script(script: &Script) -> Json {
    let lists = script.0.iter();
    let lists = lists.map(|(key, list)| (key.clone(), list.iter().map(answer).collect()));
    Json::Object(lists.collect())
}

fn answer(answer: &Answer) -> Json {
    let mut map = Map::new();
    if let Some(text) = &answer.text {
        map.insert("text".into(), (&*text.source).into());
    }
    if !answer.calls.is_empty() {
        let calls: Vec<Json> = answer
            .calls
            .iter()
            .map(|(name, args)| json!({ name: args }))
            .collect();
        map.insert("call".into(), calls.into());
    }
    if let Some(output) = &answer.output {
        map.insert("output".into(), output.clone());
    }
    if answer.accept {
        map.insert("accept".into(), true.into());
    }
    if let Some(revise) = &answer.revise {
        map.insert("revise".into(), revise.as_str().into());
    }
    if let Some(error) = &answer.error {
        map.insert("error".into(), error.as_str().into());
    }
    if !answer.any.is_empty() {
        let (weights, any): (Vec<f64>, Vec<Json>) = answer
            .any
            .iter()
            .map(|(weight, one)| (*weight, self::answer(one)))
            .unzip();
        map.insert("any".into(), any.into());
        map.insert("weights".into(), weights.into());
    }
    Json::Object(map)
}

/// Renders an error of the engine for a failure.
fn told(error: impl Into<Error>) -> String {
    error.into().to_string()
}
