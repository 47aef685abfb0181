//! The bank of `examples/bank`: logins, accounts, prices of shares, and a book of transfers. The book survives a restart of the
//! service if it is a file.
//!
//! A transfer is booked *before* the response is sent, once for each key. A repeated request with the same key gets the same
//! response, and the book records the repetition (`again`), so that tests can count requests made in doubt.

use crate::{append, read_book};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Json as Body;
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Name, password, and session token of each user. Tokens are constant, so a login survives a restart.
const USERS: &[(&str, &str, &str)] = &[
    ("seldo", "monkey", "t-seldo-51f3"),
    ("anna", "penguin", "t-anna-9c07"),
];

/// Owner, name, id, and initial balance in cents.
const ACCOUNTS: &[(&str, &str, &str, i64)] = &[
    ("seldo", "Checking", "1234567890", 100_000),
    ("seldo", "Savings", "1234567891", 500_000),
    ("anna", "Checking", "2234567890", 2_000),
];

/// Symbol and price in cents.
const STOCKS: &[(&str, i64)] = &[("AMD", 12_034), ("NVDA", 11_820), ("INTC", 2_215)];

struct Bank {
    /// Transfers, and records of repeated requests.
    book: Mutex<Vec<Json>>,
    file: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Login {
    user: String,
    password: String,
}

#[derive(Deserialize)]
struct Transfer {
    to: String,
    cents: i64,
}

type Refused = (StatusCode, &'static str);

/// Returns the routes of the service.
pub(crate) fn routes(file: Option<PathBuf>) -> std::io::Result<Router> {
    let book = match &file {
        Some(file) => read_book(file)?,
        None => Vec::new(),
    };
    let bank = Arc::new(Bank {
        book: Mutex::new(book),
        file,
    });
    Ok(Router::new()
        .route("/login", post(login))
        .route("/accounts/{name}", get(account))
        .route("/balances/{id}", get(balance))
        .route("/stocks/{symbol}", get(stock))
        .route("/transfers", get(transfers))
        .route("/transfers/{from}", post(transfer))
        .with_state(bank))
}

async fn login(axum::Json(given): axum::Json<Login>) -> Result<Body<Json>, Refused> {
    USERS
        .iter()
        .find(|(user, password, _)| *user == given.user && *password == given.password)
        .map(|(_, _, token)| Body(json!({ "token": token })))
        .ok_or((StatusCode::UNAUTHORIZED, "wrong name or password"))
}

/// Returns the user of the request's bearer token.
fn user(headers: &HeaderMap) -> Result<&'static str, Refused> {
    let given = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    USERS
        .iter()
        .find(|(_, _, token)| Some(*token) == given)
        .map(|(user, ..)| *user)
        .ok_or((StatusCode::UNAUTHORIZED, "nobody is logged in"))
}

async fn account(Path(named): Path<String>, headers: HeaderMap) -> Result<Body<Json>, Refused> {
    let user = user(&headers)?;
    ACCOUNTS
        .iter()
        .find(|(owner, name, ..)| *owner == user && name.eq_ignore_ascii_case(&named))
        .map(|(_, name, id, _)| Body(json!({ "id": id, "name": name })))
        .ok_or((StatusCode::NOT_FOUND, "no such account"))
}

async fn balance(
    State(bank): State<Arc<Bank>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Body<Json>, Refused> {
    let user = user(&headers)?;
    let book = bank.book.lock().unwrap_or_else(PoisonError::into_inner);
    let cents = held(&book, user, &id)?;
    Ok(Body(json!({ "id": id, "cents": cents })))
}

/// Returns the balance of a user's account in cents.
fn held(book: &[Json], user: &str, id: &str) -> Result<i64, Refused> {
    let (.., began) = ACCOUNTS
        .iter()
        .find(|(owner, _, known, _)| *owner == user && *known == id)
        .ok_or((StatusCode::NOT_FOUND, "no such account"))?;
    let moved = book.iter().filter(|entry| entry["kind"] == "transfer");
    let moved = moved.map(|entry| {
        let cents = entry["cents"].as_i64().unwrap_or(0);
        i64::from(entry["to"] == id) * cents - i64::from(entry["from"] == id) * cents
    });
    Ok(began + moved.sum::<i64>())
}

async fn stock(Path(symbol): Path<String>) -> Result<Body<Json>, Refused> {
    STOCKS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(&symbol))
        .map(|(symbol, cents)| Body(json!({ "symbol": symbol, "cents": cents })))
        .ok_or((StatusCode::NOT_FOUND, "no such share"))
}

/// Returns the whole book.
async fn transfers(State(bank): State<Arc<Bank>>) -> Body<Json> {
    let book = bank.book.lock().unwrap_or_else(PoisonError::into_inner);
    Body(Json::Array(book.clone()))
}

async fn transfer(
    State(bank): State<Arc<Bank>>,
    Path(from): Path<String>,
    headers: HeaderMap,
    axum::Json(wanted): axum::Json<Transfer>,
) -> Result<Body<Json>, Refused> {
    let user = user(&headers)?;
    let key = headers
        .get("idempotency-key")
        .and_then(|key| key.to_str().ok())
        .ok_or((StatusCode::BAD_REQUEST, "a transfer has a key"))?;
    let mut book = bank.book.lock().unwrap_or_else(PoisonError::into_inner);
    let known = book
        .iter()
        .find(|entry| entry["kind"] == "transfer" && entry["key"] == key)
        .cloned();
    if let Some(known) = known {
        let again = json!({ "kind": "again", "key": key, "id": known["id"] });
        bank.enter(&mut book, again)?;
        return Ok(Body(known));
    }
    if wanted.cents <= 0 || wanted.cents > held(&book, user, &from)? {
        return Err((StatusCode::CONFLICT, "that is more than the account holds"));
    }
    let made = book.iter().filter(|entry| entry["kind"] == "transfer");
    let booked = json!({
        "kind": "transfer",
        "id": format!("t-{}", made.count() + 1),
        "key": key,
        "from": from,
        "to": wanted.to,
        "cents": wanted.cents,
    });
    bank.enter(&mut book, booked.clone())?;
    Ok(Body(booked))
}

impl Bank {
    fn enter(&self, book: &mut Vec<Json>, entry: Json) -> Result<(), Refused> {
        if let Some(file) = &self.file {
            append(file, &entry)
                .map_err(|_| (StatusCode::SERVICE_UNAVAILABLE, "the book is closed"))?;
        }
        book.push(entry);
        Ok(())
    }
}
