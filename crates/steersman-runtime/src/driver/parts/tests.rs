//! The small parts of a driver, each by itself.

use super::*;
use crate::driver::draft::Offer;
use crate::load::Since;
use crate::session::Fate;
use crate::step::Let;
use crate::store::InboxMessage;
use steersman_machine::network::search::{Method, Plan};
use steersman_machine::search::{Run, Why};
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::ids::{Line, Time};

fn id(n: u64) -> Id {
    Id::new(Line(n), 0)
}

fn offer() -> Offer {
    Offer::new(What::Offer(Box::new(Offered::Clock)))
}

fn raw(effect: Id) -> Offer {
    let raw = Raw::Done(serde_json::Value::Null);
    let attempt = 1;
    Offer::new(What::Raw {
        effect,
        attempt,
        raw,
        by: None,
        simulated: false,
    })
}

fn message(name: &str) -> InboxMessage {
    InboxMessage {
        id: name.into(),
        at: Time(0),
        bytes: [].into(),
    }
}

fn main_branch() -> Branches {
    let mut branches = Branches::default();
    let snapshot = Snapshot::empty();
    let at = (Line::NONE, [0; 32]);
    branches.begins(Id::MAIN, snapshot, at, None, None, Since::default());
    branches
}

#[test]
fn a_branch_is_fresh_while_its_next_tick_has_something_to_take() {
    let mut branches = main_branch();
    branches.offers(id(7), offer());
    assert_eq!(branches.next_fresh(), None, "it has no ticks");
    branches.offers(Id::MAIN, offer());
    assert!(branches.is_fresh(Id::MAIN));
    let taken = branches.take_offers(Id::MAIN).unwrap();
    assert_eq!((taken.len(), branches.next_fresh()), (1, None));
    // The machine left it: it waits until something moves.
    branches.keeps(Id::MAIN, offer());
    assert_eq!(branches.next_fresh(), None);
    branches.moved(Id::MAIN);
    assert_eq!(branches.next_fresh(), Some(Id::MAIN));
    assert_eq!(branches.take_if(Id::MAIN, |_| true).unwrap().len(), 1);
    assert!(branches.recount().is_err(), "it is fresh for nothing");
}

#[test]
fn an_outcome_of_an_effect_that_is_not_open_is_put_aside_before_the_tick() {
    let mut branches = main_branch();
    branches.offers(Id::MAIN, raw(id(3)));
    branches.offers(Id::MAIN, offer());
    assert!(branches.take_offers(Id::MAIN).is_none());
    assert_eq!(branches.follows(), Some(crate::driver::Follows::Over));
    assert_eq!(branches.recount(), Ok(()));
    assert_eq!(branches.take_over().unwrap().1.what.effect(), Some(id(3)));
    assert_eq!(branches.take_offers(Id::MAIN).unwrap().len(), 1);
    assert_eq!((branches.follows(), branches.recount()), (None, Ok(())));
}

#[test]
fn offers_of_a_tick_that_is_done_again_come_before_those_that_came_meanwhile() {
    let mut branches = main_branch();
    branches.offers(Id::MAIN, offer());
    let taken = branches.take_offers(Id::MAIN).unwrap();
    branches.offers(Id::MAIN, raw(id(3)));
    branches.puts_back(Id::MAIN, taken);
    let offers = &branches.live()[&Id::MAIN].offers;
    let effects: Vec<_> = offers.iter().map(|offer| offer.what.effect()).collect();
    assert_eq!(effects, [None, Some(id(3))]);
}

#[test]
fn actions_wait_for_their_lines_in_the_order_of_lines() {
    let mut course = Course::default();
    for line in [5, 3, 4, 3] {
        course.when_durable(Line(line), OnDisk::Start(id(line), 1));
    }
    let fate = Fate::Taken(Line(6));
    course.when_durable(Line(6), OnDisk::Receipt("m".into(), fate));
    assert_eq!(course.recount(), Ok(()));
    assert_eq!(course.on_disk(Line(2)).count(), 0);
    let started: Vec<u64> = course
        .take_on_disk(Line(4))
        .into_iter()
        .map(|then| match then {
            OnDisk::Start(id, _) => id.line().0,
            _ => 0,
        })
        .collect();
    assert_eq!(started, [3, 3, 4]);
    assert!(course.owes_receipt(Some(&"m".into())));
    assert!(!course.owes_receipt(Some(&"n".into())));
    course.take_on_disk(Line(6));
    assert!(!course.owes_receipt(None));
}

#[test]
fn a_session_that_steps_makes_one_line_and_stands() {
    use Stepping as S;
    // The state before, what happens, and the state after.
    type Act = fn(&mut Course);
    let cases: &[(S, Act, S)] = &[
        (S::Free, Course::made_commit, S::Free),
        (S::Line, Course::made_commit, S::Stands),
        (S::Stands, Course::made_commit, S::Stands),
        (S::Free, Course::settled, S::Free),
        (S::Stands, Course::settled, S::Line),
        (S::Free, |c| c.goes_on(Let::Line), S::Free),
        (S::Stands, |c| c.goes_on(Let::Line), S::Line),
        (S::Stands, |c| c.goes_on(Let::Free), S::Free),
    ];
    for (before, act, after) in cases {
        let mut course = Course::default();
        course.steps(*before != S::Free, *before == S::Stands);
        assert_eq!(course.stepping(), *before);
        act(&mut course);
        assert_eq!(course.stepping(), *after, "{before:?}");
    }
}

#[test]
fn batches_that_nobody_waits_for_become_urgent_at_half_of_the_room() {
    let mut course = Course::default();
    let half = crate::driver::HALF.0;
    let urgent = (1..=half).map(|_| course.appends(1, 1, false));
    let urgent: Vec<bool> = urgent.collect();
    let first = urgent.iter().position(|urgent| *urgent);
    assert_eq!(first.map(|at| at as u64 + 1), Some(half));
    assert!(!course.appends(1, 1, false), "it counts from there");
    assert!(course.appends(1, 1, true), "somebody waits for it");
}

#[test]
fn a_message_is_known_until_a_line_accepts_it() {
    let mut mail = Mail::default();
    let event = message("m");
    mail.events_wait([event.clone()]);
    assert!(mail.recount(|_| false).is_err(), "nobody read this event");
    mail.judges(&event);
    assert_eq!(mail.recount(|_| false), Ok(()));
    assert!(mail.recount(|_| true).is_err(), "a line accepted it");
    assert_eq!(mail.take_events().len(), 1);
    assert_eq!(mail.waits_for(&event.id), None);
    mail.waits(&event.id, "an event");
    assert_eq!(mail.waits_for(&event.id), Some("an event"));
    mail.accepts(&event.id);
    assert!(mail.is_empty());
}

#[test]
fn a_notification_runs_waits_and_ends() {
    let mut asides = Asides::default();
    asides.notice_begins(id(1));
    assert_eq!((asides.notifying(), asides.knows(id(1))), (1, true));
    assert!(!asides.delay_is_over(id(1)), "it runs");
    asides.notice_again_soon(id(1));
    assert!(asides.delay_is_over(id(1)) && !asides.knows(id(1)));
    asides.notice_begins(id(1));
    asides.notice_ends(id(1));
    assert_eq!((asides.notifying(), asides.knows(id(1))), (0, true));
    let of_ledger = asides.recount(|_| true, |_| false);
    assert!(of_ledger.is_err(), "the ledger knows it");
}

#[test]
fn model_calls_wait_while_servers_are_asked() {
    let mut servers = Following::default();
    servers.asks(id(1));
    servers.asks(id(2));
    assert!(servers.is_asking() && !servers.has_come());
    servers.came(Vec::new());
    assert!(servers.has_come());
    assert_eq!(servers.take().map(|lists| lists.len()), Some(0));
    assert_eq!(servers.applies().len(), 2);
    assert!(!servers.is_asking() && !servers.has_come());
    assert_eq!(servers.recount(), Ok(()));
    servers.came(Vec::new());
    assert!(servers.recount().is_err(), "nobody was asked");
}

#[test]
fn a_round_of_a_search_is_judged_then_run_part_by_part() {
    let mut searches = Searches::default();
    searches.begins(id(1));
    searches.tries_branch(id(1), id(2));
    let node = (id(2), Line(2));
    let plan = Plan {
        method: Method::Beam,
        n: 2,
        width: 1,
        depth: 1,
        score: None,
        enough: None,
        calls: None,
        tokens: None,
        micros: None,
        seed: None,
        live: false,
    };
    let todo = Todo {
        plan: std::sync::Arc::new(plan),
        judged: [node].into(),
        runs: [(Run::On(0), node)].into(),
        best: Some(node),
    };
    searches.begins_round(id(1), todo);
    let judge = searches.take_part(id(1)).map(|(.., part)| part);
    assert!(matches!(judge, Some(Part::Judge(of)) if of == node));
    assert_eq!(searches.goes_on(), Some(id(1)));
    let run = searches.take_part(id(1)).map(|(.., part)| part);
    assert!(matches!(run, Some(Part::Run(Run::On(0), _))));
    assert_eq!((searches.goes_on(), searches.recount()), (None, Ok(())));
    // The search waits for a tool that judges, and then for the branch that runs.
    searches.judges(id(1), node, Judging::Tool);
    searches.runs(id(1), id(2));
    let due = |searches: &Searches, rests| searches.next_due(|_| rests, |_| false);
    assert_eq!((searches.judging(), due(&searches, true)), (1, None));
    assert!(searches.take_judged(id(1)).is_empty());
    searches.judged(id(1), node, Ok(1.0));
    assert_eq!(
        (due(&searches, false), due(&searches, true)),
        (None, Some(id(1)))
    );
    assert_eq!(searches.take_judged(id(1)).len(), 1);
    assert!(searches.stop(None, Why::Stopped) && !searches.stop(Some(id(9)), Why::Stopped));
    assert_eq!(due(&searches, false), Some(id(1)), "a person stopped it");
    assert!(searches.ends(id(1)) && !searches.ends(id(1)));
    assert!(searches.recount().is_err(), "it tries a branch still");
    searches.leaves(id(2));
    assert_eq!(searches.recount(), Ok(()));
    searches.adopts(id(1));
    searches.refuses(id(3), "why");
    assert_eq!(searches.next_to_adopt(), Some(id(1)));
    assert_eq!(searches.take_to_adopt(id(1)), Some(Ok(())));
    assert_eq!(searches.take_to_adopt(id(3)), Some(Err("why".to_owned())));
    assert!(searches.is_empty());
}

#[test]
fn a_probe_that_runs_outlives_the_doubt() {
    let mut asides = Asides::default();
    asides.leaves(id(1));
    assert!(asides.has_unread());
    assert_eq!(asides.take_unread(), [id(1)]);
    asides.probe_begins(id(2));
    let recounted = asides.recount(|_| false, |_| true);
    assert_eq!((asides.running(), recounted), (1, Ok(())));
    asides.probe_ended(id(2));
    assert!(!asides.is_probing(id(2)) && !asides.has_unread());
}
