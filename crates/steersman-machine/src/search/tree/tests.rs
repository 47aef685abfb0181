use super::*;
use crate::network::search::Plan;

/// A driver without models: every block succeeds, and a branch ends after `depth` blocks.
struct World {
    plan: Plan,
    tree: Tree,
    depth: u32,
    rounds: Vec<Vec<Run>>,
}

impl World {
    fn new(plan: Plan, depth: u32) -> Self {
        Self {
            plan,
            tree: Tree::new(Id::MAIN, Line(1)),
            depth,
            rounds: Vec::new(),
        }
    }

    /// Runs the search until it stops.
    fn run(&mut self, value: impl Fn(&Node, usize) -> Option<f64>) -> Stop {
        loop {
            match next(&self.plan, &self.tree) {
                Next::Stop(stop) => return stop,
                Next::Score(nodes) => {
                    for i in nodes {
                        let worth = value(&self.tree.nodes[i], i);
                        self.tree.nodes[i].score = worth.map_or(Score::Unusable, Score::Value);
                    }
                }
                Next::Run(runs) => {
                    assert!(!runs.is_empty(), "a round runs a branch");
                    for run in &runs {
                        self.run_block(*run);
                    }
                    self.rounds.push(runs);
                }
            }
            assert!(self.rounds.len() < 10_000, "the search ends");
        }
    }

    fn run_block(&mut self, run: Run) {
        let (number, from) = match run {
            Run::Open { number, from } => (number, from),
            Run::On(from) => (self.tree.nodes[from].number, from),
        };
        let depth = self.tree.nodes[from].depth + 1;
        let at = Line(self.tree.nodes.len() as u64 + 1);
        self.tree.nodes.push(Node {
            branch: Id::new(Line(u64::from(number)), 0),
            number,
            at,
            parent: Some(from),
            depth,
            over: depth == self.depth,
            cost: Cost {
                calls: 1,
                tokens: 10,
                micros: 5,
            },
            score: Score::None,
        });
    }

    fn winning_branch(&self, stop: Stop) -> u32 {
        self.tree.nodes[stop.winner.expect("something was tried")].number
    }
}

fn node(number: u32, parent: Option<usize>, depth: u32, over: bool, score: Score) -> Node {
    Node {
        branch: Id::new(Line(u64::from(number)), 0),
        number,
        at: Line(u64::from(number) * 10 + u64::from(depth)),
        parent,
        depth,
        over,
        cost: Cost::default(),
        score,
    }
}

#[test]
fn best_of_runs_every_branch_to_its_end_and_takes_the_best() {
    let mut world = World::new(Plan::of(Method::BestOf, 5), 3);
    let stop = world.run(|node, _| Some(if node.number == 4 { 2.0 } else { 1.0 }));
    assert_eq!((stop.why, world.winning_branch(stop)), (Why::Done, 4));
    assert_eq!(
        world.rounds.len(),
        3,
        "a round runs one block of each branch"
    );
    assert!(world.rounds.iter().all(|round| round.len() == 5));
    assert_eq!(seen(&world.tree)[0].visits, 5);
}

#[test]
fn one_branch_is_a_search_and_unusable_scores_give_no_winner() {
    let mut world = World::new(Plan::of(Method::BestOf, 1), 2);
    let stop = world.run(|_, _| Some(0.0));
    assert_eq!((stop.why, world.winning_branch(stop)), (Why::Done, 1));
    let winner = &world.tree.nodes[stop.winner.expect("one")];
    assert!(
        winner.over,
        "a branch that ended wins over one that did not"
    );
    let mut world = World::new(Plan::of(Method::BestOf, 3), 2);
    let stop = world.run(|_, _| None);
    assert_eq!((stop.why, stop.winner), (Why::Done, None));
}

#[test]
fn an_unusable_node_ranks_below_every_value() {
    let mut world = World::new(Plan::of(Method::BestOf, 3), 1);
    let stop = world.run(|node, _| (node.number == 3).then_some(-100.0));
    assert_eq!(world.winning_branch(stop), 3);
}

#[test]
fn of_equal_values_the_first_branch_wins() {
    let mut world = World::new(Plan::of(Method::BestOf, 3), 1);
    let stop = world.run(|_, _| Some(1.0));
    assert_eq!(world.winning_branch(stop), 1);
}

#[test]
fn a_value_that_is_enough_ends_the_search() {
    let plan = Plan {
        enough: Some(1.0),
        ..Plan::of(Method::Mcts, 50)
    };
    let mut world = World::new(plan, 2);
    let stop = world.run(|node, _| Some(if node.number == 3 { 1.0 } else { 0.0 }));
    assert_eq!((stop.why, world.winning_branch(stop)), (Why::Enough, 3));
    assert_eq!(world.tree.branches(), 3);
}

#[test]
fn a_budget_of_calls_is_never_exceeded_and_ends_with_the_best_so_far() {
    for method in [Method::BestOf, Method::Beam, Method::Rollouts, Method::Mcts] {
        for calls in [1, 2, 7, 20] {
            let plan = Plan {
                calls: Some(calls),
                ..Plan::of(method, 8)
            };
            let mut world = World::new(plan, 6);
            let stop = world.run(|_, i| Some(i as f64));
            assert!(world.tree.cost().calls <= calls, "{method:?} {calls}");
            assert_eq!(stop.why, Why::Budget, "{method:?} {calls}");
            assert!(stop.winner.is_some(), "{method:?} {calls}");
        }
    }
}

#[test]
fn a_search_ends_with_the_block_that_used_up_tokens_or_money() {
    let budgets = [(Some(35), None), (None, Some(18))];
    for (tokens, micros) in budgets {
        let plan = Plan {
            tokens,
            micros,
            ..Plan::of(Method::BestOf, 2)
        };
        let mut world = World::new(plan, 9);
        let stop = world.run(|_, _| Some(0.5));
        assert_eq!(stop.why, Why::Budget);
        assert_eq!(world.tree.cost().calls, 4);
    }
}

#[test]
fn a_beam_keeps_its_width_and_goes_on_with_the_best() {
    let plan = Plan {
        width: 2,
        ..Plan::of(Method::Beam, 6)
    };
    let mut world = World::new(plan, 4);
    world.run(|node, _| Some(f64::from(node.number % 4)));
    assert_eq!(world.rounds.len(), 4, "level by level");
    for (level, round) in world.rounds.iter().enumerate() {
        assert_eq!(round.len(), 6, "each level has n new blocks");
        let mut from: Vec<usize> = Vec::new();
        for run in round {
            let Run::Open { from: at, .. } = run else {
                panic!("each block has a branch of its own");
            };
            assert_eq!(world.tree.nodes[*at].depth as usize, level);
            if !from.contains(at) {
                from.push(*at);
            }
        }
        assert_eq!(from.len(), if level == 0 { 1 } else { 2 });
    }
    // The first level has branches 1 to 6, with the values 1, 2, 3, 0, 1 and 2. The beam keeps 3 and, of the equal branches 2 and
    // 6, the first.
    let second: Vec<u32> = world.rounds[1]
        .iter()
        .filter_map(|run| match run {
            Run::Open { from, .. } => Some(world.tree.nodes[*from].number),
            Run::On(_) => None,
        })
        .collect();
    assert_eq!(second, [3, 2, 3, 2, 3, 2]);
}

#[test]
fn the_depth_of_the_plan_ends_longer_branches() {
    let plan = Plan {
        depth: 2,
        ..Plan::of(Method::BestOf, 2)
    };
    let mut world = World::new(plan, 50);
    let stop = world.run(|_, _| Some(1.0));
    assert_eq!(stop.why, Why::Done);
    assert!(world.tree.nodes.iter().all(|n| n.depth <= 2 && !n.over));
    assert!(stop.winner.is_some());
}

#[test]
fn rollouts_continue_a_few_first_blocks_in_turn() {
    let plan = Plan {
        width: 3,
        ..Plan::of(Method::Rollouts, 9)
    };
    let mut world = World::new(plan, 3);
    world.run(|_, _| Some(1.0));
    let firsts: Vec<usize> = world.tree.children(0).collect();
    assert_eq!(firsts.len(), 3);
    let seen = seen(&world.tree);
    assert_eq!(seen[0].visits, 9);
    for first in firsts {
        assert_eq!(seen[first].visits, 3, "all are visited equally often");
    }
}

#[test]
fn the_visits_of_a_node_are_the_ends_at_and_below_it() {
    let mut world = World::new(Plan::of(Method::Mcts, 40), 4);
    let stop = world.run(|node, i| Some(((i * 7 + node.number as usize) % 5) as f64));
    assert_eq!(stop.why, Why::Done);
    let seen = seen(&world.tree);
    assert_eq!(seen[0].visits, 40);
    for (i, node) in world.tree.nodes.iter().enumerate() {
        let below: u32 = world.tree.children(i).map(|c| seen[c].visits).sum();
        let own = u32::from(node.over);
        assert_eq!(seen[i].visits, below + own);
        assert!(
            world.tree.children(i).count() <= 3,
            "at most as wide as the plan"
        );
    }
}

#[test]
fn a_full_tree_ends_the_search_before_all_branches_are_used() {
    let plan = Plan {
        width: 2,
        ..Plan::of(Method::Mcts, 100)
    };
    let mut world = World::new(plan, 2);
    let stop = world.run(|_, _| Some(0.0));
    assert_eq!((stop.why, world.tree.branches()), (Why::Done, 4));
}

/// Two rollouts end below each child of the root. Those below the first child have the values 8 and 6, the others 4 and 6.
#[test]
fn the_upper_confidence_bound_is_as_worked_out_by_hand() {
    let mut tree = Tree::new(Id::MAIN, Line(1));
    tree.nodes.push(node(1, Some(0), 1, false, Score::None));
    tree.nodes
        .push(node(1, Some(1), 2, true, Score::Value(8.0)));
    tree.nodes.push(node(2, Some(0), 1, false, Score::None));
    tree.nodes
        .push(node(2, Some(3), 2, true, Score::Value(4.0)));
    tree.nodes
        .push(node(3, Some(1), 2, true, Score::Value(6.0)));
    tree.nodes
        .push(node(4, Some(3), 2, true, Score::Value(6.0)));
    let seen = seen(&tree);
    assert_eq!((seen[0].visits, seen[1].visits, seen[3].visits), (4, 2, 2));
    assert_eq!((seen[1].mean, seen[3].mean), (Some(7.0), Some(5.0)));
    // Values are scaled between the worst (4) and the best (8): the first child has 1 and 0.5, the second 0 and 0.5.
    // sqrt(2) * sqrt(ln 4 / 2) = 1.177410
    let close = |a: f64, b: f64| (a - b).abs() < 1e-6;
    assert!(close(uct(&seen[1], &seen[0]), 0.75 + 1.177_410));
    assert!(close(uct(&seen[3], &seen[0]), 0.25 + 1.177_410));
    assert!(uct(&Seen::default(), &seen[0]).is_infinite());
    // With a width of 3 the root has room for a third child, so the fifth branch begins there. With a width of 2 the tree is
    // full.
    let plan = Plan {
        width: 3,
        ..Plan::of(Method::Mcts, 9)
    };
    assert_eq!(
        next(&plan, &tree),
        Next::Run(vec![Run::Open { number: 5, from: 0 }])
    );
    let narrow = Plan { width: 2, ..plan };
    assert_eq!(
        next(&narrow, &tree),
        Next::Stop(Stop {
            winner: Some(2),
            why: Why::Done
        })
    );
}

#[test]
fn equal_plans_give_equal_rounds() {
    let run = || {
        let mut world = World::new(Plan::of(Method::Mcts, 30), 3);
        world.run(|_, i| Some((i % 3) as f64));
        world.rounds
    };
    assert_eq!(run(), run());
}

#[test]
fn the_number_of_branches_has_a_bound() {
    let plan = Plan {
        depth: 64,
        ..Plan::of(Method::Beam, 100)
    };
    let mut world = World::new(plan, 60);
    let stop = world.run(|_, _| Some(1.0));
    assert_eq!((stop.why, world.tree.branches()), (Why::Done, MOST));
}

/// A block: the number of its branch and its depth.
type Block = (u32, u32);

/// Returns each block of a tree with its parent, sorted.
fn blocks_with_parents(tree: &Tree) -> Vec<(Block, Option<Block>)> {
    let block = |n: &Node| (n.number, n.depth);
    let parent = |n: &Node| n.parent.map(|p| block(&tree.nodes[p]));
    let nodes = tree.nodes.iter();
    let mut all: Vec<_> = nodes.map(|n| (block(n), parent(n))).collect();
    all.sort_unstable();
    all
}

#[test]
fn a_budget_that_never_binds_changes_nothing_of_a_tree() {
    let much = Some(u64::MAX);
    for method in [Method::BestOf, Method::Beam, Method::Rollouts, Method::Mcts] {
        // At depth 1 every first block is an end, so none can be continued.
        for depth in [1, 3, 5] {
            for n in [1, 4, 7] {
                let run = |plan: Plan| {
                    let mut world = World::new(plan, depth);
                    let worth = |node: &Node| f64::from(node.number * 7 % 5);
                    let stop = world.run(|node, _| Some(worth(node)));
                    (
                        world.winning_branch(stop),
                        stop.why,
                        blocks_with_parents(&world.tree),
                    )
                };
                let plan = Plan::of(method, n);
                let (tokens, micros) = (plan.clone(), plan.clone());
                let whole = run(plan);
                let tokens = run(Plan {
                    tokens: much,
                    ..tokens
                });
                assert_eq!(tokens, whole, "{method:?}, {n} of {depth} blocks");
                let money = run(Plan {
                    micros: much,
                    ..micros
                });
                assert_eq!(money, whole, "{method:?}, {n} of {depth} blocks");
            }
        }
    }
}

#[test]
fn later_branches_give_no_first_blocks() {
    // Both first blocks are ends, so every later branch begins at the root. Branch 3 began there, too, but its first block is
    // not one of the two that later branches continue.
    let plan = Plan {
        width: 2,
        tokens: Some(u64::MAX),
        ..Plan::of(Method::Rollouts, 4)
    };
    let mut tree = Tree::new(Id::MAIN, Line(1));
    for number in 1..=2 {
        tree.nodes
            .push(node(number, Some(0), 1, true, Score::Value(0.0)));
    }
    tree.nodes.push(node(3, Some(0), 1, false, Score::None));
    tree.nodes
        .push(node(3, Some(3), 2, true, Score::Value(0.0)));
    let next = next(&plan, &tree);
    assert_eq!(next, Next::Run(vec![Run::Open { number: 4, from: 0 }]));
}

#[test]
fn a_search_of_no_branches_is_done() {
    for method in [Method::BestOf, Method::Beam, Method::Rollouts, Method::Mcts] {
        let stop = World::new(Plan::of(method, 0), 3).run(|_, _| Some(1.0));
        assert_eq!((stop.winner, stop.why), (None, Why::Done), "{method:?}");
    }
}
