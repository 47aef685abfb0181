//! The requests of one call: one in the versions of the protocol up to 2025-11-25, from 2026-07-28 on as many as the server asks for
//! input, and one more.

use super::asks::Asker;
use super::client::Hears;
use super::outcome::{not_performed, unknown};
use super::{KEY, Live, McpTools, ON_THE_WAY, Slot, linked, outcome};
use crate::masked::Mask;
use crate::wire::TRACE;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, InputRequiredResult, InputResponses,
    JsonObject, RequestMetaObject, ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use std::sync::Arc;
use std::time::Duration;
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::interaction::Class;
use steersman_machine::view::mapping::{Fault, Raw};
use steersman_runtime::toolset::{Leave, STEP_RESULT, ToolRun};
use tokio_util::sync::CancellationToken;

/// Maximum number of requests of one call, each but the last of which is answered by a request for input.
const ROUNDS: u32 = 10;
/// Name of the steps of the requests of a call that is made again after a sign-in.
const SIGNED: &str = "after a sign-in";

/// A call on a connection.
pub(super) struct Call<'a> {
    pub(super) run: &'a ToolRun,
    /// Name of the tool, as the server knows it.
    pub(super) name: &'a Arc<str>,
    /// The schema of its results.
    pub(super) output: Option<&'a Arc<str>>,
    pub(super) is_http: bool,
    pub(super) live: &'a Live,
    pub(super) slot: &'a Slot,
    pub(super) cancel: &'a CancellationToken,
    pub(super) mask: &'a Mask,
    pub(super) hears: Hears,
    pub(super) asker: &'a Arc<Asker>,
    /// A person was asked for a sign-in before.
    pub(super) signed: bool,
}

/// The input that a request of a call brings, after the server asked for it.
#[derive(Default)]
struct More {
    given: Option<InputResponses>,
    /// Text that the server wants back unchanged.
    state: Option<String>,
}

/// The answer to a request of a call.
enum Round {
    Over(Raw),
    Asks(Box<InputRequiredResult>),
}

/// Returns the outcome of a call whose n-th request ended so. What the server did before it asked is not known, so a call with several
/// requests is not proved not to have happened.
fn of_round(n: u32, raw: Raw) -> Raw {
    match raw {
        Raw::NotPerformed(fault) if n > 1 => Raw::Unknown(Fault {
            message: format!(
                "{}; the server had asked for input before, and what it did until then is not known",
                fault.message
            ),
            ..fault
        }),
        raw => raw,
    }
}

fn request(run: &ToolRun, tool: &Arc<str>, more: More) -> (ClientRequest, PeerRequestOptions) {
    let arguments = serde_json::from_str::<JsonObject>(&run.work.args).unwrap_or_default();
    let mut params = CallToolRequestParams::new(tool.to_string()).with_arguments(arguments);
    params.input_responses = more.given;
    params.request_state = more.state;
    let mut options = PeerRequestOptions::no_options();
    let mut meta = RequestMetaObject::new();
    if run.work.class == Class::Idempotent {
        let key = format!("{}.{:x}.{}", run.session, run.mark, run.effect);
        meta.0.0.insert(KEY.to_owned(), key.into());
    }
    if let Some(trace) = run.trace {
        meta.0.0.insert(TRACE.to_owned(), trace.to_string().into());
    }
    if !meta.0.0.is_empty() {
        options = options.with_meta(meta);
    }
    (
        ClientRequest::CallToolRequest(CallToolRequest::new(params)),
        options,
    )
}

impl McpTools {
    /// Sends a call on its connection.
    pub(super) async fn sent(&self, call: &Call<'_>) -> Raw {
        if call.live.has_rounds() {
            return Box::pin(self.rounds(call)).await;
        }
        match self.round(call, More::default()).await {
            Round::Over(raw) => raw,
            // The server may have done a part of its work before it asked, and the answer does not say whether it did.
            Round::Asks(_) => unknown(
                Code::Failed,
                "the server asks for more input in a way that this version of the protocol does not have, and what it did before is not known",
            ),
        }
    }

    /// Makes a call as requests that each stand alone: a result may ask for input, and the next request brings it. Each request is a
    /// step of the call, so a later attempt goes on after the last one that was answered.
    async fn rounds(&self, call: &Call<'_>) -> Raw {
        let mut more = More::default();
        for n in 1..=ROUNDS {
            let name = if call.signed {
                format!("request {n} {SIGNED}")
            } else {
                format!("request {n}")
            };
            let leave = match &call.run.steps {
                Some(steps) => Some(steps.clone().begin(name.into()).await),
                None => None,
            };
            let asks = match leave {
                Some(Leave::Ended(Ok(json))) => match serde_json::from_str(&json) {
                    Ok(asks) => asks,
                    Err(error) => {
                        let message = format!("the recorded answer to request {n}: {error}");
                        return unknown(Code::Misfit, message);
                    }
                },
                Some(Leave::Ended(Err(fault))) => return of_round(n, Raw::NotPerformed(fault)),
                Some(Leave::Refused(fault)) => return Raw::Unknown(fault),
                Some(Leave::Begin(begun)) => match self.round(call, more).await {
                    Round::Over(raw) => {
                        if let Raw::NotPerformed(fault) = &raw {
                            // If it is not recorded, the next attempt does not know, and that is so in any case.
                            let _ = begun.end(Err(fault.clone())).await;
                        }
                        return of_round(n, raw);
                    }
                    Round::Asks(asks) => {
                        let json = serde_json::to_string(&asks).unwrap_or_default();
                        if json.len() > STEP_RESULT {
                            let message =
                                format!("the server asks in more than {STEP_RESULT} bytes");
                            return unknown(Code::Failed, message);
                        }
                        if let Err(fault) = begun.end(Ok(json)).await {
                            return Raw::Unknown(fault);
                        }
                        *asks
                    }
                },
                None => match self.round(call, more).await {
                    Round::Over(raw) => return of_round(n, raw),
                    Round::Asks(asks) => *asks,
                },
            };
            let (state, has_questions) =
                (asks.request_state.clone(), asks.input_requests.is_some());
            more = match call.asker.answers(asks).await {
                Ok(given) => More {
                    given: has_questions.then_some(given),
                    state,
                },
                Err(why) => return unknown(Code::Failed, format!("the server {why}")),
            };
        }
        let message = format!("the server asked for more input {ROUNDS} times");
        unknown(Code::Failed, message)
    }

    /// Sends one request of a call, and waits for its answer.
    async fn round(&self, call: &Call<'_>, more: More) -> Round {
        let Call {
            run,
            live,
            cancel,
            mask,
            asker,
            ..
        } = *call;
        let request = request(run, call.name, more);
        let client = live.service.service();
        let may_ask = client.asking().sends(asker);
        let peer = live.service.peer();
        let sent = peer.send_request_with_option(request.0, request.1).await;
        let Ok(mut sent) = sent else {
            let tail = live.said.last_words(mask).await;
            let message = format!("the connection has just ended{tail}");
            return Round::Over(not_performed(message, Some(0)));
        };
        may_ask.was_sent(&sent.id);
        let following = client.follow(sent.progress_token.clone(), call.hears.clone());
        let answer = cancel.run_until_cancelled(&mut sent.rx).await;
        drop((following, may_ask));
        let Some(answer) = answer else {
            // A server that reads no more messages notices the cancel when the connection ends.
            let told = sent.cancel(Some("cancelled".to_owned()));
            let _ = tokio::time::timeout(Duration::from_secs(1), told).await;
            let printed = live.said.printed(mask);
            let cancelled = unknown(Code::Cancelled, format!("{ON_THE_WAY}{printed}"));
            return Round::Over(cancelled);
        };
        let raw = match answer {
            Ok(Ok(ServerResult::CallToolResult(result))) => {
                let linked = linked::read(live, &result, cancel, mask).await;
                let schema = call.output.map(|schema| (schema, &self.schemas));
                let how = (call.is_http, linked);
                outcome::result(result, schema, how, &run.work.makes, mask).await
            }
            Ok(Ok(ServerResult::InputRequiredResult(asks))) => {
                call.slot.0.lock().await.unanswered = 0;
                return Round::Asks(Box::new(asks));
            }
            Ok(Ok(_)) => unknown(Code::Failed, "its answer is not a result of a call"),
            Ok(Err(ServiceError::McpError(error))) => {
                outcome::fault(ServiceError::McpError(error), "", mask)
            }
            Ok(Err(error)) => {
                if let Some(lack) = live.lack(&error) {
                    return Round::Over(lack.raw());
                }
                if outcome::is_expired(&error) {
                    call.slot.forget(live).await;
                }
                outcome::fault(error, &live.said.last_words(mask).await, mask)
            }
            Err(_) => {
                let tail = live.said.last_words(mask).await;
                outcome::fault(ServiceError::TransportClosed, &tail, mask)
            }
        };
        if !live.has_ended() {
            call.slot.0.lock().await.unanswered = 0;
        }
        Round::Over(raw)
    }
}
