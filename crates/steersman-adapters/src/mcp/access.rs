//! The tokens with which a connection uses a server that wants a sign-in.
//!
//! Before each request the stored sign-in of the session's tenant and subject is read, so a sign-in, a renewal or a sign-out of another
//! process counts immediately. A token is renewed before its end, and when the server refuses it; a request that was refused is sent
//! again once, because a server that asks for a sign-in did nothing. If there is no token, what the server wants is kept for the
//! person who signs in.

use crate::command::text;
use crate::oauth::challenge::{Challenge, union};
use crate::oauth::discover::{self, Found};
use crate::oauth::kept::{Client, Keep, Kept, Signed};
use crate::oauth::tokens::{self, NoToken, Own};
use crate::oauth::{Web, allowed};
use reqwest::Url;
use rmcp::transport::streamable_http_client::{AuthRequiredError, StreamableHttpError};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use steersman_machine::network::{OAuth, SignsIn};
use steersman_machine::stored::codes::Code;
use steersman_machine::stored::ids::Name;
use steersman_machine::values::expression::{Scope as Names, Template};
use steersman_machine::view::mapping::{Fault, Raw};
use steersman_runtime::seal::Sealer;
use steersman_runtime::store::memory::MemoryStore;
use steersman_runtime::store::{CredentialOf, Credentials, Scope};

/// Number of looks for a renewal of another process, and the pause between two of them. A refresh token is often good for one renewal,
/// so the second of two processes is refused.
const LOOKS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(250);
/// Maximum number of times that a sign-in is stored again because another process was faster.
const PUTS: u32 = 4;
/// Number of tokens of a connection that are masked.
const MASKED: usize = 8;

/// The sign-ins of a store, and what sends their requests.
pub(super) struct SignIns {
    pub(super) keep: Keep,
    pub(super) web: Web,
}

impl SignIns {
    pub(super) fn new(store: Arc<dyn Credentials>, sealer: Sealer) -> Self {
        Self {
            keep: Keep::new(store, sealer),
            web: Web::default(),
        }
    }
}

impl Default for SignIns {
    /// Keeps sign-ins in memory.
    fn default() -> Self {
        Self::new(Arc::new(MemoryStore::new()), Sealer::ephemeral())
    }
}

/// A sign-in as a definition declares it, opened, and those on whose behalf it is used. Holds secrets; never stored, never shown.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Grant {
    /// Name of the server in the definition.
    pub(super) server: Name,
    pub(super) part: Scope,
    pub(super) by_program: bool,
    pub(super) own: Own,
    /// The authorization server at which the program is registered.
    pub(super) issuer: Option<String>,
    /// The scopes that are asked for, and no others.
    pub(super) scopes: Option<Vec<String>>,
}

impl Grant {
    /// Opens the sign-in of a definition. Errors contain names and the kind of error, no values.
    pub(super) fn of(
        server: &Name,
        oauth: &OAuth,
        (scope, part): (&dyn Names, &Scope),
    ) -> Result<Self, String> {
        let read = |name: &str, template: Option<&Template>| {
            let Some(template) = template else {
                return Ok(None);
            };
            let value =
                text(template, scope).map_err(|error| format!("`oauth.{name}`: {error}"))?;
            let value = value.filter(|value| !value.is_empty());
            value
                .map(Some)
                .ok_or_else(|| format!("`oauth.{name}` is empty: set the secret that it reads"))
        };
        Ok(Self {
            server: server.clone(),
            part: part.clone(),
            by_program: oauth.by == SignsIn::Program,
            own: Own {
                id: read("client_id", oauth.client_id.as_ref())?,
                secret: read("client_secret", oauth.client_secret.as_ref())?,
                key: read("key", oauth.key.as_ref())?,
                document: read("client_metadata", oauth.client_metadata.as_ref())?,
            },
            issuer: read("issuer", oauth.issuer.as_ref())?,
            scopes: oauth.scopes.clone(),
        })
    }

    /// Returns the command with which a person signs in.
    pub(super) fn command(&self) -> String {
        let mut command = format!("steersman login {}", word(&self.server));
        for (option, value) in [
            ("tenant", Some(&self.part.tenant)),
            ("subject", self.part.subject.as_ref()),
        ] {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                let _ = write!(command, " --{option} {}", word(value));
            }
        }
        command
    }

    /// Returns the scopes to ask for. `has`: those that were granted before.
    ///
    /// # Errors
    /// The server wants one that the definition leaves out; the reason, as a sentence.
    pub(super) fn scopes(
        &self,
        challenge: &Challenge,
        has: &[String],
        offered: &[String],
    ) -> Result<Vec<String>, String> {
        if let Some(fixed) = &self.scopes {
            let mut wanted = challenge.scopes.iter();
            let missing = wanted.find(|scope| !fixed.contains(scope));
            return match missing.filter(|_| challenge.wants_more()) {
                Some(scope) => Err(format!(
                    "the server wants the scope `{}`, which `scopes` in `oauth` of the definition leaves out",
                    crate::oauth::short(scope)
                )),
                None => Ok(fixed.clone()),
            };
        }
        if challenge.wants_more() {
            return Ok(union(has, &challenge.scopes));
        }
        Ok(if challenge.scopes.is_empty() {
            offered.to_vec()
        } else {
            challenge.scopes.clone()
        })
    }
}

/// Returns a word as a shell reads it.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.@:/+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The reason why a request was not sent, or was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lack {
    pub(super) message: String,
    /// True if a person has to sign in.
    pub(super) is_of_person: bool,
}

impl Lack {
    /// Returns the outcome of a call: nothing was done.
    pub(super) fn raw(self) -> Raw {
        let code = self.code();
        let again = (!self.is_of_person).then_some(0);
        Raw::NotPerformed(Fault {
            again,
            ..Fault::new(code, self.message)
        })
    }

    pub(super) fn code(&self) -> Code {
        if self.is_of_person {
            Code::SignIn
        } else {
            Code::Failed
        }
    }
}

/// Returns what a server wants, if this error says that it wants a sign-in.
pub(super) fn challenge_in(error: &StreamableHttpError<reqwest::Error>) -> Option<Challenge> {
    match error {
        StreamableHttpError::AuthRequired(error) => {
            Some(Challenge::read(&error.www_authenticate_header))
        }
        StreamableHttpError::InsufficientScope(error) => {
            let read = Challenge::read(&error.www_authenticate_header);
            read.wants_more().then_some(read)
        }
        // A server that names no way to sign in.
        StreamableHttpError::UnexpectedServerResponse(said) if said.starts_with("HTTP 401") => {
            Some(Challenge::default())
        }
        _ => None,
    }
}

/// The sign-in of one connection.
pub(super) struct Access {
    pub(super) signs: Arc<SignIns>,
    pub(super) grant: Grant,
    pub(super) url: Url,
    pub(super) of: CredentialOf,
    /// One renewal at a time.
    turn: tokio::sync::Mutex<()>,
    lack: Mutex<Option<Lack>>,
    /// Tokens that were read, newest last.
    seen: Mutex<Vec<String>>,
}

fn held<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Access {
    /// # Errors
    /// The address is none at which a token may be used.
    pub(super) fn new(signs: Arc<SignIns>, url: &str, grant: Grant) -> Result<Self, String> {
        let parsed =
            Url::parse(url).map_err(|error| format!("`url` is not a valid address: {error}"))?;
        let mut address = parsed.clone();
        address.set_query(None);
        address.set_fragment(None);
        allowed(address.as_str(), &parsed)
            .map_err(|why| format!("with `oauth`, a token would be sent in the open: {why}"))?;
        // The tokens of a person and those of the program itself are apart.
        address.set_fragment(grant.by_program.then_some("program"));
        Ok(Self {
            of: CredentialOf {
                server: address.as_str().into(),
                scope: grant.part.clone(),
            },
            signs,
            grant,
            url: parsed,
            turn: tokio::sync::Mutex::default(),
            lack: Mutex::default(),
            seen: Mutex::default(),
        })
    }

    /// Returns the tokens of the connection, for masking.
    pub(super) fn texts(&self) -> Vec<String> {
        held(&self.seen).clone()
    }

    /// A connection is about to be made: what failed on an earlier one counts no more.
    pub(super) fn begins(&self) {
        held(&self.lack).take();
    }

    /// Returns the reason why a request failed, if it is the sign-in.
    pub(super) fn lack(&self) -> Option<Lack> {
        held(&self.lack).clone()
    }

    fn sees(&self, signed: &Signed) {
        let Some(tokens) = &signed.tokens else {
            return;
        };
        let mut seen = held(&self.seen);
        let all = [
            Some(&tokens.access),
            tokens.refresh.as_ref(),
            signed.client.secret.as_ref(),
        ];
        for text in all.into_iter().flatten() {
            if !seen.contains(text) {
                seen.push(text.clone());
            }
        }
        let over = seen.len().saturating_sub(MASKED);
        seen.drain(..over);
    }

    fn lacks(&self, lack: Lack) -> StreamableHttpError<reqwest::Error> {
        *held(&self.lack) = Some(lack);
        StreamableHttpError::AuthRequired(AuthRequiredError::new(String::new()))
    }

    fn wants_person(&self, why: &str) -> Lack {
        let (server, command) = (&self.grant.server, self.grant.command());
        Lack {
            message: format!("the server `{server}` wants a sign-in: {command} ({why})"),
            is_of_person: true,
        }
    }

    fn fails(&self, why: &str) -> Lack {
        Lack {
            message: format!("no token for the server `{}`: {why}", self.grant.server),
            is_of_person: false,
        }
    }

    /// Reads the stored sign-in. One of another client counts as none: its tokens are not those of this definition.
    pub(super) async fn read(&self) -> Result<(u64, Kept), Lack> {
        let (version, mut kept) = self.signs.keep.get(&self.of).await.map_err(|(why, _)| {
            let mut lack = self.wants_person(&why);
            lack.is_of_person = !self.grant.by_program;
            lack
        })?;
        let own = self.grant.own.id.as_ref();
        let is_ours = |signed: &Signed| {
            own.is_none_or(|own| *own == signed.client.id && signed.client.secret.is_none())
        };
        kept.signed = kept.signed.filter(is_ours);
        if let Some(signed) = &kept.signed {
            self.sees(signed);
        }
        Ok((version, kept))
    }

    /// Stores a change of the sign-in. `change` gets what is stored now.
    async fn change(&self, change: impl Fn(Kept) -> Kept) -> Result<(), String> {
        for _ in 0..PUTS {
            let (version, kept) = match self.signs.keep.get(&self.of).await {
                Ok(known) => known,
                // A sign-in that cannot be read any more is replaced.
                Err((_, version)) => (version, Kept::default()),
            };
            let changed = change(kept.clone());
            if changed == kept || self.signs.keep.put(&self.of, version, &changed).await? {
                return Ok(());
            }
        }
        Err("other processes change the stored sign-in all the time".to_owned())
    }

    /// Stores a new sign-in.
    pub(super) async fn signs(&self, signed: &Signed) -> Result<(), String> {
        self.sees(signed);
        self.change(|_| Kept {
            signed: Some(signed.clone()),
            wants: None,
        })
        .await
    }

    /// Returns the token for a request. `None`: the request is sent without one, and the server says what it wants.
    ///
    /// # Errors
    /// There may be a token, but not now: the request must not be sent.
    pub(super) async fn token(
        &self,
    ) -> Result<Option<String>, StreamableHttpError<reqwest::Error>> {
        self.valid(None).await.map_err(|lack| self.lacks(lack))
    }

    /// Returns a token that is worth something, and renews it if need be. `refused`: a token that the server refused.
    async fn valid(&self, refused: Option<&str>) -> Result<Option<String>, Lack> {
        let fresh = |kept: &Kept| {
            let usable = kept.signed.as_ref()?.usable(tokens::now())?;
            (Some(usable) != refused).then(|| usable.to_owned())
        };
        let (_, kept) = self.read().await?;
        if kept.signed.as_ref().is_none_or(|of| of.tokens.is_none()) {
            return Ok(None);
        }
        if let Some(token) = fresh(&kept) {
            return Ok(Some(token));
        }
        let _turn = self.turn.lock().await;
        let (version, kept) = self.read().await?;
        if let Some(token) = fresh(&kept) {
            return Ok(Some(token));
        }
        let Some(signed) = kept.signed else {
            return Ok(None);
        };
        let (web, own) = (&self.signs.web, &self.grant.own);
        let renewed = if self.grant.by_program {
            tokens::of_program(web, own, &signed, &signed.scopes).await
        } else {
            tokens::renewed(web, own, &signed).await
        };
        match renewed {
            Ok(signed) => {
                self.sees(&signed);
                let token = signed.tokens.as_ref().map(|of| of.access.clone());
                let kept = Kept {
                    signed: Some(signed),
                    wants: None,
                };
                // Another process that was faster has newer tokens, and these are valid, too.
                let put = self.signs.keep.put(&self.of, version, &kept).await;
                put.map_err(|why| self.fails(&why))?;
                Ok(token)
            }
            Err(NoToken::Failed(why)) => Err(self.fails(&why)),
            Err(NoToken::Refused(_)) => {
                if let Some(token) = self.renewed_elsewhere(version, &fresh).await? {
                    return Ok(Some(token));
                }
                let over = Kept {
                    signed: Some(Signed {
                        tokens: None,
                        ..signed
                    }),
                    wants: kept.wants,
                };
                let put = self.signs.keep.put(&self.of, version, &over).await;
                put.map_err(|why| self.fails(&why))?;
                Ok(None)
            }
        }
    }

    /// Waits a moment for a renewal of another process, which may have used up the refresh token.
    async fn renewed_elsewhere(
        &self,
        version: u64,
        fresh: &(dyn Fn(&Kept) -> Option<String> + Sync),
    ) -> Result<Option<String>, Lack> {
        for look in 0..LOOKS {
            let (now, kept) = self.read().await?;
            if now != version {
                return Ok(fresh(&kept));
            }
            if look + 1 < LOOKS {
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(None)
    }

    /// The server refused a request with this token. Returns a token with which it may be sent again.
    ///
    /// # Errors
    /// There is none; what the server wants is kept.
    pub(super) async fn refused(
        &self,
        sent: Option<&str>,
        challenge: &Challenge,
    ) -> Result<String, StreamableHttpError<reqwest::Error>> {
        let token = async {
            if !challenge.wants_more()
                && let Some(token) = self.valid(sent).await?
            {
                return Ok(token);
            }
            if self.grant.by_program {
                return self.of_program(challenge).await;
            }
            Err(self.wanted(challenge).await)
        };
        token.await.map_err(|lack: Lack| self.lacks(lack))
    }

    /// The server refuses each token. Returns the error, and keeps what the server wants.
    pub(super) async fn refused_again(
        &self,
        challenge: &Challenge,
    ) -> StreamableHttpError<reqwest::Error> {
        let lack = if self.grant.by_program {
            self.fails("the server refuses each token that it is given")
        } else {
            self.wanted(challenge).await
        };
        self.lacks(lack)
    }

    /// Gets a token for the program itself.
    async fn of_program(&self, challenge: &Challenge) -> Result<String, Lack> {
        let fail = |why: String| self.fails(&why);
        let _turn = self.turn.lock().await;
        let (_, kept) = self.read().await?;
        let (web, own) = (&self.signs.web, &self.grant.own);
        let found = self.find(&kept, challenge, false).await.map_err(fail)?;
        let has = kept.signed.as_ref().map_or(&[][..], |of| &of.scopes);
        let scopes = self.grant.scopes(challenge, has, &found.scopes);
        let id = own.id.clone().unwrap_or_default();
        let client = Client {
            id,
            secret: None,
            method: None,
        };
        let begun = Signed::begun(&found, client);
        let signed = tokens::of_program(web, own, &begun, &scopes.map_err(fail)?).await;
        let signed = signed.map_err(|none| fail(none.words()))?;
        let token = signed.tokens.as_ref().map(|of| of.access.clone());
        self.signs(&signed).await.map_err(fail)?;
        token.ok_or_else(|| fail("the authorization server gave none".to_owned()))
    }

    /// Keeps what the server wants for the person who signs in.
    async fn wanted(&self, challenge: &Challenge) -> Lack {
        let kept = self.change(|kept| Kept {
            wants: Some(challenge.clone()),
            ..kept
        });
        if let Err(why) = kept.await {
            return self.fails(&why);
        }
        let why = if challenge.wants_more() {
            let scopes = challenge.scopes.join(" ");
            format!(
                "it allows too little; it wants {}",
                crate::oauth::short(&scopes)
            )
        } else {
            "nobody has signed in, or the sign-in is over".to_owned()
        };
        self.wants_person(&why)
    }

    /// Finds the authorization server. What was found at the last sign-in is looked at where the server says nothing now.
    pub(super) async fn find(
        &self,
        kept: &Kept,
        challenge: &Challenge,
        by_code: bool,
    ) -> Result<Found, String> {
        let mut challenge = challenge.clone();
        if challenge.metadata.is_none() {
            challenge.metadata = kept.signed.as_ref().and_then(|of| of.metadata.clone());
        }
        let only = self.grant.issuer.as_deref();
        discover::find(&self.signs.web, &self.url, &challenge, (only, by_code)).await
    }
}

#[cfg(test)]
mod tests {
    use super::{Grant, word};
    use crate::oauth::challenge::Challenge;
    use crate::oauth::tokens::Own;
    use steersman_runtime::store::Scope;

    fn grant(scopes: Option<&[&str]>) -> Grant {
        Grant {
            server: "books".into(),
            part: Scope {
                tenant: "acme".into(),
                subject: Some("ada lovelace's".into()),
            },
            by_program: false,
            own: Own::default(),
            issuer: None,
            scopes: scopes.map(|all| all.iter().map(ToString::to_string).collect()),
        }
    }

    #[test]
    fn the_command_names_for_whom_and_can_be_typed() {
        assert_eq!(
            grant(None).command(),
            r"steersman login books --tenant acme --subject 'ada lovelace'\''s'"
        );
        assert_eq!(word("ada@example.com"), "ada@example.com");
        assert_eq!(word("$(id)"), "'$(id)'");
        assert_eq!(word(""), "''");
    }

    #[test]
    fn scopes_are_those_of_the_definition_the_challenge_or_the_server() {
        let list = |text: &str| crate::oauth::challenge::scopes(text);
        let first = Challenge::read("Bearer scope=\"read\"");
        let more = Challenge::read("Bearer error=\"insufficient_scope\", scope=\"write\"");
        let (has, offered) = (list("read mine"), list("read write admin"));
        let free = grant(None);
        assert_eq!(free.scopes(&first, &has, &offered), Ok(list("read")));
        assert_eq!(
            free.scopes(&Challenge::default(), &has, &offered),
            Ok(offered.clone())
        );
        assert_eq!(
            free.scopes(&more, &has, &offered),
            Ok(list("read mine write"))
        );
        let fixed = grant(Some(&["read"]));
        assert_eq!(fixed.scopes(&first, &has, &offered), Ok(list("read")));
        assert!(fixed.scopes(&more, &has, &offered).is_err());
    }
}
