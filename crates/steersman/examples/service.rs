//! A refund desk behind HTTP: sessions that outlive the process, streams that can be resumed, a manager who decides.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::{Stream, StreamExt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::future::IntoFuture;
use steersman::{
    By, Cursor, Error, ErrorKind, Network, PendingId, Question, StartOptions, Steersman, ToolError,
    tool_with,
};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

const DEFINITION: &str = "
steersman: 1
name: refunds
tools:
  refund:
    native: 1
    description: Pays money back for an order.
    parameters: { order: string, cents: integer }
    effect: idempotent
    approve: { when: args.cents > 2000, by: manager, ask: 'Refund {{ args.cents | cents }}?' }
agents:
  manager: { person: { role: manager } }
  desk: { description: Settles complaints., system: You settle complaints., tools: [refund] }
entry: desk
";

#[derive(Deserialize, JsonSchema)]
struct Refund {
    order: String,
    cents: u64,
}

fn network() -> Result<Network, Error> {
    let refund = tool_with("refund", 1, |refund: Refund, cx| async move {
        cx.progress(0.0, Some(1.0), "asks the bank");
        // Here a payment provider is called. It pays once for a key, however often it is asked.
        let key = cx.key();
        let Refund { order, cents } = refund;
        Ok::<_, ToolError>(json!({ "order": order, "cents": cents, "known": !key.is_empty() }))
    });
    Ok(Network::from_yaml(DEFINITION).tool(refund).build()?)
}

#[derive(Clone)]
struct Desk {
    steersman: Steersman,
    network: Network,
    stop: CancellationToken,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = std::env::var("DESK_STORE").unwrap_or_else(|_| "refunds.db".into());
    let listener = TcpListener::bind(
        std::env::var("DESK_AT")
            .as_deref()
            .unwrap_or("127.0.0.1:3000"),
    )
    .await?;
    let setup = match std::env::var("DESK_SCRIPT") {
        Ok(script) => Steersman::options().script_all_file(script), // offline, without a model
        Err(_) => Steersman::options(),
    };
    serve(setup.open(store).await?, listener).await
}

pub(crate) async fn serve(
    steersman: Steersman,
    listener: TcpListener,
) -> Result<(), Box<dyn std::error::Error>> {
    let network = network()?;
    steersman.register(&network); // sessions of a process before this one need its tools
    let stop = CancellationToken::new();
    let desk = Desk {
        steersman: steersman.clone(),
        network,
        stop: stop.clone(),
    };
    let routes = Router::new()
        .route("/sessions", post(start).get(list))
        .route("/sessions/{id}/messages", post(say))
        .route("/sessions/{id}/events", get(events))
        .route("/sessions/{id}/questions", get(questions))
        .route("/sessions/{id}/questions/{question}", post(decide))
        .with_state(desk);

    let mut terminated = signal(SignalKind::terminate())?;
    let told = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminated.recv() => {}
        }
        told.cancel();
    });
    let serving = axum::serve(listener, routes)
        .with_graceful_shutdown(stop.clone().cancelled_owned())
        .into_future();
    let driving = async {
        let driven = steersman.run_all(stop.clone()).await;
        stop.cancel(); // if the store is lost, the service ends too
        driven
    };
    let (served, driven) = tokio::join!(serving, driving);
    steersman.stop().await; // what must not be repeated is waited for, and all lines reach the disk
    served?;
    Ok(driven?)
}

#[derive(Deserialize)]
struct Say {
    text: String,
}

async fn start(State(desk): State<Desk>, Json(say): Json<Say>) -> Result<Response, Failure> {
    let options = StartOptions {
        say: Some(say.text),
        ..StartOptions::default()
    };
    let session = desk.steersman.start_with(&desk.network, options).await?;
    Ok((
        StatusCode::CREATED,
        Json(json!({ "session": session.id() })),
    )
        .into_response())
}

async fn say(
    State(desk): State<Desk>,
    Path(id): Path<String>,
    Json(say): Json<Say>,
) -> Result<StatusCode, Failure> {
    let session = desk.steersman.session(&id).await?;
    session.say(&say.text).await?;
    Ok(StatusCode::ACCEPTED) // on disk; what comes of it is told by the events
}

async fn list(State(desk): State<Desk>) -> Result<Json<Value>, Failure> {
    let all = desk
        .steersman
        .sessions(&steersman::SessionQuery::default())
        .await?;
    let all = all
        .iter()
        .map(|info| json!({ "session": &*info.id, "status": &*info.state.status }));
    Ok(Json(all.collect()))
}

async fn events(
    State(desk): State<Desk>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<sse::Event, Error>>>, Failure> {
    desk.steersman.info(&id).await?; // 404 before a stream begins
    let from = match header(&headers, "last-event-id") {
        Some(text) => text.parse().map_err(|e| Failure::wrong(&e))?,
        None => Cursor::START,
    };
    let events = desk.steersman.events(&id, from).into_stream();
    let events = events.map(|event| {
        let event = event?;
        let data = event.to_json().to_string();
        Ok(sse::Event::default()
            .id(event.cursor.to_string())
            .data(data))
    });
    // Streams have no end of their own: they end with the service.
    let events = events.take_until(desk.stop.cancelled_owned());
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

async fn questions(
    State(desk): State<Desk>,
    Path(id): Path<String>,
) -> Result<Json<Vec<Question>>, Failure> {
    Ok(Json(desk.steersman.pending(&id).await?))
}

#[derive(Deserialize)]
struct Decision {
    approve: bool,
    #[serde(default)]
    reason: String,
}

async fn decide(
    State(desk): State<Desk>,
    Path((id, question)): Path<(String, String)>,
    headers: HeaderMap,
    Json(decision): Json<Decision>,
) -> Result<StatusCode, Failure> {
    // Who somebody is comes from your own authentication; a header that anybody can write is for a guide.
    let by = By::role(header(&headers, "x-role").unwrap_or("user"));
    let question: PendingId = question
        .parse()
        .map_err(|()| Failure::wrong(&"no such question"))?;
    let session = desk.steersman.session(&id).await?;
    if decision.approve {
        session.approve(question, by).await?;
    } else {
        session.reject(question, &decision.reason, by).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

struct Failure(StatusCode, String);

impl Failure {
    fn wrong(why: &dyn std::fmt::Display) -> Self {
        Self(StatusCode::BAD_REQUEST, why.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match error.kind() {
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Conflict => StatusCode::CONFLICT,
            ErrorKind::Refused => StatusCode::UNPROCESSABLE_ENTITY,
            ErrorKind::Busy | ErrorKind::Stopping | ErrorKind::Full | ErrorKind::Unavailable => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self(status, error.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "error": self.1 }))).into_response()
    }
}
