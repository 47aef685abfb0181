//! Operators over values. Each works on values of one kind and is an error across kinds.

use super::ast::BinaryOp;
use super::meter::{Meter, Rate};
use super::{Kind, value};
use minijinja::Value;
use serde_json::Number;
use std::cmp::Ordering;

/// Reason why an operation has no value.
#[derive(Debug, PartialEq)]
pub(super) enum Refused {
    /// These two kinds cannot be combined.
    Unlike(Kind, Kind),
    /// The operation does not take this kind.
    Never(Kind),
    /// The result would be infinite or too large, or it is not defined.
    Failed(&'static str),
    /// The evaluation has ended; its meter has the reason.
    Ended,
}

/// A number; integers are exact.
#[derive(Copy, Clone)]
pub(super) enum Num {
    Int(i128),
    Float(f64),
}

impl Num {
    pub(super) fn of(value: &Value) -> Option<Self> {
        if Kind::of(value) != Kind::Number {
            return None;
        }
        if value.is_integer() {
            return i128::try_from(value.clone()).ok().map(Self::Int);
        }
        f64::try_from(value.clone()).ok().map(Self::Float)
    }

    fn of_json(number: &Number) -> Self {
        let float = || Self::Float(number.as_f64().unwrap_or(f64::NAN));
        number.as_i128().map_or_else(float, Self::Int)
    }

    fn float(self) -> f64 {
        match self {
            Self::Int(n) => n as f64,
            Self::Float(x) => x,
        }
    }

    fn value(self) -> Result<Value, Refused> {
        match self {
            Self::Int(n) => i64::try_from(n)
                .map(Value::from)
                .or_else(|_| u64::try_from(n).map(Value::from))
                .map_err(|_| Refused::Failed("the number is too large")),
            Self::Float(x) if x.is_finite() => Ok(Value::from(x)),
            Self::Float(x) if x.is_nan() => Err(Refused::Failed("the result is not a number")),
            Self::Float(_) => Err(Refused::Failed("the number is too large")),
        }
    }

    fn order(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(&b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(&b),
            (Self::Int(a), Self::Float(b)) => exact(a, b),
            (Self::Float(a), Self::Int(b)) => exact(b, a).map(Ordering::reverse),
        }
    }
}

/// Compares two JSON numbers by value, without rounding.
pub(crate) fn compare(a: &Number, b: &Number) -> Ordering {
    let order = Num::of_json(a).order(Num::of_json(b));
    order.expect("JSON has neither infinite numbers nor NaN")
}

/// Compares an integer with a fraction, without rounding the integer.
fn exact(a: i128, b: f64) -> Option<Ordering> {
    if b.is_nan() {
        return None;
    }
    let whole = b.trunc();
    if whole >= i128::MAX as f64 {
        return Some(Ordering::Less);
    }
    if whole <= i128::MIN as f64 {
        return Some(Ordering::Greater);
    }
    let fraction = 0.0_f64.partial_cmp(&(b - whole))?;
    Some(a.cmp(&(whole as i128)).then(fraction))
}

/// Returns the result of `==`. None equals only none. Two lists or objects are equal if their parts are.
pub(super) fn equal(meter: &Meter, a: &Value, b: &Value) -> Result<bool, Refused> {
    equal_at(meter, a, b, 0)
}

fn equal_at(meter: &Meter, a: &Value, b: &Value, depth: u32) -> Result<bool, Refused> {
    meter.elements(1)?;
    match (Kind::of(a), Kind::of(b)) {
        (Kind::Sealed, other) | (other, Kind::Sealed) => Err(Refused::Unlike(Kind::Sealed, other)),
        (Kind::Undefined, other) | (other, Kind::Undefined) => {
            Err(Refused::Unlike(Kind::Undefined, other))
        }
        (Kind::None, Kind::None) => Ok(true),
        (Kind::None, _) | (_, Kind::None) => Ok(false),
        (Kind::Boolean, Kind::Boolean) => Ok(a.is_true() == b.is_true()),
        (Kind::Number, Kind::Number) => Ok(match (Num::of(a), Num::of(b)) {
            (Some(a), Some(b)) => a.order(b) == Some(Ordering::Equal),
            _ => false,
        }),
        (Kind::Text, Kind::Text) => {
            meter.bytes(shorter(a, b), Rate::Copy)?;
            Ok(a.as_str() == b.as_str())
        }
        (Kind::List, Kind::List) => {
            if matches!((a.len(), b.len()), (Some(a), Some(b)) if a != b) {
                return Ok(false);
            }
            let (a, b) = (items(meter, a)?, items(meter, b)?);
            if a.len() != b.len() {
                return Ok(false);
            }
            all_equal(meter, a.into_iter().zip(b), depth)
        }
        (Kind::Map, Kind::Map) => {
            if matches!((a.len(), b.len()), (Some(a), Some(b)) if a != b) {
                return Ok(false);
            }
            let a = entries(meter, a)?;
            let mut pairs = Vec::with_capacity(a.len());
            for (key, item) in a {
                let other = entry(meter, b, &key)?;
                if other.is_undefined() {
                    return Ok(false);
                }
                pairs.push((item, other));
            }
            // `a` has as many keys as `b` and each of them is in `b`, so the keys are the same.
            if b.len().is_none() && items(meter, b)?.len() != pairs.len() {
                return Ok(false);
            }
            all_equal(meter, pairs.into_iter(), depth)
        }
        (left, right) => Err(Refused::Unlike(left, right)),
    }
}

fn shorter(a: &Value, b: &Value) -> usize {
    let len = |value: &Value| value.as_str().map_or(0, str::len);
    len(a).min(len(b))
}

/// Compares all pairs, even after a difference, so that an unlike pair is an error wherever it is.
fn all_equal(
    meter: &Meter,
    pairs: impl Iterator<Item = (Value, Value)>,
    depth: u32,
) -> Result<bool, Refused> {
    let depth = meter.deeper(depth)?;
    let mut equal_so_far = true;
    for (a, b) in pairs {
        equal_so_far &= equal_at(meter, &a, &b, depth)?;
    }
    Ok(equal_so_far)
}

/// Compares two numbers or two texts.
pub(super) fn order(meter: &Meter, a: &Value, b: &Value) -> Result<Ordering, Refused> {
    meter.elements(1)?;
    match (Kind::of(a), Kind::of(b)) {
        (Kind::Number, Kind::Number) => match (Num::of(a), Num::of(b)) {
            (Some(a), Some(b)) => a.order(b).ok_or(Refused::Failed("not a number")),
            _ => Err(Refused::Failed("not a number")),
        },
        (Kind::Text, Kind::Text) => {
            meter.bytes(shorter(a, b), Rate::Copy)?;
            Ok(a.as_str().cmp(&b.as_str()))
        }
        (left, right) if left == right => Err(Refused::Never(left)),
        (left, right) => Err(Refused::Unlike(left, right)),
    }
}

/// Returns the result of `needle in hay`: a text in a text, an element in a list, a key in an object.
pub(super) fn contains(meter: &Meter, needle: &Value, hay: &Value) -> Result<bool, Refused> {
    match (Kind::of(needle), Kind::of(hay)) {
        (Kind::Sealed, other) | (other, Kind::Sealed) => Err(Refused::Unlike(Kind::Sealed, other)),
        (Kind::Undefined, other) | (other, Kind::Undefined) => {
            Err(Refused::Unlike(Kind::Undefined, other))
        }
        (Kind::Text, Kind::Text) => Ok(match (needle.as_str(), hay.as_str()) {
            (Some(needle), Some(hay)) => {
                meter.bytes(needle.len().saturating_add(hay.len()), Rate::Look)?;
                hay.contains(needle)
            }
            _ => false,
        }),
        (Kind::Text, Kind::Map) => Ok(!entry(meter, hay, needle)?.is_undefined()),
        (_, Kind::List) => {
            let mut unlike = None;
            for item in items(meter, hay)? {
                match equal(meter, needle, &item) {
                    Ok(true) => return Ok(true),
                    Ok(false) => {}
                    Err(Refused::Ended) => return Err(Refused::Ended),
                    Err(e) => unlike = Some(e),
                }
            }
            unlike.map_or(Ok(false), Err)
        }
        (left, right) => Err(Refused::Unlike(left, right)),
    }
}

/// Evaluates an arithmetic operator. `~` belongs to the evaluator, because it renders its operands.
pub(super) fn arithmetic(
    meter: &Meter,
    op: BinaryOp,
    a: &Value,
    b: &Value,
) -> Result<Value, Refused> {
    if op == BinaryOp::Add {
        match (Kind::of(a), Kind::of(b)) {
            (Kind::Text, Kind::Text) => {
                let texts = [a.as_str().unwrap_or(""), b.as_str().unwrap_or("")];
                meter.text(texts[0].len().saturating_add(texts[1].len()))?;
                return Ok(Value::from(texts.concat()));
            }
            (Kind::List, Kind::List) => {
                let mut list = items(meter, a)?;
                list.extend(items(meter, b)?);
                return value::list(meter, list);
            }
            _ => {}
        }
    }
    let (Some(x), Some(y)) = (Num::of(a), Num::of(b)) else {
        return Err(match (Kind::of(a), Kind::of(b)) {
            (left, right) if left == right => Refused::Never(left),
            (left, right) => Refused::Unlike(left, right),
        });
    };
    let by_zero = y.float() == 0.0;
    match op {
        BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Rem if by_zero => {
            Err(Refused::Failed("division by zero"))
        }
        BinaryOp::Div => Num::Float(x.float() / y.float()).value(),
        _ => match (x, y) {
            (Num::Int(x), Num::Int(y)) => whole(op, x, y),
            _ => Num::Float(fraction(op, x.float(), y.float())).value(),
        },
    }
}

fn whole(op: BinaryOp, x: i128, y: i128) -> Result<Value, Refused> {
    let result = match op {
        BinaryOp::Add => x.checked_add(y),
        BinaryOp::Sub => x.checked_sub(y),
        BinaryOp::Mul => x.checked_mul(y),
        BinaryOp::FloorDiv => {
            let (q, r) = (x.checked_div(y), x.checked_rem(y));
            q.zip(r).and_then(|(q, r)| {
                let is_above_floor = r != 0 && (r < 0) != (y < 0);
                q.checked_sub(i128::from(is_above_floor))
            })
        }
        BinaryOp::Rem => x.checked_rem(y).and_then(|r| {
            let is_above_floor = r != 0 && (r < 0) != (y < 0);
            if is_above_floor {
                r.checked_add(y)
            } else {
                Some(r)
            }
        }),
        BinaryOp::Pow => match u32::try_from(y) {
            Ok(y) => x.checked_pow(y),
            Err(_) => return Num::Float((x as f64).powf(y as f64)).value(),
        },
        BinaryOp::Div | BinaryOp::Concat => None,
    };
    result
        .ok_or(Refused::Failed("the number is too large"))
        .and_then(|n| Num::Int(n).value())
}

fn fraction(op: BinaryOp, x: f64, y: f64) -> f64 {
    match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x * y,
        BinaryOp::Div => x / y,
        BinaryOp::FloorDiv => (x / y).floor(),
        BinaryOp::Rem => x - y * (x / y).floor(),
        BinaryOp::Pow => x.powf(y),
        BinaryOp::Concat => f64::NAN,
    }
}

/// Returns the negative of a number.
pub(super) fn negate(a: &Value) -> Result<Value, Refused> {
    match Num::of(a) {
        Some(Num::Int(n)) => match n.checked_neg() {
            Some(n) => Num::Int(n).value(),
            None => Err(Refused::Failed("the number is too large")),
        },
        Some(Num::Float(x)) => Num::Float(-x).value(),
        None => Err(Refused::Never(Kind::of(a))),
    }
}

/// Returns the elements of a list, the keys of an object or the characters of a text.
pub(super) fn items(meter: &Meter, list: &Value) -> Result<Vec<Value>, Refused> {
    if let Some(items) = value::elements(list) {
        meter.elements(items.len() as u64)?;
        return Ok(items.to_vec());
    }
    let reach = match list.as_str() {
        Some(text) => {
            meter.bytes(text.len(), Rate::Copy)?;
            None
        }
        None => value::reach(list),
    };
    let found = list
        .try_iter()
        .map_err(|_| Refused::Never(Kind::of(list)))?;
    let mut items = Vec::new();
    for item in found {
        meter.taken(&item, reach)?;
        items.push(item);
    }
    Ok(items)
}

/// Returns the entries of an object, in its order.
pub(super) fn entries(meter: &Meter, map: &Value) -> Result<Vec<(Value, Value)>, Refused> {
    let keys = items(meter, map)?.into_iter();
    keys.map(|key| Ok((key.clone(), entry(meter, map, &key)?)))
        .collect()
}

/// Returns the value of an object under a key; undefined if there is no such key.
pub(super) fn entry(meter: &Meter, of: &Value, key: &Value) -> Result<Value, Refused> {
    meter.bytes(key.as_str().map_or(0, str::len), Rate::Copy)?;
    let item = of.get_item(key).unwrap_or_default();
    meter.taken(&item, value::reach(of))?;
    Ok(item)
}
