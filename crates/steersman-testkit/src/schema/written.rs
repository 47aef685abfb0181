//! Collects the variants and optional fields that values hold, to compare them with the description of their type.

use serde::ser::{self, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Variants of enums (`enum Name 3 Variant`), and optional fields (`Name.field set`, `Enum::Variant.field unset`).
#[derive(Debug, Default)]
pub struct Written(BTreeSet<String>);

impl Written {
    /// Adds the variants and optional fields of a value.
    pub fn add<T: Serialize + ?Sized>(&mut self, value: &T) {
        let at = Met {
            all: &mut self.0,
            place: String::new(),
        };
        value.serialize(at).expect("every value can be described");
    }

    /// Returns the variants and optional fields of a description ([`super::describe`]) that no added value had.
    pub fn lacks(&self, description: &str) -> Vec<String> {
        let wanted = description.lines().flat_map(wanted);
        wanted.filter(|one| !self.0.contains(one)).collect()
    }
}

/// Returns the variant and the optional fields that a line of a description names.
fn wanted(line: &str) -> Vec<String> {
    let (kind, rest) = line.split_once(' ').expect("a line says its kind");
    let (name, rest) = rest.split_once(' ').expect("a type has a name");
    let (place, body, mut all) = if kind == "enum" {
        let (index, rest) = rest.split_once(' ').expect("a variant has a number");
        let end = rest.find([' ', '(']).unwrap_or(rest.len());
        let (variant, body) = rest.split_at(end);
        let met = format!("enum {name} {index} {variant}");
        (format!("{name}::{variant}"), body, vec![met])
    } else {
        (name.to_owned(), rest, Vec::new())
    };
    for (k, field) in fields(body).into_iter().enumerate() {
        let (field, of) = match field.split_once(": ") {
            Some((field, of)) if !field.contains(['<', '(']) => (field.to_owned(), of),
            _ => (k.to_string(), field),
        };
        if of.starts_with("Option<") {
            all.push(format!("{place}.{field} set"));
            all.push(format!("{place}.{field} unset"));
        }
    }
    all
}

/// Returns the fields of a body: `{ a: X, b: Y }` or `(X, Y)`.
fn fields(body: &str) -> Vec<&str> {
    let body = body.trim();
    let inner = body.strip_prefix(['{', '(']);
    let Some(inner) = inner.and_then(|inner| inner.strip_suffix(['}', ')'])) else {
        return Vec::new();
    };
    let (mut depth, mut from, mut found) = (0_u32, 0, Vec::new());
    for (at, sign) in inner.char_indices() {
        match sign {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(inner[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    found.push(inner[from..].trim());
    found
}

/// Serializer that records the variants and optional fields at one place in a value.
struct Met<'a> {
    all: &'a mut BTreeSet<String>,
    /// The field that is written, such as `Name.field`.
    place: String,
}

impl Met<'_> {
    fn variant(&mut self, name: &str, index: u32, variant: &str) {
        self.all.insert(format!("enum {name} {index} {variant}"));
    }

    fn at(&mut self, place: String) -> Met<'_> {
        Met {
            all: self.all,
            place,
        }
    }
}

/// The elements or fields of a value.
struct Several<'a> {
    all: &'a mut BTreeSet<String>,
    /// Type or variant that has the fields.
    of: String,
    next: usize,
}

impl Several<'_> {
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Never> {
        let place = format!("{}.{}", self.of, self.next);
        self.next += 1;
        self.field(place, value)
    }

    fn field<T: Serialize + ?Sized>(&mut self, place: String, value: &T) -> Result<(), Never> {
        value.serialize(Met {
            all: self.all,
            place,
        })
    }
}

/// The error type of a serializer that does not fail.
#[derive(Debug)]
pub(crate) struct Never;

impl fmt::Display for Never {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value could not be described")
    }
}

impl std::error::Error for Never {}

impl ser::Error for Never {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

macro_rules! plain {
    ($($method:ident($of:ty))*) => {
        $(fn $method(self, _: $of) -> Result<(), Never> {
            Ok(())
        })*
    };
}

impl<'a> ser::Serializer for Met<'a> {
    type Ok = ();
    type Error = Never;
    type SerializeSeq = Several<'a>;
    type SerializeTuple = Several<'a>;
    type SerializeTupleStruct = Several<'a>;
    type SerializeTupleVariant = Several<'a>;
    type SerializeMap = Several<'a>;
    type SerializeStruct = Several<'a>;
    type SerializeStructVariant = Several<'a>;

    plain! {
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_f32(f32) serialize_f64(f64)
        serialize_char(char) serialize_str(&str) serialize_bytes(&[u8]) serialize_unit_struct(&'static str)
    }

    fn serialize_unit(self) -> Result<(), Never> {
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Never> {
        self.all.insert(format!("{} unset", self.place));
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Never> {
        self.all.insert(format!("{} set", self.place));
        value.serialize(self)
    }

    fn serialize_unit_variant(
        mut self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<(), Never> {
        self.variant(name, index, variant);
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Never> {
        value.serialize(self.at(format!("{name}.0")))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Never> {
        self.variant(name, index, variant);
        value.serialize(self.at(format!("{name}::{variant}.0")))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Several<'a>, Never> {
        Ok(Several::of(self.all, self.place))
    }

    fn serialize_tuple(self, _: usize) -> Result<Several<'a>, Never> {
        Ok(Several::of(self.all, self.place))
    }

    fn serialize_tuple_struct(self, name: &'static str, _: usize) -> Result<Several<'a>, Never> {
        Ok(Several::of(self.all, name.to_owned()))
    }

    fn serialize_tuple_variant(
        mut self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Several<'a>, Never> {
        self.variant(name, index, variant);
        Ok(Several::of(self.all, format!("{name}::{variant}")))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Several<'a>, Never> {
        Ok(Several::of(self.all, self.place))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Several<'a>, Never> {
        Ok(Several::of(self.all, name.to_owned()))
    }

    fn serialize_struct_variant(
        mut self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Several<'a>, Never> {
        self.variant(name, index, variant);
        Ok(Several::of(self.all, format!("{name}::{variant}")))
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

impl<'a> Several<'a> {
    fn of(all: &'a mut BTreeSet<String>, of: String) -> Self {
        Self { all, of, next: 0 }
    }
}

macro_rules! elements {
    ($($of:ident $method:ident)*) => {
        $(impl ser::$of for Several<'_> {
            type Ok = ();
            type Error = Never;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Never> {
                self.element(value)
            }
            fn end(self) -> Result<(), Never> {
                Ok(())
            }
        })*
    };
}

elements! {
    SerializeSeq serialize_element
    SerializeTuple serialize_element
    SerializeTupleStruct serialize_field
    SerializeTupleVariant serialize_field
}

macro_rules! named {
    ($($of:ident)*) => {
        $(impl ser::$of for Several<'_> {
            type Ok = ();
            type Error = Never;
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Never> {
                self.field(format!("{}.{name}", self.of), value)
            }
            fn end(self) -> Result<(), Never> {
                Ok(())
            }
        })*
    };
}

named! { SerializeStruct SerializeStructVariant }

impl ser::SerializeMap for Several<'_> {
    type Ok = ();
    type Error = Never;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Never> {
        self.element(key)
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Never> {
        self.element(value)
    }
    fn end(self) -> Result<(), Never> {
        Ok(())
    }
}
