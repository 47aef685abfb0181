//! JSON Schema files: whether what a model gave fits them, told to the machine as a fact with the offer.
//!
//! Types that definitions write in short are the machine's own to check; this is for parameters and outputs whose type
//! is a file. An engine judges with it as `options.judge`.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use steersman_runtime::engine::Judge;

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
    fn told(&self, schema: &str, value: &Json) -> Option<String> {
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

    fn compiled(&self, schema: &str) -> Compiled {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = compiled.get(schema) {
            return Arc::clone(known);
        }
        let made = Arc::new(compile(schema));
        compiled.insert(schema.into(), Arc::clone(&made));
        made
    }
}

impl Judge for Schemas {
    fn misfit(&self, schema: &str, json: &Json) -> Option<String> {
        self.told(schema, json)
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
