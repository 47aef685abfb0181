//! Limits that workers share.

use super::{Place, open};
use crate::store::{Drawn, Limit, Pause, Store, WINDOWS};
use std::sync::Arc;
use steersman_machine::stored::ids::Time;

/// Returns a limit of ten requests of a place.
fn ten_of(place: u8) -> Limit {
    Limit {
        place: [place; 32],
        rate: "requests".into(),
        most: 10,
    }
}

fn drawn(units: u64, opens: i64) -> Drawn {
    Drawn {
        units,
        opens: Time(opens),
    }
}

async fn draw(store: &Arc<dyn Store>, limit: &Limit, wanted: u64, opens: i64) -> Drawn {
    let drawn = store.draw(limit, wanted, Time(opens)).await;
    drawn.expect("drawn")
}

pub(super) async fn workers_share_a_limit(place: &impl Place) {
    let (store, other) = (open(place), open(place));
    let limit = ten_of(7);
    let draw = async |store, wanted, opens| draw(store, &limit, wanted, opens).await;
    assert_eq!(draw(&store, 4, 1_000).await, drawn(4, 1_000));
    assert_eq!(draw(&other, 4, 1_000).await, drawn(4, 1_000));
    assert_eq!(
        draw(&store, 4, 1_000).await,
        drawn(2, 1_000),
        "what is left"
    );
    assert_eq!(draw(&store, 1, 1_000).await, drawn(0, 1_000));
    let used = async |opens| store.drawn(&limit, Time(opens)).await.expect("read");
    assert_eq!(
        [used(1_000).await, used(1_100).await, used(1_000).await],
        [10, 0, 10],
        "a look draws nothing and opens no window"
    );
    other
        .give_back(&limit, drawn(3, 1_000))
        .await
        .expect("given back");
    assert_eq!(draw(&store, 9, 1_000).await, drawn(3, 1_000));
    assert_eq!(
        draw(&store, 9, 1_100).await,
        drawn(9, 1_100),
        "a new window"
    );
    assert_eq!(draw(&other, 9, 1_100).await, drawn(1, 1_100));
    // Another limit of the place.
    let money = Limit {
        rate: "micros".into(),
        ..limit.clone()
    };
    let first = store.draw(&money, 7, Time(1_100)).await;
    assert_eq!(first.expect("drawn"), drawn(7, 1_100));
    let rest = other.draw(&money, 7, Time(1_100)).await;
    assert_eq!(rest.expect("drawn"), drawn(3, 1_100));
    // A limit that became smaller gives nothing until the window is over.
    let less = Limit {
        most: 1,
        ..limit.clone()
    };
    let none = store.draw(&less, 1, Time(1_100)).await;
    assert_eq!(none.expect("drawn"), drawn(0, 1_100));
}

/// Clocks of workers differ and jump: what was drawn from a window is known again when a clock returns to it.
pub(super) async fn a_window_is_known_whatever_the_clock_says(place: &impl Place) {
    let (store, other) = (open(place), open(place));
    let limit = ten_of(8);
    let draw = async |store, wanted, opens| draw(store, &limit, wanted, opens).await;
    let used = async |opens| other.drawn(&limit, Time(opens)).await.expect("read");
    assert_eq!(draw(&store, 8, 1_000).await, drawn(8, 1_000));
    // A clock that is far ahead, and one that is behind.
    assert_eq!(draw(&other, 9, 9_000_000).await, drawn(9, 9_000_000));
    assert_eq!(draw(&other, 5, -9_000_000).await, drawn(5, -9_000_000));
    assert_eq!([used(1_000).await, used(9_000_000).await], [8, 9]);
    // Both are set right.
    assert_eq!(draw(&other, 9, 1_000).await, drawn(2, 1_000));
    store
        .give_back(&limit, drawn(4, 9_000_000))
        .await
        .expect("given back");
    assert_eq!(used(9_000_000).await, 5);
    assert_eq!(draw(&store, 1, 1_000).await, drawn(0, 1_000));
    assert_eq!(draw(&store, 9, 9_000_000).await, drawn(5, 9_000_000));
    // The windows that were drawn from last are kept.
    for n in 1..WINDOWS as i64 {
        assert_eq!(draw(&store, 3, n).await, drawn(3, n));
    }
    assert_eq!(used(9_000_000).await, 10, "the last of those that are kept");
    assert_eq!(used(1_000).await, 0, "it is not kept any more");
    store
        .give_back(&limit, drawn(4, 1_000))
        .await
        .expect("it is late");
    assert_eq!(draw(&other, 2, 1).await, drawn(2, 1));
    assert_eq!([used(1).await, used(2).await], [5, 3]);
    let last = WINDOWS as i64;
    assert_eq!(draw(&other, 1, last).await, drawn(1, last));
    assert_eq!([used(9_000_000).await, used(1).await], [0, 5]);
}

pub(super) async fn pauses_are_known_to_all(place: &impl Place) {
    let (store, other) = (open(place), open(place));
    let pause = |place: u8, model: &str, until| Pause {
        place: [place; 32],
        model: model.into(),
        until: Time(until),
    };
    for given in [
        pause(2, "", 30),
        pause(1, "b", 50),
        pause(1, "a", 10),
        pause(1, "a", 40),
        // Reported last, but ends before the known pause of this model.
        pause(1, "b", 20),
    ] {
        store.pause(given).await.expect("known");
    }
    let known = other.pauses(Time(9)).await.expect("read");
    let all = [pause(1, "a", 40), pause(1, "b", 50), pause(2, "", 30)];
    assert_eq!(known, all);
    let known = other.pauses(Time(40)).await.expect("read");
    assert_eq!(known, [pause(1, "b", 50)]);
}
