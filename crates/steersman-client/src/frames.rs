//! Server-sent events.

use crate::call::chain;
use crate::error::Error;
use reqwest::Response;
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::timeout;

/// Time without a byte after which a connection counts as broken. A comment comes every 15 seconds.
const SILENCE: Duration = Duration::from_mins(1);
/// Maximum number of bytes of a line.
const LONGEST_LINE: usize = 64 << 20;

/// A server-sent event.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The kind.
    pub event: String,
    /// The fields.
    pub data: Value,
    /// The cursor. Streamed pieces have none.
    pub id: Option<String>,
}

/// A stream of server-sent events over one connection.
#[derive(Debug)]
pub struct Frames {
    response: Response,
    url: String,
    rest: Vec<u8>,
    event: Option<String>,
    id: Option<String>,
    data: Option<String>,
    ready: VecDeque<Frame>,
}

impl Frames {
    pub(crate) fn new(response: Response, url: String) -> Self {
        Self {
            response,
            url,
            rest: Vec::new(),
            event: None,
            id: None,
            data: None,
            ready: VecDeque::new(),
        }
    }

    /// Returns the next event; `None` at the end of the stream. An event that the end leaves incomplete is none.
    ///
    /// # Errors
    /// [`Error::ConnectionLost`] if the connection breaks, [`Error::InvalidAnswer`] if the data of an event is not JSON.
    pub async fn next(&mut self) -> Result<Option<Frame>, Error> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Ok(Some(frame));
            }
            let lost = |why: String| Error::ConnectionLost {
                url: self.url.clone(),
                why,
                help: "follow from the last cursor",
            };
            let chunk = match timeout(SILENCE, self.response.chunk()).await {
                Err(_) => return Err(lost("nothing came for a minute".to_owned())),
                Ok(Err(why)) => return Err(lost(chain(&why))),
                Ok(Ok(None)) => return Ok(None),
                Ok(Ok(Some(chunk))) => chunk,
            };
            self.take(&chunk)?;
        }
    }

    fn take(&mut self, chunk: &[u8]) -> Result<(), Error> {
        for &byte in chunk {
            if byte == b'\n' {
                let line = std::mem::take(&mut self.rest);
                self.line(&line)?;
            } else if self.rest.len() < LONGEST_LINE {
                self.rest.push(byte);
            } else {
                return Err(invalid("a line is too long", &self.rest));
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Error> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = String::from_utf8_lossy(line);
        if line.is_empty() {
            let (event, id) = (self.event.take(), self.id.take());
            if let Some(data) = self.data.take() {
                let data = serde_json::from_str(&data)
                    .map_err(|why| invalid(&why.to_string(), data.as_bytes()))?;
                let event = event.unwrap_or_else(|| "message".to_owned());
                self.ready.push_back(Frame { event, data, id });
            }
            return Ok(());
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => self.event = Some(value.to_owned()),
            "id" => self.id = Some(value.to_owned()),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                none => *none = Some(value.to_owned()),
            },
            _ => {}
        }
        Ok(())
    }
}

fn invalid(why: &str, body: &[u8]) -> Error {
    Error::invalid(200, "text/event-stream", why, body)
}
