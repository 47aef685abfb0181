//! Conversion of agents and calls of an adopted branch to facts, and back. The structs are taken apart by the names of all their
//! fields, so a new field does not compile until this module handles it.

use super::values::value_of;
use crate::snapshot::{
    Agent, Closed, Count, Counters, Draft, OpenCall, Phase, Place, Routing, Span, Stands, Sum,
    Uses, Value, Weight,
};
use crate::stored::commit::{
    AdoptedAgent, AdoptedCall, AgentFact, CallFact, Counter, DraftStands, Period, Text,
};
use crate::stored::ids::{Body, Id, Line, Name, Time};
use crate::stored::interaction::{Cause, Write};
use imbl::OrdMap;
use std::sync::Arc;

/// Returns the facts of an agent. Its effects are left out, because none is out after an adoption.
pub(crate) fn of_agent(agent: &Agent) -> AdoptedAgent {
    use AgentFact as Fact;
    let Agent {
        id,
        def,
        kind,
        parent,
        path,
        births,
        named,
        phase,
        owed: _,
        serving,
        calls,
        open,
        running,
        exchanges,
        queue,
        children,
        args,
        message,
        before,
        prepared,
        unanswered,
        unread,
        said,
        answer,
        ended,
        spoke,
        draft,
        sent_back,
        last,
        height,
        mode,
        state,
        missed,
        routing,
        counters,
        counts,
        bare,
        used,
        sums,
        weight,
    } = agent;
    let mut facts = Vec::new();
    facts.extend(parent.map(Fact::Parent));
    facts.extend(some(*births).map(Fact::Births));
    facts.extend(named.clone().map(Fact::Named));
    facts.extend(matches!(phase, Phase::Thinking | Phase::Routing).then_some(Fact::Owes));
    facts.extend(serving.map(Fact::Serving));
    facts.extend(some(*calls).map(Fact::Called));
    facts.extend(some(*open).map(Fact::Open));
    facts.extend(some(*running).map(Fact::Running));
    facts.extend(some(*exchanges).map(Fact::Exchanges));
    facts.extend(queue.iter().copied().map(Fact::Queued));
    let children = children.iter();
    facts.extend(children.map(|(key, child)| Fact::Child(key.clone(), *child)));
    facts.extend(args.map(Fact::Args));
    facts.extend(message.map(Fact::Message));
    for (name, gave) in before {
        facts.push(Fact::Before(name.clone(), *gave));
    }
    facts.extend(prepared.then_some(Fact::Prepared));
    facts.extend(unanswered.iter().copied().map(Fact::Unanswered));
    facts.extend(unread.iter().copied().map(Fact::Unread));
    facts.extend(said.map(Fact::Said));
    facts.extend(answer.map(Fact::Answer));
    facts.extend(ended.map(|(end, cause)| Fact::Ended(end, cause)));
    of_drafts(*spoke, draft.as_ref(), sent_back, &mut facts);
    facts.push(Fact::Stack(*last, *height));
    facts.extend(mode.clone().map(Fact::Mode));
    facts.extend(state.clone().map(Fact::State));
    let missed = missed.clone();
    facts.extend(missed.map(|(name, gave)| Fact::Missed(name, gave)));
    of_routing(routing, &mut facts);
    of_counters(counters, &mut facts);
    for (name, count) in counts {
        let Count {
            ok,
            failed,
            args,
            result,
        } = &**count;
        facts.push(Fact::Calls {
            name: name.clone(),
            ok: *ok,
            failed: *failed,
            args: *args,
            result: *result,
        });
    }
    of_context(*bare, used, sums, weight, &mut facts);
    AdoptedAgent {
        id: *id,
        def: def.clone(),
        kind: *kind,
        path: path.clone(),
        facts,
    }
}

fn of_context(
    bare: bool,
    used: &Uses,
    sums: &OrdMap<Name, Sum>,
    weight: &Weight,
    facts: &mut Vec<AgentFact>,
) {
    facts.extend(bare.then_some(AgentFact::Bare));
    let used = used.iter();
    facts.extend(used.map(|(name, times)| AgentFact::Used(name.clone(), times)));
    for (policy, sum) in sums {
        let Sum {
            tried,
            covered,
            body,
            failed,
        } = *sum;
        let policy = policy.clone();
        facts.push(AgentFact::Sums(policy, tried, covered, body, failed));
    }
    let Weight {
        // No effect is out.
        asked: _,
        tokens,
        since,
        exchanges,
        open,
        closed,
    } = weight;
    if *weight != Weight::default() {
        facts.push(AgentFact::Weighs(*tokens, *since, *open, *closed));
    }
    facts.extend(exchanges.iter().copied().map(AgentFact::Exchange));
}

fn of_drafts(
    spoke: Option<Id>,
    draft: Option<&Draft>,
    sent_back: &[(Name, u32)],
    facts: &mut Vec<AgentFact>,
) {
    facts.extend(spoke.map(AgentFact::Spoke));
    facts.extend(draft.map(|draft| {
        let Draft {
            body,
            cause,
            stands,
        } = draft;
        AgentFact::Draft(*body, *cause, of_draft(*stands))
    }));
    let sent_back = sent_back.iter().cloned();
    facts.extend(sent_back.map(|(tool, times)| AgentFact::SentBack(tool, times)));
}

fn of_draft(stands: Stands) -> DraftStands {
    match stands {
        Stands::Open => DraftStands::Open,
        Stands::Accepted => DraftStands::Accepted,
        Stands::Revise => DraftStands::Revise,
        Stands::Criticised => DraftStands::Criticised,
    }
}

fn drafted(body: Option<Body>, cause: Cause, stands: DraftStands) -> Draft {
    Draft {
        body,
        cause,
        stands: draft_stands(stands),
    }
}

fn draft_stands(stands: DraftStands) -> Stands {
    match stands {
        DraftStands::Open => Stands::Open,
        DraftStands::Accepted => Stands::Accepted,
        DraftStands::Revise => Stands::Revise,
        DraftStands::Criticised => Stands::Criticised,
    }
}

fn some(n: u32) -> Option<u32> {
    (n > 0).then_some(n)
}

fn of_routing(routing: &Routing, facts: &mut Vec<AgentFact>) {
    let Routing {
        count,
        pending,
        last,
        refused,
        why,
        at,
        places,
        settled,
        over,
        goals,
        done,
        unread,
        said,
        summed,
    } = routing;
    facts.extend(some(*count).map(AgentFact::Routes));
    facts.extend(pending.iter().cloned().map(AgentFact::Pending));
    let last = last.clone();
    facts.extend(last.map(|(name, how, gave)| AgentFact::Acted(name, how, gave)));
    facts.extend(some(*refused).map(AgentFact::Refused));
    facts.extend(why.map(AgentFact::Why));
    facts.extend(at.clone().map(AgentFact::At));
    for (state, place) in places {
        let Place {
            messages,
            last,
            entered,
        } = place;
        let (state, last) = (state.clone(), last.clone());
        facts.push(AgentFact::Place(state, *messages, last, *entered));
    }
    facts.extend(settled.then_some(AgentFact::Settled));
    facts.extend(over.clone().map(AgentFact::Over));
    let goals = goals.iter().cloned();
    facts.extend(goals.map(|(task, asked)| AgentFact::Goal(task, asked)));
    facts.extend(done.iter().cloned().map(AgentFact::TaskDone));
    facts.extend(unread.then_some(AgentFact::SaidUnread));
    facts.extend(some(*said).map(AgentFact::Heard));
    for (policy, said) in summed {
        facts.push(AgentFact::Summed(policy.clone(), *said));
    }
}

fn of_counters(counters: &Counters, facts: &mut Vec<AgentFact>) {
    let Counters {
        model_calls,
        model_calls_all,
        restated,
        extracted,
        summed,
        compacted,
        agent_calls,
        corrections,
        ticks,
        same,
        rounds,
        mode_calls,
        last_call,
        limited,
        answer,
        task,
        session,
        moved,
        // No effect is out.
        working: _,
        stood,
    } = counters;
    let counts = [
        (Counter::ModelCalls, *model_calls),
        (Counter::ModelCallsAll, *model_calls_all),
        (Counter::AgentCalls, *agent_calls),
        (Counter::Corrections, *corrections),
        (Counter::Ticks, *ticks),
        (Counter::Rounds, *rounds),
        (Counter::ModeCalls, *mode_calls),
        (Counter::Restated, *restated),
        (Counter::Extracted, *extracted),
        (Counter::Summed, *summed),
        (Counter::Compacted, *compacted),
    ];
    let counts = counts.into_iter().filter(|(_, n)| *n > 0);
    facts.extend(counts.map(|(counter, n)| AgentFact::Count(counter, u64::from(n))));
    facts.extend(same.map(|(digest, times)| AgentFact::Same(digest, times)));
    facts.extend(last_call.then_some(AgentFact::LastCall));
    facts.extend(limited.then_some(AgentFact::Limited));
    of_span(Period::Answer, answer, facts);
    of_span(Period::Task, task, facts);
    of_span(Period::Session, session, facts);
    facts.extend(moved.is_some().then_some(AgentFact::Moved(*moved)));
    facts.extend((*stood != 0).then_some(AgentFact::Stood(*stood)));
}

fn of_span(period: Period, span: &Span, facts: &mut Vec<AgentFact>) {
    let Span {
        began,
        model_calls,
        agent_calls,
        tokens,
        micros,
        ticks,
        more,
    } = span;
    facts.extend((*began != Time::default()).then_some(AgentFact::Began(period, *began)));
    let counts = [
        (Counter::ModelCalls, u64::from(*model_calls)),
        (Counter::AgentCalls, u64::from(*agent_calls)),
        (Counter::Tokens, *tokens),
        (Counter::Micros, *micros),
        (Counter::Ticks, u64::from(*ticks)),
    ];
    let counts = counts.into_iter().filter(|(_, n)| *n > 0);
    facts.extend(counts.map(|(counter, n)| AgentFact::CountBelow(period, counter, n)));
    let more = more.iter().flat_map(|more| &**more);
    facts.extend(more.map(|(name, amount)| AgentFact::More(period, name.clone(), *amount)));
}

/// Applies a fact about an agent's context.
fn in_context(agent: &mut Agent, fact: AgentFact) {
    match fact {
        AgentFact::Bare => agent.bare = true,
        AgentFact::Used(name, times) => agent.used.set(name, times),
        AgentFact::Sums(policy, tried, covered, body, failed) => {
            let sum = Sum {
                tried,
                covered,
                body,
                failed,
            };
            agent.sums.insert(policy, sum);
        }
        AgentFact::Weighs(tokens, since, open, closed) => {
            let weight = Arc::make_mut(&mut agent.weight);
            (weight.tokens, weight.since) = (tokens, since);
            (weight.open, weight.closed) = (open, closed);
        }
        AgentFact::Exchange(bytes) => {
            Arc::make_mut(&mut agent.weight).exchanges.push(bytes);
        }
        _ => unreachable!("other facts are told elsewhere"),
    }
}

fn counted(agent: &mut Agent, fact: AgentFact) {
    let AgentFact::Calls {
        name,
        ok,
        failed,
        args,
        result,
    } = fact
    else {
        unreachable!("other facts are told elsewhere");
    };
    let count = Count {
        ok,
        failed,
        args,
        result,
    };
    agent.counts.insert(name, Arc::new(count));
}

/// Returns the agent that the facts state.
pub(super) fn agent(adopted: &AdoptedAgent) -> Agent {
    let mut agent = super::newborn(
        adopted.id,
        adopted.def.clone(),
        adopted.kind,
        adopted.path.clone(),
        Time::default(),
    );
    let mut owes = false;
    let mut routing = Routing::default();
    for fact in &adopted.facts {
        match fact.clone() {
            AgentFact::Parent(parent) => agent.parent = Some(parent),
            AgentFact::Births(n) => agent.births = n,
            AgentFact::Named(name) => agent.named = Some(name),
            AgentFact::Owes => owes = true,
            AgentFact::Serving(call) => agent.serving = Some(call),
            AgentFact::Called(n) => agent.calls = n,
            AgentFact::Open(n) => agent.open = n,
            AgentFact::Running(n) => agent.running = n,
            AgentFact::Exchanges(n) => agent.exchanges = n,
            AgentFact::Queued(call) => drop(agent.queue.insert(call)),
            AgentFact::Child(key, child) => drop(agent.children.insert(key, child)),
            AgentFact::Args(body) => agent.args = Some(body),
            AgentFact::Message(body) => agent.message = Some(body),
            AgentFact::Before(name, gave) => drop(agent.before.insert(name, gave)),
            AgentFact::Prepared => agent.prepared = true,
            AgentFact::Unanswered(body) => agent.unanswered.push(body),
            AgentFact::Unread(body) => agent.unread.push(body),
            AgentFact::Said(body) => agent.said = Some(body),
            AgentFact::Answer(body) => agent.answer = Some(body),
            AgentFact::Ended(end, cause) => agent.ended = Some((end, cause)),
            AgentFact::Spoke(effect) => agent.spoke = Some(effect),
            AgentFact::Draft(body, cause, stands) => {
                agent.draft = Some(drafted(body, cause, stands));
            }
            AgentFact::SentBack(tool, times) => agent.sent_back.push((tool, times)),
            AgentFact::Stack(last, height) => (agent.last, agent.height) = (last, height),
            AgentFact::Mode(mode) => agent.mode = Some(mode),
            AgentFact::State(state) => agent.state = Some(state),
            AgentFact::Missed(name, gave) => agent.missed = Some((name, gave)),
            fact @ (AgentFact::Bare
            | AgentFact::Used(..)
            | AgentFact::Sums(..)
            | AgentFact::Weighs(..)
            | AgentFact::Exchange(_)) => in_context(&mut agent, fact),
            AgentFact::Routes(n) => routing.count = n,
            AgentFact::Pending(member) => routing.pending.push(member),
            AgentFact::Acted(name, how, gave) => routing.last = Some((name, how, gave)),
            AgentFact::Refused(n) => routing.refused = n,
            AgentFact::Why(why) => routing.why = Some(why),
            AgentFact::At(at) => routing.at = Some(at),
            AgentFact::Place(state, messages, last, entered) => {
                drop(routing.places.insert(state, place(messages, last, entered)));
            }
            AgentFact::Settled => routing.settled = true,
            AgentFact::Over(over) => routing.over = Some(over),
            AgentFact::Goal(task, asked) => routing.goals.push((task, asked)),
            AgentFact::TaskDone(task) => drop(routing.done.insert(task)),
            AgentFact::SaidUnread => routing.unread = true,
            AgentFact::Heard(n) => routing.said = n,
            AgentFact::Summed(policy, said) => drop(routing.summed.insert(policy, said)),
            AgentFact::Count(counter, n) => count(&mut agent.counters, counter, n),
            AgentFact::Same(digest, times) => agent.counters.same = Some((digest, times)),
            AgentFact::LastCall => agent.counters.last_call = true,
            AgentFact::Limited => agent.counters.limited = true,
            AgentFact::CountBelow(period, counter, n) => {
                count_below(span(&mut agent.counters, period), counter, n);
            }
            AgentFact::Began(period, at) => span(&mut agent.counters, period).began = at,
            AgentFact::More(period, name, amount) => {
                span(&mut agent.counters, period)
                    .allowed()
                    .push((name, amount));
            }
            AgentFact::Moved(line) => agent.counters.moved = line,
            AgentFact::Stood(millis) => agent.counters.stood = millis,
            fact @ AgentFact::Calls { .. } => counted(&mut agent, fact),
        }
    }
    agent.routing = Arc::new(routing);
    agent.phase = match (agent.open, owes) {
        (0, false) => Phase::Resting,
        (0, true) => super::owes(agent.kind),
        _ => Phase::Calling,
    };
    agent
}

fn place(messages: u32, last: Option<Name>, entered: Line) -> Place {
    Place {
        messages,
        last,
        entered,
    }
}

fn count(counters: &mut Counters, counter: Counter, n: u64) {
    let n = u32::try_from(n).unwrap_or(u32::MAX);
    match counter {
        Counter::ModelCalls => counters.model_calls = n,
        Counter::ModelCallsAll => counters.model_calls_all = n,
        Counter::AgentCalls => counters.agent_calls = n,
        Counter::Corrections => counters.corrections = n,
        Counter::Ticks => counters.ticks = n,
        Counter::Rounds => counters.rounds = n,
        Counter::ModeCalls => counters.mode_calls = n,
        Counter::Restated => counters.restated = n,
        Counter::Extracted => counters.extracted = n,
        Counter::Summed => counters.summed = n,
        Counter::Compacted => counters.compacted = n,
        Counter::Tokens | Counter::Micros => {}
    }
}

fn span(counters: &mut Counters, period: Period) -> &mut Span {
    match period {
        Period::Answer => &mut counters.answer,
        Period::Task => &mut counters.task,
        Period::Session => &mut counters.session,
    }
}

fn count_below(span: &mut Span, counter: Counter, n: u64) {
    let few = u32::try_from(n).unwrap_or(u32::MAX);
    match counter {
        Counter::ModelCalls => span.model_calls = few,
        Counter::AgentCalls => span.agent_calls = few,
        Counter::Tokens => span.tokens = n,
        Counter::Micros => span.micros = n,
        Counter::Ticks => span.ticks = few,
        // These are counted only for the agent alone.
        Counter::ModelCallsAll
        | Counter::Corrections
        | Counter::Rounds
        | Counter::ModeCalls
        | Counter::Restated
        | Counter::Extracted
        | Counter::Summed
        | Counter::Compacted => {}
    }
}

/// Returns the facts of a call. `text` stores a value with which a write of the call waits, and returns its text in the adopting
/// line.
pub(crate) fn of_call(open: &OpenCall, mut text: impl FnMut(&Value) -> Body) -> AdoptedCall {
    use CallFact as Fact;
    let OpenCall {
        call,
        owner,
        effect: _,
        edited,
        opened,
        due,
        begun,
        approved,
        approver,
        met,
        keys,
        opened_at,
        chooser,
        ends,
        chosen,
        digest,
        mode,
        closed,
    } = open;
    let mut facts = Vec::new();
    facts.extend(edited.map(Fact::Edited));
    facts.extend(due.map(Fact::Due));
    facts.extend(begun.then_some(Fact::Begun));
    facts.extend(approved.then_some(Fact::Approved));
    facts.extend(approver.clone().map(Fact::Approver));
    facts.extend(met.iter().map(|(part, gave)| Fact::Met(*part, *gave)));
    facts.extend(keys.iter().map(|(part, key)| Fact::Awaits(*part, *key)));
    facts.extend(chooser.map(Fact::Chooser));
    facts.extend(ends.map(Fact::Ends));
    facts.extend(chosen.map(|(branch, at)| Fact::Chosen(branch, at)));
    facts.extend(mode.clone().map(Fact::Mode));
    if let Some(closed) = closed {
        let Closed {
            how,
            digest,
            gave,
            writes,
            artifacts,
        } = closed;
        facts.push(Fact::Closed(*how, *digest));
        facts.extend(gave.map(Fact::Gave));
        for (write, value) in writes {
            let stood = write.value.map(Body::line);
            let write = Write {
                value: value.as_ref().map(&mut text),
                ..write.clone()
            };
            facts.push(Fact::Write(write, stood));
        }
        facts.extend(artifacts.iter().cloned().map(Fact::Artifact));
    }
    AdoptedCall {
        owner: *owner,
        call: call.clone(),
        opened: *opened,
        opened_at: *opened_at,
        digest: *digest,
        facts,
    }
}

/// Returns the call that the facts state.
pub(super) fn call(adopted: &AdoptedCall, bodies: &[Text]) -> OpenCall {
    let mut open = OpenCall {
        opened_at: adopted.opened_at,
        ..super::opened(
            adopted.call.clone(),
            adopted.owner,
            adopted.opened,
            adopted.digest,
        )
    };
    let mut closed: Option<Closed> = None;
    for fact in &adopted.facts {
        match fact.clone() {
            CallFact::Edited(body) => open.edited = Some(body),
            CallFact::Due(at) => open.due = Some(at),
            CallFact::Begun => open.begun = true,
            CallFact::Approved => open.approved = true,
            CallFact::Approver(by) => open.approver = Some(by),
            CallFact::Met(part, gave) => open.met.push((part, gave)),
            CallFact::Awaits(part, key) => open.keys.push((part, key)),
            CallFact::Chooser(agent) => open.chooser = Some(agent),
            CallFact::Ends(ends) => open.ends = Some(ends),
            CallFact::Chosen(branch, at) => open.chosen = Some((branch, at)),
            CallFact::Mode(mode) => open.mode = Some(mode),
            CallFact::Closed(how, digest) => {
                closed = Some(Closed {
                    how,
                    digest,
                    gave: None,
                    writes: Vec::new(),
                    artifacts: Vec::new(),
                });
            }
            CallFact::Gave(body) => {
                let closed = closed.as_mut().expect("only a closed call gave something");
                closed.gave = Some(body);
            }
            CallFact::Write(write, _) => {
                let value = value_of(&write, bodies);
                let closed = closed.as_mut().expect("only a closed call has writes");
                closed.writes.push((write, value));
            }
            CallFact::Artifact(artifact) => {
                let closed = closed.as_mut().expect("only a closed call has artifacts");
                closed.artifacts.push(artifact);
            }
        }
    }
    open.closed = closed;
    open
}
