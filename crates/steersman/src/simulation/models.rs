//! Models that answer at random. An answer follows from the seed and the call, so a call that is repeated gets the same one.

use super::clock::Jumping;
use super::dice::Dice;
use super::json::Values;
use super::stubs::Stubs;
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::Arc;
use steersman_definition::test::Answer as Scripted;
use steersman_machine::context::{Content, Request};
use steersman_machine::network::{Network, ToolChoice};
use steersman_machine::questions::{Purpose, ToolSpec, judgement};
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::commit::Usage;
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::outcome::{Answer, Ask, Failure, Retry};
use steersman_runtime::clock::Clock as _;
use steersman_runtime::model::{BoundModel, Delta, Model, ModelCall, Models, ModelsError, Sink};
use steersman_runtime::{Boxed, Env};
use tokio_util::sync::CancellationToken;

/// Bytes of the longest text.
const HUGE: usize = 60_000;

/// The catalog: every name of a network is such a model.
#[derive(Clone)]
pub(super) struct Random {
    pub(super) seed: u64,
    /// They lie: wrong names and arguments, failures, no answer.
    pub(super) lies: bool,
    pub(super) clock: Jumping,
    pub(super) stubs: Arc<Stubs>,
    /// The names of all agents.
    pub(super) agents: Arc<[Name]>,
}

impl Models for Random {
    fn resolve<'a>(
        &'a self,
        network: &'a Network,
        _: &'a Env,
        _: &'a Path,
    ) -> Boxed<'a, Result<Vec<BoundModel>, ModelsError>> {
        let bound = network.models.iter().map(|(name, def)| BoundModel {
            name: name.clone(),
            provider: "simulated".into(),
            model: def.named().map(str::to_owned),
            ..BoundModel::default()
        });
        Box::pin(std::future::ready(Ok(bound.collect())))
    }

    fn model(&self, _: &BoundModel) -> Result<Arc<dyn Model>, ModelsError> {
        Ok(Arc::new(self.clone()))
    }
}

impl Model for Random {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a dyn Sink,
        cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let attempt = u64::from(call.attempt);
            let mut dice = Dice::of(&[self.seed, call.seed, attempt]);
            let waits = match dice.below(20) {
                0..8 => 0,
                8..15 => dice.below(50),
                15..19 => dice.below(20_000),
                // Nothing comes before the time is over.
                _ if self.lies => u64::MAX >> 1,
                _ => 1,
            };
            if waits > 0 {
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => {
                        return Err(Failure::new(FailureCode::Cancelled, "it was cut off"));
                    }
                    () = self.clock.sleep(waits) => {}
                }
            }
            if self.lies && dice.percent(6) {
                return Err(failure(&mut dice));
            }
            let said = call
                .request
                .segments
                .iter()
                .filter_map(|s| match &s.content {
                    Content::User(text) | Content::Result { text, .. } => Some(&**text),
                    _ => None,
                });
            let values = self.stubs.values.and_said(said);
            let mind = Mind { of: self, values };
            let mut answer = mind.answer(&mut dice, call);
            // Drawn for itself: the rest of a session is the same with any usage.
            let spends_all = Dice::of(&[self.seed, call.seed, attempt, 1]).percent(10);
            answer.usage = usage(&call.request, &answer, spends_all);
            if let Some(text) = answer.text.as_ref().filter(|_| dice.percent(30)) {
                for piece in text.as_bytes().chunks(40).take(4) {
                    let piece = String::from_utf8_lossy(piece).into_owned();
                    sink.delta(Delta::Text(piece));
                }
            }
            Ok(answer)
        })
    }

    fn label(&self) -> Name {
        "simulated".into()
    }
}

/// Returns what the call cost: never more than it may. `spends_all`: as much as it may, as a model that reasons for long does.
fn usage(request: &Request, answer: &Answer, spends_all: bool) -> Usage {
    let sent: u64 = request.segments.iter().map(|segment| segment.len).sum();
    let named = |name: &str| matches!(name, "max_tokens" | "max_completion_tokens");
    let most = request.params.iter().find(|(name, _)| named(name));
    let most = most.and_then(|(_, most)| most.as_u64()).unwrap_or(1_000);
    let text = answer.text.as_ref().map_or(0, String::len);
    let asks: usize = answer.asks.iter().map(|ask| ask.args.len()).sum();
    let written = if spends_all {
        most
    } else {
        (text + asks) as u64 / 4
    };
    Usage {
        input: (sent / 8).max(1),
        output: written.clamp(1, most.max(1)),
        ..Usage::default()
    }
}

fn failure(dice: &mut Dice) -> Failure {
    let (code, retry) = match dice.below(5) {
        0 => ("provider_overloaded", Retry::Policy),
        1 => ("provider_overloaded", Retry::After(90_000)),
        2 => ("unreachable", Retry::Policy),
        3 => ("refused", Retry::Never),
        _ => ("failed", Retry::Policy),
    };
    Failure {
        code: code.to_owned(),
        message: "it does not answer".to_owned(),
        retry,
    }
}

fn said(text: impl Into<String>) -> Answer {
    Answer {
        text: Some(text.into()),
        ..Answer::default()
    }
}

fn ask(name: &str, args: String) -> Ask {
    Ask {
        name: name.to_owned(),
        label: None,
        args,
        misfit: None,
    }
}

/// The material of which a model makes an answer.
struct Mind<'a> {
    of: &'a Random,
    /// The values of the definition and of the conversation.
    values: Values,
}

impl Mind<'_> {
    fn answer(&self, dice: &mut Dice, call: &ModelCall) -> Answer {
        let request = &call.request;
        let last = request
            .segments
            .iter()
            .rev()
            .find_map(|s| match &s.content {
                Content::User(text) => Some(text),
                _ => None,
            });
        let judges = last.is_some_and(|text| text.contains("`accept`"));
        match request.purpose {
            Purpose::Answer if judges => match dice.below(10) {
                0 if self.of.lies => said("Hm."),
                0..3 => said(judgement::revise("Say it better.")),
                _ => said(judgement::accept()),
            },
            Purpose::Answer => self.thought(dice, call),
            Purpose::Decision => self.decision(dice, request),
            Purpose::Extract => match &request.output {
                Some(schema) => self.structured(dice, schema),
                None => said(self.values.any(dice, 0).to_string()),
            },
            Purpose::Continue => said("Go on with the rest."),
            Purpose::Summary | Purpose::Compact => match dice.below(6) {
                0 if self.of.lies => said(" "),
                n => said(format!("It was about {n}.")),
            },
        }
    }

    /// Returns an answer of an agent: one of the tests' answers, or one made of what it is offered.
    fn thought(&self, dice: &mut Dice, call: &ModelCall) -> Answer {
        let request = &call.request;
        let scripted = self.of.stubs.answers.get(&*call.def);
        if let Some(scripted) = dice.pick(scripted.map_or(&[][..], Vec::as_slice)).cloned()
            && dice.percent(40)
        {
            return written(&scripted, dice.roll());
        }
        let offered = request.segments.iter().find_map(|s| match &s.content {
            Content::Tools(tools) => Some(&tools[..]),
            _ => None,
        });
        let offered = offered.unwrap_or_default();
        let must = match &request.choice {
            ToolChoice::None => false,
            ToolChoice::Auto => !offered.is_empty() && dice.percent(60),
            _ => !offered.is_empty(),
        };
        if must {
            let mut asks: Vec<Ask> = (0..=dice.below(3) / 2)
                .map(|_| self.asked(dice, offered))
                .collect();
            if self.of.lies && dice.percent(6) {
                asks.extend(asks.first().cloned());
            }
            if self.of.lies && dice.percent(6) {
                for ask in &mut asks {
                    ask.label = Some("call_0".to_owned());
                }
            }
            let text = dice.percent(30).then(|| "Let me see.".to_owned());
            return Answer {
                text,
                asks,
                ..Answer::default()
            };
        }
        if let Some(schema) = &request.output {
            return self.structured(dice, schema);
        }
        match dice.below(20) {
            0 if self.of.lies => said(""),
            1 if self.of.lies => said("x".repeat(HUGE)),
            2 if self.of.lies => Answer {
                cut: true,
                ..said("And then")
            },
            _ => said(self.values.text(dice)),
        }
    }

    fn structured(&self, dice: &mut Dice, schema: &str) -> Answer {
        if self.of.lies && dice.percent(10) {
            return said("{ no json");
        }
        let schema = serde_json::from_str(schema).unwrap_or_default();
        said(self.values.fitting(dice, &schema, self.of.lies).to_string())
    }

    /// Returns an answer of a model that routes.
    fn decision(&self, dice: &mut Dice, request: &Request) -> Answer {
        let offered = request.segments.iter().find_map(|s| match &s.content {
            Content::Tools(tools) => Some(&tools[..]),
            _ => None,
        });
        if let Some(offered) = offered
            && dice.percent(70)
        {
            let asks = vec![self.asked(dice, offered)];
            return Answer {
                asks,
                ..Answer::default()
            };
        }
        if let Some(schema) = &request.output {
            return self.structured(dice, schema);
        }
        match dice.below(10) {
            0 if self.of.lies => said(""),
            1 | 2 => said("finish"),
            3 => said(dice.below(4).to_string()),
            _ => said(&**dice.pick(&self.of.agents).unwrap_or(&Name::default())),
        }
    }

    /// Returns a call of a tool that is offered. Some calls of a model that lies name no tool, or have wrong arguments.
    fn asked(&self, dice: &mut Dice, offered: &[ToolSpec]) -> Ask {
        let Some(spec) = dice.pick(offered) else {
            return ask("frobnicate", json!({}).to_string());
        };
        if self.of.lies {
            match dice.below(40) {
                0 => return ask("frobnicate", json!({}).to_string()),
                1 => return ask(&spec.name, "{ not json".to_owned()),
                2 => return ask(&spec.name, self.values.any(dice, 0).to_string()),
                _ => {}
            }
        }
        let schema = serde_json::from_str(&spec.parameters).unwrap_or_default();
        let args = match self.values.fitting(dice, &schema, self.of.lies) {
            Json::Object(args) => Json::Object(args),
            _ => json!({}),
        };
        ask(&spec.name, args.to_string())
    }
}

/// Converts an answer of a test. Templates read nothing here, so texts with templates stay as they are written.
fn written(scripted: &Scripted, seed: u64) -> Answer {
    let scripted = scripted.drawn(seed);
    let text = match (&scripted.output, scripted.verdict()) {
        (Some(output), _) => Some(output.to_string()),
        (None, Some(verdict)) => Some(verdict),
        (None, None) => scripted.text.as_ref().map(|text| text.source.to_string()),
    };
    let calls = scripted.calls.iter();
    Answer {
        text,
        asks: calls
            .map(|(name, args)| ask(name, args.to_string()))
            .collect(),
        ..Answer::default()
    }
}
