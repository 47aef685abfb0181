//! Arguments of `search`.

use super::Own;
use clap::Args;
use steersman::machine::network::search::MOST;

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
    #[arg(long, value_name = "N", value_parser = few)]
    pub(crate) n: Option<u64>,
    /// Blocks of a branch at most [default: 32].
    #[arg(long, value_name = "D", value_parser = few)]
    pub(crate) depth: Option<u64>,
    /// `beam`: how many of a level go on. `rollouts`: first blocks. `mcts`: branches at one place.
    #[arg(long, value_name = "W", value_parser = few)]
    pub(crate) width: Option<u64>,
    /// What a branch is worth: an expression over `answer`, `state`, `calls` [default: what the agent's `search:` says].
    #[arg(long, value_name = "EXPR", conflicts_with = "by")]
    pub(crate) score: Option<String>,
    /// Who says so: a tool that only looks, or an agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// End it with a branch that is worth as much.
    #[arg(long, value_name = "NUMBER", value_parser = number, allow_negative_numbers = true)]
    pub(crate) enough: Option<f64>,
    /// Model calls at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) budget_calls: Option<u64>,
    /// Tokens at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) budget_tokens: Option<u64>,
    /// Money at most.
    #[arg(long, value_name = "X", value_parser = micros, allow_negative_numbers = true)]
    pub(crate) cost: Option<u64>,
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

/// Parses a number of branches or blocks.
fn few(text: &str) -> Result<u64, String> {
    let some = text
        .parse()
        .ok()
        .filter(|n| (1..=u64::from(MOST)).contains(n));
    some.ok_or_else(|| format!("a number from 1 to {MOST} is wanted"))
}

fn number(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|n: &f64| n.is_finite());
    number.ok_or_else(|| "a number is wanted, as 1 or -0.5".to_owned())
}

/// Parses an amount of money; returns millionths.
fn micros(text: &str) -> Result<u64, String> {
    let micros = number(text).map(|n| (n * 1e6).round());
    let some = micros.ok().filter(|m| (1.0..=1e15).contains(m));
    let some = some.map(|m| m as u64);
    some.ok_or_else(|| "an amount above 0 is wanted, as 0.50".to_owned())
}
