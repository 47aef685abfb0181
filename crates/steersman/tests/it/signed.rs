//! Sign-ins at an MCP server: a person signs in, and sessions of exactly this tenant and subject use the tokens.

use crate::mcp::answer;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use steersman::runtime::store::Store;
use steersman::runtime::store::memory::MemoryStore;
use steersman::{By, Error, Network, Question, Scope, Session, Steersman, Turn};
use steersman_machine::stored::ids::Line;
use steersman_testkit::library::{Library, Page, browse, fields};

/// The address to which a person is sent back. Nobody listens there: the tests read where the redirect leads.
const BACK: &str = "http://127.0.0.1:9/signed-in";

/// A server and a store, which outlive processes.
struct World {
    library: Library,
    store: Arc<dyn Store>,
    /// `oauth` of the server.
    oauth: &'static str,
    class: &'static str,
    tool: &'static str,
}

impl World {
    fn new(oauth: &'static str) -> Self {
        Self {
            library: Library::start(),
            store: Arc::new(MemoryStore::new()),
            oauth,
            class: "read",
            tool: "find",
        }
    }

    fn process(&self) -> Steersman {
        let script = r#"main: [ { call: { books.TOOL: {} } }, "{{ request.last }}", "Again." ]"#;
        Steersman::options()
            .script_all(script.replace("TOOL", self.tool))
            .env(|name| (name == "DESK").then(|| "hunter22".to_owned()))
            .over_shared(self.store.clone(), &[1; 32])
    }

    fn network(&self) -> Network {
        let yaml = format!(
            "name: reader\nsecrets: {{ desk: {{ env: DESK }} }}\nmcp:\n  books: {{ url: \"{}\", effect: {}, retry: 0, oauth: {} }}\n\
             agents: {{ main: {{ system: You read., tools: [books.{}] }} }}\n",
            self.library.url(),
            self.class,
            self.oauth,
            self.tool
        );
        Network::from_yaml(yaml).build().unwrap()
    }

    /// A person signs in.
    async fn signs_in(&self, steersman: &Steersman, of: &Scope) -> Result<(), String> {
        let begun = steersman.sign_in(&self.network(), "books", of, BACK).await;
        let sign_in = begun.map_err(|error| error.to_string())?;
        let (status, to, body) = browse(sign_in.address());
        assert_eq!(status, 302, "{body}");
        sign_in.finish(&to.unwrap()).await
    }

    async fn starts(&self, steersman: &Steersman) -> Result<Session, String> {
        let started = steersman.start(&self.network()).await;
        started.map_err(|error| error.to_string())
    }

    /// Begins a session, and returns its answer.
    async fn said(&self, steersman: &Steersman) -> String {
        let session = self.starts(steersman).await.unwrap();
        let said = answer(session.ask("Go.").await.unwrap());
        session.stop().await;
        said
    }

    /// The requests for tokens, by the grant that they name.
    fn asked(&self, grant: &str) -> usize {
        let came = self.library.came("POST /token");
        came.iter()
            .filter(|came| fields(&came.body)["grant_type"] == grant)
            .count()
    }
}

fn of(tenant: &str, subject: Option<&str>) -> Scope {
    Scope {
        tenant: tenant.into(),
        subject: subject.map(Into::into),
    }
}

fn nobody() -> Scope {
    Scope::default()
}

fn question(turn: Turn) -> Question {
    match turn {
        Turn::Asks(mut questions) if questions.len() == 1 => questions.remove(0),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_person_signs_in_once_and_every_process_calls() {
    let world = World::new("person");
    let steersman = world.process();
    let why = world.starts(&steersman).await.err().unwrap();
    assert!(why.contains("steersman login books"), "{why}");
    world.signs_in(&steersman, &nobody()).await.unwrap();
    let [page] = &world.library.came("POST /register")[..] else {
        panic!("the program is registered once");
    };
    let registered: Json = serde_json::from_str(&page.body).unwrap();
    assert_eq!(registered["redirect_uris"], json!([BACK]));

    let later = world.process();
    assert_eq!(world.said(&later).await, "found");
    let [signed] = &later.signed_in(&world.network(), &nobody()).await.unwrap()[..] else {
        panic!("one server wants a sign-in");
    };
    assert!(signed.is_valid && !signed.by_program);
    assert_eq!(signed.issuer.as_deref(), Some(&*world.library.origin));
    assert_eq!(signed.scopes, ["read"], "what the server wanted");
    assert_eq!(world.asked("refresh_token"), 0);
}

/// Neither the log nor the rows of the store have a token in the open, and a server that returns one gets it masked.
#[tokio::test]
async fn a_token_is_nowhere_in_the_open() {
    let world = World {
        tool: "tell",
        ..World::new("person")
    };
    let steersman = world.process();
    world.signs_in(&steersman, &nobody()).await.unwrap();
    let session = world.starts(&steersman).await.unwrap();
    let said = answer(session.ask("Go.").await.unwrap());
    assert_eq!(said, "the token is (secret)");
    let mut feed = steersman.engine().feed(session.id(), Line::NONE);
    let lines = format!("{:?}", feed.lines().await.unwrap());
    let server = steersman::runtime::store::CredentialOf {
        server: world.library.url().into(),
        scope: nobody(),
    };
    let row = world.store.credential(&server).await.unwrap().unwrap();
    let tokens = world.library.tokens();
    assert_eq!(tokens.len(), 2);
    for token in &tokens {
        assert!(!lines.contains(token.as_str()), "{lines}");
        assert!(!row.sealed.contains(token.as_str()));
    }
    session.stop().await;
}

#[tokio::test]
async fn a_token_is_renewed_before_its_end_and_after_a_refusal() {
    let world = World::new("person");
    world.library.rules(|rules| {
        rules.life = Some(0);
        rules.rotates = true;
    });
    let steersman = world.process();
    world.signs_in(&steersman, &nobody()).await.unwrap();
    assert_eq!(world.said(&steersman).await, "found");
    assert!(world.asked("refresh_token") > 1, "each request needs one");
    world.library.rules(|rules| rules.life = None);
    assert_eq!(world.said(&steersman).await, "found");
    // The token is taken away before its end.
    let before = world.asked("refresh_token");
    world.library.revoke(false);
    assert_eq!(world.said(&world.process()).await, "found");
    assert_eq!(world.asked("refresh_token"), before + 1);
}

/// A refresh token is good for one renewal: the process that loses takes the token of the one that won.
#[tokio::test]
async fn two_processes_renew_one_token() {
    let world = World::new("person");
    world.library.rules(|rules| rules.rotates = true);
    let (one, other) = (world.process(), world.process());
    world.signs_in(&one, &nobody()).await.unwrap();
    for _ in 0..5 {
        world.library.revoke(false);
        let said = tokio::join!(world.said(&one), world.said(&other));
        assert_eq!(said, ("found".to_owned(), "found".to_owned()));
    }
}

/// A process that dies after the exchange and before the store has lost the new tokens, and the older ones are worth nothing.
#[tokio::test]
async fn a_sign_in_that_is_over_is_said_and_done_again() {
    let world = World::new("person");
    let steersman = world.process();
    world.signs_in(&steersman, &nobody()).await.unwrap();
    world.library.revoke(true);
    let why = world.starts(&steersman).await.err().unwrap();
    assert!(why.contains("steersman login books"), "{why}");
    let signed = steersman.signed_in(&world.network(), &nobody()).await;
    assert!(!signed.unwrap()[0].is_valid);
    // Nothing is asked for with tokens that were refused.
    let before = world.asked("refresh_token");
    world.starts(&steersman).await.err().unwrap();
    assert_eq!(world.asked("refresh_token"), before);
    world.signs_in(&steersman, &nobody()).await.unwrap();
    assert_eq!(world.said(&steersman).await, "found");
}

#[tokio::test]
async fn a_call_waits_for_the_sign_in() {
    for class in ["read", "unsafe"] {
        let world = World {
            class,
            ..World::new("person")
        };
        world.library.rules(|rules| rules.is_open = true);
        let steersman = world.process();
        let session = world.starts(&steersman).await.unwrap();
        let asked = question(session.ask("Go.").await.unwrap());
        assert_eq!(
            asked.text(),
            "The server `books` wants a sign-in. Sign in, then approve: steersman login books"
        );
        let id = session.id().to_owned();
        steersman.engine().kill().await;

        let later = world.process();
        let session = later.session(&id).await.unwrap();
        let open = question(session.settled().await.unwrap());
        assert_eq!(open.id(), asked.id(), "{class}: the same question is open");
        assert_eq!(world.library.calls(), 0);
        world.signs_in(&later, &nobody()).await.unwrap();
        session.approve(&open, By::user()).await.unwrap();
        assert_eq!(answer(session.settled().await.unwrap()), "found", "{class}");
        assert_eq!(world.library.calls(), 1, "{class}");
        session.stop().await;
    }
}

#[tokio::test]
async fn a_call_fails_if_nobody_signs_in() {
    let world = World::new("person");
    world.library.rules(|rules| rules.is_open = true);
    let steersman = world.process();
    for approves in [false, true] {
        let session = world.starts(&steersman).await.unwrap();
        let asked = question(session.ask("Go.").await.unwrap());
        if approves {
            session.approve(&asked, By::user()).await.unwrap();
        } else {
            session.reject(&asked, "", By::user()).await.unwrap();
        }
        let said = answer(session.settled().await.unwrap());
        assert!(said.contains("steersman login books"), "{said}");
        session.stop().await;
    }
    assert_eq!(world.library.calls(), 0);
}

#[tokio::test]
async fn more_scopes_are_asked_for_when_the_server_wants_them() {
    let world = World::new("person");
    world
        .library
        .rules(|rules| rules.needs = Some("write".into()));
    let steersman = world.process();
    world.signs_in(&steersman, &nobody()).await.unwrap();
    let session = world.starts(&steersman).await.unwrap();
    let asked = question(session.ask("Go.").await.unwrap());
    let signed = steersman.signed_in(&world.network(), &nobody()).await;
    assert_eq!(signed.unwrap()[0].wants, ["write"]);
    world.signs_in(&steersman, &nobody()).await.unwrap();
    session.approve(&asked, By::user()).await.unwrap();
    assert_eq!(answer(session.settled().await.unwrap()), "found");
    let signed = steersman.signed_in(&world.network(), &nobody()).await;
    assert_eq!(signed.unwrap()[0].scopes, ["read", "write"]);
    session.stop().await;

    // A definition that names its scopes never asks for others.
    let world = World::new("{ scopes: [read] }");
    world
        .library
        .rules(|rules| rules.needs = Some("write".into()));
    let steersman = world.process();
    world.signs_in(&steersman, &nobody()).await.unwrap();
    let session = world.starts(&steersman).await.unwrap();
    question(session.ask("Go.").await.unwrap());
    let why = world.signs_in(&steersman, &nobody()).await.unwrap_err();
    assert!(why.contains("the scope `write`, which `scopes`"), "{why}");
    session.stop().await;
}

#[tokio::test]
async fn tokens_of_one_subject_are_not_used_for_another() {
    let world = World::new("person");
    let whole = world.process();
    let ada = of("acme", Some("ada"));
    world.signs_in(&whole, &ada).await.unwrap();
    assert_eq!(world.said(&whole.scoped(ada.clone())).await, "found");
    for (other, command) in [
        (
            of("acme", Some("bob")),
            "login books --tenant acme --subject bob",
        ),
        (of("acme", None), "login books --tenant acme ("),
        (
            of("other", Some("ada")),
            "login books --tenant other --subject ada",
        ),
        (nobody(), "login books ("),
    ] {
        let part = whole.scoped(other.clone());
        let why = world.starts(&part).await.err().unwrap();
        assert!(why.contains(command), "{why}");
        let signed = whole.signed_in(&world.network(), &other).await.unwrap();
        assert!(!signed[0].is_valid);
        // One who sees a part of the store signs nobody else in.
        let refused = part.sign_in(&world.network(), "books", &ada, BACK).await;
        let sees = other == of("acme", None);
        assert_eq!(
            matches!(refused, Err(Error::Refused(_))),
            !sees,
            "{other:?}"
        );
    }
    // Erasing a person erases its sign-in, too.
    whole.erase_scope(&ada, true).await.unwrap();
    let signed = whole.signed_in(&world.network(), &ada).await.unwrap();
    assert_eq!((signed[0].is_valid, &signed[0].issuer), (false, &None));
}

#[tokio::test]
async fn false_metadata_sends_nobody_anywhere() {
    const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
    const SERVER: &str = "/.well-known/oauth-authorization-server";
    let world = World::new("person");
    let steersman = world.process();
    let origin = world.library.origin.clone();
    let resource = |resource: &str, server: &str| {
        let json = json!({ "resource": resource, "authorization_servers": [server] });
        Some((RESOURCE, Page::Json(200, json)))
    };
    let evil = || json!("https://evil.example");
    let here = world.library.url();
    for (page, metadata, words) in [
        (
            None,
            Some(("issuer", evil())),
            "says that it is `https://evil.example`",
        ),
        (
            None,
            Some(("issuer", Json::Null)),
            "says that it is `nobody`",
        ),
        (
            None,
            Some(("token_endpoint", json!("http://evil.example/token"))),
            "does not begin with https://",
        ),
        (
            None,
            Some(("authorization_endpoint", json!("file:///etc/passwd"))),
            "does not begin with https://",
        ),
        (
            None,
            Some(("code_challenge_methods_supported", Json::Null)),
            "PKCE with S256",
        ),
        (
            None,
            Some(("code_challenge_methods_supported", json!(["plain"]))),
            "PKCE with S256",
        ),
        (
            None,
            Some(("response_types_supported", json!(["token"]))),
            "gives no codes",
        ),
        (
            resource("https://evil.example/mcp", &origin),
            None,
            "which is another one",
        ),
        (
            resource(&here, "http://evil.example"),
            None,
            "does not begin with https://",
        ),
        (Some((RESOURCE, Page::Endless)), None, "more than 256 KiB"),
        (Some((SERVER, Page::Endless)), None, "more than 256 KiB"),
        (
            Some((SERVER, Page::Json(200, json!([])))),
            None,
            "publishes no metadata",
        ),
        (
            Some((SERVER, Page::Elsewhere("http://127.0.0.2:1/".into()))),
            None,
            "publishes no metadata",
        ),
    ] {
        world.library.rules(|rules| {
            rules.pages = page
                .map(|(at, page)| (at.to_owned(), page))
                .into_iter()
                .collect();
            let metadata = metadata.map(|(name, value)| (name.to_owned(), value));
            rules.metadata = metadata.into_iter().collect();
        });
        let why = world.signs_in(&steersman, &nobody()).await.unwrap_err();
        assert!(why.contains(words), "{why} has no `{words}`");
    }
    for what in ["GET /authorize", "POST /token", "POST /register"] {
        assert_eq!(world.library.came(what), [], "{what}");
    }
}

#[tokio::test]
async fn the_answer_of_another_server_is_worth_nothing() {
    let world = World::new("person");
    let steersman = world.process();
    let begins = || async {
        let network = world.network();
        let begun = steersman.sign_in(&network, "books", &nobody(), BACK).await;
        let sign_in = begun.unwrap();
        let (_, to, _) = browse(sign_in.address());
        (sign_in, to.unwrap())
    };
    let (sign_in, to) = begins().await;
    let other = to.replace("state=", "state=x");
    assert!(sign_in.is_answered_by(&to) && !sign_in.is_answered_by(&other));
    let why = sign_in.finish(&other).await.unwrap_err();
    assert!(why.contains("its `state` is another one"), "{why}");
    world
        .library
        .rules(|rules| rules.says = Some("https://evil.example".into()));
    let (sign_in, to) = begins().await;
    let why = sign_in.finish(&to).await.unwrap_err();
    assert!(why.contains("is from `https://evil.example`"), "{why}");
    let (sign_in, to) = begins().await;
    let (state, _) = to.split_once("&iss=").unwrap();
    let state = state.split_once('&').unwrap().1.to_owned();
    let refused = format!("{BACK}?{state}&error=access_denied&error_description=No%1b");
    let why = sign_in.finish(&refused).await.unwrap_err();
    assert_eq!(why, "the authorization server refused: access_denied No");
    let (sign_in, _) = begins().await;
    assert!(!sign_in.is_answered_by("http://["));
    assert_eq!(world.library.came("POST /token"), []);
}

#[tokio::test]
async fn the_program_signs_in_by_itself() {
    let world = World::new("{ by: program, client_id: desk, client_secret: '{{ secrets.desk }}' }");
    world.library.rules(|rules| {
        rules.program = Some(("desk".into(), "hunter22".into()));
        rules.life = Some(0);
    });
    let steersman = world.process();
    assert_eq!(world.said(&steersman).await, "found");
    let [first, ..] = &world.library.came("POST /token")[..] else {
        panic!("a token was asked for");
    };
    // base64 of `desk:hunter22`
    assert_eq!(first.authorization, "Basic ZGVzazpodW50ZXIyMg==");
    let asked = fields(&first.body);
    assert_eq!(asked["grant_type"], "client_credentials");
    assert_eq!(asked["resource"], world.library.url());
    assert_eq!(asked["scope"], "read");
    let why = world.signs_in(&steersman, &nobody()).await.unwrap_err();
    assert!(why.contains("by itself"), "{why}");
    world.library.rules(|rules| rules.program = None);
    let why = world.starts(&world.process()).await.err().unwrap();
    assert!(why.contains("gives no token: invalid_grant"), "{why}");
}

#[tokio::test]
async fn the_secret_of_a_registration_goes_to_its_issuer_alone() {
    let world = World::new(
        "{ by: program, client_id: desk, client_secret: '{{ secrets.desk }}', issuer: 'http://127.0.0.1:1' }",
    );
    let why = world.starts(&world.process()).await.err().unwrap();
    assert!(
        why.contains("does not name the authorization server `http://127.0.0.1:1`"),
        "{why}"
    );
    assert_eq!(world.library.came("POST /token"), []);
}

#[tokio::test]
async fn who_signs_out_gives_the_tokens_back() {
    let world = World::new("person");
    let steersman = world.process();
    let network = world.network();
    let all = nobody();
    let signs_out = || steersman.sign_out(&network, "books", &all);
    assert_eq!(signs_out().await.unwrap(), (false, None));
    world.signs_in(&steersman, &nobody()).await.unwrap();
    let tokens = world.library.tokens();
    assert!(tokens.iter().all(|token| world.library.is_valid(token)));
    assert_eq!(signs_out().await.unwrap(), (true, None));
    assert!(!tokens.iter().any(|token| world.library.is_valid(token)));
    world.starts(&steersman).await.err().unwrap();
    // A server that takes nothing back: the tokens are forgotten here.
    world.library.rules(|rules| {
        rules.metadata = [("revocation_endpoint".to_owned(), Json::Null)].into();
    });
    world.signs_in(&steersman, &nobody()).await.unwrap();
    let (was_there, why) = signs_out().await.unwrap();
    assert!(was_there && why.unwrap().contains("takes no tokens back"));
    let signed = steersman.signed_in(&network, &nobody()).await.unwrap();
    assert!(!signed[0].is_valid);
}
