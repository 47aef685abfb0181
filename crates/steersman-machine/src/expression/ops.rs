//! Operators over values: what they mean for one kind, and that they mean nothing across kinds.

use super::Kind;
use super::ast::BinaryOp;
use minijinja::Value;
use std::cmp::Ordering;

/// Why an operator has no value.
#[derive(Debug, PartialEq)]
pub(super) enum Refused {
    /// These two kinds do not go together.
    Unlike(Kind, Kind),
    /// This kind cannot be ordered, added, ..
    Never(Kind),
    /// It would be infinite, too large, or is not defined.
    Failed(&'static str),
}

/// A number, exact as long as it is whole.
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

/// Compares without rounding the whole number.
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

/// `==`. None equals none alone; two lists or objects are equal if their parts are.
pub(super) fn equal(a: &Value, b: &Value) -> Result<bool, Refused> {
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
        (Kind::Text, Kind::Text) => Ok(a.as_str() == b.as_str()),
        (Kind::List, Kind::List) => {
            let (a, b) = (items(a)?, items(b)?);
            if a.len() != b.len() {
                return Ok(false);
            }
            all_equal(a.iter().zip(&b))
        }
        (Kind::Map, Kind::Map) => {
            let (a, b) = (entries(a)?, entries(b)?);
            if a.len() != b.len() || a.iter().any(|(k, _)| !b.iter().any(|(o, _)| o == k)) {
                return Ok(false);
            }
            all_equal(a.iter().filter_map(|(key, value)| {
                let other = b.iter().find(|(k, _)| k == key)?;
                Some((value, &other.1))
            }))
        }
        (left, right) => Err(Refused::Unlike(left, right)),
    }
}

/// All pairs are looked at, so that one that is unlike is an error wherever it stands.
fn all_equal<'a>(pairs: impl Iterator<Item = (&'a Value, &'a Value)>) -> Result<bool, Refused> {
    let mut equal_so_far = true;
    for (a, b) in pairs {
        equal_so_far &= equal(a, b)?;
    }
    Ok(equal_so_far)
}

/// `<` and its kin: of two numbers or two texts.
pub(super) fn order(a: &Value, b: &Value) -> Result<Ordering, Refused> {
    match (Kind::of(a), Kind::of(b)) {
        (Kind::Number, Kind::Number) => match (Num::of(a), Num::of(b)) {
            (Some(a), Some(b)) => a.order(b).ok_or(Refused::Failed("not a number")),
            _ => Err(Refused::Failed("not a number")),
        },
        (Kind::Text, Kind::Text) => Ok(a.as_str().cmp(&b.as_str())),
        (left, right) if left == right => Err(Refused::Never(left)),
        (left, right) => Err(Refused::Unlike(left, right)),
    }
}

/// `needle in hay`: a text in a text, an element in a list, a key in an object.
pub(super) fn contains(needle: &Value, hay: &Value) -> Result<bool, Refused> {
    match (Kind::of(needle), Kind::of(hay)) {
        (Kind::Sealed, other) | (other, Kind::Sealed) => Err(Refused::Unlike(Kind::Sealed, other)),
        (Kind::Undefined, other) | (other, Kind::Undefined) => {
            Err(Refused::Unlike(Kind::Undefined, other))
        }
        (Kind::Text, Kind::Text) => Ok(match (needle.as_str(), hay.as_str()) {
            (Some(needle), Some(hay)) => hay.contains(needle),
            _ => false,
        }),
        (Kind::Text, Kind::Map) => Ok(entries(hay)?.iter().any(|(k, _)| k == needle)),
        (_, Kind::List) => {
            let mut unlike = None;
            for item in items(hay)? {
                match equal(needle, &item) {
                    Ok(true) => return Ok(true),
                    Ok(false) => {}
                    Err(e) => unlike = Some(e),
                }
            }
            unlike.map_or(Ok(false), Err)
        }
        (left, right) => Err(Refused::Unlike(left, right)),
    }
}

/// Arithmetic. `~` is the evaluator's, since it renders.
pub(super) fn arithmetic(op: BinaryOp, a: &Value, b: &Value) -> Result<Value, Refused> {
    if op == BinaryOp::Add {
        match (Kind::of(a), Kind::of(b)) {
            (Kind::Text, Kind::Text) => {
                let texts = [a.as_str().unwrap_or(""), b.as_str().unwrap_or("")];
                return Ok(Value::from(texts.concat()));
            }
            (Kind::List, Kind::List) => {
                let mut list = items(a)?;
                list.extend(items(b)?);
                return Ok(Value::from(list));
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
            let (q, r) = (x / y, x % y);
            Some(if r != 0 && (r < 0) != (y < 0) {
                q - 1
            } else {
                q
            })
        }
        BinaryOp::Rem => {
            let r = x % y;
            Some(if r != 0 && (r < 0) != (y < 0) {
                r + y
            } else {
                r
            })
        }
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

/// `-x`
pub(super) fn negate(a: &Value) -> Result<Value, Refused> {
    match Num::of(a) {
        Some(Num::Int(n)) => Num::Int(-n).value(),
        Some(Num::Float(x)) => Num::Float(-x).value(),
        None => Err(Refused::Never(Kind::of(a))),
    }
}

/// The elements of a list.
pub(super) fn items(list: &Value) -> Result<Vec<Value>, Refused> {
    list.try_iter()
        .map(Iterator::collect)
        .map_err(|_| Refused::Never(Kind::of(list)))
}

/// The entries of an object, in its order.
pub(super) fn entries(map: &Value) -> Result<Vec<(Value, Value)>, Refused> {
    let keys = map.try_iter().map_err(|_| Refused::Never(Kind::of(map)))?;
    Ok(keys
        .map(|key| {
            let value = map.get_item(&key).unwrap_or_default();
            (key, value)
        })
        .collect())
}
