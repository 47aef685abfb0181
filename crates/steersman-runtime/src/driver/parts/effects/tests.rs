//! Each act on an effect with the state after it, tried from every state.

use super::*;
use arbtest::arbitrary::{Result as Drawn, Unstructured};
use std::panic::{AssertUnwindSafe, catch_unwind};
use steersman_machine::stored::commit::Want;
use steersman_machine::stored::interaction::Class;
use steersman_machine::stored::outcome::Failure;
use steersman_machine::tick::effect::ToolWork;

type Act = fn(&mut Effects, Id);

const BEFORE: Id = Id::MAIN;
const LINE: Line = Line(9);
const AT: Time = Time(5);

/// Each act, the state after it, and true if the effect is then among those that may begin now. `None`: as before.
const ACTS: &[(&str, Act, OutState, Option<bool>)] = {
    use OutState as S;
    &[
        ("readies", |e, id| e.readies(id), S::Ready, None),
        (
            "awaits_search",
            |e, id| e.awaits_search(id),
            S::AwaitsSearch,
            Some(false),
        ),
        ("holds", |e, id| e.holds(id), S::Held, Some(false)),
        ("bars", |e, id| e.bars(id), S::Barred, Some(false)),
        (
            "waits_for_slot",
            |e, id| e.waits_for_slot(id),
            S::Queued,
            None,
        ),
        (
            "waits_for_budget",
            |e, id| e.waits_for_budget(id),
            S::Queued,
            None,
        ),
        (
            "waits_for_turn",
            |e, id| e.waits_for_turn(id),
            S::Queued,
            Some(false),
        ),
        (
            "waits_behind",
            |e, id| e.waits_behind(id, BEFORE),
            S::Queued,
            Some(false),
        ),
        (
            "waits_for_step",
            |e, id| e.waits_for_step(id),
            S::Queued,
            Some(true),
        ),
        (
            "starts_with",
            |e, id| _ = e.starts_with(id, LINE),
            S::Starting(LINE),
            Some(false),
        ),
        (
            "starts_behind",
            |e, id| _ = e.starts_behind(id, LINE),
            S::Starting(LINE),
            Some(false),
        ),
        ("begins", |e, id| _ = e.begins(id), S::Running, Some(false)),
        (
            "again_soon",
            |e, id| _ = e.again_soon(id, AT),
            S::Soon(AT),
            None,
        ),
        (
            "tries_now",
            |e, id| e.tries_now(id, AT),
            S::Soon(AT),
            Some(true),
        ),
        (
            "waits_until",
            |e, id| e.waits_until(id, AT),
            S::Later(AT),
            None,
        ),
        (
            "waits_outside",
            |e, id| e.waits_outside(id),
            S::Waits,
            Some(false),
        ),
        (
            "offers_outcome",
            |e, id| _ = e.offers_outcome(id),
            S::Over,
            Some(false),
        ),
    ]
};

fn id(n: u64) -> Id {
    Id::new(Line(n), 0)
}

fn tool(class: Class) -> Work {
    Work::Tool(ToolWork {
        tool: "tool".into(),
        class,
        args: "{}".into(),
        makes: "tool".into(),
        approve: Vec::new(),
        inputs: Vec::new(),
    })
}

fn wished(effects: &mut Effects, id: Id, work: Work) {
    let wish = Wish {
        id,
        agent: Id::MAIN,
        what: Want::Step,
        work,
        due: None,
    };
    effects.wished(Id::MAIN, wish, None, 0, Time(0));
}

/// An effect that was just wished, and the one act that brought it into a state.
fn brought(act: Option<Act>, woken: bool) -> Effects {
    let mut effects = Effects::default();
    wished(&mut effects, id(1), tool(Class::Read));
    if woken {
        effects.wakes(id(1));
    }
    if let Some(act) = act {
        act(&mut effects, id(1));
    }
    effects
}

#[test]
fn each_act_leads_from_each_state_where_the_table_says_and_nowhere_else() {
    for (from, before, state, _) in ACTS {
        for (name, act, next, begins) in ACTS {
            for woken in [false, true] {
                let mut effects = brought(Some(*before), woken);
                let was = effects.next().is_some();
                assert_eq!(effects.outs()[&id(1)].state, *state, "{from}");
                let done = catch_unwind(AssertUnwindSafe(|| act(&mut effects, id(1))));
                let may = state.may_become(*next);
                assert_eq!(done.is_ok(), may, "{from}, then {name}");
                if may {
                    assert_eq!(effects.outs()[&id(1)].state, *next, "{from}, then {name}");
                    assert_eq!(effects.recount(), Ok(()), "{from}, then {name}");
                    let begins = begins.unwrap_or(was);
                    assert_eq!(effects.next().is_some(), begins, "{from}, then {name}");
                }
            }
        }
    }
}

#[test]
fn every_state_but_over_may_still_come_to_over() {
    let mut ends = vec![OutState::Over];
    loop {
        let more = ACTS.iter().map(|(_, _, state, _)| *state);
        let more = more.filter(|s| !ends.contains(s) && ends.iter().any(|end| s.may_become(*end)));
        match more.collect::<Vec<_>>() {
            more if more.is_empty() => break,
            more => ends.extend(more),
        }
    }
    for (name, _, state, _) in ACTS {
        assert!(ends.contains(state), "nothing leads on after {name}");
    }
}

#[test]
fn an_attempt_has_one_number() {
    // The class, the acts, and the attempts that begin.
    let cases: &[(Class, &str, &[u32])] = &[
        (Class::Read, "begin end again begin", &[1, 2]),
        // The cut attempt has not reported its end.
        (Class::Read, "begin cut begin", &[1, 2]),
        (Class::Unsafe, "start begin", &[1]),
        (Class::Unsafe, "start begin end again start begin", &[1, 2]),
        (Class::Idempotent, "start bar again start begin", &[2]),
    ];
    for (class, acts, expected) in cases {
        let mut effects = Effects::default();
        wished(&mut effects, id(1), tool(*class));
        let mut begun = Vec::new();
        for act in acts.split(' ') {
            match act {
                "start" => _ = effects.starts_with(id(1), LINE),
                "begin" => begun.push(effects.begins(id(1))),
                "end" => assert!(effects.reported_end(id(1), begun[begun.len() - 1])),
                "again" => effects.tries_now(id(1), AT),
                "bar" => effects.bars(id(1)),
                _ => assert_eq!(effects.cut_free(), [(id(1), 1)]),
            }
        }
        assert_eq!(begun, *expected, "{class:?}: {acts}");
    }
}

#[test]
fn a_late_wake_wakes_only_what_may_begin() {
    let mut effects = brought(None, false);
    let attempt = effects.starts_with(id(1), LINE);
    effects.line_is_on_disk(id(1), attempt + 1);
    assert_eq!(effects.next(), None, "another attempt");
    effects.line_is_on_disk(id(1), attempt);
    assert_eq!(effects.next_starting(), Some(id(1)));
    effects.bars(id(1));
    effects.line_is_on_disk(id(1), attempt);
    effects.delay_is_over(id(1), attempt);
    effects.wakes(id(1));
    assert_eq!(effects.next(), None, "an order keeps it");
    effects.ended(id(1));
    effects.wakes(id(1));
    assert_eq!((effects.next(), effects.outs().len()), (None, 0));
}

/// Lines on which escrow was drawn; the whole slice, the line on disk, what is reserved, and the line to wait for.
type Escrow<'a> = (&'a [(u64, u64)], [u64; 4]);

#[test]
fn calls_wait_for_the_line_that_covers_what_is_reserved() {
    let amount = |tokens| Amount::new(tokens, 0);
    let cases: &[Escrow<'_>] = &[
        (&[], [100, 0, 100, 0]),
        (&[(3, 50)], [100, 0, 50, 0]),
        (&[(3, 50)], [100, 0, 51, 3]),
        (&[(3, 50)], [100, 3, 51, 0]),
        (&[(3, 20), (4, 30), (5, 10)], [60, 0, 50, 4]),
        (&[(3, 20), (4, 30), (5, 10)], [60, 3, 60, 5]),
    ];
    for (drawn, [slice, durable, reserved, line]) in cases {
        let mut effects = brought(None, false);
        for (line, tokens) in *drawn {
            effects.draws(Line(*line), amount(*tokens));
        }
        effects.reserves(id(1), amount(*reserved));
        let covered = effects.covered_by(Line(*durable), amount(*slice));
        assert_eq!(covered, Line(*line), "{drawn:?}");
        effects.reserves(id(1), amount(7));
        assert_eq!(effects.reserved(), amount(7));
        effects.ended(id(1));
        assert!(effects.reserved().is_zero());
    }
}

#[test]
fn a_recount_agrees_after_any_acts_that_the_table_allows() {
    fn walk(u: &mut Unstructured<'_>) -> Drawn<()> {
        let mut effects = Effects::default();
        while !u.is_empty() {
            let id = id(u.int_in_range(1..=4)?);
            let Some(state) = effects.out(id).map(|out| out.state) else {
                let class = *u.choose(&[Class::Read, Class::Unsafe])?;
                wished(
                    &mut effects,
                    id,
                    u.choose(&[Work::Model, tool(class)])?.clone(),
                );
                continue;
            };
            let (_, act, next, _) = u.choose(ACTS)?;
            match u.int_in_range(0..=9)? {
                0 => drop(effects.ended(id)),
                1 => effects.wakes(id),
                2 => effects.retry_short(),
                3 => effects.look_behind(),
                4 => effects.reserves(id, Amount::new(u.int_in_range(0..=9)?, 1)),
                5 => drop(effects.cut_free()),
                _ if state.may_become(*next) => act(&mut effects, id),
                _ => {}
            }
            assert_eq!(effects.recount(), Ok(()));
            let first = effects.next().and_then(|id| effects.out(id));
            assert!(first.is_none_or(|out| out.state.may_begin()));
        }
        Ok(())
    }
    arbtest::arbtest(walk);
}

#[test]
fn a_call_whose_place_is_down_is_in_an_outage_until_it_is_not_held() {
    use steersman_machine::stored::codes::FailureCode;
    let failure = |why: &str| Failure::new(FailureCode::Unreachable, why);
    let mut effects = Effects::default();
    wished(&mut effects, id(1), Work::Model);
    effects.goes_down(id(1), "first".into(), &failure("down"));
    effects.goes_down(id(1), "second".into(), &failure("down, too"));
    // It is not held yet: it tries the models of its chain.
    effects.keep_outages(|_| false);
    assert!(effects.passes_outage(id(1)));
    let (place, _) = effects.pass_is_over(id(1)).unwrap();
    assert_eq!(&*place, "first");
    assert!(!effects.passes_outage(id(1)) && effects.pass_is_over(id(1)).is_none());
    effects.waits_for_place(id(1), false, Time(0));
    assert!(effects.is_in_outage(id(1)) && effects.seat(id(1)).is_none());
    effects.keep_outages(|_| true);
    assert!(effects.is_in_outage(id(1)));
    // It is kept while the session is parked.
    let (_, kept) = effects.closes(true);
    wished(&mut effects, id(1), Work::Model);
    for (id, kept) in kept {
        effects.completes(id, kept);
    }
    assert!(effects.is_in_outage(id(1)));
    effects.keep_outages(|_| false);
    assert!(!effects.is_in_outage(id(1)));
}
