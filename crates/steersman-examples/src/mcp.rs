//! The MCP protocol for servers of examples, over standard input and output, one message per line. It covers only the methods
//! that a few tools need; other methods get the protocol's error response.

use serde_json::{Value as Json, json};
use std::io::{BufRead, Write};

/// The protocol version used if the client names none; a version that the client names is echoed.
const VERSION: &str = "2025-11-25";

/// Result of a tool.
pub(crate) enum Said {
    Text(String),
    /// An error for the model.
    Fault(String),
    NoSuchTool,
}

/// An MCP server with its tools.
pub(crate) trait Tools {
    /// The name of the server.
    const NAME: &'static str;
    /// Returns the tools as `tools/list` lists them.
    fn list(&self) -> Json;
    /// Calls a tool. `params` are those of the request; messages sent before the result are written to `output`.
    fn call(&self, params: &Json, output: &mut dyn Write) -> std::io::Result<Said>;
}

/// Serves requests until the input ends.
pub(crate) fn serve(
    tools: &impl Tools,
    input: impl BufRead,
    mut output: impl Write,
) -> std::io::Result<()> {
    for line in input.lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let Ok(message) = serde_json::from_str::<Json>(&line) else {
            let (_, error) = error(-32_700, "this is no JSON");
            let answer = json!({ "jsonrpc": "2.0", "id": null, "error": error });
            say(&mut output, &answer)?;
            continue;
        };
        // notifications get no response
        let Some(id) = message.get("id").filter(|id| !id.is_null()) else {
            continue;
        };
        let (member, value) = answered(tools, &message, &mut output)?;
        let mut answer = json!({ "jsonrpc": "2.0", "id": id });
        answer[member] = value;
        say(&mut output, &answer)?;
    }
    Ok(())
}

/// Writes a message as one line and flushes.
pub(crate) fn say(output: &mut (impl Write + ?Sized), message: &Json) -> std::io::Result<()> {
    writeln!(output, "{message}")?;
    output.flush()
}

/// Returns the member that answers a request, `result` or `error`, and its value.
fn answered<T: Tools>(
    tools: &T,
    message: &Json,
    output: &mut dyn Write,
) -> std::io::Result<(&'static str, Json)> {
    let params = &message["params"];
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": params["protocolVersion"].as_str().unwrap_or(VERSION),
            "capabilities": { "tools": {} },
            "serverInfo": { "name": T::NAME, "version": env!("CARGO_PKG_VERSION") },
        }),
        Some("ping") => json!({}),
        Some("tools/list") => json!({ "tools": tools.list() }),
        Some("tools/call") => match tools.call(params, output)? {
            Said::Text(text) => content(&text, false),
            Said::Fault(text) => content(&text, true),
            Said::NoSuchTool => return Ok(error(-32_602, "there is no such tool")),
        },
        _ => return Ok(error(-32_601, "there is no such method")),
    };
    Ok(("result", result))
}

fn content(text: &str, is_error: bool) -> Json {
    json!({ "content": [{ "type": "text", "text": text }], "isError": is_error })
}

fn error(code: i64, message: &str) -> (&'static str, Json) {
    ("error", json!({ "code": code, "message": message }))
}
