//! `memory` lists, finds, rates and forgets what agents remember. Memories outlive sessions; `gc`, `backup` and `fsck`
//! know them.

use crate::world::World;

const SHOP: &str = "
steersman: 1
name: shop
memory: { scope: 'customer/{{ state.customer }}' }
state: { customer: optional string }
secrets: { token: { env: SHOP_TOKEN } }
tools:
  meet: { description: Meets., parameters: { who: string }, set: { customer: '{{ args.who }}' } }
  fetch: { description: Asks., effect: read, http: { url: 'http://127.0.0.1:9/', headers: { X: '{{ secrets.token }}' } } }
agents: { clerk: { system: You help., tools: [memory, artifacts, meet, fetch] } }
";

fn shop() -> World {
    let mut world = World::new();
    world.set("SHOP_TOKEN", "hush-hush-4711");
    world.write("shop/steersman.yaml", SHOP);
    for who in ["ann", "ben"] {
        let script = r#"
clerk:
  - call: { meet: { who: WHO } }
  - call: { memory_save: { name: taste, content: "Likes tea,\u001b[2J and hush-hush-4711.", tags: [drink] } }
  - call: { artifact_write: { name: plan.md, content: "Buy tea." } }
  - call: { memory_save: { name: plan, artifact: plan.md } }
  - Kept.
"#
        .replace("WHO", who);
        world.write("script.yaml", &script);
        let ran = world.run(&["run", "shop", "--script-all", "script.yaml", "--input", who]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    world
}

fn ids(world: &World, args: &[&str]) -> Vec<u64> {
    let all = world.json_lines(args);
    all.iter().filter_map(|m| m["memory"].as_u64()).collect()
}

#[test]
fn what_is_remembered_is_listed_found_and_rated() {
    let world = shop();
    assert_eq!(ids(&world, &["memory"]), [4, 3, 2, 1]);
    let ann = ["memory", "--scope", "customer/ann"];
    assert_eq!(ids(&world, &ann), [2, 1]);
    assert_eq!(
        ids(&world, &["memory", "list", "--session", "last"]),
        [4, 3]
    );
    let search = ["memory", "search", "--scope", "customer/ann", "tea"];
    assert_eq!(ids(&world, &search).len(), 2);
    let shown = world.run(&["memory", "show", "1"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.out.contains("Likes tea,"), "{shown:?}");
    let exact = shown.out.contains("Likes tea,\u{1b}[2J");
    assert!(exact, "a pipe gets each byte: {shown:?}");
    let all = format!(
        "{shown:?} {:?}",
        world.run(&["memory", "show", "1", "--json"])
    );
    assert!(
        !all.contains("hush-hush") && all.contains("(secret)"),
        "{all}"
    );

    assert_eq!(
        world
            .run(&["memory", "rate", "2", "5", "--reason", "true"])
            .code,
        Some(0)
    );
    assert_eq!(ids(&world, &search)[0], 2);
    assert_eq!(world.run(&["memory", "rate", "2", "6"]).code, Some(2));
    assert_eq!(world.run(&["memory", "rate", "99", "1"]).code, Some(2));
    assert_eq!(world.run(&["memory", "show", "99"]).code, Some(2));
    assert_eq!(world.run(&["memory", "forget"]).code, Some(2));
}

#[test]
fn what_is_remembered_is_kept_and_forgotten() {
    let world = shop();
    let gc = |world: &World| world.json(&["gc"]).1["unnamed"].clone();
    assert_eq!(gc(&world), 0);
    assert_eq!(world.run(&["backup", "copy.db"]).code, Some(0));
    assert_eq!(world.run(&["fsck"]).code, Some(0));

    // Memories outlive their session, and so does an artifact that was saved as one.
    let last = world.json_lines(&["sessions"])[0]["session"]
        .as_str()
        .unwrap()
        .to_owned();
    let erased = world.run(&["erase", &last, "--yes"]);
    assert_eq!(erased.code, Some(0), "{erased:?}");
    assert_eq!(ids(&world, &["memory"]), [4, 3, 2, 1]);
    let shown = world.run(&["memory", "show", "4"]);
    assert!(shown.out.contains("Buy tea."), "{shown:?}");
    assert_eq!(world.run(&["fsck"]).code, Some(0));

    let wanted = ["memory", "forget", "--session", &last];
    assert_eq!(world.run(&wanted).code, Some(0));
    assert_eq!(ids(&world, &["memory"]), [4, 3, 2, 1], "not without --yes");
    let erased = world.run(&["erase", &last, "--memory", "--yes"]);
    assert_eq!(erased.code, Some(0), "{erased:?}");
    assert_eq!(ids(&world, &["memory"]), [2, 1]);
    assert_eq!(world.run(&["memory", "forget", "1", "--yes"]).code, Some(0));
    assert_eq!(
        world
            .run(&["memory", "forget", "--scope", "customer/ann", "--yes"])
            .code,
        Some(0)
    );
    assert_eq!(ids(&world, &["memory"]), Vec::<u64>::new());
    assert_eq!(
        gc(&world),
        0,
        "contents are deleted with the memories that named them"
    );
    assert_eq!(world.run(&["fsck"]).code, Some(0));
}

/// A content that cannot be deleted stays in the store: `memory forget` and `erase` say why, and fail.
#[test]
fn what_is_merged_is_kept_and_comes_back() {
    let world = shop();
    let script = r#"
clerk:
  - call: { meet: { who: ann } }
  - call: { memory_save: { name: all, content: "Likes tea and plans to buy it.", replaces: [1, 2] } }
  - call: { memory_save: { name: other, content: "Not hers.", replaces: [3] } }
  - Merged.
"#;
    world.write("script.yaml", script);
    let ran = world.run(&[
        "run",
        "shop",
        "--script-all",
        "script.yaml",
        "--input",
        "tidy",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let shown = world.run(&["log", "last"]).out;
    assert!(shown.contains("there is no memory 3"), "{shown}");
    let ann = ["memory", "--scope", "customer/ann"];
    assert_eq!(ids(&world, &ann), [5]);
    let all = ["memory", "list", "--replaced", "--scope", "customer/ann"];
    assert_eq!(ids(&world, &all), [5, 2, 1]);
    assert_eq!(world.json_lines(&all)[1]["replaced_by"], 5);
    let rows = world.run(&all).out;
    assert_eq!(rows.matches("replaced by 5").count(), 2, "{rows}");
    let search = ["memory", "search", "--scope", "customer/ann", "tea"];
    assert_eq!(ids(&world, &search), [5]);
    let forgot = world.run(&["memory", "forget", "5", "--yes"]);
    assert_eq!(forgot.code, Some(0), "{forgot:?}");
    assert_eq!(ids(&world, &ann), [2, 1]);
}

#[test]
fn a_content_that_is_not_deleted_is_told_with_its_reason() {
    let reads = "BEGIN; SELECT count(*) FROM memory";
    let damages = "INSERT INTO blob (hash, bytes) VALUES (x'00', x'00')";
    for (change, why) in [
        (reads, "another process has it open"),
        (damages, "Conversion error"),
    ] {
        let world = shop();
        let path = world.folder.join(".steersman/sessions.db");
        let store = rusqlite::Connection::open(path).unwrap();
        store.execute_batch(change).unwrap();
        let _reader = (change == reads).then_some(store);
        for (args, again) in [
            (
                &["memory", "forget", "1", "--yes"][..],
                "steersman gc --yes",
            ),
            (
                &["erase", "last", "--yes"][..],
                "steersman erase last --yes",
            ),
        ] {
            let ran = world.run(args);
            assert_eq!(ran.code, Some(4), "{ran:?}");
            assert!(ran.err.contains(why) && ran.err.contains(again), "{ran:?}");
            let is_read = ran.err.contains("Another process reads");
            assert_eq!(is_read, change == reads, "{ran:?}");
        }
        assert_eq!(ids(&world, &["memory"]), [4, 3, 2]);
    }
}

#[test]
fn artifacts_are_rated_by_people() {
    let world = shop();
    let rated = world.run(&[
        "artifacts",
        "last",
        "plan.md",
        "--rate",
        "4",
        "--reason",
        "short",
        "--as",
        "boss",
    ]);
    assert_eq!(rated.code, Some(0), "{rated:?}");
    let (_, shown) = world.json(&["artifacts", "last", "plan.md"]);
    assert_eq!(shown["rating"]["rating"], 4);
    assert_eq!(shown["rating"]["by"], "boss");
    let listed = world.run(&["artifacts"]);
    assert!(listed.out.contains("4 by boss"), "{listed:?}");
    let shown = world.run(&["show", "last"]);
    assert!(!format!("{shown:?}").contains("@person"), "{shown:?}");
    assert!(shown.out.contains("plan.md 4 of 5 by boss"), "{shown:?}");
    for wrong in [["none.md", "4"], ["plan.md", "0"], ["plan.md", "6"]] {
        let refused = world.run(&["artifacts", "last", wrong[0], "--rate", wrong[1]]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
    }
}
