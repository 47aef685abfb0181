//! JSON Schema checks of values from models and servers. The machine gets the result as a fact, with the offer.
//!
//! The machine itself checks types in the short form of definitions; this module is for parameters and outputs whose type is a
//! file with a JSON Schema, and for the schemas of MCP servers. An engine uses it as `options.judge`.
//!
//! A check by a schema from outside may take arbitrarily long, and the validator has no limit of its own. So schemas that
//! [`Bounded`] refuses are not compiled, and each check has a limited number of steps. Both happen on a few threads of their own:
//! neither a session nor anything else in the process waits for them.

use crate::masked::Mask;
use jsonschema::{Keyword, PatternOptions, Validator};
use serde_json::{Map, Value as Json};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use steersman_machine::values::schemas;
use steersman_machine::values::schemas::Bounded;
use steersman_runtime::Boxed;
use steersman_runtime::engine::Judge;
use tokio::sync::{Semaphore, oneshot};

/// Maximum number of errors reported for one value.
const TOLD_MAX: usize = 5;
/// Maximum number of bytes of one reported error.
const ERROR_MAX: usize = 300;
/// Maximum number of threads of this process that check at the same time.
const AT_ONCE: usize = 4;
/// Stack size of such a thread: a value may be nested 128 deep, and a chain of up to 32 schemas may apply at each level.
const STACK: usize = 64 << 20;
/// Maximum number of compiled schemas that are kept; above it all are dropped, and compiled again on demand.
const KEPT: usize = 256;
/// Number of steps that a check may take for a value of any size.
pub const STEPS: u64 = 500_000;
/// Number of additional steps for each byte of the value.
pub const STEPS_PER_BYTE: u64 = 2;

/// Name of the keyword that is added to each schema to count steps. No schema uses this name.
const COUNTED: &str = "x-steersman-counted";

static JUDGING: Semaphore = Semaphore::const_new(AT_ONCE);

thread_local! {
    /// Steps that are left for the value that this thread checks.
    static LEFT: Cell<u64> = const { Cell::new(0) };
}

/// Checks values against schemas, which are compiled once.
#[derive(Default)]
pub struct Schemas {
    compiled: Arc<Mutex<BTreeMap<Arc<str>, Compiled>>>,
}

type Compiled = Arc<Result<Validator, String>>;

impl Schemas {
    /// Returns a description of what does not fit, without the secrets of `mask`; `None` if the value fits.
    pub(crate) async fn misfit_masked(
        &self,
        schema: &Arc<str>,
        value: Json,
        mask: &Mask,
    ) -> Option<String> {
        let (known, schema, mask) = (Arc::clone(&self.compiled), Arc::clone(schema), mask.clone());
        let told = apart(move || {
            let validator = compiled(&known, &schema);
            match &*validator {
                Ok(validator) => misfit(validator, &value, &mask),
                Err(problem) => Some(format!("the schema itself cannot be used: {problem}")),
            }
        });
        told.await.unwrap_or_else(Some)
    }
}

impl Judge for Schemas {
    fn misfit<'a>(&'a self, schema: &'a Arc<str>, json: Json) -> Boxed<'a, Option<String>> {
        Box::pin(async move { self.misfit_masked(schema, json, &Mask::default()).await })
    }
}

/// Returns the reason why a schema cannot be used; `None` if it can. Used to check a list of tools before any of them runs.
pub async fn problem(schema: Json) -> Option<String> {
    let told = apart(move || compile(&schema).err());
    told.await.unwrap_or_else(Some)
}

/// Runs work on a thread of its own, as soon as fewer than [`AT_ONCE`] of these threads are busy.
///
/// # Errors
/// The reason why it cannot be run, as text for people.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    let permit = JUDGING.acquire().await;
    let (send, receive) = oneshot::channel();
    let run = move || {
        // The caller may be gone. The permit is held until the work is over.
        let _permit = permit;
        let _ = send.send(work());
    };
    let thread = thread::Builder::new().name("schema".to_owned());
    if let Err(error) = thread.stack_size(STACK).spawn(run) {
        return Err(format!("it could not be checked: no thread: {error}"));
    }
    let gone = |_| "it could not be checked: the check ended without an answer".to_owned();
    receive.await.map_err(gone)
}

fn compiled(known: &Mutex<BTreeMap<Arc<str>, Compiled>>, schema: &Arc<str>) -> Compiled {
    let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = lock().get(schema) {
        return Arc::clone(known);
    }
    let read =
        serde_json::from_str::<Json>(schema).map_err(|error| format!("it is not JSON: {error}"));
    let made = Arc::new(read.and_then(|schema| compile(&schema)));
    let mut known = lock();
    if known.len() >= KEPT {
        known.clear();
    }
    known.insert(Arc::clone(schema), Arc::clone(&made));
    made
}

/// Compiles a schema. Nothing is fetched: a reference outside the file is an error. Patterns run in linear time.
fn compile(schema: &Json) -> Result<Validator, String> {
    let bounded = Bounded::of(schema)?;
    let mut counted = schema.clone();
    for place in bounded.places() {
        if let Some(Json::Object(schema)) = counted.pointer_mut(place) {
            schema.insert(COUNTED.to_owned(), Json::Bool(true));
        }
    }
    let patterns = PatternOptions::regex()
        .size_limit(schemas::COMPILED)
        .dfa_size_limit(schemas::COMPILED);
    jsonschema::options()
        .with_pattern_options(patterns)
        .with_keyword(COUNTED, |schema, _, _| Ok(Box::new(Counter::of(schema))))
        .build(&counted)
        .map_err(|error| Mask::default().first(&error.to_string(), ERROR_MAX))
}

/// Checks a value on this thread; returns a description of what does not fit.
fn misfit(validator: &Validator, value: &Json, mask: &Mask) -> Option<String> {
    let steps = STEPS + STEPS_PER_BYTE.saturating_mul(size(value));
    LEFT.set(steps);
    // The validator can be stopped only by unwinding. That is safe, because none of its state is used afterwards.
    match catch_unwind(AssertUnwindSafe(|| errors(validator, value, mask))) {
        Ok(told) => told,
        Err(left) if left.is::<Exhausted>() => Some(format!(
            "it cannot be checked: this schema takes more than {steps} steps for it"
        )),
        Err(panicked) => resume_unwind(panicked),
    }
}

fn errors(validator: &Validator, value: &Json, mask: &Mask) -> Option<String> {
    let mut errors = validator.iter_errors(value);
    let mut text = String::new();
    for error in errors.by_ref().take(TOLD_MAX) {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() {
            "the value"
        } else {
            &place
        };
        // A long error is told without the value that it quotes: cutting the quote would not help, and could leave half a secret.
        let mut told = mask.piece(&error.to_string());
        if told.len() > ERROR_MAX {
            told = mask.first(&error.masked().to_string(), ERROR_MAX);
        }
        let between = if text.is_empty() { "" } else { "; " };
        let _ = write!(text, "{between}{place}: {told}");
    }
    let more = errors.count();
    if more > 0 {
        let _ = write!(text, "; and {more} more");
    }
    (!text.is_empty()).then_some(text)
}

/// No steps are left.
struct Exhausted;

/// Keyword in each schema that counts the steps of its checks.
struct Counter {
    /// Steps for each value: one, one for each name or pattern that it is compared with, and one for each 16 bytes of `enum` and
    /// `const`.
    each: u64,
    /// Steps for each field or item of a value, and for each 64 bytes of a text.
    part: u64,
    /// True if the schema compares all items with each other, at any depth. This takes one step more for each 16 bytes of the items.
    unique: bool,
}

impl Counter {
    fn of(schema: &Map<String, Json>) -> Self {
        let of = |word: &str| match schema.get(word) {
            Some(Json::Array(list)) => list.len() as u64,
            Some(Json::Object(map)) => map.len() as u64,
            Some(_) => 1,
            None => 0,
        };
        let whole = |word: &str| schema.get(word).map_or(0, |value| size(value) / 16);
        let fixed = [
            "required",
            "properties",
            "dependentRequired",
            "dependencies",
        ];
        Self {
            each: 1 + fixed.into_iter().map(of).sum::<u64>() + whole("enum") + whole("const"),
            part: 1 + of("patternProperties") + of("pattern"),
            unique: schema.get("uniqueItems") == Some(&Json::Bool(true)),
        }
    }

    fn count(&self, value: &Json) {
        let parts = match value {
            Json::Array(list) if self.unique => size(value) / 16 + list.len() as u64,
            Json::Array(list) => list.len() as u64,
            Json::Object(map) => map.len() as u64,
            Json::String(text) => text.len() as u64 / 64,
            Json::Null | Json::Bool(_) | Json::Number(_) => 0,
        };
        let steps = self.each.saturating_add(self.part.saturating_mul(parts));
        let left = LEFT.get().checked_sub(steps);
        LEFT.set(left.unwrap_or(0));
        if left.is_none() {
            resume_unwind(Box::new(Exhausted));
        }
    }
}

impl<'i> Keyword<'i> for Counter {
    fn validate(&self, value: &'i Json) -> Result<(), jsonschema::ValidationError<'i>> {
        self.count(value);
        Ok(())
    }
    fn is_valid(&self, value: &'i Json) -> bool {
        self.count(value);
        true
    }
}

/// Returns the approximate size of a value as JSON, in bytes.
fn size(value: &Json) -> u64 {
    let mut sum = 0_u64;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        sum += 2;
        match value {
            Json::String(text) => sum += text.len() as u64,
            Json::Array(list) => open.extend(list),
            Json::Object(map) => {
                sum += map.keys().map(|key| key.len() as u64).sum::<u64>();
                open.extend(map.values());
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }
    sum
}
