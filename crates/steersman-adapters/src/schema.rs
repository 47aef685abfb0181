//! JSON Schema files: whether what a model gave fits them, told to the machine as a fact with the offer.
//!
//! Types that definitions write in short are the machine's own to check; this is for parameters and outputs whose type
//! is a file.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use steersman_machine::effect::Answer;
use steersman_machine::network::{Does, Network, Offer, Parameters, TypeKind};

/// Errors told of one value.
const TOLD_MAX: usize = 5;
/// Bytes told of one error.
const ERROR_MAX: usize = 300;

/// Checks values against schemas, which are compiled once.
#[derive(Default)]
pub struct Schemas {
    compiled: Mutex<BTreeMap<Arc<str>, Compiled>>,
}

type Compiled = Arc<Result<Validator, String>>;

impl Schemas {
    /// Fills in the misfits of an answer that this agent's model gave: of calls whose parameters are a schema, and of
    /// the text where the output is one. A misfit that is there stays.
    pub fn judge(&self, network: &Network, agent: &str, answer: &mut Answer) {
        let Some(agent) = network.agents.get(agent) else {
            return;
        };
        let Does::Model(model) = &agent.does else {
            return;
        };
        for ask in answer.asks.iter_mut().filter(|ask| ask.misfit.is_none()) {
            let used = model.tools.iter().find(|used| *used.seen == *ask.name);
            let parameters = used.and_then(|used| match &used.of {
                Offer::Tool(name) => network.tools.get(name).map(|tool| &tool.parameters),
                Offer::Agent(name) => network.agents.get(name).map(|agent| &agent.parameters),
            });
            if let Some(Parameters::Schema(schema)) = parameters {
                ask.misfit = self.misfit_of_text(schema, &ask.args);
            }
        }
        if let (Some(text), Some(output), None) = (&answer.text, &agent.output, &answer.misfit)
            && answer.asks.is_empty()
            && let TypeKind::Schema(schema) = &output.ty.kind
        {
            answer.misfit = self.misfit_of_text(schema, text);
        }
    }

    /// Why this value does not fit, for a model to read; none if it does.
    pub fn misfit(&self, schema: &Arc<str>, value: &Json) -> Option<String> {
        let compiled = self.compiled(schema);
        let validator = match &*compiled {
            Ok(validator) => validator,
            Err(problem) => return Some(format!("the schema itself cannot be used: {problem}")),
        };
        let mut errors = validator.iter_errors(value);
        let mut text = String::new();
        for error in errors.by_ref().take(TOLD_MAX) {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() {
                "the value"
            } else {
                &place
            };
            let told = crate::transport::clip(&error.to_string(), ERROR_MAX);
            let between = if text.is_empty() { "" } else { "; " };
            let _ = write!(text, "{between}{place}: {told}");
        }
        let more = errors.count();
        if more > 0 {
            let _ = write!(text, "; and {more} more");
        }
        (!text.is_empty()).then_some(text)
    }

    fn misfit_of_text(&self, schema: &Arc<str>, text: &str) -> Option<String> {
        match serde_json::from_str(text) {
            Ok(value) => self.misfit(schema, &value),
            Err(error) => Some(format!("it is not JSON: {error}")),
        }
    }

    fn compiled(&self, schema: &Arc<str>) -> Compiled {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = compiled.get(schema) {
            return Arc::clone(known);
        }
        let made = Arc::new(compile(schema));
        compiled.insert(Arc::clone(schema), Arc::clone(&made));
        made
    }
}

/// Why a schema cannot be used; none if it can. For `check`, before anything runs.
pub fn problem(schema: &str) -> Option<String> {
    compile(schema).err()
}

/// Nothing is fetched: a reference outside the file is an error. Patterns run in linear time.
fn compile(schema: &str) -> Result<Validator, String> {
    let schema =
        serde_json::from_str::<Json>(schema).map_err(|error| format!("it is not JSON: {error}"))?;
    jsonschema::options()
        .with_pattern_options(PatternOptions::regex())
        .build(&schema)
        .map_err(|error| crate::transport::clip(&error.to_string(), ERROR_MAX))
}
