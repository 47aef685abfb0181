//! The cost of a search for passages in a long conversation: through a session, and in the index alone.

use crate::measure::{Goal, Size, Table, median, short, timed};
use crate::world::{Only, runtime};
use serde_json::json;
use std::hint::black_box;
use std::sync::Arc;
use steersman_adapters::fts::FullText;
use steersman_definition::{self as definition, Files};
use steersman_machine::stored::ids::Name;
use steersman_machine::stored::outcome::{Answer, Ask, Failure};
use steersman_runtime::Boxed;
use steersman_runtime::clock::System;
use steersman_runtime::engine::{Engine, Options, Parts, StartOptions};
use steersman_runtime::model::{Model, ModelCall, Sink};
use steersman_runtime::retrieval::Retrieval;
use steersman_runtime::seal::Sealer;
use steersman_runtime::session::{Session, Settled};
use steersman_runtime::store::memory::MemoryStore;
use tokio_util::sync::CancellationToken;

const DEFINITION: &str = "
steersman: 1
name: chat
models: { default: scripted }
agents: { main: { system: You talk., tools: [notes], limits: { ticks: 1000000000 } } }
limits: { tokens: 1000000000000, model_calls: { max: 1000000000 } }
";

/// Message `n`: twenty words, most of them common, and a number that no other message has.
fn said(n: u64) -> String {
    let mut seed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut words = Vec::with_capacity(21);
    for _ in 0..20 {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        // The frequency of a word of rank r is about 1 in r, as in natural languages.
        let rank = 4_000_f64.powf((seed >> 11) as f64 / (1_u64 << 53) as f64) as u64;
        words.push(format!("w{}x", letters(rank)));
    }
    words.push(format!("order {n}."));
    words.join(" ")
}

fn letters(mut n: u64) -> String {
    let mut out = String::new();
    loop {
        out.push(char::from(b'a' + (n % 26) as u8));
        n /= 26;
        if n == 0 {
            return out;
        }
    }
}

/// A query: words that many texts have, and one that few have.
fn query(n: u64) -> String {
    format!("{} what of order {}?", said(n * 7 + 3), n * 13 + 1)
}

/// The section of relevance.
pub(crate) fn report(table: &Table, size: Size) {
    let count = size.of(10_000, 200);
    alone(table, size, count);
    through_a_session(table, size, count);
}

fn alone(table: &Table, size: Size, count: u64) {
    let texts: Vec<String> = (0..count).map(said).collect();
    let numbered: Vec<(u64, &str)> = (0..).zip(texts.iter().map(String::as_str)).collect();
    let (mut index, indexing) = timed(|| {
        let mut index = FullText.index().expect("it is made");
        index.add(&numbered).expect("it takes them");
        index
    });
    let (mut finding, mut scanning) = (Vec::new(), Vec::new());
    for n in 0..size.repeat as u64 * 10 {
        let query = query(n);
        let (found, took) = timed(|| index.find(&query, 5, &|_| false).expect("it is searched"));
        assert!(!found.is_empty(), "the words of a text find it");
        finding.push(took.clock * 1e3);
        scanning.push(timed(|| scan(&texts, &query)).1.clock * 1e3);
    }
    let (find, scan) = (median(finding.iter().copied()), median(scanning));
    let worst = finding.into_iter().fold(0.0, f64::max);
    let beside = format!(
        "{} ms, at worst {}; a scan of all texts for their words {} ms; indexing {} ms for {count} texts, {} us each",
        short(find),
        short(worst),
        short(scan),
        short(indexing.clock * 1e3),
        short(indexing.micros(count)),
    );
    let figure = format!("finding in {count} texts over a scan of them");
    table.row(&figure, find / scan, " times", Goal::None, &beside);
}

/// The five texts that have the most of the words.
fn scan(texts: &[String], query: &str) -> Vec<(usize, usize)> {
    let query = query.to_lowercase();
    let words: Vec<&str> = query.split_whitespace().collect();
    let has = |text: &String| {
        let text = text.to_lowercase();
        words.iter().filter(|word| text.contains(**word)).count()
    };
    let mut all: Vec<(usize, usize)> = texts.iter().map(has).enumerate().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    all.truncate(5);
    black_box(all)
}

fn through_a_session(table: &Table, size: Size, count: u64) {
    let engine = Engine::new(Parts {
        store: Arc::new(MemoryStore::new()),
        clock: Arc::new(System),
        models: Arc::new(Only(Talker)),
        toolsets: Vec::new(),
        sealer: Sealer::ephemeral(),
        options: Options {
            env: Arc::new(|_| None),
            retrieval: Some(Arc::new(FullText)),
            ..Options::default()
        },
    });
    let (network, diagnostics) = definition::compile(&Files::new("chat.yaml", DEFINITION));
    let network = network.unwrap_or_else(|| panic!("{diagnostics:?}"));
    runtime().block_on(async {
        let session = engine.start(Arc::new(network), StartOptions::default()).await;
        let session = session.expect("it starts");
        // Each turn is two messages.
        for n in 0..count / 2 {
            turn(&session, &said(n)).await;
        }
        let bare = times(&session, size, |n| said(count + n)).await;
        let first = times(&session, size.once(), |n| format!("find {}", query(n))).await;
        let later = times(&session, size, |n| format!("find {}", query(n + 1))).await;
        let each = later - bare;
        let beside = format!(
            "a turn with a search {} ms, without {} ms; with the first search, which reads and indexes them all, {} ms",
            short(later),
            short(bare),
            short(first),
        );
        let figure = format!("a search over {count} messages of a session");
        table.row(&figure, each, " ms", Goal::AtMost(20.0), &beside);
        engine.stop().await;
    });
}

/// The median time of a turn, in milliseconds.
async fn times(session: &Session, size: Size, text: impl Fn(u64) -> String) -> f64 {
    let mut took = Vec::new();
    for n in 0..size.repeat as u64 {
        let begun = std::time::Instant::now();
        turn(session, &text(n)).await;
        took.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    median(took)
}

async fn turn(session: &Session, text: &str) {
    session.say(text).await.expect("it takes a message");
    let settled = session.settled().await.expect("it is driven");
    assert!(matches!(&*settled, Settled::Answered { .. }), "{settled:?}");
}

/// A model that answers with some words, or searches if the message begins with `find`.
#[derive(Clone, Copy)]
struct Talker;

impl Model for Talker {
    fn call<'a>(
        &'a self,
        call: &'a ModelCall,
        _sink: &'a dyn Sink,
        _cancel: &'a CancellationToken,
    ) -> Boxed<'a, Result<Answer, Failure>> {
        use steersman_machine::context::Content;
        let last = call.request.segments.last().map(|segment| &segment.content);
        let mut answer = Answer::default();
        match last {
            Some(Content::User(text)) if text.starts_with("find ") => answer.asks.push(Ask {
                name: "notes_search".to_owned(),
                label: None,
                args: json!({ "query": text }).to_string(),
                misfit: None,
            }),
            _ => answer.text = Some(said(1_000_000 + u64::from(call.position))),
        }
        Box::pin(std::future::ready(Ok(answer)))
    }

    fn label(&self) -> Name {
        "scripted".into()
    }
}
