//! Postcard, with ids and line numbers written as distances from the line that contains them.
//!
//! Most ids in a line were made a few lines earlier, so they take one or two bytes instead of five or six. All other values
//! have postcard's form, byte for byte: the serializer forwards serde's calls to postcard's, except for the newtypes `Id` and
//! `Line`. The deserializer is stricter than postcard's, which accepts several forms of a number: it accepts only bytes that the
//! serializer writes.

use super::{CodecError, Input};
use crate::stored::ids::Line;
use postcard::ser_flavors::{ExtendFlavor, Flavor};
use postcard::{Error, Result};
use serde::de::{self, DeserializeSeed, IntoDeserializer, Visitor};
use serde::{Deserialize, Serialize, ser};

/// Meaning of the next 64-bit number. Serde names the newtype before it gives the number.
#[derive(Copy, Clone, PartialEq)]
enum Next {
    Number,
    Id,
    Line,
}

impl Next {
    fn of(newtype: &str) -> Self {
        match newtype {
            "Id" => Self::Id,
            "Line" => Self::Line,
            _ => Self::Number,
        }
    }
}

const K_BITS: u32 = 20;
const LINES: u64 = Line::MAX.0;
/// `Id::MAIN` as a number.
const MAIN: u64 = 1;
/// Values of `k` below this one are in the low three bits of an id's first number. For others these bits are all set, and a
/// second number holds the rest.
const K_SMALL: u64 = 7;

/// Returns the distance from `base` back to `line`, modulo `LINES + 1`. So a line after `base` has a distance, too, but a large
/// one.
fn distance(base: u64, line: u64) -> u64 {
    base.wrapping_sub(line) & LINES
}

/// Appends `value` to `out`, with distances from line `base`.
pub(super) fn write<T: Serialize + ?Sized>(value: &T, base: Line, out: Vec<u8>) -> Result<Vec<u8>> {
    let mut writer = Writer {
        inner: postcard::Serializer {
            output: ExtendFlavor::new(out),
        },
        base: base.0,
        next: Next::Number,
    };
    value.serialize(&mut writer)?;
    writer.inner.output.finalize()
}

/// Reads a value that [`write`] wrote. All of `bytes` must be used.
pub(super) fn read<'de, T: Deserialize<'de>>(bytes: &'de [u8], base: Line) -> Result<T> {
    let mut reader = Reader::new(bytes, base);
    let value = T::deserialize(&mut reader)?;
    if reader.rest.0.is_empty() {
        Ok(value)
    } else {
        Err(Error::SerdeDeCustom)
    }
}

/// Reads the first part of a value that [`write`] wrote.
pub(super) fn read_start<'de, T: Deserialize<'de>>(bytes: &'de [u8], base: Line) -> Result<T> {
    T::deserialize(&mut Reader::new(bytes, base))
}

struct Writer {
    inner: postcard::Serializer<ExtendFlavor<Vec<u8>>>,
    base: u64,
    next: Next,
}

impl Writer {
    fn id(&mut self, id: u64) -> Result<()> {
        use ser::Serializer;
        if id == MAIN {
            return self.inner.serialize_u64(0);
        }
        let (line, k) = (id >> K_BITS, id & ((1 << K_BITS) - 1));
        let far = distance(self.base, line);
        self.inner.serialize_u64(1 + (far << 3 | k.min(K_SMALL)))?;
        if k >= K_SMALL {
            self.inner.serialize_u64(k - K_SMALL)?;
        }
        Ok(())
    }

    fn line(&mut self, line: u64) -> Result<()> {
        use ser::Serializer;
        if line > LINES {
            return Err(Error::SerdeSerCustom);
        }
        let code = if line == 0 {
            0
        } else {
            1 + distance(self.base, line)
        };
        self.inner.serialize_u64(code)
    }
}

macro_rules! write_as_postcard {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(fn $method(self, v: $type) -> Result<()> {
            self.inner.$method(v)
        })*
    };
}

impl ser::Serializer for &mut Writer {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    write_as_postcard! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_f32: f32, serialize_f64: f64,
        serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
    }

    fn serialize_u64(self, v: u64) -> Result<()> {
        match std::mem::replace(&mut self.next, Next::Number) {
            Next::Number => self.inner.serialize_u64(v),
            Next::Id => self.id(v),
            Next::Line => self.line(v),
        }
    }
    fn serialize_none(self) -> Result<()> {
        self.inner.serialize_none()
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        self.inner.serialize_u8(1)?;
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<()> {
        Ok(())
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<()> {
        Ok(())
    }
    fn serialize_unit_variant(self, _: &'static str, index: u32, _: &'static str) -> Result<()> {
        self.inner.serialize_u32(index)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<()> {
        self.next = Next::of(name);
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        value: &T,
    ) -> Result<()> {
        self.inner.serialize_u32(index)?;
        value.serialize(self)
    }
    fn serialize_seq(self, len: Option<usize>) -> Result<Self> {
        self.inner
            .serialize_u64(len.ok_or(Error::SerializeSeqLengthUnknown)? as u64)?;
        Ok(self)
    }
    fn serialize_tuple(self, _: usize) -> Result<Self> {
        Ok(self)
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self> {
        Ok(self)
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self> {
        self.inner.serialize_u32(index)?;
        Ok(self)
    }
    fn serialize_map(self, len: Option<usize>) -> Result<Self> {
        self.serialize_seq(len)
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self> {
        Ok(self)
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self> {
        self.inner.serialize_u32(index)?;
        Ok(self)
    }
    fn is_human_readable(&self) -> bool {
        false
    }
}

macro_rules! write_in_order {
    ($($trait:ident :: $method:ident ( $($field:ty)? )),* $(,)?) => {
        $(impl ser::$trait for &mut Writer {
            type Ok = ();
            type Error = Error;
            fn $method<T: Serialize + ?Sized>(&mut self, $(_: $field,)? value: &T) -> Result<()> {
                value.serialize(&mut **self)
            }
            fn end(self) -> Result<()> {
                Ok(())
            }
        })*
    };
}

write_in_order! {
    SerializeSeq::serialize_element(),
    SerializeTuple::serialize_element(),
    SerializeTupleStruct::serialize_field(),
    SerializeTupleVariant::serialize_field(),
    SerializeStruct::serialize_field(&'static str),
    SerializeStructVariant::serialize_field(&'static str),
}

impl ser::SerializeMap for &mut Writer {
    type Ok = ();
    type Error = Error;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        key.serialize(&mut **self)
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        value.serialize(&mut **self)
    }
    fn end(self) -> Result<()> {
        Ok(())
    }
}

fn as_postcard(error: CodecError) -> Error {
    match error {
        CodecError::Truncated => Error::DeserializeUnexpectedEnd,
        _ => Error::DeserializeBadVarint,
    }
}

struct Reader<'de> {
    /// The bytes that are not read yet.
    rest: Input<'de>,
    base: u64,
    next: Next,
}

impl<'de> Reader<'de> {
    fn new(bytes: &'de [u8], base: Line) -> Self {
        Self {
            rest: Input(bytes),
            base: base.0,
            next: Next::Number,
        }
    }

    fn take(&mut self, len: usize) -> Result<&'de [u8]> {
        self.rest.take(len).map_err(as_postcard)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let taken = self.take(N)?.first_chunk();
        taken.copied().ok_or(Error::DeserializeUnexpectedEnd)
    }

    fn number(&mut self) -> Result<u64> {
        self.rest.number().map_err(as_postcard)
    }

    fn unsigned<T: TryFrom<u64>>(&mut self) -> Result<T> {
        T::try_from(self.number()?).map_err(|_| Error::DeserializeBadVarint)
    }

    fn signed<T: TryFrom<i64>>(&mut self) -> Result<T> {
        let v = super::unzigzag(self.number()?);
        T::try_from(v).map_err(|_| Error::DeserializeBadVarint)
    }

    fn bytes(&mut self) -> Result<&'de [u8]> {
        let len = self.unsigned()?;
        self.take(len)
    }

    fn text(&mut self) -> Result<&'de str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Error::DeserializeBadUtf8)
    }

    fn line_at(&self, far: u64) -> Result<u64> {
        if far > LINES {
            return Err(Error::DeserializeBadVarint);
        }
        Ok(distance(self.base, far))
    }

    fn id(&mut self) -> Result<u64> {
        let code = self.number()?;
        let Some(code) = code.checked_sub(1) else {
            return Ok(MAIN);
        };
        let mut k = code & K_SMALL;
        if k == K_SMALL {
            k = K_SMALL.saturating_add(self.number()?);
        }
        if k >= 1 << K_BITS {
            return Err(Error::DeserializeBadVarint);
        }
        let id = self.line_at(code >> 3)? << K_BITS | k;
        // it has a form of its own
        if id == MAIN {
            return Err(Error::DeserializeBadVarint);
        }
        Ok(id)
    }

    fn line(&mut self) -> Result<u64> {
        let Some(far) = self.number()?.checked_sub(1) else {
            return Ok(0);
        };
        match self.line_at(far)? {
            // it has a form of its own
            0 => Err(Error::DeserializeBadVarint),
            line => Ok(line),
        }
    }
}

/// Methods that read a value and give it to the visitor.
macro_rules! read_values {
    ($($method:ident: $visit:ident($reader:ident => $value:expr)),* $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            let $reader = self;
            visitor.$visit($value)
        })*
    };
}

/// Methods for values that say themselves what they are, which the form does not have.
macro_rules! read_nothing {
    ($($method:ident),* $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value> {
            Err(Error::WontImplement)
        })*
    };
}

impl<'de> de::Deserializer<'de> for &mut Reader<'de> {
    type Error = Error;

    read_nothing! { deserialize_any, deserialize_identifier, deserialize_ignored_any }

    read_values! {
        deserialize_bool: visit_bool(reader => match reader.array()? {
            [0] => false,
            [1] => true,
            _ => return Err(Error::DeserializeBadBool),
        }),
        deserialize_i8: visit_i8(reader => i8::from_le_bytes(reader.array()?)),
        deserialize_i16: visit_i16(reader => reader.signed()?),
        deserialize_i32: visit_i32(reader => reader.signed()?),
        deserialize_i64: visit_i64(reader => reader.signed()?),
        deserialize_u8: visit_u8(reader => u8::from_le_bytes(reader.array()?)),
        deserialize_u16: visit_u16(reader => reader.unsigned()?),
        deserialize_u32: visit_u32(reader => reader.unsigned()?),
        deserialize_f32: visit_f32(reader => f32::from_le_bytes(reader.array()?)),
        deserialize_f64: visit_f64(reader => f64::from_le_bytes(reader.array()?)),
        deserialize_str: visit_borrowed_str(reader => reader.text()?),
        deserialize_string: visit_borrowed_str(reader => reader.text()?),
        deserialize_bytes: visit_borrowed_bytes(reader => reader.bytes()?),
        deserialize_byte_buf: visit_borrowed_bytes(reader => reader.bytes()?),
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let mut chars = self.text()?.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) => visitor.visit_char(c),
            _ => Err(Error::DeserializeBadChar),
        }
    }
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }
    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let v = match std::mem::replace(&mut self.next, Next::Number) {
            Next::Number => self.number()?,
            Next::Id => self.id()?,
            Next::Line => self.line()?,
        };
        visitor.visit_u64(v)
    }
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.array()? {
            [0] => visitor.visit_none(),
            [1] => visitor.visit_some(self),
            _ => Err(Error::DeserializeBadOption),
        }
    }
    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, v: V) -> Result<V::Value> {
        v.visit_unit()
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        self.next = Next::of(name);
        visitor.visit_newtype_struct(self)
    }
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let left = self.unsigned()?;
        visitor.visit_seq(Several { reader: self, left })
    }
    fn deserialize_tuple<V: Visitor<'de>>(self, left: usize, visitor: V) -> Result<V::Value> {
        visitor.visit_seq(Several { reader: self, left })
    }
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        left: usize,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_seq(Several { reader: self, left })
    }
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let left = self.unsigned()?;
        visitor.visit_map(Several { reader: self, left })
    }
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_seq(Several {
            reader: self,
            left: fields.len(),
        })
    }
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_enum(self)
    }
    fn is_human_readable(&self) -> bool {
        false
    }
}

/// Access to the elements, fields or entries that follow.
struct Several<'a, 'de> {
    reader: &'a mut Reader<'de>,
    left: usize,
}

impl<'de> de::SeqAccess<'de> for Several<'_, 'de> {
    type Error = Error;
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        seed.deserialize(&mut *self.reader).map(Some)
    }
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> de::MapAccess<'de> for Several<'_, 'de> {
    type Error = Error;
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        de::SeqAccess::next_element_seed(self, seed)
    }
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        seed.deserialize(&mut *self.reader)
    }
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> de::EnumAccess<'de> for &mut Reader<'de> {
    type Error = Error;
    type Variant = Self;
    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self)> {
        let index: u32 = self.unsigned()?;
        let value = seed.deserialize(IntoDeserializer::<Error>::into_deserializer(index))?;
        Ok((value, self))
    }
}

impl<'de> de::VariantAccess<'de> for &mut Reader<'de> {
    type Error = Error;
    fn unit_variant(self) -> Result<()> {
        Ok(())
    }
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value> {
        seed.deserialize(self)
    }
    fn tuple_variant<V: Visitor<'de>>(self, left: usize, visitor: V) -> Result<V::Value> {
        visitor.visit_seq(Several { reader: self, left })
    }
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_seq(Several {
            reader: self,
            left: fields.len(),
        })
    }
}
