//! The place that answers a command which looks: a store, or a server. Both answer with the same screens, so a command prints without
//! knowing which of the two it asked.

use crate::address::{Address, SessionName};
use crate::cli::Global;
use crate::commands::refused;
use crate::error::CommandError;
use crate::locate;
use crate::place::Place;
use crate::remote::Remote;
use steersman::views::screen::{
    self, ArtifactRow, Ask, ListAsk, ListScreen, Refusal, Screen, ScreenError, Seen, artifacts_in,
};
use steersman_client::ViewsArtifactQuery;

/// A store or a server.
pub(crate) enum Source {
    Store(Box<Place>),
    Server(Box<Remote>),
}

impl Source {
    /// Returns the server that was named; otherwise opens the store, which must exist, for reading.
    pub(crate) async fn to_look(global: &Global) -> Result<Self, CommandError> {
        Ok(match Remote::of(global)? {
            Some(remote) => Self::Server(Box::new(remote)),
            None => Self::Store(Box::new(Place::to_look(global).await?)),
        })
    }

    /// Like [`Self::to_look`]; `None` if no server was named and there is no store yet.
    pub(crate) async fn existing(global: &Global) -> Result<Option<Self>, CommandError> {
        if let Some(remote) = Remote::of(global)? {
            return Ok(Some(Self::Server(Box::new(remote))));
        }
        let place = Place::existing(global).await?;
        Ok(place.map(|place| Self::Store(Box::new(place))))
    }

    /// Returns the id of the session that a name means.
    pub(crate) async fn session(&self, name: &SessionName) -> Result<String, CommandError> {
        match self {
            Self::Store(place) => Ok(place.session(name).await?.id.to_string()),
            Self::Server(remote) => remote.session(name).await,
        }
    }

    /// Returns the screen of a command about an address.
    pub(crate) async fn screen<S: Screen>(
        &self,
        address: &Address,
        ask: Ask,
    ) -> Result<S, CommandError> {
        match self {
            Self::Store(place) => place.screen(address, ask).await,
            Self::Server(remote) => remote.screen(address, &about(address, ask)).await,
        }
    }

    /// Returns the content of a version of an artifact of an address.
    pub(crate) async fn content(
        &self,
        address: &Address,
        of: &ArtifactRow,
    ) -> Result<Vec<u8>, CommandError> {
        match self {
            Self::Store(place) => {
                let seen = place.look(address).await?;
                let artifacts = artifacts_in(&seen, &about(address, Ask::default())).await?;
                let found = artifacts
                    .find_any(&of.digest(), Some(of.version))
                    .map_err(refused)?;
                Ok(artifacts.content(&found).await.map_err(refused)?.to_vec())
            }
            Self::Server(remote) => {
                let session = remote.session(&address.session).await?;
                let query = ViewsArtifactQuery {
                    branch: address.branch.clone(),
                    version: Some(of.version as u64),
                };
                let views = remote.client.views();
                Ok(views.artifact(&session, &of.digest(), &query).await?)
            }
        }
    }

    /// Returns the screen of a command about all sessions.
    pub(crate) async fn list<S: ListScreen>(&self, ask: &ListAsk) -> Result<S, CommandError> {
        match self {
            Self::Store(place) => Ok(S::of(place.engine(), ask, false).await?),
            Self::Server(remote) => remote.list(ask).await,
        }
    }

    /// Returns the name of the place for people.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Store(place) => locate::shown(&place.file),
            Self::Server(remote) => remote.url.clone(),
        }
    }
}

/// Returns what is asked about an address.
pub(crate) fn about(address: &Address, ask: Ask) -> Ask {
    Ask {
        branch: address.branch.clone(),
        line: address.line.as_ref().map(ToString::to_string),
        ..ask
    }
}

impl Place {
    /// Makes the screen of a command about an address.
    pub(crate) async fn screen<S: Screen>(
        &self,
        address: &Address,
        ask: Ask,
    ) -> Result<S, CommandError> {
        let info = self.session(&address.session).await?;
        self.screen_of(&info.id, &about(address, ask)).await
    }

    /// Makes the screen of a command about a session.
    pub(crate) async fn screen_of<S: Screen>(
        &self,
        session: &str,
        ask: &Ask,
    ) -> Result<S, CommandError> {
        let seen = Seen::read_asked(self.engine(), session, ask).await?;
        // A screen goes through its JSON, as it does on its way from a server: there the secrets are masked.
        let shown = Box::pin(screen::of_session(S::NAME, seen, ask)).await?;
        let shown = shown.unwrap_or_default();
        serde_json::from_value(shown).map_err(|why| CommandError::store(why.to_string()))
    }
}

impl From<Refusal> for CommandError {
    fn from(refusal: Refusal) -> Self {
        let hints = refusal.hints.into_iter();
        hints.fold(Self::usage(refusal.what), Self::hint)
    }
}

impl From<ScreenError> for CommandError {
    fn from(error: ScreenError) -> Self {
        match error {
            ScreenError::Refused(refusal) => refusal.into(),
            ScreenError::Context(error) => error.into(),
            ScreenError::Select(error) => error.into(),
            ScreenError::Engine(error) => error.into(),
        }
    }
}
