//! Finds the authorization server of a server, and what it offers.

use super::challenge::Challenge;
use super::{Answer, Web, allowed, short};
use reqwest::Url;
use serde::Deserialize;

/// Maximum number of authorization servers of a server that are asked.
const SERVERS_MAX: usize = 4;

/// An authorization server, and the resource that its tokens are for.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The resource that tokens are asked for.
    pub(crate) resource: String,
    /// Address of the resource's metadata, if it has any.
    pub(crate) metadata: Option<String>,
    /// The authorization server's own name. `None` if it publishes no metadata.
    pub(crate) issuer: Option<String>,
    pub(crate) authorization: Url,
    pub(crate) token: Url,
    pub(crate) registration: Option<Url>,
    pub(crate) revocation: Option<Url>,
    /// Ways in which a client proves who it is at `token`. Empty means that nothing is said.
    pub(crate) methods: Vec<String>,
    /// True if the address of a document may be the id of a client.
    pub(crate) takes_documents: bool,
    /// True if the answer of a sign-in says which authorization server it is from.
    pub(crate) names_issuer: bool,
    /// Scopes of the resource.
    pub(crate) scopes: Vec<String>,
    /// True if there is a scope for tokens that are renewed.
    pub(crate) has_offline: bool,
}

/// Metadata of a protected resource (RFC 9728).
#[derive(Deserialize)]
struct OfResource {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// Metadata of an authorization server (RFC 8414, OpenID Connect Discovery).
#[derive(Deserialize)]
struct Server {
    issuer: Option<String>,
    authorization_endpoint: Option<String>,
    token_endpoint: String,
    registration_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
    #[serde(default)]
    response_types_supported: Option<Vec<String>>,
    code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<String>,
    #[serde(default)]
    client_id_metadata_document_supported: bool,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// Finds the authorization server of the server at this address. `only`: the one at which the program is registered; a server that names
/// others is not believed. `by_code`: a person is to sign in there.
///
/// # Errors
/// There is none that may be used; the reason, as a sentence.
pub(crate) async fn find(
    web: &Web,
    server: &Url,
    challenge: &Challenge,
    (only, by_code): (Option<&str>, bool),
) -> Result<Found, String> {
    let Some((at, resource)) = resource(web, server, challenge).await? else {
        let found = without_metadata(web, server, by_code).await?;
        return match only {
            Some(only) if !found.issuer.as_deref().is_some_and(|is| is_same(is, only)) => {
                Err(not_there(server.as_str(), only))
            }
            _ => Ok(found),
        };
    };
    if resource.authorization_servers.is_empty() {
        return Err("the metadata of the server names no authorization server".to_owned());
    }
    let mut why = only.map_or_else(String::new, |only| not_there(server.as_str(), only));
    let is_it = |issuer: &&String| only.is_none_or(|only| is_same(issuer, only));
    let named = resource.authorization_servers.iter().filter(is_it);
    for issuer in named.take(SERVERS_MAX) {
        let base = match allowed(issuer, server) {
            Ok(base) => base,
            Err(error) => {
                why = format!("the authorization server {error}");
                continue;
            }
        };
        match published(web, &base).await {
            Ok(Some(found)) => {
                if !found
                    .issuer
                    .as_deref()
                    .is_some_and(|is| is_same(is, issuer))
                {
                    let is = found.issuer.as_deref().unwrap_or("nobody");
                    return Err(format!(
                        "the authorization server `{}` says that it is `{}`: its metadata may be false, and nothing is sent to it",
                        short(issuer),
                        short(is)
                    ));
                }
                let found = offers(found, server, by_code)?;
                return Ok(Found {
                    resource: resource.resource,
                    metadata: Some(at.into()),
                    scopes: resource.scopes_supported,
                    ..found
                });
            }
            Ok(None) => why = format!("`{}` publishes no metadata", short(issuer)),
            Err(error) => why = format!("the authorization server `{}`: {error}", short(issuer)),
        }
    }
    Err(why)
}

/// Returns why a server is not signed in at.
fn not_there(server: &str, only: &str) -> String {
    format!(
        "`{}` does not name the authorization server `{}`, at which the program is registered (`oauth.issuer`): nothing is sent",
        short(server),
        short(only)
    )
}

/// Reads the metadata of the resource. `None` if it publishes none.
async fn resource(
    web: &Web,
    server: &Url,
    challenge: &Challenge,
) -> Result<Option<(Url, OfResource)>, String> {
    let mut places = Vec::new();
    if let Some(said) = &challenge.metadata {
        // Some servers give a path.
        let said = server.join(said).map_or_else(|_| said.clone(), Into::into);
        places.push(allowed(&said, server).map_err(|why| format!("the metadata at {why}"))?);
    }
    places.extend(well_known(server, "oauth-protected-resource"));
    for place in places {
        let answer = web
            .get(&place)
            .await
            .map_err(|why| format!("the metadata of the server: {why}"))?;
        let Some(read) = document::<OfResource>(answer) else {
            continue;
        };
        if !is_of(&read.resource, server) {
            return Err(format!(
                "the metadata of the server is that of `{}`, which is another one: no token is asked for it",
                short(&read.resource)
            ));
        }
        return Ok(Some((place, read)));
    }
    Ok(None)
}

/// Finds the authorization server of a server that publishes no metadata about itself, as servers did until the version 2025-03-26: it
/// is at the same place.
async fn without_metadata(web: &Web, server: &Url, by_code: bool) -> Result<Found, String> {
    let mut base = server.clone();
    base.set_path("/");
    base.set_query(None);
    base.set_fragment(None);
    // The server itself is asked, so its own address is allowed in any case.
    let found = if let Some(found) = published(web, &base).await? {
        let issuer = found.issuer.as_deref().map(Url::parse);
        let is_here = |is: Result<Url, _>| is.is_ok_and(|is| is.origin() == base.origin());
        if !issuer.is_none_or(is_here) {
            return Err(
                "the authorization server at the server's own place says that it is another one"
                    .to_owned(),
            );
        }
        offers(found, server, by_code)?
    } else {
        let at = |path: &str| base.join(path).expect("it is a path");
        let text = |path: &str| allowed(at(path).as_str(), server);
        Found {
            resource: String::new(),
            metadata: None,
            issuer: None,
            authorization: text("authorize")?,
            token: text("token")?,
            registration: Some(text("register")?),
            revocation: None,
            methods: Vec::new(),
            takes_documents: false,
            names_issuer: false,
            scopes: Vec::new(),
            has_offline: false,
        }
    };
    let mut resource = server.clone();
    resource.set_query(None);
    resource.set_fragment(None);
    Ok(Found {
        resource: resource.into(),
        ..found
    })
}

/// Reads the metadata of an authorization server. `None` if it publishes none.
async fn published(web: &Web, base: &Url) -> Result<Option<Server>, String> {
    let mut places = vec![
        behind_path(base, "oauth-authorization-server"),
        behind_path(base, "openid-configuration"),
    ];
    let path = base.path().trim_end_matches('/');
    if !path.is_empty() {
        let mut appended = base.clone();
        appended.set_query(None);
        appended.set_path(&format!("{path}/.well-known/openid-configuration"));
        places.push(appended);
    }
    for place in places {
        if let Some(read) = document::<Server>(web.get(&place).await?) {
            return Ok(Some(read));
        }
    }
    Ok(None)
}

/// Reads a document. `None` if it is not there, or is another one.
fn document<T: serde::de::DeserializeOwned>(answer: Answer) -> Option<T> {
    let json = answer.json.filter(|_| answer.status == 200)?;
    serde_json::from_value(json).ok()
}

/// Returns where a document about an address may be: with its path behind the well-known place, then without it.
fn well_known(of: &Url, name: &str) -> Vec<Url> {
    let first = behind_path(of, name);
    let mut root = first.clone();
    root.set_path(&format!("/.well-known/{name}"));
    if first == root {
        vec![root]
    } else {
        vec![first, root]
    }
}

/// Returns where a document about an address is first of all: its path stands behind the well-known place.
fn behind_path(of: &Url, name: &str) -> Url {
    let path = of.path().trim_end_matches('/');
    let mut place = of.clone();
    place.set_query(None);
    place.set_fragment(None);
    place.set_path(&format!("/.well-known/{name}{path}"));
    place
}

/// Checks what an authorization server offers.
fn offers(server: Server, of: &Url, by_code: bool) -> Result<Found, String> {
    let endpoint = |text: &str| {
        allowed(text, of).map_err(|why| format!("the authorization server names an address: {why}"))
    };
    let optional = |text: Option<&str>| text.map(endpoint).transpose();
    if by_code {
        let methods = server.code_challenge_methods_supported.as_ref();
        if !methods.is_some_and(|all| all.iter().any(|one| one == "S256")) {
            return Err(
                "the authorization server does not say that it has PKCE with S256, without which a code may be stolen"
                    .to_owned(),
            );
        }
        let types = server.response_types_supported.as_ref();
        if types.is_some_and(|all| all.iter().all(|one| one != "code")) {
            return Err("the authorization server gives no codes to sign in with".to_owned());
        }
    }
    let token = endpoint(&server.token_endpoint)?;
    let authorization = match optional(server.authorization_endpoint.as_deref())? {
        Some(authorization) => authorization,
        None if by_code => {
            return Err("the authorization server has no page where a person signs in".to_owned());
        }
        None => token.clone(),
    };
    Ok(Found {
        resource: String::new(),
        metadata: None,
        issuer: server.issuer,
        authorization,
        token,
        registration: optional(server.registration_endpoint.as_deref())?,
        revocation: optional(server.revocation_endpoint.as_deref())?,
        methods: server.token_endpoint_auth_methods_supported,
        takes_documents: server.client_id_metadata_document_supported,
        names_issuer: server.authorization_response_iss_parameter_supported,
        scopes: Vec::new(),
        has_offline: server.scopes_supported.iter().any(|one| one == OFFLINE),
    })
}

/// The scope for tokens that are renewed.
pub(crate) const OFFLINE: &str = "offline_access";

/// Returns true if these are the same issuer. A slash after a host means nothing.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let plain = |text: &str| {
        let is_root = Url::parse(text).is_ok_and(|url| url.path() == "/" && url.query().is_none());
        if is_root {
            text.trim_end_matches('/').to_owned()
        } else {
            text.to_owned()
        }
    };
    plain(one) == plain(other)
}

/// Returns true if a resource is a server, or a place above it at the same origin.
fn is_of(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else {
        return false;
    };
    if resource.fragment().is_some() || resource.origin() != server.origin() {
        return false;
    }
    let (above, path) = (resource.path().trim_end_matches('/'), server.path());
    let rest = path.strip_prefix(above);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::{is_of, is_same, well_known};
    use reqwest::Url;

    #[test]
    fn a_resource_is_the_server_or_above_it() {
        let server = Url::parse("https://a.example/mcp/books?x=1").unwrap();
        for (resource, is) in [
            ("https://a.example/mcp/books", true),
            ("https://a.example/mcp", true),
            ("https://a.example/mcp/", true),
            ("https://a.example", true),
            ("https://a.example/mcp/book", false),
            ("https://a.example/mcp/books/1", false),
            ("http://a.example/mcp/books", false),
            ("https://a.example:8443/mcp/books", false),
            ("https://evil.example/mcp/books", false),
            ("https://a.example/mcp#x", false),
            ("books", false),
        ] {
            assert_eq!(is_of(resource, &server), is, "{resource}");
        }
    }

    #[test]
    fn documents_are_looked_for_with_the_path_first() {
        let places = |url: &str| {
            let places = well_known(&Url::parse(url).unwrap(), "x");
            places.into_iter().map(String::from).collect::<Vec<_>>()
        };
        assert_eq!(
            places("https://a.example/mcp?q"),
            [
                "https://a.example/.well-known/x/mcp",
                "https://a.example/.well-known/x"
            ]
        );
        assert_eq!(
            places("https://a.example/"),
            ["https://a.example/.well-known/x"]
        );
    }

    #[test]
    fn a_slash_after_a_host_means_nothing() {
        assert!(is_same("https://a.example/", "https://a.example"));
        assert!(!is_same("https://a.example/t/", "https://a.example/t"));
        assert!(!is_same("https://a.example", "https://b.example"));
    }
}
