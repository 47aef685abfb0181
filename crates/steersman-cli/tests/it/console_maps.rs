//! The maps of the kept sessions (`tests/compat/v1`): the columns that a program gets are recorded next to the rectangles that the console makes of
//! them. `node --test crates/steersman-server/tests/console/` makes the rectangles again. `UPDATE=1` writes what differs.

use crate::frozen::world;
use crate::world::root;
use serde_json::Value as Json;
use steersman::Steersman;
use steersman::views::lanes::Lanes;
use steersman::views::log::Log;
use steersman::views::reader::Stored;

#[tokio::test]
async fn the_maps_of_the_kept_sessions_are_as_recorded() {
    let world = world();
    let listed = world.json_lines(&["sessions", "--all", "--reruns"]);
    let accepted = world.run(&["doctor", "--accept-store"]);
    assert_eq!(accepted.code, Some(0), "{accepted:?}");
    let store = world.folder.join(".steersman/sessions.db");
    let steersman = Steersman::options().open(store).await.unwrap();
    let folder = root().join("crates/steersman-server/tests/console/maps");
    let mut stale = Vec::new();
    for row in &listed {
        let id = row["session"].as_str().unwrap();
        let log = Log::read(&Stored::plain(steersman.engine(), id)).await;
        let log = log.unwrap();
        let mut lanes = Lanes::default();
        log.lines.iter().for_each(|line| lanes.line(line));
        // Each interaction is one entry, and each other entry has the number 0.
        let pushed = log.lines.iter().flat_map(|line| {
            let pushes = line.commit.iter().flat_map(|commit| &commit.pushes);
            (1..).zip(pushes).map(|(k, _)| (line.n.0, k))
        });
        let mut line = 0;
        let entries = lanes.lines.iter().zip(&lanes.k).map(|(step, k)| {
            line += step;
            (line, *k)
        });
        let entries: Vec<(u64, u32)> = entries.filter(|(_, k)| *k > 0).collect();
        assert_eq!(entries, pushed.collect::<Vec<_>>(), "{id}");
        let now = serde_json::to_value(&lanes).unwrap();
        let file = folder.join(format!("{id}.json"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&file, format!("{now}\n")).unwrap();
        }
        let then = std::fs::read_to_string(&file).unwrap_or_default();
        if serde_json::from_str::<Json>(&then).ok() != Some(now) {
            stale.push(file);
        }
    }
    assert!(listed.len() > 5, "{listed:?}");
    assert!(stale.is_empty(), "{stale:?}: UPDATE=1 writes them");
}
