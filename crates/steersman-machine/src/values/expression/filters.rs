//! Filters and tests. Most filters are minijinja's own functions. Filters of minijinja that would compare unlike
//! kinds are replaced, or are called only after a check that their input is of one kind.

use super::ast::BinaryOp;
use super::kind::Kind;
use super::meter::{Meter, Rate};
use super::ops::{self, Num, Refused};
use super::{to_json, value};
use crate::stored::ids::Name;
use minijinja::value::Kwargs;
use minijinja::{Environment, UndefinedBehavior, Value};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Names of the filters, sorted.
pub(super) const NAMES: &[&str] = &[
    "abs",
    "attr",
    "batch",
    "bool",
    "capitalize",
    "cents",
    "chain",
    "close",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "first",
    "float",
    "groupby",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "raw",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "slice",
    "sort",
    "split",
    "string",
    "sum",
    "title",
    "tojson",
    "trim",
    "unique",
    "upper",
    "urlencode",
    "zip",
];

/// Names of the tests, sorted.
pub(super) const TESTS: &[&str] = &[
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "equalto",
    "even",
    "false",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "int",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "sequence",
    "startingwith",
    "string",
    "true",
    "undefined",
    "upper",
];

/// Largest number in the arguments of the filters for which numbers are counts.
const MAX_COUNT: u16 = 10_000;
/// Filters whose arguments may be any number. In the arguments of all other filters, numbers are at most [`MAX_COUNT`].
const ANY_NUMBER: &[&str] = &[
    "attr",
    "chain",
    "close",
    "d",
    "default",
    "float",
    "int",
    "map",
    "reject",
    "rejectattr",
    "select",
    "selectattr",
    "zip",
];

type Applied = Result<Value, String>;

fn stock() -> &'static Environment<'static> {
    static STOCK: OnceLock<Environment<'static>> = OnceLock::new();
    STOCK.get_or_init(|| {
        let mut stock = Environment::new();
        stock.set_undefined_behavior(UndefinedBehavior::Strict);
        stock
    })
}

/// Arguments of a filter.
struct Given<'a> {
    args: &'a [Value],
    named: &'a [(Name, Value)],
}

impl<'a> Given<'a> {
    fn named(&self, name: &str) -> Option<&'a Value> {
        let found = self.named.iter().find(|(n, _)| &**n == name);
        found.map(|(_, value)| value)
    }
    /// Iterates over all arguments, by position and by name.
    fn all(&self) -> impl Iterator<Item = &'a Value> {
        let named = self.named.iter().map(|(_, value)| value);
        self.args.iter().chain(named)
    }
    /// Returns an argument by its name, else by its position.
    fn get(&self, name: &str, at: usize) -> Option<&'a Value> {
        self.named(name).or_else(|| self.args.get(at))
    }
}

/// Applies a filter. Every application passes through here: it pays for the values that the filter reads before it runs, and
/// for the value that it makes afterwards. The evaluator passes undefined values only to `default`, and none only to `default`
/// and `tojson`; `map` passes every element that is no secret.
pub(super) fn apply(
    meter: &Meter,
    name: &str,
    input: &Value,
    args: &[Value],
    named: &[(Name, Value)],
) -> Applied {
    let given = Given { args, named };
    counts_fit(name, &given)?;
    pay(meter, name, input, &given).map_err(message)?;
    let value = meter.within(|| run(meter, name, input, &given))?;
    value::made(meter, value).map_err(message)
}

/// Refuses counts among the arguments that are too large.
fn counts_fit(name: &str, given: &Given<'_>) -> Result<(), String> {
    let fits = |value: &Value| match (Kind::of(value), Num::of(value)) {
        (_, Some(Num::Int(n))) => n.unsigned_abs() <= u128::from(MAX_COUNT),
        (_, Some(Num::Float(x))) => x.abs() <= f64::from(MAX_COUNT),
        // An integer beyond 128 bits.
        (Kind::Number, None) => false,
        _ => true,
    };
    if ANY_NUMBER.contains(&name) || given.all().all(fits) {
        return Ok(());
    }
    Err(format!("numbers here are at most {MAX_COUNT}"))
}

/// Pays for the values that a filter reads. Filters that are not listed pay for all values in full, at the highest rate.
fn pay(meter: &Meter, name: &str, input: &Value, given: &Given<'_>) -> Result<(), Refused> {
    meter.steps(1)?;
    let all = || std::iter::once(input).chain(given.all());
    let kind = Kind::of(input);
    match name {
        // These return one of their values, or pay for each element when they reach it.
        "attr" | "bool" | "chain" | "count" | "d" | "default" | "join" | "length" | "map"
        | "raw" | "reject" | "rejectattr" | "select" | "selectattr" | "string" | "sum"
        | "tojson" | "dictsort" | "groupby" | "max" | "min" | "sort" | "unique" => Ok(()),
        "first" | "last" if kind != Kind::Map => Ok(()),
        // These return elements without reading their contents.
        "batch" | "first" | "items" | "last" | "list" | "slice" | "zip" => {
            all().try_for_each(|value| meter.shallow(value))
        }
        "reverse" if kind != Kind::Text => meter.shallow(input),
        "lower" | "upper" | "capitalize" | "safe" | "replace" | "indent" => {
            all().try_for_each(|value| meter.deep(value, Rate::Look))
        }
        "trim" => {
            // Each character is compared with those that are trimmed.
            let (len, among) = (length(input), given.all().map(length).sum::<usize>());
            meter.deep(input, Rate::Look)?;
            meter.bytes(len.saturating_mul(among), Rate::Copy)
        }
        "round" => {
            let digits = given
                .all()
                .filter_map(Value::as_i64)
                .max_by_key(|n| n.abs());
            // A fraction is written with all its digits, up to a thousand.
            meter.steps(match digits.unwrap_or(0) {
                n @ 0.. => n.unsigned_abs() / 8,
                _ => 128,
            })
        }
        _ => all().try_for_each(|value| meter.deep(value, Rate::Chars)),
    }
}

fn length(value: &Value) -> usize {
    value.as_str().map_or(0, str::len)
}

fn run(meter: &Meter, name: &str, input: &Value, given: &Given<'_>) -> Applied {
    let (args, named) = (given.args, given.named);
    match name {
        "cents" => cents(input),
        "close" => close(meter, input, given),
        "raw" => plain(meter, input).map(|text| Value::from_safe_string(text.into_owned())),
        "default" | "d" => {
            let empty = given.get("boolean", 1).is_some_and(Value::is_true) && !input.is_true();
            if empty || matches!(Kind::of(input), Kind::Undefined | Kind::None) {
                let fallback = given.get("value", 0).cloned();
                return Ok(fallback.unwrap_or_else(|| Value::from("")));
            }
            Ok(input.clone())
        }
        "tojson" => {
            let pretty = given.get("indent", 0).is_some_and(Value::is_true);
            let paid = if pretty {
                meter.pretty(input)
            } else {
                meter.deep(input, Rate::Write)
            };
            paid.map_err(message)?;
            let json = value::shown_json(&to_json(input)?);
            if pretty {
                let pretty = serde_json::to_string_pretty(&json);
                return pretty.map(Value::from).map_err(|e| e.to_string());
            }
            Ok(Value::from(json.to_string()))
        }
        "string" => plain(meter, input).map(|text| Value::from(&*text)),
        "count" | "length" => match (input.as_str(), Kind::of(input), input.len()) {
            (Some(text), ..) => {
                meter.bytes(text.len(), Rate::Copy).map_err(message)?;
                Ok(Value::from(text.chars().count()))
            }
            (None, Kind::List | Kind::Map, Some(len)) => Ok(Value::from(len)),
            (None, Kind::List | Kind::Map, None) => Ok(Value::from(
                ops::items(meter, input).map_err(message)?.len(),
            )),
            (None, kind, _) => Err(format!("{kind} has no length")),
        },
        "select" | "reject" => {
            let (test, rest) = split_test(args)?;
            picked(meter, input, name == "select", |item| {
                check(meter, test, item, rest)
            })
        }
        "selectattr" | "rejectattr" => {
            let Some((attribute, rest)) = args.split_first() else {
                return Err("takes the name of a field".to_owned());
            };
            let (test, rest) = split_test(rest)?;
            picked(meter, input, name == "selectattr", |item| {
                check(meter, test, &field(meter, item, attribute)?, rest)
            })
        }
        "map" => mapped(meter, input, args, named),
        "sum" => sum(meter, input, given.get("attribute", 0)),
        "join" => joined(meter, input, given.get("d", 0), given.get("attribute", 1)),
        "replace" => replaced(meter, input, args),
        "chain" => chained(meter, input, args),
        _ => bounded(meter, name, input, given),
    }
}

/// Calls minijinja's filter, after a check that the input is of one kind and that the result is not too large.
fn bounded(meter: &Meter, name: &str, input: &Value, given: &Given<'_>) -> Applied {
    match name {
        "sort" | "min" | "max" => one_kind(meter, input, given.named("attribute"), true)?,
        "unique" => one_kind(meter, input, given.named("attribute"), false)?,
        "groupby" => one_kind(meter, input, given.get("attribute", 0), false)?,
        "dictsort" => {
            let entries = ops::entries(meter, input).map_err(message)?;
            let by_value = given.get("by", 1).and_then(Value::as_str) == Some("value");
            let by = entries
                .into_iter()
                .map(|(key, item)| if by_value { item } else { key });
            alike(meter, by.collect(), by_value)?;
        }
        "split" | "lines" => {
            let text = input.as_str().unwrap_or("");
            let between = match name {
                "lines" => Some("\n"),
                _ => given.args.first().and_then(Value::as_str),
            };
            let pieces = match between {
                Some(between) => text.matches(between).count(),
                None => text.split_whitespace().count(),
            };
            meter.elements(pieces as u64 + 1).map_err(message)?;
        }
        "indent" => {
            let text = input.as_str().unwrap_or("");
            let width = given.get("width", 0).and_then(Value::as_usize).unwrap_or(4);
            let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
            let made = lines.saturating_mul(width).saturating_add(text.len());
            meter.text(made).map_err(message)?;
        }
        "batch" | "slice" => {
            let count = given.args.first().and_then(Value::as_i64).unwrap_or(0);
            meter.elements(count.unsigned_abs()).map_err(message)?;
        }
        _ => {}
    }
    builtin(name, input, given.args, given.named)
}

fn close(meter: &Meter, input: &Value, given: &Given<'_>) -> Applied {
    let (Some(y), Some(by)) = (given.get("y", 0), given.get("by", 1)) else {
        return Err("takes a number and the largest difference".to_owned());
    };
    let off = ops::arithmetic(meter, BinaryOp::Sub, input, y).map_err(message)?;
    let back = ops::negate(&off).map_err(message)?;
    let near = |off| {
        ops::order(meter, off, by)
            .map(Ordering::is_le)
            .map_err(message)
    };
    Ok(Value::from(near(&off)? && near(&back)?))
}

fn sum(meter: &Meter, input: &Value, attribute: Option<&Value>) -> Applied {
    let mut total = Value::from(0);
    for item in ops::items(meter, input).map_err(message)? {
        let item = match attribute {
            Some(attribute) => field(meter, &item, attribute)?,
            None => item,
        };
        total = ops::arithmetic(meter, BinaryOp::Add, &total, &item).map_err(message)?;
    }
    Ok(total)
}

fn replaced(meter: &Meter, input: &Value, args: &[Value]) -> Applied {
    let text = |n: usize| args.get(n).and_then(Value::as_str);
    let (Some(input), Some(from), Some(to)) = (input.as_str(), text(0), text(1)) else {
        return Err("takes a text and two texts".to_owned());
    };
    let places = input.matches(from).count();
    meter.places(places).map_err(message)?;
    let more = places.saturating_mul(to.len());
    meter
        .text(input.len().saturating_add(more))
        .map_err(message)?;
    Ok(Value::from(input.replace(from, to)))
}

/// Merges objects, with the later ones winning, or appends lists.
fn chained(meter: &Meter, input: &Value, args: &[Value]) -> Applied {
    let all = || std::iter::once(input).chain(args);
    if all().all(|value| Kind::of(value) == Kind::Map) {
        let mut pairs = BTreeMap::new();
        for map in all() {
            pairs.extend(ops::entries(meter, map).map_err(message)?);
        }
        return value::map(meter, pairs.into_iter().collect()).map_err(message);
    }
    let mut items = Vec::new();
    for list in all() {
        items.extend(ops::items(meter, list).map_err(message)?);
    }
    value::list(meter, items).map_err(message)
}

fn builtin(name: &str, input: &Value, args: &[Value], named: &[(Name, Value)]) -> Applied {
    let mut all = Vec::with_capacity(args.len() + 2);
    all.push(input.clone());
    all.extend_from_slice(args);
    if !named.is_empty() {
        let named: Kwargs = named
            .iter()
            .map(|(name, value)| (name.to_string(), value.clone()))
            .collect();
        all.push(Value::from(named));
    }
    let applied = stock().empty_state().apply_filter(name, &all);
    applied.map_err(|error| {
        // The error may quote a value, and a value may be a secret.
        let quotes = |detail: &str| {
            let mut texts = all.iter().filter_map(Value::as_str);
            texts.any(|text| !text.is_empty() && detail.contains(text))
        };
        match error.detail() {
            Some(detail) if !quotes(detail) => detail.to_owned(),
            _ => error.kind().to_string(),
        }
    })
}

fn message(refused: Refused) -> String {
    match refused {
        Refused::Unlike(a, b) => format!("{a} and {b} are unlike kinds"),
        Refused::Never(kind) => format!("it takes no value that is {kind}"),
        Refused::Failed(why) => why.to_owned(),
        // The caller asks the meter for the reason.
        Refused::Ended => "the evaluation ends here".to_owned(),
    }
}

fn cents(input: &Value) -> Applied {
    match Num::of(input) {
        Some(Num::Int(n)) => {
            let sign = if n < 0 { "-" } else { "" };
            let n = n.unsigned_abs();
            Ok(Value::from(format!("{sign}{}.{:02}", n / 100, n % 100)))
        }
        _ => Err(format!(
            "amounts are integers; this is {}",
            match Kind::of(input) {
                Kind::Number => "a fraction".to_owned(),
                kind => kind.to_string(),
            }
        )),
    }
}

/// Returns a value as text, as `{{ }}` writes it.
pub(super) fn plain<'v>(meter: &Meter, input: &'v Value) -> Result<Cow<'v, str>, String> {
    Ok(match Kind::of(input) {
        Kind::Text => Cow::Borrowed(input.as_str().unwrap_or("")),
        Kind::Boolean => Cow::Owned(input.is_true().to_string()),
        Kind::Number => Cow::Owned(input.to_string()),
        Kind::None => Cow::Borrowed(""),
        _ => {
            meter.deep(input, Rate::Write).map_err(message)?;
            Cow::Owned(value::shown_json(&to_json(input)?).to_string())
        }
    })
}

fn field(meter: &Meter, item: &Value, path: &Value) -> Applied {
    let Some(path) = path.as_str() else {
        return Err("a field is named by a text".to_owned());
    };
    let mut at = item.clone();
    for name in path.split('.') {
        meter.steps(1).map_err(message)?;
        at = match Kind::of(&at) {
            Kind::Map => ops::entry(meter, &at, &Value::from(name)).map_err(message)?,
            kind => return Err(format!("{kind} has no field `{}`", shown(name))),
        };
        if at.is_undefined() {
            return Err(format!("an element has no field `{}`", shown(path)));
        }
    }
    Ok(at)
}

/// Returns a text, shortened for a message.
fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(80) {
        Some((at, _)) => Cow::Owned(format!("{}..", &text[..at])),
        None => Cow::Borrowed(text),
    }
}

/// Returns a value that was given as the name of a filter or a test, for a message.
fn name_shown(value: &Value) -> Cow<'_, str> {
    match value.as_str() {
        Some(name) => shown(name),
        None => Cow::Owned(Kind::of(value).to_string()),
    }
}

fn split_test(args: &[Value]) -> Result<(&str, &[Value]), String> {
    match args.split_first() {
        None => Ok(("", &[])),
        Some((name, rest)) => match name.as_str().filter(|n| TESTS.contains(n)) {
            Some(name) => Ok((name, rest)),
            None => Err(format!("there is no test {}", name_shown(name))),
        },
    }
}

fn check(meter: &Meter, test: &str, item: &Value, args: &[Value]) -> Result<bool, String> {
    match Kind::of(item) {
        Kind::Sealed if test != "none" => Err("a secret may only be tested for none".to_owned()),
        kind if test == "none" => Ok(kind == Kind::None),
        _ if test.is_empty() => Ok(item.is_true()),
        _ if test == "defined" || test == "undefined" => Ok(test == "defined"),
        _ => self::test(meter, test, item, args),
    }
}

fn picked(
    meter: &Meter,
    input: &Value,
    keep: bool,
    mut test: impl FnMut(&Value) -> Result<bool, String>,
) -> Applied {
    let mut out = Vec::new();
    for item in ops::items(meter, input).map_err(message)? {
        meter.steps(1).map_err(message)?;
        if test(&item)? == keep {
            out.push(item);
        }
    }
    value::list(meter, out).map_err(message)
}

fn mapped(meter: &Meter, input: &Value, args: &[Value], named: &[(Name, Value)]) -> Applied {
    let items = ops::items(meter, input).map_err(message)?;
    let attribute = named.iter().find(|(n, _)| &**n == "attribute");
    let fallback = named.iter().find(|(n, _)| &**n == "default");
    let out: Result<Vec<Value>, String> = match (attribute, args.split_first()) {
        (Some((_, attribute)), _) => items
            .iter()
            .map(|item| match (field(meter, item, attribute), fallback) {
                (Err(_), Some((_, fallback))) => Ok(fallback.clone()),
                (value, _) => value,
            })
            .collect(),
        (None, Some((name, rest))) => match name.as_str().filter(|n| NAMES.contains(n)) {
            Some(name) => items
                .iter()
                .map(|item| match Kind::of(item) {
                    Kind::Sealed => Err("a secret may only be tested for none".to_owned()),
                    _ => apply(meter, name, item, rest, named),
                })
                .collect(),
            None => Err(format!("there is no filter {}", name_shown(name))),
        },
        (None, None) => Err("takes the name of a filter, or attribute=".to_owned()),
    };
    value::list(meter, out?).map_err(message)
}

/// Checks that all elements (or their fields) are of one kind, and of an ordered kind if `ordered`.
fn one_kind(
    meter: &Meter,
    input: &Value,
    attribute: Option<&Value>,
    ordered: bool,
) -> Result<(), String> {
    let items = ops::items(meter, input).map_err(message)?.into_iter();
    let keys: Result<Vec<Value>, String> = match attribute {
        Some(attribute) => items.map(|item| field(meter, &item, attribute)).collect(),
        None => Ok(items.collect()),
    };
    alike(meter, keys?, ordered)
}

/// Checks that all keys are of one kind, and pays for sorting them.
fn alike(meter: &Meter, keys: Vec<Value>, ordered: bool) -> Result<(), String> {
    let mut weights = Vec::with_capacity(keys.len());
    for key in &keys {
        let fits = if ordered {
            ops::order(meter, &keys[0], key).map(drop)
        } else {
            ops::equal(meter, &keys[0], key).map(drop)
        };
        fits.map_err(message)?;
        weights.push(meter.weight(key).map_err(message)?);
    }
    let objects = keys.iter().any(|key| key.as_object().is_some());
    meter.sorting(&weights, objects).map_err(message)
}

fn joined(
    meter: &Meter,
    input: &Value,
    between: Option<&Value>,
    attribute: Option<&Value>,
) -> Applied {
    let between = match between {
        None => "",
        Some(text) => text.as_str().ok_or("the separator is a text")?,
    };
    let mut out = String::new();
    for (n, item) in ops::items(meter, input)
        .map_err(message)?
        .iter()
        .enumerate()
    {
        if n > 0 {
            out.push_str(between);
        }
        match attribute {
            Some(attribute) => out.push_str(&plain(meter, &field(meter, item, attribute)?)?),
            None => out.push_str(&plain(meter, item)?),
        }
        meter.fits(out.len()).map_err(message)?;
    }
    Ok(Value::from(out))
}

/// Returns true for the tests for equality. They also accept none.
pub(super) fn compares(name: &str) -> bool {
    matches!(name, "eq" | "equalto" | "ne")
}

/// Applies a test to a value that is defined and not a secret. Every application passes through here.
pub(super) fn test(
    meter: &Meter,
    name: &str,
    value: &Value,
    args: &[Value],
) -> Result<bool, String> {
    pay_test(meter, name, value, args).map_err(message)?;
    let one = || {
        args.first()
            .ok_or_else(|| "takes a value to compare with".to_owned())
    };
    let kind = Kind::of(value);
    let order = || ops::order(meter, value, one()?).map_err(message);
    Ok(match name {
        "boolean" => kind == Kind::Boolean,
        "number" => kind == Kind::Number,
        "integer" | "int" => kind == Kind::Number && value.is_integer(),
        "float" => kind == Kind::Number && !value.is_integer(),
        "string" => kind == Kind::Text,
        "sequence" => kind == Kind::List,
        "mapping" => kind == Kind::Map,
        "iterable" => matches!(kind, Kind::List | Kind::Map),
        "true" => kind == Kind::Boolean && value.is_true(),
        "false" => kind == Kind::Boolean && !value.is_true(),
        "odd" => whole(value)? % 2 != 0,
        "even" => whole(value)? % 2 == 0,
        "divisibleby" => match whole(one()?)? {
            0 => return Err("nothing is divisible by 0".to_owned()),
            n => whole(value)?.checked_rem(n).unwrap_or(0) == 0,
        },
        "startingwith" => text(value)?.starts_with(text(one()?)?),
        "endingwith" => text(value)?.ends_with(text(one()?)?),
        "lower" => !text(value)?.chars().any(char::is_uppercase),
        "upper" => !text(value)?.chars().any(char::is_lowercase),
        "eq" | "equalto" => ops::equal(meter, value, one()?).map_err(message)?,
        "ne" => !ops::equal(meter, value, one()?).map_err(message)?,
        "lt" | "lessthan" => order()?.is_lt(),
        "le" => order()?.is_le(),
        "gt" | "greaterthan" => order()?.is_gt(),
        "ge" => order()?.is_ge(),
        "in" => ops::contains(meter, value, one()?).map_err(message)?,
        _ => return Err(format!("there is no test `{name}`")),
    })
}

/// Pays for the values that a test reads. Tests that are not listed pay for all values in full, at the rate [`Rate::Look`].
fn pay_test(meter: &Meter, name: &str, value: &Value, args: &[Value]) -> Result<(), Refused> {
    match name {
        // These read only the kind, or a number.
        "boolean" | "number" | "integer" | "int" | "float" | "string" | "sequence" | "mapping"
        | "iterable" | "true" | "false" | "odd" | "even" | "divisibleby" => Ok(()),
        // These pay while they compare.
        "eq" | "equalto" | "ne" | "lt" | "lessthan" | "le" | "gt" | "greaterthan" | "ge" | "in" => {
            Ok(())
        }
        "startingwith" | "endingwith" => args
            .iter()
            .try_for_each(|text| meter.bytes(length(text), Rate::Copy)),
        _ => {
            let mut all = std::iter::once(value).chain(args);
            all.try_for_each(|value| meter.deep(value, Rate::Look))
        }
    }
}

fn text(value: &Value) -> Result<&str, String> {
    let text = value.as_str();
    text.ok_or_else(|| format!("takes text, this is {}", Kind::of(value)))
}

fn whole(value: &Value) -> Result<i128, String> {
    match (Num::of(value), value.as_i64()) {
        (Some(Num::Int(n)), _) => Ok(n),
        // A fraction whose value is a whole number.
        (Some(Num::Float(_)), Some(n)) => Ok(i128::from(n)),
        (Some(Num::Float(_)), None) => Err("takes a whole number, this is a fraction".to_owned()),
        (None, _) => Err(format!("takes a whole number, this is {}", Kind::of(value))),
    }
}
