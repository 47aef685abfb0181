//! Registers clients, and gets tokens and gives them back.

use super::challenge;
use super::discover::Found;
use super::kept::{Client, Signed, Tokens};
use super::{Answer, Web, short};
use crate::jwt;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use reqwest::Url;
use serde_json::json;
use zeroize::Zeroizing;

/// Maximum number of bytes of a token.
const TOKEN_MAX: usize = 32 << 10;
/// Seconds for which a signed claim of a client is valid.
const CLAIM_LIFE: i64 = 300;
/// Longest life of a token that is believed, in seconds: a year.
const LIFE_MAX: f64 = 366.0 * 86_400.0;

/// The client, as a definition declares it.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Own {
    pub(crate) id: Option<String>,
    pub(crate) secret: Option<String>,
    /// A private key in PEM.
    pub(crate) key: Option<String>,
    /// Address of a document that describes the client.
    pub(crate) document: Option<String>,
}

/// The reason why there is no token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoToken {
    /// The thing that was given for it is worth nothing any more.
    Refused(String),
    /// Another attempt may get one.
    Failed(String),
}

impl NoToken {
    pub(crate) fn words(self) -> String {
        match self {
            Self::Refused(why) | Self::Failed(why) => why,
        }
    }
}

/// Returns random text of 32 bytes that no one else knows.
pub(crate) fn random() -> Zeroizing<String> {
    let mut bytes = Zeroizing::new([0_u8; 32]);
    getrandom::fill(&mut *bytes).expect("the operating system gives random bytes");
    URL_SAFE_NO_PAD.encode(*bytes).into()
}

/// Returns the challenge of a PKCE verifier (S256).
pub(crate) fn challenge_of(verifier: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
    URL_SAFE_NO_PAD.encode(digest.as_ref())
}

/// Returns the client that the program is at an authorization server, and registers it if it is none yet.
///
/// # Errors
/// It cannot be a client there; the reason, as a sentence.
pub(crate) async fn client(
    web: &Web,
    found: &Found,
    own: &Own,
    redirect: &str,
    scopes: &[String],
) -> Result<Client, String> {
    let plain = |id: &str| Client {
        id: id.to_owned(),
        secret: None,
        method: None,
    };
    if let Some(id) = &own.id {
        return Ok(plain(id));
    }
    if let Some(document) = own.document.as_deref().filter(|_| found.takes_documents) {
        let is_document = Url::parse(document).is_ok_and(|url| {
            url.scheme() == "https" && url.path() != "/" && url.fragment().is_none()
        });
        if !is_document {
            return Err("`client_metadata` is no address of a document: it begins with https:// and has a path".to_owned());
        }
        return Ok(plain(document));
    }
    let Some(registration) = &found.registration else {
        return Err(
            "the authorization server registers no clients by itself: register the program there, and give `client_id` (and `client_secret`) in `oauth` of the server"
                .to_owned(),
        );
    };
    let has = |method: &str| found.methods.iter().any(|known| known == method);
    let method = if found.methods.is_empty() || has("none") {
        "none"
    } else if has("client_secret_basic") {
        "client_secret_basic"
    } else if has("client_secret_post") {
        "client_secret_post"
    } else {
        "none"
    };
    let mut wanted = json!({
        "client_name": "Steersman",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": "native",
    });
    if !scopes.is_empty() {
        wanted["scope"] = scopes.join(" ").into();
    }
    let answer = web.json(registration, &wanted).await;
    let answer = answer.map_err(|why| format!("the program cannot be registered: {why}"))?;
    let id = answer.text("client_id").filter(|id| !id.is_empty());
    let Some(id) = id.filter(|_| answer.is_success()) else {
        return Err(format!(
            "the authorization server did not register the program: {}",
            answer.refusal()
        ));
    };
    // Some give an empty secret to a client that has none.
    let secret = answer.text("client_secret").filter(|text| !text.is_empty());
    let method = answer.text("token_endpoint_auth_method");
    if [Some(id), secret, method]
        .into_iter()
        .flatten()
        .any(|text| text.len() > TOKEN_MAX)
    {
        return Err("the registration of the program is too long".to_owned());
    }
    Ok(Client {
        id: id.to_owned(),
        secret: secret.map(str::to_owned),
        method: method.map(str::to_owned),
    })
}

/// The way in which a client proves who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    None,
    Basic,
    Post,
    Key,
}

/// Chooses the proof: a key if there is one, otherwise what a registration wants, otherwise the first that the server has.
fn proof(has_key: bool, has_secret: bool, wanted: Option<&str>, methods: &[String]) -> Proof {
    if has_key {
        return Proof::Key;
    }
    if !has_secret {
        return Proof::None;
    }
    let named = |method: &str| match method {
        "client_secret_basic" => Some(Proof::Basic),
        "client_secret_post" => Some(Proof::Post),
        "none" => Some(Proof::None),
        _ => None,
    };
    let has = |wanted: Proof| methods.iter().any(|one| named(one) == Some(wanted));
    let offered = [Proof::Basic, Proof::Post, Proof::None];
    let offered = offered.into_iter().find(|proof| has(*proof));
    wanted.and_then(named).or(offered).unwrap_or(Proof::Basic)
}

/// Asks for tokens, or gives one back, as a client.
pub(crate) struct Asker<'a> {
    pub(crate) web: &'a Web,
    pub(crate) own: &'a Own,
    pub(crate) client: &'a Client,
    pub(crate) issuer: Option<&'a str>,
    pub(crate) methods: &'a [String],
}

impl Asker<'_> {
    /// Sends a form of this client.
    async fn form(&self, to: &Url, fields: &[(&str, &str)]) -> Result<Answer, NoToken> {
        let secret = self.own.secret.as_deref().or(self.client.secret.as_deref());
        let method = self.client.method.as_deref();
        let proof = proof(
            self.own.key.is_some(),
            secret.is_some(),
            method,
            self.methods,
        );
        let secret = secret.unwrap_or_default();
        let id = &*self.client.id;
        let (claim, mut basic) = match proof {
            Proof::Key => (Some(self.claim(to)?), None),
            _ => (None, None),
        };
        let mut all = fields.to_vec();
        match proof {
            Proof::None => all.push(("client_id", id)),
            Proof::Post => all.extend([("client_id", id), ("client_secret", secret)]),
            Proof::Basic => {
                let part = |text: &str| {
                    url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
                };
                let both = format!("{}:{}", part(id), part(secret));
                basic = Some(format!("Basic {}", STANDARD.encode(both)));
            }
            Proof::Key => all.extend([
                ("client_assertion_type", ASSERTION),
                ("client_assertion", claim.as_deref().unwrap_or_default()),
            ]),
        }
        let answer = self.web.form(to, basic.as_deref(), &all).await;
        answer.map_err(|why| NoToken::Failed(format!("the authorization server: {why}")))
    }

    /// Returns the signed claim of a client with a key.
    fn claim(&self, to: &Url) -> Result<String, NoToken> {
        let now = jiff::Timestamp::now().as_second();
        let claims = json!({
            "iss": self.client.id, "sub": self.client.id, "aud": self.issuer.unwrap_or(to.as_str()),
            "iat": now, "exp": now + CLAIM_LIFE, "jti": &**random(),
        });
        let key = self.own.key.as_deref().unwrap_or_default();
        jwt::signed(key, None, &claims).ok_or_else(|| {
            NoToken::Refused(
                "the `key` of the definition cannot be used: it is a private key in PEM (PKCS #8; RSA, P-256 or P-384)"
                    .to_owned(),
            )
        })
    }

    /// Asks for tokens. Returns them, and the scopes that the answer names.
    ///
    /// # Errors
    /// [`NoToken`].
    pub(crate) async fn ask(
        &self,
        to: &Url,
        fields: &[(&str, &str)],
    ) -> Result<(Tokens, Option<Vec<String>>), NoToken> {
        let answer = self.form(to, fields).await?;
        if !answer.is_success() {
            let why = format!(
                "the authorization server gives no token: {}",
                answer.refusal()
            );
            // A server that is overloaded or broken says nothing about what it was given.
            return Err(match answer.status {
                408 | 425 | 429 | 500.. => NoToken::Failed(why),
                _ => NoToken::Refused(why),
            });
        }
        read(&answer).map_err(NoToken::Failed)
    }

    /// Gives a token back.
    ///
    /// # Errors
    /// The reason why the authorization server may not have taken it.
    pub(crate) async fn revoke(&self, to: &Url, kind: &str, token: &str) -> Result<(), String> {
        let fields = [("token", token), ("token_type_hint", kind)];
        let answer = self.form(to, &fields).await.map_err(NoToken::words)?;
        if answer.is_success() {
            return Ok(());
        }
        Err(format!("the authorization server: {}", answer.refusal()))
    }
}

/// Kind of a claim by which a client proves who it is.
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Reads tokens.
fn read(answer: &Answer) -> Result<(Tokens, Option<Vec<String>>), String> {
    let token = |field: &str| answer.text(field).filter(|text| !text.is_empty());
    let Some(access) = token("access_token") else {
        return Err("the answer of the authorization server has no `access_token`".to_owned());
    };
    let kind = answer.text("token_type").unwrap_or("Bearer");
    if !kind.eq_ignore_ascii_case("bearer") {
        return Err(format!(
            "the authorization server gives a token of the kind `{}`, which is not known here",
            short(kind)
        ));
    }
    let refresh = token("refresh_token");
    let is_fit =
        |text: &str| text.len() <= TOKEN_MAX && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_fit(access) || !refresh.is_none_or(is_fit) {
        return Err(
            "the authorization server gives a token that is too long or no token at all".to_owned(),
        );
    }
    let life = answer
        .json
        .as_ref()
        .and_then(|json| json["expires_in"].as_f64());
    let life = life.map(|seconds| (seconds.clamp(0.0, LIFE_MAX) * 1_000.0) as u64);
    Ok((
        Tokens {
            access: access.to_owned(),
            refresh: refresh.map(str::to_owned),
            until: life.map(|life| now().saturating_add(life)),
        },
        answer.text("scope").map(challenge::scopes),
    ))
}

/// Returns the present time in milliseconds since 1970.
pub(crate) fn now() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}

/// Renews the tokens of a sign-in by its refresh token.
///
/// # Errors
/// [`NoToken`]; [`NoToken::Refused`] without asking anybody if there is no refresh token.
pub(crate) async fn renewed(web: &Web, own: &Own, signed: &Signed) -> Result<Signed, NoToken> {
    let refresh = signed.tokens.as_ref().and_then(|of| of.refresh.as_deref());
    let Some(refresh) = refresh else {
        return Err(NoToken::Refused("its tokens cannot be renewed".to_owned()));
    };
    let fields: [(&str, &str); 3] = [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh),
        ("resource", &signed.resource),
    ];
    let (mut tokens, scopes) = asked(web, own, signed, &fields).await?;
    tokens.refresh = tokens.refresh.or_else(|| Some(refresh.to_owned()));
    Ok(Signed {
        tokens: Some(tokens),
        scopes: scopes.unwrap_or_else(|| signed.scopes.clone()),
        ..signed.clone()
    })
}

/// Gets tokens for the program itself, with these scopes.
///
/// # Errors
/// [`NoToken`].
pub(crate) async fn of_program(
    web: &Web,
    own: &Own,
    signed: &Signed,
    scopes: &[String],
) -> Result<Signed, NoToken> {
    let wanted = scopes.join(" ");
    let mut fields = vec![
        ("grant_type", "client_credentials"),
        ("resource", &*signed.resource),
    ];
    if !wanted.is_empty() {
        fields.push(("scope", &wanted));
    }
    let (tokens, granted) = asked(web, own, signed, &fields).await?;
    Ok(Signed {
        tokens: Some(tokens),
        scopes: granted.unwrap_or_else(|| scopes.to_vec()),
        ..signed.clone()
    })
}

/// Asks for tokens where a sign-in has them from.
pub(crate) async fn asked(
    web: &Web,
    own: &Own,
    signed: &Signed,
    fields: &[(&str, &str)],
) -> Result<(Tokens, Option<Vec<String>>), NoToken> {
    let url = Url::parse(&signed.token)
        .map_err(|_| NoToken::Refused("the stored sign-in names no address".to_owned()))?;
    signed.asker(web, own).ask(&url, fields).await
}

impl Signed {
    /// Returns the one who asks for its tokens.
    pub(crate) fn asker<'a>(&'a self, web: &'a Web, own: &'a Own) -> Asker<'a> {
        Asker {
            web,
            own,
            client: &self.client,
            issuer: self.issuer.as_deref(),
            methods: &self.methods,
        }
    }

    /// Makes a sign-in that has no tokens yet.
    pub(crate) fn begun(found: &Found, client: Client) -> Self {
        Self {
            resource: found.resource.clone(),
            metadata: found.metadata.clone(),
            issuer: found.issuer.clone(),
            token: found.token.to_string(),
            revocation: found.revocation.as_ref().map(ToString::to_string),
            methods: found.methods.clone(),
            client,
            scopes: Vec::new(),
            tokens: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, Proof, challenge_of, proof, random, read};
    use serde_json::json;

    /// The example of RFC 7636.
    #[test]
    fn the_challenge_is_the_digest_of_the_verifier() {
        assert_eq!(
            challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
        assert_eq!(random().len(), 43);
        assert_ne!(random(), random());
    }

    #[test]
    fn a_client_proves_who_it_is_as_the_server_wants() {
        let of = |has_key, has_secret, wanted, methods: &[&str]| {
            let methods: Vec<String> = methods.iter().map(ToString::to_string).collect();
            proof(has_key, has_secret, wanted, &methods)
        };
        let (basic, post) = ("client_secret_basic", "client_secret_post");
        assert_eq!(of(true, true, Some(basic), &[basic]), Proof::Key);
        assert_eq!(of(false, false, Some(basic), &[basic]), Proof::None);
        assert_eq!(of(false, true, None, &[]), Proof::Basic);
        assert_eq!(of(false, true, None, &[post, basic]), Proof::Basic);
        assert_eq!(of(false, true, None, &[post, "none"]), Proof::Post);
        assert_eq!(of(false, true, None, &["none"]), Proof::None);
        assert_eq!(of(false, true, Some(post), &[basic, post]), Proof::Post);
        assert_eq!(
            of(false, true, Some("private_key_jwt"), &[basic]),
            Proof::Basic
        );
    }

    #[test]
    fn tokens_that_no_header_holds_are_refused() {
        let read = |json| {
            read(&Answer {
                status: 200,
                json: Some(json),
            })
        };
        let (tokens, scopes) = read(json!({
            "access_token": "a", "token_type": "bearer", "expires_in": 0, "scope": "x y", "refresh_token": "",
        }))
        .unwrap();
        assert_eq!((&*tokens.access, tokens.refresh), ("a", None));
        assert!(tokens.until.is_some());
        assert_eq!(scopes, Some(vec!["x".to_owned(), "y".to_owned()]));
        for wrong in [
            json!({}),
            json!([]),
            json!({ "access_token": 7 }),
            json!({ "access_token": "" }),
            json!({ "access_token": "a\r\nx: y" }),
            json!({ "access_token": "a b" }),
            json!({ "access_token": "a", "refresh_token": "é" }),
            json!({ "access_token": "a".repeat(40_000) }),
            json!({ "access_token": "a", "token_type": "mac" }),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
        let endless = json!({ "access_token": "a", "expires_in": 1e300 });
        assert!(read(endless).unwrap().0.until.unwrap() < u64::MAX / 2);
    }
}
