//! Calls that wait for places which do not answer.

use super::{Place, claimed, open, row, rows};
use crate::store::{Batch, PlaceWait};
use steersman_machine::ids::{Id, Line, Name, Time};

pub(super) async fn who_waits_for_a_place_comes_oldest_first(place: &impl Place) {
    let store = open(place);
    let (a, b) = (claimed(&store, "a").await, claimed(&store, "b").await);
    let effect = |k| Id::new(Line(1), k);
    let waits = |place: &str, since| Some((Name::from(place), Time(since)));
    let changes = |outages: Vec<(Id, Option<(Name, Time)>)>, n| Batch {
        outages,
        ..rows(vec![row(n, b"x")])
    };
    let of_a = vec![
        (effect(1), waits("up", 30)),
        (effect(2), waits("down", 20)),
        (effect(3), waits("down", 40)),
    ];
    store.append(&a, changes(of_a, 1)).await.expect("written");
    let of_b = vec![
        (effect(1), waits("down", 10)),
        (effect(2), waits("down", 30)),
    ];
    store.append(&b, changes(of_b, 1)).await.expect("written");
    let shown = |found: Vec<PlaceWait>| -> Vec<(String, i64, String, u32)> {
        let shown = |w: PlaceWait| {
            (
                w.place.to_string(),
                w.since.0,
                w.session.to_string(),
                w.effect.k(),
            )
        };
        found.into_iter().map(shown).collect()
    };
    let one =
        |place: &str, since, session: &str, k| (place.to_owned(), since, session.to_owned(), k);
    // The same number for each place: a place that is out for long hides no other.
    let found = store.outages(3).await.expect("read");
    let oldest = [
        one("down", 10, "b", 1),
        one("down", 20, "a", 2),
        one("down", 30, "b", 2),
        one("up", 30, "a", 1),
    ];
    assert_eq!(shown(found), oldest);
    let over = vec![(effect(1), None), (effect(2), waits("up", 50))];
    store.append(&b, changes(over, 2)).await.expect("written");
    drop((a, b, store));
    let found = open(place).outages(9).await.expect("read");
    let left = [
        one("down", 20, "a", 2),
        one("down", 40, "a", 3),
        one("up", 30, "a", 1),
        one("up", 50, "b", 2),
    ];
    assert_eq!(shown(found), left);
}
