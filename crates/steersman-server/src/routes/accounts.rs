//! Tokens: one's own, and those of the tenant.

use super::sessions::rows;
use crate::ask::{At, Body, Params, Short};
use crate::caller::{Caller, From, guesses, named};
use crate::openapi::Problems;
use crate::problem::{Code, Problem};
use crate::{NewToken, Permission, Server, make_token};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steersman::Scope;
use steersman::machine::stored::ids::{Name, Time};
use steersman::runtime::store::Token;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(me))
        .routes(routes!(code))
        .routes(routes!(exchange))
        .routes(routes!(list, make))
        .routes(routes!(revoke))
}

/// Returns what the token is and may do, and the version of the server.
#[utoipa::path(
    get, path = "/v1/me", tag = "tokens",
    responses((status = 200, description = "The token", body = Value), Problems)
)]
async fn me(caller: Caller) -> Json<Value> {
    let mut view = row(&caller.token);
    view["version"] = env!("CARGO_PKG_VERSION").into();
    Json(view)
}

pub(super) fn time(at: Option<Time>) -> Value {
    let at = at.and_then(|at| Timestamp::from_millisecond(at.0).ok());
    at.map_or(Value::Null, |at| at.to_string().into())
}

fn row(token: &Token) -> Value {
    json!({
        "name": token.name,
        "tenant": token.scope.tenant,
        "subject": token.scope.subject,
        "allows": token.allows,
        "roles": token.roles,
        "definitions": token.definitions,
        "made": time(Some(token.made)),
        "expires": time(token.expires),
        "revoked": time(token.revoked),
        "used": time(token.used),
        "note": token.note,
    })
}

/// A code that was made.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MadeCode)]
struct MadeCode {
    /// The code.
    code: String,
}

/// Returns a code for the token of the request. `exchange` turns it into the token, once and within 60 seconds: a browser is started with
/// it in the address (`/#c=CODE`), so that no token is in an address.
#[utoipa::path(
    post, path = "/v1/token/code", tag = "tokens", operation_id = "make_code",
    responses((status = 201, description = "The code", body = MadeCode), Problems)
)]
async fn code(caller: Caller, headers: HeaderMap) -> Result<(StatusCode, Json<MadeCode>), Problem> {
    let code = named(&headers).and_then(|token| caller.server.code_for(token));
    let code = code.ok_or_else(|| {
        let why = "too many codes wait to be exchanged";
        Problem::new(Code::Rate, why).help("send the same again in a minute")
    })?;
    Ok((StatusCode::CREATED, Json(MadeCode { code })))
}

/// A code to exchange.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TokenCode)]
struct Exchange {
    /// The code.
    code: String,
}

/// The token of a code.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExchangedToken)]
struct Exchanged {
    /// The token itself.
    token: String,
}

/// Returns the token for a code, and forgets the code. The request needs no token.
#[utoipa::path(
    post, path = "/v1/token/exchange", tag = "tokens", operation_id = "exchange_code", request_body = Exchange, security(()),
    responses((status = 200, description = "The token", body = Exchanged), Problems)
)]
async fn exchange(
    State(server): State<Server>,
    from: Option<Extension<From>>,
    Short(exchange): Short<Exchange>,
) -> Result<Json<Exchanged>, Problem> {
    let now = server.steersman().engine().clock().now();
    if let Some(token) = server.codes().take(&exchange.code, now) {
        return Ok(Json(Exchanged { token }));
    }
    guesses(&server, from.map(|from| from.0.0.ip()))?;
    let why = "the code is not known, was exchanged before, or is older than 60 seconds";
    Err(Problem::new(Code::Token, why).help("`steersman ui` opens the console with a new one"))
}

/// A page of a list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct Page {
    /// The position after which the list goes on: `next` of the page before.
    after: Option<String>,
    /// The most rows, at most 200.
    limit: Option<usize>,
}

/// Lists the tokens of the tenant, without their secrets.
#[utoipa::path(
    get, path = "/v1/tokens", tag = "tokens", params(Page),
    responses((status = 200, description = "`items`, and `next` if there are more", body = Value), Problems)
)]
async fn list(caller: Caller, Params(page): Params<Page>) -> Result<Json<Value>, Problem> {
    caller.needs(Permission::Admin)?;
    let most = rows(page.limit)?;
    let tenant = &caller.token.scope.tenant;
    let store = caller.steersman.engine().store();
    let after = page.after.as_deref();
    let found = store.tokens(tenant, after, most).await?;
    let next = found.last().filter(|_| found.len() == most);
    let next = next.map(|token| token.name.clone());
    let items: Vec<Value> = found.iter().map(row).collect();
    Ok(Json(json!({ "items": items, "next": next })))
}

/// A token to make.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = NewToken)]
struct New {
    /// The subject whose sessions alone it may use.
    subject: Option<String>,
    /// The permissions.
    allows: Vec<Permission>,
    /// Roles in which its owner may act.
    roles: Vec<String>,
    /// Names of the definitions that it may start. Empty means all.
    definitions: Vec<String>,
    /// The time after which it is invalid, in RFC 3339.
    expires: Option<String>,
    /// A note for people.
    note: String,
}

/// A token that was made.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MadeToken)]
struct Made {
    /// The token itself. It is shown only here.
    token: String,
    /// Its name.
    name: String,
}

/// Makes a token of the same tenant.
#[utoipa::path(
    post, path = "/v1/tokens", tag = "tokens", request_body = New,
    responses((status = 201, description = "The token; it is shown only here", body = Made), Problems)
)]
async fn make(caller: Caller, Body(new): Body<New>) -> Result<(StatusCode, Json<Made>), Problem> {
    caller.needs(Permission::Admin)?;
    let own = &caller.token.scope;
    let subject: Option<Name> = new.subject.as_deref().map(Into::into);
    let scope = Scope {
        tenant: own.tenant.clone(),
        subject: subject.or_else(|| own.subject.clone()),
    };
    if !own.includes(&scope) {
        return Err(Problem::new(
            Code::Permission,
            "the token may make tokens of its own subject alone",
        ));
    }
    let expires = new.expires.as_deref().map(|text| {
        let at: Result<Timestamp, _> = text.parse();
        at.map(|at| Time(at.as_millisecond()))
            .map_err(|error| Problem::new(Code::Body, format!("`expires`: {error}")))
    });
    let new = NewToken {
        scope,
        allows: new.allows,
        roles: new.roles.iter().map(|role| role.as_str().into()).collect(),
        definitions: new
            .definitions
            .iter()
            .map(|name| name.as_str().into())
            .collect(),
        expires: expires.transpose()?,
        note: new.note.into(),
    };
    let engine = caller.steersman.engine();
    let (token, made) = make_token(&**engine.store(), engine.clock().now(), new).await?;
    let name = made.name.to_string();
    Ok((StatusCode::CREATED, Json(Made { token, name })))
}

/// Revokes a token of the tenant. It is invalid from now on.
#[utoipa::path(
    delete, path = "/v1/tokens/{name}", tag = "tokens",
    params(("name" = String, Path, description = "The name of the token")),
    responses((status = 204, description = "The token is revoked"), Problems)
)]
async fn revoke(caller: Caller, At(name): At<String>) -> Result<StatusCode, Problem> {
    caller.needs(Permission::Admin)?;
    let engine = caller.steersman.engine();
    let tenant = &caller.token.scope.tenant;
    let now = engine.clock().now();
    if engine.store().revoke(tenant, &name, now).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Problem::new(Code::UnknownToken, "there is no such token")
        .help("GET /v1/tokens lists them"))
}
