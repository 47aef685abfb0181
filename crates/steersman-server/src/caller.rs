//! The token behind a request, and what it may do.

use crate::Server;
use crate::limits::Using;
use crate::permission::Permission;
use crate::problem::{Code, Problem};
use crate::token;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use steersman::machine::stored::by::USER;
use steersman::machine::stored::ids::Name;
use steersman::runtime::store::Token;
use steersman::{By, Network, Steersman};

/// The address from which a request came, where the server knows it.
#[derive(Copy, Clone, Debug)]
pub(crate) struct From(pub(crate) SocketAddr);

/// A client with a valid token. What it sees of the store is its scope alone.
pub(crate) struct Caller {
    pub(crate) server: Server,
    /// The store as far as the token sees it.
    pub(crate) steersman: Steersman,
    pub(crate) token: Arc<Token>,
    _using: Using,
}

impl FromRequestParts<Server> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self, Problem> {
        let from = parts.extensions.get::<From>().map(|from| from.0.ip());
        let token = known(server, &parts.headers, from).await?;
        if let Some(named) = parts.extensions.get::<Named>() {
            named.0.set(token.name.clone()).ok();
        }
        let using = server
            .used()
            .request(&token.name, &server.options().limits)?;
        Ok(Self {
            steersman: server.steersman().scoped(token.scope.clone()),
            server: server.clone(),
            token: Arc::new(token),
            _using: using,
        })
    }
}

/// The name of the token of a request, once it is known, for the log of requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Named(pub(crate) Arc<OnceLock<Name>>);

/// Returns the valid token that a request names.
async fn known(
    server: &Server,
    headers: &HeaderMap,
    from: Option<IpAddr>,
) -> Result<Token, Problem> {
    let limits = &server.options().limits;
    if from.is_some_and(|from| server.used().is_guessing(from, limits)) {
        let why = format!(
            "{} requests a second from one address may name no valid token",
            limits.failures
        );
        return Err(Problem::new(Code::Rate, why));
    }
    let text = headers.get(header::AUTHORIZATION);
    let text = text.and_then(|value| value.to_str().ok());
    let text = text.and_then(|value| {
        let (scheme, text) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(text.trim())
    });
    let (store, now) = {
        let engine = server.steersman().engine();
        (engine.store().clone(), engine.clock().now())
    };
    let token = match text {
        Some(text) => token::valid(&*store, now, text).await?,
        None => None,
    };
    token.ok_or_else(|| {
        if let Some(from) = from {
            server.used().failed(from, limits);
        }
        let why = match text {
            Some(_) => "the token is not known, was revoked, or has expired",
            None => "the request names no token",
        };
        Problem::new(Code::Token, why)
            .help("send `Authorization: Bearer TOKEN`; `steersman token new` makes one")
    })
}

impl Caller {
    /// Returns the caller with a token that no store keeps, such as the one who started the process.
    pub(crate) fn local(server: &Server, token: Arc<Token>) -> Result<Self, Problem> {
        let limits = &server.options().limits;
        let using = server.used().request(&token.name, limits)?;
        Ok(Self {
            steersman: server.steersman().scoped(token.scope.clone()),
            server: server.clone(),
            token,
            _using: using,
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

    /// Returns the definitions that the token may start.
    pub(crate) fn definitions(&self) -> Vec<Network> {
        let names = &self.token.definitions;
        let mut all = self.server.definitions();
        all.retain(|network| {
            names.is_empty() || names.iter().any(|name| **name == *network.name())
        });
        all
    }

    /// Returns the caller of a stream, which is no request any more.
    pub(crate) fn streaming(self) -> Result<Self, Problem> {
        let using = self.stream()?;
        Ok(Self {
            _using: using,
            ..self
        })
    }

    /// Begins a stream.
    pub(crate) fn stream(&self) -> Result<Using, Problem> {
        let limits = &self.server.options().limits;
        self.server.used().stream(&self.token.name, limits)
    }
}
