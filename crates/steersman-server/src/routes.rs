//! The routes, one file for each resource.

#![expect(
    unused_qualifications,
    reason = "the macros of utoipa write whole paths for the types of parameters"
)]

mod a2a;
mod accounts;
mod agui;
mod branches;
mod changes;
mod definitions;
mod diff;
mod events;
mod files;
mod health;
mod many;
pub(crate) mod mcp;
mod memories;
mod openai;
mod orders;
mod questions;
mod reruns;
mod screens;
mod searches;
mod server;
mod sessions;
mod story;
mod views;
mod webhooks;

pub(crate) use sessions::{label_of, row};

use crate::{Limits, Server, openapi};
use utoipa_axum::router::OpenApiRouter;

/// Returns all routes with their documents. The limits are those of bodies that may carry files.
pub(crate) fn all(limits: &Limits) -> OpenApiRouter<Server> {
    OpenApiRouter::with_openapi(openapi::base())
        .merge(sessions::routes(limits))
        .merge(questions::routes())
        .merge(orders::routes())
        .merge(many::routes())
        .merge(changes::routes())
        .merge(memories::routes())
        .merge(branches::routes())
        .merge(events::routes(limits))
        .merge(views::routes())
        .merge(story::routes())
        .merge(diff::routes())
        .merge(screens::routes())
        .merge(reruns::routes())
        .merge(searches::routes())
        .merge(definitions::routes())
        .merge(accounts::routes())
        .merge(server::routes())
        .merge(webhooks::routes())
        .merge(openai::routes(limits))
        .merge(agui::routes(limits))
        .merge(mcp::routes())
        .merge(a2a::routes(limits))
        .merge(health::routes())
}
