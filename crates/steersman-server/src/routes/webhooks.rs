//! Webhooks of the tenant.

use super::accounts::time;
use crate::ask::{At, Body};
use crate::caller::Caller;
use crate::openapi::Problems;
use crate::problem::{Code, Problem};
use crate::token::random;
use crate::webhooks::{Kind, Only};
use crate::{Permission, Server};
use axum::Json;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use steersman::adapters::webhook;
use steersman::runtime::store::{Store, Webhook, WebhookId};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The most webhooks of a tenant.
const MOST: usize = 32;
/// Number of characters of a name.
const NAME: usize = 8;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list, make))
        .routes(routes!(drop_hook))
        .routes(routes!(rotate, rotated))
        .routes(routes!(resume))
}

/// Returns the tenant whose webhooks the caller may look at and change.
fn tenant(caller: &Caller) -> Result<&Arc<str>, Problem> {
    caller.needs(Permission::Admin)?;
    let scope = &caller.token.scope;
    if scope.subject.is_some() {
        return Err(Problem::new(
            Code::Permission,
            "a webhook is told of all subjects, and the token is for one",
        )
        .help("use a token without a subject"));
    }
    Ok(&scope.tenant)
}

fn store(caller: &Caller) -> &dyn Store {
    &**caller.steersman.engine().store()
}

/// Returns a webhook of the tenant.
async fn found(caller: &Caller, name: &str) -> Result<Webhook, Problem> {
    let all = store(caller).webhooks(tenant(caller)?).await?;
    let found = all.into_iter().find(|hook| *hook.id.name == *name);
    found.ok_or_else(|| {
        Problem::new(Code::Webhook, "there is no such webhook").help("GET /v1/webhooks lists them")
    })
}

/// A row of the list. It has no secret.
fn row(hook: &Webhook) -> Value {
    json!({
        "name": hook.id.name,
        "url": hook.url,
        "kinds": hook.kinds,
        "where": hook.only,
        "made": time(Some(hook.made)),
        "secrets": hook.secrets.len(),
        "failing": hook.failing,
    })
}

/// Lists the webhooks of the tenant, without their secrets.
#[utoipa::path(
    get, path = "/v1/webhooks", tag = "webhooks",
    responses((status = 200, description = "`items`; `failing` says why a webhook gets nothing any more", body = Value), Problems)
)]
async fn list(caller: Caller) -> Result<Json<Value>, Problem> {
    let all = store(&caller).webhooks(tenant(&caller)?).await?;
    let items: Vec<Value> = all.iter().map(row).collect();
    Ok(Json(json!({ "items": items })))
}

/// A webhook to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewHook {
    /// The address to which messages are sent: `https`, without a user and a fragment.
    url: String,
    /// Kinds of messages: `session.settled`, `session.failed`, `question.asked`, `effect.in_doubt`, `artifact.made`. Empty means all.
    #[serde(default)]
    kinds: Vec<String>,
    /// The sessions: `definition`, `key` and `label`, as in the query of the list of sessions. Without it all are meant.
    #[serde(default, rename = "where")]
    only: Option<String>,
}

/// A webhook that was made, or its new secret.
#[derive(Debug, Serialize, ToSchema)]
struct MadeHook {
    /// The name of the webhook.
    name: String,
    /// The secret that signs messages (`whsec_` and base64). It is shown only here.
    secret: String,
}

/// Makes a webhook: from now on messages about sessions of the tenant are sent to an address.
#[utoipa::path(
    post, path = "/v1/webhooks", tag = "webhooks", request_body = NewHook,
    responses((status = 201, description = "The webhook; its secret is shown only here", body = MadeHook), Problems)
)]
async fn make(
    caller: Caller,
    Body(new): Body<NewHook>,
) -> Result<(StatusCode, Json<MadeHook>), Problem> {
    let tenant = tenant(&caller)?;
    let wrong = |field: &str, why: String| Problem::new(Code::Body, format!("`{field}`: {why}"));
    let reach = caller.server.poster().reach();
    reach.address(&new.url).map_err(|why| wrong("url", why))?;
    for kind in &new.kinds {
        if !Kind::ALL.iter().any(|known| known.word() == kind) {
            let all: Vec<&str> = Kind::ALL.iter().map(|known| known.word()).collect();
            let why = format!("there is no such kind; they are: {}", all.join(", "));
            return Err(wrong("kinds", why));
        }
    }
    Only::read(new.only.as_deref()).map_err(|why| wrong("where", why))?;
    let store = store(&caller);
    if store.webhooks(tenant).await?.len() >= MOST {
        let why = format!("a tenant has at most {MOST} webhooks");
        return Err(Problem::new(Code::TooLarge, why)
            .help("delete one that is not used: DELETE /v1/webhooks/{name}"));
    }
    let secret = webhook::secret();
    let engine = caller.steersman.engine();
    let name = random::<NAME>();
    let hook = Webhook {
        id: WebhookId {
            tenant: tenant.clone(),
            name: name.as_str().into(),
        },
        url: new.url.into(),
        kinds: new.kinds.iter().map(|kind| kind.as_str().into()).collect(),
        only: new.only.map(Into::into),
        secrets: vec![engine.sealer().seal_text(&secret).into()],
        made: engine.clock().now(),
        failing: None,
    };
    store.put_webhook(hook).await?;
    caller.server.bell().notify_one();
    let secret = secret.to_string();
    Ok((StatusCode::CREATED, Json(MadeHook { name, secret })))
}

/// Deletes a webhook of the tenant. Nothing is sent to it any more.
#[utoipa::path(
    delete, path = "/v1/webhooks/{name}", tag = "webhooks", operation_id = "delete",
    params(("name" = String, Path, description = "The name of the webhook")),
    responses((status = 204, description = "The webhook is deleted"), Problems)
)]
async fn drop_hook(caller: Caller, At(name): At<String>) -> Result<StatusCode, Problem> {
    let hook = found(&caller, &name).await?;
    store(&caller).drop_webhook(&hook.id).await?;
    caller.server.bell().notify_one();
    Ok(StatusCode::NO_CONTENT)
}

/// Begins to exchange the secret of a webhook: until the exchange is ended, each message has a signature with the new secret and one with the
/// one before.
#[utoipa::path(
    post, path = "/v1/webhooks/{name}/rotation", tag = "webhooks",
    params(("name" = String, Path, description = "The name of the webhook")),
    responses((status = 201, description = "The new secret; it is shown only here", body = MadeHook), Problems)
)]
async fn rotate(
    caller: Caller,
    At(name): At<String>,
) -> Result<(StatusCode, Json<MadeHook>), Problem> {
    let mut hook = found(&caller, &name).await?;
    let secret = webhook::secret();
    let sealed = caller.steersman.engine().sealer().seal_text(&secret).into();
    // A new secret that nobody knows any more is replaced; the one before goes on to sign.
    let before = hook.secrets.pop();
    hook.secrets = [sealed].into_iter().chain(before).collect();
    store(&caller).put_webhook(hook).await?;
    caller.server.bell().notify_one();
    let secret = secret.to_string();
    Ok((StatusCode::CREATED, Json(MadeHook { name, secret })))
}

/// Ends the exchange of a secret: the new secret alone signs.
#[utoipa::path(
    delete, path = "/v1/webhooks/{name}/rotation", tag = "webhooks",
    params(("name" = String, Path, description = "The name of the webhook")),
    responses((status = 204, description = "The webhook has one secret"), Problems)
)]
async fn rotated(caller: Caller, At(name): At<String>) -> Result<StatusCode, Problem> {
    let mut hook = found(&caller, &name).await?;
    hook.secrets.truncate(1);
    store(&caller).put_webhook(hook).await?;
    caller.server.bell().notify_one();
    Ok(StatusCode::NO_CONTENT)
}

/// Sends to a webhook again that got nothing any more, from where it stopped.
#[utoipa::path(
    post, path = "/v1/webhooks/{name}/resume", tag = "webhooks",
    params(("name" = String, Path, description = "The name of the webhook")),
    responses((status = 204, description = "Messages are sent again"), Problems)
)]
async fn resume(caller: Caller, At(name): At<String>) -> Result<StatusCode, Problem> {
    let hook = found(&caller, &name).await?;
    let store = store(&caller);
    store.mark_webhook(&hook.id, hook.made, None).await?;
    caller.server.bell().notify_one();
    Ok(StatusCode::NO_CONTENT)
}
