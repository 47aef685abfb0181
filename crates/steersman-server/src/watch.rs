//! Sessions that change, told to everybody who follows a list. One task looks at the store for all of them, as long as there are any.

use crate::Server;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use steersman::machine::stored::ids::{Line, Name, Time};
use steersman::runtime::store::SessionId;
use steersman::views::list::status;
use steersman::{SessionInfo, SessionQuery};
use tokio::sync::broadcast;

/// Time between two looks at the store.
const LOOK: Duration = Duration::from_millis(500);
/// Number of changes that wait for a reader. A slower one is told how many it missed.
const WAITING: usize = 1_024;
/// Milliseconds by which a look goes back: clocks of processes differ, and lines are on disk later than their time.
const OVERLAP: i64 = 2_000;

/// A session that changed.
pub(crate) type Changed = Arc<SessionInfo>;

/// The task that looks for changes, if anybody follows.
#[derive(Debug, Default)]
pub(crate) struct Watch(Mutex<Option<broadcast::Sender<Changed>>>);

impl Server {
    /// Begins to follow the sessions of the whole store. The reader leaves out those that are not its own.
    pub(crate) fn watch(&self) -> broadcast::Receiver<Changed> {
        let mut watch = self
            .watching()
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = &*watch {
            return sender.subscribe();
        }
        let (sender, receiver) = broadcast::channel(WAITING);
        *watch = Some(sender.clone());
        tokio::spawn(look(self.clone(), sender));
        receiver
    }

    /// Ends the watch if nobody follows any more.
    fn is_watched(&self, sender: &broadcast::Sender<Changed>) -> bool {
        let mut watch = self
            .watching()
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_watched = sender.receiver_count() > 0 && !self.is_stopping();
        if !is_watched {
            *watch = None;
        }
        is_watched
    }
}

/// The state of a session that was told.
type Told = (Time, Line, Name);

/// Looks for changes until nobody follows any more.
async fn look(server: Server, sender: broadcast::Sender<Changed>) {
    let engine = server.steersman().engine();
    let mut told: HashMap<SessionId, Told> = HashMap::new();
    let mut newest = engine.clock().now();
    while server.is_watched(&sender) {
        let since = Time(newest.0.saturating_sub(OVERLAP));
        let query = SessionQuery {
            since: Some(since),
            ..SessionQuery::default()
        };
        // A store that cannot be read now is asked again: the next look begins where this one would have.
        if let Ok(mut infos) = engine.store().sessions(&query).await {
            told.retain(|_, (updated, ..)| *updated >= since);
            infos.reverse();
            for info in infos {
                let now = (info.state.updated, info.head, status(&info).into());
                newest = newest.max(info.state.updated);
                if told.get(&info.id) != Some(&now) {
                    told.insert(info.id.clone(), now);
                    // Nobody may be left to hear it.
                    let _ = sender.send(Arc::new(info));
                }
            }
        }
        tokio::select! {
            () = server.stopping().cancelled() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}
