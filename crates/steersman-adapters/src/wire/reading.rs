//! Reads a streamed answer from bytes in any chunks, without I/O.

use super::{BODY_MAX, Decode, broken, sse};
use crate::transport::BodyError;
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_runtime::model::Sink;

/// An answer that is being read. Its result does not depend on the borders of the chunks.
#[derive(Debug, Default)]
pub struct Reading<D> {
    events: sse::Events,
    decoder: D,
    size: usize,
}

impl<D: Decode> Reading<D> {
    /// Begins an answer with a decoder that has read nothing.
    pub fn new(decoder: D) -> Self {
        Self {
            events: sse::Events::default(),
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
        let events = self.events.push(bytes).ok();
        let events = events.filter(|_| self.size <= BODY_MAX);
        let events = events.ok_or_else(|| broken(BodyError::TooLarge))?;
        for event in &events {
            if self.is_done() {
                break;
            }
            self.decoder.event(event, sink)?;
        }
        Ok(!events.is_empty())
    }

    /// Takes the end of the bytes. An incomplete event at the end of a stream only shows that the stream was cut.
    pub fn end(&mut self, sink: &dyn Sink) {
        let last = std::mem::take(&mut self.events).finish();
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
