//! Rows, lines, effects and contexts of one session.

use crate::world::{SECRET, engine, last, network, paid, scripted, sealing};
use serde_json::json;
use std::collections::BTreeMap;
use steersman_machine::stored::ids::Line;
use steersman_runtime::engine::{Engine, StartOptions};
use steersman_runtime::seal::Sealer;
use steersman_runtime::session::Settled;
use steersman_views::context::Contexts;
use steersman_views::diff::{Side, compare};
use steersman_views::effects::Effects;
use steersman_views::graph;
use steersman_views::lanes::Lanes;
use steersman_views::log::Log;
use steersman_views::page::Subject;
use steersman_views::reader::{Reader as _, Stored};
use steersman_views::record::Recorded;
use steersman_views::screen::{Ask, Screen as _, Seen, ShowScreen};
use steersman_views::story::Story;

async fn rows(engine: &Engine, id: &str) -> String {
    let reader = Stored::masked(engine, id);
    let (mut story, mut rows, mut after) = (Story::told(true), Vec::new(), Line::NONE);
    loop {
        let lines = reader.lines(after, 2).await.unwrap();
        let Some(end) = lines.last() else { break };
        after = end.n;
        for line in &lines {
            let told = story.line(line, &reader).await.unwrap().into_iter();
            rows.extend(told.map(|row| {
                let took = row.note.starts_with("done, ");
                let note = if took { "done" } else { &row.note };
                let of = row.of.map_or_else(String::new, |of| format!(" of @{of}"));
                format!(
                    "@{:<3} {:9} {:?}: {} [{note}]{of}",
                    row.line, row.who, row.tone, row.text
                )
            }));
        }
    }
    rows.join("\n")
}

#[tokio::test]
async fn a_session_is_a_story_from_pages_of_lines() {
    let engine = engine();
    let session = paid(&engine).await;
    let rows = rows(&engine, session.id()).await;
    assert!(!rows.contains(SECRET), "{rows}");
    insta::assert_snapshot!("rows", rows);
}

#[tokio::test]
async fn every_line_is_read_once_and_effects_and_contexts_follow_from_the_log() {
    let engine = engine();
    let session = paid(&engine).await;
    let reader = Stored::masked(&engine, session.id());
    let log = Log::read(&reader).await.unwrap();
    assert_eq!(
        log.lines.last().unwrap().n,
        last(&engine, session.id()).await
    );
    let effects = Effects::of(&log.lines, &log.texts, None);
    let told: Vec<String> = effects
        .all()
        .map(|effect| format!("{} {} {}", effect.tool, effect.args, effect.word()))
        .collect();
    insta::assert_snapshot!("effects", told.join("\n"));

    let seen = session.inspect().await.unwrap();
    let branch = seen.current_branch().unwrap();
    let path = log.history(branch, &seen.branches);
    let plain = Stored::plain(&engine, session.id());
    let contexts = Contexts::of(&plain, &log, &path).await.unwrap();
    for call in contexts.calls().iter().filter(|c| c.answered.is_some()) {
        let context = contexts.context(call).await.unwrap();
        assert_eq!(context.as_sent, Some(true), "{context:?}");
    }
    let caches = contexts.caches(None).await.unwrap();
    assert!(
        caches.prefix > 0 && caches.prefix < caches.bytes,
        "{caches:?}"
    );
}

#[tokio::test]
async fn a_branch_differs_from_another_and_not_from_itself() {
    let engine = engine();
    let session = paid(&engine).await;
    let seen = session.inspect().await.unwrap();
    let ids: Vec<_> = seen.branches.iter().map(|branch| branch.id).collect();
    let side = async |branch| {
        let side = Side::read(&engine, session.id(), Some(branch)).await;
        side.unwrap().unwrap()
    };
    let (a, b) = (side(ids[0]).await, side(ids[0]).await);
    assert!(compare(&a, &b).is_empty());
    let diff = compare(&a, &side(ids[1]).await);
    assert!(diff.outcome_differs() && diff.to_json()["differs"] == true);
    assert_eq!(diff.answer.b.as_deref(), Some("Paid a little more."));
    assert_eq!(diff.tools.b.len(), 3, "{diff:?}");
    let elsewhere = "999.1".parse().unwrap();
    assert!(
        Side::read(&engine, session.id(), Some(elsewhere))
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn lanes_grow_with_each_line_and_hold_one_entry_an_interaction() {
    let engine = engine();
    let session = paid(&engine).await;
    let reader = Stored::masked(&engine, session.id());
    let log = Log::read(&reader).await.unwrap();
    let mut lanes = Lanes::default();
    let mut pushes = 0;
    for line in &log.lines {
        lanes.line(line);
        pushes += line.commit.as_ref().map_or(0, |c| c.pushes.len());
        let columns = [
            lanes.lines.len(),
            lanes.k.len(),
            lanes.at.len(),
            lanes.branch.len(),
            lanes.agent.len(),
            lanes.kind.len(),
            lanes.flags.len(),
        ];
        assert!(columns.iter().all(|len| *len == columns[0]), "{columns:?}");
        assert_eq!(lanes.k.iter().filter(|k| **k > 0).count(), pushes);
        assert_eq!(lanes.lines.iter().sum::<u64>(), lanes.head);
    }
    let mut json = serde_json::to_value(&lanes).unwrap();
    for random in ["base_ms", "at"] {
        json[random] = "..".into();
    }
    insta::assert_snapshot!("lanes", format!("{json:#}"));
}

#[tokio::test]
async fn a_page_counts_what_the_lines_that_it_shows_paid() {
    let engine = engine();
    let session = paid(&engine).await;
    let log = Log::read(&Stored::masked(&engine, session.id())).await;
    let (log, seen) = (log.unwrap(), session.inspect().await.unwrap());
    let known = engine.secrets_of(session.id()).await.unwrap();
    let (main, more) = (&seen.branches[0], &seen.branches[1]);
    let page = |branch, alone, line| {
        let subject = Subject {
            seen: &seen,
            log: &log,
            bound: &BTreeMap::new(),
            known: &known,
            branch,
            alone,
            line,
        };
        let page = subject.page();
        let calls: u64 = page.models.iter().map(|model| model.calls).sum();
        let tokens: u64 = page.models.iter().map(|model| model.tokens).sum();
        // All calls were answered.
        let counted = (page.row.model_calls, page.row.tokens);
        assert_eq!(counted, (calls, tokens), "{line:?}");
        calls
    };
    assert_eq!(page(main, false, None), 6);
    assert_eq!(page(main, true, None), 4);
    assert_eq!(page(more, true, None), 6);
    let mut before = 0;
    for line in &log.lines {
        let calls = page(main, false, Some(line.n));
        let answered = line.commit.as_ref().map_or(0, |commit| commit.usage.len());
        assert_eq!(calls, before + answered as u64, "{}", line.n);
        before = calls;
    }
}

#[tokio::test]
async fn a_recorded_test_repeats_a_text_that_ends_a_raw_block() {
    const TALK: &str = "steersman: 1\nname: talk\nmodels: { default: scripted }\nagents: { talker: { system: You talk. } }\n";
    const SAID: &str = "{% raw %} {% endraw %} {{ wish }} {# {%- endraw -%}";
    let mut script = json!({ "talker": [format!("{{{{ \"{SAID}\" }}}}")] });
    for _ in 0..2 {
        let engine = scripted(&script);
        let options = StartOptions {
            say: Some("Go.".to_owned()),
            ..StartOptions::default()
        };
        let session = engine.start(network(TALK), options).await.unwrap();
        let settled = session.settled().await.unwrap();
        let Settled::Answered { text, .. } = &*settled else {
            panic!("{settled:?}");
        };
        assert_eq!(&**text, SAID);
        let read = Recorded::read(&engine, session.id()).await.unwrap();
        script = read.test().unwrap()["script"].clone();
    }
}

#[tokio::test]
async fn arrows_count_members_and_no_other_calls_of_a_router() {
    const TEAM: &str = "steersman: 1\nname: team\nmodels: { default: scripted }\n\
        state: { topic: { type: string, optional: true } }\n\
        agents:\n  one: { system: You are one. }\n  two: { system: You are two. }\n  \
        team: { extract: [topic], route: { sequence: [one, two] } }\nentry: team\n";
    let engine = scripted(&json!({
        "team#extract": [{ "output": { "topic": "ships" } }],
        "team/one": ["One."],
        "team/two": ["Two."],
    }));
    let network = network(TEAM);
    let options = StartOptions {
        say: Some("About ships.".to_owned()),
        ..StartOptions::default()
    };
    let session = engine.start(network.clone(), options).await.unwrap();
    session.settled().await.unwrap();
    let log = Log::read(&Stored::plain(&engine, session.id())).await;
    let (log, seen) = (log.unwrap(), session.inspect().await.unwrap());
    let snapshot = &seen.current_branch().unwrap().snapshot;
    let path: Vec<_> = log.lines.iter().collect();
    let mut drawn = graph::draw(&network);
    graph::stand(&mut drawn, &network, snapshot, &path, &[], &log.texts);
    let times: Vec<u64> = drawn
        .graph
        .edges
        .iter()
        .filter_map(|edge| edge.times)
        .collect();
    assert_eq!(times, [1, 1, 1], "{:#?}", drawn.graph.edges);
}

#[test]
fn a_built_in_tool_without_conditions_shares_no_row_with_conditions() {
    const DESK: &str = "steersman: 1\nname: desk\nmodels: { default: scripted }\n\
        state: { ready: { type: boolean, default: false } }\n\
        agents: { desk: { system: You sit., tools: [{ tool: finish, requires: state.ready }, ask, fork] } }\n";
    let drawn = graph::draw(&network(DESK));
    let facts = drawn.graph.nodes.iter().flat_map(|node| &node.facts);
    let facts: Vec<String> = facts.map(|f| format!("{}: {}", f.word, f.text)).collect();
    let rows = [
        "built in: finish",
        "needs: state.ready",
        "built in: ask (asks user), fork",
    ];
    assert_eq!(facts, rows);
}

/// A result of a tool is not the result of a call to branches, although it has a field `branches` too.
#[tokio::test]
async fn results_of_tools_with_branches_of_their_own_differ() {
    let side = async |branch: &str| {
        let desk = format!(
            "steersman: 1\nname: desk\nmodels: {{ default: scripted }}\n\
             tools: {{ git: {{ description: Lists branches., result: '{{\"branches\": [\"{branch}\"]}}' }} }}\n\
             agents: {{ desk: {{ system: You list., tools: [git] }} }}\n"
        );
        let engine = scripted(&json!({ "desk": [{ "call": { "git": {} } }, "Listed."] }));
        let options = StartOptions {
            say: Some("List them.".to_owned()),
            ..StartOptions::default()
        };
        let session = engine.start(network(&desk), options).await.unwrap();
        session.settled().await.unwrap();
        let side = Side::read(&engine, session.id(), None).await;
        side.unwrap().unwrap()
    };
    let first = compare(&side("main").await, &side("dev").await).first;
    let [Some(a), Some(b)] = [&first[0].a, &first[0].b] else {
        panic!("{first:?}");
    };
    assert!(a.contains("main") && b.contains("dev"), "{first:?}");
}

/// A reader that was opened before a secret was entered, and reads only a later page, masks the secret there, too.
#[tokio::test]
async fn a_secret_of_a_line_that_was_skipped_is_masked() {
    let sealer = Sealer::new(&[7; 32]);
    let engine = sealing(
        &json!({ "desk": ["Hello.", "I keep it.", "So it is."] }),
        sealer.clone(),
    );
    let network = network(
        "steersman: 1\nname: desk\nmodels: { default: scripted }\nagents: { desk: { system: You keep. } }\n",
    );
    let session = engine
        .start(network, StartOptions::default())
        .await
        .unwrap();
    let said = async |text: &str| {
        session.say(text).await.unwrap();
        session.settled().await.unwrap();
        last(&engine, session.id()).await
    };
    said("Hello.").await;
    let reader = Stored::masked(&engine, session.id());
    reader.lines(Line::NONE, 1).await.unwrap();
    let skipped = said(&format!("Keep {}.", sealer.seal(&json!("walrus-99")))).await;
    said("It is walrus-99.").await;
    let lines = reader.lines(skipped, 100).await.unwrap();
    let texts: Vec<_> = lines.iter().flat_map(|line| reader.texts(line)).collect();
    let texts = format!("{texts:?}");
    assert!(
        texts.contains("It is (secret).") && !texts.contains("walrus"),
        "{texts}"
    );
}

#[tokio::test]
async fn secrets_of_a_binding_that_came_after_the_inspection_are_known() {
    let engine = engine();
    let session = paid(&engine).await;
    let lines = engine.feed(session.id(), Line::NONE).lines().await.unwrap();
    let mut seen = session.inspect().await.unwrap();
    // An inspection of a moment before the binding.
    (seen.network, seen.info.head) = (None, Line::NONE);
    let known = engine.secrets_in(&seen, &lines[..1]).await.unwrap();
    let masked = known.masked(&format!("It is {SECRET}."));
    assert_eq!(masked, "It is (secret).");
}

#[tokio::test]
async fn a_long_session_has_a_beginning_that_is_that_of_its_whole_page() {
    const TALK: &str = "steersman: 1\nname: talk\nmodels: { default: scripted }\nagents: { talker: { system: You talk. } }\n";
    let engine = scripted(&json!({ "talker": vec!["Yes."; 220] }));
    let options = StartOptions {
        say: Some("Go.".to_owned()),
        ..StartOptions::default()
    };
    let session = engine.start(network(TALK), options).await.unwrap();
    session.settled().await.unwrap();
    let id = session.id().to_owned();
    let asks = |form: &str| Ask {
        form: Some(form.to_owned()),
        ..Ask::default()
    };
    let beginning = asks(ShowScreen::BEGINNING);
    let seen = Seen::read_asked(&engine, &id, &beginning).await.unwrap();
    let short = ShowScreen::of(seen, &beginning).await.unwrap();
    assert!(!short.begins, "it is short, so this is all of it");
    session.stop().await;
    // The lines of each owner begin at the next hundred.
    for _ in 0..201 {
        let session = engine.open(&id).await.unwrap();
        session.say("Go on.").await.unwrap();
        session.settled().await.unwrap();
        session.stop().await;
    }
    let seen = Seen::read_asked(&engine, &id, &beginning).await.unwrap();
    let first = ShowScreen::of(seen, &beginning).await.unwrap();
    assert!(first.begins);
    let whole = Seen::read(&engine, &id, None).await.unwrap();
    let whole = ShowScreen::of(whole, &Ask::default()).await.unwrap();
    assert!(!whole.begins && whole.story[0].told.left_out > 100);
    let head = |screen: &ShowScreen| {
        let row = &screen.page.row;
        (
            row.model_calls,
            row.tokens,
            row.status.clone(),
            screen.knows_cost,
        )
    };
    assert_eq!(head(&first), head(&whole));
    let rows = |screen: &ShowScreen| format!("{:?}", screen.story[0].told.first);
    assert_eq!(rows(&first), rows(&whole));
    assert!(first.story[0].told.last.is_empty());
    // It was one process all the time.
    assert!(rows(&whole).contains("taken up again"));
}
