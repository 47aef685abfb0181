//! Long conversations: the cost of a request depends on what is new in it, and not on what is in view.

use arbtest::arbtest;
use std::fmt::Write as _;
use steersman_machine::context::{RenderCache, Request, due_watermarks, request};
use steersman_machine::stored::ids::Id;
use steersman_machine::stored::interaction::End;
use steersman_testkit::log::Log;

/// One agent that looks things up and talks, with everything in view. `RENDER` stands for the rendering of its tool.
const DEFINITION: &str = r#"
state: { note: { type: string, default: none } }
tools:
  look:
    description: Looks.
    parameters: { n: integer }
    effect: read
    command: [echo]
    render: RENDER
agents:
  desk:
    system: You help.
    tools: [look]
    context: { now: "It is {{ now.date }}.", keep_exchanges: 100000 }
entry: desk
"#;

/// Renderings of a tool: a name, the definition, and how many units and segments a turn may look at.
const RENDERINGS: [(&str, &str, u64); 5] = [
    ("plain", "{}", 12),
    (
        "template of its own result",
        r#"{ result: "{{ result }}!" }"#,
        12,
    ),
    (
        "template that reads state",
        r#"{ result: "{{ result }} {{ state.note }}" }"#,
        12,
    ),
    ("stubs", "{ horizon: 4, beyond: stub }", 90),
    ("calls left out", "{ horizon: 4, beyond: drop }", 90),
];

fn ask(log: &Log, agent: Id, cache: &mut RenderCache) -> Request {
    request(&log.cx(), log, &log.snapshot, agent, cache).expect("templates render")
}

fn full(log: &Log, agent: Id) -> Request {
    ask(log, agent, &mut RenderCache::default())
}

fn exchange(log: &mut Log, agent: Id, n: usize) {
    let call = log.line(|l| {
        l.answer(agent, None);
        l.call(agent, "look", &format!(r#"{{"n":{n}}}"#))
    });
    log.line(|l| l.result(agent, call, &format!("seen {n}")));
    for mark in due_watermarks(&log.cx(), &log.snapshot, agent) {
        log.line(|l| l.watermark(mark));
    }
}

fn turn(log: &mut Log, agent: Id, n: usize) {
    log.line(|l| {
        l.answer(agent, Some(&format!("answer {n}")));
        l.finished(agent, End::Turn);
    });
    log.line(|l| l.say(agent, &format!("question {n}")));
}

/// Returns for each turn the number of units and segments that its request looks at.
fn visits(log: &mut Log, agent: Id, turns: usize, step: fn(&mut Log, Id, usize)) -> Vec<u64> {
    let (mut cache, mut visits) = (RenderCache::default(), Vec::new());
    for n in 0..turns {
        step(log, agent, n);
        let before = cache.visited();
        let warm = ask(log, agent, &mut cache);
        visits.push(cache.visited() - before);
        if n % 100 == 0 {
            assert_eq!(warm.digest, full(log, agent).digest, "turn {n}");
        }
    }
    assert_eq!(cache.differed(), 0);
    visits
}

/// Adds a turn to a log.
type Turn = fn(&mut Log, Id, usize);

#[test]
fn a_turn_looks_at_the_same_number_of_units_at_any_length() {
    let mut told = String::new();
    let steps: [(&str, Turn); 2] = [("a loop", exchange), ("a chat", turn)];
    for (what, step) in steps {
        for (rendering, render, most) in RENDERINGS {
            let mut log = Log::new(&DEFINITION.replace("RENDER", render));
            let desk = log.start("desk", "Begin.");
            let visits = visits(&mut log, desk, 500, step);
            let worst = visits[50..].iter().max().expect("there are turns");
            let sum = |turns: std::ops::Range<usize>| visits[turns].iter().sum::<u64>();
            let (early, late) = (sum(50..200), sum(350..500));
            let _ = writeln!(
                told,
                "{what}, {rendering}: at worst {worst}, {early} and {late} in 150 turns"
            );
            assert!(*worst <= most, "{told}");
            // The moves of a boundary may fall on one side of a window or the other.
            assert!(late <= early + 2 * most, "{told}");
        }
    }
}

/// A value that templates read is read once for all of them. When it changes, what shows it is rendered again.
#[test]
fn what_reads_a_value_is_rendered_again_when_it_changes() {
    let (_, render, _) = RENDERINGS[2];
    let mut log = Log::new(&DEFINITION.replace("RENDER", render));
    let desk = log.start("desk", "Begin.");
    let mut cache = RenderCache::default();
    for n in 0..100 {
        exchange(&mut log, desk, n);
        ask(&log, desk, &mut cache);
    }
    log.line(|l| l.write(desk, "note", r#""new""#));
    let before = cache.visited();
    let warm = ask(&log, desk, &mut cache);
    assert_eq!(warm.digest, full(&log, desk).digest);
    assert!(
        cache.visited() - before >= 100,
        "all of them are rendered again"
    );
    let before = cache.visited();
    assert_eq!(ask(&log, desk, &mut cache).digest, warm.digest);
    assert!(cache.visited() - before < 12, "nothing has changed");
}

/// A clone shares what was rendered, and neither sees what the other renders later.
#[test]
fn clones_of_a_cache_do_not_disturb_each_other() {
    arbtest(|u| {
        let (_, render, _) = *u.choose(&RENDERINGS)?;
        let mut log = Log::new(&DEFINITION.replace("RENDER", render));
        let desk = log.start("desk", "Begin.");
        let mut caches = vec![(RenderCache::default(), None::<Request>)];
        for n in 0..u.int_in_range(1..=30)? {
            match u.int_in_range(0..=5)? {
                0 => turn(&mut log, desk, n),
                1 => {
                    let note = format!("\"{}\"", u.int_in_range(0..=2)?);
                    log.line(|l| l.write(desk, "note", &note));
                }
                2 => {
                    let of = u.choose_index(caches.len())?;
                    caches.push(caches[of].clone());
                }
                3 => {
                    let of = u.choose_index(caches.len())?;
                    let (cache, before) = caches.swap_remove(of);
                    caches.push((cache.at_rest(), before));
                }
                _ => exchange(&mut log, desk, n),
            }
            let of = u.choose_index(caches.len())?;
            let (cache, before) = &mut caches[of];
            let (warm, cold) = (ask(&log, desk, cache), full(&log, desk));
            assert_eq!((warm.digest, &warm.segments), (cold.digest, &cold.segments));
            assert_eq!(
                warm.segments.bytes(),
                warm.segments.iter().map(|s| s.len).sum::<u64>()
            );
            shares(before.as_ref(), &warm);
            *before = Some(warm);
        }
        Ok(())
    })
    .budget_ms(2_000);
}

/// The shared prefix of a request is what it shares with the one before.
fn shares(before: Option<&Request>, now: &Request) {
    let Some(before) = before else {
        assert_eq!((now.prefix, now.broke.as_deref()), (0, None));
        return;
    };
    let pairs = before.segments.iter().zip(&now.segments);
    let same = pairs.take_while(|(old, new)| old == new).count();
    let whole: u64 = now.segments.iter().take(same).map(|s| s.len).sum();
    let broke = before.segments.get(same);
    let part = broke.map(|segment| format!("{:?}", segment.part).to_lowercase());
    assert_eq!(now.broke.as_deref(), part.as_deref());
    let most = broke.map_or(0, |segment| segment.len);
    assert!((whole..=whole + most).contains(&now.prefix));
    assert_eq!(before.segments.chain(same), now.segments.chain(same));
}
