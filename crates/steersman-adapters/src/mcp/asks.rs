//! Questions that a server asks a person while its tool runs ("elicitation").
//!
//! A question belongs to a call. Over HTTP a server asks on the stream of the call's own response, so the call is known; over standard
//! input and output it is known if no other call runs on the connection. A question that belongs to no call is declined.

use crate::masked::Mask;
use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequiredResult,
    InputResponses, RequestId, RequestMetaObject,
};
use serde_json::json;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use steersman_runtime::fields::{Fields, MESSAGE, SCHEMA};
use steersman_runtime::toolset::{Given, Question, Steps};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// Time within which a call that was sent has to be known by its id.
const SENT: Duration = Duration::from_secs(5);

/// Name of the entry in `_meta` of a question that says to which call it belongs. It is set within this process and never sent.
pub(super) const CALL: &str = "dev.steersman/call";

/// The calls of a connection, each of which may ask a person.
#[derive(Clone, Default)]
pub(super) struct Asking(Arc<Calls>);

#[derive(Default)]
struct Calls {
    open: Mutex<Vec<Call>>,
    /// Notified when the id of a call is known, and when a call ends.
    changed: Notify,
    /// Cancelled when the connection has ended.
    ended: CancellationToken,
}

struct Call {
    /// `None` until the request was sent.
    id: Option<RequestId>,
    asker: Arc<Asker>,
}

/// A call that may ask until this is dropped.
pub(super) struct MayAsk<'a>(&'a Asking, Arc<Asker>);

/// The call to which a question belongs.
enum Found {
    Call(Arc<Asker>),
    /// It may be one whose id is not known yet.
    Later,
    None,
}

impl Asking {
    fn calls(&self) -> MutexGuard<'_, Vec<Call>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection has ended: the library keeps its calls for as long as a question of it is not answered.
    pub(super) fn ends(&self) {
        self.0.ended.cancel();
    }

    /// Waits until the connection has ended.
    pub(super) async fn until_end(&self) {
        self.0.ended.cancelled().await;
    }

    /// A call is about to be sent.
    pub(super) fn sends(&self, asker: &Arc<Asker>) -> MayAsk<'_> {
        self.calls().push(Call {
            id: None,
            asker: asker.clone(),
        });
        MayAsk(self, asker.clone())
    }

    fn find(&self, wanted: Option<&RequestId>) -> Found {
        let calls = self.calls();
        let Some(wanted) = wanted else {
            return match &calls[..] {
                [only] => Found::Call(only.asker.clone()),
                _ => Found::None,
            };
        };
        match calls.iter().find(|call| call.id.as_ref() == Some(wanted)) {
            Some(call) => Found::Call(call.asker.clone()),
            None if calls.iter().any(|call| call.id.is_none()) => Found::Later,
            None => Found::None,
        }
    }

    /// Returns the call to which a question belongs.
    pub(super) async fn of(&self, meta: &RequestMetaObject) -> Option<Arc<Asker>> {
        let wanted = meta.0.0.get(CALL).cloned();
        let wanted = wanted.and_then(|id| serde_json::from_value::<RequestId>(id).ok());
        let found = async {
            loop {
                let changed = self.0.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                match self.find(wanted.as_ref()) {
                    Found::Call(asker) => return Some(asker),
                    Found::None => return None,
                    Found::Later => changed.await,
                }
            }
        };
        tokio::time::timeout(SENT, found).await.ok().flatten()
    }
}

impl MayAsk<'_> {
    /// The call was sent under this id.
    pub(super) fn was_sent(&self, id: &RequestId) {
        let mut calls = self.0.calls();
        let own = calls
            .iter_mut()
            .find(|call| Arc::ptr_eq(&call.asker, &self.1));
        if let Some(own) = own {
            own.id = Some(id.clone());
        }
        drop(calls);
        self.0.0.changed.notify_waiters();
    }
}

impl Drop for MayAsk<'_> {
    fn drop(&mut self) {
        self.0
            .calls()
            .retain(|call| !Arc::ptr_eq(&call.asker, &self.1));
        self.0.0.changed.notify_waiters();
    }
}

/// Asks people for one call.
pub(super) struct Asker {
    /// `None`: the engine runs the tool for itself, and nobody is asked.
    steps: Option<Arc<dyn Steps>>,
    mask: Mask,
    /// The tokens of the connection.
    tokens: Mutex<Mask>,
    /// Number of questions that are open, or wait for their turn.
    open: watch::Sender<u32>,
    /// People are asked one question after the other.
    turn: tokio::sync::Mutex<()>,
}

/// A question that is open until this is dropped.
struct Open<'a>(&'a watch::Sender<u32>);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

/// Waits until a person is asked, or until nobody is.
async fn until(open: &mut watch::Receiver<u32>, asks: bool) {
    let _ = open.wait_for(|open| (*open > 0) == asks).await;
}

impl Asker {
    pub(super) fn new(steps: Option<Arc<dyn Steps>>, mask: Mask) -> Arc<Self> {
        Arc::new(Self {
            steps,
            mask,
            tokens: Mutex::default(),
            open: watch::Sender::default(),
            turn: tokio::sync::Mutex::default(),
        })
    }

    /// Hides the tokens of the connection in questions, too.
    pub(super) fn hides(&self, tokens: Mask) {
        *self.tokens.lock().unwrap_or_else(PoisonError::into_inner) = tokens;
    }

    /// Ends after this time, but for the time in which a person is asked: after each answer the whole time begins again.
    pub(super) async fn time_passes(&self, limit: Duration) {
        let mut open = self.open.subscribe();
        loop {
            until(&mut open, false).await;
            tokio::select! {
                biased;
                () = until(&mut open, true) => {}
                () = tokio::time::sleep(limit) => return,
            }
        }
    }

    /// Asks a person. `parks`: the request of the call has ended with the question.
    pub(super) async fn asks(&self, asked: ElicitRequestParams, parks: bool) -> ElicitResult {
        let Some(steps) = &self.steps else {
            return ElicitResult::new(ElicitationAction::Decline);
        };
        self.open.send_modify(|open| *open += 1);
        let _open = Open(&self.open);
        let _turn = self.turn.lock().await;
        match steps.clone().ask(self.question(asked, parks)).await {
            Ok(Given::Fields(fields)) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(fields)
            }
            Ok(Given::Declined) => ElicitResult::new(ElicitationAction::Decline),
            Err(_) => ElicitResult::new(ElicitationAction::Cancel),
        }
    }

    /// Asks a person to do something outside, before anything of the call was sent. Returns true if the person says that it is done. The
    /// attempt is dropped meanwhile, and another one follows that gets the answer.
    pub(super) async fn waits_for(&self, message: &str) -> bool {
        let Some(steps) = &self.steps else {
            return false;
        };
        self.open.send_modify(|open| *open += 1);
        let _open = Open(&self.open);
        let _turn = self.turn.lock().await;
        let question = Question {
            message: self.mask.first(message, MESSAGE),
            schema: "{}".to_owned(),
            parks: true,
            declined: None,
        };
        matches!(steps.clone().ask(question).await, Ok(Given::Fields(_)))
    }

    fn question(&self, asked: ElicitRequestParams, parks: bool) -> Question {
        let (message, schema, declined) = match asked {
            ElicitRequestParams::FormElicitationParams {
                message,
                requested_schema,
                ..
            } => {
                let schema = serde_json::to_string(&requested_schema).unwrap_or_default();
                let declined = refused(&schema);
                (message, schema, declined)
            }
            ElicitRequestParams::UrlElicitationParams { message, .. } => {
                let why = "nobody is sent to an address that a server names: what is asked for there is for the server alone, such as a secret";
                (message, String::new(), Some(why.to_owned()))
            }
            _ => {
                let why = "it is of a kind that is not known here";
                (String::new(), String::new(), Some(why.to_owned()))
            }
        };
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let schema = match schema.len() {
            1..=SCHEMA => tokens.all(&self.mask.all(&schema)),
            _ => "{}".to_owned(),
        };
        Question {
            message: self.mask.first(&tokens.all(&message), MESSAGE),
            schema,
            parks,
            declined,
        }
    }

    /// Asks a person everything that a result wants. Returns what the next request of the call answers.
    ///
    /// # Errors
    /// The server wants something that nobody here gives, as the end of a sentence.
    pub(super) async fn answers(
        &self,
        wants: InputRequiredResult,
    ) -> Result<InputResponses, String> {
        let mut given = InputResponses::new();
        for (key, wanted) in wants.input_requests.unwrap_or_default() {
            let answer = match wanted {
                InputRequest::Elicitation(asked) => {
                    let answer = self.asks(asked.params, true).await;
                    serde_json::to_value(answer).unwrap_or_default()
                }
                InputRequest::ListRoots(_) => json!({ "roots": [] }),
                _ => {
                    return Err(
                        "wants an answer of a model, and no model is for it here".to_owned()
                    );
                }
            };
            given.insert(key, answer);
        }
        Ok(given)
    }
}

/// Returns the reason why no person is asked for these fields.
fn refused(schema: &str) -> Option<String> {
    match Fields::read(schema) {
        Err(why) => Some(format!("nobody is asked: {why}")),
        Ok(fields) => fields.secret().map(|name| {
            format!("nobody is asked: `{name}` looks like a secret, for which a server must not ask in a form")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::{Asker, Open};
    use crate::masked::Mask;
    use futures::FutureExt;
    use std::time::Duration;

    #[tokio::test]
    async fn the_time_of_a_call_stands_still_while_a_person_is_asked() {
        let asker = Asker::new(None, Mask::default());
        asker.open.send_modify(|open| *open += 1);
        let open = Open(&asker.open);
        let passes = asker.time_passes(Duration::ZERO);
        tokio::pin!(passes);
        for _ in 0..3 {
            assert!(passes.as_mut().now_or_never().is_none());
        }
        drop(open);
        passes.await;
    }
}
