//! `search`: tries branches from a line on, shows the results, and may adopt the best.

use crate::cli::{Global, Own};
use crate::commands::act::{Reached, Target};
use crate::commands::branching::Spot;
use crate::error::{CommandError, Exit};
use crate::play::Ended;
use crate::printer::{Printer, bold, dim, green, yellow};
use crate::words::{self, count};
use serde_json::{Map, Value as Json, json};
use steersman::machine::network::search::{MOST, Method, Plan};
use steersman::machine::search::{Score, Seen, Tree, seen};
use steersman::runtime::engine::Inspection;
use steersman::runtime::ledger;
use steersman::views::search::{self, SearchTree};
use steersman::{Act, PlanError, Search};
use steersman_machine::stored::ids::{Id, Line};
use steersman_machine::stored::interaction::Cause;

pub(crate) const LISTED: &str =
    "Try branches from a line on, judge them, and show the tree; dry unless --live";

/// Try branches from a line on, and judge them. Dry unless --live; after Ctrl-C it can be continued.
#[derive(Debug, clap::Args)]
pub(crate) struct SearchArgs {
    /// SESSION[:BRANCH][@LINE]: where it begins: a line at which a model is owed a call, or any with --say [default: the last].
    address: String,
    /// Say this there first.
    #[arg(long, value_name = "TEXT")]
    say: Option<String>,
    /// How: best_of, beam, rollouts or mcts [default: best_of].
    #[arg(long, value_name = "METHOD", value_parser = ["best_of", "beam", "rollouts", "mcts"], hide_possible_values = true)]
    method: Option<String>,
    /// Branches in all; of `beam` those of a level [default: 4].
    #[arg(long, value_name = "N", value_parser = few)]
    n: Option<u64>,
    /// Blocks of a branch at most [default: 32].
    #[arg(long, value_name = "D", value_parser = few)]
    depth: Option<u64>,
    /// `beam`: how many of a level go on. `rollouts`: first blocks. `mcts`: branches at one place.
    #[arg(long, value_name = "W", value_parser = few)]
    width: Option<u64>,
    /// What a branch is worth: an expression over `answer`, `state`, `calls` [default: what the agent's `search:` says].
    #[arg(long, value_name = "EXPR", conflicts_with = "by")]
    score: Option<String>,
    /// Who says so: a tool that only looks, or an agent.
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// End it with a branch that is worth as much.
    #[arg(long, value_name = "NUMBER", value_parser = number, allow_negative_numbers = true)]
    enough: Option<f64>,
    /// Model calls at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    budget_calls: Option<u64>,
    /// Tokens at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    budget_tokens: Option<u64>,
    /// Money at most.
    #[arg(long, value_name = "X", value_parser = micros, allow_negative_numbers = true)]
    cost: Option<u64>,
    /// What sampling begins from [default: the session's].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Let effects touch the world on all branches.
    #[arg(long)]
    live: bool,
    /// Go on with the branch that won.
    #[arg(long)]
    adopt: bool,
    /// Show what was searched in this session, and search nothing.
    #[arg(long, conflicts_with_all = ["adopt", "stop", "say"])]
    show: bool,
    /// End the search that goes on, with the best so far.
    #[arg(long, conflicts_with_all = ["adopt", "say"])]
    stop: bool,
    #[command(flatten)]
    own: Own,
}

/// Maximum number of characters of the reason why a value cannot be used; the log stores no more.
const WHY: usize = 1_000;
/// Number of children that are drawn of one node; one more, if only that one would be left out.
const CHILDREN: usize = 6;
/// Number of rows from which on only nodes without siblings are drawn.
const ROWS: usize = 60;

pub(crate) async fn run(
    args: SearchArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let spot = Spot::find(&args.address, global, &args.own.drive).await?;
    let target = &spot.target;
    if args.show {
        return shown(&target.inspection, None, printer);
    }
    if args.stop {
        let mut searches = target.inspection.ledger.searches();
        if searches.all(|(_, search)| search.over.is_some()) {
            return Err(CommandError::usage("nothing is being searched"));
        }
        let act = Act::stop_search(None);
        return match target.reach(act, &args.own, printer).await? {
            Reached::Driven(mut play, _, _) => {
                play.let_go().await?;
                let id = &target.inspection.info.id;
                shown(&target.place.engine().inspect(id).await?, None, printer)
            }
            other => target.noted(&other, printer).await,
        };
    }
    let plan = plan(&args, &spot).await?;
    let act = Act::search(Search {
        branch: Some(spot.branch),
        at: spot.line,
        say: args.say.clone(),
        plan,
    });
    let (line, interrupted) = match target.reach(act, &args.own, printer).await? {
        Reached::Driven(mut play, ended, Some(line)) => {
            let is_over = play.let_go().await?;
            (line, !is_over || matches!(ended, Ended::Interrupted))
        }
        other => return target.noted(&other, printer).await,
    };
    let id = &target.inspection.info.id;
    let short = target.place.short(id).await?;
    let inspection = target.place.engine().inspect(id).await?;
    let found = inspection
        .ledger
        .searches()
        .find(|(_, search)| search.at == line)
        .map(|(id, search)| (id, search.clone()));
    let Some((search, known)) = found else {
        return Err(CommandError::store(format!("line {line} began no search")));
    };
    let winner = known.over.as_ref().and_then(|(winner, _)| *winner);
    if interrupted || known.over.is_none() {
        shown(&inspection, Some(search), printer)?;
        if interrupted {
            printer.talk(yellow(
                "Interrupted. Nothing is lost: it goes on where it was.",
            ));
        }
        printer.next(format!("steersman run --resume {short}"), "goes on with it");
        printer.next(
            format!("steersman search {short} --stop"),
            "takes the best so far",
        );
        return Ok(if interrupted {
            Exit::Interrupted
        } else {
            Exit::Waits
        });
    }
    if args.adopt {
        let Some((branch, at)) = winner else {
            shown(&inspection, Some(search), printer)?;
            return Ok(nothing(&inspection, &known, &short, printer));
        };
        if !printer.is_json() {
            draw(&inspection, search, printer)?;
        }
        return adopt(&args, global, &short, (branch, at), printer).await;
    }
    shown(&inspection, Some(search), printer)?;
    if let Some((branch, at)) = winner {
        printer.next(
            format!("steersman adopt {short}:{branch}@{at}"),
            "goes on with it",
        );
        printer.next(format!("steersman show {short}:{branch}"), "");
    }
    Ok(Exit::Answered)
}

/// Reports why there is nothing to adopt.
fn nothing(
    inspection: &Inspection,
    known: &ledger::Search,
    short: &str,
    printer: &Printer,
) -> Exit {
    let why = known.without.map(|why| inspection.history.text(why));
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    printer.complain(format!("Nothing was adopted{why}."));
    if let Some(branch) = known.tried.first() {
        printer.next(
            format!("steersman show {short}:{branch}"),
            "what the first branch did",
        );
    }
    Exit::Failed
}

async fn adopt(
    args: &SearchArgs,
    global: &Global,
    short: &str,
    (branch, at): (Id, Line),
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let target = Target::find(short, global, &args.own.drive).await?;
    let act = Act::adopt(branch, Some(at));
    match target.reach(act, &args.own, printer).await {
        Ok(Reached::Driven(play, ended, _)) => play.report(ended).await,
        Ok(other) => target.noted(&other, printer).await,
        Err(error) if error.exit == Exit::Usage => Err(error.hint(format!(
            "to go on with it all the same, and leave that behind: `steersman rewind {short}:{branch}@{at}`"
        ))),
        Err(error) => Err(error),
    }
}

/// Returns the plan from the command's arguments. Without `--score` or `--by`, the scorer declared for the agent at that
/// line is used.
async fn plan(args: &SearchArgs, spot: &Spot) -> Result<Plan, CommandError> {
    let mut json = Map::new();
    let mut put = |key: &str, value: Option<Json>| {
        if let Some(value) = value {
            json.insert(key.to_owned(), value);
        }
    };
    put("method", args.method.clone().map(Json::from));
    put("n", args.n.map(Json::from));
    put("width", args.width.map(Json::from));
    put("depth", args.depth.map(Json::from));
    put("score", args.score.clone().map(Json::from));
    put("by", args.by.clone().map(Json::from));
    put("enough", args.enough.map(Json::from));
    put("calls", args.budget_calls.map(Json::from));
    put("tokens", args.budget_tokens.map(Json::from));
    put("micros", args.cost.map(Json::from));
    put("seed", args.seed.map(Json::from));
    put("effects", args.live.then(|| "live".into()));
    let target = &spot.target;
    let place = (Some(spot.branch), spot.line);
    let id = &target.inspection.info.id;
    let steersman = &target.place.steersman;
    let (say, json) = (args.say.as_deref(), Json::Object(json));
    let plan = steersman.search_plan(id, place, say, &json).await;
    plan.map_err(|error| match error {
        PlanError::Session(error) => error.into(),
        PlanError::Unfit(why) => CommandError::usage(why),
        PlanError::NoScore => CommandError::usage(error.to_string()).hint(
            "--score \"EXPR\" over `answer`, `state`, `calls`, or --by NAME: a tool or an agent",
        ),
    })
}

/// Shows one search, or all.
fn shown(inspection: &Inspection, of: Option<Id>, printer: &Printer) -> Result<Exit, CommandError> {
    let all: Vec<Id> = inspection
        .ledger
        .searches()
        .map(|(id, _)| id)
        .filter(|id| of.is_none_or(|of| of == *id))
        .collect();
    if printer.is_json() {
        let all: Vec<Json> = all
            .iter()
            .filter_map(|id| SearchTree::of(inspection, *id))
            .map(|tree| serde_json::to_value(tree).unwrap_or_default())
            .collect();
        let document = match (&all[..], of) {
            ([one], Some(_)) => one.clone(),
            _ => json!({ "session": inspection.info.id, "searches": all }),
        };
        printer.json(&document)?;
        return Ok(Exit::Answered);
    }
    if all.is_empty() {
        printer.talk("Nothing was searched in this session.");
    }
    for id in all {
        draw(inspection, id, printer)?;
    }
    Ok(Exit::Answered)
}

/// Returns true if the top agent of a branch failed; its answer is then the reason.
fn has_failed(inspection: &Inspection, branch: Id) -> bool {
    let view = inspection.branches.iter().find(|b| b.id == branch);
    let snapshot = view.map(|view| &view.snapshot);
    let top = snapshot.and_then(|snapshot| snapshot.agents.get(&snapshot.top()?));
    top.and_then(|top| top.turn.ended)
        .is_some_and(|(_, cause)| cause == Cause::Failed)
}

/// Returns the session's limit that ended a search.
fn limit(inspection: &Inspection, why: &str) -> Option<String> {
    let limits = &inspection.network.as_ref()?.limits;
    match why {
        "session_tokens" => limits.tokens.map(|limit| words::digits(limit.max)),
        "session_cost" => limits.cost.map(|limit| words::money(limit.max)),
        _ => None,
    }
}

/// Draws a search as a tree for a terminal: the most promising children of a node, and the number of the others.
fn draw(inspection: &Inspection, id: Id, printer: &Printer) -> Result<(), CommandError> {
    let Some(known) = inspection.ledger.search(id) else {
        return Ok(());
    };
    let tree = inspection.ledger.tree(known);
    let plan = search::plan(inspection, known);
    let (winner, why) = known.over.clone().unzip();
    let method = plan["method"]
        .as_str()
        .and_then(Method::of)
        .unwrap_or_default();
    let cost = tree.cost();
    let ended = why.as_deref().map_or("goes on", words::search_ended);
    let mut head = format!(
        "search {id}   {}, {} explored in {}, {ended}",
        method.word(),
        count(tree.explored() as u64, "branch"),
        count(cost.calls, "model call"),
    );
    if let Some(limit) = why.as_deref().and_then(|why| limit(inspection, why)) {
        let best = match (winner.flatten(), search::is_adopted(inspection, id)) {
            (Some(_), true) => "best so far adopted",
            (Some(_), false) => "best so far not adopted",
            (None, _) => "nothing of it can be adopted",
        };
        head = format!("{head} of {limit}, {best}");
    }
    if cost.micros > 0 {
        head = format!("{head}, {}", words::money(cost.micros));
    }
    printer.data(bold(&head))?;
    let mut drawing = Drawing::of(inspection, &known.stood, tree, winner.flatten());
    drawing.children(0, "  ");
    for row in &drawing.rows {
        printer.data(row)?;
    }
    if drawing.left > 0 {
        let more = count(drawing.left as u64, "node");
        printer.data(dim(&format!("  ... {more} more: --json has them all")))?;
    }
    Ok(())
}

struct Drawing<'a> {
    inspection: &'a Inspection,
    /// The entries of all nodes except the root.
    stood: &'a [ledger::Stood],
    tree: Tree,
    seen: Vec<Seen>,
    /// The indices of the children of each node.
    below: Vec<Vec<usize>>,
    /// The number of nodes in the subtree of each node.
    sizes: Vec<usize>,
    /// True for the winner and its ancestors.
    leads: Vec<bool>,
    winner: Option<(Id, Line)>,
    rows: Vec<String>,
    /// Number of nodes that are not drawn.
    left: usize,
}

impl<'a> Drawing<'a> {
    fn of(
        inspection: &'a Inspection,
        stood: &'a [ledger::Stood],
        tree: Tree,
        winner: Option<(Id, Line)>,
    ) -> Self {
        let count = tree.nodes.len();
        let mut below = vec![Vec::new(); count];
        let (mut sizes, mut leads) = (vec![1; count], vec![false; count]);
        // Children have larger indices than their parents.
        for (i, node) in tree.nodes.iter().enumerate().rev() {
            leads[i] |= winner == Some((node.branch, node.at));
            if let Some(parent) = node.parent {
                below[parent].push(i);
                sizes[parent] += sizes[i];
                leads[parent] |= leads[i];
            }
        }
        Self {
            inspection,
            stood,
            seen: seen(&tree),
            below,
            sizes,
            leads,
            winner,
            rows: Vec::new(),
            left: 0,
            tree,
        }
    }

    fn children(&mut self, of: usize, margin: &str) {
        let mut all = std::mem::take(&mut self.below[of]);
        let key = |i: &usize| {
            let best = self.seen[*i].mean.or(search::value(&self.tree.nodes[*i]));
            best.unwrap_or(f64::NEG_INFINITY)
        };
        all.sort_by(|a, b| {
            let first = self.leads[*b].cmp(&self.leads[*a]);
            first.then(key(b).total_cmp(&key(a))).then(a.cmp(b))
        });
        let few = if self.rows.len() < ROWS { CHILDREN } else { 0 };
        let drawn = all
            .len()
            .min(if all.len() == few + 1 { few + 1 } else { few });
        for i in &all[..drawn] {
            self.node(*i, margin);
        }
        let rest: usize = all[drawn..].iter().map(|i| self.sizes[*i]).sum();
        if rest > 0 && drawn > 0 {
            let rest = count(all.len() as u64 - drawn as u64, "branch");
            self.rows.push(dim(&format!("{margin}... {rest} more")));
        }
        self.left += rest;
    }

    /// Draws a node. A chain of nodes without branching is one row.
    fn node(&mut self, i: usize, margin: &str) {
        let (mut end, mut blocks) = (i, 1);
        while let [only] = self.below[end][..] {
            (end, blocks) = (only, blocks + 1);
        }
        let node = &self.tree.nodes[end];
        let seen = &self.seen[end];
        let won = self.winner == Some((node.branch, node.at));
        let mut row = format!("{margin}{}@{}", node.branch, node.at);
        row = format!("{row}  {}", count(blocks, "block"));
        if seen.visits > 1 {
            row = format!("{row}, {}", count(u64::from(seen.visits), "visit"));
        }
        match (search::value(node), seen.mean) {
            (Some(value), _) => row = format!("{row}, worth {value}"),
            (None, Some(mean)) => row = format!("{row}, mean {mean:.3}"),
            (None, None) if node.score == Score::Unusable => {
                let why = search::unusable(self.inspection, &self.stood[end - 1]);
                let why =
                    why.map_or_else(String::new, |why| format!(": {}", words::line(&why, WHY)));
                row = format!("{row}, cannot be judged{why}");
            }
            (None, None) => {}
        }
        let answer = node
            .over
            .then(|| search::answer(self.inspection, node.branch));
        let mut failure = None;
        match answer.flatten() {
            Some(why) if has_failed(self.inspection, node.branch) => failure = Some(why),
            Some(answer) => row = format!("{row}   {}", words::line(&answer, 50)),
            None => {}
        }
        if won {
            row = green(&format!("{row}   <- won"));
        }
        self.rows.push(row);
        if let Some(why) = failure {
            // The important part of the message may be at its end, so it is wrapped instead of cut.
            let below = format!("{margin}    ");
            let room = words::width().saturating_sub(below.len()).max(20);
            let rows = words::fold(&words::line(&why, WHY), room).into_iter();
            self.rows
                .extend(rows.map(|part| dim(&format!("{below}{part}"))));
        }
        self.children(end, &format!("{margin}  "));
    }
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
