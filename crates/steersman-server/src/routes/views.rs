//! Views of a session: effects, state, reasons, graph, lines, contexts, artifacts.

use super::sessions::{Branch, branch_of, rows};
use crate::act::Receipt;
use crate::ask::{Asked, At, Body, Params, id, wrong};
use crate::caller::Caller;
use crate::openapi::Problems;
use crate::problem::{Code, Problem};
use crate::schemas::ArtifactList;
use crate::sight::Sight;
use crate::{Permission, Server};
use axum::Json;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use steersman::machine::stored::ids::{Bodies as _, Id, Line};
use steersman::runtime::artifact::{ArtifactError, Artifacts, Version};
use steersman::runtime::erase::erased_artifacts;
use steersman::runtime::known::Known;
use steersman::views::context::{ContextError, Contexts, ModelCall};
use steersman::views::effects::Effects;
use steersman::views::graph::{self, Graph, Layout, svg};
use steersman::views::lanes::Lanes;
use steersman::views::line::Lines;
use steersman::views::page;
use steersman::views::reader::{PAGE, Reader as _, Stored};
use steersman::views::why::{self, Past};
use steersman::{Act, Cursor, PendingKind};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(effects))
        .routes(routes!(state))
        .routes(routes!(why))
        .routes(routes!(drawn))
        .routes(routes!(picture))
        .routes(routes!(map))
        .routes(routes!(lines))
        .routes(routes!(line))
        .routes(routes!(contexts))
        .routes(routes!(context))
        .routes(routes!(artifacts))
        .routes(routes!(artifact))
        .routes(routes!(rate))
}

/// Lists the effects of a session on the world, also those that may have happened.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/effects", tag = "views",
    params(("session" = String, Path, description = "The id of the session"), Branch),
    responses((status = 200, description = "`items`, and `sums` by tool", body = Value), Problems)
)]
async fn effects(
    caller: Caller,
    At(session): At<String>,
    Params(look): Params<Branch>,
) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let sight = caller.look(&session, look.branch.as_deref()).await?;
    let only = look.branch.as_ref().map(|_| sight.branch().id);
    let mut all = Effects::of(&sight.log.lines, &sight.log.texts, None);
    all.driven(sight.seen.info.owner.is_some());
    let holds = sight.seen.pending.iter();
    for held in holds.filter(|waits| waits.kind == PendingKind::Hold) {
        all.held(held.effect);
    }
    all.under(sight.seen.network.as_deref());
    let shown = || {
        all.all()
            .filter(|effect| only.is_none_or(|branch| effect.branch == branch))
    };
    let view = json!({ "items": shown().collect::<Vec<_>>(), "sums": Effects::sums(shown()) });
    Ok(Json(caller.shown(&view, &sight.known)?))
}

/// A branch and a line to look at.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct Place {
    /// The label or the id of a branch. Without one it is the current branch.
    branch: Option<String>,
    /// The number of a line. Without one it is the last line of the branch.
    at: Option<u64>,
}

/// Returns the state of a branch, as of a line if one is named.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/state", tag = "views",
    params(("session" = String, Path, description = "The id of the session"), Place),
    responses((status = 200, description = "`branch`, `line`, `state`, and in `written` the line that wrote each entry", body = Value), Problems)
)]
async fn state(
    caller: Caller,
    At(session): At<String>,
    Params(place): Params<Place>,
) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let sight = caller.look(&session, place.branch.as_deref()).await?;
    let line = sight.line(place.at)?;
    let snapshot = sight.snapshot(line);
    let view = json!({
        "branch": sight.branch().id.to_string(),
        "line": line.unwrap_or(sight.branch().head).0,
        "state": page::state(&snapshot),
        "written": page::written(&snapshot),
    });
    Ok(Json(caller.shown(&view, &sight.known)?))
}

/// Explains from the log why an agent acted: the chain of reasons of the act of a line, or of a call or an effect.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/why/{what}", tag = "views",
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("what" = String, Path, description = "The number of a line, or the id of a call, an effect or an agent"),
        Branch,
    ),
    responses((status = 200, description = "`steps`, and `others` that the line also did", body = Value), Problems)
)]
async fn why(
    caller: Caller,
    At((session, what)): At<(String, String)>,
    Params(look): Params<Branch>,
) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let sight = caller.look(&session, look.branch.as_deref()).await?;
    let path = sight.path(None);
    let past = Past::new(&sight.log, sight.bound.clone());
    let (act, others) = if let Ok(n) = what.parse::<u64>() {
        let line = path.iter().find(|line| line.n == Line(n));
        let mut acts = line.map(|line| past.acts(line)).unwrap_or_default();
        let act = acts.pop();
        // Acts without an id are part of the chain already.
        acts.retain(|other| past.short(*other).0.is_some());
        (act, acts)
    } else {
        let id = id(&what)?;
        let act = past
            .call(id)
            .map(why::Act::Push)
            .or_else(|| past.of_effect(id));
        let act = act.or_else(|| {
            if past.knows_agent(id) {
                past.newest(id, &path)
            } else {
                None
            }
        });
        (act, Vec::new())
    };
    let act = act.ok_or_else(|| {
        Problem::new(Code::Line, "nobody acted there")
            .help("GET /v1/sessions/{session}/lines lists what happened")
    })?;
    let others = others.iter().map(|act| {
        let (id, text) = past.short(*act);
        json!({ "id": id.map(|id| id.to_string()), "what": text })
    });
    let view = json!({
        "session": session,
        "branch": sight.branch().id.to_string(),
        "steps": past.chain(act),
        "others": others.collect::<Vec<_>>(),
    });
    Ok(Json(caller.shown(&view, &sight.known)?))
}

/// Returns the graph of a session's definition with the marks of where it stands, and its shapes in coordinates.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/graph", operation_id = "graph", tag = "views",
    params(("session" = String, Path, description = "The id of the session"), Branch),
    responses((status = 200, description = "The graph", body = Value), Problems)
)]
async fn drawn(
    caller: Caller,
    At(session): At<String>,
    Params(look): Params<Branch>,
) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let sight = caller.look(&session, look.branch.as_deref()).await?;
    let graph = graph_of(&caller, &session, &sight).await?;
    let mut view = serde_json::to_value(&graph).unwrap_or_default();
    let shapes = Layout::of(&graph).shapes(0.0, 0.0);
    view["shapes"] = serde_json::to_value(shapes).unwrap_or_default();
    Ok(Json(caller.shown(&view, &sight.known)?))
}

/// Returns the graph of the definition of a session with the marks of where a branch stands.
async fn graph_of(caller: &Caller, session: &str, sight: &Sight) -> Result<Graph, Problem> {
    let branch = sight.branch();
    let path = sight.log.path(branch, &sight.seen.branches);
    let binding = branch.snapshot.binding.as_ref();
    let binding = binding.ok_or_else(|| Problem::new(Code::Line, "the session has not begun"))?;
    // The bound values as they are stored: a masked text could not be read.
    let engine = caller.steersman.engine();
    let plain = Stored::plain(engine, session);
    plain.line(binding.values.line()).await?;
    let values = plain.text(binding.values);
    let network = engine
        .network_of(&sight.seen.info.id, binding, &values)
        .await?;
    let mut drawn = graph::draw(&network);
    graph::stand(
        &mut drawn,
        &network,
        &branch.snapshot,
        &path,
        &sight.seen.pending,
        &sight.log.texts,
    );
    Ok(drawn.graph)
}

/// Returns the graph of a session as a picture: SVG.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/graph.svg", tag = "views", operation_id = "draw_session",
    params(("session" = String, Path, description = "The id of the session"), Branch),
    responses((status = 200, description = "The picture", content_type = "image/svg+xml", body = String), Problems)
)]
async fn picture(
    caller: Caller,
    At(session): At<String>,
    Params(look): Params<Branch>,
) -> Result<Response, Problem> {
    caller.needs(Permission::Read)?;
    let sight = caller.look(&session, look.branch.as_deref()).await?;
    let graph = graph_of(&caller, &session, &sight).await?;
    let picture = svg::text(&graph);
    Ok(svg_of(if caller.may(Permission::Context) {
        picture
    } else {
        sight.known.masked(&picture)
    }))
}

/// Answers with a picture, which a browser shows without running anything in it.
pub(super) fn svg_of(picture: String) -> Response {
    let mut response = picture.into_response();
    let headers = response.headers_mut();
    let media = HeaderValue::from_static("image/svg+xml");
    headers.insert(header::CONTENT_TYPE, media);
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

/// A part of the map of a session.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct OfMap {
    /// The label or the id of a branch. Without one the entries of all branches come.
    branch: Option<String>,
    /// The line behind which the entries begin.
    since: Option<u64>,
    /// The last line. Without one it is the last of the session.
    until: Option<u64>,
    /// Only each so-manyth entry.
    every: Option<usize>,
}

/// Returns the session as columns, one entry for each interaction, question, decision, edit, branch and owner. Columns have the same
/// length; lines and times are differences to the entry before.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/map", tag = "views", operation_id = "map_session",
    params(("session" = String, Path, description = "The id of the session"), OfMap),
    responses((status = 200, description = "The columns, and `cursor`: the position of the last line, for events", body = Value), Problems)
)]
async fn map(
    caller: Caller,
    At(session): At<String>,
    Params(of): Params<OfMap>,
) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let info = caller.session(&session).await?;
    let every = of.every.unwrap_or(1);
    if every == 0 {
        return Err(wrong("every", "at least 1"));
    }
    let branch = match &of.branch {
        Some(name) => Some(branch_of(&caller, &session, name).await?),
        None => None,
    };
    let engine = caller.steersman.engine();
    let reader = if caller.may(Permission::Context) {
        Stored::plain(engine, &info.id)
    } else {
        Stored::masked(engine, &info.id)
    };
    let until = Line(of.until.unwrap_or(u64::MAX));
    let (mut lanes, mut after) = (Lanes::default(), Line::NONE);
    'read: loop {
        let lines = reader.lines(after, PAGE).await?;
        let Some(last) = lines.last() else { break };
        after = last.n;
        for line in &lines {
            if line.n > until {
                break 'read;
            }
            lanes.line(line);
        }
    }
    let branch = match branch {
        None => None,
        Some(id) => {
            let place = lanes.branches.iter().position(|branch| branch.id == id);
            // It begins after the last line that is wanted.
            Some(place.unwrap_or(usize::MAX))
        }
    };
    let part = lanes.part(of.since.unwrap_or(0), branch, every);
    let mut view = serde_json::to_value(&part)
        .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    view["cursor"] = Cursor::from(Line(part.head)).to_string().into();
    let known = reader.masks().await?;
    Ok(Json(caller.shown(&view, &known)?))
}

/// A range of lines.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct Range {
    /// The first line. Without one it is the first of the session.
    from: Option<u64>,
    /// The last line.
    to: Option<u64>,
    /// The label or the id of a branch. Without one the lines of all branches come.
    branch: Option<String>,
    /// The most lines, at most 200.
    limit: Option<usize>,
}

/// Lists lines of the log: what each committed and recorded, as text.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/lines", tag = "views",
    params(("session" = String, Path, description = "The id of the session"), Range),
    responses((status = 200, description = "`items`, and `next` if there are more", body = Value), Problems)
)]
async fn lines(
    caller: Caller,
    At(session): At<String>,
    Params(range): Params<Range>,
) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let most = rows(range.limit)?;
    let sight = caller.look(&session, range.branch.as_deref()).await?;
    let only = range.branch.as_ref().map(|_| sight.branch().id);
    let from = range.from.unwrap_or(0);
    let to = range.to.unwrap_or(u64::MAX);
    if from > to {
        return Err(wrong("from", "it is after `to`"));
    }
    let (mut views, mut items, mut next) = (Lines::default(), Vec::new(), None);
    for line in &sight.log.lines {
        let is_wanted = (from..=to).contains(&line.n.0) && only.is_none_or(|b| line.branch == b);
        if !is_wanted {
            views.learn(line);
            continue;
        }
        if items.len() == most {
            next = Some(line.n.0);
            break;
        }
        items.push(views.line(line, &sight.log.texts));
    }
    let items = caller.shown(&items, &sight.known)?;
    Ok(Json(json!({ "items": items, "next": next })))
}

/// Returns one line of the log.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/lines/{line}", tag = "views",
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("line" = u64, Path, description = "The number of the line"),
    ),
    responses((status = 200, description = "The line", body = Value), Problems)
)]
async fn line(caller: Caller, At((session, n)): At<(String, u64)>) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let sight = caller.look(&session, None).await?;
    let mut views = Lines::default();
    for line in &sight.log.lines {
        if line.n == Line(n) {
            let view = views.line(line, &sight.log.texts);
            return Ok(Json(caller.shown(&view, &sight.known)?));
        }
        views.learn(line);
    }
    Err(
        Problem::new(Code::Line, format!("the session has no line {n}"))
            .help("GET /v1/sessions/{session}/lines lists them"),
    )
}

impl std::convert::From<ContextError> for Problem {
    fn from(error: ContextError) -> Self {
        match error {
            ContextError::Engine(error) => error.into(),
            ContextError::Unrendered(_) => Self::new(Code::Internal, error.to_string()),
            ContextError::NotBegun | ContextError::First => {
                Self::new(Code::Effect, error.to_string())
            }
        }
    }
}

/// Lists the model calls that led to the head of a branch.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/contexts", tag = "views",
    params(("session" = String, Path, description = "The id of the session"), Branch),
    responses((status = 200, description = "`items`", body = Value), Problems)
)]
async fn contexts(
    caller: Caller,
    At(session): At<String>,
    Params(look): Params<Branch>,
) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Context)?;
    let sight = caller.look(&session, look.branch.as_deref()).await?;
    let path = sight.path(None);
    let contexts = Contexts::of(&*sight.reader, &sight.log, &path).await?;
    let items = contexts.calls().iter().map(|call| {
        json!({
            "effect": call.effect.to_string(),
            "name": contexts.name(call),
            "agent": call.agent.to_string(),
            "wished": call.wished.0,
            "answered": call.answered.map(|line| line.0),
            "usage": call.usage,
        })
    });
    Ok(Json(json!({ "items": items.collect::<Vec<_>>() })))
}

/// The form of a context.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct Shown {
    /// The label or the id of a branch. Without one it is the current branch.
    branch: Option<String>,
    /// `whole`: as it was sent. `why`: where each part comes from. `diff`: what changed since the call before.
    show: Option<String>,
}

/// Returns the context of a model call, exactly as it was sent.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/contexts/{effect}", tag = "views",
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("effect" = String, Path, description = "The id of the model call"),
        Shown,
    ),
    responses((status = 200, description = "The context", body = Value), Problems)
)]
async fn context(
    caller: Caller,
    At((session, effect)): At<(String, String)>,
    Params(shown): Params<Shown>,
) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Context)?;
    let effect: Id = id(&effect)?;
    let sight = caller.look(&session, shown.branch.as_deref()).await?;
    let path = sight.path(None);
    let contexts = Contexts::of(&*sight.reader, &sight.log, &path).await?;
    let is_meant = |call: &&ModelCall| call.effect == effect;
    let call = contexts.calls().iter().find(is_meant).ok_or_else(|| {
        Problem::new(
            Code::Effect,
            format!("the branch has no model call `{effect}`"),
        )
        .help("GET /v1/sessions/{session}/contexts lists them")
    })?;
    let view = match shown.show.as_deref() {
        None | Some("whole") => serde_json::to_value(contexts.context(call).await?),
        Some("why") => serde_json::to_value(contexts.explain(call).await?),
        Some("diff") => serde_json::to_value(contexts.change(call).await?),
        Some(_) => return Err(wrong("show", "`whole`, `why` or `diff`")),
    };
    view.map(Json)
        .map_err(|error| Problem::new(Code::Internal, error.to_string()))
}

/// Returns the artifacts of a branch. Their names are as they are stored.
async fn found(caller: &Caller, session: &str, branch: Option<&str>) -> Result<Artifacts, Problem> {
    let info = caller.session(session).await?;
    let engine = caller.steersman.engine();
    let seen = engine.inspect(&info.id).await?;
    let at = crate::sight::branch_at(&seen, branch)?;
    let snapshot = seen.branches[at].snapshot.clone();
    Ok(Artifacts::new(engine.store().clone(), snapshot, None))
}

/// Lists all versions of the artifacts of a branch.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/artifacts", tag = "views",
    params(("session" = String, Path, description = "The id of the session"), Branch),
    responses((status = 200, description = "`items`", body = ArtifactList), Problems)
)]
async fn artifacts(
    caller: Caller,
    At(session): At<String>,
    Params(look): Params<Branch>,
) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let found = found(&caller, &session, look.branch.as_deref()).await?;
    let items: Vec<Value> = found.versions().iter().map(described).collect();
    let known = caller.steersman.engine().secrets_of(&session).await?;
    let items = caller.shown(&items, &known)?;
    Ok(Json(json!({ "items": items })))
}

fn described(version: &Version) -> Value {
    let hash = blake3::Hash::from_bytes(version.hash).to_hex();
    json!({
        "name": version.name,
        "version": version.version,
        "media": version.media,
        "len": version.len,
        "hash": hash.as_str(),
        "call": version.call.to_string(),
        "rating": version.rating.as_ref().map(|rating| rating.rating),
    })
}

/// A version of an artifact.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct WhichVersion {
    /// The label or the id of a branch. Without one it is the current branch.
    branch: Option<String>,
    /// The number of the version. Without one it is the newest.
    version: Option<usize>,
}

/// Returns a version of an artifact and its content, with secrets masked unless the token may see them.
pub(super) async fn content(
    caller: &Caller,
    session: &str,
    branch: Option<&str>,
    name: &str,
    version: Option<usize>,
) -> Result<(Version, Vec<u8>), Problem> {
    caller.needs(Permission::Read)?;
    let found = found(caller, session, branch).await?;
    let known = if caller.may(Permission::Context) {
        None
    } else {
        Some(caller.steersman.engine().secrets_of(session).await?)
    };
    // The reason may name other artifacts.
    let missing = |why: String| {
        let why = match &known {
            Some(known) => known.masked(&why),
            None => why,
        };
        Problem::new(Code::Artifact, why).help("GET /v1/sessions/{session}/artifacts lists them")
    };
    let version = found
        .find_any(name, version)
        .map_err(|error| missing(error.to_string()))?;
    let info = caller.session(session).await?;
    let erased = erased_artifacts(caller.steersman.engine().store(), &info).await?;
    if erased
        .artifacts
        .iter()
        .any(|(call, of)| *call == version.call && **of == *version.name)
    {
        // The content may still be in the store, for another session.
        return Err(missing(ArtifactError::Erased(name.to_owned()).to_string()));
    }
    let content = found.content(&version).await;
    let content = content.map_err(|error| missing(error.to_string()))?;
    let Some(known) = &known else {
        return Ok((version, content.to_vec()));
    };
    let content = masked(known, &content);
    let version = Version {
        media: known.masked(&version.media),
        ..version
    };
    Ok((version, content))
}

/// Returns a content with its secrets masked. What is no text as a whole may have them between other bytes.
fn masked(known: &Known, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len());
    for chunk in content.utf8_chunks() {
        out.extend_from_slice(known.masked(chunk.valid()).as_bytes());
        out.extend_from_slice(chunk.invalid());
    }
    out
}

/// Returns the content of an artifact, as an attachment.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/artifacts/{name}", tag = "views",
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("name" = String, Path, description = "The name of the artifact, or `blake3:` with the beginning of the digest of its content"),
        WhichVersion,
    ),
    responses((status = 200, description = "The content", content_type = "application/octet-stream", body = Vec<u8>), Problems)
)]
async fn artifact(
    caller: Caller,
    At((session, name)): At<(String, String)>,
    Params(which): Params<WhichVersion>,
) -> Result<Response, Problem> {
    let branch = which.branch.as_deref();
    let (version, content) = content(&caller, &session, branch, &name, which.version).await?;
    let mut response = content.into_response();
    let headers = response.headers_mut();
    let media = HeaderValue::from_str(&version.media);
    let media = media.unwrap_or(HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_TYPE, media);
    // A browser shows nothing of what an agent made, and runs none of it.
    headers.insert(
        header::CONTENT_DISPOSITION,
        HeaderValue::from_static("attachment"),
    );
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("sandbox"),
    );
    Ok(response)
}

/// A rating of a version of an artifact.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ArtifactRating)]
struct Rate {
    /// From 1 to 5.
    rating: u8,
    /// The reason.
    #[serde(default)]
    reason: Option<String>,
    /// The number of the version. Without one it is the newest.
    #[serde(default)]
    version: Option<usize>,
    /// The role in which it is rated.
    #[serde(rename = "as", default)]
    role: Option<String>,
}

/// Rates a version of an artifact of the current branch. The rating of a person takes precedence over those of agents.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/artifacts/{name}/rating", tag = "views", operation_id = "rate_artifact", request_body = Rate,
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("name" = String, Path, description = "The name of the artifact"),
        ("Idempotency-Key" = Option<String>, Header, description = "Recognises a repetition of the request"),
    ),
    responses((status = 202, description = "The rating is on disk", body = Receipt), Problems)
)]
async fn rate(
    caller: Caller,
    asked: Asked,
    At((session, name)): At<(String, String)>,
    Body(rating): Body<Rate>,
) -> Result<Receipt, Problem> {
    caller.needs(Permission::Write)?;
    let by = caller.by(rating.role.as_deref())?;
    let artifacts = found(&caller, &session, None).await?;
    let (meant, reason) = ((&*name, rating.version), rating.reason.as_deref());
    let act = Act::rate_artifact(&artifacts, meant, rating.rating, reason, by);
    let why = match act {
        Ok(act) => return caller.act(&session, act, &asked).await,
        Err(ArtifactError::Unfit(why)) => return Err(Problem::new(Code::Body, why)),
        Err(other) => other.to_string(),
    };
    // The reason may name other artifacts.
    let why = caller.masked(&session, &why).await?;
    Err(Problem::new(Code::Artifact, why).help("GET /v1/sessions/{session}/artifacts lists them"))
}
