//! Models and tools with random answers. An answer depends only on the seed of its call, so a call that another owner
//! repeats gets the same answer.

use crate::world::NOON;
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::Arc;
use steersman_machine::context::Content;
use steersman_machine::network::{Network, Source};
use steersman_machine::questions::{Purpose, ToolSpec, judgement};
use steersman_machine::stored::commit::Usage;
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::outcome::{Answer, Ask, Failure, Retry};
use steersman_machine::view::mapping::{Fault, Raw};
use steersman_runtime::clock::{Clock as _, Virtual};
use steersman_runtime::model::{BoundModel, Model, ModelCall, Models, ModelsError, Sink};
use steersman_runtime::toolset::{ToolRun, Toolset};
use steersman_runtime::{Boxed, Env};
use steersman_testkit::random::Dice;
use tokio_util::sync::CancellationToken;

/// The catalog: every name of a network is a random model.
pub(super) struct Chance(Virtual);

/// A random model. The flag says whether its place has outages.
struct Random(Virtual, bool);

/// The place of a shaky model answers in the first part of each round, in milliseconds, and not in the rest.
const ROUND: i64 = 1_000_000;
/// The part of a round in which it answers.
const ANSWERS: i64 = 600_000;

impl Chance {
    pub(super) fn new(clock: Virtual) -> Self {
        Self(clock)
    }
}

impl Models for Chance {
    fn resolve<'a>(
        &'a self,
        network: &'a Network,
        _: &'a Env,
        _: &'a Path,
    ) -> Boxed<'a, Result<Vec<BoundModel>, ModelsError>> {
        let bound = network.models.iter().map(|(name, def)| {
            let shaky = def.named() == Some("shaky");
            // A script is no place, so it has no outages.
            let provider = if shaky { "elsewhere" } else { "scripted" };
            BoundModel {
                name: name.clone(),
                provider: provider.into(),
                model: def.named().map(str::to_owned),
                ..BoundModel::default()
            }
        });
        Box::pin(std::future::ready(Ok(bound.collect())))
    }

    fn model(&self, bound: &BoundModel) -> Result<Arc<dyn Model>, ModelsError> {
        let shaky = bound.model.as_deref() == Some("shaky");
        Ok(Arc::new(Random(self.0.clone(), shaky)))
    }
}

impl Model for Random {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        _: &'a dyn Sink,
        _: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        let failed = |code: &str, retry| Failure {
            code: code.to_owned(),
            message: "busy".to_owned(),
            retry,
        };
        if self.1 && (self.0.now().0 - NOON.0).rem_euclid(ROUND) > ANSWERS {
            let failure = failed("unreachable", Retry::Policy);
            return Box::pin(std::future::ready(Err(failure)));
        }
        let mut dice = Dice::new(call.seed.wrapping_add(call.attempt.into()));
        let segments = &call.request.segments;
        let judges = segments.iter().rev().find_map(|s| match &s.content {
            Content::User(text) => Some(text.contains("`accept`") || text.starts_with("Judge ")),
            _ => None,
        });
        let offered = segments.iter().find_map(|segment| match &segment.content {
            Content::Tools(tools) => Some(&tools[..]),
            _ => None,
        });
        let answer = match call.request.purpose {
            Purpose::Answer if judges == Some(true) => Some(verdict(&mut dice)),
            Purpose::Answer => thought(&mut dice, offered.unwrap_or_default()),
            Purpose::Decision => Some(decision(&mut dice)),
            Purpose::Continue => Some(said("Pay.")),
            Purpose::Extract => found(&mut dice),
            Purpose::Summary | Purpose::Compact => summed(&mut dice),
        };
        let retry = match dice.below(10) {
            0 => Retry::Policy,
            1 => Retry::After(90_000),
            _ => Retry::Never,
        };
        let answer = answer.map(|mut answer| {
            if dice.percent(2) {
                answer.usage.output = u64::MAX;
            }
            answer
        });
        let busy = || failed("provider_overloaded", retry);
        Box::pin(std::future::ready(answer.ok_or_else(busy)))
    }

    fn label(&self) -> Name {
        "chance".into()
    }
}

fn said(text: &str) -> Answer {
    Answer {
        text: (!text.is_empty()).then(|| text.to_owned()),
        usage: Usage {
            input: 10,
            output: 5,
            ..Usage::default()
        },
        ..Answer::default()
    }
}

fn calls(text: &str, asks: Vec<Ask>) -> Answer {
    Answer { asks, ..said(text) }
}

/// Returns an answer of an agent that is offered these tools. `None` means that the call fails.
fn thought(dice: &mut Dice, offered: &[ToolSpec]) -> Option<Answer> {
    Some(match dice.below(100) {
        0..40 => said("So it is."),
        40..43 => return None,
        43..45 => said(""),
        _ => {
            let asks = (0..=dice.below(2)).map(|_| asked(dice, offered)).collect();
            let text = if dice.percent(30) { "Let me see." } else { "" };
            calls(text, asks)
        }
    })
}

/// Returns a judgement. One in ten cannot be used.
fn verdict(dice: &mut Dice) -> Answer {
    match dice.below(10) {
        0 => said("Hm."),
        1..4 => said(&judgement::revise("Better.")),
        _ => said(&judgement::accept()),
    }
}

/// Returns an answer of a model that routes.
fn decision(dice: &mut Dice) -> Answer {
    let words = [
        "0", "1", "2", "clerk", "quick", "deep", "buyer", "payer", "finish", "finish", "",
    ];
    let done = json!({ "summary": "All of it." });
    match dice.below(10) {
        0 => calls("", vec![ask("select_agent", &json!({ "name": "deep" }))]),
        1 => calls("", vec![ask("done", &done)]),
        _ => said(dice.pick(&words).unwrap()),
    }
}

/// Returns state entries that a model read from the conversation. Some do not fit; `None` means that the call fails.
fn found(dice: &mut Dice) -> Option<Answer> {
    let found = match dice.below(7) {
        0 => return None,
        1 => return Some(said("Nothing.")),
        2 => json!({}),
        3 => json!({ "topic": 5, "seen": 5, "sum": "many" }),
        4 => json!({ "topic": "x".repeat(500), "sum": i64::MAX }),
        _ => json!({ "topic": "ships", "seen": true, "sum": 1, "heap": "one", "other": 1 }),
    };
    Some(said(&found.to_string()))
}

/// Returns a summary. `None` means that the call fails.
fn summed(dice: &mut Dice) -> Option<Answer> {
    match dice.below(6) {
        0 => None,
        1 => Some(said(" ")),
        n => Some(said(&format!("It was about {n}."))),
    }
}

fn ask(name: &str, args: &Json) -> Ask {
    Ask {
        name: name.to_owned(),
        label: None,
        args: args.to_string(),
        misfit: None,
    }
}

/// Returns a call of a tool or agent that is offered. Some calls name no tool, or their arguments are no JSON.
fn asked(dice: &mut Dice, offered: &[ToolSpec]) -> Ask {
    match dice.below(30) {
        0 => return ask("frobnicate", &json!({})),
        1 => {
            let args = "{ not json".to_owned();
            let ask = ask("look", &json!({}));
            return Ask { args, ..ask };
        }
        _ => {}
    }
    // Without a preference most sessions would have no hold and no doubt.
    let touches = |spec: &&ToolSpec| PREFERRED.contains(&&*spec.name);
    let touching: Vec<&ToolSpec> = offered.iter().filter(touches).collect();
    let all: Vec<&ToolSpec> = offered.iter().collect();
    let touched = dice.percent(35) && !touching.is_empty();
    let spec = dice.pick(if touched { &touching } else { &all });
    let Some(spec) = spec else {
        return ask("look", &json!({}));
    };
    let schema: Json = serde_json::from_str(&spec.parameters).unwrap();
    let fields = schema["properties"].as_object();
    let fields = fields.into_iter().flat_map(|fields| fields.keys());
    let args = fields.map(|field| (field.clone(), argument(dice, field)));
    ask(&spec.name, &Json::Object(args.collect()))
}

/// Tools whose calls are held, repeated or in doubt, or after which more happens.
const PREFERRED: [&str; 6] = ["mail", "pay", "guarded", "pay_asked", "note", "tell"];

/// Returns a value for a parameter of this name.
fn argument(dice: &mut Dice, name: &str) -> Json {
    match name {
        "cents" | "eyes" | "value" => json!(1 + dice.below(3)),
        "instructions" => json!(["One way.", "Another."]),
        "name" => json!(if dice.percent(50) { "ann" } else { "bob" }),
        "to" => json!(if dice.percent(50) { "first" } else { "second" }),
        "mood" => json!("glad"),
        name => json!(format!("The {name}.")),
    }
}

/// Native tools with random outcomes. The field is the seed of the session.
pub(super) struct Things(pub(super) u64);

impl Toolset for Things {
    fn has(&self, network: &Network, tool: &str) -> bool {
        let def = network.tools.get(tool);
        def.is_some_and(|tool| matches!(tool.source, Source::Native { .. }))
    }

    fn run<'a>(&'a self, run: &'a ToolRun, _: &'a CancellationToken) -> Boxed<'a, Raw> {
        let (line, k) = (run.effect.line().0, u64::from(run.effect.k()));
        let place = (line << 20) + (k << 8) + u64::from(run.attempt);
        let mut dice = Dice::new(self.0.wrapping_mul(0x9e37_79b9).wrapping_add(place));
        let raw = match dice.below(10) {
            0..7 => Raw::Done(given(&mut dice, &run.work.tool)),
            7 => Raw::NotPerformed(Fault::new("failed", "it broke")),
            8 => Raw::NotPerformed(Fault {
                again: Some(100_000),
                ..Fault::new("http_429", "later")
            }),
            _ => Raw::Unknown(Fault::new("timeout", "no answer")),
        };
        Box::pin(std::future::ready(raw))
    }
}

/// Returns the result of a tool. Some numbers are near the end of their range; some texts are so long that they become blobs.
fn given(dice: &mut Dice, tool: &str) -> Json {
    match tool {
        "heap" => json!("x".repeat(dice.below(3) as usize * 9_000)),
        "add" if dice.percent(30) => json!(i64::MAX - dice.below(9).cast_signed()),
        "add" => json!(dice.below(9)),
        _ => json!(dice.below(4).to_string()),
    }
}
