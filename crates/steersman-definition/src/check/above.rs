//! The agents above each agent or tool, as one row of bits for each cycle of names. Even the widest and deepest definition
//! that a file can hold is analysed quickly.

use super::reach::Edges;
use std::collections::BTreeMap;
use steersman_machine::network::{Does, Network};
use steersman_machine::stored::ids::Name;

/// For each name, the agents that lead to it, itself included. Only routers, and agents that have state, are recorded.
pub(super) struct Above {
    /// The cycle that a name belongs to. A name outside all cycles has a cycle of its own.
    circles: BTreeMap<Name, usize>,
    /// The position of each agent's bit in a row.
    bits: BTreeMap<Name, usize>,
    /// For each cycle, the bits of the agents above it.
    rows: Vec<Vec<u64>>,
    /// For each cycle, true if it contains an agent or an agent leads to it.
    used: Vec<bool>,
}

impl Above {
    pub(super) fn new(network: &Network, edges: &Edges) -> Self {
        let agents = network.agents.values();
        let recorded = agents.filter(|a| !a.state.is_empty() || matches!(a.does, Does::Route(_)));
        let bits: BTreeMap<Name, usize> = recorded.map(|a| a.name.clone()).zip(0..).collect();
        let found = Circles::of(network, edges);
        let mut rows = vec![vec![0; bits.len().div_ceil(64)]; found.circles.len()];
        let mut used = vec![false; found.circles.len()];
        // a cycle has a higher number than the cycles it leads to, so its row is complete before they read it
        for circle in (0..found.circles.len()).rev() {
            for name in &found.circles[circle] {
                used[circle] |= network.agents.contains_key(*name);
                if let Some(bit) = bits.get(*name) {
                    rows[circle][bit / 64] |= 1 << (bit % 64);
                }
            }
            for name in &found.circles[circle] {
                for to in edges.get(*name).into_iter().flatten() {
                    let to = found.of[to];
                    if to != circle {
                        let (below, above) = rows.split_at_mut(circle);
                        let pairs = below[to].iter_mut().zip(&above[0]);
                        pairs.for_each(|(below, above)| *below |= above);
                        used[to] |= used[circle];
                    }
                }
            }
        }
        let circles = found.of.into_iter();
        Self {
            circles: circles.map(|(name, at)| (name.clone(), at)).collect(),
            bits,
            rows,
            used,
        }
    }

    /// Returns true if `name` is an agent or an agent leads to it.
    pub(super) fn has(&self, name: &Name) -> bool {
        self.circles.get(name).is_some_and(|at| self.used[*at])
    }

    /// Returns true if `agent` leads to `name` or is `name`. Always false for an agent that has no state and is not a router.
    pub(super) fn is(&self, agent: &Name, name: &Name) -> bool {
        let (Some(bit), Some(at)) = (self.bits.get(agent), self.circles.get(name)) else {
            return false;
        };
        self.rows[*at][bit / 64] >> (bit % 64) & 1 == 1
    }
}

/// Groups of names that lead to each other. A group has a higher number than the groups it leads to.
pub(super) struct Circles<'a> {
    pub(super) circles: Vec<Vec<&'a Name>>,
    pub(super) of: BTreeMap<&'a Name, usize>,
}

/// A name being visited, with an iterator over its successors that are not visited yet.
struct Open<'a> {
    name: &'a Name,
    at: usize,
    next: std::collections::btree_set::Iter<'a, Name>,
}

impl<'a> Circles<'a> {
    /// Finds the groups with Tarjan's algorithm. It uses an explicit stack instead of recursion, so its depth has no limit.
    pub(super) fn of(network: &'a Network, edges: &'a Edges) -> Self {
        static NONE: std::collections::BTreeSet<Name> = std::collections::BTreeSet::new();
        let mut all = Self {
            circles: Vec::new(),
            of: BTreeMap::new(),
        };
        let mut seen: BTreeMap<&Name, usize> = BTreeMap::new();
        let mut lowest: Vec<usize> = Vec::new();
        let mut stack: Vec<&Name> = Vec::new();
        let next = |name: &Name| edges.get(name).unwrap_or(&NONE).iter();
        for first in network.agents.keys().chain(edges.keys()) {
            let mut open: Vec<Open<'a>> = Vec::new();
            let mut enter = Some(first).filter(|name| !seen.contains_key(name));
            loop {
                if let Some(name) = enter.take() {
                    let at = lowest.len();
                    seen.insert(name, at);
                    lowest.push(at);
                    stack.push(name);
                    let next = next(name);
                    open.push(Open { name, at, next });
                }
                let Some(top) = open.last_mut() else {
                    break;
                };
                if let Some(to) = top.next.next() {
                    match seen.get(to) {
                        None => enter = Some(to),
                        Some(other) if !all.of.contains_key(to) => {
                            lowest[top.at] = lowest[top.at].min(*other);
                        }
                        Some(_) => {}
                    }
                    continue;
                }
                let (name, at) = (top.name, top.at);
                open.pop();
                if let Some(from) = open.last() {
                    lowest[from.at] = lowest[from.at].min(lowest[at]);
                }
                if lowest[at] == at {
                    all.close(&mut stack, name);
                }
            }
        }
        all
    }

    /// Pops the stack down to `name`; the popped names form one group.
    fn close(&mut self, stack: &mut Vec<&'a Name>, name: &Name) {
        let mut circle = Vec::new();
        while let Some(top) = stack.pop() {
            self.of.insert(top, self.circles.len());
            circle.push(top);
            if top == name {
                break;
            }
        }
        circle.sort();
        self.circles.push(circle);
    }
}
