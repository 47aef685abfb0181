//! `demo`: its process is killed after the payment was sent, and resumed; the payment is made once.

use crate::world::World;
use insta::assert_snapshot;

#[test]
fn the_demo_pays_once() {
    let world = World::new();
    let ran = world.run(&["demo"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.out, "1 intended, 1 done, 0 repeated\n");
    assert_snapshot!(world.filter(&ran.err));
    // The session stays in the store, where one can look at it.
    let (code, shown) = world.json(&["show", "last"]);
    assert_eq!(code, Some(0));
    let refund = shown["effects"]
        .as_array()
        .unwrap()
        .iter()
        .find(|e| e["tool"] == "refund")
        .unwrap();
    assert_eq!(
        (&refund["attempts"], &refund["repeated"]),
        (&1.into(), &0.into())
    );
}

/// The demo runs in a folder of its own. The address of a store is relative to the folder where it was typed.
#[test]
fn the_demo_keeps_its_session_in_the_store_that_was_named() {
    let world = World::new();
    let ran = world.run(&["demo", "--store", "sqlite:named.db"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(world.folder.join("named.db").is_file());
}
