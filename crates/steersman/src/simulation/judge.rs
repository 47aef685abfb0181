//! The invariants that must hold after a simulation.

use super::tools::{CUT_OFF, World};
use serde_json::{Map, Value as Json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman_machine::stored::commit::{Admitted, LedgerEntry, LogLine, Release, Why};
use steersman_machine::stored::ids::{Bodies, Id, Line, Name, Time};
use steersman_machine::stored::interaction::{Class, Interaction};
use steersman_machine::values::expression::Expr;
use steersman_machine::values::expression::ast::{Node, NodeKind};
use steersman_machine::view::{Cx, View};
use steersman_runtime::engine::{BranchView, Engine, Inspection};
use steersman_runtime::load::Load;
use steersman_runtime::session::Fate;
use steersman_views::effects::{Effect, Effects};

/// A condition that must hold after every simulation.
#[derive(Clone, Debug)]
pub struct Invariant {
    expr: Expr,
    /// It is about each effect.
    of_each: bool,
}

impl Invariant {
    /// Reads an expression. If it reads `effect`, it must hold for each effect.
    ///
    /// # Errors
    /// The reason why the text is no expression.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expr = Expr::parse(text).map_err(|e| e.to_string())?;
        let of_each = reads(expr.node(), "effect");
        Ok(Self { expr, of_each })
    }

    /// Returns the expression.
    pub fn source(&self) -> &str {
        &self.expr.source
    }
}

fn reads(node: &Node, name: &str) -> bool {
    let is = matches!(&node.kind, NodeKind::Var(var) if &**var == name);
    is || node.children().into_iter().any(|node| reads(node, name))
}

/// A message and the fate that its sender was told.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) id: Name,
    /// `None` if nothing was acknowledged.
    pub(super) fate: Option<Fate>,
}

/// A session that was played, at rest.
pub(super) struct Played {
    pub(super) engine: Engine,
    pub(super) seen: Inspection,
    pub(super) lines: Vec<Arc<LogLine>>,
    pub(super) world: Arc<World>,
    pub(super) sent: Vec<Sent>,
    pub(super) told: Vec<(Time, String)>,
    /// An error with the activity of a session that never came to rest.
    pub(super) rested: Result<(), String>,
    /// The refusal of an answer to a question that was open at the end.
    pub(super) heard: Result<(), String>,
}

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The invariant: an expression, or a sentence.
    pub invariant: String,
    /// The reason why it does not hold.
    pub why: String,
}

fn broken(invariant: &str, why: impl Into<String>) -> Broken {
    Broken {
        invariant: invariant.to_owned(),
        why: why.into(),
    }
}

/// Returns everything that does not hold.
pub(super) async fn judge(played: &Played, invariants: &[Invariant]) -> Vec<Broken> {
    let mut found = Vec::new();
    found.extend(verified(played).await);
    found.extend(performed(played));
    found.extend(acknowledged(played));
    found.extend(closed(played));
    found.extend(cut_off(played));
    found.extend(spent(played));
    if let Err(still) = &played.rested {
        found.push(broken("a session comes to rest", still.clone()));
    }
    if let Err(why) = &played.heard {
        found.push(broken(
            "a question that is open takes its answer",
            why.clone(),
        ));
    }
    let effects = effects(played);
    for invariant in invariants {
        found.extend(holds(played, invariant, &effects));
    }
    found
}

async fn verified(played: &Played) -> Option<Broken> {
    let info = &played.seen.info;
    let store = played.engine.store().clone();
    let report = Load::new(store, info.id.clone(), info.salt).inspect().await;
    let why = match report {
        Ok(report) => format!("{:?}", report.damaged.first()?),
        Err(error) => error.to_string(),
    };
    Some(broken("the log verifies", why))
}

/// No effect that may not be repeated is performed twice. What a probe said is not judged: a simulated probe knows nothing.
fn performed(played: &Played) -> Option<Broken> {
    let probed: BTreeSet<Id> = entries(played)
        .filter_map(|entry| match entry {
            LedgerEntry::Probe { of, .. } => Some(*of),
            _ => None,
        })
        .collect();
    let (id, done) =
        played.world.all().into_iter().find(|(id, done)| {
            done.class == Class::Unsafe && done.times > 1 && !probed.contains(id)
        })?;
    let why = format!("{} ({id}) was performed {} times", done.tool, done.times);
    Some(broken("no unsafe effect is performed twice", why))
}

fn entries(played: &Played) -> impl Iterator<Item = &LedgerEntry> {
    played.lines.iter().flat_map(|line| &line.ledger)
}

fn acknowledged(played: &Played) -> Option<Broken> {
    let accepted: BTreeMap<&Name, Line> = played
        .lines
        .iter()
        .flat_map(|line| line.ledger.iter().map(|entry| (line.n, entry)))
        .filter_map(|(n, entry)| match entry {
            LedgerEntry::Accepted { message, .. } => Some((message, n)),
            _ => None,
        })
        .collect();
    let waits = |id: &Name| played.seen.inbox.iter().any(|message| message.id == *id);
    let lost = played.sent.iter().find_map(|sent| {
        let at = accepted.get(&sent.id);
        let told = match (sent.fate.as_ref()?, at) {
            (Fate::Taken(line), Some(at)) if at == line => return None,
            (Fate::Taken(line), _) => format!("taken in line {line}"),
            (Fate::Refused(_) | Fate::Waits(_) | Fate::Lies | Fate::Known, Some(_)) => return None,
            (Fate::Refused(_), None) => "refused".to_owned(),
            (Fate::Waits(_) | Fate::Lies | Fate::Known, None) if waits(&sent.id) => return None,
            (Fate::Waits(_) | Fate::Lies | Fate::Known, None) => "kept".to_owned(),
        };
        let at = at.map_or_else(|| "nowhere".to_owned(), |at| format!("in line {at}"));
        Some(format!("{} was said to be {told}, and is {at}", sent.id))
    })?;
    Some(broken("nothing that was acknowledged is lost", lost))
}

/// Each call has one result, or is open.
fn closed(played: &Played) -> Option<Broken> {
    let seen = &played.seen;
    let wrong = |branch: &BranchView| {
        branch.snapshot.agents.keys().find_map(|agent| {
            let stack = seen.stack(branch, *agent);
            let mut results = BTreeMap::<Id, u32>::new();
            for (_, interaction) in &stack {
                if let Interaction::Result(result) = interaction {
                    *results.entry(result.call).or_default() += 1;
                }
            }
            stack.iter().find_map(|(_, interaction)| {
                let Interaction::Call(call) = interaction else {
                    return None;
                };
                let open = branch.snapshot.call(*agent, call.id);
                let open = open.is_some_and(|call| call.closed.is_none());
                match results.get(&call.id).copied().unwrap_or_default() {
                    1 => None,
                    0 if open => None,
                    n => Some(format!("call {} of {} has {n} results", call.id, call.name)),
                }
            })
        })
    };
    let why = seen.branches.iter().find_map(wrong)?;
    Some(broken("every call closes with exactly one result", why))
}

/// An attempt that was cut off is no result: the call is made again, or is cancelled.
fn cut_off(played: &Played) -> Option<Broken> {
    let commits = played.lines.iter().filter_map(|line| line.commit.as_ref());
    let results = commits
        .flat_map(|commit| &commit.pushes)
        .filter_map(|push| {
            let Interaction::Result(result) = &push.what else {
                return None;
            };
            Some((result.call, played.seen.history.text(result.body?)))
        });
    let (call, text) = results
        .into_iter()
        .find(|(_, text)| text.contains(CUT_OFF))?;
    let why = format!("the result of call {call} is: {text}");
    Some(broken("an attempt that was cut off is no result", why))
}

fn spent(played: &Played) -> Option<Broken> {
    let network = played.seen.network.as_ref()?;
    let ledger = &played.seen.ledger;
    let limits = &network.limits;
    let over = |what: &str, spent: u64, limit: Option<u64>, granted: u64| {
        let allowed = limit?.saturating_add(granted);
        (spent > allowed).then(|| format!("{spent} {what} of {allowed} are spent"))
    };
    let (spent, granted) = (ledger.spent, ledger.granted);
    let tokens = limits.tokens.map(|limit| limit.max);
    let cost = limits.cost.map(|limit| limit.max);
    let why = over("tokens", spent.tokens, tokens, granted.tokens)
        .or_else(|| over("millionths", spent.micros, cost, granted.micros))?;
    Some(broken("the budget is never exceeded", why))
}

/// Returns the effects of tools, as invariants read them.
fn effects(played: &Played) -> Vec<Json> {
    let texts: &dyn Bodies = &*played.seen.history;
    let all = Effects::of(&played.lines, texts, None);
    let calls: BTreeMap<Id, Id> = played
        .lines
        .iter()
        .filter_map(|line| line.commit.as_ref())
        .flat_map(|commit| &commit.wished)
        .filter_map(|wished| Some((wished.id, wished.what.call()?)))
        .collect();
    let outcomes: BTreeSet<Id> = played
        .lines
        .iter()
        .filter_map(|line| line.commit.as_ref())
        .flat_map(|commit| &commit.admitted)
        .filter(|admission| admission.kind == Admitted::Outcome)
        .filter_map(|admission| admission.id)
        .collect();
    let mut approvals = BTreeMap::<Id, Vec<Json>>::new();
    for entry in entries(played) {
        if let LedgerEntry::Released {
            effect,
            why: Why::Approval,
            how: Release::Go | Release::Edited,
            by,
            ..
        } = entry
        {
            // Edited arguments run under another effect of the same call.
            let call = calls.get(effect).copied().unwrap_or(*effect);
            approvals.entry(call).or_default().push(by.word().into());
        }
    }
    let form = |effect: &Effect| {
        let mut json = serde_json::to_value(effect).unwrap_or_default();
        let call = calls.get(&effect.id).copied().unwrap_or(effect.id);
        let done = played.world.of(effect.id);
        let times = done.as_ref().map_or(0, |done| done.times);
        if let Some(json) = json.as_object_mut() {
            let approved = approvals.get(&call).cloned().unwrap_or_default();
            json.insert("approvals".into(), approved.into());
            json.insert("performed".into(), times.into());
            json.insert("result".into(), done.map_or(Json::Null, |done| done.result));
            json.insert("answered".into(), outcomes.contains(&effect.id).into());
        }
        json
    };
    all.all().map(form).collect()
}

fn holds(played: &Played, invariant: &Invariant, effects: &[Json]) -> Option<Broken> {
    let seen = &played.seen;
    let network = seen.network.as_ref()?;
    let branch = seen.current_branch()?;
    let snapshot = &branch.snapshot;
    let bodies: &dyn Bodies = &*seen.history;
    let cx = Cx { network, bodies };
    let root = snapshot.root_agent();
    let answer = root.and_then(|root| {
        let text = seen.history.text(root.turn.answer?);
        Some(network.answered(&root.def, &text))
    });
    let answer = answer.unwrap_or_default();
    let view = || View::new(&cx, snapshot, snapshot.root).with("answer", answer.clone());
    let mut outcome = Map::new();
    for (name, expr) in &network.outcome {
        let value = expr.eval_lenient(&view()).ok();
        let value = value.and_then(|value| serde_json::to_value(&value).ok());
        outcome.insert(name.to_string(), value.unwrap_or_default());
    }
    let all: Json = effects.to_vec().into();
    let view = || {
        view()
            .with("outcome", Json::Object(outcome.clone()))
            .with("effects", all.clone())
    };
    let wrong = |view: View<'_>, of: Option<&Json>| {
        let of = of.map_or_else(String::new, |effect| format!(" for {effect}"));
        match view.holds(&invariant.expr) {
            Ok(true) => None,
            Ok(false) => Some(broken(invariant.source(), format!("it does not hold{of}"))),
            Err(error) => Some(broken(invariant.source(), format!("{error}{of}"))),
        }
    };
    if !invariant.of_each {
        return wrong(view(), None);
    }
    let each = effects.iter();
    each.map(|effect| wrong(view().with("effect", effect.clone()), Some(effect)))
        .find_map(|found| found)
}
