//! The clients in Rust, Python (`scripts/python-client.sh`) and TypeScript (`scripts/typescript.sh`) against a server that is killed
//! and started again.

use crate::docs::blocks;
use crate::served::{Served, is_the_log, provider};
use crate::world::{self, World};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

const DESK: &str = "
steersman: 1
name: desk
tools:
  send_money:
    description: Sends money.
    parameters: { to: string, cents: integer }
    effect: unsafe
    approve: { when: args.cents > 10000, by: supervisor }
    command: [sh, -c, 'echo {{ args.to }} >> sent.txt']
agents:
  supervisor: { person: { role: supervisor } }
  desk: { system: You send money for the user., tools: [send_money] }
entry: desk
";

/// A call that is asked for, and an answer to each message.
const SCRIPT: &str = "
desk:
  - call: { send_money: { to: anna, cents: 15000 } }
  - Sent.
  - One.
  - Two.
  - Three.
  - Four.
  - Five.
";

/// Number of messages that a client sends around the kills.
const ROUNDS: usize = 5;

/// A server that is started again at the same address.
struct Desk {
    world: World,
    served: Served,
    listen: String,
}

impl Desk {
    fn new() -> Self {
        provider();
        let world = World::new();
        world.write("steersman.yaml", DESK);
        world.write("script.yaml", SCRIPT);
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = free.local_addr().unwrap().to_string();
        drop(free);
        let served = Served::listening(&world, &listen);
        Self {
            world,
            served,
            listen,
        }
    }

    fn starts_again(&mut self) {
        self.served = Served::listening(&self.world, &self.listen);
    }

    /// Checks that the events on disk that a client was told are those of the log, and that each of its acts happened once.
    #[track_caller]
    fn was_told(&self, session: &str, told: &[Json]) {
        let told: Vec<&Json> = told.iter().collect();
        let log = is_the_log(&self.world, session, &told);
        let heard = log.iter().filter(|event| event["event"] == "heard");
        let heard: Vec<&str> = heard.map(|event| event["text"].as_str().unwrap()).collect();
        let more: Vec<String> = (0..ROUNDS).map(|n| format!("More {n}.")).collect();
        assert_eq!(heard[0], "Send 150 to Anna.");
        assert_eq!(heard[1..], more);
        let decided = log.iter().filter(|event| event["event"] == "decided");
        assert_eq!(decided.count(), 1);
        let owners = log.iter().filter(|event| event["event"] == "owner");
        assert!(
            owners.count() > 1,
            "more than one process drove the session"
        );
    }

    /// Runs a program that tells the events that it follows, and kills the server whenever it says so. Returns all else that it says.
    fn runs(&mut self, command: &mut Command) -> Vec<String> {
        let mut child = command
            .current_dir(&self.world.folder)
            .env("STEERSMAN_SERVER", &self.served.at)
            .env("STEERSMAN_TOKEN", self.served.token())
            .env("NO_PROXY", "127.0.0.1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut wrong = child.stderr.take().unwrap();
        let wrong = std::thread::spawn(move || {
            let mut text = String::new();
            wrong.read_to_string(&mut text).unwrap();
            text
        });
        let mut input = child.stdin.take().unwrap();
        let (mut events, mut said) = (Vec::new(), Vec::new());
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            if let Some(event) = line.strip_prefix("event ") {
                events.push(serde_json::from_str::<Json>(event).unwrap());
            } else if line == "kill" {
                self.served.kill();
                // A program that does not wait for it leaves its input unread.
                writeln!(input, "dead").unwrap();
                self.starts_again();
            } else {
                said.push(line);
            }
        }
        let status = child.wait().unwrap();
        assert!(status.success(), "{said:?}\n{}", wrong.join().unwrap());
        let session = said.remove(0);
        self.was_told(session.strip_prefix("session ").unwrap(), &events);
        said
    }

    fn sent(&self) -> String {
        std::fs::read_to_string(self.world.folder.join("sent.txt")).unwrap()
    }
}

/// The definition and the script of the guide, and its programs by their fence.
fn guide() -> (World, BTreeMap<String, String>) {
    provider();
    let world = World::new();
    let page = world::root().join("docs/guides/clients.md");
    let mut programs = BTreeMap::new();
    for block in blocks(&std::fs::read_to_string(page).unwrap()) {
        match block.file {
            Some(file) => world.write(&file, &block.text),
            None => drop(programs.insert(block.fence, block.text)),
        }
    }
    (world, programs)
}

/// Checks that a program of the guide is in a page of the client, too.
#[track_caller]
fn is_in(program: &str, page: &str) {
    let text = std::fs::read_to_string(world::root().join(page)).unwrap();
    assert!(
        text.contains(program),
        "{page} has another program than the guide"
    );
}

fn succeeds(command: &mut Command) -> String {
    let out = command.env("NO_PROXY", "127.0.0.1").output().unwrap();
    let told = String::from_utf8(out.stdout).unwrap();
    let wrong = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{told}\n{wrong}");
    told
}

mod rust_client {
    use super::{Desk, ROUNDS, guide, is_in};
    use crate::served::Served;
    use serde_json::Value as Json;
    use std::path::Path;
    use std::time::Duration;
    use steersman_client::{
        Client, Error, Follow, Given, Pieces, ProblemCode, SessionsListQuery, Start, TurnOrStarted,
        TurnStatus, ViewsArtifactQuery,
    };
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::task::spawn_blocking;

    async fn start(client: &Client, message: &str) -> Result<String, Error> {
        let start = Start {
            definition: "desk".to_owned(),
            message: Some(message.to_owned()),
            ..Start::default()
        };
        let given = Given {
            key: Some("one".to_owned()),
            ..Given::default()
        };
        match client.sessions().start(&start, &given).await? {
            TurnOrStarted::Started(started) => Ok(started.session),
            TurnOrStarted::Turn(turn) => Ok(turn.session),
        }
    }

    #[track_caller]
    fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> ProblemCode {
        let error = result.unwrap_err();
        error.problem().unwrap_or_else(|| panic!("{error}")).code
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn it_follows_and_acts_over_kills() {
        let mut desk = Desk::new();
        let client = Client::new(&desk.served.at, desk.served.token()).unwrap();
        let client = client.patience(Duration::from_mins(1));
        let id = start(&client, "Send 150 to Anna.").await.unwrap();
        assert_eq!(start(&client, "Send 150 to Anna.").await.unwrap(), id);
        let session = client.session(&id);
        let (mut told, mut rounds, mut hellos) = (Vec::<Json>::new(), 0, 0);
        let mut events = session.follow(Follow::default());
        while let Some(event) = events.next().await {
            let event = event.unwrap();
            if event.kind == "hello" {
                hellos += 1;
            } else if !event.is_provisional() {
                told.push(serde_json::to_value(&event).unwrap());
            }
            let is_said = event.kind == "said" && !event.text("text").is_empty();
            if is_said && rounds == ROUNDS {
                break;
            }
            if event.kind == "asked" || is_said {
                // The server dies before the act, or while it is on its way. A payment that was approved must not be cut.
                let is_dead = !is_said || rounds % 2 == 0;
                if is_dead {
                    desk.served.kill();
                }
                let message = format!("More {rounds}.");
                let supervisor = session.acting_as("supervisor");
                let (killed, acted) = tokio::join!(
                    spawn_blocking(move || {
                        if !is_dead {
                            desk.served.kill();
                        }
                        desk.starts_again();
                        desk
                    }),
                    async {
                        if is_said {
                            session.say(&message).await
                        } else {
                            supervisor.approve(event.text("question")).await
                        }
                    }
                );
                desk = killed.unwrap();
                acted.unwrap();
                rounds += usize::from(is_said);
            }
        }
        assert!(hellos > ROUNDS, "{hellos}");
        let rest = Follow::until_settled().from(events.cursor());
        let mut rest = session.follow(rest);
        while let Some(event) = rest.next().await {
            let event = event.unwrap();
            if !event.is_provisional() && event.kind != "hello" {
                told.push(serde_json::to_value(&event).unwrap());
            }
        }
        let turn = session.settled().await.unwrap();
        assert_eq!((turn.status, &turn.session), (TurnStatus::Answered, &id));
        desk.was_told(&id, &told);
        assert_eq!(code(start(&client, "Else.").await), ProblemCode::Repeated);
        let query = ViewsArtifactQuery::default();
        let artifact = client.views().artifact(&id, "a/../b", &query).await;
        assert_eq!(code(artifact), ProblemCode::Artifact);
        assert!(session.artifacts().await.unwrap().is_empty());
        let query = SessionsListQuery {
            definition: Some("desk".to_owned()),
            ..SessionsListQuery::default()
        };
        let listed = client.sessions().list(&query).await.unwrap();
        assert_eq!(listed.items.len(), 1);
        let again = session.ask("Again?").await;
        // The script is over, so the session fails, and says why.
        assert_eq!(again.unwrap().status, TurnStatus::Failed);
    }

    /// Answers requests in turn with these texts, and then goes.
    async fn other(answers: Vec<String>) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    request.push(stream.read_u8().await.unwrap());
                }
                let asked = String::from_utf8(request).unwrap().to_lowercase();
                let answer = answer.replace(
                    "LAST",
                    if asked.contains("last-event-id: 1.1") {
                        "1.1"
                    } else {
                        "0.0"
                    },
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        at
    }

    fn answer(media: &str, body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\ncontent-type: {media}\r\nconnection: close\r\n\r\n{body}")
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn each_fault_is_an_error_of_its_own_with_a_sentence() {
        let (world, _) = guide();
        let served = Served::start(&world);
        let wrong = Client::new(&served.at, "stm_wrong_token").unwrap();
        assert_eq!(code(wrong.tokens().me().await), ProblemCode::Token);
        let never = |at: &str| {
            let client = Client::new(at, "stm_x").unwrap();
            client.patience(Duration::ZERO)
        };
        let nobody = never("http://127.0.0.1:1").tokens().me().await.unwrap_err();
        assert!(matches!(nobody, Error::Unreachable { .. }), "{nobody}");
        assert!(nobody.to_string().contains("start `steersman serve`"));
        assert!(matches!(Client::new("desk", "x"), Err(Error::Address(_))));
        let page = other(vec![answer("text/html", "<html>Welcome</html>")]).await;
        let page = never(&page).tokens().me().await.unwrap_err();
        assert!(
            matches!(page, Error::InvalidAnswer { status: 200, .. }),
            "{page}"
        );
        let gone = other(vec![String::new()]).await;
        let gone = never(&gone).tokens().me().await.unwrap_err();
        assert!(matches!(gone, Error::ConnectionLost { .. }), "{gone}");
        let hello = "event: hello\ndata: {\"cursor\":\"LAST\"}\n\n";
        let heard = "event: heard\nid: 1.1\ndata: {\"cursor\":\"1.1\",\"line\":1}\n\n";
        let piece =
            "event: piece\ndata: {\"cursor\":\"1.1\",\"effect\":\"1.1\",\"text\":\"Hel\"}\n\n";
        let cut = "event: said\nid: 1.2\ndata: {";
        let streams = vec![
            answer("text/event-stream", &format!("{hello}{heard}{piece}{cut}")),
            answer("text/event-stream", &format!("{hello}{piece}")),
        ];
        let client = Client::new(&other(streams).await, "stm_x").unwrap();
        let client = client.patience(Duration::from_millis(500));
        let mut events = client.session("s").follow(Follow::default());
        let (mut pieces, mut shown) = (Pieces::default(), Vec::new());
        let ended = loop {
            match events.next().await.unwrap() {
                Ok(event) => pieces.take(&event),
                Err(error) => break error,
            }
            shown.push(pieces.text());
        };
        // The piece before the break is void, and the incomplete frame was none.
        assert_eq!(shown, ["", "", "Hel", "", "Hel"]);
        assert!(
            matches!(&ended, Error::StreamEnded { cursor, .. } if cursor == "1.1"),
            "{ended}"
        );
        assert!(ended.to_string().contains("follow from this position"));
    }

    #[expect(clippy::print_stdout, reason = "the guide prints")]
    async fn quick_start(at: &str, place: &Path) -> Result<(), Box<dyn std::error::Error>> {
        let token = std::fs::read_to_string(place)?;
        let client = Client::new(at, &token)?;
        let session = client.start("desk", "Send 150 to Anna.").await?;
        let mut events = session.follow(Follow::until_settled());
        while let Some(event) = events.next().await {
            println!("{}", event?.kind);
        }
        let supervisor = session.acting_as("supervisor");
        for question in session.questions().await? {
            supervisor.approve(&question.id).await?;
        }
        println!("{}", session.settled().await?.answer.unwrap_or_default());
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_program_of_the_guide_runs() {
        let (world, programs) = guide();
        is_in(&programs["rust"], "crates/steersman-client/README.md");
        let program = programs["rust"].replace("\".steersman/server.token\"", "place");
        let program = program.replace("\"http://127.0.0.1:7410\"", "at");
        let (_, body) = program.split_once("\n\n").unwrap();
        let own = include_str!("clients.rs");
        for line in body.lines() {
            assert!(own.contains(line.trim()), "{line}");
        }
        let served = Served::start(&world);
        let token = world.folder.join(".steersman/server.token");
        quick_start(&served.at, &token).await.unwrap();
        let listed = world.run(&["sessions", "--json"]);
        assert!(listed.out.contains("\"answered\""), "{}", listed.out);
    }
}

mod python_client {
    use super::{Desk, guide, is_in, succeeds};
    use crate::served::Served;
    use crate::world;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    fn python() -> PathBuf {
        let place = std::env::var("STEERSMAN_PYTHON_CLIENT").expect("the folder of its library");
        Path::new(&place).join("bin/python")
    }

    fn folder() -> PathBuf {
        world::root().join("clients/python")
    }

    #[test]
    #[ignore = "needs its library: STEERSMAN_PYTHON_CLIENT=$(scripts/python-client.sh)"]
    fn it_follows_and_acts_over_kills_and_tells_errors() {
        let mut desk = Desk::new();
        let mut command = Command::new(python());
        command
            // no files of Python in the repository
            .arg("-B")
            .arg(folder().join("tests/restart.py"))
            .env("PYTHONPATH", folder().join("src"));
        assert_eq!(desk.runs(&mut command), ["followed", "asyncio", "errors"]);
        assert_eq!(desk.sent(), "anna\n");
    }

    #[test]
    #[ignore = "needs its library: STEERSMAN_PYTHON_CLIENT=$(scripts/python-client.sh)"]
    fn its_types_are_sound() {
        let mut command = Command::new(python());
        let told = succeeds(
            command
                .args(["-m", "mypy", "--no-incremental", "--cache-dir", "/dev/null"])
                .args(["src", "tests/restart.py"])
                .env("MYPYPATH", "src")
                .current_dir(folder()),
        );
        assert!(told.starts_with("Success"), "{told}");
    }

    #[test]
    #[ignore = "needs its library: STEERSMAN_PYTHON_CLIENT=$(scripts/python-client.sh)"]
    fn the_program_of_the_guide_runs() {
        let (world, programs) = guide();
        is_in(&programs["python"], "clients/python/README.md");
        let served = Served::start(&world);
        let program = programs["python"].replace("http://127.0.0.1:7410", &served.at);
        let told = succeeds(
            Command::new(python())
                .args(["-B", "-c", &program])
                .current_dir(&world.folder)
                .env("PYTHONPATH", folder().join("src")),
        );
        assert!(told.ends_with("\nI sent 150.00 to Anna.\n"), "{told}");
    }
}

mod typescript_client {
    use super::{Desk, guide, is_in, succeeds};
    use crate::served::Served;
    use crate::world::{self, World};
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// Compiles the client and its test, and returns the folder of the programs.
    fn compiled(world: &World) -> PathBuf {
        let place = std::env::var("STEERSMAN_TYPESCRIPT").expect("the folder of its compiler");
        let modules = Path::new(&place).join("node_modules");
        let out = world.folder.join("compiled");
        succeeds(
            Command::new("node")
                .arg(modules.join("typescript/bin/tsc"))
                .arg("-p")
                .arg(world::root().join("clients/typescript/tests"))
                .arg("--typeRoots")
                .arg(modules.join("@types"))
                .arg("--outDir")
                .arg(&out),
        );
        std::fs::write(out.join("package.json"), r#"{ "type": "module" }"#).unwrap();
        out
    }

    #[test]
    #[ignore = "needs its compiler: STEERSMAN_TYPESCRIPT=$(scripts/typescript.sh)"]
    fn it_follows_and_acts_over_kills_and_tells_errors() {
        let mut desk = Desk::new();
        let out = compiled(&desk.world);
        let mut command = Command::new("node");
        command.arg(out.join("tests/restart.js"));
        assert_eq!(desk.runs(&mut command), ["followed", "asked", "errors"]);
        assert_eq!(desk.sent(), "anna\n");
    }

    #[test]
    #[ignore = "needs its compiler: STEERSMAN_TYPESCRIPT=$(scripts/typescript.sh)"]
    fn the_program_of_the_guide_runs() {
        let (world, programs) = guide();
        is_in(&programs["ts"], "clients/typescript/README.md");
        let out = compiled(&world);
        let served = Served::start(&world);
        let program = programs["ts"].replace("http://127.0.0.1:7410", &served.at);
        let program = program.replace("@steersman/client", "./src/index.js");
        std::fs::write(out.join("guide.mjs"), program).unwrap();
        let told = succeeds(
            Command::new("node")
                .arg(out.join("guide.mjs"))
                .current_dir(&world.folder),
        );
        assert!(told.ends_with("\nI sent 150.00 to Anna.\n"), "{told}");
    }
}
