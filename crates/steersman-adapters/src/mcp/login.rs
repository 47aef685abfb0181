//! Sign-ins of people at servers: begun here, finished with the address to which the authorization server sends the person back.

use super::McpTools;
use super::access::Access;
use super::connect::Place;
use crate::oauth::challenge::union;
use crate::oauth::discover::{self, OFFLINE};
use crate::oauth::kept::Signed;
use crate::oauth::short;
use crate::oauth::tokens::{self, NoToken};
use reqwest::Url;
use std::sync::Arc;
use steersman_machine::stored::ids::{Name, Time};
use steersman_machine::values::expression::Scope;
use steersman_runtime::toolset::{ServerAsk, Toolset as _};
use zeroize::Zeroizing;

/// A sign-in that a person is about to do. Nothing is stored until it is finished.
pub struct SignIn {
    access: Arc<Access>,
    /// Address of the page on which the person signs in.
    address: Url,
    redirect: String,
    state: Zeroizing<String>,
    verifier: Zeroizing<String>,
    /// The sign-in without its tokens.
    begun: Signed,
    scopes: Vec<String>,
    names_issuer: bool,
}

/// The sign-in at a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    /// Name of the server in the definition.
    pub server: Name,
    /// True if the program signs in by itself, so that nobody has to.
    pub by_program: bool,
    /// True if there is a token that is worth something, or that is renewed when it is needed.
    pub is_valid: bool,
    /// The authorization server, if somebody has signed in and it has a name.
    pub issuer: Option<String>,
    /// The scopes that were granted.
    pub scopes: Vec<String>,
    /// Time after which the token is worth nothing. `None` if it has no known end, or is renewed by itself.
    pub until: Option<Time>,
    /// The scopes that the server wants in addition, if it refused a call because of them.
    pub wants: Vec<String>,
}

impl SignIn {
    /// Returns the address that the person has to open.
    pub fn address(&self) -> &str {
        self.address.as_str()
    }

    /// Returns true if an address is the answer to this sign-in: only the authorization server and the person know its `state`.
    pub fn is_answered_by(&self, redirected: &str) -> bool {
        let state = self.answer(redirected).and_then(|url| field(&url, "state"));
        state.is_some_and(|state| *state == **self.state)
    }

    fn answer(&self, redirected: &str) -> Option<Url> {
        Url::parse(&self.redirect).ok()?.join(redirected).ok()
    }

    /// Finishes the sign-in with the address to which the person was sent back, or its part behind the host. The tokens are stored.
    ///
    /// # Errors
    /// There are no tokens; the reason, as a sentence.
    pub async fn finish(self, redirected: &str) -> Result<(), String> {
        let url = self.answer(redirected);
        let Some(url) = url.filter(|_| self.is_answered_by(redirected)) else {
            return Err(
                "this is not the answer to this sign-in: its `state` is another one".to_owned(),
            );
        };
        match (field(&url, "iss"), &self.begun.issuer) {
            (Some(from), Some(issuer)) if !discover::is_same(&from, issuer) => {
                return Err(format!(
                    "the answer is from `{}`, and not from `{}`: the code is sent to nobody",
                    short(&from),
                    short(issuer)
                ));
            }
            (None, _) if self.names_issuer => {
                return Err(
                    "the answer does not say which authorization server it is from, though this one always does"
                        .to_owned(),
                );
            }
            _ => {}
        }
        if let Some(error) = field(&url, "error") {
            let why = field(&url, "error_description").unwrap_or_default();
            let why = format!("{} {}", short(&error), short(&why));
            return Err(format!("the authorization server refused: {}", why.trim()));
        }
        let Some(code) = field(&url, "code") else {
            return Err("the answer has no code".to_owned());
        };
        let fields: [(&str, &str); 5] = [
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("redirect_uri", &self.redirect),
            ("code_verifier", &self.verifier),
            ("resource", &self.begun.resource),
        ];
        let (web, own) = (&self.access.signs.web, &self.access.grant.own);
        let asked = tokens::asked(web, own, &self.begun, &fields).await;
        let (tokens, scopes) = asked.map_err(NoToken::words)?;
        let signed = Signed {
            tokens: Some(tokens),
            scopes: scopes.unwrap_or(self.scopes),
            ..self.begun
        };
        self.access.signs(&signed).await
    }
}

fn field(url: &Url, name: &str) -> Option<String> {
    let mut fields = url.query_pairs();
    let found = fields.find(|(known, _)| known == name);
    found.map(|(_, value)| value.into_owned())
}

impl McpTools {
    fn access(&self, ask: &ServerAsk) -> Result<Arc<Access>, String> {
        let Some(server) = ask.network.mcp.get(&ask.server) else {
            return Err(format!("the definition has no server `{}`", ask.server));
        };
        let of = (&*ask.scope as &dyn Scope, &ask.part);
        let place = Place::of(server, of, &ask.folder, &self.env)?;
        let slot = self.slot(&place);
        let access = slot.access(&place, &self.signs)?;
        access.ok_or_else(|| {
            let server = &ask.server;
            format!(
                "the server `{server}` has no `oauth` in the definition, so nobody signs in there"
            )
        })
    }

    /// Begins the sign-in of a person at a server. `redirect` is the address to which the person is sent back, and at which the caller
    /// waits: on this computer, or `https`.
    ///
    /// # Errors
    /// Nobody can sign in; the reason, as a sentence.
    pub async fn sign_in(&self, ask: &ServerAsk, redirect: &str) -> Result<SignIn, String> {
        let access = self.access(ask)?;
        let grant = &access.grant;
        if grant.by_program {
            return Err(format!(
                "the program signs in at `{}` by itself (`by: program`); steersman check --servers tries it",
                ask.server
            ));
        }
        let known = |kept: Result<_, super::access::Lack>| kept.unwrap_or_default();
        let (_, mut kept) = known(access.read().await);
        if kept == crate::oauth::kept::Kept::default() {
            // The server says what it wants when it is asked for something. Its answer is of no other use.
            drop(self.list(ask).await);
            (_, kept) = known(access.read().await);
        }
        let challenge = kept.wants.clone().unwrap_or_default();
        let found = access.find(&kept, &challenge, true).await?;
        let has = kept.signed.as_ref().map_or(&[][..], |of| &of.scopes);
        let mut scopes = grant.scopes(&challenge, has, &found.scopes)?;
        if found.has_offline && grant.scopes.is_none() {
            scopes = union(&scopes, &[OFFLINE.to_owned()]);
        }
        let client =
            tokens::client(&access.signs.web, &found, &grant.own, redirect, &scopes).await?;
        let (state, verifier) = (tokens::random(), tokens::random());
        let mut address = found.authorization.clone();
        {
            let mut query = address.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &client.id)
                .append_pair("redirect_uri", redirect)
                .append_pair("state", &state)
                .append_pair("code_challenge", &tokens::challenge_of(&verifier))
                .append_pair("code_challenge_method", "S256")
                .append_pair("resource", &found.resource);
            if !scopes.is_empty() {
                query.append_pair("scope", &scopes.join(" "));
            }
            if scopes.iter().any(|scope| scope == OFFLINE) {
                query.append_pair("prompt", "consent");
            }
        }
        Ok(SignIn {
            begun: Signed::begun(&found, client),
            access,
            address,
            redirect: redirect.to_owned(),
            state,
            verifier,
            scopes,
            names_issuer: found.names_issuer,
        })
    }

    /// Returns the sign-in at a server. `None` if the definition declares none there.
    ///
    /// # Errors
    /// It cannot be read; the reason, as a sentence.
    pub async fn signed_in(&self, ask: &ServerAsk) -> Result<Option<SignedIn>, String> {
        let server = ask.network.mcp.get(&ask.server);
        if server.is_none_or(|server| server.oauth().is_none()) {
            return Ok(None);
        }
        let access = self.access(ask)?;
        let (_, kept) = access.read().await.map_err(|lack| lack.message)?;
        let more = kept.wants.as_ref().filter(|wants| wants.wants_more());
        let signed = kept.signed.as_ref();
        let tokens = signed.and_then(|of| of.tokens.as_ref());
        let is_renewed = tokens.is_some_and(|of| of.refresh.is_some());
        let usable = signed.is_some_and(|of| of.usable(tokens::now()).is_some());
        let until = tokens.and_then(|of| of.until).filter(|_| !is_renewed);
        Ok(Some(SignedIn {
            server: ask.server.clone(),
            by_program: access.grant.by_program,
            is_valid: usable || is_renewed,
            issuer: signed.and_then(|of| of.issuer.clone()),
            scopes: signed.map_or_else(Vec::new, |of| of.scopes.clone()),
            until: until.map(|at| Time(i64::try_from(at).unwrap_or(i64::MAX))),
            wants: more.map_or_else(Vec::new, |of| of.scopes.clone()),
        }))
    }

    /// Signs out at a server: the stored tokens are deleted, and given back if the authorization server takes them. Returns false if
    /// nobody had signed in. The second value is the reason why the tokens may still be worth something, if they may.
    ///
    /// # Errors
    /// They cannot be deleted; the reason, as a sentence.
    pub async fn sign_out(&self, ask: &ServerAsk) -> Result<(bool, Option<String>), String> {
        let access = self.access(ask)?;
        let kept = access.read().await;
        let dropped = access.signs.keep.drop(&access.of).await?;
        let Ok((_, kept)) = kept else {
            return Ok((dropped, None));
        };
        let signed = kept.signed.as_ref();
        let Some((signed, tokens)) = signed.and_then(|of| Some((of, of.tokens.as_ref()?))) else {
            return Ok((false, None));
        };
        let Some(revocation) = signed
            .revocation
            .as_deref()
            .and_then(|at| Url::parse(at).ok())
        else {
            let why = "the authorization server takes no tokens back; they are worth something until their end";
            return Ok((dropped, Some(why.to_owned())));
        };
        let asker = signed.asker(&access.signs.web, &access.grant.own);
        let (kind, token) = match &tokens.refresh {
            Some(refresh) => ("refresh_token", refresh),
            None => ("access_token", &tokens.access),
        };
        let revoked = asker.revoke(&revocation, kind, token).await;
        Ok((dropped, revoked.err()))
    }
}
