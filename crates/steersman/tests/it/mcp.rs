//! MCP servers in sessions: the tools of a server are bound at the start, and stay the same if the server changes or is
//! gone.

use std::path::{Path, PathBuf};
use steersman::machine::network::Does;
use steersman::machine::stored::ids::Line;
use steersman::machine::values::types::Parameters;
use steersman::runtime::feed::FeedItem;
use steersman::runtime::store::SessionQuery;
use steersman::{By, Network, Steersman, Turn, testing};

/// A folder with a definition, its server and a store.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str, definition: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("steersman-mcp-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let folder = Self(folder.canonicalize().unwrap());
        let script = Path::new(env!("CARGO_MANIFEST_DIR"));
        let script = script.join("../steersman-adapters/tests/it/mcp/server.sh");
        std::fs::copy(script, folder.0.join("server.sh")).unwrap();
        std::fs::write(folder.0.join("diary"), "").unwrap();
        std::fs::write(folder.0.join("steersman.yaml"), definition).unwrap();
        folder
    }

    pub(crate) fn network(&self) -> Network {
        Network::from_path(&self.0).unwrap().build().unwrap()
    }

    pub(crate) async fn process(&self, script: &str) -> Steersman {
        let setup = Steersman::options().script_all(script).user_absent();
        setup.open(self.0.join("sessions.db")).await.unwrap()
    }

    fn started(&self) -> usize {
        let diary = std::fs::read_to_string(self.0.join("diary")).unwrap();
        diary.lines().filter(|line| *line == "started").count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const ALL: &str = r#"
name: helper
mcp:
  s: { command: [sh, server.sh, diary], effects: { echo: read, picture: read } }
agents: { main: { system: You help., tools: ["s.*", s.picture_of] } }
"#;

const HELPER: &str = r#"
name: helper
mcp:
  s: { command: [sh, server.sh, diary], effects: { echo: read } }
agents: { main: { system: You help., tools: [ { tool: "s.*", approve: args.x == "dear" } ] } }
tests:
  echoes:
    script: { main: [ { call: { s.echo: { x: a } } }, { call: { s.shout: { x: b } } }, "{{ request.last }}" ] }
    tools: { s.echo: [ hi ], s.shout: [ HI ] }
    steps: [ { say: Go. } ]
    expect: [ { answer: HI } ]
  forgets:
    script: { main: [ { call: { s.shout: { x: a } } }, "{{ request.last }}" ] }
    tools: { s.shout: [] }
    steps: [ { say: Go. } ]
"#;

pub(crate) fn answer(turn: Turn) -> String {
    match turn {
        Turn::Answer(answer) => answer.text().to_owned(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_a_server_offers_is_bound_and_outlives_it() {
    let folder = Folder::new("bound", HELPER);
    let script = r#"main: [ { call: { s__echo: { x: a } } }, "{{ request.last }}", As before. ]"#;
    let id = {
        let steersman = folder.process(script).await;
        let session = steersman.start(&folder.network()).await.unwrap();
        assert_eq!(answer(session.ask("Go.").await.unwrap()), "hello");
        let id = session.id().to_owned();
        session.stop().await;
        id
    };
    assert_eq!(folder.started(), 1);
    // The server and its definition are gone now.
    std::fs::remove_file(folder.0.join("server.sh")).unwrap();
    std::fs::remove_file(folder.0.join("steersman.yaml")).unwrap();
    let steersman = folder.process(script).await;
    let seen = steersman.engine().inspect(&id).await.unwrap();
    let network = seen.network.unwrap();
    let names = network.tools.keys().map(|name| &**name);
    let names: Vec<&str> = names.filter(|name| name.starts_with("s.")).collect();
    assert_eq!(names, ["s.echo", "s.fail", "s.refuse", "s.structured"]);
    let Does::Model(main) = &network.agent("main").does else {
        panic!("it has a model");
    };
    assert!(main.servers.is_empty());
    let named = main.tools.iter().filter(|used| !used.implied);
    assert_eq!(named.count(), 4);
    let Parameters::Schema(schema) = &network.tool("s.echo").parameters else {
        panic!("a server says what its tools take");
    };
    assert!(schema.contains("\"x\""), "{schema}");
    // The session continues, and the server is not asked again for its tools.
    let session = steersman.session(&id).await.unwrap();
    assert_eq!(answer(session.ask("Again.").await.unwrap()), "As before.");
    assert_eq!(folder.started(), 1);
    session.stop().await;
}

#[tokio::test]
async fn a_changed_list_is_for_sessions_that_start_later() {
    let folder = Folder::new("pinned", HELPER);
    let network = folder.network();
    let steersman = folder.process("main: [ Yes. ]").await;
    let tools = async || {
        let session = steersman.start(&network).await.unwrap();
        assert_eq!(answer(session.ask("Go.").await.unwrap()), "Yes.");
        let seen = steersman.engine().inspect(session.id()).await.unwrap();
        let network = seen.network.unwrap();
        let of_server = network.tools.keys().filter(|name| name.starts_with("s."));
        (session.id().to_owned(), of_server.count())
    };
    let (old, count) = tools().await;
    assert_eq!(count, 4);
    std::fs::write(folder.0.join("diary"), "changed\n").unwrap();
    assert_eq!(tools().await.1, 5);
    let seen = steersman.engine().inspect(&old).await.unwrap();
    let of_server = seen.network.unwrap();
    let of_server = of_server.tools.keys().filter(|name| name.starts_with("s."));
    assert_eq!(of_server.count(), 4);
    assert_eq!(
        steersman.servers(&network).await.unwrap()[0]
            .offers
            .as_ref()
            .unwrap()
            .tools
            .len(),
        5
    );
    steersman.engine().stop().await;
}

#[tokio::test]
async fn an_answer_beside_the_schema_goes_back_to_the_model() {
    let folder = Folder::new("schema", HELPER);
    let script = r#"main: [ { call: { s.echo: { x: 7 } } }, "{{ request.last }}" ]"#;
    let steersman = folder.process(script).await;
    let session = steersman.start(&folder.network()).await.unwrap();
    let said = answer(session.ask("Go.").await.unwrap());
    assert!(
        said.starts_with("misfit: ") && said.contains("string"),
        "{said}"
    );
    session.stop().await;
}

#[tokio::test]
async fn a_person_approves_calls_of_a_server() {
    let folder = Folder::new("approve", HELPER);
    let script = r#"main: [ { call: { s.echo: { x: dear } } }, "{{ request.last }}" ]"#;
    let steersman = folder.process(script).await;
    let session = steersman.start(&folder.network()).await.unwrap();
    let Turn::Asks(questions) = session.ask("Go.").await.unwrap() else {
        panic!("somebody is asked");
    };
    session.approve(&questions[0], By::user()).await.unwrap();
    assert_eq!(answer(session.settled().await.unwrap()), "hello");
    session.stop().await;
}

#[tokio::test]
async fn content_becomes_artifacts_and_a_death_a_doubt() {
    let definition = HELPER.replace(
        r#"tools: [ { tool: "s.*", approve: args.x == "dear" } ]"#,
        "tools: [ s.picture, s.die ]",
    );
    let definition = definition.split("tests:").next().unwrap();
    let folder = Folder::new("content", definition);
    // The script of the server does not list these tools, so they are added to its list.
    let server = folder.0.join("server.sh");
    let text = std::fs::read_to_string(&server).unwrap();
    let more = text.replace(
        "list=\"$list,$(tool fail)",
        "list=\"$list,$(tool picture),$(tool die),$(tool fail)",
    );
    std::fs::write(&server, more).unwrap();
    let script = r#"main: [ { call: { s.picture: {} } }, "{{ request.last }}", { call: { s.die: {} } }, "{{ request.last }}" ]"#;
    let steersman = folder.process(script).await;
    let session = steersman.start(&folder.network()).await.unwrap();
    let said = answer(session.ask("Go.").await.unwrap());
    assert!(said.starts_with("A dot.\n"), "{said}");
    assert!(said.contains("-1.png: image/png, 2 bytes)"), "{said}");
    assert!(
        said.contains("-2-notes.txt: text/plain, 8 bytes)"),
        "{said}"
    );
    let seen = steersman.engine().inspect(session.id()).await.unwrap();
    let artifacts = &seen.branches[0].snapshot.artifacts;
    assert_eq!(artifacts.len(), 2);
    for version in artifacts.values().flatten() {
        let blob = steersman
            .engine()
            .store()
            .blob(&version.hash)
            .await
            .unwrap();
        assert_eq!(blob.unwrap().len() as u64, version.len);
    }
    let said = answer(session.ask("Die.").await.unwrap());
    assert!(
        said.contains("may have happened") && said.contains("disk on fire"),
        "{said}"
    );
    session.stop().await;
}

#[tokio::test]
async fn a_session_that_a_server_does_not_fit_is_not_begun() {
    let folder = Folder::new("fits", ALL);
    let steersman = folder.process("main: [ Yes. ]").await;
    let error = steersman.start(&folder.network()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the tools of its MCP servers do not fit the definition: the MCP server `s` has no tool for `s.picture_of`"
    );
    let long = HELPER.replace(
        "  s: {",
        "  a_name_that_is_as_long_as_a_name_of_a_server_may: {",
    );
    let long = long.replace("s.*", "a_name_that_is_as_long_as_a_name_of_a_server_may.*");
    let long = long.split("tests:").next().unwrap();
    let folder = Folder::new("long", long);
    let server = folder.0.join("server.sh");
    let text = std::fs::read_to_string(&server).unwrap();
    std::fs::write(
        &server,
        text.replace("tool fail", "tool a_tool_with_a_long_name"),
    )
    .unwrap();
    let error = steersman
        .start(&folder.network())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("which has 73 characters; providers take 64"),
        "{error}"
    );
    let sessions = steersman
        .engine()
        .store()
        .sessions(&SessionQuery::default())
        .await;
    assert!(sessions.unwrap().is_empty());
    // A server that cannot be started.
    std::fs::write(&server, "echo no licence >&2; exit 1").unwrap();
    let other = folder.process("main: [ Yes. ]").await;
    let error = other
        .start(&folder.network())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("ended before it greeted") && error.contains("no licence"),
        "{error}"
    );
}

#[tokio::test]
async fn tests_reach_no_server() {
    let folder = Folder::new("tests", HELPER);
    let network = folder.network();
    let report = testing::run(&network, "echoes").await;
    assert!(report.failures.is_empty(), "{:?}", report.failures);
    let report = testing::run(&network, "forgets").await;
    assert!(
        report
            .failures
            .iter()
            .any(|failure| failure.contains("s.shout")),
        "{:?}",
        report.failures
    );
    assert_eq!(folder.started(), 0);
}

#[tokio::test]
async fn whoever_follows_sees_how_far_a_call_has_come() {
    let definition = HELPER.split("agents:").next().unwrap();
    let folder = Folder::new(
        "progress",
        &format!("{definition}agents: {{ main: {{ system: You help., tools: [s.patient] }} }}"),
    );
    let server = folder.0.join("server.sh");
    let text = std::fs::read_to_string(&server).unwrap();
    std::fs::write(&server, text.replace("tool fail", "tool patient")).unwrap();
    let steersman = folder
        .process(r#"main: [ { call: { s.patient: {} } }, "{{ request.last }}" ]"#)
        .await;
    let session = steersman.start(&folder.network()).await.unwrap();
    let mut feed = steersman.engine().feed(session.id(), Line::NONE);
    let follows = async {
        loop {
            if let FeedItem::Progress { progress, .. } = feed.next().await.unwrap() {
                std::fs::write(folder.0.join("diary"), "go\n").unwrap();
                return progress.message.unwrap();
            }
        }
    };
    let (turn, told) = tokio::join!(session.ask("Go."), follows);
    assert_eq!(answer(turn.unwrap()), "at last");
    assert_eq!(told, "half way");
    session.stop().await;
}
