//! The shop of `examples/support`: orders, and a book of refunds that survives a restart of the service if it is a file.
//!
//! A refund is booked *before* the response is sent, as at any bank. A caller that dies before it reads the response
//! does not know if the refund was booked.

use crate::book::{Book, Refused};
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json as Body};
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number, item, price in cents, and time of delivery.
const ORDERS: &[(&str, &str, u64, &str)] = &[
    ("4711", "kettle", 3990, "3 days ago"),
    ("4712", "toaster", 2450, "40 days ago"),
    ("4713", "tea towel", 600, "yesterday"),
];

struct Shop {
    refunds: Book,
    stall: AtomicBool,
}

#[derive(Deserialize)]
struct Refund {
    order: String,
    cents: u64,
}

#[derive(Deserialize)]
struct Filter {
    order: Option<String>,
}

/// Returns the routes of the service. With `stall`, the first refund is booked but never answered.
pub(crate) fn routes(stall: bool, refunds: Book) -> Router {
    let shop = Arc::new(Shop {
        refunds,
        stall: AtomicBool::new(stall),
    });
    Router::new()
        .route("/orders/{order}", get(order))
        .route("/refunds", get(refunds_of).post(refund))
        .with_state(shop)
}

async fn order(Path(number): Path<String>) -> impl IntoResponse {
    ORDERS
        .iter()
        .find(|(n, ..)| *n == number)
        .map(|(order, item, cents, delivered)| {
            Body(json!({ "order": order, "item": item, "cents": cents, "delivered": delivered }))
        })
        .ok_or((StatusCode::NOT_FOUND, "no such order"))
}

/// Returns the refund of an order, or `found: false`; without an order, returns all refunds.
async fn refunds_of(State(shop): State<Arc<Shop>>, Query(filter): Query<Filter>) -> Body<Json> {
    let refunds = shop.refunds.entries();
    Body(match filter.order {
        None => Json::Array(refunds.clone()),
        Some(order) => refunds
            .iter()
            .find(|r| r["order"] == order.as_str())
            .cloned()
            .unwrap_or_else(|| json!({ "found": false })),
    })
}

async fn refund(
    State(shop): State<Arc<Shop>>,
    axum::Json(refund): axum::Json<Refund>,
) -> Result<Body<Json>, Refused> {
    let booked = {
        let mut refunds = shop.refunds.entries();
        let booked = json!({
            "id": format!("r-{}", refunds.len() + 1),
            "order": refund.order,
            "cents": refund.cents,
            "found": true,
        });
        shop.refunds.enter(&mut refunds, booked)?
    };
    if shop.stall.swap(false, Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
    Ok(Body(booked))
}
