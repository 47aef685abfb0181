//! Screens: what the commands of the program print, for `steersman --server`.

use crate::ask::{At, Params};
use crate::caller::Caller;
use crate::openapi::Problems;
use crate::problem::{Code, Problem};
use crate::{Permission, Server};
use axum::Json;
use serde::Deserialize;
use serde_json::Value;
use steersman::views::filter::SelectError;
use steersman::views::screen::{
    self, Ask, ContextScreen, ListAsk, Missing, Refusal, Screen as _, ScreenError, Seen,
};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(of_session))
        .routes(routes!(of_sessions))
}

/// The most lines of one screen.
const LINES: usize = 1000;
/// The most sessions of one screen.
const SESSIONS: usize = 10_000;

/// The part of a session that a screen shows.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct Shown {
    /// The label or the id of a branch. Without one it is the current branch.
    branch: Option<String>,
    /// A line as the program takes it behind `@`: `12`, `-2`, `head`, or the name of a tool.
    line: Option<String>,
    /// The thing that is meant, by its name or id: a call, an agent, an effect, an artifact.
    of: Option<String>,
    /// The form, where a screen has several.
    form: Option<String>,
    /// The line after which a log begins.
    after: Option<u64>,
    /// The most lines of a log, at most 1000.
    most: Option<usize>,
}

/// Returns what a command of the program prints of a session: `artifacts`, `context`, `effects`, `graph`, `log`, `show`, `why`, and
/// `waits` for the commands that answer questions.
///
/// Secrets are masked, whatever the token allows, as a terminal does not show them. A context needs the permission `context`, and is
/// shown as it was sent.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/screens/{screen}", tag = "views", operation_id = "screen",
    params(
        ("session" = String, Path, description = "The id of the session"),
        ("screen" = String, Path, description = "The name of the command"),
        Shown,
    ),
    responses((status = 200, description = "What the command prints", body = Value), Problems)
)]
async fn of_session(
    caller: Caller,
    At((session, name)): At<(String, String)>,
    Params(of): Params<Shown>,
) -> Result<Json<Value>, Problem> {
    caller.needs(if name == ContextScreen::NAME {
        Permission::Context
    } else {
        Permission::Read
    })?;
    let info = caller.session(&session).await?;
    let ask = Ask {
        branch: of.branch,
        line: of.line,
        of: of.of,
        form: of.form,
        after: of.after,
        most: Some(of.most.unwrap_or(LINES).min(LINES)),
    };
    let engine = caller.steersman.engine();
    let seen = Seen::read_asked(engine, &info.id, &ask).await?;
    let shown = Box::pin(screen::of_session(&name, seen, &ask)).await?;
    shown.map(Json).ok_or_else(no_screen)
}

/// Conditions on a screen of sessions.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct OfAll {
    /// A filter, as `steersman sessions --where` takes it.
    #[serde(rename = "where")]
    filter: Option<String>,
    /// The most sessions, at most 10000.
    limit: Option<usize>,
    /// Sums by `status`, `code` or `network`, in place of the sessions.
    by: Option<String>,
    /// True to count reruns in sums, too.
    reruns: Option<bool>,
}

/// Returns what a command of the program prints of all sessions that the token sees: `sessions`, `pending`.
///
/// Secrets are masked unless the token may see them.
#[utoipa::path(
    get, path = "/v1/screens/{screen}", tag = "views", operation_id = "list_screen",
    params(("screen" = String, Path, description = "The name of the command"), OfAll),
    responses((status = 200, description = "What the command prints", body = Value), Problems)
)]
async fn of_sessions(
    caller: Caller,
    At(name): At<String>,
    Params(of): Params<OfAll>,
) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Read)?;
    let ask = ListAsk {
        filter: of.filter,
        limit: Some(of.limit.unwrap_or(SESSIONS).min(SESSIONS)),
        by: of.by,
        reruns: of.reruns,
    };
    let masks = !caller.may(Permission::Context);
    let engine = caller.steersman.engine();
    let shown = Box::pin(screen::of_sessions(&name, engine, &ask, masks)).await?;
    shown.map(Json).ok_or_else(no_screen)
}

fn no_screen() -> Problem {
    Problem::new(
        Code::Path,
        "no command of the program has a screen of this name",
    )
}

impl From<ScreenError> for Problem {
    fn from(error: ScreenError) -> Self {
        match error {
            ScreenError::Refused(refusal) => refusal.into(),
            ScreenError::Context(error) => error.into(),
            // The filter is the program's own option there, so its fault is told as it is.
            ScreenError::Select(SelectError::Filter(error)) => {
                let problem = Self::new(Code::Query, error.what);
                match error.help {
                    Some(help) => problem.help(help),
                    None => problem,
                }
            }
            ScreenError::Select(error) => error.into(),
            ScreenError::Engine(error) => error.into(),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal.of {
            Missing::Branch => Code::Branch,
            Missing::Line => Code::Line,
            Missing::Act => Code::Effect,
            Missing::Artifact => Code::Artifact,
            Missing::Form => Code::Query,
        };
        let problem = Self::new(code, refusal.what);
        // The program shows each line as advice of its own.
        match &refusal.hints[..] {
            [] => problem,
            hints => problem.help(hints.join("\n")),
        }
    }
}
