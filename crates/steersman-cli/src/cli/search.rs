//! What `search` takes.

use super::Own;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// SESSION[:BRANCH][@LINE]: where it begins: a line at which a model is owed a call, or any with --say [default: the last].
    pub(crate) address: String,
    /// Say this there first.
    #[arg(long, value_name = "TEXT")]
    pub(crate) say: Option<String>,
    /// How: best_of, beam, rollouts or mcts [default: best_of].
    #[arg(long, value_name = "METHOD", value_parser = ["best_of", "beam", "rollouts", "mcts"], hide_possible_values = true)]
    pub(crate) method: Option<String>,
    /// Branches in all; of `beam` those of a level [default: 4].
    #[arg(long, value_name = "N")]
    pub(crate) n: Option<u64>,
    /// Blocks of a branch at most [default: 32].
    #[arg(long, value_name = "D")]
    pub(crate) depth: Option<u64>,
    /// `beam`: how many of a level go on. `rollouts`: first blocks. `mcts`: branches at one place.
    #[arg(long, value_name = "W")]
    pub(crate) width: Option<u64>,
    /// What a branch is worth: an expression over `answer`, `state`, `calls` [default: what the agent's `search:` says].
    #[arg(long, value_name = "EXPR", conflicts_with = "by")]
    pub(crate) score: Option<String>,
    /// Who says so: a tool that only looks, or an agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// End it with a branch that is worth as much.
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) enough: Option<f64>,
    /// Model calls at most.
    #[arg(long, value_name = "N")]
    pub(crate) budget_calls: Option<u64>,
    /// Tokens at most.
    #[arg(long, value_name = "N")]
    pub(crate) budget_tokens: Option<u64>,
    /// Money at most.
    #[arg(long, value_name = "X")]
    pub(crate) cost: Option<f64>,
    /// What sampling begins from [default: the session's].
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Let effects touch the world on all branches.
    #[arg(long)]
    pub(crate) live: bool,
    /// Go on with the branch that won.
    #[arg(long)]
    pub(crate) adopt: bool,
    /// Show what was searched in this session, and search nothing.
    #[arg(long, conflicts_with_all = ["adopt", "stop", "say"])]
    pub(crate) show: bool,
    /// End the search that goes on, with the best so far.
    #[arg(long, conflicts_with_all = ["adopt", "say"])]
    pub(crate) stop: bool,
    #[command(flatten)]
    pub(crate) own: Own,
}
