//! `timeline`: lanes of agents over time, on screens of several widths and as a picture; filters over `outcome:`.

use crate::hostile::on_terminal_of;
use crate::world::World;

const NET: &str = r#"name: net
state: { refunded: { type: boolean, default: false }, cents: { type: integer, default: 0 } }
outcome: { refunded: state.refunded, cents: state.cents }
tools:
  refund: { description: Pays., parameters: { cents: integer }, effect: pure, set: { refunded: true, cents: "{{ args.cents }}" } }
  pay: { description: Pays., effect: pure, approve: true, result: Paid. }
agents:
  boss: { description: Leads., system: You lead., tools: [clerk, refund, pay] }
  clerk: { description: Works., system: You work., parameters: { what: string } }
entry: boss
"#;

fn net() -> World {
    let world = World::new();
    world.write("steersman.yaml", NET);
    world.write(
        "script.yaml",
        "boss:
  - { call: { clerk: { what: 'a <b>' }, refund: { cents: 50 } } }
  - { call: { pay: {} } }
  - Done.
clerk: [ Seen. ]
",
    );
    world
}

fn run(world: &World, input: &str) {
    world.run(&["run", "--script-all", "script.yaml", "-i", input]);
}

#[test]
fn a_session_has_lanes_on_the_terminal_and_as_a_picture() {
    let world = net();
    run(&world, "Go.");
    for width in [60, 80, 120, 200] {
        let shown = on_terminal_of(&world, width, &["timeline"]);
        let shown = plain(&shown);
        let rows: Vec<&str> = shown.lines().collect();
        for row in &rows {
            assert!(row.trim_end().chars().count() <= width, "{width}: {row:?}");
        }
        let lane = |name: &str| rows.iter().find(|row| row.starts_with(name));
        let boss = lane("boss").unwrap();
        // On a busy computer the waits may leave its model calls no column of their own.
        assert!(boss.contains(['#', '=']) && boss.contains('.'), "{shown}");
        assert!(lane("  clerk").unwrap().contains('#'), "{shown}");
    }

    let (code, json) = world.json(&["timeline"]);
    assert_eq!(code, Some(0));
    let lanes = json["lanes"].as_array().unwrap();
    assert_eq!(lanes.len(), 2, "{json}");
    let kinds: Vec<&str> = lanes[0]["spans"]
        .as_array()
        .unwrap()
        .iter()
        .map(|span| span["what"].as_str().unwrap())
        .collect();
    for kind in ["model", "agent", "tool", "wait"] {
        assert!(kinds.contains(&kind), "{kind} in {json}");
    }
    assert!(json["axis"]["stretches"].is_array(), "{json}");

    let drawn = world.run(&["timeline", "last", "-o", "line.svg"]);
    assert_eq!(drawn.code, Some(0), "{drawn:?}");
    let svg = std::fs::read_to_string(world.folder.join("line.svg")).unwrap();
    let read = elements(&svg);
    assert!(read > 10, "{svg}");
    for class in ["model", "agent", "wait"] {
        assert!(svg.contains(&format!("class=\"{class}")), "{class}: {svg}");
    }
    // Its own picture is drawn again, and another file is left alone.
    assert_eq!(
        world.run(&["timeline", "last", "-o", "line.svg"]).code,
        Some(0)
    );
    world.write("other.svg", "mine");
    for file in ["other.svg", "line.png"] {
        let refused = world.run(&["timeline", "last", "-o", file]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
    }
}

/// Returns a text of a terminal without its styles.
fn plain(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| {
        plain + part.split_once('m').map_or("", |(_, rest)| rest)
    })
}

/// Counts the elements of a picture, and checks that each is closed.
fn elements(svg: &str) -> usize {
    let opened = svg.matches("<rect").count() + svg.matches("<text").count();
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    assert_eq!(
        svg.matches("<title>").count(),
        svg.matches("</title>").count()
    );
    opened
}

#[test]
fn sessions_are_selected_by_their_outcome() {
    let world = net();
    run(&world, "Go.");
    world.write("script.yaml", "boss: [ Nothing. ]");
    run(&world, "Go.");
    let found = |filter: &str| {
        let rows = world.json_lines(&["sessions", "--where", filter]);
        rows.iter().filter(|row| row["session"].is_string()).count()
    };
    for (filter, many) in [
        ("outcome.refunded = true", 1),
        ("outcome.refunded = false", 1),
        ("outcome.cents >= 50", 1),
        ("outcome.cents < 50 or outcome.refunded = true", 2),
        ("outcome.refunded = true and status = answered", 0),
    ] {
        assert_eq!(found(filter), many, "{filter}");
    }
    let unknown = world.run(&["sessions", "--where", "outcome.refundd = true"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(
        unknown.err.contains("no session has an outcome `refundd`"),
        "{unknown:?}"
    );
}
