//! Searches over branches, as callers begin them and see what came of them.

use crate::{Error, Session};
use std::sync::Arc;
use steersman_machine::ids::{Id, Line, Name};
use steersman_machine::search::Tree;
use steersman_runtime::session::Search;

/// A search as far as it is on disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Searched {
    /// Its id: what [`Session::search`] gave.
    pub id: Id,
    /// The agent that answers by it; none: somebody wanted it.
    pub agent: Option<Id>,
    /// What was tried, with values and costs; the first node is where it began.
    pub tree: Tree,
    /// Why a node's value could not be used, by branch and line.
    pub unusable: Vec<((Id, Line), Arc<str>)>,
    /// Why it ended: `done`, `enough`, `budget`, `session_tokens`, `session_cost`, `stopped`, `cancelled`; none: it goes on.
    pub ended: Option<Name>,
    /// The branch that won, and up to which line of it; none: there is none so far.
    pub winner: Option<(Id, Line)>,
    /// The session goes on with what won.
    pub adopted: bool,
}

impl Session {
    /// Searches over branches beside the session: from a line at which a model is owed a call, or anywhere with something to say
    /// there. All that was typed is checked first: names, types, amounts. Gives the search's id; its progress are events
    /// ([`EventKind::Searched`](crate::EventKind::Searched)), and [`Session::settled`] returns when it is over.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use steersman::machine::expression::Expr;
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
    /// [`Error::Refused`] with why: what was typed does not fit, or nobody owes a model call there.
    pub async fn search(&self, search: Search) -> Result<Id, Error> {
        let receipt = self.driven().search(search).await?;
        let line = self.act(receipt).await?;
        self.opened(line).await
    }

    /// What a search came to so far: its tree, and what won.
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

    /// Ends a search with the best so far; none is named: all that go on.
    ///
    /// # Errors
    /// [`Error::Refused`] if nothing is being searched.
    pub async fn stop_search(&self, search: Option<Id>) -> Result<(), Error> {
        let receipt = self.driven().stop_search(search).await?;
        self.act(receipt).await.map(drop)
    }

    /// Goes on with what a search found.
    ///
    /// # Errors
    /// [`Error::Refused`]: it found nothing (yet), or the session has moved on since.
    pub async fn adopt_found(&self, search: Id) -> Result<(), Error> {
        let found = self.searched(search).await?;
        let Some((branch, at)) = found.winner else {
            let why = format!("search {search} found nothing that could be adopted");
            return Err(Error::Refused(why));
        };
        let receipt = self.driven().adopt(branch, Some(at)).await?;
        self.act(receipt).await.map(drop)
    }
}
