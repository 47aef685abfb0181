//! Branch operations. A fork, a rewind and an adoption share one mechanism for outstanding effects. An effect that may be
//! repeated is wished again under an id of the branch that goes on; the call of any other one closes with what the ledger knows of
//! it.
//!
//! A `fork` call begins when it is the last open call of its exchange (`Tick::begin_fork`). Until it closes, the agents in
//! its scope do not move ([`stands`]). It closes with the results of its branches, or when one of them is adopted. The
//! chooser that is declared with the `fork` tool picks that branch; an agent that chooses is a child of the forking agent.

mod conflict;

pub use conflict::{Both, Conflict, adoptable};

use conflict::written;

use crate::network::join::JoinOn;
use crate::network::{Chooser, Does, Offer, ToolUse, texts};
use crate::snapshot::fold::facts;
use crate::snapshot::{Agent, OpenCall, Snapshot};
use crate::stored::codes::Code;
use crate::stored::commit::{
    AdoptedCall, AdoptedCell, Adoption, CallChange, CallChanged, CellFact, Want, Watermark, Wished,
};
use crate::stored::ids::{Id, Line, Name, Path, Time};
use crate::stored::interaction::{Artifact, Call, Cause, End, How, Interaction, Origin, Target};
use crate::stored::outcome::{Mapped, Outcome};
use crate::stored::words::{cause_word, end_word};
use crate::tick::effect::{BranchEnd, Fact, Known, Request, ToolWork, Until, Work};
use crate::tick::join::{Stands, answers};
use crate::tick::take::Taken;
use crate::tick::{Tick, limits};
use crate::values::expression::Data;
use crate::values::types::{Parameters, TypeKind};
use crate::view::mapping::{Fault, Raw, map};
use crate::view::{Cx, View};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

/// Name of the call by which a person joins branches. Its target differs from that of a tool with this name.
pub const JOIN: &str = "join";
/// Maximum number of branches of one fork, if the definition sets no `max`.
pub const FORKS: u32 = 8;

/// A call that waits for branches.
#[derive(Clone, Debug, PartialEq)]
pub struct Awaited {
    /// Id of the caller and id of the call.
    pub call: (Id, Id),
    /// The branches that the call waits for.
    pub branches: Vec<Id>,
    /// The condition on which the ends of the branches are offered, all in one offer.
    pub on: JoinOn,
}

/// Returns the calls of a branch that wait for other branches. The driver offers [`crate::tick::effect::Offered::Ended`] to each
/// of them once, as soon as its condition holds or can no longer hold. A call whose branches are being chosen among gets no
/// offer. A superseded branch counts as ended, or as cancelled if it had not ended. So a branch that begins at a
/// commit that waits for superseded branches gets the offer immediately.
pub fn awaited(cx: &Cx<'_>, snapshot: &Snapshot) -> Vec<Awaited> {
    let waits = |open: &OpenCall| open.ends.is_none() && snapshot.in_scope(open.owner);
    forks(snapshot)
        .filter(|open| waits(open))
        .filter_map(|open| match &open.call.target {
            Target::Branches(branches) => Some(Awaited {
                call: (open.owner, open.call.id),
                branches: branches.clone(),
                on: joins_on(cx, snapshot, open),
            }),
            _ => None,
        })
        .collect()
}

/// Returns true if a call of this snapshot's branch waits for `branch`.
pub fn awaits(snapshot: &Snapshot, branch: Id) -> bool {
    joined(snapshot).contains(&branch)
}

/// Returns the branches that calls of this snapshot's branch wait for.
pub fn joined(snapshot: &Snapshot) -> BTreeSet<Id> {
    let open = forks(snapshot).filter(|open| open.ends.is_none() && snapshot.in_scope(open.owner));
    let named = open.filter_map(|open| match &open.call.target {
        Target::Branches(all) => Some(all.clone()),
        _ => None,
    });
    named.flatten().collect()
}

/// Returns the branches that end with a call: those that the call opened. A person's `join` opens none, so its branches may
/// go on.
pub(crate) fn opened(call: &Call) -> &[Id] {
    match &call.target {
        Target::Branches(branches) if *call.name != *JOIN => branches,
        _ => &[],
    }
}

/// Returns the branches that end when this branch is cancelled: those that its agents opened and wait for.
pub fn left_with(snapshot: &Snapshot) -> BTreeSet<Id> {
    let open = forks(snapshot).filter(|open| snapshot.in_scope(open.owner));
    open.flat_map(|open| opened(&open.call).iter().copied())
        .collect()
}

/// Returns the condition that ends a call to branches: given by the person who joins, or by the definition of `fork`.
pub(crate) fn joins_on(cx: &Cx<'_>, snapshot: &Snapshot, open: &OpenCall) -> JoinOn {
    if *open.call.name == *JOIN {
        let args: Json =
            crate::values::json::read(&cx.bodies.text(open.call.args)).unwrap_or_default();
        let on = args["on"].as_str().and_then(|on| on.parse().ok());
        return on.unwrap_or_default();
    }
    let used = fork_use(cx, snapshot, open.owner, open);
    used.map(|used| used.join.clone()).unwrap_or_default()
}

fn forks(snapshot: &Snapshot) -> impl Iterator<Item = &Arc<OpenCall>> {
    let keys = snapshot.forks.iter();
    keys.filter_map(|(owner, call)| snapshot.call(*owner, *call))
}

/// Rebuilds the requests of a branch to the driver, for an owner that takes a session over. The driver skips branches that
/// the ledger records as opened, and one that it records as adopted.
pub fn requests(cx: &Cx<'_>, snapshot: &Snapshot) -> Vec<Request> {
    let mut requests = Vec::new();
    for open in forks(snapshot).filter(|c| snapshot.in_scope(c.owner)) {
        let Target::Branches(branches) = &open.call.target else {
            continue;
        };
        if let Some((branch, at)) = open.chosen {
            requests.push(Request::Adopt {
                call: (open.owner, open.call.id),
                branch,
                at,
            });
        } else if *open.call.name != *JOIN {
            let says = instructions(&cx.bodies.text(open.call.args)).unwrap_or_default();
            requests.extend(openings(cx, snapshot, open, branches, &says));
        }
    }
    requests
}

/// Returns true if an agent must not move because the agent itself or an ancestor has an open fork. The agent that chooses
/// among the branches, and its descendants, may move.
pub fn stands(snapshot: &Snapshot, agent: Id) -> bool {
    standing(snapshot, agent).is_some()
}

/// Returns the agent whose open fork keeps this one from moving.
pub(crate) fn standing(snapshot: &Snapshot, agent: Id) -> Option<Id> {
    if snapshot.forks.is_empty() {
        return None;
    }
    let (mut at, mut below) = (Some(agent), None);
    while let Some(id) = at {
        let forked = forks(snapshot).any(|fork| {
            let chooses = below.is_some() && fork.chooser == below;
            fork.owner == id && *fork.call.name != *JOIN && !chooses
        });
        if forked {
            return Some(id);
        }
        (below, at) = (Some(id), snapshot.agents.get(&id)?.family.parent);
    }
    None
}

/// Returns the line up to which a branch is adopted: the one before its first simulated effect or leaf. `before` returns the
/// commit before a line; `end` is the snapshot at the end of the branch.
pub fn adopted_up_to(end: &Snapshot, before: impl FnOnce(Line) -> Line) -> Line {
    end.first_simulated.map_or(end.line, before)
}

/// An outstanding effect of the snapshot from which a branch begins or is adopted. Ordered like moves, then by call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Out {
    path: Path,
    what: Want,
    agent: Id,
    effect: Id,
    /// Remaining time until the effect was due, in milliseconds.
    remaining: Option<u64>,
}

impl Out {
    /// The agent that the effect was for.
    pub(crate) fn agent(&self) -> Id {
        self.agent
    }
}

/// Returns the outstanding effects of the agents in `scope`.
pub(crate) fn out(snapshot: &Snapshot, scope: impl Fn(Id) -> bool) -> Vec<Out> {
    let mut out: Vec<Out> = snapshot
        .effects
        .iter()
        .filter(|(_, effect)| scope(effect.agent))
        .map(|(id, effect)| Out {
            path: snapshot.agent(effect.agent).family.path.clone(),
            what: effect.what,
            agent: effect.agent,
            effect: *id,
            remaining: effect
                .due
                .map(|due| u64::try_from(due.0.saturating_sub(snapshot.now.0)).unwrap_or(0)),
        })
        .collect();
    out.sort();
    out
}

/// The kind of branch operation, which decides how outstanding effects are renewed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// A fork or rewind: an effect that may have touched the world closes with what the ledger knows of it.
    Fork,
    /// An adoption: an effect that did not begin in the adopted branch begins here; one that ended there ends its call here.
    Adoption,
    /// A dry branch that continues a dry branch: nothing touched the world.
    Dry,
}

impl Tick<'_> {
    /// Builds the adoption of `from`, the snapshot of the adopted branch at the adopted line. State values become texts of
    /// the adopting line, because the fold reads no other texts.
    pub(crate) fn adoption(&mut self, branch: Id, from: &Snapshot) -> Adoption {
        // The time between the adopted line and now does not count for the waits of the branch.
        let paused = self.now.0.saturating_sub(from.now.0);
        let agents = from.agents.values().filter(|a| from.in_scope(a.id));
        let agents = agents.map(|agent| {
            // The chooser is a child that was born on the target: later children must not get its birth number.
            let here = self
                .snapshot
                .agents
                .get(&agent.id)
                .map_or(0, |a| a.family.births);
            let mut agent = Agent::clone(agent);
            agent.family.births = agent.family.births.max(here);
            agent.counters = agent.counters.stopped(from.now);
            facts::of_agent(&agent)
        });
        let agents = agents.collect();
        let calls = from.calls.values().filter(|c| from.in_scope(c.owner));
        let calls = calls.map(|call| {
            let opened = match call.call.target {
                Target::Wait => Time(call.opened.0.saturating_add(paused)),
                _ => call.opened,
            };
            let adopted = facts::of_call(call, |value| self.body(value.0.to_string()));
            AdoptedCall { opened, ..adopted }
        });
        let calls = calls.collect();
        let cells = written(from, from.forked_at).into_iter();
        let cells = cells.map(|((scope, name), cell)| {
            let set = cell.iter().map(|cell| {
                let value = self.body(cell.value.0.to_string());
                CellFact::Set(value, cell.line)
            });
            let mut facts: Vec<CellFact> = set.collect();
            facts.extend(cell.and_then(|c| c.expires).map(CellFact::Expires));
            AdoptedCell { scope, name, facts }
        });
        let cells = cells.collect();
        let artifacts = from.artifacts.iter().flat_map(|(key, versions)| {
            let here = self.snapshot.artifacts.get(key);
            let new = |version: &&Artifact| here.is_none_or(|here| !here.contains(*version));
            versions.iter().filter(new).cloned().collect::<Vec<_>>()
        });
        let watermarks = from.watermarks.iter();
        Adoption {
            branch,
            at: from.line,
            agents,
            calls,
            cells,
            artifacts: artifacts.collect(),
            watermarks: watermarks
                .filter(|((agent, _), _)| from.in_scope(*agent))
                .map(|((agent, policy), exchanges)| Watermark {
                    agent: *agent,
                    policy: policy.clone(),
                    exchanges: *exchanges,
                })
                .collect(),
        }
    }

    /// Renews the outstanding effects: wishes those again that may be repeated, and closes the calls of the others.
    pub(crate) fn renew(&mut self, out: &[Out], how: Renewal, known: &Known) {
        for out in out {
            let call = match out.what {
                Want::Call(call) => call,
                Want::Step => {
                    self.wake(out.agent);
                    continue;
                }
            };
            let open = self.snapshot.call(out.agent, call).cloned();
            let Some(open) = open.filter(|c| c.closed.is_none() && c.effect.is_none()) else {
                continue;
            };
            let fact = known.iter().find(|(e, _)| *e == out.effect).map(|(_, f)| f);
            let may_touch_world =
                matches!(open.call.target, Target::Tool(class) if !class.is_free());
            match (may_touch_world, how) {
                (true, Renewal::Fork) => self.not_here(&open, fact),
                (true, Renewal::Adoption) => match fact {
                    None | Some(Fact::NeverStarted) => self.wish_anew(out, call),
                    Some(Fact::Done(outcome)) => self.done_there(&open, outcome),
                    Some(Fact::Unknown) => {
                        let text = self.says(open.owner, texts::MAY_HAVE_HAPPENED, &[]);
                        let mapped = Mapped::plain(How::Unknown, Some(Code::InDoubt.text()), text);
                        self.close_call(open.owner, call, mapped);
                    }
                },
                (true, Renewal::Dry) | (false, _) => self.wish_anew(out, call),
            }
        }
    }

    fn wish_anew(&mut self, out: &Out, call: Id) {
        let id = self.id();
        let due = out.remaining.map(|ms| self.now.plus(ms));
        self.wish(Wished {
            id,
            agent: out.agent,
            what: Want::Call(call),
            args: None,
            due,
        });
    }

    /// Closes a call with the outcome of its effect, which the ledger records as done in the adopted branch.
    fn done_there(&mut self, open: &OpenCall, outcome: &Outcome) {
        let mapped = match outcome {
            Outcome::Mapped(mapped) => mapped.clone(),
            Outcome::Failed(failure) => {
                Mapped::plain(How::Failed, Some(&failure.code), failure.message.clone())
            }
            Outcome::Answer(_) | Outcome::Leaf(_) | Outcome::Came(_) => {
                Mapped::plain(How::Done, None, String::new())
            }
        };
        self.close_call(open.owner, open.call.id, mapped);
    }

    /// Closes a call that was open where this branch began. The result tells the model what the ledger knows of its effect.
    fn not_here(&mut self, open: &OpenCall, fact: Option<&Fact>) {
        let text = match fact {
            None | Some(Fact::NeverStarted) => self.says(open.owner, texts::NOT_BEGUN, &[]),
            Some(Fact::Done(outcome)) => match &**outcome {
                Outcome::Mapped(mapped) if mapped.shown.is_some() || !mapped.more.is_empty() => {
                    let result = ("result", &*mapped.told());
                    self.says(open.owner, texts::DONE_OUTSIDE, &[result])
                }
                _ => self.says(open.owner, texts::DONE_OUTSIDE, &[("result", "none")]),
            },
            Some(Fact::Unknown) => self.says(open.owner, texts::UNKNOWN_OUTSIDE, &[]),
        };
        let raw = Raw::NotPerformed(Fault::new(Code::NotInThisBranch, text));
        let mapped = map(&self.cx(), &self.snapshot, open.owner, open.call.id, &raw);
        self.close_call(open.owner, open.call.id, mapped);
    }

    /// Requests the adoption again for forks of the agents that `of` accepts: their branch was chosen where this branch
    /// begins, or in the adopted branch, and was not adopted yet.
    pub(crate) fn renew_choices(&mut self, of: impl Fn(&Snapshot, Id) -> bool) {
        let chosen: Vec<Request> = forks(&self.snapshot)
            .filter(|open| self.snapshot.in_scope(open.owner) && of(&self.snapshot, open.owner))
            .filter_map(|open| {
                let (branch, at) = open.chosen?;
                Some(Request::Adopt {
                    call: (open.owner, open.call.id),
                    branch,
                    at,
                })
            })
            .collect();
        self.requests.extend(chosen);
    }

    // ---- fork ------------------------------------------------------------------------------------------------

    /// Begins a `fork` call, the last open one of its exchange: makes ids for its branches and asks the driver to open them.
    /// If it cannot begin, its result says why.
    pub(crate) fn begin_fork(&mut self, owner: Id, call: Id) {
        let Some(open) = self.snapshot.call(owner, call).cloned() else {
            return;
        };
        let says = match instructions(&self.text(open.call.args)) {
            Ok(says) => says,
            Err(text) => return self.close_call(owner, call, refused(Code::Misfit, text)),
        };
        let most = self
            .fork_use(owner, &open)
            .and_then(|u| u.max)
            .unwrap_or(FORKS);
        if says.len() as u64 > u64::from(most) {
            let text = format!("{} branches are too many: at most {most}.", says.len());
            return self.close_call(owner, call, refused(Code::Limit, text));
        }
        let on = joins_on(&self.cx(), &self.snapshot, &open);
        if let Err(text) = on.fits(says.len()) {
            let text = format!("{text}: give more instructions.");
            return self.close_call(owner, call, refused(Code::Misfit, text));
        }
        let branches: Vec<Id> = says.iter().map(|_| self.id()).collect();
        self.branch(owner, call, CallChanged::Began(branches.clone()));
        let cx = self.cx();
        let opened = openings(&cx, &self.snapshot, &open, &branches, &says);
        self.requests.extend(opened);
    }

    /// Applies a step of a call to branches to the snapshot and records it in the commit.
    pub(crate) fn branch(&mut self, agent: Id, call: Id, what: CallChanged) {
        let changed = CallChange { agent, call, what };
        self.snapshot.call_changed(self.now, &changed);
        self.commit.calls.push(changed);
    }

    fn fork_use(&self, owner: Id, open: &OpenCall) -> Option<&ToolUse> {
        fork_use(&self.cx(), &self.snapshot, owner, open)
    }

    // ---- ends and choices ------------------------------------------------------------------------------------

    /// Ends a call to branches if these ends satisfy its condition, or if the condition can no longer hold.
    pub(crate) fn branches_ended(&mut self, open: &OpenCall, ends: &[BranchEnd]) -> Taken {
        let Target::Branches(branches) = &open.call.target else {
            return Err(Until::Stale);
        };
        let on = joins_on(&self.cx(), &self.snapshot, open);
        let stands = Stands::of(&on, branches.len(), ends);
        if stands == Stands::Open {
            return Err(Until::Stale);
        }
        self.admit_ends(open, ends);
        let joins = *open.call.name == *JOIN;
        let ended = |branch: &&Id| ends.iter().any(|end| end.branch == **branch);
        let rest: Vec<Id> = branches.iter().filter(|b| !ended(b)).copied().collect();
        let mut results = results(ends);
        for (k, branch) in branches.iter().enumerate() {
            let of = results["branches"].as_array_mut().into_iter().flatten();
            for told in of.filter(|told| told["id"] == branch.to_string()) {
                told["number"] = (k + 1).into();
            }
        }
        if !rest.is_empty() {
            // The branches that a person forked go on; those that an agent forked are no longer needed.
            let word = if joins { "open" } else { "cancelled" };
            // Branches are named by number, in the order of the fork: their ids may differ after a crash.
            let numbers = branches.iter().zip(1..).filter(|(b, _)| rest.contains(b));
            results[word] = numbers.map(|(_, number): (_, u32)| number).collect();
        }
        match stands {
            Stands::Never(why) => {
                results["note"] = why.into();
                let mapped = Mapped::plain(
                    How::Failed,
                    Some(Code::NotMet.text()),
                    told(&results).to_string(),
                );
                self.close_branches(open, mapped);
            }
            _ if joins => self.joined(open, &results),
            _ => {
                self.ends(open, &results);
                // If closing the call already released the branches, do nothing.
                let chooses = self.snapshot.call(open.owner, open.call.id);
                let chooses = chooses.is_some_and(|call| call.closed.is_none());
                if chooses && !rest.is_empty() {
                    self.requests.push(Request::Supersede { branches: rest });
                }
            }
        }
        Ok(())
    }

    /// Enough branches of a fork have ended: asks the chooser. Without a chooser the ends are the result of the call.
    fn ends(&mut self, open: &OpenCall, results: &Json) {
        let (owner, call) = (open.owner, open.call.id);
        let chooser = self.fork_use(owner, open).and_then(|u| u.choose.clone());
        if chooser.is_some() {
            let body = self.body(results.to_string());
            self.branch(owner, call, CallChanged::Ended(body));
        }
        match chooser {
            None => self.joined(open, results),
            Some(Chooser::Tool(name)) => {
                let args = chooser_args(
                    &self.network.tool(&name).parameters,
                    &with_all_answers(&told(results)),
                );
                self.ask_to_choose(owner, call, &args);
            }
            Some(Chooser::Person(_)) => self.ask_to_choose(owner, call, results),
            Some(Chooser::Agent(name)) => {
                let def = self.network.agent(&name);
                let args = chooser_args(&def.parameters, &with_all_answers(&told(results)));
                let Does::Model(_) = def.does else {
                    return self.joined(open, results);
                };
                let agent = self.make_agent(&name, Some(owner), None);
                let body = self.body(args.to_string());
                self.push(
                    agent,
                    Interaction::UserMessage {
                        from: Origin::Call(call),
                        body,
                    },
                );
                self.wake(agent);
            }
        }
    }

    fn ask_to_choose(&mut self, owner: Id, call: Id, args: &Json) {
        let id = self.id();
        let args = self.body(args.to_string());
        self.wish(Wished {
            id,
            agent: owner,
            what: Want::Call(call),
            args: Some(args),
            due: None,
        });
    }

    /// Closes a call to branches with their results. A tool that the joining person named is called next.
    pub(crate) fn joined(&mut self, open: &OpenCall, results: &Json) {
        let results = &told(results);
        let mut mapped = Mapped::plain(How::Done, None, results.to_string());
        if *open.call.name == *JOIN {
            let args: Json =
                crate::values::json::read(&self.text(open.call.args)).unwrap_or_default();
            if let Some(then) = args.get("then").and_then(Json::as_str)
                && let Some(tool) = self.network.tools.get(then)
            {
                let given = args.get("args").and_then(|a| Data::parse(a.clone()).ok());
                let given = given.map(|data| {
                    let cx = self.cx();
                    let view = View::new(&cx, &self.snapshot, Some(open.owner));
                    data.eval(&view.with("result", results.clone()))
                });
                match given {
                    None => {
                        let args = chooser_args(&tool.parameters, results);
                        mapped.then = Some((then.to_owned(), args));
                    }
                    Some(Ok(args)) => mapped.then = Some((then.to_owned(), args)),
                    Some(Err(e)) => mapped.shown = Some(format!("{then} was not called: {e}")),
                }
            }
        }
        self.close_branches(open, mapped);
    }

    pub(crate) fn close_branches(&mut self, open: &OpenCall, mapped: Mapped) {
        self.close_call(open.owner, open.call.id, mapped);
    }

    /// Handles the answer of the chooser: requests the adoption of the named branch. If the answer names no branch, the call
    /// closes and the forking agent gets the results.
    pub(crate) fn chosen(&mut self, owner: Id, call: Id, answer: &str) {
        let Some(open) = self.snapshot.call(owner, call).cloned() else {
            return;
        };
        let Target::Branches(branches) = &open.call.target else {
            return;
        };
        let ends = open.ends.map(|body| self.text(body));
        let ends: Json = ends
            .and_then(|text| crate::values::json::read(&text).ok())
            .unwrap_or_default();
        if let Some((k, branch)) = choice(answer, branches, &ends) {
            let at = Line(ends["branches"][k]["at"].as_u64().unwrap_or_default());
            self.branch(owner, call, CallChanged::Chose(branch, at));
            let call = (owner, call);
            self.requests.push(Request::Adopt { call, branch, at });
            return;
        }
        let text = json!({
            "note": format!("Nobody chose: {answer:?} names none of the branches."),
            "answers": ends["answers"],
            "branches": ends["branches"],
        });
        let mapped = Mapped::plain(How::Done, None, told(&text).to_string());
        self.close_branches(&open, mapped);
    }

    /// The adopted branch ended the task of its top agent: that end becomes the result of the caller's call.
    pub(crate) fn ended_there(&mut self, agent: Id, serving: Option<Id>) {
        let top = self.agent(agent);
        let (Some(call), Some(parent), true) =
            (serving, top.family.parent, top.input.serving != serving)
        else {
            return;
        };
        let cause = match top.turn.ended {
            Some((End::Task, cause)) => cause,
            // The agent went on after the end of its task.
            Some((End::Turn | End::Draft, _)) | None => Cause::Answer,
        };
        let how = Self::result(cause, limits::has_answered(top));
        let body = top.turn.answer;
        self.ended(parent, call, how, body, Vec::new());
    }
}

fn refused(code: Code, text: String) -> Mapped {
    Mapped::plain(How::Refused, Some(code.text()), text)
}

/// Returns the work of the outstanding effect of a call to branches: a tool or a person is asked to choose.
pub(crate) fn work(cx: &Cx<'_>, snapshot: &Snapshot, open: &OpenCall) -> Work {
    let args = cx.bodies.text(open.edited.unwrap_or(open.call.args));
    let chooser = fork_use(cx, snapshot, open.owner, open).and_then(|u| u.choose.as_ref());
    match chooser {
        Some(Chooser::Tool(tool)) => Work::Tool(ToolWork {
            makes: tool.clone(),
            tool: tool.clone(),
            class: cx.network.tool(tool).effect,
            args,
            approve: Vec::new(),
            inputs: Vec::new(),
        }),
        Some(Chooser::Person(person)) => Work::Ask {
            to: person.clone(),
            question: question(&args).into(),
            options: numbers(&args),
        },
        // An agent chooses by its own model calls. Without a chooser no effect is outstanding.
        Some(Chooser::Agent(_)) | None => Work::Timer,
    }
}

/// Returns the numbers of the branches that can be chosen.
fn numbers(results: &str) -> Vec<String> {
    let results: Json = crate::values::json::read(results).unwrap_or_default();
    let branches = results["branches"].as_array().into_iter().flatten();
    branches.map(|end| end["number"].to_string()).collect()
}

fn fork_use<'n>(
    cx: &Cx<'n>,
    snapshot: &Snapshot,
    owner: Id,
    open: &OpenCall,
) -> Option<&'n ToolUse> {
    let agent = cx.network.in_force(snapshot.agent(owner))?;
    let seen = &open.call.called();
    agent
        .tools
        .iter()
        .find(|u| u.seen == *seen && u.of == Offer::Tool(open.call.name.clone()))
}

fn openings(
    cx: &Cx<'_>,
    snapshot: &Snapshot,
    open: &OpenCall,
    branches: &[Id],
    says: &[String],
) -> Vec<Request> {
    let live = fork_use(cx, snapshot, open.owner, open).is_some_and(|u| u.live);
    branches
        .iter()
        .zip(says)
        .enumerate()
        .map(|(i, (branch, say))| Request::Open {
            branch: *branch,
            scope: open.owner,
            call: open.call.id,
            index: i as u32 + 1,
            of: branches.len() as u32,
            say: say.as_str().into(),
            dry: snapshot.dry || !live,
        })
        .collect()
}

/// Parses the instructions of a fork: a list of texts, one for each branch.
pub(crate) fn instructions(args: &str) -> Result<Vec<String>, String> {
    let help = || "`instructions` must be a list of texts, one for each branch.".to_owned();
    let args: Json = crate::values::json::read(args).map_err(|_| help())?;
    let list = args.get("instructions").and_then(Json::as_array);
    let says: Option<Vec<String>> = list
        .ok_or_else(help)?
        .iter()
        .map(|i| i.as_str().map(str::to_owned))
        .collect();
    says.filter(|s| !s.is_empty()).ok_or_else(help)
}

/// Returns the ends of branches as JSON. [`told`] makes the form of it that models, tools and people see.
pub(crate) fn results(ends: &[BranchEnd]) -> Json {
    let branches: Vec<Json> = ends
        .iter()
        .enumerate()
        .map(|(i, end)| {
            json!({
                "number": i + 1,
                "id": end.branch.to_string(),
                "branch": end.label.as_ref().map_or_else(|| end.branch.to_string(), Name::to_string),
                "at": end.at.0,
                "answer": end.answer.as_deref(),
                "end": end_word(end.end),
                "cause": cause_word(end.cause),
            })
        })
        .collect();
    json!({ "answers": answers(ends), "branches": branches })
}

/// Returns [`results`] without ids and lines, which differ after a takeover: branches are named by number and label.
pub(crate) fn told(results: &Json) -> Json {
    let mut told = results.clone();
    let branches = told.get_mut("branches").and_then(Json::as_array_mut);
    for branch in branches.into_iter().flatten() {
        if let Some(branch) = branch.as_object_mut() {
            let unnamed = branch.get("branch") == branch.get("id");
            branch.retain(|key, _| {
                !(matches!(key.as_str(), "id" | "at") || unnamed && key == "branch")
            });
        }
    }
    told
}

/// Builds the arguments of a tool or agent that chooses or follows, by the names and types of its parameters: a list
/// `branches` gets the objects, any other list the answers, a text everything in words. Optional and other ones are left out.
fn chooser_args(parameters: &Parameters, results: &Json) -> Json {
    let Parameters::Fields(fields) = parameters else {
        return results.clone();
    };
    let mut args = serde_json::Map::new();
    for (name, ty) in fields {
        let value = match (&**name, &ty.kind) {
            ("branches", TypeKind::List(_) | TypeKind::Any) => results.get("branches").cloned(),
            (_, TypeKind::List(_) | TypeKind::Any) => results.get("answers").cloned(),
            (_, TypeKind::String { .. }) => Some(Json::from(in_words(results))),
            _ => None,
        };
        if let Some(value) = value.filter(|_| !ty.optional) {
            args.insert(name.to_string(), value);
        }
    }
    Json::Object(args)
}

/// Returns `results` with an answer for each branch, empty if it gave none, so that a chooser may count them.
fn with_all_answers(results: &Json) -> Json {
    let branches = results["branches"].as_array().into_iter().flatten();
    let answers = branches.map(|end| end["answer"].as_str().unwrap_or_default());
    let answers: Vec<&str> = answers.collect();
    let mut all = results.clone();
    all["answers"] = answers.into();
    all
}

fn in_words(results: &Json) -> String {
    let mut text = "Choose one of these by its number.".to_owned();
    let branches = results.get("branches").and_then(Json::as_array);
    for branch in branches.into_iter().flatten() {
        let answer = branch["answer"].as_str().unwrap_or_default();
        let _ = write!(text, "\n{}: {answer}", branch["number"]);
    }
    text
}

fn question(results: &str) -> String {
    in_words(&crate::values::json::read(results).unwrap_or(Json::Null))
}

/// Returns the branch that an answer names, and its index among those that ended. The answer may be a number, `b2`, an id, a
/// label, or an object with `branch` or `number`.
fn choice(answer: &str, branches: &[Id], ends: &Json) -> Option<(usize, Id)> {
    let answer = answer.trim();
    if let Ok(Json::Object(object)) = crate::values::json::read(answer) {
        return match object.get("branch").or_else(|| object.get("number"))? {
            Json::String(text) => choice(text, branches, ends),
            Json::Number(number) => choice(&number.to_string(), branches, ends),
            _ => None,
        };
    }
    let told = ends["branches"].as_array()?;
    let place = |key: &str, value: &str| told.iter().position(|e| e[key].as_str() == Some(value));
    let number = || {
        let number: u64 = answer.strip_prefix('b').unwrap_or(answer).parse().ok()?;
        told.iter().position(|end| end["number"] == number)
    };
    let k = place("id", answer)
        .or_else(|| place("branch", answer))
        .or_else(number)?;
    let id = told[k]["id"].as_str()?.parse::<Id>().ok()?;
    branches.contains(&id).then_some((k, id))
}
