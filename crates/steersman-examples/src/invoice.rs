//! The back office of `examples/invoice`: orders, a ledger of postings and a mailbox. They survive a restart of the service if
//! its book is a file.
//!
//! A posting is booked *before* the response is sent. Postings have no key, so a repeated request books again. Mail and chat
//! use keys. With `--faulty` the service breaks the connection on some postings: after booking if the number ends with 7, and
//! once before booking if it ends with 8.

use crate::book::{Book, Refused, key};
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Json as Body;
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

struct Office {
    /// All entries: postings, mail and chat, distinguished by `kind`.
    book: Book,
    faulty: bool,
    /// Numbers of postings whose connection was broken before booking.
    broken: Mutex<BTreeSet<String>>,
}

#[derive(Deserialize)]
struct Wanted {
    vendor: String,
    cents: i64,
}

/// Returns the routes of the service.
pub(crate) fn routes(faulty: bool, book: Book) -> Router {
    let office = Arc::new(Office {
        book,
        faulty,
        broken: Mutex::default(),
    });
    Router::new()
        .route("/orders", get(orders))
        .route("/postings", post(book_posting))
        .route("/postings/{number}", get(posting))
        .route("/mail", post(mail))
        .route("/chat", post(chat))
        .with_state(office)
}

/// Returns an order that matches the invoice; the vendor `Nobody` has none.
async fn orders(Query(wanted): Query<Wanted>) -> Body<Json> {
    Body(match wanted.vendor.as_str() {
        "Nobody" => json!([]),
        vendor => {
            let vendor: String = vendor.chars().filter(char::is_ascii_alphabetic).collect();
            let id = format!("PO-{}-{}", vendor.to_uppercase(), wanted.cents / 100);
            json!([{ "id": id, "cents": wanted.cents }])
        }
    })
}

/// Returns the posting of an invoice, or an empty number if there is none.
async fn posting(State(office): State<Arc<Office>>, Path(number): Path<String>) -> Body<Json> {
    let entries = office.book.entries();
    let found = entries
        .iter()
        .find(|entry| entry["kind"] == "posting" && entry["number"] == number.as_str());
    Body(found.cloned().unwrap_or_else(|| json!({ "number": "" })))
}

async fn book_posting(
    State(office): State<Arc<Office>>,
    axum::Json(mut posting): axum::Json<Json>,
) -> Result<Body<Json>, Refused> {
    let number = posting["number"].as_str().unwrap_or_default().to_owned();
    if office.faulty && number.ends_with('8') {
        let mut broken = office.broken.lock().unwrap_or_else(PoisonError::into_inner);
        if broken.insert(number.clone()) {
            drop(broken);
            hang_up();
        }
    }
    posting["kind"] = "posting".into();
    posting["id"] = format!("L-{number}").into();
    let booked = office.book.enter(&mut office.book.entries(), posting)?;
    if office.faulty && number.ends_with('7') {
        hang_up();
    }
    Ok(Body(booked))
}

async fn mail(
    state: State<Arc<Office>>,
    headers: HeaderMap,
    said: axum::Json<Json>,
) -> Result<Body<Json>, Refused> {
    once("mail", state, &headers, said)
}

async fn chat(
    state: State<Arc<Office>>,
    headers: HeaderMap,
    said: axum::Json<Json>,
) -> Result<Body<Json>, Refused> {
    once("chat", state, &headers, said)
}

/// Enters mail or chat; a request with a known key gets the first entry again.
fn once(
    kind: &str,
    State(office): State<Arc<Office>>,
    headers: &HeaderMap,
    axum::Json(mut said): axum::Json<Json>,
) -> Result<Body<Json>, Refused> {
    let key = key(headers);
    said["kind"] = kind.into();
    said["key"] = key.into();
    let mut entries = office.book.entries();
    let known = key.and_then(|key| entries.iter().find(|entry| entry["key"] == key).cloned());
    match known {
        Some(known) => Ok(Body(known)),
        None => office.book.enter(&mut entries, said).map(Body),
    }
}

/// Ends the connection's task with a panic, without a response and without a panic message.
fn hang_up() -> ! {
    std::panic::resume_unwind(Box::new("the connection is broken on purpose"))
}
