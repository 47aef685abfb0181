//! Search over branches: how often each method solves a game with the same number of model calls, and the cost of a
//! branch.

use crate::desk::network_of;
use crate::measure::{Goal, Size, Table, Watch, short};
use crate::world::{Only, runtime};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use steersman_machine::context::Content;
use steersman_machine::network::Network;
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::outcome::{Answer, Ask, Failure};
use steersman_machine::view::mapping::Raw;
use steersman_runtime::Boxed;
use steersman_runtime::clock::System;
use steersman_runtime::engine::{Engine, Options, Parts, StartOptions};
use steersman_runtime::model::{Model, ModelCall, Sink};
use steersman_runtime::seal::Sealer;
use steersman_runtime::session::Settled;
use steersman_runtime::store::memory::MemoryStore;
use steersman_runtime::toolset::{ToolRun, Toolset};
use tokio_util::sync::CancellationToken;

/// The Game of 24: two numbers are combined at a time until one is left.
const DEFINITION: &str = r"
steersman: 1
name: game
models: { default: scripted }
state: { numbers: { type: [number], default: NUMBERS } }
tools:
  combine:
    description: Says which numbers are left when two of them are combined.
    parameters: { left: [number] }
    effect: pure
    set: { numbers: '{{ args.left }}' }
  hope:
    description: Says whether 24 can still be made.
    parameters: { numbers: [number] }
    effect: pure
    native: 1
agents:
  solver: { system: '{{ state.numbers | tojson }}', tools: [combine], SEARCH }
entry: solver
";

/// Model calls of a search. A branch takes three to its end.
const BUDGET: u64 = 60;

/// A score that is exact at the end of a branch, and 0 before.
const EXACT: &str =
    "score: '1 if state.numbers | length == 1 and state.numbers[0] | close(24, 0.000001) else 0'";
/// A judge that is exact at the end of a branch, and before it gives a half if 24 can still be made.
const HOPE: &str = "by: hope";

/// A small generator of random numbers with a seed.
struct Draw(u64);

impl Draw {
    fn of(seed: u64) -> Self {
        let mut draw = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        draw.below(2);
        draw
    }

    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// All lists of numbers that can be left when two of these are combined. The result of the two is last.
fn moves(numbers: &[f64]) -> Vec<Vec<f64>> {
    let mut moves = Vec::new();
    for (i, a) in numbers.iter().enumerate() {
        for (j, b) in numbers.iter().enumerate().filter(|(j, _)| *j != i) {
            let mut made = vec![a - b];
            if i < j {
                made.extend([a + b, a * b]);
            }
            if *b != 0.0 {
                made.push(a / b);
            }
            for made in made {
                let rest = numbers.iter().enumerate();
                let rest = rest.filter(|(k, _)| *k != i && *k != j).map(|(_, n)| *n);
                moves.push(rest.chain([made]).collect());
            }
        }
    }
    moves
}

fn is_24(number: f64) -> bool {
    (number - 24.0).abs() < 1e-6
}

/// Returns true if 24 can be made of all of them.
fn solvable(numbers: &[f64]) -> bool {
    match numbers {
        [last] => is_24(*last),
        _ => moves(numbers).iter().any(|left| solvable(left)),
    }
}

/// So many puzzles that can be solved.
fn puzzles(count: u64) -> Vec<Vec<f64>> {
    let mut draw = Draw::of(24);
    let all = std::iter::repeat_with(|| (0..4).map(|_| (1 + draw.below(13)) as f64).collect());
    let solvable = all.filter(|numbers: &Vec<f64>| solvable(numbers));
    solvable.take(count as usize).collect()
}

/// A model that combines two random numbers. It prefers a result that is a whole number from 1 to 48 by a factor of
/// three.
#[derive(Clone, Default)]
struct Player(Arc<AtomicU64>);

impl Player {
    fn calls(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn combines(numbers: &[f64], seed: u64) -> Vec<f64> {
        let moves = moves(numbers);
        let weight = |left: &Vec<f64>| {
            let made = left[left.len() - 1];
            let glad = made.fract() == 0.0 && (1.0..=48.0).contains(&made);
            if glad { 3 } else { 1 }
        };
        let mut at = Draw::of(seed).below(moves.iter().map(weight).sum());
        let drawn = moves.iter().find(|left| {
            let weight = weight(left);
            let found = at < weight;
            at = at.saturating_sub(weight);
            found
        });
        drawn.expect("a weight of all was drawn").clone()
    }
}

impl Model for Player {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        _sink: &'a dyn Sink,
        _cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let system = call.request.segments.iter().find_map(|s| match &s.content {
            Content::System(text) => Some(text.as_str()),
            _ => None,
        });
        let numbers: Vec<f64> =
            serde_json::from_str(system.expect("numbers")).expect("they are JSON");
        let mut answer = Answer::default();
        if numbers.len() > 1 {
            answer.asks.push(Ask {
                name: "combine".to_owned(),
                label: None,
                args: json!({ "left": Self::combines(&numbers, call.seed) }).to_string(),
                misfit: None,
            });
        } else {
            answer.text = Some(format!("{} is left.", numbers[0]));
        }
        Box::pin(std::future::ready(Ok(answer)))
    }

    fn label(&self) -> Name {
        "scripted".into()
    }
}

/// The tool `hope`: 1 if 24 is made, a half if it can still be made, 0 otherwise.
struct Hope;

impl Toolset for Hope {
    fn has(&self, _network: &Network, tool: &str) -> bool {
        tool == "hope"
    }

    fn run<'a>(&'a self, run: &'a ToolRun, _cancel: &'a CancellationToken) -> Boxed<'a, Raw> {
        let args: Json = serde_json::from_str(&run.work.args).expect("arguments are JSON");
        let numbers: Vec<f64> = serde_json::from_value(args["numbers"].clone()).expect("numbers");
        let worth = match &numbers[..] {
            [last] => f64::from(u8::from(is_24(*last))),
            left => f64::from(u8::from(solvable(left))) / 2.0,
        };
        Box::pin(std::future::ready(Raw::Done(worth.into())))
    }
}

/// Sums over the games of one method.
#[derive(Default)]
struct Played {
    games: u64,
    solved: u64,
    branches: u64,
    blocks: u64,
    calls: u64,
    cpu: f64,
}

impl Played {
    fn percent(&self) -> f64 {
        self.solved as f64 * 100.0 / self.games as f64
    }
}

/// Plays each puzzle `times` times.
fn play(puzzles: &[Vec<f64>], times: u64, search: &str) -> Played {
    let mut played = Played::default();
    let player = Player::default();
    let engine = Engine::new(Parts {
        store: Arc::new(MemoryStore::new()),
        clock: Arc::new(System),
        models: Arc::new(Only(player.clone())),
        toolsets: vec![Arc::new(Hope)],
        sealer: Sealer::ephemeral(),
        options: Options {
            env: Arc::new(|_| None),
            ..Options::default()
        },
    });
    runtime().block_on(async {
        for (n, numbers) in puzzles.iter().enumerate() {
            let definition = DEFINITION
                .replace("NUMBERS", &json!(numbers).to_string())
                .replace("SEARCH", search);
            let network = network_of(&definition);
            for time in 0..times {
                let id = format!("game{n}-{time}");
                let options = StartOptions {
                    id: Some(id.as_str().into()),
                    say: Some("Make 24.".to_owned()),
                    seed: Some(n as u64 * 1_000 + time),
                    ..StartOptions::default()
                };
                let watch = Watch::start();
                let session = engine.start(network.clone(), options).await;
                let settled = session.expect("it starts").settled().await;
                played.cpu += watch.took().cpu;
                let settled = settled.expect("it is driven");
                let done = matches!(&*settled, Settled::Answered { .. });
                assert!(done, "{settled:?}");
                let seen = engine.inspect(&id).await.expect("it is there");
                let branch = seen.current_branch().expect("a session has a branch");
                let mut cells = branch.snapshot.state.values();
                let left = &cells.next().expect("numbers are left").value.0;
                let left: Vec<f64> = serde_json::from_value((**left).clone()).expect("numbers");
                played.games += 1;
                played.solved += u64::from(matches!(left[..], [last] if is_24(last)));
                for (_, search) in seen.ledger.searches() {
                    played.branches += search.tried.len() as u64;
                    played.blocks += search.stood.len() as u64;
                    played.calls += seen.ledger.tree(search).cost().calls;
                }
            }
        }
        engine.stop().await;
    });
    if played.calls == 0 {
        played.calls = player.calls();
    }
    played
}

fn plan(method: &str, judge: &str) -> String {
    format!(
        "search: {{ {method}, depth: 3, {judge}, enough: 1, budget: {{ model_calls: {BUDGET} }} }}"
    )
}

/// The section of search.
pub(crate) fn report(table: &Table, size: Size) {
    let puzzles = puzzles(size.of(40, 2));
    let times = size.of(5, 1);
    let alone = play(&puzzles, times * 20, "turns: task");
    row(table, "a single run", &alone);
    let branches = BUDGET / 3;
    let ways = [
        (
            "best of n",
            format!("method: best_of, n: {branches}"),
            EXACT,
        ),
        (
            "rollouts",
            "method: rollouts, n: 27, width: 6".to_owned(),
            EXACT,
        ),
        (
            "MCTS",
            format!("method: mcts, n: {BUDGET}, width: 4"),
            EXACT,
        ),
        (
            "beam",
            format!("method: beam, n: {branches}, width: 5"),
            EXACT,
        ),
        (
            "beam, judged on the way",
            format!("method: beam, n: {branches}, width: 5"),
            HOPE,
        ),
    ];
    let mut all = Played::default();
    for (what, method, judge) in ways {
        let played = play(&puzzles, times, &plan(&method, judge));
        row(
            table,
            &format!("{what}, {BUDGET} model calls at most"),
            &played,
        );
        all.branches += played.branches;
        all.blocks += played.blocks;
        all.cpu += played.cpu;
    }
    let beside = format!(
        "{} blocks a CPU second; {} branches, in memory",
        short(all.blocks as f64 / all.cpu),
        all.branches
    );
    let rate = all.branches as f64 / all.cpu;
    table.row(
        "branches explored a CPU second",
        rate,
        "",
        Goal::None,
        &beside,
    );
}

fn row(table: &Table, what: &str, played: &Played) {
    let games = played.games as f64;
    let beside = format!(
        "{} of {} games; {} model calls and {} branches a game",
        played.solved,
        played.games,
        short(played.calls as f64 / games),
        short(played.branches as f64 / games),
    );
    let figure = format!("Game of 24 solved, {what}");
    table.row(&figure, played.percent(), " %", Goal::None, &beside);
}
