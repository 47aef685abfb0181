//! The bank of `examples/bank`: logins, accounts, prices of shares, and a book of transfers. The book survives a restart of the
//! service if it is a file.
//!
//! A transfer is booked *before* the response is sent, once for each key. A repeated request with the same key gets the same
//! response, and the book records the repetition (`again`), so that tests can count requests made in doubt.

use crate::book::{Book, Refused, key};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Json as Body;
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::sync::Arc;

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

/// Returns the routes of the service. Its book has the transfers, and records of repeated requests.
pub(crate) fn routes(book: Book) -> Router {
    Router::new()
        .route("/login", post(login))
        .route("/accounts/{name}", get(account))
        .route("/balances/{id}", get(balance))
        .route("/stocks/{symbol}", get(stock))
        .route("/transfers", get(transfers))
        .route("/transfers/{from}", post(transfer))
        .with_state(Arc::new(book))
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
    State(book): State<Arc<Book>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Body<Json>, Refused> {
    let user = user(&headers)?;
    let cents = held(&book.entries(), user, &id)?;
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
async fn transfers(State(book): State<Arc<Book>>) -> Body<Json> {
    Body(Json::Array(book.entries().clone()))
}

async fn transfer(
    State(book): State<Arc<Book>>,
    Path(from): Path<String>,
    headers: HeaderMap,
    axum::Json(wanted): axum::Json<Transfer>,
) -> Result<Body<Json>, Refused> {
    let user = user(&headers)?;
    let key = key(&headers).ok_or((StatusCode::BAD_REQUEST, "a transfer has a key"))?;
    let mut entries = book.entries();
    let known = entries
        .iter()
        .find(|entry| entry["kind"] == "transfer" && entry["key"] == key)
        .cloned();
    if let Some(known) = known {
        let again = json!({ "kind": "again", "key": key, "id": known["id"] });
        book.enter(&mut entries, again)?;
        return Ok(Body(known));
    }
    if wanted.cents <= 0 {
        return Err((StatusCode::CONFLICT, "a transfer moves at least one cent"));
    }
    if wanted.cents > held(&entries, user, &from)? {
        return Err((StatusCode::CONFLICT, "that is more than the account holds"));
    }
    let made = entries.iter().filter(|entry| entry["kind"] == "transfer");
    let booked = json!({
        "kind": "transfer",
        "id": format!("t-{}", made.count() + 1),
        "key": key,
        "from": from,
        "to": wanted.to,
        "cents": wanted.cents,
    });
    book.enter(&mut entries, booked).map(Body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_transfer_is_refused_with_its_reason() {
        let book = Arc::new(Book::open(None).unwrap());
        let headers = [
            ("authorization", "Bearer t-anna-9c07"),
            ("idempotency-key", "k"),
        ];
        let parsed = |(name, value): (&str, &str)| (name.parse().unwrap(), value.parse().unwrap());
        let headers: HeaderMap = headers.into_iter().map(parsed).collect();
        for (cents, why) in [
            (0, "a transfer moves at least one cent"),
            (2_001, "that is more than the account holds"),
        ] {
            let wanted = Transfer {
                to: "1234567890".to_owned(),
                cents,
            };
            let from = Path("2234567890".to_owned());
            let book = State(book.clone());
            let made = transfer(book, from, headers.clone(), axum::Json(wanted)).await;
            assert_eq!(made.unwrap_err(), (StatusCode::CONFLICT, why));
        }
    }
}
