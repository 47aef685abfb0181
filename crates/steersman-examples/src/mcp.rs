//! The MCP protocol for servers of examples, over standard input and output, one message per line. It covers only the methods
//! that a few tools need; other methods get the protocol's error response.

use serde_json::{Value as Json, json};
use std::io::{BufRead, Write};

/// The protocol version used if the client names none; a version that the client names is echoed.
const VERSION: &str = "2025-11-25";

/// Result of a tool: its text, or an error for the model. `None` means that there is no such tool.
pub(crate) type Said = Option<Result<String, String>>;

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
            let error = json!({ "code": -32_700, "message": "this is no JSON" });
            let answer = json!({ "jsonrpc": "2.0", "id": null, "error": error });
            say(&mut output, &answer)?;
            continue;
        };
        // notifications get no response
        let Some(id) = message.get("id").filter(|id| !id.is_null()) else {
            continue;
        };
        let answer = match answered(tools, &message, &mut output)? {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err((code, message)) => {
                let error = json!({ "code": code, "message": message });
                json!({ "jsonrpc": "2.0", "id": id, "error": error })
            }
        };
        say(&mut output, &answer)?;
    }
    Ok(())
}

/// Writes a message as one line and flushes.
pub(crate) fn say(output: &mut (impl Write + ?Sized), message: &Json) -> std::io::Result<()> {
    writeln!(output, "{message}")?;
    output.flush()
}

type Answer = Result<Json, (i64, &'static str)>;

fn answered<T: Tools>(
    tools: &T,
    message: &Json,
    output: &mut dyn Write,
) -> std::io::Result<Answer> {
    let params = &message["params"];
    Ok(match message["method"].as_str() {
        Some("initialize") => Ok(json!({
            "protocolVersion": params["protocolVersion"].as_str().unwrap_or(VERSION),
            "capabilities": { "tools": {} },
            "serverInfo": { "name": T::NAME, "version": env!("CARGO_PKG_VERSION") },
        })),
        Some("ping") => Ok(json!({})),
        Some("tools/list") => Ok(json!({ "tools": tools.list() })),
        Some("tools/call") => match tools.call(params, output)? {
            Some(said) => {
                let is_error = said.is_err();
                let (Ok(text) | Err(text)) = said;
                let content = json!([{ "type": "text", "text": text }]);
                Ok(json!({ "content": content, "isError": is_error }))
            }
            None => Err((-32_602, "there is no such tool")),
        },
        _ => Err((-32_601, "there is no such method")),
    })
}
