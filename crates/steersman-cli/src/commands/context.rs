//! `context`: renders again what the model saw and compares it with what was sent; shows where each part comes from, what
//! changed since the previous call, and how much stayed the same.

mod cache;
mod diff;
mod why;

use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::log::Log;
use crate::place::Place;
use crate::printer::{Printer, bold, cyan, dim, typed, yellow};
use crate::words::{arguments, digits, money};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman::runtime::engine::Inspection;
use steersman_machine::commit::{Admitted, Binding, Commit, LogLine, Made, Usage, Want, Wished};
use steersman_machine::context::{Content, Purpose, RenderCache, Request, purpose, request};
use steersman_machine::extract::is_extraction;
use steersman_machine::fold::fold;
use steersman_machine::ids::{Id, Line, Name};
use steersman_machine::interaction::{Interaction, Target};
use steersman_machine::network::Network;
use steersman_machine::reflect::is_review;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::tick::Cx;

pub(crate) const LISTED: &str = "Show what the model saw at a line";

/// Show what the model saw at a line.
#[derive(Debug, clap::Args)]
pub(crate) struct ContextArgs {
    /// SESSION[:BRANCH][@LINE]: as in `show`; with a line the model call there, else the newest that was answered.
    #[arg(default_value = "last")]
    address: String,
    /// Of the model calls this one, by its id `21.1`, or those of this agent, by its name; `AGENT#compact` and the like: what was
    /// asked beside its own answers.
    #[arg(value_name = "CALL|AGENT", conflicts_with = "cache")]
    whose: Option<String>,
    /// Say of each part where it comes from, and what is not there and why.
    #[arg(long, conflicts_with_all = ["diff", "cache"])]
    why: bool,
    /// Say what changed since this agent's call before, how much stayed the same, and what broke that.
    #[arg(long, conflicts_with = "cache")]
    diff: bool,
    /// Say of each model call how much of it was as in the call before, what its provider had cached, and what broke it.
    #[arg(long)]
    cache: bool,
}

/// A model call on a branch's path.
struct Call {
    effect: Id,
    agent: Id,
    /// The line whose commit wished the call; the request is rendered from the state after it.
    wished: Line,
    /// The line that took the answer, if there is one.
    answered: Option<Line>,
    usage: Option<Usage>,
    /// The purpose of a call that is not the agent's own answer, once `tell_apart` has run.
    beside: Option<&'static str>,
}

pub(crate) async fn run(
    args: ContextArgs,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, CommandError> {
    let place = Place::to_look(global).await?;
    let sight = place.look(&args.address).await?;
    let (path, line, short) = (sight.path(), sight.line()?, sight.name());
    let mut calls = calls(&path);
    let session = Looked {
        place: &place,
        inspection: &sight.inspection,
        log: &sight.log,
        path: &path,
        names: names(&path),
        short: &short,
    };
    if args.cache {
        return cache::run(&session, &calls, line, printer).await;
    }
    session.tell_apart(&mut calls).await;
    let calls = calls;
    let wanted = session.of_whom(&calls, args.whose.as_deref());
    let chosen = choose(&wanted, &reviewers(&path), line).ok_or_else(|| match &args.whose {
        Some(whose) => CommandError::usage(format!("no model call there is `{whose}` or is of it"))
            .hint(format!("model calls: {}", session.others(&calls, None))),
        None => CommandError::usage("no model was called there")
            .hint(format!("`steersman show {short}` names the lines")),
    })?;
    if args.why {
        return why::run(&session, chosen, printer).await;
    }
    if args.diff {
        return diff::run(&session, &calls, chosen, printer).await;
    }
    let request = session.sent(chosen).await?.0;
    let same = chosen
        .usage
        .as_ref()
        .and_then(|u| u.request)
        .map(|digest| digest == request.digest);
    if printer.is_json() {
        printer.json(&document(chosen, &request, same))?;
        return Ok(Exit::Answered);
    }
    let name = session.name(chosen, &request);
    printer.data(format!(
        "{}   {}",
        typed(&format!(
            "{short}@{} {name}",
            chosen.answered.unwrap_or(chosen.wished)
        )),
        dim(&sizes(chosen, &request))
    ))?;
    for segment in &request.segments {
        show(printer, &segment.content)?;
    }
    printer.talk("");
    match same {
        Some(true) => printer.talk(dim("As it was sent: the digest matches.")),
        Some(false) => printer.talk(yellow(
            "This version renders it otherwise than it was sent: the digest differs.",
        )),
        None => printer.talk(dim("Not sent yet, or no answer came.")),
    }
    let others = session.others(&calls, Some(chosen));
    if !others.is_empty() {
        printer.talk(dim(&format!("Other model calls: {others}")));
    }
    Ok(Exit::Answered)
}

/// Returns the model calls on a path, in the order in which they were wished.
fn calls(path: &[&Arc<LogLine>]) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut places: BTreeMap<Id, usize> = BTreeMap::new();
    let mut extractions: BTreeSet<Id> = BTreeSet::new();
    for line in path {
        let Some(commit) = &line.commit else { continue };
        for admission in &commit.admitted {
            let place = admission.id.and_then(|id| places.get(&id).copied());
            if admission.kind == Admitted::Outcome
                && let Some(place) = place
            {
                let call = &mut calls[place];
                call.answered = Some(line.n);
                call.usage = usage(commit, call.effect);
            }
        }
        let asks = commit.pushes.iter().filter_map(|push| match &push.what {
            Interaction::Call(call)
                if is_extraction(&call.name)
                    || (is_review(call) && matches!(call.target, Target::Tool(_))) =>
            {
                Some(call.id)
            }
            _ => None,
        });
        extractions.extend(asks);
        let is_model = |w: &&Wished| match w.what {
            Want::Step => true,
            Want::Call(call) => extractions.contains(&call),
        };
        for wished in commit.wished.iter().filter(is_model) {
            places.insert(wished.id, calls.len());
            calls.push(Call {
                effect: wished.id,
                agent: wished.agent,
                wished: line.n,
                answered: None,
                usage: None,
                beside: None,
            });
        }
    }
    calls
}

fn usage(commit: &Commit, effect: Id) -> Option<Usage> {
    commit
        .usage
        .iter()
        .find(|u| u.effect == Some(effect))
        .cloned()
}

/// Returns the agents that judge the work of others.
fn reviewers(path: &[&Arc<LogLine>]) -> BTreeSet<Id> {
    let pushes = path
        .iter()
        .filter_map(|line| line.commit.as_ref())
        .flat_map(|commit| &commit.pushes);
    let judges = pushes.filter_map(|push| match &push.what {
        Interaction::Call(call) if is_review(call) => match call.target {
            Target::Agent(reviewer) => Some(reviewer),
            _ => None,
        },
        _ => None,
    });
    judges.collect()
}

/// Chooses a call for a line: the one whose answer the line took, else the one that it wished, else the last before it.
/// Without a line, chooses the last answered call of an agent that is not a judge.
fn choose<'a>(calls: &[&'a Call], judges: &BTreeSet<Id>, line: Option<Line>) -> Option<&'a Call> {
    let calls = || calls.iter().copied();
    let Some(line) = line else {
        let answered = || calls().rev().filter(|c| c.answered.is_some());
        return answered()
            .find(|c| !judges.contains(&c.agent))
            .or_else(|| answered().next())
            .or_else(|| calls().last());
    };
    calls()
        .find(|c| c.answered == Some(line))
        .or_else(|| calls().find(|c| c.wished == line))
        .or_else(|| calls().rev().find(|c| c.wished <= line))
}

/// An agent, and the purpose of a call that is not its own answer.
type Asked<'a> = (Id, Option<&'a str>);

/// The session that the command looks at.
struct Looked<'a> {
    place: &'a Place,
    inspection: &'a Inspection,
    log: &'a Log,
    path: &'a [&'a Arc<LogLine>],
    /// The names of its agents: the labels that callers gave, or the names of their definitions.
    names: BTreeMap<Id, Name>,
    /// The session as people type it, with the branch if one was named.
    short: &'a str,
}

/// A position on the path of a branch. Lines that were folded for the previous position are not folded again.
struct Walk<'a> {
    log: &'a Log,
    stands: Line,
    snapshot: Snapshot,
}

impl Walk<'_> {
    /// Returns the snapshot after this line. If the previous position is not on the way to it (after an adoption), folds
    /// from the beginning.
    fn at(&mut self, line: Line) -> &Snapshot {
        let mut ahead = self.log.back_to(line, self.stands);
        let leads = match ahead.last() {
            Some(first) => first.prev == self.stands,
            None => line == self.stands,
        };
        if !leads {
            self.snapshot = Snapshot::empty();
            ahead = self.log.back_to(line, Line::NONE);
        }
        while let Some(line) = ahead.pop() {
            let snapshot = std::mem::replace(&mut self.snapshot, Snapshot::empty());
            self.snapshot = fold(snapshot, line);
        }
        self.stands = line;
        &self.snapshot
    }
}

impl Looked<'_> {
    /// Starts a walk along the path.
    fn walk(&self) -> Walk<'_> {
        Walk {
            log: self.log,
            stands: Line::NONE,
            snapshot: Snapshot::empty(),
        }
    }

    /// Renders a request again as this version does, and returns it with its snapshot and network. The session may have
    /// been bound to another definition while the call waited or ran. Then the binding whose rendering has the digest of
    /// the sent request is used, else the last one.
    async fn sent(&self, call: &Call) -> Result<(Request, Snapshot, Arc<Network>), CommandError> {
        let mut walk = self.walk();
        let snapshot = walk.at(call.wished);
        self.sent_after(call, snapshot, &mut RenderCache::default())
            .await
    }

    /// Like [`Self::sent`], from the snapshot at that time, with a cache of the agent's previous call.
    async fn sent_after(
        &self,
        call: &Call,
        snapshot: &Snapshot,
        cache: &mut RenderCache,
    ) -> Result<(Request, Snapshot, Arc<Network>), CommandError> {
        let wished = self.path.partition_point(|line| line.n <= call.wished);
        let waits = |line: &&&Arc<LogLine>| call.answered.is_none_or(|answered| line.n < answered);
        let meanwhile = self.path[wished..].iter().take_while(waits);
        let meanwhile =
            meanwhile.filter_map(|line| line.commit.as_ref()?.binding.clone().map(Arc::new));
        let bindings: Vec<Arc<Binding>> = snapshot
            .binding
            .clone()
            .into_iter()
            .chain(meanwhile)
            .collect();
        let digest = call.usage.as_ref().and_then(|usage| usage.request);
        let mut last = Err(CommandError::usage("this session has not begun"));
        for binding in bindings {
            let network = self.network(&binding).await?;
            let snapshot = Snapshot {
                binding: Some(binding),
                ..snapshot.clone()
            };
            let cx = Cx {
                network: &network,
                bodies: &*self.inspection.history,
            };
            let rendered = request(&cx, &*self.inspection.history, &snapshot, call.agent, cache);
            let request = rendered.map_err(|error| unrendered(&error))?;
            let same = Some(request.digest) == digest;
            last = Ok((request, snapshot, network));
            if same {
                break;
            }
        }
        last
    }

    /// Returns the network of this binding.
    async fn network(&self, binding: &Binding) -> Result<Arc<Network>, CommandError> {
        let values = self.inspection.history.body(binding.values);
        let engine = self.place.engine();
        let session = &self.inspection.info.id;
        Ok(engine.network_of(session, binding, &values).await?)
    }

    /// Finds the purpose of each call, without rendering it.
    async fn tell_apart(&self, calls: &mut [Call]) {
        let mut walk = self.walk();
        let mut bound: Option<(Arc<Binding>, Arc<Network>)> = None;
        for call in calls {
            let snapshot = walk.at(call.wished);
            let Some(binding) = &snapshot.binding else {
                continue;
            };
            let known = bound
                .take()
                .filter(|(known, _)| Arc::ptr_eq(known, binding));
            bound = known;
            if bound.is_none() {
                let network = self.network(binding).await.ok();
                bound = network.map(|network| (binding.clone(), network));
            }
            if let Some((_, network)) = &bound {
                let bodies = &*self.inspection.history;
                let cx = Cx { network, bodies };
                call.beside = purpose(&cx, snapshot, call.agent).beside();
            }
        }
    }

    /// Returns the calls to choose from: all, the one with this id, those of the agent with this name or id, or those with
    /// this key as in scripts: `desk#compact`.
    fn of_whom<'c>(&self, calls: &'c [Call], whose: Option<&str>) -> Vec<&'c Call> {
        let id = whose.and_then(|whose| whose.parse::<Id>().ok());
        let is_of = |call: &&Call| match whose {
            None => true,
            Some(whose) => {
                id == Some(call.effect)
                    || id == Some(call.agent)
                    || self
                        .names
                        .get(&call.agent)
                        .is_some_and(|name| **name == *whose)
                    || (call.beside.is_some() && self.named(call.agent, call.beside) == *whose)
            }
        };
        calls.iter().filter(is_of).collect()
    }

    /// Lists the lines of all other answered model calls, by agent.
    fn others(&self, calls: &[Call], but: Option<&Call>) -> String {
        let mut by_name: Vec<(Asked<'_>, Vec<String>)> = Vec::new();
        for call in calls {
            if call.answered.is_none() || but.is_some_and(|but| but.effect == call.effect) {
                continue;
            }
            let at = format!("@{}", call.answered.unwrap_or(call.wished));
            let who = (call.agent, call.beside);
            match by_name.iter_mut().find(|(known, _)| *known == who) {
                Some((_, lines)) => lines.push(at),
                None => by_name.push((who, vec![at])),
            }
        }
        let named = by_name.iter().map(|((agent, beside), lines)| {
            format!("{} {}", self.named(*agent, *beside), lines.join(" "))
        });
        named.collect::<Vec<_>>().join(", ")
    }

    /// Returns the purpose of a call that an agent would wish at this snapshot.
    async fn purpose(&self, snapshot: &Snapshot, agent: Id) -> Result<Purpose, CommandError> {
        let unbound = || CommandError::usage("this session has not begun");
        let binding = snapshot.binding.as_ref().ok_or_else(unbound)?;
        let network = self.network(binding).await?;
        let cx = Cx {
            network: &network,
            bodies: &*self.inspection.history,
        };
        Ok(purpose(&cx, snapshot, agent))
    }

    /// Returns the agent and purpose as scripts name them.
    fn name(&self, call: &Call, request: &Request) -> String {
        self.named(call.agent, request.purpose.beside())
    }

    fn named(&self, agent: Id, beside: Option<&str>) -> String {
        let named = self.names.get(&agent);
        let name = named.map_or_else(|| agent.to_string(), ToString::to_string);
        match beside {
            Some(beside) => format!("{name}#{beside}"),
            None => name,
        }
    }
}

fn unrendered(error: &steersman_machine::expression::EvalError) -> CommandError {
    CommandError::new(Exit::Failed, format!("it could not be rendered: {error}"))
}

fn names(path: &[&Arc<LogLine>]) -> BTreeMap<Id, Name> {
    let commits = path.iter().filter_map(|line| line.commit.as_ref());
    let made = commits.flat_map(|commit| &commit.made);
    let name = |made: &Made| made.named.as_ref().unwrap_or(&made.def).clone();
    made.map(|made| (made.agent, name(made))).collect()
}

fn sizes(call: &Call, request: &Request) -> String {
    let bytes: u64 = request.segments.iter().map(|s| s.len).sum();
    let mut parts = vec![format!("{} bytes", digits(bytes))];
    if let Some(usage) = &call.usage {
        if let Some(model) = &usage.model {
            parts.insert(0, model.to_string());
        }
        parts.push(format!(
            "{} tokens in ({} cached), {} out",
            digits(usage.input),
            digits(usage.cached),
            digits(usage.output)
        ));
        if let Some(micros) = usage.micros.filter(|micros| *micros > 0) {
            parts.push(format!("costs {}", money(micros)));
        }
        match &usage.broke {
            // This process rendered no earlier request to compare with.
            None if usage.prefix == 0 => {}
            None => parts.push(format!(
                "{} bytes as in the call before",
                digits(usage.prefix)
            )),
            Some(part) => parts.push(format!(
                "{} bytes as before, then {part} changed",
                digits(usage.prefix)
            )),
        }
    }
    parts.join(", ")
}

fn show(printer: &Printer, content: &Content) -> Result<(), CommandError> {
    let head = |name: &str| format!("\n{}", cyan(name));
    match content {
        Content::System(text) => {
            printer.data(head("system"))?;
            printer.data(indent(text))
        }
        Content::Tools(tools) => {
            printer.data(head("tools"))?;
            for tool in tools {
                printer.data(format!("  {}  {}", bold(&tool.name), tool.description))?;
                printer.data(dim(&format!("    {}", tool.parameters)))?;
            }
            Ok(())
        }
        Content::User(text) => {
            printer.data(head("user"))?;
            printer.data(indent(text))
        }
        Content::Assistant { text, calls, .. } => {
            printer.data(head("assistant"))?;
            if let Some(text) = text {
                printer.data(indent(text))?;
            }
            for call in calls {
                printer.data(format!(
                    "  calls {}({})",
                    bold(&call.name),
                    arguments(&call.args)
                ))?;
            }
            Ok(())
        }
        Content::Result {
            name, text, error, ..
        } => {
            let name = if *error {
                format!("result of {name}, an error")
            } else {
                format!("result of {name}")
            };
            printer.data(head(&name))?;
            printer.data(indent(text))
        }
    }
}

fn indent(text: &str) -> String {
    let rows: Vec<String> = text.lines().map(|l| format!("  {l}")).collect();
    rows.join("\n")
}

fn document(call: &Call, request: &Request, same: Option<bool>) -> Json {
    json!({
        "effect": call.effect.to_string(),
        "agent": call.agent.to_string(),
        "wished": call.wished.0,
        "answered": call.answered.map(|l| l.0),
        "model": request.model,
        "digest": request.digest.to_string(),
        "as_sent": same,
        "params": request.params.iter().cloned().collect::<serde_json::Map<_, _>>(),
        "output": request.output.as_deref(),
        "segments": request.segments.iter().map(|s| json!({
            "part": format!("{:?}", s.part).to_ascii_lowercase(),
            "bytes": s.len,
            "content": s.content,
        })).collect::<Vec<_>>(),
        "usage": call.usage.as_ref().map(|u| json!({
            "model": u.model,
            "input": u.input,
            "cached": u.cached,
            "output": u.output,
            "prefix": u.prefix,
            "broke": u.broke,
        })),
    })
}
