//! The guides whose commands start Python (`scripts/python.sh`).

use crate::readme::transcript_is_true;
use crate::world::{self, World};

#[test]
#[ignore = "needs python3"]
fn the_guide_to_a_server_in_python_is_true() {
    let guide = world::root().join("docs/guides/mcp-server.md");
    let world = World::new();
    transcript_is_true(&guide, &world);
    // The call left one reservation, under its key.
    let book = std::fs::read_to_string(world.folder.join("reserved.txt")).unwrap();
    let [line] = book.lines().collect::<Vec<_>>()[..] else {
        panic!("{book}");
    };
    let (key, article) = line.split_once(' ').unwrap();
    assert!(!key.is_empty() && key != "None", "{book}");
    assert_eq!(article, "kettle");
}

#[test]
#[ignore = "needs python3"]
fn the_guide_to_batches_is_true() {
    let guide = world::root().join("docs/guides/batches.md");
    transcript_is_true(&guide, &World::new());
}
