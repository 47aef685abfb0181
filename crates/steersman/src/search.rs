//! Searches over branches: starting them and reading their results.

use crate::{Act, By, Error, Session, Steersman};
use serde_json::Value as Json;
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::network::search::{Plan, Scorer};
use steersman_machine::search::{Tree, begins_block};
use steersman_machine::stored::commit::Want;
use steersman_machine::stored::ids::{Id, Line, Name};
use steersman_machine::tick::effect::{Offered, Opened, Said};
use steersman_machine::tick::tick;
use steersman_machine::view::Cx;
use steersman_runtime::engine::Inspection;
use steersman_runtime::session::Search;
use steersman_views::log::Log;
use steersman_views::reader::Stored;

/// A search, as far as it is on disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Searched {
    /// Its id, as [`Session::search`] returned it.
    pub id: Id,
    /// The agent that started the search to find its answer; `None` if a person started it.
    pub agent: Option<Id>,
    /// The branches that were tried, with values and costs. The first node is the place where the search began.
    pub tree: Tree,
    /// For each node whose value could not be used, its branch, its line and the reason.
    pub unusable: Vec<((Id, Line), Arc<str>)>,
    /// The reason for its end: `done`, `enough`, `budget`, `session_tokens`, `session_cost`, `stopped`, `cancelled`;
    /// `None` while it runs.
    pub ended: Option<Name>,
    /// The winning branch, and the last line of it that counts; `None` if there is no winner so far.
    pub winner: Option<(Id, Line)>,
    /// True if the session continues with the winner.
    pub adopted: bool,
}

impl Session {
    /// Starts a search over branches, which runs while the session continues. It begins at a line at which a model call is due, or
    /// at any line if it has a message to say there. Names, types and amounts are checked first. Returns the id of the search. Its
    /// progress is reported as events ([`EventKind::Searched`](crate::EventKind::Searched)), and [`Session::settled`] returns when
    /// it is over.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use steersman::machine::values::expression::Expr;
    /// use steersman::{Network, Scorer, Search, SearchMethod, SearchPlan, Steersman, Turn};
    ///
    /// let network = Network::from_yaml("agents: { adder: { system: You add. } }").build()?;
    /// let steersman = Steersman::options().script_all("adder: [ Hello., { any: [ Three., Four. ] } ]").in_memory();
    /// let session = steersman.start(&network).await?;
    /// session.ask("Hi").await?;
    ///
    /// let plan = SearchPlan {
    ///     score: Some(Scorer::Expr(Expr::parse("answer == 'Four.'")?)),
    ///     calls: Some(20),                                     // model calls at most
    ///     seed: Some(1),
    ///     ..SearchPlan::of(SearchMethod::BestOf, 8)
    /// };
    /// let say = Some("What is two and two?".to_owned());
    /// let search = session.search(Search { say, ..Search::here(plan) }).await?;
    /// session.settled().await?;
    ///
    /// let found = session.searched(search).await?;
    /// assert_eq!((found.tree.explored(), found.ended.as_deref()), (8, Some("done")));
    /// session.adopt_found(search).await?;
    /// let Turn::Answer(answer) = session.settled().await? else { panic!("it answered") };
    /// assert_eq!(answer.text(), "Four.");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`] with the reason: the plan is not valid, or no model call is due at the line.
    pub async fn search(&self, search: Search) -> Result<Id, Error> {
        let line = self.give(Act::search(search)).await?;
        self.opened(line).await
    }

    /// Returns the state of a search so far: its tree and its winner.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such search.
    pub async fn searched(&self, search: Id) -> Result<Searched, Error> {
        let seen = self.driven().inspect().await?;
        let known = seen.ledger.search(search);
        let known = known.ok_or_else(|| Error::Refused(format!("there is no search {search}")))?;
        let unusable = known.stood.iter().filter_map(|stood| match &stood.score {
            Some(Err(Some(why))) => Some(((stood.branch, stood.at), seen.history.text(*why))),
            _ => None,
        });
        let (winner, ended) = known.over.clone().unzip();
        let winner = winner.flatten();
        let won = winner.and_then(|(branch, _)| seen.ledger.branch(branch));
        Ok(Searched {
            id: search,
            agent: known.agent,
            tree: seen.ledger.tree(known),
            unusable: unusable.collect(),
            ended,
            winner,
            adopted: won.is_some_and(|branch| branch.adopted.is_some()),
        })
    }

    /// Ends a search with the best result so far. `None` means all searches that run.
    ///
    /// # Errors
    /// [`Error::Refused`] if nothing is being searched.
    pub async fn stop_search(&self, search: Option<Id>) -> Result<(), Error> {
        self.act(Act::stop_search(search)).await
    }

    /// Continues the session with the winner of a search.
    ///
    /// # Errors
    /// [`Error::Refused`] if the search found nothing so far, or the session has moved on since.
    pub async fn adopt_found(&self, search: Id) -> Result<(), Error> {
        let found = self.searched(search).await?;
        let Some((branch, at)) = found.winner else {
            let why = format!("search {search} found nothing that could be adopted");
            return Err(Error::Refused(why));
        };
        self.act(Act::adopt(branch, Some(at))).await
    }
}

/// Reasons for which a plan of a search cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The plan is not valid; the text says everything that is wrong.
    #[error("{0}")]
    Unfit(String),
    /// Neither the plan nor the agent says what a branch is worth.
    #[error("nobody says what a branch is worth")]
    NoScore,
    /// The session cannot be read.
    #[error(transparent)]
    Session(#[from] Error),
}

impl Steersman {
    /// Reads the plan of a search from JSON, for a place of a session: a branch and a line, without which it is the current branch and
    /// its last line. All of it is checked. If the plan says nothing of what branches are worth, it has the scorer that is declared for
    /// the agent whose model call is due there, after `say` was said.
    ///
    /// # Errors
    /// The plan is not valid, or nobody says what a branch is worth; the session cannot be read.
    pub async fn search_plan(
        &self,
        id: &str,
        (branch, line): (Option<Id>, Option<Line>),
        say: Option<&str>,
        plan: &Json,
    ) -> Result<Plan, PlanError> {
        let seen = self.inspect(id).await?;
        let Some(network) = &seen.network else {
            return Err(Error::Refused("this session has not begun".to_owned()).into());
        };
        let plan = steersman_definition::search_plan(plan, network).map_err(PlanError::Unfit)?;
        if plan.score.is_some() {
            return Ok(plan);
        }
        let at = (branch.unwrap_or(seen.current), line);
        // If no model call is due there, the session refuses the search anyway.
        let Some(declared) = self.declared(&seen, network, at, say).await? else {
            return Ok(plan);
        };
        match declared {
            Some(score) => Ok(Plan {
                score: Some(score),
                ..plan
            }),
            None => Err(PlanError::NoScore),
        }
    }

    /// Returns the scorer declared for the agent whose model call is due first, by opening the branch in memory only. `None`
    /// means that no model call is due, an inner `None` that the agent declares no scorer.
    async fn declared(
        &self,
        seen: &Inspection,
        network: &Network,
        (branch, line): (Id, Option<Line>),
        say: Option<&str>,
    ) -> Result<Option<Option<Scorer>>, Error> {
        let branch = seen.branches.iter().find(|b| b.id == branch);
        let snapshot = match line {
            None => branch.map(|b| b.snapshot.clone()),
            Some(line) => {
                let log = Log::read(&Stored::plain(self.engine(), &seen.info.id)).await?;
                Some(log.snapshot(line))
            }
        };
        let Some(snapshot) = snapshot else {
            return Ok(None);
        };
        let said = say.map(|text| Said {
            id: "search".into(),
            text: text.into(),
            to: None,
            by: By::default(),
            sender: None,
            came: Vec::new(),
            sets: Vec::new(),
        });
        let opened = Offered::Opened(Opened {
            dry: true,
            say: said,
            ..Opened::default()
        });
        let cx = Cx {
            network,
            bodies: &*seen.history,
        };
        let (line, now) = (seen.info.head.next(), snapshot.now);
        let begun = tick(&cx, snapshot, line, now, &[opened]).snapshot;
        let owed = begun
            .effects
            .values()
            .find(|effect| effect.what == Want::Step && begins_block(&begun, effect.agent));
        Ok(owed.map(|effect| {
            let model = network.in_force(begun.agent(effect.agent))?;
            model.search.as_ref()?.score.clone()
        }))
    }
}
