//! The protocol of the MCP servers of examples, over standard input and output: a message a line, as far as a few tools need
//! it. What the protocol has beside that is refused as it says.

use serde_json::{Value as Json, json};
use std::io::{BufRead, Write};

/// The newest version of the protocol that these messages are of; an older one is answered in kind.
const VERSION: &str = "2025-11-25";

/// What a tool says: its text, or what the model did wrong. None: there is no such tool.
pub(crate) type Said = Option<Result<String, String>>;

/// The tools of a server.
pub(crate) trait Tools {
    /// The name of the server.
    const NAME: &'static str;
    /// The tools, as `tools/list` gives them.
    fn list(&self) -> Json;
    /// Calls one. `params` is all that came; what it says before its end goes to `output`.
    fn call(&self, params: &Json, output: &mut dyn Write) -> std::io::Result<Said>;
}

/// Serves until its input ends.
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
        // Notifications want no answer.
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

/// Writes a message.
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
