//! An MCP server on the loopback that wants a sign-in, with its own authorization server: what a person's browser would see is here, too.
//!
//! The tool `find` answers `found`; the tool `tell` answers with the token that it was asked with.

use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The server.
pub struct Library {
    /// Its address without a path: `http://127.0.0.1:PORT`.
    pub origin: String,
    shared: Arc<Mutex<Shared>>,
}

/// A page in place of that of the server.
#[derive(Clone, Debug)]
pub enum Page {
    /// A status and a JSON document.
    Json(u16, Json),
    /// Bytes without an end.
    Endless,
    /// A redirect to this address.
    Elsewhere(String),
}

/// A request that came: method and path, `authorization`, body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Came {
    /// Such as `POST /token`.
    pub what: String,
    /// Value of `authorization`; empty if there was none.
    pub authorization: String,
    /// The body.
    pub body: String,
}

/// The ways of the server. Tests change them while it runs.
#[derive(Debug, Default)]
pub struct Rules {
    /// Seconds for which a token is valid. `None` says nothing about it.
    pub life: Option<u64>,
    /// A refresh token is good for one renewal.
    pub rotates: bool,
    /// Tokens are given, and the answer that has them is lost on its way.
    pub loses: bool,
    /// Everything but a call of a tool needs no token.
    pub is_open: bool,
    /// Scope that calls of tools need.
    pub needs: Option<String>,
    /// Pages in place of those of the server, by path.
    pub pages: BTreeMap<String, Page>,
    /// Fields of the metadata of the authorization server that differ. `null` leaves one out.
    pub metadata: BTreeMap<String, Json>,
    /// The issuer that the answer of a sign-in names.
    pub says: Option<String>,
    /// Id and secret of the program, for client credentials.
    pub program: Option<(String, String)>,
}

#[derive(Default)]
struct Shared {
    rules: Rules,
    came: Vec<Came>,
    /// Scopes of valid access tokens.
    access: BTreeMap<String, String>,
    /// Scopes of valid refresh tokens.
    refresh: BTreeMap<String, String>,
    /// Scopes of codes.
    codes: BTreeMap<String, String>,
    made: Vec<String>,
    calls: u32,
}

impl Library {
    /// Starts it. It runs until the process ends.
    ///
    /// # Panics
    /// No port is free.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let origin = format!("http://{address}");
        let shared = Arc::<Mutex<Shared>>::default();
        let (own, at) = (shared.clone(), origin.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, origin) = (own.clone(), at.clone());
                std::thread::spawn(move || serve(stream, &origin, &shared));
            }
        });
        Self { origin, shared }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        held(&self.shared)
    }

    /// Returns the address of the MCP server.
    pub fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    /// Changes what it does.
    pub fn rules(&self, change: impl FnOnce(&mut Rules)) {
        change(&mut self.shared().rules);
    }

    /// Returns the requests that came to a path, such as `POST /token`.
    pub fn came(&self, what: &str) -> Vec<Came> {
        let shared = self.shared();
        let came = shared.came.iter().filter(|came| came.what == what);
        came.cloned().collect()
    }

    /// Returns the number of calls that were carried out.
    pub fn calls(&self) -> u32 {
        self.shared().calls
    }

    /// Returns all tokens that it ever gave.
    pub fn tokens(&self) -> Vec<String> {
        self.shared().made.clone()
    }

    /// Makes all access tokens invalid; with `all` the refresh tokens, too.
    pub fn revoke(&self, all: bool) {
        let mut shared = self.shared();
        shared.access.clear();
        if all {
            shared.refresh.clear();
        }
    }

    /// Returns true if a token is valid.
    pub fn is_valid(&self, token: &str) -> bool {
        let shared = self.shared();
        shared.access.contains_key(token) || shared.refresh.contains_key(token)
    }
}

fn held(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks for a page as a browser does. Returns its status, the address to which it redirects, if it does, and its body.
///
/// # Panics
/// Nobody answers.
pub fn browse(address: &str) -> (u16, Option<String>, String) {
    let rest = address.strip_prefix("http://").expect("it is http");
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(host).expect("somebody listens");
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is read");
    let (head, body) = answer.split_once("\r\n\r\n").expect("it is an answer");
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    let location = lines.find(|(name, _)| name.eq_ignore_ascii_case("location"));
    let location = location.map(|(_, value)| value);
    (
        status.expect("it has a status"),
        location.map(str::to_owned),
        body.to_owned(),
    )
}

/// Returns the fields of a query or a form.
pub fn fields(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let read = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (plain(name), plain(value))
    });
    read.collect()
}

fn plain(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, behind @ ..] = rest {
        rest = behind;
        let digits = behind
            .get(..2)
            .and_then(|two| std::str::from_utf8(two).ok());
        let escaped = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        match (first, escaped) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            (b'+', _) => bytes.push(b' '),
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn json(status: u16, json: &Json) -> Self {
        Self {
            status,
            head: "content-type: application/json\r\n".to_owned(),
            body: json.to_string(),
        }
    }

    fn empty(status: u16, head: &str) -> Self {
        Self {
            status,
            head: head.to_owned(),
            body: String::new(),
        }
    }
}

/// Reads one request, and answers it.
fn serve(mut stream: TcpStream, origin: &str, shared: &Mutex<Shared>) {
    let Some((method, target, authorization, body)) = read(&mut stream) else {
        return;
    };
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut now = held(shared);
    now.came.push(Came {
        what: format!("{method} {path}"),
        authorization: authorization.clone(),
        body: body.clone(),
    });
    let reply = match now.rules.pages.get(path).cloned() {
        Some(Page::Endless) => {
            drop(now);
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"a\":\"";
            let piece = vec![b'x'; 64 << 10];
            let mut open = stream.write_all(head).is_ok();
            while open {
                open = stream.write_all(&piece).is_ok();
            }
            return;
        }
        Some(Page::Json(status, json)) => Reply::json(status, &json),
        Some(Page::Elsewhere(to)) => Reply::empty(307, &format!("location: {to}\r\n")),
        None => now.answer(&method, path, query, (&authorization, &body), origin),
    };
    let is_lost = now.rules.loses && path == "/token";
    drop(now);
    if is_lost {
        return;
    }
    let Reply { status, head, body } = reply;
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status} Status\r\n{head}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    // A client that is gone needs no answer.
    let _ = stream.write_all(answer.as_bytes());
}

fn read(stream: &mut TcpStream) -> Option<(String, String, String, String)> {
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .ok()?;
    let mut bytes = Vec::new();
    let mut piece = [0; 8 << 10];
    let end = loop {
        let len = stream.read(&mut piece).ok().filter(|len| *len > 0)?;
        bytes.extend_from_slice(&piece[..len]);
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map_or_else(String::new, |(_, value)| value.to_owned())
    };
    let length: usize = header("content-length").parse().unwrap_or(0);
    let mut body = bytes.split_off(end + 4);
    while body.len() < length {
        let len = stream.read(&mut piece).ok().filter(|len| *len > 0)?;
        body.extend_from_slice(&piece[..len]);
    }
    let mut words = head.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let body = String::from_utf8_lossy(&body).into_owned();
    Some((method, target, header("authorization"), body))
}

impl Shared {
    fn answer(
        &mut self,
        method: &str,
        path: &str,
        query: &str,
        (authorization, body): (&str, &str),
        origin: &str,
    ) -> Reply {
        match (method, path) {
            ("GET", "/.well-known/oauth-protected-resource/mcp") => Reply::json(
                200,
                &json!({
                    "resource": format!("{origin}/mcp"),
                    "authorization_servers": [origin],
                }),
            ),
            ("GET", "/.well-known/oauth-authorization-server") => {
                let mut metadata = json!({
                    "issuer": origin,
                    "authorization_endpoint": format!("{origin}/authorize"),
                    "token_endpoint": format!("{origin}/token"),
                    "registration_endpoint": format!("{origin}/register"),
                    "revocation_endpoint": format!("{origin}/revoke"),
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
                });
                for (name, value) in &self.rules.metadata {
                    metadata[name] = value.clone();
                }
                Reply::json(200, &metadata)
            }
            ("GET", "/authorize") => self.authorizes(&fields(query), origin),
            ("POST", "/register") => Reply::json(201, &json!({ "client_id": "registered" })),
            ("POST", "/token") => self.token(&fields(body), authorization),
            ("POST", "/revoke") => {
                let token = &fields(body)["token"];
                self.access.remove(token);
                // A refresh token takes its access token along.
                if self.refresh.remove(token).is_some() {
                    self.access.clear();
                }
                Reply::empty(200, "")
            }
            ("POST", "/mcp") => self.mcp(authorization, body, origin),
            (_, "/mcp") => Reply::empty(405, ""),
            _ => Reply::empty(404, ""),
        }
    }

    /// The page where the person signs in: it asks nothing.
    fn authorizes(&mut self, asked: &BTreeMap<String, String>, origin: &str) -> Reply {
        let wanted = [
            ("response_type", "code"),
            ("code_challenge_method", "S256"),
            ("resource", &*format!("{origin}/mcp")),
        ];
        let is_right = wanted
            .iter()
            .all(|(name, value)| asked.get(*name).is_some_and(|is| is == value));
        if !is_right || asked["code_challenge"].len() != 43 || asked["state"].len() < 20 {
            return Reply::json(400, &json!({ "wrong": asked }));
        }
        let code = format!("code-{}", self.codes.len());
        let scope = asked.get("scope").cloned().unwrap_or_default();
        self.codes.insert(code.clone(), scope);
        let says = self.rules.says.as_deref().unwrap_or(origin);
        let (redirect, state) = (&asked["redirect_uri"], &asked["state"]);
        let to = format!("location: {redirect}?code={code}&state={state}&iss={says}\r\n");
        Reply::empty(302, &to)
    }

    fn token(&mut self, asked: &BTreeMap<String, String>, authorization: &str) -> Reply {
        let refused = |error: &str| Reply::json(400, &json!({ "error": error }));
        let of = |name: &str| asked.get(name).map_or("", |text| text);
        if of("resource").is_empty() {
            return refused("invalid_target");
        }
        let scope = match of("grant_type") {
            "authorization_code" if of("code_verifier").len() == 43 => {
                self.codes.remove(of("code"))
            }
            "refresh_token" if self.rules.rotates => self.refresh.remove(of("refresh_token")),
            "refresh_token" => self.refresh.get(of("refresh_token")).cloned(),
            "client_credentials" => {
                let is_known = self.rules.program.is_some() && authorization.starts_with("Basic ");
                is_known.then(|| of("scope").to_owned())
            }
            _ => return refused("unsupported_grant_type"),
        };
        let Some(scope) = scope else {
            return refused("invalid_grant");
        };
        let n = self.made.len();
        let (access, refresh) = (format!("access-token-{n}"), format!("refresh-token-{n}"));
        self.access.insert(access.clone(), scope.clone());
        self.made.push(access.clone());
        let mut answer = json!({ "access_token": access, "token_type": "Bearer", "scope": scope });
        if let Some(life) = self.rules.life {
            answer["expires_in"] = life.into();
        }
        if of("grant_type") == "authorization_code" || self.rules.rotates {
            self.refresh.insert(refresh.clone(), scope);
            self.made.push(refresh.clone());
            answer["refresh_token"] = refresh.into();
        }
        Reply::json(200, &answer)
    }

    fn mcp(&mut self, authorization: &str, body: &str, origin: &str) -> Reply {
        let message: Json = serde_json::from_str(body).unwrap_or_default();
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let token = authorization.strip_prefix("Bearer ").unwrap_or_default();
        let at = format!("{origin}/.well-known/oauth-protected-resource/mcp");
        let wants = |status: u16, more: &str| {
            let head = format!("www-authenticate: Bearer resource_metadata=\"{at}\"{more}\r\n");
            Reply::empty(status, &head)
        };
        let scope = self.access.get(token).cloned();
        let is_free = self.rules.is_open && method != "tools/call";
        if scope.is_none() && !is_free {
            return wants(401, ", scope=\"read\"");
        }
        let granted = scope.unwrap_or_default();
        if let Some(needs) = self.rules.needs.as_ref().filter(|_| method == "tools/call")
            && !granted.split(' ').any(|one| one == needs)
        {
            let more = format!(", error=\"insufficient_scope\", scope=\"{needs}\"");
            return wants(403, &more);
        }
        let result = match method.as_str() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "library", "version": "1" },
            }),
            "tools/list" => {
                let tool =
                    |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
                json!({ "tools": [tool("find"), tool("tell")] })
            }
            "tools/call" => {
                self.calls += 1;
                let text = match message["params"]["name"].as_str() {
                    Some("tell") => format!("the token is {token}"),
                    _ => "found".to_owned(),
                };
                json!({ "content": [{ "type": "text", "text": text }] })
            }
            "ping" => json!({}),
            _ => return Reply::empty(202, ""),
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        Reply::json(200, &answer)
    }
}
