//! Branches: list, fork, rewind, join, adopt, make current.

use super::sessions::{Say, branch_of, said};
use crate::act::{Receipt, replayed};
use crate::ask::{Asked, At, Body};
use crate::caller::Caller;
use crate::openapi::Problems;
use crate::problem::{Code, Problem};
use crate::schemas::Turn;
use crate::{Permission, Server};
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steersman::machine::network::Offer;
use steersman::machine::stored::ids::{Id, Line};
use steersman::{Act, By, CancelWhat, Fork, JoinOn};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list, fork))
        .routes(routes!(say))
        .routes(routes!(adopt))
        .routes(routes!(cancel))
        .routes(routes!(current))
        .routes(routes!(rewind))
        .routes(routes!(join))
}

/// Lists the branches of a session.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/branches", tag = "branches",
    params(("session" = String, Path, description = "The id of the session")),
    responses((status = 200, description = "`items`", body = Value), Problems)
)]
async fn list(caller: Caller, At(session): At<String>) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let sight = caller.look(&session, None).await?;
    let items = caller.shown(&sight.page(None).branches, &sight.known)?;
    Ok(Json(json!({ "items": items })))
}

/// A branch that was opened.
#[derive(Debug, Serialize, ToSchema)]
struct Opened {
    /// The session.
    session: String,
    /// The id of the branch.
    branch: String,
    /// The line that opened it.
    line: u64,
}

/// A branch to open.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct NewBranch {
    /// The line at which it leaves the other branch. Without one it is the last line.
    at: Option<u64>,
    /// The label or the id of the branch that it leaves. Without one it is the current branch.
    from: Option<String>,
    /// A label for people.
    label: Option<String>,
    /// The first message on it.
    say: Option<String>,
    /// True if effects that touch the world run on it, too. Otherwise they are simulated.
    live: bool,
}

/// Opens a branch at a line. It is dry unless `live` is set: effects that touch the world are simulated.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/branches", tag = "branches", request_body = NewBranch,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
        ("If-Match" = Option<String>, Header, description = "The last line that the client knows: \"12\""),
    ),
    responses(
        (status = 201, description = "The branch is open", body = Opened),
        (status = 202, description = "The session has not taken the request yet", body = Receipt),
        Problems,
    )
)]
async fn fork(
    caller: Caller,
    asked: Asked,
    At(session): At<String>,
    Body(new): Body<NewBranch>,
) -> Result<Response, Problem> {
    caller.needs(Permission::Time)?;
    let by = caller.acting();
    let branch = branch(&caller, &session, new.from.as_deref()).await?;
    let act = Act::fork(Fork {
        branch,
        at: new.at.map(Line),
        label: new.label.as_deref().map(Into::into),
        say: new.say,
        live: new.live,
    });
    opens(&caller, &asked, &session, act.by(by)).await
}

/// A place to go back to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Rewind {
    /// The line to go back to.
    at: u64,
    /// The label or the id of the branch. Without one it is the current branch.
    #[serde(default)]
    branch: Option<String>,
    /// A label for people.
    #[serde(default)]
    label: Option<String>,
    /// The first message there.
    #[serde(default)]
    say: Option<String>,
}

/// Goes back to a line. What comes after it stays readable, and the new branch is the current one.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/rewind", tag = "branches", request_body = Rewind,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
        ("If-Match" = Option<String>, Header, description = "The last line that the client knows: \"12\""),
    ),
    responses(
        (status = 201, description = "The branch is open", body = Opened),
        (status = 202, description = "The session has not taken the request yet", body = Receipt),
        Problems,
    )
)]
async fn rewind(
    caller: Caller,
    asked: Asked,
    At(session): At<String>,
    Body(to): Body<Rewind>,
) -> Result<Response, Problem> {
    caller.needs(Permission::Time)?;
    let by = caller.acting();
    let branch = branch(&caller, &session, to.branch.as_deref()).await?;
    let act = Act::rewind(branch, Line(to.at), to.label.as_deref(), to.say.as_deref());
    opens(&caller, &asked, &session, act.by(by)).await
}

/// Branches whose results are reported to the session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Join {
    /// The labels or the ids of the branches.
    branches: Vec<String>,
    /// The condition: `all`, `any`, a number of branches, or an expression. Without one it is `all`.
    #[serde(default)]
    on: Option<String>,
    /// A tool that is called next.
    #[serde(default)]
    then: Option<String>,
    /// The arguments of that tool. Their texts are templates over `result`.
    #[serde(default)]
    #[schema(value_type = Object)]
    args: Option<Value>,
}

/// Reports the results of branches to the session once a condition holds.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/join", tag = "branches", request_body = Join,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
        ("If-Match" = Option<String>, Header, description = "The last line that the client knows: \"12\""),
    ),
    responses((status = 202, description = "The wish is on disk", body = Receipt), Problems)
)]
async fn join(
    caller: Caller,
    asked: Asked,
    At(session): At<String>,
    Body(join): Body<Join>,
) -> Result<Receipt, Problem> {
    caller.needs(Permission::Time)?;
    let by = caller.acting();
    let on = match &join.on {
        None => JoinOn::All,
        Some(text) => text
            .parse()
            .map_err(|why: String| Problem::new(Code::Body, format!("`on`: {why}")))?,
    };
    let mut branches = Vec::with_capacity(join.branches.len());
    for name in &join.branches {
        branches.push(branch_of(&caller, &session, name).await?);
    }
    if let Some(tool) = &join.then {
        may_call(&caller, &session, tool).await?;
    }
    let args = join.args.as_ref().map(ToString::to_string);
    let then = join.then.as_deref().map(|tool| (tool, args.as_deref()));
    let act = Act::join(branches, &on, then).by(by);
    caller.act(&session, act, &asked).await
}

/// Checks that a client may have a tool called: it may write, and the agent that joins is offered the tool. Only an administrator reaches
/// tools that no model of the session could call.
async fn may_call(caller: &Caller, session: &str, tool: &str) -> Result<(), Problem> {
    caller.needs(Permission::Write)?;
    let info = caller.session(session).await?;
    let seen = caller.steersman.engine().inspect(&info.id).await?;
    let root = seen
        .current_branch()
        .and_then(|branch| branch.snapshot.root_agent());
    let is_offered = seen
        .network
        .as_ref()
        .zip(root)
        .is_some_and(|(network, root)| {
            let mut offers = network.agent(&root.def).offers();
            offers.any(|used| matches!(&used.of, Offer::Tool(name) if **name == *tool))
        });
    if is_offered || caller.may(Permission::Admin) {
        return Ok(());
    }
    let why = "`then`: the agent that joins is not offered this tool";
    Err(Problem::new(Code::Permission, why).help("use a token that allows `admin`"))
}

/// Says something on a branch.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/branches/{branch}/messages", tag = "branches", request_body = Say,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("branch" = String, Path, description = "The label or the id of the branch"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: waits up to N seconds until the session settles"),
    ),
    responses(
        (status = 202, description = "The message is on disk", body = Receipt),
        (status = 200, description = "The state in which the session settled", body = Turn),
        Problems,
    )
)]
async fn say(
    caller: Caller,
    asked: Asked,
    At((session, branch)): At<(String, String)>,
    Body(say): Body<Say>,
) -> Result<Response, Problem> {
    said(&caller, &asked, &session, Some(&branch), say).await
}

/// The last line of a branch that is adopted.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct Adopt {
    /// The line. Without one it is the last line, or the line before the first simulated effect.
    at: Option<u64>,
}

/// Adopts a branch: the session continues with its lines.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/branches/{branch}/adopt", tag = "branches", request_body = Adopt,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("branch" = String, Path, description = "The label or the id of the branch"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
        ("If-Match" = Option<String>, Header, description = "The last line that the client knows: \"12\""),
    ),
    responses((status = 202, description = "The wish is on disk", body = Receipt), Problems)
)]
async fn adopt(
    caller: Caller,
    asked: Asked,
    At((session, branch)): At<(String, String)>,
    Body(adopt): Body<Adopt>,
) -> Result<Receipt, Problem> {
    on_branch(&caller, &asked, &session, &branch, |branch, _| {
        Act::adopt(branch, adopt.at.map(Line))
    })
    .await
}

/// Cancels everything that is open on a branch.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/branches/{branch}/cancel", tag = "branches",
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("branch" = String, Path, description = "The label or the id of the branch"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
        ("If-Match" = Option<String>, Header, description = "The last line that the client knows: \"12\""),
    ),
    responses((status = 202, description = "The wish is on disk", body = Receipt), Problems)
)]
async fn cancel(
    caller: Caller,
    asked: Asked,
    At((session, branch)): At<(String, String)>,
) -> Result<Receipt, Problem> {
    on_branch(&caller, &asked, &session, &branch, |branch, by| {
        Act::cancel(CancelWhat::Branch, by, Some(branch))
    })
    .await
}

/// Makes a branch the current one, to which everything goes that names no branch.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/branches/{branch}/current", tag = "branches",
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("branch" = String, Path, description = "The label or the id of the branch"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
        ("If-Match" = Option<String>, Header, description = "The last line that the client knows: \"12\""),
    ),
    responses((status = 202, description = "The wish is on disk", body = Receipt), Problems)
)]
async fn current(
    caller: Caller,
    asked: Asked,
    At((session, branch)): At<(String, String)>,
) -> Result<Receipt, Problem> {
    on_branch(&caller, &asked, &session, &branch, |branch, _| {
        Act::current(branch)
    })
    .await
}

/// Carries out an act about a branch.
async fn on_branch(
    caller: &Caller,
    asked: &Asked,
    session: &str,
    branch: &str,
    act: impl FnOnce(Id, By) -> Act,
) -> Result<Receipt, Problem> {
    caller.needs(Permission::Time)?;
    let by = caller.acting();
    let branch = branch_of(caller, session, branch).await?;
    let act = act(branch, by.clone()).by(by);
    caller.act(session, act, asked).await
}

/// Returns the id of the branch that a client names, if it names one.
async fn branch(caller: &Caller, session: &str, name: Option<&str>) -> Result<Option<Id>, Problem> {
    match name {
        Some(name) => branch_of(caller, session, name).await.map(Some),
        None => Ok(None),
    }
}

/// Carries out an act that opens a branch.
async fn opens(
    caller: &Caller,
    asked: &Asked,
    session: &str,
    act: Act,
) -> Result<Response, Problem> {
    let (receipt, branch) = caller.opens(session, act, asked).await?;
    let (Some(branch), Some(line)) = (branch, receipt.line) else {
        return Ok(receipt.into_response());
    };
    let opened = Json(Opened {
        session: session.to_owned(),
        branch: branch.to_string(),
        line,
    });
    let response = (StatusCode::CREATED, opened).into_response();
    Ok(replayed(response, receipt.is_replay))
}
