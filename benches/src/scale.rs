//! Large stores: many parked sessions, and one session of many lines. A store grows from one size to the next, so that the costs of
//! opening, listing, showing, continuing and forking can be compared over sizes.

use crate::meter::{self, Meter, Reading, short};
use crate::ours::{Stub, USUAL, is_answered, network};
use crate::texts::{answer, user};
use serde_json::{Value as Json, json};
use std::error::Error;
use std::path::Path;
use steersman::machine::stored::commit::Usage;
use steersman::machine::stored::ids::{Line, Name};
use steersman::machine::stored::outcome::{Answer, Ask, Failure};
use steersman::runtime::Boxed;
use steersman::runtime::model::{Model, ModelCall, Sink};
use steersman::{By, Fork, Network, SessionQuery, StartOptions, Steersman, Turn, tool};
use tokio_util::sync::CancellationToken;

type Done<T> = Result<T, Box<dyn Error>>;

/// Repetitions of which the median counts.
const REPEAT: usize = 9;
/// Sessions that are started at once while a store is filled.
const AT_ONCE: usize = 256;
/// Model turns after which a session that is made longer answers.
const TURNS: usize = 500;
/// Sessions on a page of a list, and lines on a page of a session.
const PAGE: usize = 50;

const PARKED: &str = "
steersman: 1
name: parked
tools:
  pay: { native: 1, description: Pays., parameters: { cents: integer }, effect: unsafe, approve: true }
agents:
  main: { system: You pay., tools: [pay] }
";

/// Fills the store in a folder up to `count` parked sessions or lines, and measures it.
pub(crate) async fn run(what: &str, count: usize, folder: &Path) -> Done<Json> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(format!("{what}.db"));
    match what {
        "parked" => parked(count, &path).await,
        "lines" => lines(count as u64, &path).await,
        other => Err(format!("`{other}` has no scale").into()),
    }
}

/// The median cost of a deed, as milliseconds of time and of CPU.
fn median(mut all: Vec<Reading>) -> Json {
    let mut middle = |of: fn(&Reading) -> f64| {
        all.sort_by(|a, b| of(a).total_cmp(&of(b)));
        short(of(&all[all.len() / 2]) * 1e3)
    };
    json!({ "wall_ms": middle(|read| read.wall), "cpu_ms": middle(|read| read.cpu) })
}

/// Opens the store several times. Returns it open, with the cost.
async fn opened(path: &Path, model: impl Model + Clone) -> Done<(Steersman, Json)> {
    let mut all = Vec::new();
    loop {
        let meter = Meter::start();
        let setup = Steersman::options().model("default", model.clone());
        let steersman = setup.open(path).await?;
        all.push(meter.read());
        if all.len() == REPEAT {
            return Ok((steersman, median(all)));
        }
        steersman.stop().await;
    }
}

/// The cost of the first page of the list of sessions.
async fn listing(steersman: &Steersman) -> Done<Json> {
    let mut all = Vec::new();
    for _ in 0..REPEAT {
        let meter = Meter::start();
        let query = SessionQuery {
            limit: Some(PAGE),
            ..SessionQuery::default()
        };
        std::hint::black_box(steersman.sessions(&query).await?);
        all.push(meter.read());
    }
    Ok(median(all))
}

/// The cost of the last page of a session: where it stands, and its last lines.
async fn showing(steersman: &Steersman, id: &str) -> Done<Reading> {
    let meter = Meter::start();
    let seen = steersman.inspect(id).await?;
    let store = steersman.engine().store();
    let head = store.head(id).await?;
    let from = Line(head.0.saturating_sub(PAGE as u64).max(1));
    let rows = store.rows(id, from, Line::MAX, 1 << 20).await?;
    std::hint::black_box((seen, rows));
    Ok(meter.read())
}

async fn parked(count: usize, path: &Path) -> Done<Json> {
    let network = paying()?;
    let setup = Steersman::options().model("default", Payer);
    let steersman = setup.open(path).await?;
    let had = steersman.sessions(&SessionQuery::default()).await?.len();
    if count < had + REPEAT {
        return Err(format!("the store has {had} sessions already").into());
    }
    let meter = Meter::start();
    for first in (had..count).step_by(AT_ONCE) {
        let ids = first..count.min(first + AT_ONCE);
        let running = ids.map(|i| tokio::spawn(park(steersman.clone(), network.clone(), i)));
        for one in running.collect::<Vec<_>>() {
            one.await?
                .map_err(|e| format!("a session does not park: {e}"))?;
        }
    }
    let filled = meter.read();
    steersman.stop().await;
    drop(steersman);
    let before = meter::resident_mib();
    let (steersman, opening) = opened(path, Payer).await?;
    steersman.register(&network);
    let list = listing(&steersman).await?;
    let (mut show, mut resume, mut fork) = (Vec::new(), Vec::new(), Vec::new());
    for k in 0..REPEAT {
        // Spread over the sessions that are new at this size, so that all of them still wait.
        let id = format!("s{}", had + (count - had) * (2 * k + 1) / (2 * REPEAT));
        show.push(showing(&steersman, &id).await?);
        let meter = Meter::start();
        let session = steersman.session(&id).await?;
        let Turn::Asks(questions) = session.settled().await? else {
            return Err(format!("{id} asks nothing").into());
        };
        session.approve(&questions[0], By::user()).await?;
        is_answered(&session.settled().await?)?;
        resume.push(meter.read());
        let meter = Meter::start();
        session.fork(Fork::default()).await?;
        fork.push(meter.read());
        session.stop().await;
    }
    let resident = meter::resident_mib() - before;
    steersman.stop().await;
    Ok(json!({
        "w": "parked", "n": count, "open": opening, "list": list, "show": median(show), "fork": median(fork),
        "resume": median(resume), "fill_s": short(filled.wall), "filled": count - had,
        "resident_mib": short(resident), "disk_bytes": std::fs::metadata(path)?.len(),
    }))
}

/// Starts session `i` and drives it until it waits for its approval.
async fn park(steersman: Steersman, network: Network, i: usize) -> Result<(), String> {
    let options = StartOptions {
        id: Some(format!("s{i}").into()),
        say: Some("Please pay.".to_owned()),
        ..StartOptions::default()
    };
    let session = steersman.start_with(&network, options).await;
    let session = session.map_err(|e| e.to_string())?;
    let turn = session.settled().await.map_err(|e| e.to_string())?;
    let asks = matches!(turn, Turn::Asks(_));
    session.stop().await;
    asks.then_some(()).ok_or_else(|| turn.to_json().to_string())
}

async fn lines(count: u64, path: &Path) -> Done<Json> {
    let model = Stub {
        turns: TURNS,
        fan: 0,
    };
    let network = network("", TURNS, 0, USUAL)?;
    let setup = Steersman::options().model("default", model.clone());
    let steersman = setup.open(path).await?;
    steersman.register(&network);
    let options = StartOptions {
        id: Some("s0".into()),
        ..StartOptions::default()
    };
    let session = match steersman.session("s0").await {
        Ok(session) => session,
        Err(_) => steersman.start_with(&network, options).await?,
    };
    let meter = Meter::start();
    let head = loop {
        let head = steersman.engine().store().head("s0").await?.0;
        if head >= count {
            break head;
        }
        is_answered(&session.ask(&user(0)).await?)?;
    };
    let filled = meter.read();
    session.stop().await;
    steersman.stop().await;
    drop(steersman);
    let short_stub = Stub { turns: 1, fan: 0 };
    let (mut resume, mut fork, mut show) = (Vec::new(), Vec::new(), Vec::new());
    let (steersman, opening) = opened(path, short_stub).await?;
    steersman.register(&network);
    let list = listing(&steersman).await?;
    for k in 0..REPEAT as u64 {
        show.push(showing(&steersman, "s0").await?);
        let meter = Meter::start();
        let session = steersman.session("s0").await?;
        is_answered(&session.ask(&user(1)).await?)?;
        resume.push(meter.read());
        let middle = Fork {
            at: Some(Line(head / 2 + k)),
            ..Fork::default()
        };
        let meter = Meter::start();
        session.fork(middle).await?;
        fork.push(meter.read());
        session.stop().await;
    }
    steersman.stop().await;
    Ok(json!({
        "w": "lines", "n": count, "open": opening, "list": list, "show": median(show), "fork": median(fork),
        "resume": median(resume), "fill_s": short(filled.wall), "disk_bytes": std::fs::metadata(path)?.len(),
    }))
}

/// A model that asks for a payment, and then answers.
#[derive(Clone)]
struct Payer;

impl Model for Payer {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        _sink: &'a dyn Sink,
        _cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        let mut answered = Answer {
            usage: Usage {
                input: 100,
                output: 20,
                ..Usage::default()
            },
            ..Answer::default()
        };
        if call.position == 0 {
            answered.asks.push(Ask {
                name: "pay".to_owned(),
                label: Some("call_1".to_owned()),
                args: json!({ "cents": 4_711 }).to_string(),
                misfit: None,
            });
        } else {
            answered.text = Some(answer(0));
        }
        Box::pin(std::future::ready(Ok(answered)))
    }

    fn label(&self) -> Name {
        "payer".into()
    }
}

fn paying() -> Done<Network> {
    let pay = tool("pay", 1, |_: Json| async { Ok::<_, String>("paid") });
    let network = Network::from_yaml(PARKED).tool(pay).build();
    network.map_err(|e| e.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_store_grows_from_one_size_to_the_next() -> Done<()> {
        let folder = std::env::temp_dir().join(format!("steersman-scale-{}", std::process::id()));
        for (what, count) in [
            ("parked", 10),
            ("parked", 20),
            ("lines", 10),
            ("lines", 1_200),
        ] {
            let figures = run(what, count, &folder).await?;
            assert!(figures["open"]["wall_ms"].as_f64() > Some(0.0), "{figures}");
        }
        std::fs::remove_dir_all(&folder)?;
        Ok(())
    }
}
