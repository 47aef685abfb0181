//! Search over branches, as a policy of an agent and by a person: across crashes, budgets, scorers that fail, and cancels.

use crate::spy::Behind;
use crate::world::{Does, World, answered};
use futures::FutureExt;
use serde_json::{Value as Json, json};
use steersman_machine::network::search::{Method, Plan, Scorer};
use steersman_machine::stored::commit::{LedgerEntry, Searching};
use steersman_machine::stored::ids::Id;
use steersman_machine::values::expression::Expr;
use steersman_machine::view::mapping::Fault;
use steersman_runtime::engine::{BranchView, Inspection};
use steersman_runtime::ledger;
use steersman_runtime::session::{Fate, Search, Session, Settled};

/// `main` rolls three times and says so. The best branch has the greatest sum.
const DICE: &str = r#"
state: { sum: { type: integer, default: 0, reduce: sum } }
tools:
  roll: { description: Rolls., parameters: { eyes: integer }, set: { sum: "{{ args.eyes }}" } }
  pay: { description: Pays., effect: unsafe, native: 1 }
  judge: { description: Judges., parameters: { sum: integer }, effect: pure, native: 1 }
agents:
  main: { system: You roll., tools: [roll, pay], SEARCH }
  critic: { description: Judges., parameters: { answer: string }, system: You judge. }
entry: main
"#;

pub(crate) fn dice(search: &str) -> String {
    DICE.replace("SEARCH", search)
}

pub(crate) fn script() -> Json {
    let roll = json!({ "any": [
        { "call": { "roll": { "eyes": 1 } } }, { "call": { "roll": { "eyes": 2 } } }, { "call": { "roll": { "eyes": 3 } } },
        { "call": { "roll": { "eyes": 4 } } }, { "call": { "roll": { "eyes": 5 } } }, { "call": { "roll": { "eyes": 6 } } },
    ] });
    json!({ "main": [roll, roll, roll, "Rolled."] })
}

const METHODS: [&str; 4] = ["best_of", "beam", "rollouts", "mcts"];

pub(crate) async fn seen(world: &World) -> Inspection {
    world.engine.inspect("session").await.unwrap()
}

pub(crate) fn newest(seen: &Inspection) -> (Id, ledger::Search) {
    let (id, search) = seen.ledger.searches().next_back().expect("it searched");
    (id, search.clone())
}

/// The shape of the tree, without ids and lines: number, depth, parent, end, value and cost of each node.
pub(crate) fn shape(seen: &Inspection) -> Vec<String> {
    let (_, search) = newest(seen);
    let tree = seen.ledger.tree(&search);
    let nodes = tree.nodes.iter();
    let mut shape: Vec<String> = nodes
        .map(|n| {
            let parent = n.parent;
            format!(
                "{} {} {parent:?} {} {:?} {}",
                n.number, n.depth, n.over, n.score, n.cost.calls
            )
        })
        .collect();
    let (winner, why) = search.over.clone().expect("it is over");
    let winner = winner.and_then(|(branch, _)| search.number(branch));
    shape.push(format!("{winner:?} {why}"));
    shape
}

fn sum(seen: &Inspection) -> i64 {
    let branch = seen.current_branch().unwrap();
    let cell = branch
        .snapshot
        .state
        .iter()
        .find(|((_, name), _)| **name == *"sum");
    cell.map_or(0, |(_, cell)| cell.value.0.as_i64().unwrap())
}

#[tokio::test]
async fn an_agent_answers_by_each_method_and_takes_over_the_best() {
    for method in METHODS {
        let world = World::new(script());
        let search = format!("search: {{ method: {method}, n: 5, score: state.sum }}");
        let session = world.start(&dice(&search), "Roll.").await;
        assert_eq!(
            answered(&session.settled().await.unwrap()),
            "Rolled.",
            "{method}"
        );
        let seen = seen(&world).await;
        let (_, search) = newest(&seen);
        let tree = seen.ledger.tree(&search);
        let best = tree.nodes.iter().filter_map(|n| match n.score {
            steersman_machine::search::Score::Value(value) => Some(value),
            _ => None,
        });
        let best = best.fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(sum(&seen), best as i64, "{method}");
        let (winner, _) = search.over.clone().unwrap();
        let won = winner.unwrap().0;
        assert!(
            seen.ledger.branch(won).unwrap().adopted.is_some(),
            "{method}"
        );
        for branch in &search.tried {
            let known = seen.ledger.branch(*branch).unwrap();
            assert!(
                known.superseded.is_some(),
                "{method}: a branch of the search goes on"
            );
        }
        assert_eq!(
            world.stack("main").await,
            "U A TC TR A TC TR A TC TR A F",
            "{method}"
        );
    }
}

#[tokio::test]
async fn the_same_seed_makes_the_same_tree_and_another_one_another() {
    let tree = async |seed: u64| {
        let world = World::new(script());
        let search = format!("search: {{ method: mcts, n: 8, score: state.sum, seed: {seed} }}");
        let session = world.start(&dice(&search), "Roll.").await;
        session.settled().await.unwrap();
        shape(&seen(&world).await)
    };
    let first = tree(5).await;
    assert_eq!(first, tree(5).await);
    assert_ne!(first, tree(6).await);
}

/// Drives the session until it settles or the disk takes nothing more.
pub(crate) async fn driven(world: &World, session: &Session) {
    tokio::select! {
        _ = session.settled() => {}
        () = withheld(world) => {}
    }
}

/// Waits until the disk takes nothing more.
async fn withheld(world: &World) {
    while world.store.withheld() == 0 {
        tokio::task::yield_now().await;
    }
    // Lets work that is ahead of the disk go on.
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// Returns the number of model calls of each branch, oldest branch first.
fn calls(seen: &Inspection) -> Vec<u64> {
    let spent =
        |b: &BranchView| steersman_machine::search::spent(&b.snapshot, b.snapshot.top()).calls;
    seen.branches.iter().map(spent).collect()
}

/// Checks that everything that the newest search opened is superseded after its end.
fn assert_left_behind(seen: &Inspection, of: &str) {
    let (_, search) = newest(seen);
    let judges = search.judged.iter().map(|(judge, _)| *judge);
    let root = search.agent.is_none().then_some(search.branch);
    for branch in search.tried.iter().copied().chain(judges).chain(root) {
        let known = seen.ledger.branch(branch).unwrap();
        assert!(known.superseded.is_some(), "{branch} goes on, {of}");
    }
}

#[tokio::test]
async fn a_kill_behind_every_line_makes_the_same_tree() {
    for method in METHODS {
        let search = format!("search: {{ method: {method}, n: 3, score: state.sum }}");
        let definition = dice(&search);
        let world = World::new(script());
        let session = world.start(&definition, "Roll.").await;
        session.settled().await.unwrap();
        let found = seen(&world).await;
        let (whole, lines, calls_of) = (shape(&found), world.store.lines(), calls(&found));
        for kept in 2..lines {
            let world = World::new(script());
            world.store.write_only(kept, Behind::Silence);
            let session = world.start(&definition, "Roll.").await;
            driven(&world, &session).await;
            let world = world.killed().await;
            let session = world.open().await;
            let settled = session.settled().await.unwrap();
            assert_eq!(answered(&settled), "Rolled.", "{method} after {kept}");
            let found = seen(&world).await;
            assert_eq!(shape(&found), whole, "{method} after {kept}");
            assert_eq!(calls(&found), calls_of, "{method} after {kept}");
            assert_left_behind(&found, &format!("{method} after {kept}"));
        }
    }
}

#[tokio::test]
async fn a_kill_behind_every_line_of_a_persons_search_makes_the_same_tree() {
    let search = async |kept: Option<usize>| {
        let world = World::new(script());
        let session = world.start(&dice(""), "Roll.").await;
        session.settled().await.unwrap();
        let before = world.store.lines();
        if let Some(kept) = kept {
            world.store.write_only(kept, Behind::Silence);
        }
        let search = Search {
            at: Some(steersman_machine::stored::ids::Line(1)),
            ..Search::here(plan(Method::Beam, 2))
        };
        let wanted = session.search(search);
        let Some(kept) = kept else {
            wanted.await.unwrap();
            session.settled().await.unwrap();
            let found = seen(&world).await;
            assert_left_behind(&found, "without a kill");
            return (world.store.lines() - before, shape(&found), calls(&found));
        };
        tokio::select! {
            _ = async { wanted.await.unwrap(); session.settled().await } => {}
            () = withheld(&world) => {}
        }
        let world = world.killed().await;
        let session = world.open().await;
        session.settled().await.unwrap();
        let found = seen(&world).await;
        assert_left_behind(&found, &format!("after {kept}"));
        (0, shape(&found), calls(&found))
    };
    let (lines, whole, calls) = search(None).await;
    for kept in 0..lines {
        let (_, shape, made) = search(Some(kept)).await;
        assert_eq!(shape, whole, "after {kept}");
        assert_eq!(made, calls, "after {kept}");
    }
}

/// Returns the nodes of the newest tree with number, depth, parent and value, in an order that does not depend on when they
/// were tried, and the winner.
fn drawn(seen: &Inspection) -> (Vec<String>, Option<u32>) {
    let (_, search) = newest(seen);
    let nodes = seen.ledger.tree(&search).nodes;
    let begun = |parent: Option<usize>| parent.map(|p| (nodes[p].number, nodes[p].depth));
    let row = |n: &steersman_machine::search::Node| {
        let begun = begun(n.parent);
        format!("{} {} {begun:?} {:?}", n.number, n.depth, n.score)
    };
    let mut rows: Vec<String> = nodes.iter().map(row).collect();
    rows.sort_unstable();
    let (winner, why) = search.over.clone().expect("it is over");
    assert_eq!(&*why, "done");
    (rows, winner.and_then(|(branch, _)| search.number(branch)))
}

#[tokio::test]
async fn a_budget_that_never_binds_changes_nothing_of_a_tree() {
    for method in METHODS {
        let tried = async |budget: &str| {
            let world = World::new(script());
            let search = format!("search: {{ method: {method}, n: 4, score: state.sum{budget} }}");
            let session = world.start(&dice(&search), "Roll.").await;
            session.settled().await.unwrap();
            drawn(&seen(&world).await)
        };
        let whole = tried("").await;
        for budget in ["tokens: 1000000000", "cost: 1000000000"] {
            let budget = format!(", budget: {{ {budget} }}");
            assert_eq!(tried(&budget).await, whole, "{method}{budget}");
        }
    }
}

/// The end of a search is recorded once, with the reason why it found nothing: for an agent and for a person.
#[tokio::test]
async fn a_search_that_finds_nothing_says_why_once() {
    for by_person in [false, true] {
        let world = World::new(json!({ "main": [{ "error": "bad" }] }));
        let search = if by_person {
            ""
        } else {
            "search: { n: 2, score: 1 }"
        };
        let session = world.start(&dice(search), "Roll.").await;
        session.settled().await.unwrap();
        if by_person {
            let search = Search {
                at: Some(steersman_machine::stored::ids::Line(1)),
                ..Search::here(plan(Method::BestOf, 2))
            };
            session.search(search).await.unwrap();
            session.settled().await.unwrap();
        }
        let found = seen(&world).await;
        assert_left_behind(&found, "nothing was found");
        let (_, search) = newest(&found);
        let why = found.history.text(search.without.expect("it says why"));
        assert_eq!(&*why, "no branch came to anything");
        let lines = world.lines().await;
        let entries = lines.iter().flat_map(|line| &line.ledger);
        let ends = entries.filter(|entry| match entry {
            LedgerEntry::Search { what, .. } => {
                matches!(what, Searching::Over { .. } | Searching::Without(_))
            }
            _ => false,
        });
        assert_eq!(ends.count(), 2);
    }
}

fn plan(method: Method, n: u32) -> Plan {
    Plan {
        score: Some(Scorer::Expr(Expr::parse("state.sum").unwrap())),
        ..Plan::of(method, n)
    }
}

#[tokio::test]
async fn a_person_searches_and_adopts_what_won() {
    let world = World::new(script());
    let session = world.start(&dice(""), "Roll.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Rolled.");
    let before = sum(&seen(&world).await);
    let refused = session
        .search(Search::here(plan(Method::BestOf, 3)))
        .await
        .unwrap();
    let Fate::Refused(why) = refused.fate else {
        panic!("a search at the end is refused");
    };
    assert!(why.contains("owes a model call"), "{why}");
    let search = Search {
        at: Some(steersman_machine::stored::ids::Line(1)),
        ..Search::here(plan(Method::Beam, 20))
    };
    session.search(search).await.unwrap();
    session.settled().await.unwrap();
    let found = seen(&world).await;
    assert_eq!(sum(&found), before, "the session is as it was");
    let (_, search) = newest(&found);
    assert!(search.agent.is_none());
    let (won, _) = search.over.unwrap().0.unwrap();
    // The session has gone on since that line, and an adoption would lose that.
    let refused = session.adopt(won, None).await.unwrap();
    assert!(matches!(refused.fate, Fate::Refused(_)), "{refused:?}");
}

#[tokio::test]
async fn what_a_person_says_is_searched_and_adopted() {
    let world = World::new(script());
    let session = world.start(&dice(""), "Roll.").await;
    session.settled().await.unwrap();
    let script = json!({ "main": [{ "any": ["Yes.", "No.", "Perhaps."] }] });
    let script = steersman_runtime::model::scripted::Script::parse(&script).unwrap();
    world.model.replace(script);
    let score = Expr::parse("answer == 'Perhaps.'").unwrap();
    let search = Search {
        say: Some("Really?".to_owned()),
        ..Search::here(Plan {
            score: Some(Scorer::Expr(score)),
            ..Plan::of(Method::BestOf, 12)
        })
    };
    session.search(search).await.unwrap();
    session.settled().await.unwrap();
    let (_, search) = newest(&seen(&world).await);
    let (won, _) = search.over.unwrap().0.unwrap();
    session.adopt(won, None).await.unwrap();
    assert_eq!(answered(&session.settled().await.unwrap()), "Perhaps.");
    assert_eq!(
        world.stack("main").await,
        "U A TC TR A TC TR A TC TR A F UR A F"
    );
}

#[tokio::test]
async fn a_budget_ends_with_the_best_so_far() {
    let world = World::new(script());
    let search = "search: { n: 4, score: state.sum, budget: { model_calls: 6 } }";
    let session = world.start(&dice(search), "Roll.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Rolled.");
    let seen = seen(&world).await;
    let (_, search) = newest(&seen);
    let spent = seen.ledger.tree(&search).cost().calls;
    assert_eq!(spent, 6);
    assert_eq!(&*search.over.unwrap().1, "budget");
    // The best branch after two blocks is adopted and goes on live.
    assert_eq!(world.stack("main").await, "U A TC TR A TC TR A TC TR A F");
}

#[tokio::test]
async fn what_cannot_be_judged_is_the_worst_and_never_fatal() {
    let world = World::new(script());
    let score = "search: { n: 3, score: '1 // (state.sum - state.sum)' }";
    let session = world.start(&dice(score), "Roll.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Rolled.");
    let (_, search) = newest(&seen(&world).await);
    assert!(search.stood.iter().all(|s| !matches!(s.score, Some(Ok(_)))));
    assert!(
        search
            .stood
            .iter()
            .any(|s| matches!(s.score, Some(Err(Some(_)))))
    );
}

#[tokio::test]
async fn a_tool_judges_and_may_fail() {
    let world = World::new(script());
    world
        .tools
        .will("judge", Does::NotPerformed(Fault::new("failed", "no")));
    world.tools.will("judge", Does::Done(json!({ "score": 7 })));
    world.tools.will("judge", Does::Done(json!("no number")));
    let session = world
        .start(&dice("search: { n: 3, by: judge }"), "Roll.")
        .await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Rolled.");
    let (_, search) = newest(&seen(&world).await);
    let scores: Vec<_> = search
        .stood
        .iter()
        .filter_map(|s| s.score.clone())
        .collect();
    let usable: Vec<_> = scores.iter().filter_map(|s| s.clone().ok()).collect();
    assert_eq!((scores.len(), usable.len()), (3, 1));
    let args = world.tools.args("judge");
    assert!(args.iter().all(|args| args["sum"].is_number()), "{args:?}");
}

#[tokio::test]
async fn a_critic_judges_on_a_branch_of_its_own() {
    let mut script = script();
    script["main"] = json!([{ "any": ["One.", "Two.", "Three."] }]);
    script["critic"] = json!([{ "any": ["1", "2.5 out of 3", "{\"score\": 3}", "hm"] }]);
    let definition = dice("search: { n: 6, by: critic }");
    let world = World::new(script.clone());
    let session = world.start(&definition, "Say.").await;
    let said = answered(&session.settled().await.unwrap());
    let found = seen(&world).await;
    let (_, search) = newest(&found);
    assert_eq!(search.judged.len(), 6);
    assert_eq!(
        world.stack("main").await,
        "U A F",
        "the critic wrote nothing on this stack"
    );
    let whole = shape(&found);
    for kept in 2..world.store.lines() {
        let world = World::new(script.clone());
        world.store.write_only(kept, Behind::Silence);
        let session = world.start(&definition, "Say.").await;
        driven(&world, &session).await;
        let world = world.killed().await;
        let session = world.open().await;
        assert_eq!(answered(&session.settled().await.unwrap()), said);
        assert_eq!(shape(&seen(&world).await), whole, "after {kept}");
    }
}

#[tokio::test]
async fn where_all_branches_end_as_leaves_one_of_them_goes_on_live() {
    let script = json!({ "main": [{ "call": { "pay": {} } }, "Paid."] });
    let world = World::new(script);
    let session = world
        .start(&dice("search: { n: 3, score: 1 }"), "Pay.")
        .await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Paid.");
    assert_eq!(
        world.tools.count("pay"),
        1,
        "once, on the session, after the adoption"
    );
    let (_, search) = newest(&seen(&world).await);
    assert!(search.stood.iter().all(|s| s.over));
}

#[tokio::test]
async fn one_branch_is_a_search() {
    let world = World::new(script());
    let session = world
        .start(&dice("search: { n: 1, score: 1 }"), "Roll.")
        .await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Rolled.");
    assert_eq!(newest(&seen(&world).await).1.tried.len(), 1);
}

#[tokio::test]
async fn enough_is_enough() {
    let world = World::new(script());
    let search = "search: { method: mcts, n: 50, score: state.sum, enough: 3 }";
    let session = world.start(&dice(search), "Roll.").await;
    session.settled().await.unwrap();
    let (_, search) = newest(&seen(&world).await);
    assert_eq!(&*search.over.unwrap().1, "enough");
    assert_eq!(search.tried.len(), 1);
}

#[tokio::test]
async fn a_branch_that_fails_is_the_worst() {
    let script = json!({ "main": [{ "any": [{ "error": "bad" }, "Well."], "weights": [3, 1] }] });
    let world = World::new(script);
    let session = world
        .start(&dice("search: { n: 12, score: 1 }"), "Roll.")
        .await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Well.");
}

/// Agents search that another agent calls, and that are members of a routed agent.
#[tokio::test]
async fn called_and_routed_agents_search() {
    let called = r#"
agents:
  main: { system: You ask., tools: [helper] }
  helper: { description: Helps., system: You help., search: { n: 8, score: "answer == 'Good.'" } }
entry: main
"#;
    let script = json!({
        "main": [{ "call": { "helper": { "message": "help" } } }, "{{ request.last }}"],
        "helper": [{ "any": ["Good.", "Bad."] }],
    });
    let world = World::new(script);
    let session = world.start(called, "Go.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Good.");
    let routed = r#"
agents:
  desk: { route: { sequence: [one, two] } }
  one: { description: One., system: You are one., search: { n: 8, score: "answer == 'Good.'" } }
  two: { description: Two., system: You are two. }
entry: desk
"#;
    let script = json!({ "one": [{ "any": ["Good.", "Bad."] }], "two": ["End."] });
    let world = World::new(script);
    let session = world.start(routed, "Go.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "End.");
    let found = seen(&world).await;
    let one = found
        .current_branch()
        .unwrap()
        .snapshot
        .agents
        .values()
        .find(|a| *a.def == *"one")
        .cloned();
    assert_eq!(
        &*found.history.text(one.unwrap().turn.answer.unwrap()),
        "Good."
    );
}

#[tokio::test]
async fn a_cancel_in_the_middle_ends_it_all() {
    let mut script = script();
    script["main"][1] = json!({ "call": { "look": {} } });
    let definition = dice("search: { n: 3, score: state.sum }").replace(
        "  pay:",
        "  look: { description: Looks., effect: read, native: 1 }\n  pay:",
    );
    let definition = definition.replace("[roll, pay]", "[roll, pay, look]");
    let world = World::new(script);
    for _ in 0..3 {
        world.tools.will("look", Does::Hangs);
    }
    let session = world.start(&definition, "Roll.").await;
    while world.tools.count("look") < 3 {
        tokio::task::yield_now().await;
    }
    let cancel = steersman_runtime::inbox::CancelWhat::Session;
    session.cancel(cancel, "user").await.unwrap();
    let settled = session.settled().await.unwrap();
    assert!(matches!(&*settled, Settled::Cancelled), "{settled:?}");
    let seen = seen(&world).await;
    let (_, search) = newest(&seen);
    assert_eq!(&*search.over.clone().unwrap().1, "cancelled");
    let gone = |id: &Id| seen.ledger.branch(*id).unwrap().superseded.is_some();
    assert!(search.tried.iter().all(gone));
    let _ = session.settled().now_or_never();
}

#[tokio::test]
async fn a_person_stops_a_search_and_keeps_the_best_so_far() {
    let definition = dice("").replace(
        "  pay:",
        "  look: { description: Looks., effect: read, native: 1 }\n  pay:",
    );
    let definition = definition.replace("[roll, pay]", "[roll, pay, look]");
    let mut script = script();
    script["main"][2] = json!({ "call": { "look": {} } });
    let world = World::new(script);
    let session = world.start(&definition, "Roll.").await;
    session.settled().await.unwrap();
    for _ in 0..2 {
        world.tools.will("look", Does::Hangs);
    }
    let search = Search {
        at: Some(steersman_machine::stored::ids::Line(1)),
        ..Search::here(plan(Method::BestOf, 2))
    };
    session.search(search).await.unwrap();
    while world.tools.count("look") < 3 {
        tokio::task::yield_now().await;
    }
    session.stop_search(None).await.unwrap();
    session.settled().await.unwrap();
    let (_, search) = newest(&seen(&world).await);
    let (winner, why) = search.over.unwrap();
    assert_eq!(&*why, "stopped");
    assert!(winner.is_some());
    let again = session.stop_search(None).await.unwrap();
    assert!(matches!(again.fate, Fate::Refused(_)));
}

#[tokio::test]
async fn too_many_branches_are_refused() {
    let world = World::new(script());
    let session = world.start(&dice(""), "Roll.").await;
    session.settled().await.unwrap();
    let search = Search {
        at: Some(steersman_machine::stored::ids::Line(1)),
        ..Search::here(plan(Method::BestOf, 100_000))
    };
    let refused = session.search(search).await.unwrap();
    let Fate::Refused(why) = refused.fate else {
        panic!("it is refused");
    };
    assert!(why.contains("1000"), "{why}");
}

/// An effect that was only simulated on the way to the winner is performed after the adoption, and what follows it is run
/// again.
#[tokio::test]
async fn nothing_that_was_simulated_on_the_way_is_taken_for_real() {
    for method in METHODS {
        let script = json!({ "main": [
            { "call": { "roll": { "eyes": 2 } } },
            { "call": { "pay": {} } },
            { "call": { "roll": { "eyes": 3 } } },
            "Paid.",
        ] });
        let search = format!("search: {{ method: {method}, n: 4, width: 1, score: state.sum }}");
        let definition = dice(&search).replace(
            "effect: unsafe, native",
            "effect: unsafe, simulate: pretended, native",
        );
        let world = World::new(script);
        let session = world.start(&definition, "Pay.").await;
        assert_eq!(
            answered(&session.settled().await.unwrap()),
            "Paid.",
            "{method}"
        );
        assert_eq!(world.tools.count("pay"), 1, "{method}");
        assert_eq!(sum(&seen(&world).await), 5, "{method}");
    }
}

fn explored(seen: &Inspection) -> (usize, String) {
    let (_, search) = newest(seen);
    let (_, why) = search.over.clone().expect("it is over");
    (seen.ledger.tree(&search).explored(), why.to_string())
}

/// A model call without an answer was made and may have to be paid, so it counts in every budget.
#[tokio::test]
async fn calls_that_fail_count_in_the_budget() {
    for (error, budget, tried) in [
        ("bad", "model_calls: 6", 6),
        // The request was never sent, so it costs no tokens. It counts as a call all the same.
        ("invalid_request", "model_calls: 6", 6),
        ("bad", "tokens: 1", 1),
    ] {
        let world = World::new(json!({ "main": [{ "error": error }] }));
        let search = format!(
            "search: {{ method: mcts, n: 50, width: 50, score: 1, budget: {{ {budget} }} }}"
        );
        let session = world.start(&dice(&search), "Roll.").await;
        session.settled().await.unwrap();
        let found = seen(&world).await;
        assert_eq!(explored(&found), (tried, "budget".to_owned()), "{error}");
        let (_, search) = newest(&found);
        let cost = found.ledger.tree(&search).cost();
        assert_eq!(cost.calls, tried as u64, "{error}: {cost:?}");
        assert_eq!(cost.tokens > 0, error == "bad", "{error}: {cost:?}");
    }
}

/// Each attempt counts as a call, also the attempts of a call that is answered in the end.
#[tokio::test]
async fn a_kill_behind_every_line_counts_failed_calls_the_same() {
    let script = json!({ "main": [
        { "any": [{ "call": { "roll": { "eyes": 3 } } }, { "error": "bad" }] }, "Rolled.",
    ] });
    let definition = dice("search: { n: 4, score: state.sum, budget: { model_calls: 6 } }");
    let world = World::new(script.clone());
    let session = world.start(&definition, "Roll.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Rolled.");
    let whole = shape(&seen(&world).await);
    assert!(
        whole.iter().any(|node| node.contains("Unusable 1")),
        "{whole:?}"
    );
    for kept in 2..world.store.lines() {
        let world = World::new(script.clone());
        world.store.write_only(kept, Behind::Silence);
        let session = world.start(&definition, "Roll.").await;
        driven(&world, &session).await;
        let world = world.killed().await;
        let session = world.open().await;
        session.settled().await.unwrap();
        assert_eq!(shape(&seen(&world).await), whole, "after {kept}");
    }
}

/// Calls reserve what they may cost. Many calls at once must not use up a budget by what they only reserve.
#[tokio::test]
async fn no_more_calls_begin_at_once_than_the_session_can_pay() {
    let world = World::new(json!({ "main": [{ "any": ["Yes.", "No."] }] }));
    let definition = dice("search: { n: 200, score: \"answer == 'Yes.'\" }");
    let definition = format!("limits: {{ tokens: 60000 }}\n{definition}");
    let session = world.start(&definition, "Say.").await;
    assert_eq!(answered(&session.settled().await.unwrap()), "Yes.");
    assert_eq!(explored(&seen(&world).await), (200, "done".to_owned()));
}

/// A session that may spend no more makes no further call for a search, which ends with what it has.
#[tokio::test]
async fn the_limits_of_the_session_end_a_search() {
    for (limit, why) in [
        ("tokens: 9000", "session_tokens"),
        ("tokens: { max: 9000, on_limit: fail }", "session_tokens"),
    ] {
        for by in ["score: \"answer == 'Yes.'\"", "by: critic"] {
            let script = json!({ "main": [{ "any": ["Yes.", "No."] }], "critic": ["1"] });
            let world = World::new(script);
            let definition = dice(&format!("search: {{ n: 200, {by} }}"));
            let definition = format!("limits: {{ {limit} }}\n{definition}");
            let session = world.start(&definition, "Say.").await;
            let settled = session.settled().await.unwrap();
            let found = seen(&world).await;
            let (branches, ended) = explored(&found);
            assert_eq!(ended, why, "{limit}, {by}");
            assert!((1..200).contains(&branches), "{branches}");
            if by != "by: critic" {
                assert_eq!(answered(&settled), "Yes.");
                assert_eq!(world.stack("main").await, "U A F");
            }
        }
    }
}

#[tokio::test]
async fn a_session_that_can_pay_no_call_explores_nothing_and_asks_for_its_own_call() {
    let world = World::new(json!({ "main": ["Yes."] }));
    let definition = format!(
        "limits: {{ tokens: 100 }}\n{}",
        dice("search: { n: 9, score: 1 }")
    );
    let session = world.start(&definition, "Say.").await;
    let settled = session.settled().await.unwrap();
    let Settled::Asks(asked) = &*settled else {
        panic!("{settled:?}");
    };
    assert_eq!(asked.len(), 1, "once, for the answer without the search");
    let found = seen(&world).await;
    assert_eq!(explored(&found), (0, "session_tokens".to_owned()));
    assert!(newest(&found).1.without.is_some());
}
