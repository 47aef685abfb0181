//! Searches over branches, as recorded in the log.

use super::Ledger;
use serde::{Deserialize, Serialize};
use steersman_machine::search::{Cost, Node, Score, Tree};
use steersman_machine::stored::commit::{LogLine, Searching};
use steersman_machine::stored::ids::{Body, Id, Line, Name};

/// A search over branches, as recorded in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    /// The agent that answers with its result. `None` means that a person started the search.
    pub agent: Option<Id>,
    /// The branch of the tree's root.
    pub branch: Id,
    /// The commit that is the root.
    pub at: Line,
    /// JSON of the search's plan.
    pub plan: Body,
    /// Branches that the search opened, in the order of their numbers from 1.
    pub tried: Vec<Id>,
    /// Branches that were opened for judging, each with the branch and commit that it judges.
    pub judged: Vec<(Id, (Id, Line))>,
    /// States of branches at the ends of blocks, in the order in which they were reached.
    pub stood: Vec<Stood>,
    /// The winning branch with its last commit, if any, and the reason for the end. `None` until the search is over.
    pub over: Option<(Option<(Id, Line)>, Name)>,
    /// Reason why the agent answered without the search or, for a search of a person, why nothing was found.
    pub without: Option<Body>,
}

/// State of a branch at the end of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stood {
    /// Id of the branch.
    pub branch: Id,
    /// The commit at the end of the block.
    pub at: Line,
    /// True if the branch ended there.
    pub over: bool,
    /// Number of model calls of the block.
    pub calls: u64,
    /// Number of tokens of the block.
    pub tokens: u64,
    /// Money of the block, in millionths of the currency.
    pub micros: u64,
    /// Score as a JSON number, or the reason why a judgement could not be used. `None` if the state was not judged.
    pub score: Option<Result<Name, Option<Body>>>,
}

impl Search {
    /// Returns true if the search opened the branch: to try it, to judge on it, or as the root of a person's search.
    pub fn opened(&self, branch: Id) -> bool {
        let judges = self.judged.iter().any(|(judge, _)| *judge == branch);
        let root = self.agent.is_none() && self.branch == branch;
        root || judges || self.tried.contains(&branch)
    }

    /// Returns the number of a branch that the search tried.
    pub fn number(&self, branch: Id) -> Option<u32> {
        let at = self.tried.iter().position(|tried| *tried == branch)?;
        Some(at as u32 + 1)
    }
}

impl Ledger {
    pub(super) fn searched(&mut self, line: &LogLine, id: Id, what: &Searching) {
        if let Searching::Began {
            agent,
            branch,
            at,
            plan,
        } = what
        {
            let search = Search {
                agent: *agent,
                branch: *branch,
                at: if at.is_some() { *at } else { line.n },
                plan: *plan,
                tried: Vec::new(),
                judged: Vec::new(),
                stood: Vec::new(),
                over: None,
                without: None,
            };
            self.searches.insert(id, search);
            return;
        }
        let Some(search) = self.searches.get_mut(&id) else {
            return;
        };
        match what {
            Searching::Began { .. } => {}
            Searching::Tried { branch, number } => {
                search.tried.push(*branch);
                self.branch_mut(*branch).search = Some((id, *number));
            }
            Searching::Judged { branch, of, at } => search.judged.push((*branch, (*of, *at))),
            Searching::Stood {
                branch,
                at,
                over,
                calls,
                tokens,
                micros,
            } => search.stood.push(Stood {
                branch: *branch,
                at: *at,
                over: *over,
                calls: *calls,
                tokens: *tokens,
                micros: *micros,
                score: None,
            }),
            Searching::Scored {
                branch,
                at,
                value,
                why,
            } => {
                let mut stood = search.stood.iter_mut().rev();
                if let Some(stood) = stood.find(|s| (s.branch, s.at) == (*branch, *at)) {
                    stood.score = Some(value.clone().ok_or(*why));
                }
            }
            Searching::Over { winner, why } => search.over = Some((*winner, why.clone())),
            Searching::Without(why) => search.without = Some(*why),
        }
    }

    /// Returns all searches, oldest first.
    pub fn searches(&self) -> impl DoubleEndedIterator<Item = (Id, &Search)> {
        self.searches.iter().map(|(id, search)| (*id, search))
    }

    /// Returns the last score that a search gave the branch.
    pub fn score(&self, branch: Id) -> Option<f64> {
        let stood = self.searches.values().flat_map(|search| &search.stood);
        let mut scores = stood
            .filter(|stood| stood.branch == branch)
            .filter_map(|stood| stood.score.as_ref()?.as_ref().ok()?.parse().ok());
        scores.next_back()
    }

    /// Returns a search by its id.
    pub fn search(&self, id: Id) -> Option<&Search> {
        self.searches.get(&id)
    }

    /// Returns the tree of a search, in the form that planning reads.
    pub fn tree(&self, search: &Search) -> Tree {
        let mut tree = Tree::new(search.branch, search.at);
        let mut known = std::collections::BTreeMap::from([((search.branch, search.at), 0)]);
        let mut last = std::collections::BTreeMap::new();
        let numbers: std::collections::BTreeMap<Id, u32> =
            (1..).zip(&search.tried).map(|(n, id)| (*id, n)).collect();
        for stood in &search.stood {
            let from = self.branch(stood.branch).and_then(|b| b.from);
            let begun = from.and_then(|from| known.get(&from).copied());
            let parent = last.get(&stood.branch).copied().or(begun).unwrap_or(0);
            let depth = tree.nodes[parent].depth + 1;
            let score = match &stood.score {
                None => Score::None,
                Some(Ok(value)) => value.parse().map_or(Score::Unusable, Score::Value),
                Some(Err(_)) => Score::Unusable,
            };
            let at = tree.nodes.len();
            tree.nodes.push(Node {
                branch: stood.branch,
                number: numbers.get(&stood.branch).copied().unwrap_or(0),
                at: stood.at,
                parent: Some(parent),
                depth,
                over: stood.over,
                cost: Cost {
                    calls: stood.calls,
                    tokens: stood.tokens,
                    micros: stood.micros,
                },
                score,
            });
            known.insert((stood.branch, stood.at), at);
            last.insert(stood.branch, at);
        }
        tree
    }
}
