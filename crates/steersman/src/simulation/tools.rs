//! Tools with random outcomes, and the world that they act on. Nothing runs.

use super::clock::Jumping;
use super::dice::Dice;
use super::stubs::Stubs;
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use steersman_definition::test::Gives;
use steersman_machine::network::manifest::{Listed, Listing};
use steersman_machine::network::{Network, Source, ToolDef};
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::ids::{Id, Name};
use steersman_machine::stored::interaction::Class;
use steersman_machine::view::mapping::{Fault, Raw};
use steersman_runtime::Boxed;
use steersman_runtime::clock::Clock as _;
use steersman_runtime::toolset::{Asked, ServerAsk, ToolRun, Toolset};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Text of an attempt that was cancelled while it ran.
pub(super) const CUT_OFF: &str = "this attempt was cut off";

/// Everything that tools did to the world, in all processes.
#[derive(Default)]
pub(super) struct World {
    done: Mutex<BTreeMap<Id, Done>>,
    /// Told when an attempt runs that takes time.
    pub(super) works: Notify,
}

/// Changes of the world under the id of one effect.
#[derive(Clone, Debug)]
pub(super) struct Done {
    pub(super) tool: Name,
    pub(super) class: Class,
    /// Number of attempts that run.
    pub(super) running: u32,
    /// Number of times that it was performed.
    pub(super) times: u32,
    /// Result of the last time.
    pub(super) result: Json,
}

impl World {
    /// Returns what was done under the id of an effect.
    pub(super) fn of(&self, effect: Id) -> Option<Done> {
        self.done().get(&effect).cloned()
    }

    pub(super) fn all(&self) -> Vec<(Id, Done)> {
        let done = self.done();
        done.iter().map(|(id, done)| (*id, done.clone())).collect()
    }

    fn begin(&self, run: &ToolRun) -> Running<'_> {
        let mut all = self.done();
        let done = all.entry(run.effect).or_insert_with(|| Done {
            tool: run.work.tool.clone(),
            class: run.work.class,
            running: 0,
            times: 0,
            result: Json::Null,
        });
        done.running += 1;
        Running(self, run.effect)
    }

    fn done(&self) -> MutexGuard<'_, BTreeMap<Id, Done>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt that runs.
struct Running<'a>(&'a World, Id);

impl Running<'_> {
    fn perform(&self, result: Json) {
        if let Some(done) = self.0.done().get_mut(&self.1) {
            done.times += 1;
            done.result = result;
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(done) = self.0.done().get_mut(&self.1) {
            done.running -= 1;
        }
    }
}

/// Runs every tool that is not a part of the engine.
pub(super) struct Tools {
    pub(super) seed: u64,
    /// They fail, give no answer, and lose answers.
    pub(super) fails: bool,
    pub(super) clock: Jumping,
    pub(super) stubs: Arc<Stubs>,
    pub(super) world: Arc<World>,
}

impl Toolset for Tools {
    fn has(&self, network: &Network, tool: &str) -> bool {
        let def = network.tools.get(tool);
        def.is_some_and(|tool| {
            matches!(
                tool.source,
                Source::Native { .. }
                    | Source::Mcp { .. }
                    | Source::Http(_)
                    | Source::Command { .. }
            )
        })
    }

    fn has_native(&self, _: &str, _: &str) -> bool {
        true
    }

    /// A server offers the tools that the definition names.
    fn list<'a>(&'a self, ask: &'a ServerAsk) -> Boxed<'a, Asked> {
        let of = |name: &Name| {
            let (server, tool) = name.split_once('.')?;
            (*server == *ask.server).then(|| tool.to_owned())
        };
        let named = self.stubs.outcomes.keys().chain(ask.network.tools.keys());
        let names: BTreeSet<String> = named.filter_map(of).collect();
        let tools = names.into_iter().map(|name| Listed {
            name,
            input: json!({ "type": "object" }),
            ..Listed::default()
        });
        let listing = Listing {
            tools: tools.collect(),
            ..Listing::default()
        };
        Box::pin(std::future::ready(Asked::Offers(listing)))
    }

    fn run<'a>(&'a self, run: &'a ToolRun, cancel: &'a CancellationToken) -> Boxed<'a, Raw> {
        Box::pin(async move {
            let (of, running) = (run.effect, self.world.begin(run));
            let effect = (of.line().0 << 20) + u64::from(of.k());
            let mut dice = Dice::of(&[self.seed, effect, u64::from(run.attempt)]);
            if !self.takes(&mut dice, cancel).await {
                let fault = Fault::new(Code::Cancelled, CUT_OFF);
                return Raw::NotPerformed(fault);
            }
            let outcome = match dice.below(100) {
                0..8 if self.fails => not_performed(Fault::new(Code::Failed, "it broke")),
                8..12 if self.fails => not_performed(Fault {
                    again: Some(100_000),
                    ..Fault::new("http_429", "later")
                }),
                12..16 if self.fails => unknown(),
                _ => self.gives(&mut dice, run),
            };
            let result = match outcome {
                Ok(result) => result,
                Err(raw) => return *raw,
            };
            running.perform(result.clone());
            let answers = self.takes(&mut dice, cancel).await;
            drop(running);
            let is_lost = self.fails && dice.percent(5);
            if !answers {
                return Raw::Unknown(Fault::new(Code::Cancelled, CUT_OFF));
            }
            if is_lost {
                return Raw::Unknown(Fault::new(Code::Timeout, "no answer came"));
            }
            Raw::Done(result)
        })
    }
}

impl Tools {
    /// Takes some time. Returns false if the attempt was cancelled meanwhile.
    async fn takes(&self, dice: &mut Dice, cancel: &CancellationToken) -> bool {
        let millis = match dice.below(20) {
            0..12 => return true,
            12..17 => dice.below(50),
            17..19 => dice.below(20_000),
            // Nothing comes before the time is over.
            _ if self.fails => u64::MAX >> 1,
            _ => 1,
        };
        self.world.works.notify_waiters();
        tokio::select! {
            biased;
            () = cancel.cancelled() => false,
            () = self.clock.sleep(millis) => true,
        }
    }

    /// Returns what a run gives: one of the tests' outcomes, what the definition says for dry runs, or something that fits.
    fn gives(&self, dice: &mut Dice, run: &ToolRun) -> Result<Json, Box<Raw>> {
        let known = self.stubs.outcomes.get(&run.work.tool);
        if let Some(gives) = dice.pick(known.map_or(&[][..], Vec::as_slice))
            && dice.percent(60)
        {
            return match gives {
                Gives::Result(result) => Ok(result.clone()),
                Gives::Error { code, message } => not_performed(Fault::new(code, message.clone())),
                Gives::Unknown => unknown(),
            };
        }
        let Some(def) = run.network.tools.get(&run.work.tool) else {
            return Ok(Json::Null);
        };
        if let Some(simulate) = &def.simulate
            && let Ok(result) = simulate.eval(&*run.scope)
            && dice.percent(70)
        {
            return Ok(result);
        }
        let values = &self.stubs.values;
        if let Source::Mcp {
            output: Some(schema),
            ..
        } = &def.source
        {
            let schema = serde_json::from_str(schema).unwrap_or_default();
            return Ok(values.fitting(dice, &schema, self.fails));
        }
        if self.fails && dice.percent(10) {
            return Ok(values.any(dice, 0));
        }
        let fields = read_fields(def);
        if fields.is_empty() {
            return Ok(values.text(dice).into());
        }
        let fields = fields.into_iter().map(|field| {
            let value = match dice.below(3) {
                0 => values.text(dice).into(),
                _ => values.number(dice).into(),
            };
            (field, value)
        });
        Ok(Json::Object(fields.collect::<Map<_, _>>()))
    }
}

fn not_performed(fault: Fault) -> Result<Json, Box<Raw>> {
    Err(Box::new(Raw::NotPerformed(fault)))
}

fn unknown() -> Result<Json, Box<Raw>> {
    Err(Box::new(Raw::Unknown(Fault::new(
        Code::Timeout,
        "no answer",
    ))))
}

/// Returns the fields of its result that a definition reads: `result.number`.
fn read_fields(def: &ToolDef) -> BTreeSet<String> {
    let read = format!("{:?} {:?} {:?}", def.set, def.result, def.then);
    let after = read.split("result.").skip(1);
    let field = |text: &str| -> String {
        let is_part = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
        text.chars().take_while(is_part).collect()
    };
    after.map(field).filter(|field| !field.is_empty()).collect()
}
