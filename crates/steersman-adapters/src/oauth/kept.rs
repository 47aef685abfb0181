//! Tokens in the store: sealed together with the server, the tenant and the subject that they are for.

use super::challenge::Challenge;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use steersman_machine::stored::ids::Time;
use steersman_runtime::seal::Sealer;
use steersman_runtime::store::{Credential, CredentialOf, Credentials};

/// A token is renewed this long before its end, in milliseconds: the request that it is for takes time, too.
const MARGIN: u64 = 30_000;

/// The sign-in at a server, as it is kept. **Stored**, sealed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The sign-in, if somebody signed in.
    pub(crate) signed: Option<Signed>,
    /// The challenge of the server when it refused a request. It is gone after the next sign-in.
    pub(crate) wants: Option<Challenge>,
}

/// A sign-in that happened.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Signed {
    /// The resource that the tokens are for.
    pub(crate) resource: String,
    /// Address of the resource's metadata, if it has any.
    #[serde(default)]
    pub(crate) metadata: Option<String>,
    /// The authorization server's name.
    #[serde(default)]
    pub(crate) issuer: Option<String>,
    /// Address where tokens are given.
    pub(crate) token: String,
    /// Address where they are taken back.
    #[serde(default)]
    pub(crate) revocation: Option<String>,
    /// Ways in which a client proves who it is at `token`.
    #[serde(default)]
    pub(crate) methods: Vec<String>,
    pub(crate) client: Client,
    /// The scopes that were granted.
    pub(crate) scopes: Vec<String>,
    /// `None` once they were refused.
    pub(crate) tokens: Option<Tokens>,
}

/// A client, as the authorization server knows it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Client {
    pub(crate) id: String,
    /// The secret that a registration gave. A secret of the definition is not kept.
    pub(crate) secret: Option<String>,
    /// The way in which a registration wants the client to prove who it is.
    pub(crate) method: Option<String>,
}

/// Tokens.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tokens {
    pub(crate) access: String,
    pub(crate) refresh: Option<String>,
    /// Time after which `access` is worth nothing, in milliseconds since 1970, if that is known.
    pub(crate) until: Option<u64>,
}

impl std::fmt::Debug for Signed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signed").finish_non_exhaustive()
    }
}

impl Signed {
    /// Returns the access token, if it is worth something at this time.
    pub(crate) fn usable(&self, now: u64) -> Option<&str> {
        let tokens = self.tokens.as_ref()?;
        let lasts = |until: u64| until > now.saturating_add(MARGIN);
        tokens.until.is_none_or(lasts).then_some(&*tokens.access)
    }
}

/// The sealed form: with what it is for, so that no row of the store can be taken for another one.
#[derive(Serialize, Deserialize)]
struct Form {
    v: u32,
    server: String,
    tenant: String,
    subject: Option<String>,
    kept: Kept,
}

/// Version of the sealed form.
const VERSION: u32 = 1;

/// The sign-ins of a store.
#[derive(Clone)]
pub(crate) struct Keep {
    store: Arc<dyn Credentials>,
    sealer: Sealer,
}

impl Keep {
    pub(crate) fn new(store: Arc<dyn Credentials>, sealer: Sealer) -> Self {
        Self { store, sealer }
    }

    /// Returns what is known, and its version; 0 if nothing is.
    ///
    /// # Errors
    /// It cannot be read; the reason, and the version.
    pub(crate) async fn get(&self, of: &CredentialOf) -> Result<(u64, Kept), (String, u64)> {
        let found = self.store.credential(of).await;
        let found = found.map_err(|error| (format!("the store: {error}"), 0))?;
        let Some(found) = found else {
            return Ok((0, Kept::default()));
        };
        let fail = |why: String| (format!("the stored sign-in: {why}"), found.version);
        let text = self.sealer.open_text(&found.sealed);
        let text = text.map_err(|error| fail(error.to_string()))?;
        let form: Form = serde_json::from_str(&text)
            .map_err(|_| fail("it was written by another program, or a newer one".to_owned()))?;
        let scope = (&*of.scope.tenant, of.scope.subject.as_deref());
        if form.v != VERSION
            || form.server != *of.server
            || (&*form.tenant, form.subject.as_deref()) != scope
        {
            return Err(fail(
                "it is that of another server, tenant or subject, and is not used".to_owned(),
            ));
        }
        Ok((found.version, form.kept))
    }

    /// Stores what is known now in place of the version `before`. Returns false if another process was faster.
    ///
    /// # Errors
    /// The store cannot be written.
    pub(crate) async fn put(
        &self,
        of: &CredentialOf,
        before: u64,
        kept: &Kept,
    ) -> Result<bool, String> {
        let form = Form {
            v: VERSION,
            server: of.server.to_string(),
            tenant: of.scope.tenant.to_string(),
            subject: of.scope.subject.as_ref().map(ToString::to_string),
            kept: kept.clone(),
        };
        let text = serde_json::to_string(&form).expect("it is JSON");
        let tokens = kept.signed.as_ref().and_then(|of| of.tokens.as_ref());
        let credential = Credential {
            version: before + 1,
            sealed: self.sealer.seal_text(&text).into(),
            until: tokens
                .and_then(|tokens| tokens.until)
                .map(|until| Time(i64::try_from(until).unwrap_or(i64::MAX))),
        };
        let put = self.store.put_credential(of, before, credential).await;
        put.map_err(|error| format!("the store: {error}"))
    }

    /// Forgets a sign-in. Returns false if there is none.
    ///
    /// # Errors
    /// The store cannot be written.
    pub(crate) async fn drop(&self, of: &CredentialOf) -> Result<bool, String> {
        let dropped = self.store.drop_credential(of).await;
        dropped.map_err(|error| format!("the store: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Form, Keep, Kept};
    use crate::oauth::challenge::Challenge;
    use std::sync::Arc;
    use steersman_runtime::seal::Sealer;
    use steersman_runtime::store::memory::MemoryStore;
    use steersman_runtime::store::{CredentialOf, Credentials as _, Scope};

    fn of(server: &str, tenant: &str, subject: Option<&str>) -> CredentialOf {
        CredentialOf {
            server: server.into(),
            scope: Scope {
                tenant: tenant.into(),
                subject: subject.map(Into::into),
            },
        }
    }

    /// The stored form never changes: fields are added with a default.
    #[test]
    fn the_stored_form_is_kept() {
        let text = r#"{"v":1,"server":"https://a.example/mcp","tenant":"acme","subject":"ada","kept":{"signed":{"resource":"https://a.example/mcp","metadata":"https://a.example/m","issuer":"https://b.example","token":"https://b.example/token","revocation":null,"methods":["none"],"client":{"id":"desk","secret":"s","method":"none"},"scopes":["read"],"tokens":{"access":"a","refresh":"r","until":1764547200000}},"wants":{"scopes":["write"],"metadata":null,"error":"insufficient_scope"}}}"#;
        let form: Form = serde_json::from_str(text).unwrap();
        let signed = form.kept.signed.as_ref().unwrap();
        assert_eq!(signed.usable(1_764_547_100_000), Some("a"));
        assert_eq!(signed.usable(1_764_547_190_000), None, "its end is near");
        assert_eq!(serde_json::to_string(&form).unwrap(), text);
    }

    #[tokio::test]
    async fn a_row_is_worth_nothing_in_the_place_of_another_one() {
        let store = Arc::new(MemoryStore::new());
        let (old, new) = ([1; 32], [2; 32]);
        let keep = Keep::new(store.clone(), Sealer::new(&old));
        let kept = Kept {
            signed: None,
            wants: Some(Challenge::read("Bearer scope=a")),
        };
        let ada = of("https://a.example/mcp", "acme", Some("ada"));
        assert!(keep.put(&ada, 0, &kept).await.unwrap());
        assert!(!keep.put(&ada, 0, &kept).await.unwrap());
        assert_eq!(keep.get(&ada).await, Ok((1, kept.clone())));
        // Another key seals now, and the older one still opens.
        let later = Keep::new(store.clone(), Sealer::new(&new).opening(&old));
        assert_eq!(later.get(&ada).await, Ok((1, kept.clone())));
        assert!(later.put(&ada, 1, &kept).await.unwrap());
        let alone = Keep::new(store.clone(), Sealer::new(&new));
        assert_eq!(alone.get(&ada).await, Ok((2, kept)));
        assert!(keep.get(&ada).await.is_err(), "the older key alone");

        let row = store.credential(&ada).await.unwrap().unwrap();
        for other in [
            of("https://b.example/mcp", "acme", Some("ada")),
            of("https://a.example/mcp", "acme", Some("bob")),
            of("https://a.example/mcp", "acme", None),
            of("https://a.example/mcp", "", Some("ada")),
        ] {
            assert_eq!(later.get(&other).await, Ok((0, Kept::default())));
            assert!(store.put_credential(&other, 0, row.clone()).await.unwrap());
            let (why, version) = later.get(&other).await.unwrap_err();
            assert!(why.contains("another server, tenant or subject"), "{why}");
            assert_eq!(version, 2);
        }
    }
}
