//! The token behind a request, and what it may do.

use crate::Server;
use crate::held::Held;
use crate::permission::Permission;
use crate::problem::{Code, Problem};
use crate::token;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use steersman::machine::network as checked;
use steersman::machine::stored::by::USER;
use steersman::runtime::store::Token;
use steersman::{By, Network, Steersman};

/// The address from which a request came, where the server knows it.
#[derive(Copy, Clone, Debug)]
pub(crate) struct From(pub(crate) SocketAddr);

/// A client with a valid token. What it sees of the store is its scope alone.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) server: Server,
    /// The store as far as the token sees it.
    pub(crate) steersman: Steersman,
    pub(crate) token: Arc<Token>,
    /// The way in which the client reached the server; `None` without HTTP.
    at: Option<Reached>,
    held: Held,
}

impl FromRequestParts<Server> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self, Problem> {
        let from = parts.extensions.get::<From>().map(|from| from.0.ip());
        let held = parts.extensions.get::<Held>().cloned().unwrap_or_default();
        let version = held.version();
        let token = known(server, version, &parts.headers, from).await?;
        held.is_of(&token);
        let limits = &server.options().limits;
        held.takes(server.used().request(&token.name, limits)?);
        if length(&parts.headers).is_some_and(|len| len > limits.body) {
            held.takes(server.used().large(&token.name, limits)?);
        }
        Ok(Self {
            steersman: server.steersman().scoped(token.scope.clone()),
            server: server.clone(),
            token,
            at: Some(Reached::of(&parts.headers)),
            held,
        })
    }
}

impl Caller {
    /// Returns the address of a session in the console, if there is a console.
    pub(crate) fn page(&self, session: &str) -> Option<String> {
        self.server.options().console.as_ref()?;
        Some(format!("{}/#/s/{session}", self.at.as_ref()?))
    }

    /// Returns the version of the store when the request began, if the store tells it.
    pub(crate) fn version(&self) -> Option<u64> {
        self.held.version()
    }
}

/// The header in which a proxy says how it was reached.
const FORWARDED: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The address under which a client reached the server, such as `https://desk.example`.
#[derive(Clone, Debug)]
pub(crate) struct Reached {
    is_secure: bool,
    host: Option<HeaderValue>,
}

impl Reached {
    /// Reads it from the headers of a request.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        Self {
            is_secure: headers.get(FORWARDED).is_some_and(|value| value == "https"),
            host: headers.get(header::HOST).cloned(),
        }
    }
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        let host = self.host.as_ref().and_then(|host| host.to_str().ok());
        write!(f, "{scheme}://{}", host.unwrap_or("localhost"))
    }
}

/// Returns the length of a body, if the request declares it.
pub(crate) fn length(headers: &HeaderMap) -> Option<usize> {
    let text = headers.get(header::CONTENT_LENGTH)?.to_str().ok()?;
    text.parse().ok()
}

/// Returns the valid token that a request names.
async fn known(
    server: &Server,
    version: Option<u64>,
    headers: &HeaderMap,
    from: Option<IpAddr>,
) -> Result<Arc<Token>, Problem> {
    let text = named(headers);
    let token = match text {
        Some(text) => valid(server, version, text).await?,
        None => None,
    };
    // Somebody who guesses keeps nobody out who has a token: behind a proxy all come from one address.
    if let Some(token) = token {
        return Ok(token);
    }
    guesses(server, from)?;
    let why = match text {
        Some(_) => "the token is not known, was revoked, or has expired",
        None => "the request names no token",
    };
    Err(Problem::new(Code::Token, why)
        .help("send `Authorization: Bearer TOKEN`; `steersman token new` makes one"))
}

/// Returns the text of the token that a request names.
pub(crate) fn named(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, text) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(text.trim())
}

/// Counts a request that named nothing valid.
///
/// # Errors
/// The address has sent too many of them.
pub(crate) fn guesses(server: &Server, from: Option<IpAddr>) -> Result<(), Problem> {
    let limits = &server.options().limits;
    let Some(from) = from else { return Ok(()) };
    if server.used().is_guessing(from, limits) {
        let why = format!(
            "{} requests a second from one address may name no valid token",
            limits.failures
        );
        return Err(Problem::new(Code::Rate, why).help("name a valid token"));
    }
    server.used().failed(from, limits);
    Ok(())
}

/// Returns the token that this text is, if it is valid now.
async fn valid(
    server: &Server,
    version: Option<u64>,
    text: &str,
) -> Result<Option<Arc<Token>>, Problem> {
    let (store, now) = {
        let engine = server.steersman().engine();
        (engine.store().clone(), engine.clock().now())
    };
    let kept = server.fresh().token(version, text);
    if let Some(token) = kept.filter(|token| token::lives(token, now) && token::is_used(token, now))
    {
        return Ok(Some(token));
    }
    let token = token::valid(&*store, now, text).await?.map(Arc::new);
    if let Some(token) = &token {
        server.fresh().keep_token(version, text, token);
    }
    Ok(token)
}

impl Caller {
    /// Returns the caller with a token that no store keeps, such as the one who started the process.
    pub(crate) fn local(server: &Server, token: Arc<Token>) -> Result<Self, Problem> {
        let limits = &server.options().limits;
        let held = Held::default();
        held.takes(server.used().request(&token.name, limits)?);
        Ok(Self {
            steersman: server.steersman().scoped(token.scope.clone()),
            server: server.clone(),
            token,
            at: None,
            held,
        })
    }

    /// Refuses the request unless the token has a permission.
    pub(crate) fn needs(&self, permission: Permission) -> Result<(), Problem> {
        if self.may(permission) {
            return Ok(());
        }
        let why = format!("the token does not allow `{permission}`");
        Err(Problem::new(Code::Permission, why).help("use a token that allows it"))
    }

    /// Returns true if the token has a permission.
    pub(crate) fn may(&self, permission: Permission) -> bool {
        let mut allows = self.token.allows.iter();
        allows.any(|word| **word == *permission.word())
    }

    /// Returns the person who acts, in a wanted role of the token. Without one it is the token's only role, otherwise the user.
    pub(crate) fn by(&self, wanted: Option<&str>) -> Result<By, Problem> {
        let roles = &self.token.roles;
        let role = match (wanted, &roles[..]) {
            (Some(wanted), _) => wanted,
            (None, [only]) => only,
            (None, _) => USER,
        };
        let has = roles.iter().any(|own| **own == *role) || (roles.is_empty() && role == USER);
        if !has {
            let own: Vec<&str> = roles.iter().map(|own| &**own).collect();
            let help = if own.is_empty() {
                "it acts as `user` alone".to_owned()
            } else {
                format!("name one of its roles in `as`: {}", own.join(", "))
            };
            let why = "the token does not have the role in which this would be done";
            return Err(Problem::new(Code::Role, why).help(help));
        }
        Ok(By::role(role).known_as(&self.who()))
    }

    /// Returns the person who acts where the role decides nothing: the first role of the token, otherwise the user.
    pub(crate) fn acting(&self) -> By {
        let role = self.token.roles.first();
        By::role(role.map_or(USER, |role| role)).known_as(&self.who())
    }

    /// Returns the identity that logs keep: the subject, otherwise the name of the token.
    pub(crate) fn who(&self) -> String {
        match &self.token.scope.subject {
            Some(subject) => subject.to_string(),
            None => format!("stm_{}", self.token.name),
        }
    }

    /// Returns a definition that the token may start.
    pub(crate) fn definition(&self, name: &str) -> Result<Network, Problem> {
        let found = self.definitions().into_iter();
        let mut found = found.filter(|network| network.name() == name);
        found.next().ok_or_else(|| Problem::no_definition(name))
    }

    /// Checks that the token may begin sessions of this definition, also of one that is served no more.
    ///
    /// # Errors
    /// The token is for other definitions.
    pub(crate) fn may_begin(&self, name: &str) -> Result<(), Problem> {
        let names = &self.token.definitions;
        if names.is_empty() || names.iter().any(|known| **known == *name) {
            return Ok(());
        }
        Err(Problem::no_definition(name))
    }

    /// Checks that the token may choose the key of a session. Events of the whole tenant find a session by its key, so one who sees only
    /// the sessions of a subject could have those that are meant for another.
    ///
    /// # Errors
    /// There is a key, and the token sees one subject alone.
    pub(crate) fn may_have_key(&self, key: Option<&str>) -> Result<(), Problem> {
        if key.is_none() || self.token.scope.subject.is_none() {
            return Ok(());
        }
        let why =
            "a token of one subject chooses no `key`: events of the tenant find a session by it";
        Err(Problem::new(Code::Permission, why)
            .help("let an event start the session, or use a token without a subject"))
    }

    /// Checks that a client may set these values of `config`: the definition says which ones. The others may decide what is approved, or
    /// where a secret is sent. A name that the definition does not have is an error of its own elsewhere.
    ///
    /// # Errors
    /// The definition does not leave a value to clients.
    pub(crate) fn may_configure<'a>(
        network: &checked::Network,
        names: impl IntoIterator<Item = &'a String>,
    ) -> Result<(), Problem> {
        let kept = |name: &&String| {
            let config = network.config.get(name.as_str());
            config.is_some_and(|config| !config.clients)
        };
        let Some(name) = names.into_iter().find(kept) else {
            return Ok(());
        };
        let why = format!("`config.{name}` is not left to clients");
        Err(Problem::new(Code::Permission, why)
            .help("the definition says which values are: `clients: true`"))
    }

    /// Checks the same for a session, by the definition that it is bound to.
    ///
    /// # Errors
    /// The definition does not leave a value to clients, or cannot be used here, so that nobody knows.
    pub(crate) async fn may_configure_session<'a>(
        &self,
        session: &str,
        names: impl IntoIterator<Item = &'a String>,
    ) -> Result<(), Problem> {
        let seen = self.steersman.inspect(session).await?;
        let Some(network) = &seen.network else {
            let why = "the definition of the session cannot be used here";
            return Err(Problem::new(Code::Refused, why));
        };
        Self::may_configure(network, names)
    }

    /// Returns the definitions that the token may start.
    pub(crate) fn definitions(&self) -> Vec<Network> {
        let mut all = self.server.definitions();
        all.retain(|network| self.may_begin(network.name()).is_ok());
        all
    }

    /// Makes the request a stream, which may last: it takes a place as such, and gives back all that it took as a request.
    ///
    /// # Errors
    /// The token or the server has too many streams.
    pub(crate) fn streams(&self) -> Result<(), Problem> {
        let limits = &self.server.options().limits;
        let place = self.server.used().stream(&self.token.name, limits)?;
        self.held.streams(place);
        Ok(())
    }
}
