//! Parses Amazon's event streams from bytes in any chunks: binary messages with headers, a payload, and a checksum over each. A message
//! becomes a text of JSON, `{"EVENT": PAYLOAD}`, so that decoders read it as they read the data of server-sent events. Bounded: a message
//! that is too large is an error.

use serde_json::{Value as Json, json};

/// Maximum number of bytes of one message.
const MESSAGE_MAX: usize = 4 << 20;
/// Bytes of the two lengths at the beginning, and of their checksum.
const PRELUDE: usize = 12;
/// Bytes of a checksum.
const SUM: usize = 4;

/// Splits a stream into messages.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
}

/// Reason why a stream cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub enum Broken {
    /// A message is larger than the bound.
    TooLarge,
    /// The bytes are not those that were sent, or are no event stream.
    Corrupt(&'static str),
}

impl Frames {
    /// Takes the next bytes, and adds the messages that they complete to `events`, as JSON. An error that the server sends as a message
    /// is under the key `error`.
    ///
    /// # Errors
    /// A checksum is wrong, a length is impossible, or a message is too large. The messages before it were added.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<String>) -> Result<(), Broken> {
        self.bytes.extend_from_slice(bytes);
        let mut at = 0;
        let read = loop {
            match next(&self.bytes[at..]) {
                Ok(Some((len, event))) => {
                    events.extend(event);
                    at += len;
                }
                Ok(None) => break Ok(()),
                Err(why) => break Err(why),
            }
        };
        self.bytes.drain(..at);
        read
    }
}

/// Returns the length and the JSON of the first message; `None` if it is not complete.
fn next(bytes: &[u8]) -> Result<Option<(usize, Option<String>)>, Broken> {
    let Some(len) = length(bytes)? else {
        return Ok(None);
    };
    let Some(message) = bytes.get(..len) else {
        return Ok(None);
    };
    Ok(Some((len, event(message)?)))
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_be_bytes(bytes) as usize)
}

/// Returns the length of the message that begins here; `None` if too few bytes are there to know it.
fn length(bytes: &[u8]) -> Result<Option<usize>, Broken> {
    let (Some(all), Some(headers), Some(sum)) =
        (number(bytes, 0), number(bytes, 4), number(bytes, 8))
    else {
        return Ok(None);
    };
    if crc32fast::hash(&bytes[..PRELUDE - SUM]) as usize != sum {
        return Err(Broken::Corrupt(
            "the checksum of a message's lengths is wrong",
        ));
    }
    if all > MESSAGE_MAX {
        return Err(Broken::TooLarge);
    }
    if headers.saturating_add(PRELUDE + SUM) > all {
        return Err(Broken::Corrupt("the lengths of a message do not fit"));
    }
    Ok(Some(all))
}

/// Returns the JSON of a whole message; `None` if it carries no event.
fn event(message: &[u8]) -> Result<Option<String>, Broken> {
    let end = message.len() - SUM;
    if Some(crc32fast::hash(&message[..end]) as usize) != number(message, end) {
        return Err(Broken::Corrupt("the checksum of a message is wrong"));
    }
    let behind = PRELUDE + number(message, 4).unwrap_or(0);
    let headers = headers(&message[PRELUDE..behind])
        .ok_or(Broken::Corrupt("the headers of a message cannot be read"))?;
    let of = |name: &str| {
        let found = headers.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.as_str())
    };
    let payload = String::from_utf8_lossy(&message[behind..end]);
    let payload = if payload.trim().is_empty() {
        "{}"
    } else {
        &payload
    };
    Ok(match of(":message-type") {
        "event" => Some(format!("{{{}:{payload}}}", Json::from(of(":event-type")))),
        "exception" => {
            let mut error = serde_json::from_str::<Json>(payload).unwrap_or_default();
            if !error.is_object() {
                error = json!({ "message": payload });
            }
            error["type"] = json!(of(":exception-type"));
            Some(json!({ "error": error }).to_string())
        }
        "error" => {
            let error = json!({ "type": of(":error-code"), "message": of(":error-message") });
            Some(json!({ "error": error }).to_string())
        }
        _ => None,
    })
}

/// Returns the headers whose values are texts. `None` if they cannot be read.
fn headers(mut bytes: &[u8]) -> Option<Vec<(String, String)>> {
    fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
        let (head, rest) = bytes.split_at_checked(len)?;
        *bytes = rest;
        Some(head)
    }
    let mut headers = Vec::new();
    while !bytes.is_empty() {
        let len = usize::from(take(&mut bytes, 1)?[0]);
        let name = String::from_utf8(take(&mut bytes, len)?.to_vec()).ok()?;
        let kind = take(&mut bytes, 1)?[0];
        let len = match kind {
            // True and false.
            0 | 1 => 0,
            2 => 1,
            3 => 2,
            4 => 4,
            // An integer, and a time.
            5 | 8 => 8,
            // Bytes, and a text.
            6 | 7 => usize::from(u16::from_be_bytes(take(&mut bytes, 2)?.try_into().ok()?)),
            // A UUID.
            9 => 16,
            _ => return None,
        };
        let value = take(&mut bytes, len)?;
        if kind == 7 {
            headers.push((name, String::from_utf8(value.to_vec()).ok()?));
        }
    }
    Some(headers)
}
