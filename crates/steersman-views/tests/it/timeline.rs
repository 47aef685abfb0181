//! The timeline of a session: lanes of agents, spans, and places in a picture.

use crate::world::{engine, network, paid, scripted};
use serde_json::json;
use steersman_machine::stored::commit::{LedgerEntry, LogLine, Want};
use steersman_machine::stored::ids::Time;
use steersman_runtime::engine::StartOptions;
use steersman_views::log::Log;
use steersman_views::reader::Stored;
use steersman_views::timeline::{Axis, Span, Timeline, What};

fn told(timeline: &Timeline) -> Vec<String> {
    let lanes = timeline.lanes.iter().map(|lane| {
        let spans = lane.spans.iter().map(|span| {
            let end = if span.open { "+" } else { "" };
            let failed = if span.failed { "!" } else { "" };
            format!("{} {}{end}{failed}", span.what.word(), span.name)
        });
        let spans: Vec<String> = spans.collect();
        format!(
            "{}{}: {}",
            " ".repeat(lane.depth),
            lane.title(),
            spans.join(", ")
        )
    });
    lanes.collect()
}

#[tokio::test]
async fn models_tools_and_waits_have_spans_on_the_lane_of_their_agent() {
    let engine = engine();
    let session = paid(&engine).await;
    let log = Log::read(&Stored::masked(&engine, session.id()))
        .await
        .unwrap();
    let timeline = Timeline::of(log.lines.iter().map(|line| &**line));
    let main = &timeline.lanes[0];
    let mut kinds: Vec<(What, &str)> = main.spans.iter().map(|s| (s.what, &*s.name)).collect();
    kinds.sort_unstable();
    assert_eq!(
        kinds,
        [
            (What::Model, "scripted"),
            (What::Model, "scripted"),
            (What::Model, "scripted"),
            (What::Model, "scripted"),
            (What::Tool, "note"),
            (What::Tool, "pay"),
            (What::Wait, "approval"),
        ],
        "{:?}",
        told(&timeline)
    );
    // The branch has a lane of its own, and what a wait held back begins behind it.
    assert_eq!(timeline.lanes.len(), 2, "{:?}", told(&timeline));
    let span = |what, name: &str| -> &Span {
        let found = main
            .spans
            .iter()
            .find(|s| (s.what, &*s.name) == (what, name));
        found.unwrap()
    };
    assert!(span(What::Tool, "pay").from >= span(What::Wait, "approval").to);
    assert!(
        main.spans
            .iter()
            .all(|span| span.from <= span.to && !span.open)
    );
}

#[tokio::test]
async fn an_agent_that_was_called_has_a_lane_below_its_caller_and_open_spans_go_on() {
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
    let log = Log::read(&Stored::masked(&engine, session.id()))
        .await
        .unwrap();
    let mut timeline = Timeline::of(log.lines.iter().map(|line| &**line));
    assert_eq!(
        told(&timeline),
        [
            "boss: model scripted, agent look, model scripted, wait quest+",
            " look: model scripted",
        ]
    );
    assert_eq!(timeline.lanes[0].spans[3].to, timeline.ends);
    let later = timeline.ends.plus(5_000);
    timeline.goes_on(later);
    assert_eq!(
        (timeline.lanes[0].spans[3].to, timeline.ends),
        (later, later)
    );
    assert!(timeline.lanes[0].spans[2].to < later);
}

/// A tool ran when its process was killed. Another process took the session over ten seconds after the last line.
#[tokio::test]
async fn the_time_without_a_process_is_no_work() {
    let engine = engine();
    let session = paid(&engine).await;
    let log = Log::read(&Stored::masked(&engine, session.id()))
        .await
        .unwrap();
    let mut lines: Vec<LogLine> = log.lines.iter().map(|line| (**line).clone()).collect();
    // Ends the log with the line that wishes a model call; what follows is the takeover.
    let wishes = |line: &LogLine| {
        let commit = line.commit.as_ref();
        commit.is_some_and(|c| c.wished.iter().any(|wished| wished.what == Want::Step))
    };
    let at = lines.iter().position(wishes).unwrap();
    let answer = lines[at + 1].clone();
    lines.truncate(at + 1);
    let last = lines[at].at;
    let mut dead = Timeline::of(&lines);
    dead.stands(last.plus(10_000));
    assert_eq!(told(&dead), ["desk: model model!, unowned not taken over+"]);
    assert_eq!(
        (dead.sum(What::Model), dead.sum(What::Unowned)),
        (0, 10_000)
    );

    lines.push(LogLine {
        at: last.plus(10_000),
        commit: None,
        ledger: vec![LedgerEntry::Claimed {
            epoch: 2,
            mark: 1,
            owner: "web-2:4712".into(),
            build: "0.1.0".into(),
            revision: 3,
        }],
        ..answer.clone()
    });
    lines.push(LogLine {
        at: last.plus(12_000),
        ..answer
    });
    let timeline = Timeline::of(&lines);
    let spans = &timeline.lanes[0].spans;
    let kinds: Vec<(What, u64, bool)> = spans
        .iter()
        .map(|span| (span.what, span.millis(), span.failed))
        .collect();
    assert_eq!(
        kinds[..2],
        [(What::Model, 0, true), (What::Unowned, 10_000, false)],
        "{:?}",
        told(&timeline)
    );
    // The model was asked again by the new process, so it worked two seconds at most.
    assert!(timeline.sum(What::Model) <= 2_000, "{:?}", told(&timeline));
    assert!(timeline.sum(What::Tool) <= 2_000, "{:?}", told(&timeline));
}

/// Two seconds of work with a day of waiting between them.
#[test]
fn a_day_of_waiting_is_shortened_and_places_are_moments() {
    const DAY: i64 = 86_400_000;
    let span = |what, from, to| Span {
        what,
        name: "x".into(),
        id: steersman_machine::stored::ids::Id::MAIN,
        from: Time(from),
        to: Time(to),
        line: steersman_machine::stored::ids::Line(1),
        open: false,
        failed: false,
    };
    let mut timeline = Timeline::of([]);
    (timeline.begins, timeline.ends) = (Time(0), Time(DAY + 2_000));
    let spans = vec![
        span(What::Model, 0, 1_000),
        span(What::Wait, 1_000, DAY + 1_000),
        span(What::Tool, DAY + 1_000, DAY + 2_000),
    ];
    timeline.lanes = vec![steersman_views::timeline::Lane {
        agent: steersman_machine::stored::ids::Id::MAIN,
        name: "desk".into(),
        branch: steersman_machine::stored::ids::Id::MAIN,
        depth: 0,
        spans,
    }];
    let axis = Axis::of(&timeline);
    let shortened: Vec<bool> = axis.stretches.iter().map(|s| s.shortened).collect();
    assert_eq!(shortened, [false, true, false]);
    assert!(axis.stretches[1].right - axis.stretches[1].left < 0.1);
    for at in [
        0,
        500,
        1_000,
        DAY / 2,
        DAY + 1_000,
        DAY + 1_999,
        DAY + 2_000,
    ] {
        let place = axis.place(Time(at));
        assert!((0.0..=1.0).contains(&place), "{at}: {place}");
        let back = axis.moment(place).0;
        assert!((back - at).abs() <= 1 + DAY / 1_000_000, "{at}: {back}");
    }
    assert!(axis.place(Time(500)) < axis.place(Time(1_000)));
    // Without any work, all time is drawn to one scale.
    timeline.lanes[0].spans.remove(0);
    timeline.lanes[0].spans.pop();
    assert_eq!(Axis::of(&timeline).stretches.len(), 1);
    // Nothing at all.
    timeline.lanes.clear();
    timeline.ends = timeline.begins;
    assert!(Axis::of(&timeline).place(Time(0)).abs() < f64::EPSILON);
}
