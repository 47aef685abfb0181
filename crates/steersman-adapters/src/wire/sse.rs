//! Parses server-sent events from bytes in any chunks. Bounded: a line or event without end is an error.

/// Maximum number of bytes of one event. A provider's largest event is a whole answer.
const EVENT_MAX: usize = 4 << 20;

/// Splits a stream into events.
#[derive(Debug, Default)]
pub struct Events {
    line: Vec<u8>,
    data: Option<String>,
    started: bool,
    after_cr: bool,
}

/// An event is larger than the bound.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLarge;

impl Events {
    /// Takes the next bytes and returns the data of the events that they complete. Lines `error: ..`, which some servers send
    /// instead of data, count as data; comments, ids and names of events are left out.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLarge> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = memchr::memchr2(b'\n', b'\r', rest);
            self.line
                .extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
            if self.line.len() + self.data.as_ref().map_or(0, String::len) > EVENT_MAX {
                return Err(TooLarge);
            }
            let Some(end) = end else { break };
            self.after_cr = rest[end] == b'\r';
            self.end_line(&mut events);
            rest = &rest[end + 1..];
        }
        Ok(events)
    }

    /// Returns the data of a last event without an empty line after it: some servers close right after their last line.
    pub fn finish(mut self) -> Option<String> {
        if !self.line.is_empty() {
            let mut events = Vec::new();
            self.end_line(&mut events);
        }
        self.data
    }

    fn end_line(&mut self, events: &mut Vec<String>) {
        let line = std::mem::take(&mut self.line);
        let mut line = &line[..];
        if !std::mem::replace(&mut self.started, true) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            events.extend(self.data.take());
            return;
        }
        let text = String::from_utf8_lossy(line);
        let (field, value) = text.split_once(':').unwrap_or((&text, ""));
        if field == "data" || field == "error" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            // After `error:` comes the bare object. In `data:` the same object is under the key `error`, so the key is added
            // here.
            let wrapped = format!("{{\"error\":{value}}}");
            let value = if field == "error" { &wrapped } else { value };
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                none => *none = Some(value.to_owned()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], step: usize) -> Vec<String> {
        let mut events = Events::default();
        let mut got = Vec::new();
        for piece in bytes.chunks(step) {
            got.extend(events.push(piece).expect("small"));
        }
        got.extend(events.finish());
        got
    }

    #[test]
    fn events_do_not_depend_on_how_the_bytes_are_cut() {
        let wire = "\u{feff}: hello\r\nid: 4\r\ndata: {\"a\":\"ä\"}\r\n\r\ndata: x\ndata:y\n\nerror: \"no\"\r\rdata: last";
        let whole = all(wire.as_bytes(), usize::MAX);
        assert_eq!(
            whole,
            ["{\"a\":\"ä\"}", "x\ny", "{\"error\":\"no\"}", "last"]
        );
        for step in 1..9 {
            assert_eq!(all(wire.as_bytes(), step), whole, "cut every {step} bytes");
        }
    }

    #[test]
    fn a_line_that_never_ends_is_found_out() {
        let mut events = Events::default();
        let piece = vec![b'x'; EVENT_MAX / 2 + 1];
        assert!(events.push(&piece).is_ok());
        assert_eq!(events.push(&piece), Err(TooLarge));
    }
}
