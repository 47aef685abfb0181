//! The model calls of a session and their contexts: rendered again by this version of the program, and compared with what was
//! sent.

mod row;

pub use row::{
    Cached, Caches, Change, Context, Explanation, Gone, HookedSegment, Origins, Piece, Policy,
    Read, Segment, Used,
};

use crate::log::Log;
use crate::reader::Reader;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steersman_machine::context::{
    RenderCache, Request, before_model, explain, purpose, request, unedited,
};
use steersman_machine::network::Network;
use steersman_machine::questions::Purpose;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::snapshot::fold::fold;
use steersman_machine::stored::commit::{
    Admitted, Binding, Commit, LogLine, Made as MadeAgent, Usage, Want, Wished,
};
use steersman_machine::stored::engine::Caller;
use steersman_machine::stored::ids::{Id, Line, Name};
use steersman_machine::stored::interaction::{Interaction, Target};
use steersman_machine::values::expression::EvalError;
use steersman_machine::view::Cx;
use steersman_runtime::engine::EngineError;

/// Error of rendering a context again.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// Errors of the store.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The session was not bound to a definition yet.
    #[error("this session has not begun")]
    NotBegun,
    /// A template failed.
    #[error("the context could not be rendered: {0}")]
    Unrendered(#[from] EvalError),
    /// There is no earlier call to compare with.
    #[error("this is the agent's first call of its kind")]
    First,
}

/// A model call on a branch's path.
#[derive(Clone, Debug)]
pub struct ModelCall {
    /// Id of its effect.
    pub effect: Id,
    /// The agent for which the model is asked.
    pub agent: Id,
    /// The line whose commit wished the call; the request is rendered from the state after it.
    pub wished: Line,
    /// The line that took the answer, if there is one.
    pub answered: Option<Line>,
    /// Tokens, cost and the request's digest, once it was answered.
    pub usage: Option<Usage>,
    /// The purpose of a call that is not the agent's own answer, as scripts name it: `compact`, `route`.
    pub beside: Option<&'static str>,
}

impl ModelCall {
    /// Returns the line that took the answer, otherwise the line that wished the call.
    pub fn line(&self) -> Line {
        self.answered.unwrap_or(self.wished)
    }
}

/// Returns the model calls on a path, in the order in which they were wished.
fn calls(path: &[&Arc<LogLine>]) -> Vec<ModelCall> {
    let mut calls: Vec<ModelCall> = Vec::new();
    let mut places: BTreeMap<Id, usize> = BTreeMap::new();
    // Extractions and judgements of the agent itself: the engine asks a model for them.
    let mut engine_calls: BTreeSet<Id> = BTreeSet::new();
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
                if call.is_extraction()
                    || (call.judged().is_some() && matches!(call.target, Target::Tool(_))) =>
            {
                Some(call.id)
            }
            _ => None,
        });
        engine_calls.extend(asks);
        let is_model = |w: &&Wished| match w.what {
            Want::Step => true,
            Want::Call(call) => engine_calls.contains(&call),
        };
        for wished in commit.wished.iter().filter(is_model) {
            places.insert(wished.id, calls.len());
            calls.push(ModelCall {
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

/// Returns true if the line is on this path and [`Contexts::choose`] finds a model call for it; without a line, if there is any.
pub fn is_known(path: &[&Arc<LogLine>], line: Option<Line>) -> bool {
    let calls = calls(path);
    let is_there = |wanted| path.iter().any(|line| line.n == wanted);
    line.is_none_or(is_there)
        && choose(&calls.iter().collect::<Vec<_>>(), &BTreeSet::new(), line).is_some()
}

/// Returns the line that an address with the name of this tool means on this path, if a model made the call there.
pub fn first_call_of_model(path: &[&Arc<LogLine>], tool: &str) -> Option<Line> {
    let first = Log::first_call_of(path, tool)?;
    let line = path.iter().find(|line| line.n == first)?;
    let mut pushes = line.commit.iter().flat_map(|commit| &commit.pushes);
    let of_model = pushes.any(|push| {
        matches!(&push.what, Interaction::Call(call) if *call.name == *tool && call.by == Caller::Model)
    });
    of_model.then_some(first)
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
        Interaction::Call(call) if call.judged().is_some() => match call.target {
            Target::Agent(reviewer) => Some(reviewer),
            _ => None,
        },
        _ => None,
    });
    judges.collect()
}

/// Chooses a call for a line: the one whose answer the line took, otherwise the one that it wished, otherwise the last before it.
/// Without a line, chooses the last answered call of an agent that is not a judge.
fn choose<'a>(
    calls: &[&'a ModelCall],
    judges: &BTreeSet<Id>,
    line: Option<Line>,
) -> Option<&'a ModelCall> {
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

/// A position on the path of a branch. Lines that were folded for the previous position are not folded again.
struct Walk<'a> {
    log: &'a Log,
    /// The line whose snapshot this is.
    position: Line,
    snapshot: Snapshot,
}

impl Walk<'_> {
    /// Returns the snapshot after this line. If the previous position is not on the way to it (after an adoption), folds
    /// from the beginning.
    fn at(&mut self, line: Line) -> &Snapshot {
        let mut ahead = self.log.back_to(line, self.position);
        let leads = match ahead.last() {
            Some(first) => first.prev == self.position,
            None => line == self.position,
        };
        if !leads {
            self.snapshot = Snapshot::empty();
            ahead = self.log.back_to(line, Line::NONE);
        }
        while let Some(line) = ahead.pop() {
            let snapshot = std::mem::replace(&mut self.snapshot, Snapshot::empty());
            self.snapshot = fold(snapshot, line);
        }
        self.position = line;
        &self.snapshot
    }
}

/// A request that was rendered again, with the state from which it was made.
struct Made {
    request: Request,
    snapshot: Snapshot,
    network: Arc<Network>,
}

/// The model calls that led to the head of a branch.
pub struct Contexts<'a> {
    /// Contexts are shown exactly as they were sent, so this is a plain reader.
    reader: &'a dyn Reader,
    log: &'a Log,
    path: &'a [&'a Arc<LogLine>],
    /// The names of the agents: the labels that callers gave, or the names of their definitions.
    names: BTreeMap<Id, Name>,
    calls: Vec<ModelCall>,
}

impl<'a> Contexts<'a> {
    /// Finds the model calls on a path. `reader` shows texts as they were sent ([`Stored::plain`](crate::reader::Stored::plain)).
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn of(
        reader: &'a dyn Reader,
        log: &'a Log,
        path: &'a [&'a Arc<LogLine>],
    ) -> Result<Self, ContextError> {
        // The reader is opened here, because texts are read synchronously.
        reader.lines(Line::NONE, 1).await?;
        let mut contexts = Self {
            reader,
            log,
            path,
            names: names(path),
            calls: calls(path),
        };
        let mut calls = std::mem::take(&mut contexts.calls);
        contexts.tell_apart(&mut calls).await;
        contexts.calls = calls;
        Ok(contexts)
    }

    /// Returns all calls, in the order in which they were wished.
    pub fn calls(&self) -> &[ModelCall] {
        &self.calls
    }

    /// Returns the agent and purpose of a call as scripts name them: `desk`, `desk#compact`.
    pub fn name(&self, call: &ModelCall) -> String {
        self.named(call.agent, call.beside)
    }

    fn named(&self, agent: Id, beside: Option<&str>) -> String {
        let named = self.names.get(&agent);
        let name = named.map_or_else(|| agent.to_string(), ToString::to_string);
        match beside {
            Some(beside) => format!("{name}#{beside}"),
            None => name,
        }
    }

    /// Chooses a call of `whose` for a line: the one whose answer the line took, otherwise the one that it wished, otherwise the last before it.
    /// Without a line, chooses the last answered call of an agent that is not a judge.
    pub fn choose(&self, whose: Option<&str>, line: Option<Line>) -> Option<&ModelCall> {
        choose(&self.of_whom(whose), &reviewers(self.path), line)
    }

    /// Starts a walk along the path.
    fn walk(&self) -> Walk<'_> {
        Walk {
            log: self.log,
            position: Line::NONE,
            snapshot: Snapshot::empty(),
        }
    }

    /// Renders the context of a call.
    ///
    /// # Errors
    /// Errors of the store and of templates.
    pub async fn context(&self, call: &ModelCall) -> Result<Context, ContextError> {
        let made = self.sent(call).await?;
        let edits = if made.network.hooks.is_empty() {
            Vec::new()
        } else {
            before_model(self.reader, call.effect)
        };
        let cx = Cx {
            network: &made.network,
            bodies: self.reader,
        };
        let mut cache = RenderCache::default();
        let is_hooked = !edits.is_empty();
        let before =
            is_hooked.then(|| unedited(&cx, self.reader, &made.snapshot, call.agent, &mut cache));
        let hooked = row::Hooked {
            edits,
            unedited: before.transpose()?,
        };
        let name = self.named(call.agent, made.request.purpose.beside());
        Ok(Context::of(call, name, &made.request, &hooked))
    }

    /// Explains where each part of a context comes from, and what was left out and why.
    ///
    /// # Errors
    /// Errors of the store and of templates.
    pub async fn explain(&self, call: &ModelCall) -> Result<Explanation, ContextError> {
        let made = self.sent(call).await?;
        let cx = Cx {
            network: &made.network,
            bodies: self.reader,
        };
        let explained = explain(&cx, self.reader, &made.snapshot, call.agent)?;
        let name = self.named(call.agent, explained.request.purpose.beside());
        Ok(Explanation::of(call, name, &explained))
    }

    /// Compares the context of a call with that of the agent's previous call of the same purpose.
    ///
    /// # Errors
    /// [`ContextError::First`] if there is none; errors of the store and of templates.
    pub async fn change(&self, call: &ModelCall) -> Result<Change, ContextError> {
        let now = self.walk().at(call.wished).clone();
        let wanted = self.purpose(&now, call.agent).await?;
        let mut walk = self.walk();
        let mut before = None;
        let earlier = self
            .calls
            .iter()
            .filter(|c| c.agent == call.agent && c.wished < call.wished && c.answered.is_some());
        for earlier in earlier {
            let snapshot = walk.at(earlier.wished);
            if self.purpose(snapshot, call.agent).await? == wanted {
                before = Some((earlier, snapshot.clone()));
            }
        }
        let (earlier, then) = before.ok_or(ContextError::First)?;
        let mut cache = RenderCache::default();
        let old = self.sent_after(earlier, &then, &mut cache).await?;
        let snapshot = walk.at(call.wished);
        let new = self.sent_after(call, snapshot, &mut cache).await?;
        let name = self.named(call.agent, new.request.purpose.beside());
        Ok(Change::of(
            name,
            (earlier, &old.request),
            (call, &new.request),
        ))
    }

    /// Returns for each answered call how much of its context is equal to the previous one of its agent. With `until`, only calls that
    /// were wished up to this line.
    ///
    /// # Errors
    /// Errors of the store and of templates.
    pub async fn caches(&self, until: Option<Line>) -> Result<Caches, ContextError> {
        let mut caches: BTreeMap<Id, RenderCache> = BTreeMap::new();
        let mut all = Caches::default();
        // A new branch wishes open calls again, so only calls with an answer are counted.
        let calls = self
            .calls
            .iter()
            .filter(|c| c.answered.is_some() && until.is_none_or(|line| c.wished <= line));
        let mut walk = self.walk();
        for call in calls {
            let cache = caches.entry(call.agent).or_default();
            let snapshot = walk.at(call.wished);
            let request = self.sent_after(call, snapshot, cache).await?.request;
            let name = self.named(call.agent, request.purpose.beside());
            all.add(Cached::of(call, name, &request));
        }
        Ok(all)
    }

    /// Renders a request again as this version does, and returns it with its snapshot and network. The session may have
    /// been bound to another definition while the call waited or ran. Then the binding whose rendering has the digest of
    /// the sent request is used, otherwise the last one.
    async fn sent(&self, call: &ModelCall) -> Result<Made, ContextError> {
        let mut walk = self.walk();
        let snapshot = walk.at(call.wished);
        self.sent_after(call, snapshot, &mut RenderCache::default())
            .await
    }

    /// Like [`Self::sent`], from the snapshot at that time, with a cache of the agent's previous call.
    async fn sent_after(
        &self,
        call: &ModelCall,
        snapshot: &Snapshot,
        cache: &mut RenderCache,
    ) -> Result<Made, ContextError> {
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
        let mut last = Err(ContextError::NotBegun);
        for binding in bindings {
            let network = self.reader.network(&binding).await?;
            let snapshot = Snapshot {
                binding: Some(binding),
                ..snapshot.clone()
            };
            let cx = Cx {
                network: &network,
                bodies: self.reader,
            };
            let request = request(&cx, self.reader, &snapshot, call.agent, cache)?;
            let same = Some(request.digest) == digest;
            last = Ok(Made {
                request,
                snapshot,
                network,
            });
            if same {
                break;
            }
        }
        last
    }

    /// Finds the purpose of each call, without rendering it.
    async fn tell_apart(&self, calls: &mut [ModelCall]) {
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
                let network = self.reader.network(binding).await.ok();
                bound = network.map(|network| (binding.clone(), network));
            }
            if let Some((_, network)) = &bound {
                let bodies = self.reader;
                let cx = Cx { network, bodies };
                call.beside = purpose(&cx, snapshot, call.agent).beside();
            }
        }
    }

    /// Returns the calls to choose from: all, the one with this id, those of the agent with this name or id, or those with
    /// this key as in scripts: `desk#compact`.
    fn of_whom(&self, whose: Option<&str>) -> Vec<&ModelCall> {
        let id = whose.and_then(|whose| whose.parse::<Id>().ok());
        let is_of = |call: &&ModelCall| match whose {
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
        self.calls.iter().filter(is_of).collect()
    }

    /// Returns the purpose of a call that an agent would wish at this snapshot.
    async fn purpose(&self, snapshot: &Snapshot, agent: Id) -> Result<Purpose, ContextError> {
        let binding = snapshot.binding.as_ref();
        let binding = binding.ok_or(ContextError::NotBegun)?;
        let network = self.reader.network(binding).await?;
        let cx = Cx {
            network: &network,
            bodies: self.reader,
        };
        Ok(purpose(&cx, snapshot, agent))
    }
}

fn names(path: &[&Arc<LogLine>]) -> BTreeMap<Id, Name> {
    let commits = path.iter().filter_map(|line| line.commit.as_ref());
    let made = commits.flat_map(|commit| &commit.made);
    let name = |made: &MadeAgent| made.named.as_ref().unwrap_or(&made.def).clone();
    made.map(|made| (made.agent, name(made))).collect()
}
