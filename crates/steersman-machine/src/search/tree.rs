//! The tree of a search, and what is done next.

use super::{Method, Plan};
use crate::ids::{Id, Line};

/// Branches of one search at most.
pub const MOST: u32 = 1000;

/// What one block cost.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Model calls.
    pub calls: u64,
    /// Tokens.
    pub tokens: u64,
    /// Money, in millionths of the currency.
    pub micros: u64,
}

impl Cost {
    /// The sum; stays at the greatest number.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            tokens: self.tokens.saturating_add(other.tokens),
            micros: self.micros.saturating_add(other.micros),
        }
    }

    /// What is more in it than in another.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(other.calls),
            tokens: self.tokens.saturating_sub(other.tokens),
            micros: self.micros.saturating_sub(other.micros),
        }
    }
}

/// What a node was judged to be worth.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Score {
    /// Nobody judged it.
    #[default]
    None,
    /// What came of judging could not be used: as bad as the worst.
    Unusable,
    /// So much.
    Value(f64),
}

/// The end of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The branch on which it was reached.
    pub branch: Id,
    /// The number of that branch, from 1; 0: the root of the tree.
    pub number: u32,
    /// Its commit.
    pub at: Line,
    /// The node at which its block began; none of the root.
    pub parent: Option<usize>,
    /// Blocks from the root.
    pub depth: u32,
    /// The branch came to its end here.
    pub over: bool,
    /// What its block cost.
    pub cost: Cost,
    /// What it is worth.
    pub score: Score,
}

/// A search so far: nodes in the order in which they were reached, the root first; those of one round by the numbers of
/// their branches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// The nodes.
    pub nodes: Vec<Node>,
}

impl Tree {
    /// A tree of only a root.
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

    /// The newest node of each branch, by number.
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

    /// What all of it cost.
    pub fn cost(&self) -> Cost {
        self.nodes
            .iter()
            .fold(Cost::default(), |sum, n| sum.plus(n.cost))
    }

    /// Branches that were gone on with for at least one block.
    pub fn explored(&self) -> usize {
        self.last().len()
    }

    /// The greatest number of a branch that came to a node.
    pub fn branches(&self) -> u32 {
        self.nodes.iter().map(|n| n.number).max().unwrap_or(0)
    }

    fn children(&self, of: usize) -> impl Iterator<Item = usize> + '_ {
        let all = self.nodes.iter().enumerate();
        all.filter(move |(_, n)| n.parent == Some(of))
            .map(|(i, _)| i)
    }
}

/// What is done next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// These nodes are judged.
    Score(Vec<usize>),
    /// These branches go on, each for one block. It is planned anew when all of them stand.
    Run(Vec<Run>),
    /// It is over.
    Stop(Stop),
}

/// A branch goes on for one block.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Run {
    /// A new one, which begins at this node.
    Open {
        /// Its number.
        number: u32,
        /// The node.
        from: usize,
    },
    /// From its last node, which is this.
    On(usize),
}

/// The end of a search.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The node that is worth most; none: there is none.
    pub winner: Option<usize>,
    /// Why.
    pub why: Why,
}

/// Why a search is over.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// All that was planned was tried.
    Done,
    /// One is worth enough.
    Enough,
    /// The budget is used up.
    Budget,
    /// The session may spend no more tokens.
    Tokens,
    /// The session may spend no more money.
    Money,
    /// Somebody wanted it.
    Stopped,
    /// What it was for is no longer wanted.
    Cancelled,
}

impl Why {
    /// As the log and people say it.
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

/// What came of a node so far.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Ends of branches at or below it.
    pub visits: u32,
    /// The mean of what they are worth; none if none of them is worth a number.
    pub mean: Option<f64>,
    /// The sum of what they are worth, each between 0, the worst of the tree, and 1, the best.
    sum: f64,
}

fn is_end(plan: &Plan, node: &Node) -> bool {
    node.parent.is_some() && (node.over || node.depth >= plan.depth)
}

/// What is done next. A function of its arguments and of nothing else.
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
    let worth = |node: &Node| match node.score {
        Score::Value(value) => plan.enough.is_some_and(|enough| value >= enough),
        Score::None | Score::Unusable => false,
    };
    if tree.nodes.iter().any(worth) {
        return stop(Why::Enough);
    }
    let spent = tree.cost();
    let over = |spent: u64, most: Option<u64>| most.is_some_and(|most| spent >= most);
    let mut runs = match plan.method {
        Method::BestOf => independent(plan, tree),
        Method::Beam => level(plan, tree),
        Method::Rollouts => rollouts(plan, tree),
        Method::Mcts => promising(plan, tree),
    };
    if runs.is_empty() {
        return stop(Why::Done);
    }
    // What a block costs is known when it is over: so that no more than one is beyond the budget, they come one by one.
    if plan.tokens.is_some() || plan.micros.is_some() {
        runs.truncate(1);
    }
    if over(spent.calls, plan.calls)
        || over(spent.tokens, plan.tokens)
        || over(spent.micros, plan.micros)
    {
        return cut(tree, Why::Budget);
    }
    if let Some(most) = plan.calls {
        let left = usize::try_from(most.saturating_sub(spent.calls)).unwrap_or(usize::MAX);
        runs.truncate(left);
    }
    Next::Run(runs)
}

/// Nothing more can be tried, for this reason: what was begun is judged as it stands, then it is over.
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

/// Branches that have not come to their end.
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

/// First some that begin at the root; then, from the ends of their first blocks, the rest in turn.
fn rollouts(plan: &Plan, tree: &Tree) -> Vec<Run> {
    let mut runs = unended(plan, tree);
    let n = plan.n.min(MOST);
    let (width, have) = (plan.width.max(1).min(n), tree.branches());
    if have < width {
        runs.extend((have + 1..=width).map(|number| Run::Open { number, from: 0 }));
        return runs;
    }
    // Later ones that begin at the root are none of them, whether they came one by one or all at once.
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

/// What is missing of the deepest level, which a budget fills one by one; else the next one.
fn level(plan: &Plan, tree: &Tree) -> Vec<Run> {
    let deepest = tree.nodes.iter().map(|n| n.depth).max().unwrap_or(0);
    let above = |n: &&Node| n.depth < deepest;
    let before = tree.nodes.iter().filter(above).map(|n| n.number).max();
    let missing = before.map(|before| below(plan, tree, deepest - 1, before));
    let missing = missing.filter(|runs| !runs.is_empty());
    missing.unwrap_or_else(|| below(plan, tree, deepest, tree.branches()))
}

/// What is not opened yet of the level below this depth: of that the best go on. Its numbers follow upon `before`.
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

/// One branch at a time, to its end: it begins at the node that promises most.
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
    // Children come behind their parents.
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

/// The upper confidence bound of a node: its mean between 0 and 1, and more the less often it was tried.
fn uct(node: &Seen, parent: &Seen) -> f64 {
    if node.visits == 0 {
        return f64::INFINITY;
    }
    let visits = f64::from(node.visits);
    let wide = f64::from(parent.visits.max(1)).ln() / visits;
    node.sum / visits + std::f64::consts::SQRT_2 * wide.sqrt()
}

/// What came of each node so far: the newest judged node of each branch counts for itself and for all above it.
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

/// The node that is worth most: of several that are worth the same one that came to its end, then the one of the branch that
/// was opened first. Where nothing is worth a number, the first that came to its end, else the first.
pub fn best(tree: &Tree) -> Option<usize> {
    // What nobody could judge is no winner: it failed, or its judge did. Nor is what lies on the way to it.
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
