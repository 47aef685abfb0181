//! The times for which a person waits: `check` and the language server on a large definition, `show` on a long session, `top` over many
//! sessions. It runs the program that `cargo build --release` makes.

use crate::many::{Caller, Gaps, LIVE};
use crate::measure::{Goal, Size, Table, median, short, timed};
use crate::program::program;
use crate::store::file;
use crate::world::runtime;
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use steersman::{Network, Session, Steersman, Turn, tool};

/// Lines of one agent with its tool in the large definition.
const LINES: u64 = 20;

/// A definition of about so many lines.
fn definition(lines: u64) -> String {
    let agents = (lines / LINES).max(2);
    let mut tools = "steersman: 1\nname: large\ntools:\n".to_owned();
    let mut text = "agents:\n".to_owned();
    for n in 0..agents {
        let next = match n + 1 {
            last if last == agents => String::new(),
            next => format!("\n      - clerk{next}"),
        };
        let _ = write!(
            tools,
            "  look{n}:
    description: Looks into shelf {n}.
    parameters:
      what: {{ type: string, description: The thing that is looked for. }}
      most: {{ type: integer, default: 10 }}
    effect: read
    command: [grep, -m, \"{{{{ args.most }}}}\", \"{{{{ args.what }}}}\", shelf{n}.txt]
    timeout: 10s
"
        );
        let _ = write!(
            text,
            "  clerk{n}:
    description: Knows shelf {n}.
    system: |
      You keep shelf {n}. {{{{ state.note }}}}
      Look before you answer.
      {{% if state.count > {n} %}}
      You were asked often.
      {{% endif %}}
    tools:
      - look{n}{next}
    limits: {{ model_calls: 20 }}
    output: {{ fields: {{ found: boolean, where: optional string }} }}
"
        );
    }
    format!(
        "{tools}state:\n  note: {{ type: string, default: \"\" }}\n  count: {{ type: integer, default: 0 }}\nentry: clerk0\n{text}"
    )
}

/// Runs the program, which must succeed; the milliseconds that it took.
fn run(program: &Path, args: &[&str]) -> f64 {
    let mut command = Command::new(program);
    let (ran, took) = timed(|| command.args(args).output());
    let ran = ran.expect("the program starts");
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{args:?}: {told}");
    took.clock * 1e3
}

/// The section of the screens.
pub(crate) fn report(table: &Table, size: Size) {
    let Some(program) = program() else {
        table.note("the program is not there: `cargo build --release` first");
        return;
    };
    let start = median((0..size.of(21, 1)).map(|_| run(&program, &["--version"])));
    let text = definition(size.of(5_000, 100));
    let large = file("large.yaml");
    std::fs::write(&large, &text).expect("it is written");
    let path = large.to_str().expect("a path of letters");
    let check = median((0..size.of(21, 1)).map(|_| run(&program, &["check", path])));
    let lines = text.lines().count();
    let beside = format!("{} ms for `--version`", short(start));
    let figure = format!("`check` of {lines} lines");
    table.row(&figure, check, " ms", Goal::AtMost(200.0), &beside);
    typing(table, size, &program, &large, &text);
    long(table, size, &program, start);
    fleet(table, size, &program);
}

/// A language server, as a process.
struct Editor {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Editor {
    fn start(program: &Path) -> Self {
        let mut command = Command::new(program);
        let command = command.arg("lsp").stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let to = child.stdin.take().expect("it is piped");
        let from = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, to, from }
    }

    fn send(&mut self, message: &Json) {
        let text = message.to_string();
        let framed = format!("Content-Length: {}\r\n\r\n{text}", text.len());
        self.to.write_all(framed.as_bytes()).expect("it reads");
        self.to.flush().expect("it reads");
    }

    fn tell(&mut self, method: &str, params: Json) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// The next message of the server.
    fn next(&mut self) -> Json {
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.from.read_line(&mut line).expect("it writes");
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some(number) = line.strip_prefix("Content-Length: ") {
                length = number.parse().expect("a number");
            }
        }
        let mut bytes = vec![0; length];
        self.from.read_exact(&mut bytes).expect("it writes");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    fn ask(&mut self, id: u64, method: &str, params: Json) -> Json {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.next();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    /// Waits until the diagnostics of a version are there.
    fn checked(&mut self, version: u64) {
        loop {
            let message = self.next();
            let is_told = message["method"] == "textDocument/publishDiagnostics";
            if is_told && message["params"]["version"].as_u64() >= Some(version) {
                return;
            }
        }
    }
}

/// Types into the middle of the definition, and asks after each key.
fn typing(table: &Table, size: Size, program: &Path, large: &Path, text: &str) {
    let uri = format!("file://{}", large.display());
    let mut editor = Editor::start(program);
    editor.ask(
        1,
        "initialize",
        json!({ "processId": null, "rootUri": null, "capabilities": {} }),
    );
    editor.tell("initialized", json!({}));
    let document = json!({ "uri": uri, "languageId": "yaml", "version": 0, "text": text });
    let ((), opened) = timed(|| {
        editor.tell("textDocument/didOpen", json!({ "textDocument": document }));
        editor.checked(0);
    });
    let half = text.lines().count() / 2;
    let is_tool = |(_, line): &(usize, &str)| line.starts_with("      - clerk");
    let found = text.lines().enumerate().skip(half).find(is_tool);
    let (line, before) = found.expect("the definition has such lines");
    let mut column = before.len();
    let named = json!({ "uri": uri });
    let (mut completion, mut hover) = (Vec::new(), Vec::new());
    for key in 1..=size.of(200, 5) {
        let place = json!({ "line": line, "character": column });
        let change = json!({ "range": { "start": place, "end": place }, "text": "x" });
        let versioned = json!({ "uri": uri, "version": key });
        column += 1;
        let place = json!({ "line": line, "character": column });
        let asked = json!({ "textDocument": named, "position": place });
        let (_, took) = timed(|| {
            let params = json!({ "textDocument": versioned, "contentChanges": [change] });
            editor.tell("textDocument/didChange", params);
            editor.ask(key * 2, "textDocument/completion", asked)
        });
        completion.push(took.clock * 1e3);
        let place = json!({ "line": line - 2, "character": 5 });
        let asked = json!({ "textDocument": named, "position": place });
        let (_, took) = timed(|| editor.ask(key * 2 + 1, "textDocument/hover", asked));
        hover.push(took.clock * 1e3);
    }
    let ((), last) = timed(|| editor.checked(size.of(200, 5)));
    let _ = editor.child.kill();
    let _ = editor.child.wait();
    completion.sort_by(f64::total_cmp);
    let most = completion[completion.len() * 99 / 100];
    let beside = format!(
        "half within {} ms; a hover within {} ms; diagnostics {} ms after it is opened, and {} ms after the last of {} keys",
        short(median(completion.iter().copied())),
        short(median(hover)),
        short(opened.clock * 1e3),
        short(last.clock * 1e3),
        completion.len(),
    );
    table.row(
        "`lsp`, the same definition: 99 % of completions after a key within",
        most,
        " ms",
        Goal::AtMost(50.0),
        &beside,
    );
}

/// A definition whose tool answers immediately, with its tool.
fn looking() -> Network {
    Network::from_yaml(LIVE)
        .tool(tool("look", 1, |_: Json| async {
            Ok::<_, String>("The lamp in the hall is green.")
        }))
        .build()
        .expect("the definition of the benchmark is right")
}

async fn opened(path: &Path, turns: u32) -> Steersman {
    let model = Caller {
        tool: "look",
        turns,
        gaps: Arc::<Gaps>::default(),
    };
    let setup = Steersman::options().model("default", model);
    setup.open(path).await.expect("it opens")
}

async fn answered(session: &Session) {
    let turn = session.settled().await.expect("it is driven");
    assert!(matches!(turn, Turn::Answer(_)), "{turn:?}");
}

/// Makes a session of so many lines, and shows it.
fn long(table: &Table, size: Size, program: &Path, start: f64) {
    let path = file("long.db");
    let most = size.of(100_000, 500);
    let (id, lines) = runtime().block_on(async {
        let steersman = opened(&path, 400).await;
        let session = steersman.start(&looking()).await.expect("it starts");
        let lines = loop {
            session.say("Please look.").await.expect("it hears");
            answered(&session).await;
            let head = steersman.engine().store().head(session.id()).await;
            let head = head.expect("it is there").0;
            if head >= most {
                break head;
            }
        };
        let id = session.id().to_string();
        steersman.stop().await;
        (id, lines)
    });
    let store = path.to_str().expect("a path of letters");
    let shown = |command: &[&str]| {
        let args = [command, &[&*id, "--store", store]].concat();
        median((0..size.of(11, 1)).map(|_| run(program, &args)))
    };
    let log = shown(&["log"]);
    let show = shown(&["show"]);
    let args = ["show", &*id, "--store", store];
    let first = median((0..size.of(11, 1)).map(|_| first_screen(program, &args)));
    let beside = format!(
        "the whole page {} ms, `log` {} ms, `--version` {} ms",
        short(show),
        short(log),
        short(start)
    );
    let figure = format!("`show` of {lines} lines: the first {SCREEN} rows");
    table.row(&figure, first, " ms", Goal::AtMost(300.0), &beside);
}

/// Rows of a small screen.
const SCREEN: usize = 20;

/// Runs the program, which must succeed; the milliseconds until it has printed a screen.
fn first_screen(program: &Path, args: &[&str]) -> f64 {
    let begun = Instant::now();
    let mut command = Command::new(program);
    let command = command.args(args).stdout(Stdio::piped());
    let mut ran = command.stderr(Stdio::null()).spawn().expect("it starts");
    let mut rows = BufReader::new(ran.stdout.take().expect("it is piped")).lines();
    for _ in 0..SCREEN {
        let row = rows.next().expect("there is a row");
        row.expect("it writes");
    }
    let took = begun.elapsed().as_secs_f64() * 1e3;
    rows.for_each(drop);
    assert!(ran.wait().expect("it ends").success(), "{args:?}");
    took
}

/// CPU time of a process, in seconds: its user and its system time.
fn cpu_of(id: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let after = stat.rsplit_once(')')?.1;
    let fields: Vec<&str> = after.split_whitespace().collect();
    let ticks: f64 = [11, 12]
        .iter()
        .filter_map(|at| fields.get(*at)?.parse::<f64>().ok())
        .sum();
    Some(ticks / 100.0)
}

/// The process that a process started.
fn child_of(id: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

/// Watches many sessions, of which some change, on a terminal.
fn fleet(table: &Table, size: Size, program: &Path) {
    let (count, a_second) = (size.of(10_000, 50), size.of(100, 10));
    let watched = Duration::from_secs(size.of(30, 1));
    let path = file("fleet.db");
    let used = runtime().block_on(async {
        let steersman = opened(&path, 1).await;
        let network = looking();
        let mut sessions = Vec::new();
        for _ in 0..count {
            let session = steersman.start(&network).await.expect("it starts");
            session.say("Please look.").await.expect("it hears");
            answered(&session).await;
            sessions.push(session);
        }
        let ends = Arc::new(AtomicBool::new(false));
        let changing = tokio::spawn(change(sessions, a_second, ends.clone()));
        let program = program.to_owned();
        let used = tokio::task::spawn_blocking(move || top(&program, &path, watched)).await;
        ends.store(true, Ordering::Relaxed);
        let changed = changing.await.expect("it runs");
        steersman.stop().await;
        (used.expect("it runs"), changed)
    });
    let ((used, begin), changed) = used;
    let beside = format!(
        "{changed} changed in {} s; one table of it takes {} ms of CPU",
        watched.as_secs(),
        short(begin * 1e3),
    );
    let figure =
        format!("`top` at {count} sessions of which {a_second} change each second: CPU of a core");
    table.row(&figure, used * 100.0, " %", Goal::AtMost(5.0), &beside);
}

/// Says something to so many sessions each second, in turn, until it is told to end. Returns the number of changes.
async fn change(sessions: Vec<Session>, a_second: u64, ends: Arc<AtomicBool>) -> usize {
    let mut clock = tokio::time::interval(Duration::from_secs(1) / a_second as u32);
    let mut all = 0;
    for session in sessions.iter().cycle() {
        clock.tick().await;
        if ends.load(Ordering::Relaxed) {
            break;
        }
        session.say("Please look again.").await.expect("it hears");
        all += 1;
    }
    all
}

/// Runs `top` on a terminal. Returns the share of a core that it uses after its first table, and the CPU seconds of one table.
fn top(program: &Path, store: &Path, watched: Duration) -> (f64, f64) {
    let table = |args: &str| {
        let mut command = Command::new("script");
        let typed = format!(
            "stty cols 120 rows 50; exec {} top --store {} {args}",
            program.display(),
            store.display()
        );
        let command = command.args(["-qefc", &typed, "/dev/null"]);
        let command = command.env("TERM", "xterm").stdin(Stdio::null());
        command
            .stdout(Stdio::null())
            .spawn()
            .expect("`script` is there")
    };
    let mut terminal = table("--every 1s");
    let begun = Instant::now();
    let id = loop {
        // `script` starts a shell, which becomes the program.
        let id = child_of(terminal.id()).filter(|id| cpu_of(*id).is_some_and(|cpu| cpu > 0.0));
        if let Some(id) = id {
            break id;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "it starts");
        std::thread::sleep(Duration::from_millis(10));
    };
    std::thread::sleep(Duration::from_secs(3));
    let first = cpu_of(id).expect("it runs");
    let begun = Instant::now();
    std::thread::sleep(watched);
    let used = cpu_of(id).expect("it runs") - first;
    let took = begun.elapsed().as_secs_f64();
    let _ = terminal.kill();
    let _ = terminal.wait();
    (used / took, first)
}
