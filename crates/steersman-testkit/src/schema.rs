//! Describes the stored form of a type: every struct with its fields in order, every enum with its variants in order.
//!
//! Positional encodings store neither names nor types, so these must not change. The description is made by deserializing
//! invented values until every variant of every enum was reached.

mod written;

pub use written::Written;

use serde::de::value::Error;
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, Visitor};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Returns the description of `T` and of all types in it: one line for each struct, newtype and variant. Panics if not every
/// variant can be reached, or if a type contains itself.
pub fn describe<T: DeserializeOwned>() -> String {
    let mut met = Met::default();
    for _ in 0..10_000 {
        let probe = Probe {
            met: &mut met,
            depth: 0,
        };
        let _ = T::deserialize(probe).expect("a pretended value can be read");
        if met
            .enums
            .values()
            .all(|e| e.bodies.iter().all(Option::is_some))
        {
            return met.to_text();
        }
    }
    panic!("not every variant could be met");
}

#[derive(Default)]
struct Met {
    structs: BTreeMap<&'static str, String>,
    enums: BTreeMap<&'static str, Enum>,
    /// The type that was read last, as text.
    last: String,
}

struct Enum {
    variants: &'static [&'static str],
    /// The fields of each variant as text; `None` for those that were not reached yet.
    bodies: Vec<Option<String>>,
    visits: usize,
}

impl Met {
    fn to_text(&self) -> String {
        let mut out = String::new();
        for (name, body) in &self.structs {
            writeln!(out, "struct {name} {body}").expect("a String takes all");
        }
        for (name, met) in &self.enums {
            for (index, variant) in met.variants.iter().enumerate() {
                let body = met.bodies[index].as_deref().unwrap_or_default();
                writeln!(out, "enum {name} {index} {variant}{body}").expect("a String takes all");
            }
        }
        out
    }
}

struct Probe<'a> {
    met: &'a mut Met,
    depth: u32,
}

impl Probe<'_> {
    fn within(&mut self) -> Probe<'_> {
        assert!(self.depth < 64, "a stored type holds itself");
        Probe {
            met: self.met,
            depth: self.depth + 1,
        }
    }

    fn is(&mut self, what: &str) {
        what.clone_into(&mut self.met.last);
    }
}

macro_rules! plain {
    ($($method:ident => $visit:ident($($value:expr)?) $name:literal,)*) => {
        $(fn $method<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
            self.is($name);
            visitor.$visit($($value)?)
        })*
    };
}

impl<'de> de::Deserializer<'de> for Probe<'_> {
    type Error = Error;

    plain! {
        deserialize_bool => visit_bool(false) "bool",
        deserialize_i8 => visit_i8(1) "i8",
        deserialize_i16 => visit_i16(1) "i16",
        deserialize_i32 => visit_i32(1) "i32",
        deserialize_i64 => visit_i64(1) "i64",
        deserialize_u8 => visit_u8(1) "u8",
        deserialize_u16 => visit_u16(1) "u16",
        deserialize_u32 => visit_u32(1) "u32",
        deserialize_u64 => visit_u64(1) "u64",
        deserialize_f32 => visit_f32(1.0) "f32",
        deserialize_f64 => visit_f64(1.0) "f64",
        deserialize_char => visit_char('0') "char",
        deserialize_str => visit_str("0") "str",
        deserialize_string => visit_str("0") "str",
        deserialize_bytes => visit_bytes(b"0") "bytes",
        deserialize_byte_buf => visit_bytes(b"0") "bytes",
        deserialize_unit => visit_unit() "()",
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        let value = visitor.visit_some(self.within())?;
        let inner = format!("Option<{}>", self.met.last);
        self.is(&inner);
        Ok(value)
    }

    fn deserialize_seq<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        let value = visitor.visit_seq(Several::new(self.within(), 1))?;
        let inner = format!("[{}]", self.met.last);
        self.is(&inner);
        Ok(value)
    }

    fn deserialize_map<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        let mut several = Several::new(self.within(), 1);
        let value = visitor.visit_map(&mut several)?;
        let inner = format!("{{{}}}", several.types.join(": "));
        self.is(&inner);
        Ok(value)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        mut self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut several = Several::new(self.within(), len);
        let value = visitor.visit_seq(&mut several)?;
        let types = &several.types;
        let inner = match types.first() {
            Some(same) if types.iter().all(|t| t == same) => format!("[{same}; {len}]"),
            _ => format!("({})", types.join(", ")),
        };
        self.is(&inner);
        Ok(value)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.is(name);
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let value = visitor.visit_newtype_struct(self.within())?;
        let inner = format!("({})", self.met.last);
        self.met.structs.insert(name, inner);
        self.is(name);
        Ok(value)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut several = Several::new(self.within(), len);
        let value = visitor.visit_seq(&mut several)?;
        let inner = format!("({})", several.types.join(", "));
        self.met.structs.insert(name, inner);
        self.is(name);
        Ok(value)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut several = Several::new(self.within(), fields.len());
        let value = visitor.visit_seq(&mut several)?;
        let inner = several.named(fields);
        self.met.structs.insert(name, inner);
        self.is(name);
        Ok(value)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let met = self.met.enums.entry(name).or_insert_with(|| Enum {
            variants,
            bodies: vec![None; variants.len()],
            visits: 0,
        });
        // Take the variants in turn, known ones too: they may contain an enum that is not complete yet.
        let index = met.visits % variants.len();
        met.visits += 1;
        let value = visitor.visit_enum(Variant {
            probe: self.within(),
            name,
            index,
        })?;
        self.is(name);
        Ok(value)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(de::Error::custom("a positional form cannot say what it is"))
    }
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }
    fn is_human_readable(&self) -> bool {
        false
    }
}

/// Elements or fields that are read, and the types that they have.
struct Several<'a> {
    probe: Probe<'a>,
    left: usize,
    types: Vec<String>,
}

impl<'a> Several<'a> {
    fn new(probe: Probe<'a>, left: usize) -> Self {
        Self {
            probe,
            left,
            types: Vec::new(),
        }
    }

    fn named(&self, fields: &[&str]) -> String {
        let each = fields.iter().zip(&self.types);
        let each: Vec<String> = each.map(|(f, t)| format!("{f}: {t}")).collect();
        format!("{{ {} }}", each.join(", "))
    }

    fn read<'de, T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        let value = seed.deserialize(self.probe.within())?;
        self.types.push(self.probe.met.last.clone());
        Ok(value)
    }
}

impl<'de> de::SeqAccess<'de> for Several<'_> {
    type Error = Error;
    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        self.read(seed).map(Some)
    }
}

impl<'de> de::MapAccess<'de> for Several<'_> {
    type Error = Error;
    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        de::SeqAccess::next_element_seed(self, seed)
    }
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        self.read(seed)
    }
}

struct Variant<'a> {
    probe: Probe<'a>,
    name: &'static str,
    index: usize,
}

impl Variant<'_> {
    fn holds(&mut self, body: String) {
        if let Some(met) = self.probe.met.enums.get_mut(self.name) {
            met.bodies[self.index] = Some(body);
        }
    }
}

impl<'de> de::EnumAccess<'de> for Variant<'_> {
    type Error = Error;
    type Variant = Self;
    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        let index: de::value::U32Deserializer<Error> = (self.index as u32).into_deserializer();
        let value = seed.deserialize(index)?;
        Ok((value, self))
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'_> {
    type Error = Error;
    fn unit_variant(mut self) -> Result<(), Error> {
        self.holds(String::new());
        Ok(())
    }
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(mut self, seed: T) -> Result<T::Value, Error> {
        let value = seed.deserialize(self.probe.within())?;
        let body = format!("({})", self.probe.met.last);
        self.holds(body);
        Ok(value)
    }
    fn tuple_variant<V: Visitor<'de>>(mut self, len: usize, visitor: V) -> Result<V::Value, Error> {
        let mut several = Several::new(self.probe.within(), len);
        let value = visitor.visit_seq(&mut several)?;
        let body = format!("({})", several.types.join(", "));
        self.holds(body);
        Ok(value)
    }
    fn struct_variant<V: Visitor<'de>>(
        mut self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut several = Several::new(self.probe.within(), fields.len());
        let value = visitor.visit_seq(&mut several)?;
        let body = format!(" {}", several.named(fields));
        self.holds(body);
        Ok(value)
    }
}
