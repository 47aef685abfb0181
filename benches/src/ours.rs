//! The workloads W1 to W7 on the public library, and W7 on the bare loop. `benches/README.md` defines them.

use crate::bare::Bare;
use crate::meter::{self, Meter, Reading, short, since_spawn_ms};
use crate::texts::{Reply, answer, arguments, decide, label, result, system, user, user_of};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;
use steersman::machine::context::Content;
use steersman::machine::stored::commit::Usage;
use steersman::machine::stored::ids::{Line, Name};
use steersman::machine::stored::outcome::{Answer, Ask, Failure};
use steersman::runtime::Boxed;
use steersman::runtime::feed::FeedItem;
use steersman::runtime::model::{Model, ModelCall, Sink};
use steersman::{Durability, Network, Session, StartOptions, Steersman, Turn, tool};
use tokio_util::sync::CancellationToken;

type Done<T> = Result<T, Box<dyn Error>>;

/// One workload, to be run once.
#[derive(Clone)]
pub(crate) struct Work {
    pub(crate) workload: String,
    /// Model turns, sessions, user turns or sub-agents, as the workload has it.
    pub(crate) n: usize,
    /// `none`, `sqlite` (each line is on disk before the next begins) or `sqlite-commit` (output-commit rule).
    pub(crate) store: String,
    pub(crate) folder: PathBuf,
    /// Address of the model server; empty means the stub in this process.
    pub(crate) url: String,
    /// Size of the first user message in W7 and W7s.
    pub(crate) bytes: usize,
    /// True if a task reads the pieces of the answers as they come.
    pub(crate) follows: bool,
}

/// A measured workload.
struct Measured {
    /// Model turns.
    turns: usize,
    /// Model turns and tool calls.
    steps: usize,
    reading: Reading,
    /// Figures that only this workload has.
    more: Map<String, Json>,
}

/// Turns of W3 around which the cost of a turn is measured.
const MARKS: [usize; 4] = [100, 500, 1_000, 2_000];
/// Turns over which it is averaged.
const AROUND: usize = 50;
/// Sessions of W7s.
const IN_TURN: usize = 10;

impl Work {
    pub(crate) fn new(workload: &str, n: usize) -> Self {
        Self {
            workload: workload.to_owned(),
            n,
            store: "none".to_owned(),
            folder: PathBuf::new(),
            url: String::new(),
            bytes: 200,
            follows: false,
        }
    }

    /// Runs the work, on the library or on the bare loop. Returns its figures.
    pub(crate) async fn run(&self, is_bare: bool) -> Done<Json> {
        let measured = if is_bare {
            self.bare().await?
        } else {
            self.ours().await?
        };
        let Measured {
            turns,
            steps,
            reading,
            more,
        } = measured;
        let per = |value: f64| short(value / steps as f64);
        let mut figures = json!({
            "w": self.workload, "store": self.store, "n": self.n, "turns": turns, "steps": steps,
            "wall_s": short(reading.wall), "cpu_s": short(reading.cpu),
            "turns_per_s": short(turns as f64 / reading.wall), "steps_per_s": short(steps as f64 / reading.wall),
            "cpu_s_per_1k_steps": per(reading.cpu * 1e3), "peak_rss_mib": short(meter::peak_mib()),
        });
        let is_whole = !matches!(self.workload.as_str(), "W5" | "W6");
        if self.store != "none" && is_whole {
            let disk = meter::size_of(&self.folder) as f64;
            figures["disk_bytes"] = disk.into();
            figures["disk_bytes_per_step"] = per(disk).into();
            figures["written_bytes_per_step"] = per(reading.written as f64).into();
        }
        for (key, value) in more {
            figures[key] = value;
        }
        Ok(figures)
    }

    async fn ours(&self) -> Done<Measured> {
        let n = self.n;
        match self.workload.as_str() {
            "W1" | "W1L" | "W7" => self.loops(1, n).await,
            "W2" => self.loops(n, 10).await,
            "W3" => self.grows().await,
            "W4" => self.fans().await,
            "W5" | "W6" => self.begins().await,
            "W7s" => self.loops(IN_TURN, n).await,
            "W7c" => self.loops(n, 20).await,
            other => Err(format!("`{other}` is not a workload").into()),
        }
    }

    async fn bare(&self) -> Done<Measured> {
        let (count, turns) = match self.workload.as_str() {
            "W7" => (1, self.n),
            "W7s" => (IN_TURN, self.n),
            "W7c" => (self.n, 20),
            other => return Err(format!("the bare loop has no `{other}`").into()),
        };
        let bare = Bare::new(&self.url, turns)?;
        let meter = Meter::start();
        let mut running = Vec::new();
        for i in 0..count {
            let (bare, message) = (bare.clone(), user_of(i, self.bytes));
            let one = tokio::spawn(async move { bare.run(&message).await });
            if self.is_in_turn() {
                is_final(&one.await??)?;
            } else {
                running.push(one);
            }
        }
        for one in running {
            is_final(&one.await??)?;
        }
        Ok(Measured::of_loops(count, turns, meter.read()))
    }

    /// Opens the store; agents answer after so many model turns, and a parent has `fan` sub-agents.
    async fn open(&self, turns: usize, fan: usize) -> Done<(Steersman, Network)> {
        let network = network(&self.url, turns, fan, WHOLE)?;
        let mut setup = Steersman::options();
        if self.url.is_empty() {
            setup = setup.model("default", Stub { turns, fan });
        }
        let durability = match self.store.as_str() {
            "none" => None,
            "sqlite" => Some(Durability::Step),
            "sqlite-commit" => Some(Durability::Commit),
            other => return Err(format!("`{other}` is not a store").into()),
        };
        let steersman = match durability {
            None => setup.in_memory(),
            Some(durability) => {
                let setup = setup.durability(durability);
                setup.open(self.folder.join("store.db")).await?
            }
        };
        steersman.register(&network);
        Ok((steersman, network))
    }

    /// True if sessions run one after the other: W7s measures requests of one size, so its sessions stay short.
    fn is_in_turn(&self) -> bool {
        self.workload == "W7s"
    }

    /// Runs so many sessions, at once or in turn, each one tool loop of so many model turns.
    async fn loops(&self, count: usize, turns: usize) -> Done<Measured> {
        let (steersman, network) = self.open(turns, 0).await?;
        let meter = Meter::start();
        let mut running = Vec::new();
        for i in 0..count {
            let (steersman, network) = (steersman.clone(), network.clone());
            let (message, follows) = (user_of(i, self.bytes), self.follows);
            let one = tokio::spawn(async move {
                let session = start(&steersman, &network, i, Some(message)).await?;
                if follows {
                    tokio::spawn(follow(session.clone()));
                }
                session.settled().await
            });
            if self.is_in_turn() {
                is_answered(&one.await??)?;
            } else {
                running.push(one);
            }
        }
        for one in running {
            is_answered(&one.await??)?;
        }
        let reading = read(meter, &steersman).await;
        Ok(Measured::of_loops(count, turns, reading))
    }

    /// W3: one session, `n` user turns of one model turn.
    async fn grows(&self) -> Done<Measured> {
        let (steersman, network) = self.open(1, 0).await?;
        let mut more = Map::new();
        let meter = Meter::start();
        let session = start(&steersman, &network, 0, None).await?;
        let mut first = (Instant::now(), 0.0);
        for i in 1..=self.n {
            let marks = MARKS.iter().filter(|mark| **mark <= self.n);
            // The last turn is the end of its window, the others are in the middle.
            let ends = marks.map(|mark| (*mark, (mark + AROUND / 2).min(self.n)));
            let ends: Vec<(usize, usize)> = ends.collect();
            if ends.iter().any(|(_, end)| i + AROUND == end + 1) {
                first = (Instant::now(), meter::cpu());
            }
            is_answered(&session.ask(&user(i)).await?)?;
            for (mark, _) in ends.iter().filter(|(_, end)| i == *end) {
                let each = |seconds: f64| json!(short(seconds / AROUND as f64 * 1e3));
                let wall = each(first.0.elapsed().as_secs_f64());
                more.insert(format!("turn{mark}_wall_ms"), wall);
                more.insert(format!("turn{mark}_cpu_ms"), each(meter::cpu() - first.1));
            }
        }
        let reading = read(meter, &steersman).await;
        Ok(Measured {
            turns: self.n,
            steps: self.n,
            reading,
            more,
        })
    }

    /// W4: a parent with `n` sub-agents of 3 model turns.
    async fn fans(&self) -> Done<Measured> {
        let (steersman, network) = self.open(3, self.n).await?;
        let meter = Meter::start();
        let session = start(&steersman, &network, 0, Some(user(0))).await?;
        is_answered(&session.settled().await?)?;
        let reading = read(meter, &steersman).await;
        let turns = 3 * self.n + 2;
        Ok(Measured {
            turns,
            steps: turns + 2 * self.n,
            reading,
            more: Map::new(),
        })
    }

    /// W5 and W6: one turn in a new process, in the session that W3 left or in a new one.
    async fn begins(&self) -> Done<Measured> {
        let started = since_spawn_ms();
        let meter = Meter::start();
        let (steersman, network) = self.open(1, 0).await?;
        let session = if self.workload == "W5" {
            steersman.session("s0").await?
        } else {
            start(&steersman, &network, 0, None).await?
        };
        is_answered(&session.ask(&user(self.n + 1)).await?)?;
        let reading = meter.read();
        let mut more = Map::new();
        more.insert("import_ms".to_owned(), json!(started.map(short)));
        more.insert("inproc_ms".to_owned(), json!(short(reading.wall * 1e3)));
        let whole = since_spawn_ms().map(short);
        more.insert("proc_ms".to_owned(), json!(whole));
        more.insert("total_cpu_s".to_owned(), json!(short(meter::cpu())));
        steersman.stop().await;
        Ok(Measured {
            turns: 1,
            steps: 1,
            reading,
            more,
        })
    }
}

impl Measured {
    fn of_loops(count: usize, turns: usize, reading: Reading) -> Self {
        Self {
            turns: count * turns,
            steps: count * (2 * turns - 1),
            reading,
            more: Map::new(),
        }
    }
}

/// Stops the meter when the last line is on disk; then stops the rest.
async fn read(meter: Meter, steersman: &Steersman) -> Reading {
    steersman.engine().stop().await;
    let reading = meter.read();
    steersman.stop().await;
    reading
}

async fn start(
    steersman: &Steersman,
    network: &Network,
    i: usize,
    say: Option<String>,
) -> Result<Session, steersman::Error> {
    let options = StartOptions {
        id: Some(format!("s{i}").into()),
        say,
        ..StartOptions::default()
    };
    steersman.start_with(network, options).await
}

/// Reads the pieces of all answers of a session, as a screen would.
async fn follow(session: Session) {
    let mut feed = session.feed(Line::NONE);
    let mut pieces = 0_usize;
    while let Ok(item) = feed.next().await {
        match item {
            FeedItem::Delta { .. } => pieces += 1,
            FeedItem::Closed => break,
            _ => {}
        }
    }
    std::hint::black_box(pieces);
}

/// Returns an error unless a session ended its turn with an answer of the stub.
pub(crate) fn is_answered(turn: &Turn) -> Done<()> {
    match turn {
        Turn::Answer(answer) => is_final(answer.text()),
        other => Err(other.to_json().to_string().into()),
    }
}

fn is_final(text: &str) -> Done<()> {
    if text.starts_with("Answer ") {
        Ok(())
    } else {
        Err(format!("a wrong answer: {text}").into())
    }
}

/// The stub model, which answers at once in this process.
#[derive(Clone)]
pub(crate) struct Stub {
    pub(crate) turns: usize,
    pub(crate) fan: usize,
}

impl Stub {
    fn answer(&self, call: &ModelCall) -> Answer {
        let mut answered = Answer {
            usage: Usage {
                input: 1_000,
                output: 20,
                ..Usage::default()
            },
            ..Answer::default()
        };
        let ask = |name: &str, k: usize, args: String| Ask {
            name: name.to_owned(),
            label: Some(label(k)),
            args,
            misfit: None,
        };
        if &*call.def == "parent" {
            if call.position == 0 {
                let message = |i| json!({ "message": user(i) }).to_string();
                let asks = (0..self.fan).map(|i| ask("sub", i, message(i)));
                answered.asks = asks.collect();
            } else {
                answered.text = Some(answer(0));
            }
            return answered;
        }
        let texts = call.request.segments.iter().rev();
        let last = texts.map(|segment| &segment.content).find_map(text_of);
        match decide(last.unwrap_or_default(), self.turns) {
            Reply::Call(k) => answered.asks.push(ask("lookup", k, arguments(k))),
            Reply::Final(i) => answered.text = Some(answer(i)),
        }
        answered
    }
}

/// The text of a message or a result. A result is shown as JSON.
fn text_of(content: &Content) -> Option<&str> {
    match content {
        Content::User(text) => Some(text),
        Content::Result { text, .. } => Some(text.trim_start_matches('"')),
        _ => None,
    }
}

impl Model for Stub {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        _sink: &'a dyn Sink,
        _cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        let answer = self.answer(call);
        Box::pin(std::future::ready(Ok(answer)))
    }

    fn label(&self) -> Name {
        "stub".into()
    }
}

#[derive(Deserialize, JsonSchema)]
struct Lookup {
    #[expect(dead_code, reason = "an argument that the tool does not need")]
    key: String,
    n: u64,
}

/// The whole history is in view.
const WHOLE: &str = "{ keep_exchanges: 1000000 }";
/// As much is in view as a definition has that does not say it.
pub(crate) const USUAL: &str = "{}";

/// One agent with the tool, or a parent with sub-agents.
pub(crate) fn network(url: &str, turns: usize, fan: usize, view: &str) -> Done<Network> {
    let system = system();
    let high = "{ model_calls: 100000000, agent_calls: 100000000, parallel: 100000, ticks: 100000000, same_call: 100000000 }";
    let models = if url.is_empty() {
        String::new()
    } else {
        let model = format!(
            "{{ provider: compatible, url: \"{url}\", model: stub-{turns}, calls: native }}"
        );
        format!("models: {{ default: {model} }}\n")
    };
    let agents = if fan > 0 {
        format!(
            "  parent: {{ system: \"{system}\", tools: [{{ agent: sub, parallel: 1000 }}], limits: {high}, context: {view} }}
  sub: {{ description: Works., system: \"{system}\", tools: [lookup], limits: {high}, turns: task }}
entry: parent
"
        )
    } else {
        format!(
            "  researcher: {{ system: \"{system}\", tools: [lookup], limits: {high}, context: {view} }}
entry: researcher
"
        )
    };
    let definition = format!(
        "steersman: 1
name: bench
{models}tools:
  lookup: {{ native: 1, description: Look a key up., parameters: {{ key: string, n: integer }}, effect: read, parallel: 1000 }}
limits: {{ tokens: 1000000000000 }}
agents:
{agents}"
    );
    let lookup = tool("lookup", 1, |of: Lookup| async move {
        Ok::<_, String>(result(of.n as usize))
    });
    let network = Network::from_yaml(definition).tool(lookup.read()).build();
    network.map_err(|e| e.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stubd;

    /// Runs a workload in a folder of its own.
    async fn small(workload: &str, n: usize, store: &str, url: &str) -> Done<Json> {
        let name = format!("steersman-bench-{}-{workload}-{store}", std::process::id());
        let mut work = Work::new(workload, n);
        work.folder = std::env::temp_dir().join(name);
        (work.store, work.url) = (store.to_owned(), url.to_owned());
        work.follows = workload == "W7s";
        std::fs::create_dir_all(&work.folder)?;
        let done = work.run(false).await;
        std::fs::remove_dir_all(&work.folder)?;
        done
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn each_workload_runs_on_each_store() -> Done<()> {
        for store in ["none", "sqlite", "sqlite-commit"] {
            for (workload, n, steps) in [
                ("W1", 4, 7),
                ("W2", 3, 57),
                ("W3", 3, 3),
                ("W4", 2, 12),
                ("W6", 0, 1),
            ] {
                let figures = small(workload, n, store, "").await?;
                assert_eq!(figures["steps"], steps, "{workload} {store}");
            }
        }
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_new_process_goes_on_with_the_session_that_w3_left() -> Done<()> {
        let mut work = Work::new("W3", 2);
        "sqlite-commit".clone_into(&mut work.store);
        work.folder = std::env::temp_dir().join(format!("steersman-resume-{}", std::process::id()));
        std::fs::create_dir_all(&work.folder)?;
        work.run(false).await?;
        "W5".clone_into(&mut work.workload);
        let figures = work.run(false).await?;
        std::fs::remove_dir_all(&work.folder)?;
        assert!(figures["inproc_ms"].as_f64() > Some(0.0));
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn whole_and_streamed_answers_end_both_loops() -> Done<()> {
        let server = stubd::local()?;
        for (workload, path, bytes) in [
            ("W7", "v1", 200),
            ("W7s", "p1/v1", 200),
            ("W7s", "p20/v1", 40_000),
        ] {
            let url = format!("{server}/{path}");
            let figures = small(workload, 4, "none", &url).await?;
            let turns = if workload == "W7s" { 4 * IN_TURN } else { 4 };
            assert_eq!(figures["turns"], turns);
            let mut bare = Work::new(workload, 4);
            (bare.url, bare.bytes) = (url, bytes);
            assert_eq!(bare.run(true).await?["turns"], turns);
        }
        Ok(())
    }
}
