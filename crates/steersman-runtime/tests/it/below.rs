//! Searches of agents that other agents called, and calls inside a search: everything that a branch spent since the root of
//! its tree counts.

use crate::search::{driven, newest, seen, shape};
use crate::spy::Behind;
use crate::world::{World, answered};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use steersman_machine::search::Cost;
use steersman_machine::stored::commit::LedgerEntry;
use steersman_machine::stored::ids::Id;

/// `top` calls `chooser`, which picks a number by search. A test replaces the words in capitals.
const PICKS: &str = r#"
state: { seats: { type: integer, default: 0 } }
tools:
  pick: { description: Picks., parameters: { seats: integer }, set: { seats: "{{ args.seats }}" } }
agents:
  top: { system: You ask., tools: [chooser], TOP }
  chooser:
    description: Chooses.
    parameters: { people: integer }
    system: You choose.
    tools: [pick, MORE]
    search: { SEARCH }
  helper: { description: Helps., system: You help., search: { n: 3, score: 1 } }
entry: ENTRY
"#;

const METHODS: [&str; 4] = ["best_of", "beam", "rollouts", "mcts"];

fn picks(search: &str) -> String {
    let definition = PICKS.replace("SEARCH", search).replace(", TOP", "");
    definition.replace(", MORE", "").replace("ENTRY", "top")
}

fn script() -> Json {
    let pick = |seats: u32| json!({ "call": { "pick": { "seats": seats } } });
    json!({
        "top": [{ "call": { "chooser": { "people": 4 } } }, "Seated."],
        "chooser": [{ "any": [pick(2), pick(4), pick(6)] }, "Chosen."],
    })
}

/// Returns the cost of these branches, from the spending entries of the log.
async fn paid(world: &World, branches: &[Id]) -> Cost {
    let branches: BTreeSet<Id> = branches.iter().copied().collect();
    let lines = world.lines().await;
    let on = lines.iter().filter(|line| branches.contains(&line.branch));
    on.flat_map(|line| &line.ledger)
        .filter_map(|entry| match *entry {
            LedgerEntry::Spend { tokens, micros, .. } => Some(Cost {
                calls: 1,
                tokens,
                micros,
            }),
            _ => None,
        })
        .fold(Cost::default(), Cost::plus)
}

/// Checks that the cost in the tree of the only search is the spending on its branches. Returns it, with the reason why the
/// search ended.
async fn counted(world: &World) -> (Cost, String) {
    let found = seen(world).await;
    assert_eq!(
        found.ledger.searches().count(),
        1,
        "no search inside the search"
    );
    let (_, search) = newest(&found);
    let tree = found.ledger.tree(&search);
    assert!(
        tree.nodes.iter().skip(1).all(|node| node.cost.calls > 0),
        "each block is a model call at least: {:?}",
        tree.nodes
    );
    assert_eq!(tree.cost(), paid(world, &search.tried).await);
    let (_, why) = search.over.expect("it is over");
    (tree.cost(), why.to_string())
}

#[tokio::test]
async fn a_budget_of_who_was_called_counts_from_the_first_block_on() {
    for method in METHODS {
        let of = format!("method: {method}, n: 6, score: state.seats == 4");
        for (budget, most) in [
            ("model_calls: 2", 2),
            ("model_calls: 3", 3),
            ("tokens: 1", 1),
        ] {
            let world = World::new(script());
            let search = format!("{of}, budget: {{ {budget} }}");
            let session = world.start(&picks(&search), "Sit.").await;
            assert_eq!(answered(&session.settled().await.unwrap()), "Seated.");
            let (cost, why) = counted(&world).await;
            assert_eq!(
                (cost.calls, &*why),
                (most, "budget"),
                "{method}, {budget}: {cost:?}"
            );
        }
    }
}

/// A search of an agent costs the same whether the agent is the entry or another agent called it.
#[tokio::test]
async fn a_tree_costs_the_same_whoever_asks() {
    for method in METHODS {
        let mut costs = Vec::new();
        for entry in ["top", "chooser"] {
            let world = World::new(script());
            let search = format!("method: {method}, n: 4, score: state.seats");
            let definition = picks(&search).replace("entry: top", &format!("entry: {entry}"));
            let session = world.start(&definition, "Sit.").await;
            session.settled().await.unwrap();
            let (cost, _) = counted(&world).await;
            costs.push(cost.calls);
        }
        assert_eq!(costs[0], costs[1], "{method}");
    }
}

/// Calls of agents inside a search belong to the blocks of its branches, and the called agents do not search.
#[tokio::test]
async fn who_is_called_inside_a_search_counts_and_does_not_search() {
    let inside = json!({
        "top": [{ "call": { "chooser": { "people": 4 } } }, "Seated."],
        "chooser": [
            { "call": { "helper": { "message": "Help." } } },
            { "call": { "pick": { "seats": 4 } } },
            "Chosen.",
        ],
        "helper": [{ "any": ["Here.", "There."] }],
    });
    for (top, entry) in [("", "top"), (", search: { n: 2, score: 1 }", "top")] {
        let search = "n: 3, score: state.seats == 4, budget: { model_calls: 5 }";
        let definition = PICKS
            .replace("SEARCH", search)
            .replace(", TOP", top)
            .replace("MORE", "helper")
            .replace("ENTRY", entry);
        let world = World::new(inside.clone());
        let session = world.start(&definition, "Sit.").await;
        assert_eq!(answered(&session.settled().await.unwrap()), "Seated.");
        let (cost, why) = counted(&world).await;
        if top.is_empty() {
            // Each first block is two calls, so one round of three blocks uses up a budget of five.
            assert_eq!((cost.calls, &*why), (6, "budget"));
        } else {
            assert_eq!((cost.calls, &*why), (12, "done"), "six calls a branch");
        }
    }
}

#[tokio::test]
async fn a_kill_behind_every_line_of_a_search_below_makes_the_same_tree() {
    for method in METHODS {
        let search = format!("method: {method}, n: 3, score: state.seats");
        let definition = picks(&search);
        let world = World::new(script());
        let session = world.start(&definition, "Sit.").await;
        assert_eq!(answered(&session.settled().await.unwrap()), "Seated.");
        let whole = shape(&seen(&world).await);
        for kept in 2..world.store.lines() {
            let world = World::new(script());
            world.store.write_only(kept, Behind::Silence);
            let session = world.start(&definition, "Sit.").await;
            driven(&world, &session).await;
            let world = world.killed().await;
            let session = world.open().await;
            let settled = session.settled().await.unwrap();
            assert_eq!(answered(&settled), "Seated.", "{method} after {kept}");
            assert_eq!(shape(&seen(&world).await), whole, "{method} after {kept}");
        }
    }
}
