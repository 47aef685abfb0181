//! Artifacts as arguments for tools of servers: where a tool's schema declares a text as base64 content, the name of an
//! artifact that the caller sees is replaced by its content.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json};
use steersman_machine::network::ToolDef;
use steersman_machine::stored::codes::Code;
use steersman_machine::values::types::Parameters;
use steersman_machine::view::mapping::Fault;
use steersman_runtime::artifact::ArtifactError;
use steersman_runtime::toolset::ToolRun;

/// Returns the run with artifacts' contents instead of their names; `None` if there is nothing to replace.
pub(super) async fn filled(run: &ToolRun, tool: &ToolDef) -> Result<Option<ToolRun>, Fault> {
    let wanted = contents(&tool.parameters);
    if wanted.is_empty() {
        return Ok(None);
    }
    let Ok(mut args) = serde_json::from_str::<Map<String, Json>>(&run.work.args) else {
        return Ok(None);
    };
    let mut changed = false;
    for name in wanted {
        let Some(Json::String(given)) = args.get_mut(&name) else {
            continue;
        };
        // A text that does not name an artifact may be base64 content itself.
        let Ok(found) = run.artifacts.find(given, None) else {
            continue;
        };
        let content = run.artifacts.content(&found).await.map_err(|error| {
            let again = matches!(error, ArtifactError::Store(_)).then_some(0);
            let message = format!("`args.{name}`: {error}");
            Fault {
                again,
                ..Fault::new(Code::Failed, message)
            }
        })?;
        *given = STANDARD.encode(&content);
        changed = true;
    }
    Ok(changed.then(|| {
        let mut run = run.clone();
        run.work.args = Json::Object(args).to_string().into();
        run
    }))
}

/// Returns the names of the parameters that a schema declares as base64 content (JSON Schema, validation, section 8.3).
fn contents(parameters: &Parameters) -> Vec<String> {
    let Parameters::Schema(schema) = parameters else {
        return Vec::new();
    };
    // Most schemas have none and need not be parsed.
    if !schema.contains("contentEncoding") {
        return Vec::new();
    }
    let schema: Json = serde_json::from_str(schema).unwrap_or_default();
    let Some(properties) = schema["properties"].as_object() else {
        return Vec::new();
    };
    let coded = properties
        .iter()
        .filter(|(_, property)| property["contentEncoding"] == "base64");
    coded.map(|(name, _)| name.clone()).collect()
}
