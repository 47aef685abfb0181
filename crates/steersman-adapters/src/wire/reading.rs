//! Reads a streamed answer from bytes in any chunks, without I/O.

use super::frames::{Broken, Frames};
use super::{BODY_MAX, Decode, broken, sse};
use crate::transport::BodyError;
use steersman_machine::stored::codes::FailureCode;
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_runtime::model::Sink;

/// Form in which events are cut from the bytes of a stream.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    Events,
    /// Amazon's event stream: binary messages with checksums.
    Frames,
}

impl Framing {
    /// Returns the media types that are asked for: of a stream, and of an answer that comes whole.
    pub(super) fn accept(self) -> &'static str {
        match self {
            Self::Events => "text/event-stream, application/json",
            Self::Frames => "application/vnd.amazon.eventstream, application/json",
        }
    }
}

#[derive(Debug)]
enum Cutter {
    Events(sse::Events),
    Frames(Frames),
}

impl Cutter {
    /// Adds the events that the bytes complete. A failure comes after the events before it.
    fn push(&mut self, bytes: &[u8], events: &mut Vec<String>) -> Result<(), Failure> {
        let too_large = || broken(BodyError::TooLarge);
        match self {
            Self::Events(cutter) => {
                events.extend(cutter.push(bytes).map_err(|_| too_large())?);
                Ok(())
            }
            Self::Frames(cutter) => cutter.push(bytes, events).map_err(|why| match why {
                Broken::TooLarge => too_large(),
                Broken::Corrupt(why) => {
                    let message = format!("the stream cannot be read: {why}");
                    Failure::new(FailureCode::BadResponse, message)
                }
            }),
        }
    }
}

/// An answer that is being read. Its result does not depend on the borders of the chunks.
#[derive(Debug)]
pub struct Reading<D> {
    cutter: Cutter,
    decoder: D,
    size: usize,
}

impl<D: Decode> Reading<D> {
    /// Begins an answer with a decoder that has read nothing.
    pub fn new(decoder: D) -> Self {
        let cutter = match decoder.framing() {
            Framing::Events => Cutter::Events(sse::Events::default()),
            Framing::Frames => Cutter::Frames(Frames::default()),
        };
        Self {
            cutter,
            decoder,
            size: 0,
        }
    }

    /// Takes the next bytes. Returns true if they complete an event. Events after the end of the answer are ignored.
    ///
    /// # Errors
    /// The failure of the answer: the server reported it, or an event cannot be read or is beyond a bound.
    pub fn push(&mut self, bytes: &[u8], sink: &dyn Sink) -> Result<bool, Failure> {
        self.size += bytes.len();
        if self.size > BODY_MAX {
            return Err(broken(BodyError::TooLarge));
        }
        let mut events = Vec::new();
        let cut = self.cutter.push(bytes, &mut events);
        for event in &events {
            if self.is_done() {
                break;
            }
            self.decoder.event(event, sink)?;
        }
        // Nothing behind the end of the answer counts.
        if !self.is_done() {
            cut?;
        }
        Ok(!events.is_empty())
    }

    /// Takes the end of the bytes. An incomplete event at the end of a stream only shows that the stream was cut.
    pub fn end(&mut self, sink: &dyn Sink) {
        let Cutter::Events(events) = &mut self.cutter else {
            return;
        };
        let last = std::mem::take(events).finish();
        if let Some(event) = last.filter(|_| !self.is_done()) {
            drop(self.decoder.event(&event, sink));
        }
    }

    /// Returns the number of bytes so far.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns true if the answer is complete: nothing more needs to be read.
    pub fn is_done(&self) -> bool {
        self.decoder.is_done()
    }

    /// Returns true if the server said how the answer ended; only usage may follow.
    pub fn has_ended(&self) -> bool {
        self.decoder.has_ended()
    }

    /// Returns the answer.
    ///
    /// # Errors
    /// The reason why there is none. A stream that just stops is not an answer.
    pub fn finish(self) -> Result<Answer, Failure> {
        self.decoder.finish()
    }
}
