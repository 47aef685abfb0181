//! Filters and tests. Most filters are minijinja's own functions; those that would compare or convert without
//! being asked are ours, or are called only once their input is of one kind.

use super::ast::BinaryOp;
use super::kind::Kind;
use super::ops::{self, Num, Refused};
use super::{OUTPUT, to_json, value};
use crate::ids::Name;
use minijinja::value::Kwargs;
use minijinja::{Environment, UndefinedBehavior, Value};
use std::cmp::Ordering;
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

/// Numbers in arguments of filters that make room (`indent`, `batch`) stay below this.
const ROOM: i64 = 10_000;

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
    /// By name, else by position.
    fn get(&self, name: &str, at: usize) -> Option<&'a Value> {
        self.named(name).or_else(|| self.args.get(at))
    }
}

/// Applies a filter to a value that is defined; none only for `default` and `tojson`.
pub(super) fn apply(name: &str, input: &Value, args: &[Value], named: &[(Name, Value)]) -> Applied {
    let given = Given { args, named };
    match name {
        "cents" => cents(input),
        "close" => close(input, &given),
        "raw" => plain(input).map(Value::from_safe_string),
        "default" | "d" => {
            let empty = given.get("boolean", 1).is_some_and(Value::is_true) && !input.is_true();
            if empty || matches!(Kind::of(input), Kind::Undefined | Kind::None) {
                let fallback = given.get("value", 0).cloned();
                return Ok(fallback.unwrap_or_else(|| Value::from("")));
            }
            Ok(input.clone())
        }
        "tojson" => {
            let json = value::shown_json(&to_json(input)?);
            if given.get("indent", 0).is_some_and(Value::is_true) {
                let pretty = serde_json::to_string_pretty(&json);
                return pretty.map(Value::from).map_err(|e| e.to_string());
            }
            Ok(Value::from(json.to_string()))
        }
        "string" => plain(input).map(Value::from),
        "count" | "length" => match (input.as_str(), Kind::of(input), input.len()) {
            (Some(text), ..) => Ok(Value::from(text.chars().count())),
            (None, Kind::List | Kind::Map, Some(len)) => Ok(Value::from(len)),
            (None, Kind::List | Kind::Map, None) => {
                Ok(Value::from(ops::items(input).map_err(said)?.len()))
            }
            (None, kind, _) => Err(format!("{kind} has no length")),
        },
        "select" | "reject" => {
            let (test, rest) = split_test(args)?;
            picked(input, name == "select", |item| check(test, item, rest))
        }
        "selectattr" | "rejectattr" => {
            let Some((attribute, rest)) = args.split_first() else {
                return Err("takes the name of a field".to_owned());
            };
            let (test, rest) = split_test(rest)?;
            picked(input, name == "selectattr", |item| {
                check(test, &field(item, attribute)?, rest)
            })
        }
        "map" => mapped(input, args, named),
        "sum" => sum(input, given.get("attribute", 0)),
        "join" => joined(input, given.get("d", 0), given.get("attribute", 1)),
        "replace" => replaced(input, args),
        _ => bounded(name, input, &given),
    }
}

/// minijinja's own, once its input is of one kind and its numbers are small enough.
fn bounded(name: &str, input: &Value, given: &Given<'_>) -> Applied {
    match name {
        "sort" | "min" | "max" => one_kind(input, given.named("attribute"), true)?,
        "unique" => one_kind(input, given.named("attribute"), false)?,
        "groupby" => one_kind(input, given.get("attribute", 0), false)?,
        "dictsort" if given.get("by", 1).and_then(Value::as_str) == Some("value") => {
            let entries = ops::entries(input).map_err(said)?;
            let values: Vec<Value> = entries.into_iter().map(|(_, v)| v).collect();
            one_kind(&Value::from(values), None, true)?;
        }
        "indent" | "batch" | "slice" | "round" => {
            let numbers = given.args.iter().chain(given.named.iter().map(|(_, v)| v));
            if numbers.filter_map(Value::as_i64).any(|n| n.abs() > ROOM) {
                return Err(format!("numbers here stay below {ROOM}"));
            }
        }
        _ => {}
    }
    builtin(name, input, given.args, given.named)
}

fn close(input: &Value, given: &Given<'_>) -> Applied {
    let (Some(y), Some(by)) = (given.get("y", 0), given.get("by", 1)) else {
        return Err("takes a number and how far off it may be".to_owned());
    };
    let off = ops::arithmetic(BinaryOp::Sub, input, y).map_err(said)?;
    let back = ops::negate(&off).map_err(said)?;
    let near = |off| ops::order(off, by).map(Ordering::is_le).map_err(said);
    Ok(Value::from(near(&off)? && near(&back)?))
}

fn sum(input: &Value, attribute: Option<&Value>) -> Applied {
    let mut total = Value::from(0);
    for item in ops::items(input).map_err(said)? {
        let item = match attribute {
            Some(attribute) => field(&item, attribute)?,
            None => item,
        };
        total = ops::arithmetic(BinaryOp::Add, &total, &item).map_err(said)?;
    }
    Ok(total)
}

fn replaced(input: &Value, args: &[Value]) -> Applied {
    let text = |n: usize| args.get(n).and_then(Value::as_str);
    let (Some(input), Some(from), Some(to)) = (input.as_str(), text(0), text(1)) else {
        return Err("takes a text and two texts".to_owned());
    };
    if input.matches(from).count().saturating_mul(to.len()) > OUTPUT {
        return Err("it makes too much".to_owned());
    }
    Ok(Value::from(input.replace(from, to)))
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
        // What it says may quote a value, and a value may be a secret.
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

fn said(refused: Refused) -> String {
    match refused {
        Refused::Unlike(a, b) => format!("{a} and {b} are unlike kinds"),
        Refused::Never(kind) => format!("it takes no value that is {kind}"),
        Refused::Failed(why) => why.to_owned(),
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

/// A value as text, as `{{ }}` would write it.
fn plain(input: &Value) -> Result<String, String> {
    Ok(match Kind::of(input) {
        Kind::Text => input.as_str().unwrap_or("").to_owned(),
        Kind::Boolean => input.is_true().to_string(),
        Kind::Number => input.to_string(),
        Kind::None => String::new(),
        _ => value::shown_json(&to_json(input)?).to_string(),
    })
}

fn field(item: &Value, path: &Value) -> Applied {
    let Some(path) = path.as_str() else {
        return Err("a field is named by a text".to_owned());
    };
    let mut at = item.clone();
    for name in path.split('.') {
        at = match Kind::of(&at) {
            Kind::Map => at.get_attr(name).map_err(|e| e.to_string())?,
            kind => return Err(format!("{kind} has no field `{name}`")),
        };
        if at.is_undefined() {
            return Err(format!("an element has no field `{path}`"));
        }
    }
    Ok(at)
}

fn split_test(args: &[Value]) -> Result<(&str, &[Value]), String> {
    match args.split_first() {
        None => Ok(("", &[])),
        Some((name, rest)) => match name.as_str().filter(|n| TESTS.contains(n)) {
            Some(name) => Ok((name, rest)),
            None => Err(format!("there is no test {name}")),
        },
    }
}

fn check(test: &str, item: &Value, args: &[Value]) -> Result<bool, String> {
    match Kind::of(item) {
        Kind::Sealed if test != "none" => Err("a secret may only be tested for none".to_owned()),
        kind if test == "none" => Ok(kind == Kind::None),
        _ if test.is_empty() => Ok(item.is_true()),
        _ if test == "defined" || test == "undefined" => Ok(test == "defined"),
        _ => self::test(test, item, args),
    }
}

fn picked(
    input: &Value,
    keep: bool,
    mut test: impl FnMut(&Value) -> Result<bool, String>,
) -> Applied {
    let mut out = Vec::new();
    for item in ops::items(input).map_err(said)? {
        if test(&item)? == keep {
            out.push(item);
        }
    }
    Ok(Value::from(out))
}

fn mapped(input: &Value, args: &[Value], named: &[(Name, Value)]) -> Applied {
    let items = ops::items(input).map_err(said)?;
    let attribute = named.iter().find(|(n, _)| &**n == "attribute");
    let fallback = named.iter().find(|(n, _)| &**n == "default");
    let out: Result<Vec<Value>, String> = match (attribute, args.split_first()) {
        (Some((_, attribute)), _) => items
            .iter()
            .map(|item| match (field(item, attribute), fallback) {
                (Err(_), Some((_, fallback))) => Ok(fallback.clone()),
                (value, _) => value,
            })
            .collect(),
        (None, Some((name, rest))) => match name.as_str().filter(|n| NAMES.contains(n)) {
            Some(name) => items
                .iter()
                .map(|item| match Kind::of(item) {
                    Kind::Sealed => Err("a secret may only be tested for none".to_owned()),
                    _ => apply(name, item, rest, named),
                })
                .collect(),
            None => Err(format!("there is no filter {name}")),
        },
        (None, None) => Err("takes the name of a filter, or attribute=".to_owned()),
    };
    out.map(Value::from)
}

/// All elements (or their fields) are of one kind, and of one that has an order where that is wanted.
fn one_kind(input: &Value, attribute: Option<&Value>, ordered: bool) -> Result<(), String> {
    let mut first: Option<Value> = None;
    for item in ops::items(input).map_err(said)? {
        let item = match attribute {
            Some(attribute) => field(&item, attribute)?,
            None => item,
        };
        let fits = match (&first, ordered) {
            (None, true) => ops::order(&item, &item).map(drop),
            (None, false) => ops::equal(&item, &item).map(drop),
            (Some(first), true) => ops::order(first, &item).map(drop),
            (Some(first), false) => ops::equal(first, &item).map(drop),
        };
        fits.map_err(said)?;
        first.get_or_insert(item);
    }
    Ok(())
}

fn joined(input: &Value, between: Option<&Value>, attribute: Option<&Value>) -> Applied {
    let between = match between {
        None => "",
        Some(text) => text.as_str().ok_or("what stands between is a text")?,
    };
    let mut out = String::new();
    for (n, item) in ops::items(input).map_err(said)?.iter().enumerate() {
        if n > 0 {
            out.push_str(between);
        }
        out.push_str(&match attribute {
            Some(attribute) => plain(&field(item, attribute)?)?,
            None => plain(item)?,
        });
        if out.len() > OUTPUT {
            return Err("it makes too much".to_owned());
        }
    }
    Ok(Value::from(out))
}

/// Tests that compare, so that none may stand at their left.
pub(super) fn compares(name: &str) -> bool {
    matches!(name, "eq" | "equalto" | "ne")
}

/// A test of a value that is defined and no secret.
pub(super) fn test(name: &str, value: &Value, args: &[Value]) -> Result<bool, String> {
    let one = || {
        args.first()
            .ok_or_else(|| "takes a value to compare with".to_owned())
    };
    let text = |v: &Value| {
        let text = v.as_str().map(str::to_owned);
        text.ok_or_else(|| format!("takes text, this is {}", Kind::of(v)))
    };
    let number = |v: &Value| {
        let whole = v.as_i64().filter(|_| Kind::of(v) == Kind::Number);
        whole.ok_or_else(|| format!("takes a whole number, this is {}", Kind::of(v)))
    };
    let order = || ops::order(value, one()?).map_err(said);
    let kind = Kind::of(value);
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
        "odd" => number(value)? % 2 != 0,
        "even" => number(value)? % 2 == 0,
        "divisibleby" => match number(one()?)? {
            0 => return Err("nothing is divisible by 0".to_owned()),
            n => number(value)?.checked_rem(n).unwrap_or(0) == 0,
        },
        "startingwith" => text(value)?.starts_with(&text(one()?)?),
        "endingwith" => text(value)?.ends_with(&text(one()?)?),
        "lower" => !text(value)?.chars().any(char::is_uppercase),
        "upper" => !text(value)?.chars().any(char::is_lowercase),
        "eq" | "equalto" => ops::equal(value, one()?).map_err(said)?,
        "ne" => !ops::equal(value, one()?).map_err(said)?,
        "lt" | "lessthan" => order()?.is_lt(),
        "le" => order()?.is_le(),
        "gt" | "greaterthan" => order()?.is_gt(),
        "ge" => order()?.is_ge(),
        "in" => ops::contains(value, one()?).map_err(said)?,
        _ => return Err(format!("there is no test `{name}`")),
    })
}
