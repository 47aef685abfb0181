//! Spans of sessions: what they are, that their ids follow from the log, and that no span lacks its parent.

use crate::world::{SECRET, engine, network, paid, scripted};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use steersman_machine::context::History;
use steersman_machine::network::Network;
use steersman_machine::stored::commit::{Binding, Hooked, LogLine, Text};
use steersman_machine::stored::ids::{Bodies, Body, Id, Line};
use steersman_machine::stored::interaction::Interaction;
use steersman_machine::stored::parts::Parts;
use steersman_runtime::Boxed;
use steersman_runtime::engine::{EngineError, StartOptions};
use steersman_runtime::inbox::{Message, Wanted};
use steersman_runtime::known::Known;
use steersman_runtime::trace::{SpanId, SpanKind, TraceId};
use steersman_testkit::random;
use steersman_views::reader::{Reader, Stored};
use steersman_views::spans::{Span, Tracer};

/// The lines of a random session, which no store holds.
struct Played {
    lines: Vec<Arc<LogLine>>,
    network: Arc<Network>,
}

impl Played {
    fn at(&self, n: Line) -> &Arc<LogLine> {
        let at = self.lines.binary_search_by_key(&n, |line| line.n).unwrap();
        &self.lines[at]
    }
}

impl Bodies for Played {
    fn parts(&self, body: Body) -> Parts {
        match &self.at(body.line()).bodies[body.k() as usize] {
            Text::Here(text) => Parts::One(text.text().clone()),
            Text::Parts(parts) => Parts::Several(parts.clone()),
            Text::Blob { .. } | Text::Erased { .. } => Parts::One("[elsewhere]".into()),
        }
    }
}

impl History for Played {
    fn pushes(&self, agent: Id, n: Line) -> (Arc<[Interaction]>, Line) {
        let commit = self.at(n).commit.as_ref().unwrap();
        let own = || commit.pushes.iter().filter(|push| push.agent == agent);
        let below = own().next().unwrap().prev;
        (own().map(|push| push.what.clone()).collect(), below)
    }

    fn hooked(&self, _effect: Id) -> Vec<Hooked> {
        Vec::new()
    }
}

impl Reader for Played {
    fn lines(&self, after: Line, most: usize) -> Boxed<'_, Result<Vec<Arc<LogLine>>, EngineError>> {
        let rest = self.lines.iter().filter(|line| line.n > after);
        let rest = rest.take(most).cloned().collect();
        Box::pin(std::future::ready(Ok(rest)))
    }

    fn line(&self, n: Line) -> Boxed<'_, Result<Arc<LogLine>, EngineError>> {
        Box::pin(std::future::ready(Ok(self.at(n).clone())))
    }

    fn texts(&self, _line: &LogLine) -> Vec<Parts> {
        Vec::new()
    }

    fn arrived(&self, line: Arc<LogLine>) -> Boxed<'_, Result<Arc<LogLine>, EngineError>> {
        Box::pin(std::future::ready(Ok(line)))
    }

    fn network<'a>(&'a self, _of: &'a Binding) -> Boxed<'a, Result<Arc<Network>, EngineError>> {
        Box::pin(std::future::ready(Ok(self.network.clone())))
    }

    fn is_masked(&self) -> bool {
        false
    }

    fn known(&self) -> Option<Arc<Known>> {
        None
    }

    fn fault(&self) -> Option<EngineError> {
        None
    }
}

/// Checks the spans of any session: ids are unique, each trace has one root, and every other span has a parent in it.
fn law(spans: &[Span]) {
    let mut known: BTreeMap<(TraceId, SpanId), &Span> = BTreeMap::new();
    for span in spans {
        let twin = known.insert((span.trace, span.id), span);
        assert!(twin.is_none(), "{span:#?}\nhas the id of\n{twin:#?}");
        assert!(span.from <= span.to, "{span:#?}");
        assert!(!span.name.is_empty(), "{span:#?}");
        assert_eq!(span.parent.is_none(), span.kind == SpanKind::Turn);
    }
    for span in spans {
        if let Some(parent) = span.parent {
            let found = known.get(&(span.trace, parent));
            assert!(found.is_some(), "no parent of {span:#?}");
        }
    }
    let traces: BTreeSet<TraceId> = spans.iter().map(|span| span.trace).collect();
    let roots = spans.iter().filter(|span| span.kind == SpanKind::Turn);
    assert_eq!(roots.count(), traces.len(), "each trace has one root");
}

/// Spans as a tree, each with its children in the order in which they began.
fn tree(spans: &[Span]) -> String {
    fn below(spans: &[Span], of: &Span, depth: usize, shown: &mut String) {
        let open = if of.is_open { " +" } else { "" };
        let error = of.error.as_deref();
        let error = error.map_or_else(String::new, |code| format!(" !{code}"));
        writeln!(shown, "{}{}{error}{open}", "  ".repeat(depth), of.name).unwrap();
        let here = |span: &&Span| span.trace == of.trace && span.parent == Some(of.id);
        let mut children: Vec<&Span> = spans.iter().filter(here).collect();
        children.sort_by_key(|span| span.from);
        for child in children {
            below(spans, child, depth + 1, shown);
        }
    }
    let mut shown = String::new();
    let roots = spans.iter().filter(|span| span.parent.is_none());
    roots.for_each(|root| below(spans, root, 0, &mut shown));
    shown
}

fn texts(spans: &[Span]) -> String {
    format!("{spans:?}")
}

#[tokio::test]
async fn a_turn_is_a_trace_with_its_models_tools_and_waits() {
    let engine = engine();
    let session = paid(&engine).await;
    let reader = || Arc::new(Stored::masked(&engine, session.id()));
    let spans = Tracer::all(reader(), session.id(), false).await.unwrap();
    law(&spans);
    insta::assert_snapshot!(tree(&spans));
    let again = Tracer::all(reader(), session.id(), false).await.unwrap();
    assert_eq!(spans, again, "the spans follow from the log");

    let pay = spans.iter().find(|span| span.name == "execute_tool pay");
    let pay = pay.unwrap();
    assert_eq!(pay.attribute("steersman.outcome"), Some(&json!("done")));
    assert_eq!(pay.attribute("gen_ai.tool.name"), Some(&json!("pay")));
    let wait = spans
        .iter()
        .find(|span| span.name == "steersman.wait approval");
    let wait = wait.unwrap();
    assert_eq!(
        wait.attribute("steersman.wait.decided_by"),
        Some(&json!("user"))
    );
    assert_eq!(wait.attribute("steersman.wait.go"), Some(&json!(true)));
    assert!(pay.from >= wait.to, "a call begins when it may");
    let chat = spans
        .iter()
        .find(|span| span.kind == SpanKind::Model)
        .unwrap();
    assert!(chat.attribute("gen_ai.usage.input_tokens").is_some());
    let id = json!(session.id());
    assert!(
        spans
            .iter()
            .all(|span| span.attribute("gen_ai.conversation.id") == Some(&id))
    );
}

#[tokio::test]
async fn texts_are_left_out_unless_they_are_wanted_and_secrets_always_are() {
    let engine = engine();
    let session = paid(&engine).await;
    let reader = || Arc::new(Stored::masked(&engine, session.id()));
    let without = texts(&Tracer::all(reader(), session.id(), false).await.unwrap());
    for text in ["Pay fifty", "I note it", "cents", "Paid.", SECRET] {
        assert!(!without.contains(text), "{text} in {without}");
    }
    let with = Tracer::all(reader(), session.id(), true).await.unwrap();
    law(&with);
    let with = texts(&with);
    for text in [
        "Pay fifty, my pin is (secret)",
        "I note it",
        "cents",
        "Paid.",
        "You pay.",
    ] {
        assert!(with.contains(text), "{text} not in {with}");
    }
    assert!(!with.contains(SECRET), "{with}");
}

#[tokio::test]
async fn a_task_of_an_agent_is_a_span_and_what_goes_on_is_marked() {
    let desk = network(
        "steersman: 1
name: desk
models: { default: scripted }
tools: { quest: { description: Asks., parameters: { question: string }, ask: user } }
agents:
  boss: { description: Asks., system: You ask., tools: [look, quest] }
  look: { description: Looks., system: You look., parameters: { what: string } }
entry: boss
",
    );
    let engine = scripted(&json!({
        "boss": [{ "call": { "look": { "what": "a" } } }, { "call": { "quest": { "question": "Well?" } } }],
        "look": ["Seen."],
    }));
    let options = StartOptions {
        say: Some("Go.".into()),
        ..StartOptions::default()
    };
    let session = engine.start(desk, options).await.unwrap();
    let _ = session.settled().await.unwrap();
    let reader = Arc::new(Stored::masked(&engine, session.id()));
    let spans = Tracer::all(reader, session.id(), false).await.unwrap();
    law(&spans);
    insta::assert_snapshot!(tree(&spans), @r"
    invoke_agent boss
      chat scripted
      invoke_agent look
        chat scripted
      chat scripted
      steersman.wait question +
    ");
}

#[tokio::test]
async fn spans_of_random_sessions_keep_the_law_and_their_ids_at_every_line() {
    let (mut kinds, mut failed) = (BTreeMap::<SpanKind, u32>::new(), 0);
    for seed in 0..40 {
        let world = random::played(seed, 60).unwrap();
        let lines = world.lines().iter().cloned().map(Arc::new);
        let reader = Arc::new(Played {
            lines: lines.collect(),
            network: world.network.clone(),
        });
        let all = Tracer::all(reader.clone(), "s", false).await.unwrap();
        law(&all);
        let ids: BTreeSet<(TraceId, SpanId)> = all.iter().map(|s| (s.trace, s.id)).collect();
        for span in &all {
            *kinds.entry(span.kind).or_default() += 1;
            failed += u32::from(span.error.is_some());
        }
        // A process that dies after any line has told a part of the same spans, and an export made then lacks no parent.
        let mut tracer = Tracer::new(reader.clone(), "s", false);
        let mut told = Vec::new();
        for line in &reader.lines {
            told.extend(tracer.line(line).await.unwrap());
            let open = tracer.open();
            let mut export = told.clone();
            export.extend(open);
            law(&export);
            let strange = export.iter().find(|s| !ids.contains(&(s.trace, s.id)));
            // A call that is left before it could run has no span in the end.
            assert!(
                strange.is_none_or(|span| span.is_open),
                "seed {seed}: {strange:#?}"
            );
        }
        told.extend(tracer.open());
        assert_eq!(told, all, "seed {seed}");
    }
    for kind in [
        SpanKind::Turn,
        SpanKind::Segment,
        SpanKind::Task,
        SpanKind::Model,
        SpanKind::Tool,
    ] {
        assert!(kinds.contains_key(&kind), "{kind:?} never came: {kinds:?}");
    }
    assert!(failed > 0, "nothing failed");
}

#[tokio::test]
async fn a_turn_that_another_process_ends_is_one_trace() {
    let first = engine();
    let options = StartOptions {
        say: Some("Pay fifty.".into()),
        ..StartOptions::default()
    };
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let desk = crate::world::desk();
    let session = first.start(desk.clone(), options).await.unwrap();
    session.settled().await.unwrap();
    let id = session.id().to_owned();
    let before = Tracer::all(Arc::new(Stored::masked(&first, &id)), &id, false);
    let before = before.await.unwrap();
    first.kill().await;
    drop(session);

    let second = crate::world::over(first.store().clone());
    let session = second.open(&id).await.unwrap();
    let asked = session.settled().await.unwrap();
    let pending = session.inspect().await.unwrap().pending[0].id();
    session.approve(pending, "user").await.unwrap();
    session.settled_otherwise(&asked).await.unwrap();
    let thanks = Message {
        parent: Some(parent.into()),
        ..Message::from(Wanted::Say {
            text: "Thank you.".into(),
            to: None,
        })
    };
    second.deliver(&id, thanks).await.unwrap();
    session.settled().await.unwrap();
    let after = Tracer::all(Arc::new(Stored::masked(&second, &id)), &id, false);
    let after = after.await.unwrap();
    law(&after);
    let ids: BTreeSet<(TraceId, SpanId)> = after.iter().map(|s| (s.trace, s.id)).collect();
    assert!(before.iter().all(|s| ids.contains(&(s.trace, s.id))));
    let pay = after.iter().find(|s| s.name == "execute_tool pay").unwrap();
    assert_eq!(pay.trace, before[0].trace, "the turn goes on in its trace");
    let traces: BTreeSet<TraceId> = after.iter().map(|s| s.trace).collect();
    assert_eq!(traces.len(), 2, "one for each message");
    let links: Vec<String> = (after.iter().flat_map(|s| &s.links))
        .map(ToString::to_string)
        .collect();
    assert_eq!(links, [parent], "the trace of the request is a link");
}
