//! `stubd`: a model server for the workloads over HTTP. It has the chat completions API, answers at once, and prints its
//! address. One thread a connection.
//!
//! At `/v1` an answer is one JSON document. At `/pN/v1` it is a stream of server-sent events in N pieces, each in a write of its
//! own, as a provider sends them.

use crate::texts::{Reply, after, answer, arguments, label};
use memchr::memmem;
use serde_json::{Value as Json, json};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

/// Serves until the process is killed. Port 0 is any free port.
#[expect(
    clippy::print_stdout,
    reason = "the process that started it reads the address"
)]
pub(crate) fn serve(port: u16) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    println!("http://{}", listener.local_addr()?);
    accept(&listener);
    Ok(())
}

fn accept(listener: &TcpListener) {
    for stream in listener.incoming().flatten() {
        // A client that leaves in the middle of an answer ends its thread.
        std::thread::spawn(move || converse(stream));
    }
}

/// Starts a server in this process. Returns its address.
#[cfg(test)]
pub(crate) fn local() -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    std::thread::spawn(move || accept(&listener));
    Ok(url)
}

/// Answers the requests of one connection.
fn converse(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut body = Vec::new();
    while let Some(pieces) = request(&mut reader, &mut body)? {
        let (reply, turns) = reply(&body);
        match pieces {
            None => whole(&mut stream, &reply, turns)?,
            Some(pieces) => streamed(&mut stream, &reply, turns, pieces)?,
        }
    }
    Ok(())
}

/// Reads a request. Returns the number of pieces that its path asks for, or `None` at the end of the connection.
#[expect(
    clippy::option_option,
    reason = "no request, or a request without pieces"
)]
fn request(reader: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<Option<Option<usize>>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default();
    let first = path
        .split('/')
        .nth(1)
        .and_then(|part| part.strip_prefix('p'));
    let pieces = first.and_then(|number| number.parse().ok());
    let mut length = 0;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    body.resize(length, 0);
    reader.read_exact(body)?;
    Ok(Some(pieces))
}

/// The last number after a stem, and its place in the body.
fn last_number(body: &[u8], stem: &str) -> Option<(usize, usize)> {
    memmem::rfind_iter(body, stem).find_map(|at| {
        let digits = body.get(at + stem.len()..at + stem.len() + 6)?;
        let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
        Some((at, number))
    })
}

/// The stub's rule over the bytes of a request: its last message decides, and its model's name (`stub-N`) has the turns.
fn reply(body: &[u8]) -> (Reply, usize) {
    let turns = memmem::find(body, b"stub-").map_or(1, |at| {
        let digits = body[at + 5..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit());
        digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
    });
    let result = last_number(body, "result ");
    let request = last_number(body, "Request ");
    let reply = match (result, request) {
        (Some((at, n)), asked) if asked.is_none_or(|(other, _)| at > other) => {
            after(n + 1, n + 1, turns)
        }
        (_, Some((_, i))) => after(0, i, turns),
        _ => after(0, 0, turns),
    };
    (reply, turns)
}

fn usage() -> Json {
    json!({ "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120 })
}

fn call(k: usize) -> Json {
    json!({ "id": label(k), "type": "function", "function": { "name": "lookup", "arguments": arguments(k) } })
}

/// Writes the answer as one JSON document.
fn whole(stream: &mut TcpStream, reply: &Reply, turns: usize) -> io::Result<()> {
    let (message, reason) = match reply {
        Reply::Call(k) => {
            let message = json!({ "role": "assistant", "content": null, "tool_calls": [call(*k)] });
            (message, "tool_calls")
        }
        Reply::Final(i) => {
            let message = json!({ "role": "assistant", "content": answer(*i) });
            (message, "stop")
        }
    };
    let document = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": format!("stub-{turns}"),
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": reason }], "usage": usage(),
    });
    let document = document.to_string();
    let length = document.len();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
    stream.write_all(format!("{head} {length}\r\n\r\n{document}").as_bytes())
}

/// Writes the answer as events: so many pieces, the reason why it ended, and the end of the stream.
fn streamed(stream: &mut TcpStream, reply: &Reply, turns: usize, pieces: usize) -> io::Result<()> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    let model = format!("stub-{turns}");
    let (deltas, reason) = deltas(reply, pieces.max(1));
    for delta in deltas {
        piece(stream, &frame(&model, &delta, None, &Json::Null))?;
    }
    piece(stream, &frame(&model, &json!({}), Some(reason), &usage()))?;
    piece(stream, "[DONE]")?;
    stream.write_all(b"0\r\n\r\n")
}

fn frame(model: &str, delta: &Json, reason: Option<&str>, usage: &Json) -> String {
    let frame = json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model,
        "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }], "usage": usage,
    });
    frame.to_string()
}

fn piece(stream: &mut TcpStream, data: &str) -> io::Result<()> {
    let event = format!("data: {data}\n\n");
    stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())
}

/// The pieces of an answer, and the reason why it ended. Before a call the model says some words.
fn deltas(reply: &Reply, pieces: usize) -> (Vec<Json>, &'static str) {
    match reply {
        Reply::Call(k) => {
            let word = json!({ "content": "word " });
            let mut deltas = vec![word; pieces - 1];
            let mut call = call(*k);
            call["index"] = 0.into();
            deltas.push(json!({ "tool_calls": [call] }));
            (deltas, "tool_calls")
        }
        Reply::Final(i) => {
            let text = answer(*i);
            let cut = |k: usize| text.len() * k / pieces;
            let parts = (0..pieces).map(|k| &text[cut(k)..cut(k + 1)]);
            let deltas = parts.map(|part| json!({ "content": part })).collect();
            (deltas, "stop")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texts::{result, user};

    #[test]
    fn the_last_message_decides() {
        let body = |last: &str| format!("stub-3 {} {last}", user(5)).into_bytes();
        assert_eq!(reply(&body("")), (Reply::Call(0), 3));
        assert_eq!(reply(&body(&result(0))), (Reply::Call(1), 3));
        assert_eq!(reply(&body(&result(1))), (Reply::Final(2), 3));
        let after = format!("{} {}", result(1), user(9));
        assert_eq!(reply(&body(&after)), (Reply::Call(0), 3));
    }

    #[test]
    fn an_answer_has_its_pieces() {
        for pieces in [1, 20, 200] {
            let (deltas, _) = deltas(&Reply::Final(4), pieces);
            let texts = deltas.iter().filter_map(|delta| delta["content"].as_str());
            assert_eq!((deltas.len(), texts.collect()), (pieces, answer(4)));
            assert_eq!(super::deltas(&Reply::Call(1), pieces).0.len(), pieces);
        }
    }
}
