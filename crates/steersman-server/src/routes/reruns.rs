//! Reruns of sessions, as jobs.

use super::sessions::branch_of;
use crate::act::replayed;
use crate::ask::{Asked, At, Body};
use crate::caller::Caller;
use crate::jobs::{Begun, Job, Stands, View, lost};
use crate::openapi::Problems;
use crate::problem::{Code, Problem};
use crate::{Permission, Server};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use steersman::machine::stored::ids::{Id, Line};
use steersman::views::rerun::Reran;
use steersman::{Go, People, Rerun, Steersman, Steps};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(begin))
        .routes(routes!(values))
        .routes(routes!(look, stop))
}

/// Maximum number of times that one request runs a session again.
const REPEATS: u32 = 20;

/// The changes of a rerun. Without any, the session is repeated as it was, and nobody is asked.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = RerunChanges)]
struct Changes {
    /// The label or the id of a branch. Without one it is the current branch.
    branch: Option<String>,
    /// The last line that stays as it was. Without one everything is run again.
    at: Option<u64>,
    /// Said at the line, in place of the next recorded message.
    say: Option<String>,
    /// Values of the definition by their paths: `models.default.model`, `agents.desk.system`.
    set: BTreeMap<String, Value>,
    /// Values of `config` in place of those that the session took.
    config: BTreeMap<String, Value>,
    /// The name of another definition of the server.
    definition: Option<String>,
    /// The one who answers for people: `recorded`, `stop`, or an agent for questions without a recorded answer. Without it `recorded`.
    people: Option<String>,
    /// True to let effects touch the world that are not on record. Otherwise they are simulated.
    live: bool,
    /// A name for it: its label `rerun`.
    name: Option<String>,
    /// The number of times, at most 20. Without it once.
    repeat: Option<u32>,
}

impl Changes {
    /// Returns where the runs differ from the session.
    fn changed(&self) -> Vec<String> {
        let config = self.config.keys().map(|name| format!("config.{name}"));
        let people = self.people.as_deref();
        let people = people.is_some_and(|people| people != "recorded");
        let own = [
            ("definition", self.definition.is_some()),
            ("say", self.say.is_some()),
            ("people", people),
            ("live", self.live),
        ];
        let own = own.into_iter().filter(|(_, is)| *is);
        let own = own.map(|(field, _)| field.to_owned());
        self.set.keys().cloned().chain(config).chain(own).collect()
    }
}

/// Keys of an agent and of its modes that a client may set: what the model is told and how it is asked. The others name tools, files
/// and decisions of the definition's author.
const OF_AGENTS: &[&str] = &["model", "params", "prefill", "system", "tool_choice"];
/// Keys of a model that a client may set. The others say to which address its keys are sent.
const OF_MODELS: &[&str] = &["model", "params"];

/// A value of a definition.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DefinitionValue)]
struct SetValue {
    /// Its path, such as `agents.desk.system`.
    path: String,
    /// The value, as the definition has it.
    value: Value,
}

/// Values of a definition.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DefinitionValueList)]
struct SetValues {
    /// The values, by their paths.
    items: Vec<SetValue>,
}

/// Lists the values of a session's definition that a rerun may set. Those that the definition does not declare may be set, too.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/reruns/values", tag = "reruns", operation_id = "list_rerun_values",
    params(("session" = String, Path, description = "The id of the session")),
    responses((status = 200, description = "The values", body = SetValues), Problems)
)]
async fn values(caller: Caller, At(session): At<String>) -> Result<Json<SetValues>, Problem> {
    // Prompts are what models are told.
    caller.needs(Permission::Context)?;
    let info = caller.session(&session).await?;
    let network = caller.steersman.definition_of(&info.id, &[]).await?;
    let source: Value = serde_json::from_str(&network.checked().source)
        .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let items = settable(&source["definition"]);
    Ok(Json(SetValues { items }))
}

/// Returns the values that a client may set, as far as a definition declares them.
fn settable(definition: &Value) -> Vec<SetValue> {
    let mut all = Vec::new();
    let mut add = |under: String, of: &Value, keys: &[&str]| {
        let declared = keys.iter().filter(|key| !of[**key].is_null());
        all.extend(declared.map(|key| SetValue {
            path: format!("{under}.{key}"),
            value: of[*key].clone(),
        }));
    };
    for (name, agent) in fields(&definition["agents"]) {
        add(format!("agents.{name}"), agent, OF_AGENTS);
        for (mode, own) in fields(&agent["modes"]) {
            add(format!("agents.{name}.modes.{mode}"), own, OF_AGENTS);
        }
    }
    for (name, model) in fields(&definition["models"]) {
        add(format!("models.{name}"), model, OF_MODELS);
    }
    all
}

fn fields(of: &Value) -> impl Iterator<Item = (&String, &Value)> {
    of.as_object().into_iter().flatten()
}

/// Returns true if a client may set the value at a path.
fn may_set(path: &str) -> bool {
    let steps: Vec<&str> = path.split('.').collect();
    match &steps[..] {
        ["agents", _, "modes", _, key, ..] | ["agents", _, key, ..] => OF_AGENTS.contains(key),
        ["models", _, key, ..] => OF_MODELS.contains(key),
        _ => false,
    }
}

/// Everything that a job needs to run a session again.
struct Again {
    steersman: Steersman,
    session: String,
    branch: Option<Id>,
    changes: Rerun,
    is_masked: bool,
}

/// Runs a session again from its recording with something changed, as new sessions. Effects are simulated unless `live` is set.
///
/// The answer comes at once: `GET /v1/jobs/{job}` tells how it goes on. The new sessions have the label `rerun_of`.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/reruns", tag = "reruns", operation_id = "rerun_session", request_body = Changes,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request, as long as the job is remembered"),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: waits up to N seconds until the job is over"),
    ),
    responses((status = 202, description = "The job", body = View), Problems)
)]
async fn begin(
    caller: Caller,
    asked: Asked,
    At(session): At<String>,
    Body(changes): Body<Changes>,
) -> Result<Response, Problem> {
    caller.needs(Permission::Time)?;
    let info = caller.session(&session).await?;
    let repeat = changes.repeat.unwrap_or(1);
    if !(1..=REPEATS).contains(&repeat) {
        let why = format!("`repeat` is from 1 to {REPEATS}");
        return Err(Problem::new(Code::Body, why));
    }
    if let Some(path) = changes.set.keys().find(|path| !may_set(path)) {
        let shown: String = path.chars().take(80).flat_map(char::escape_debug).collect();
        let why = format!("`set`: `{shown}` may not be set over HTTP");
        let agents = OF_AGENTS.join(", ");
        let models = OF_MODELS.join(", ");
        return Err(Problem::new(Code::Body, why).help(format!(
            "of `agents.NAME` and its modes: {agents}; of `models.NAME`: {models}; the rest is a definition of its own"
        )));
    }
    // The result of a rerun tells what the session said.
    caller.needs(Permission::Read)?;
    let request = serde_json::to_vec(&changes)
        .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let request = blake3::hash(&request);
    let branch = match &changes.branch {
        Some(name) => Some(branch_of(&caller, &session, name).await?),
        None => None,
    };
    let definition = if let Some(name) = &changes.definition {
        Some(caller.definition(name)?)
    } else {
        caller.may_begin(&info.network)?;
        None
    };
    let changed = changes.changed();
    let values: Vec<(String, Value)> = changes.set.into_iter().collect();
    let has_config = !changes.config.is_empty();
    let steersman = caller.steersman.clone();
    let names = changes.config.keys();
    match &definition {
        Some(network) => Caller::may_configure(network.checked(), names)?,
        None if has_config => caller.may_configure_session(&info.id, names).await?,
        None => {}
    }
    let definition =
        steersman.changed_definition(&info.id, definition.as_ref(), &values, has_config);
    let changes = Rerun {
        branch,
        at: changes.at.map(Line),
        definition: definition.await?,
        config: changes.config,
        say: changes.say,
        live: changes.live,
        people: match changes.people.as_deref() {
            None | Some("recorded") => People::Recorded,
            Some("stop") => People::Stop,
            Some(agent) => People::Agent(agent.into()),
        },
        name: changes.name,
        ..Rerun::default()
    };
    let again = Again {
        steersman,
        session: info.id.to_string(),
        branch,
        changes,
        is_masked: !caller.may(Permission::Context),
    };
    let key = asked.key.as_deref();
    let (job, is_replay) = match caller
        .begin_job(key, &info.id, request, (changed, repeat as usize))
        .await?
    {
        Begun::Known(job) => (job, true),
        Begun::New(job) => {
            tokio::spawn(again.run(job.clone(), repeat));
            (job, false)
        }
    };
    let view = job.view(asked.wait).await;
    let place = HeaderValue::from_str(&format!("/v1/jobs/{}", view.job));
    let mut response = (StatusCode::ACCEPTED, Json(view)).into_response();
    if let Ok(place) = place {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(replayed(response, is_replay))
}

impl Again {
    /// Runs the session again, so many times.
    async fn run(self, job: Arc<Job>, repeat: u32) {
        for _ in 0..repeat {
            if job.stop.is_cancelled() {
                return job.ends(Stands::Stopped, None);
            }
            match self.once(&job).await {
                Ok(run) => job.ran(run),
                Err(problem) => return job.ends(Stands::Failed, Some(&problem)),
            }
        }
        let is_stopped = job.stop.is_cancelled();
        job.ends(
            if is_stopped {
                Stands::Stopped
            } else {
                Stands::Done
            },
            None,
        );
    }

    async fn once(&self, job: &Job) -> Result<Value, Problem> {
        let stop = job.stop.clone();
        let steps = Steps::new(move |_| {
            let go = if stop.is_cancelled() {
                Go::Pause
            } else {
                Go::Line
            };
            Box::pin(std::future::ready(go))
        });
        let changes = Rerun {
            steps: Some(steps),
            ..self.changes.clone()
        };
        let at = changes.at;
        let ran = self.steersman.rerun(&self.session, changes).await?;
        let sides = ((&*self.session, self.branch), (&*ran.session, None));
        let found = self.steersman.diff(sides.0, sides.1).await?;
        let reran = Reran::of(&ran, &found, &self.session, at);
        let mut view = serde_json::to_value(&reran)
            .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        if self.is_masked {
            let known = self.steersman.engine().secrets_of(&ran.session).await?;
            known.mask(&mut view);
        }
        Ok(view)
    }
}

/// Tells how a job stands. A job whose process is gone is `lost`; the sessions that it made stay.
#[utoipa::path(
    get, path = "/v1/jobs/{job}", tag = "reruns", operation_id = "get_job",
    params(
        ("job" = String, Path, description = "The id of the job"),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: waits up to N seconds until the job is over"),
    ),
    responses((status = 200, description = "The job", body = View), Problems)
)]
async fn look(caller: Caller, asked: Asked, At(id): At<String>) -> Result<Json<View>, Problem> {
    caller.needs(Permission::Time)?;
    Ok(Json(match caller.job(&id).await? {
        Some(job) => job.view(asked.wait).await,
        None => lost(&id),
    }))
}

/// Stops a job. The rerun that runs is left paused after its next line; what is done stays.
#[utoipa::path(
    delete, path = "/v1/jobs/{job}", tag = "reruns", operation_id = "stop_job",
    params(("job" = String, Path, description = "The id of the job")),
    responses((status = 204, description = "The job is told to stop"), Problems)
)]
async fn stop(caller: Caller, At(id): At<String>) -> Result<StatusCode, Problem> {
    caller.needs(Permission::Time)?;
    if let Some(job) = caller.job(&id).await? {
        job.stop.cancel();
    }
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_listed_may_be_set() {
        let definition = json!({
            "models": { "default": { "provider": "openai", "model": "gpt-x", "url": "u" }, "small": "openai/small" },
            "agents": {
                "desk": { "system": "You answer.", "tools": ["a"], "modes": { "plan": { "system": "You plan." } } },
                "clerk": { "person": { "role": "clerk" } },
            },
        });
        let all = settable(&definition);
        assert!(all.iter().all(|one| may_set(&one.path)), "{all:?}");
        let paths: Vec<&str> = all.iter().map(|one| &*one.path).collect();
        assert_eq!(
            paths,
            [
                "agents.desk.system",
                "agents.desk.modes.plan.system",
                "models.default.model"
            ]
        );
        assert_eq!(settable(&json!({})).len(), 0);
    }

    #[test]
    fn only_what_a_model_is_told_may_be_set() {
        for path in [
            "models.default.model",
            "models.small.params.temperature",
            "agents.desk.system",
            "agents.desk.modes.plan.model",
        ] {
            assert!(may_set(path), "{path}");
        }
        for path in [
            "tools.refund.command",
            "tools.refund.approve",
            "mcp.files.command",
            "models.default.url",
            "models.default",
            "models.default.key",
            "agents.desk.knowledge",
            "agents.desk.tools",
            "agents.desk",
            "agents.desk.modes.plan.tools",
            "agents.desk.modes",
            "limits.cost",
            "",
        ] {
            assert!(!may_set(path), "{path}");
        }
    }
}
