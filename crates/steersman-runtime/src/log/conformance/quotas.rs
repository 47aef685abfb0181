//! Limits that workers share.

use super::{Place, open};
use crate::store::{Drawn, Limit, Pause};
use steersman_machine::stored::ids::Time;

pub(super) async fn workers_share_a_limit(place: &impl Place) {
    let (store, other) = (open(place), open(place));
    let limit = Limit {
        place: [7; 32],
        rate: "requests".into(),
        most: 10,
        within: Some(100),
    };
    let drawn = |units, opens| Drawn {
        units,
        opens: Time(opens),
    };
    let draw = async |store: &std::sync::Arc<dyn crate::store::Store>, wanted, now| {
        store.draw(&limit, wanted, Time(now)).await.expect("drawn")
    };
    assert_eq!(draw(&store, 4, 1_000).await, drawn(4, 1_000));
    assert_eq!(draw(&other, 4, 1_050).await, drawn(4, 1_000));
    assert_eq!(
        draw(&store, 4, 1_060).await,
        drawn(2, 1_000),
        "what is left"
    );
    assert_eq!(draw(&store, 1, 1_099).await, drawn(0, 1_000));
    let used = async |now| store.drawn(&limit, Time(now)).await.expect("read");
    assert_eq!(
        [used(1_099).await, used(1_100).await, used(1_099).await],
        [10, 0, 10],
        "a look draws nothing and opens no window"
    );
    other
        .give_back(&limit, drawn(3, 1_000))
        .await
        .expect("given back");
    assert_eq!(draw(&store, 9, 1_099).await, drawn(3, 1_000));
    assert_eq!(
        draw(&store, 9, 1_100).await,
        drawn(9, 1_100),
        "a new window"
    );
    store
        .give_back(&limit, drawn(9, 1_000))
        .await
        .expect("it is late");
    assert_eq!(draw(&other, 9, 1_101).await, drawn(1, 1_100));
    // The clock of another worker is behind: it draws from the same window.
    assert_eq!(draw(&store, 1, 1_050).await, drawn(0, 1_100));
    // The clock was set back: a window that opens far in the future does not count.
    assert_eq!(draw(&other, 2, 500).await, drawn(2, 500));
    // Another limit of the place, with one window without an end.
    let money = Limit {
        rate: "micros".into(),
        within: None,
        ..limit.clone()
    };
    let first = store.draw(&money, 7, Time(600)).await;
    assert_eq!(first.expect("drawn"), drawn(7, 600));
    let rest = other.draw(&money, 7, Time(9_000_000)).await;
    assert_eq!(rest.expect("drawn"), drawn(3, 600));
    // A limit that became smaller gives nothing until the window is over.
    let less = Limit {
        most: 1,
        ..limit.clone()
    };
    let none = store.draw(&less, 1, Time(510)).await;
    assert_eq!(none.expect("drawn"), drawn(0, 500));
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
