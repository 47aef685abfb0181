//! The client side of a connection: requests and notifications of a server while it works.

use super::asks::Asking;
use rmcp::ClientHandler;
use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorData, FormElicitationCapability, Implementation,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, ServerJsonRpcMessage,
    ServerNotification,
};
use rmcp::service::{NotificationContext, RequestContext, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use steersman_runtime::toolset::Progress;

/// Transport that counts announced changes of the tool list before any later message is handled, and tells when the connection ends.
pub(super) struct Watched<T> {
    inner: T,
    changes: Arc<AtomicU64>,
    asking: Asking,
}

impl<T> Watched<T> {
    /// Wraps the transport of a client; announced changes are counted in `changes`.
    pub(super) fn new(inner: T, changes: Arc<AtomicU64>, client: &Client) -> Self {
        Self {
            inner,
            changes,
            asking: client.asking.clone(),
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await;
        if message.is_none() {
            self.asking.ends();
        }
        // Not counted by a handler: handlers of notifications run concurrently with later answers.
        if let Some(ServerJsonRpcMessage::Notification(told)) = &message
            && let ServerNotification::ToolListChangedNotification(_) = told.notification
        {
            self.changes.fetch_add(1, Ordering::AcqRel);
        }
        message
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

/// Receives the progress of a call.
pub(super) type Hears = Arc<dyn Fn(Progress) + Send + Sync>;

/// Our side of a connection. It offers forms for people: see [`asks`](super::asks). A request for a model gets "no such method", and
/// the list of roots is empty.
#[derive(Clone, Default)]
pub(super) struct Client {
    calls: Arc<Mutex<Calls>>,
    asking: Asking,
}

/// Maximum number of progress reports that are kept for calls that are not followed yet.
const EARLY: usize = 64;

#[derive(Default)]
struct Calls {
    hears: HashMap<ProgressToken, Hears>,
    /// Reports that came early: the token of a call is known only after sending, and a fast server may report before that.
    early: VecDeque<(ProgressToken, Progress)>,
}

impl Client {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the calls that may ask a person.
    pub(super) fn asking(&self) -> &Asking {
        &self.asking
    }

    /// Passes on the progress of a call, including early reports, until the returned value is dropped.
    pub(super) fn follow(&self, call: ProgressToken, hears: Hears) -> Following<'_> {
        let early: Vec<Progress> = {
            let mut calls = self.calls();
            calls.hears.insert(call.clone(), hears.clone());
            let (own, others) = std::mem::take(&mut calls.early)
                .into_iter()
                .partition(|(token, _)| *token == call);
            calls.early = others;
            let own: VecDeque<(ProgressToken, Progress)> = own;
            own.into_iter().map(|(_, progress)| progress).collect()
        };
        for progress in early {
            hears(progress);
        }
        Following(self, call)
    }
}

/// Stops following a call when dropped; see [`Client::follow`].
pub(super) struct Following<'a>(&'a Client, ProgressToken);

impl Drop for Following<'_> {
    fn drop(&mut self) {
        self.0.calls().hears.remove(&self.1);
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("steersman", env!("CARGO_PKG_VERSION"));
        let mut config = ClientConfig::new(ClientCapabilities::default(), us);
        let form = FormElicitationCapability::new();
        config.capabilities.elicitation = Some(ElicitationCapability::new().with_form(form));
        // The newest version of the protocol that begins with the `initialize` request.
        config.protocol_version = ProtocolVersion::V_2025_11_25;
        config
    }

    async fn create_elicitation(
        &self,
        asked: ElicitRequestParams,
        cx: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let Some(asker) = self.asking.of(&cx.meta).await else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        let given = tokio::select! {
            biased;
            given = asker.asks(asked, false) => given,
            // The server gave its question up, or has ended, and hears no answer.
            () = cx.ct.cancelled() => ElicitResult::new(ElicitationAction::Cancel),
            () = self.asking.until_end() => ElicitResult::new(ElicitationAction::Cancel),
        };
        Ok(given)
    }

    async fn on_progress(
        &self,
        told: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let progress = Progress {
            done: told.progress,
            total: told.total,
            message: told.message,
        };
        let hears = {
            let mut calls = self.calls();
            let hears = calls.hears.get(&told.progress_token).cloned();
            if hears.is_none() {
                calls
                    .early
                    .push_back((told.progress_token, progress.clone()));
                if calls.early.len() > EARLY {
                    calls.early.pop_front();
                }
            }
            hears
        };
        if let Some(hears) = hears {
            hears(progress);
        }
    }
}
