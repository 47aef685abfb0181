//! The tree of a search, and the plan of its next round. A block is everything that happens on a branch between two model calls
//! of its agent.

use crate::network::search::{MOST, Method, Plan};
use crate::stored::ids::{Id, Line};

/// Cost of one block, or of several.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Number of model calls.
    pub calls: u64,
    /// Number of tokens.
    pub tokens: u64,
    /// Money, in millionths of the currency.
    pub micros: u64,
}

impl Cost {
    /// Returns the sum, saturating.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            tokens: self.tokens.saturating_add(other.tokens),
            micros: self.micros.saturating_add(other.micros),
        }
    }

    /// Returns the difference to a smaller cost, not below zero.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(other.calls),
            tokens: self.tokens.saturating_sub(other.tokens),
            micros: self.micros.saturating_sub(other.micros),
        }
    }
}

/// Judgement of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Score {
    /// The node is not judged.
    #[default]
    None,
    /// The node was judged, but the judgement cannot be used. It ranks below every value.
    Unusable,
    /// The value of the node; more is better.
    Value(f64),
}

/// A node of the tree: the end of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The branch on which the block ended.
    pub branch: Id,
    /// Number of that branch, from 1; 0 for the root of the tree.
    pub number: u32,
    /// Commit at the end of the block.
    pub at: Line,
    /// Index of the node at which the block began; `None` for the root.
    pub parent: Option<usize>,
    /// Number of blocks from the root.
    pub depth: u32,
    /// True if the branch ended here.
    pub over: bool,
    /// Cost of the block.
    pub cost: Cost,
    /// Judgement of the node.
    pub score: Score,
}

/// The state of a search: its nodes in the order in which they were reached, the root first.
/// Nodes of one round are in the order of their branch numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// The nodes, the root first.
    pub nodes: Vec<Node>,
}

impl Tree {
    /// Returns a tree that has only a root.
    pub fn new(branch: Id, at: Line) -> Self {
        Self {
            nodes: vec![Node {
                branch,
                number: 0,
                at,
                parent: None,
                depth: 0,
                over: false,
                cost: Cost::default(),
                score: Score::None,
            }],
        }
    }

    /// Returns the newest node of each branch, by branch number.
    fn last(&self) -> Vec<usize> {
        let mut last = Vec::new();
        for (i, node) in self.nodes.iter().enumerate().skip(1) {
            let k = node.number as usize;
            if last.len() < k {
                last.resize(k, 0);
            }
            last[k - 1] = i;
        }
        last.retain(|i| *i > 0);
        last
    }

    /// Returns the cost of all blocks.
    pub fn cost(&self) -> Cost {
        self.nodes
            .iter()
            .fold(Cost::default(), |sum, n| sum.plus(n.cost))
    }

    /// Returns the number of branches that have at least one block.
    pub fn explored(&self) -> usize {
        self.last().len()
    }

    /// Returns the greatest branch number of a node.
    pub fn branches(&self) -> u32 {
        self.nodes.iter().map(|n| n.number).max().unwrap_or(0)
    }

    fn children(&self, of: usize) -> impl Iterator<Item = usize> + '_ {
        let all = self.nodes.iter().enumerate();
        all.filter(move |(_, n)| n.parent == Some(of))
            .map(|(i, _)| i)
    }
}

/// The next step of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Judge these nodes.
    Score(Vec<usize>),
    /// Run these branches, each for one block. Plan again after all of them have ended their block.
    Run(Vec<Run>),
    /// End the search.
    Stop(Stop),
}

/// A branch that runs for one block.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Run {
    /// Open a new branch at a node.
    Open {
        /// Number of the new branch.
        number: u32,
        /// Index of the node.
        from: usize,
    },
    /// Continue a branch from its last node, which has this index.
    On(usize),
}

/// The end of a search.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Index of the best node; `None` if no node wins.
    pub winner: Option<usize>,
    /// Reason for the end.
    pub why: Why,
}

/// Reason for the end of a search.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Everything that was planned was tried.
    Done,
    /// The score of a node is at least `enough` of the plan.
    Enough,
    /// The budget is used up.
    Budget,
    /// The session may spend no more tokens.
    Tokens,
    /// The session may spend no more money.
    Money,
    /// A person stopped the search.
    Stopped,
    /// The search is no longer wanted, or its plan cannot be read.
    Cancelled,
}

impl Why {
    /// Returns the word for the log and for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Enough => "enough",
            Self::Budget => "budget",
            Self::Tokens => "session_tokens",
            Self::Money => "session_cost",
            Self::Stopped => "stopped",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Results of the branches at or below a node.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Number of judged branch ends at or below the node.
    pub visits: u32,
    /// Mean of their values; `None` if none of them has a usable value.
    pub mean: Option<f64>,
    /// Sum of their values, each scaled to 0 (the worst of the tree) to 1 (the best).
    sum: f64,
}

fn is_end(plan: &Plan, node: &Node) -> bool {
    node.parent.is_some() && (node.over || node.depth >= plan.depth)
}

/// Returns the next step. It depends on the arguments alone.
pub fn next(plan: &Plan, tree: &Tree) -> Next {
    let judge = |i: &usize| {
        let node = &tree.nodes[*i];
        let wanted = plan.method == Method::Beam && node.parent.is_some();
        node.score == Score::None && (wanted || is_end(plan, node))
    };
    let unjudged: Vec<usize> = (0..tree.nodes.len()).filter(judge).collect();
    if !unjudged.is_empty() {
        return Next::Score(unjudged);
    }
    let stop = |why| {
        let winner = best(tree);
        Next::Stop(Stop { winner, why })
    };
    let is_enough = |node: &Node| match node.score {
        Score::Value(value) => plan.enough.is_some_and(|enough| value >= enough),
        Score::None | Score::Unusable => false,
    };
    if tree.nodes.iter().any(is_enough) {
        return stop(Why::Enough);
    }
    let spent = tree.cost();
    let used_up = |spent: u64, most: Option<u64>| most.is_some_and(|most| spent >= most);
    let mut runs = match plan.method {
        Method::BestOf => independent(plan, tree),
        Method::Beam => level(plan, tree),
        Method::Rollouts => rollouts(plan, tree),
        Method::Mcts => promising(plan, tree),
    };
    if runs.is_empty() {
        return stop(Why::Done);
    }
    // The cost of a block is known only after the block. One block at a time exceeds the budget by one block at most.
    if plan.tokens.is_some() || plan.micros.is_some() {
        runs.truncate(1);
    }
    if used_up(spent.calls, plan.calls)
        || used_up(spent.tokens, plan.tokens)
        || used_up(spent.micros, plan.micros)
    {
        return cut(tree, Why::Budget);
    }
    if let Some(most) = plan.calls {
        let left = usize::try_from(most.saturating_sub(spent.calls)).unwrap_or(usize::MAX);
        runs.truncate(left);
    }
    Next::Run(runs)
}

/// Returns the next step of a search that must end for this reason: judge the newest node of each branch, then stop.
pub fn cut(tree: &Tree, why: Why) -> Next {
    let last = tree.last().into_iter();
    let unjudged: Vec<usize> = last
        .filter(|i| tree.nodes[*i].score == Score::None)
        .collect();
    if unjudged.is_empty() {
        let winner = best(tree);
        return Next::Stop(Stop { winner, why });
    }
    Next::Score(unjudged)
}

/// Returns a run for each branch that has not ended.
fn unended(plan: &Plan, tree: &Tree) -> Vec<Run> {
    let last = tree.last().into_iter();
    last.filter(|i| !is_end(plan, &tree.nodes[*i]))
        .map(Run::On)
        .collect()
}

fn independent(plan: &Plan, tree: &Tree) -> Vec<Run> {
    let mut runs = unended(plan, tree);
    let new = tree.branches() + 1..=plan.n.min(MOST);
    runs.extend(new.map(|number| Run::Open { number, from: 0 }));
    runs
}

/// Opens `width` branches at the root first. Each later branch begins where the first block of one of those ended; they take
/// turns.
fn rollouts(plan: &Plan, tree: &Tree) -> Vec<Run> {
    let mut runs = unended(plan, tree);
    let n = plan.n.min(MOST);
    let (width, have) = (plan.width.max(1).min(n), tree.branches());
    if have < width {
        runs.extend((have + 1..=width).map(|number| Run::Open { number, from: 0 }));
        return runs;
    }
    // Only branches up to `width` give first blocks; later ones do not, even if they begin at the root. So it does not matter
    // whether branches were opened one by one or together.
    let first = |i: &usize| {
        let node = &tree.nodes[*i];
        node.number <= width && !is_end(plan, node)
    };
    let firsts: Vec<usize> = tree.children(0).filter(first).collect();
    for number in have + 1..=n {
        let from = match firsts.len() {
            0 => 0,
            len => firsts[(number - width - 1) as usize % len],
        };
        runs.push(Run::Open { number, from });
    }
    runs
}

/// Completes the deepest level. If it is complete, opens the next one. A level can be incomplete, because a budget of tokens or
/// money opens its branches one by one.
fn level(plan: &Plan, tree: &Tree) -> Vec<Run> {
    let deepest = tree.nodes.iter().map(|n| n.depth).max().unwrap_or(0);
    let above = |n: &&Node| n.depth < deepest;
    let before = tree.nodes.iter().filter(above).map(|n| n.number).max();
    let missing = before.map(|before| below(plan, tree, deepest - 1, before));
    let missing = missing.filter(|runs| !runs.is_empty());
    missing.unwrap_or_else(|| below(plan, tree, deepest, tree.branches()))
}

/// Opens the missing branches of the level below `depth`. They begin at the best nodes of `depth`, and their numbers follow
/// `before`.
fn below(plan: &Plan, tree: &Tree, depth: u32, before: u32) -> Vec<Run> {
    let mut kept: Vec<usize> = (0..tree.nodes.len())
        .filter(|i| tree.nodes[*i].depth == depth && !is_end(plan, &tree.nodes[*i]))
        .collect();
    kept.sort_by(|a, b| {
        let (a, b) = (&tree.nodes[*a], &tree.nodes[*b]);
        rank(b).total_cmp(&rank(a)).then(a.number.cmp(&b.number))
    });
    kept.truncate(plan.width.max(1) as usize);
    if kept.is_empty() {
        return Vec::new();
    }
    let all = (before + 1..=(before + plan.n).min(MOST)).enumerate();
    let have = tree.branches();
    all.filter(|(_, number)| *number > have)
        .map(|(k, number)| Run::Open {
            number,
            from: kept[k % kept.len()],
        })
        .collect()
}

fn rank(node: &Node) -> f64 {
    match node.score {
        Score::Value(value) => value,
        Score::None | Score::Unusable => f64::NEG_INFINITY,
    }
}

/// Runs one branch at a time to its end. A new branch begins at the node with the highest upper confidence bound.
fn promising(plan: &Plan, tree: &Tree) -> Vec<Run> {
    let at_work = unended(plan, tree);
    if !at_work.is_empty() {
        return at_work;
    }
    let number = tree.branches() + 1;
    if number > plan.n.min(MOST) {
        return Vec::new();
    }
    let (seen, width) = (seen(tree), plan.width.max(1) as usize);
    let mut below = vec![Vec::new(); tree.nodes.len()];
    for (i, node) in tree.nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            below[parent].push(i);
        }
    }
    let mut used = vec![false; tree.nodes.len()];
    // Children are after their parents in the list.
    for i in (0..tree.nodes.len()).rev() {
        let open = below[i].iter().any(|child| !used[*child]);
        used[i] = is_end(plan, &tree.nodes[i]) || (below[i].len() >= width && !open);
    }
    if used[0] {
        return Vec::new();
    }
    let mut at = 0;
    loop {
        if below[at].len() < width {
            return vec![Run::Open { number, from: at }];
        }
        let open = below[at].iter().filter(|i| !used[**i]);
        let found = open.max_by(|a, b| {
            let (x, y) = (uct(&seen[**a], &seen[at]), uct(&seen[**b], &seen[at]));
            x.total_cmp(&y).then(b.cmp(a))
        });
        match found {
            Some(child) => at = *child,
            None => return Vec::new(),
        }
    }
}

/// Returns the upper confidence bound of a node: its mean, scaled to 0 to 1, plus a bonus that shrinks with its
/// visits.
fn uct(node: &Seen, parent: &Seen) -> f64 {
    if node.visits == 0 {
        return f64::INFINITY;
    }
    let visits = f64::from(node.visits);
    let wide = f64::from(parent.visits.max(1)).ln() / visits;
    node.sum / visits + std::f64::consts::SQRT_2 * wide.sqrt()
}

/// Returns the results at each node. Of each branch the newest node counts, if it is judged: for itself and for all nodes above
/// it.
pub fn seen(tree: &Tree) -> Vec<Seen> {
    let values = || {
        tree.nodes.iter().filter_map(|n| match n.score {
            Score::Value(value) => Some(value),
            Score::None | Score::Unusable => None,
        })
    };
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(f64::NEG_INFINITY, f64::max);
    let share = |value: f64| {
        if high > low {
            (value - low) / (high - low)
        } else {
            0.5
        }
    };
    let mut seen = vec![Seen::default(); tree.nodes.len()];
    let mut usable = vec![(0_u32, 0.0_f64); tree.nodes.len()];
    for end in tree.last() {
        let value = match tree.nodes[end].score {
            Score::None => continue,
            Score::Unusable => None,
            Score::Value(value) => Some(value),
        };
        let mut at = Some(end);
        while let Some(i) = at {
            seen[i].visits += 1;
            if let Some(value) = value {
                seen[i].sum += share(value);
                usable[i].0 += 1;
                usable[i].1 += value;
            }
            at = tree.nodes[i].parent;
        }
    }
    for (seen, (count, sum)) in seen.iter_mut().zip(usable) {
        seen.mean = (count > 0).then(|| sum / f64::from(count));
    }
    seen
}

/// Returns the best node: the one with the highest value. Of equal ones a node at the end of its branch wins, then the branch that
/// was opened first, then the newest node. Nodes without a judgement rank last.
pub fn best(tree: &Tree) -> Option<usize> {
    // A node without a usable judgement never wins: the branch or its judge failed. If no judgement is usable, no node wins.
    let usable = |i: &usize| tree.nodes[*i].score != Score::Unusable;
    let has = |of: fn(&Score) -> bool| tree.nodes.iter().any(|node| of(&node.score));
    if has(|score| *score == Score::Unusable) && !has(|score| matches!(score, Score::Value(_))) {
        return None;
    }
    let mut nodes: Vec<usize> = (1..tree.nodes.len()).filter(usable).collect();
    nodes.sort_by(|a, b| {
        let (x, y) = (&tree.nodes[*a], &tree.nodes[*b]);
        rank(y)
            .total_cmp(&rank(x))
            .then(y.over.cmp(&x.over))
            .then(x.number.cmp(&y.number))
            .then(y.at.cmp(&x.at))
    });
    nodes.first().copied()
}

#[cfg(test)]
mod tests;
