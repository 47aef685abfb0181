//! Conversion of agents and calls of an adopted branch to facts, and back. The patterns here name all fields of a struct, so
//! the program does not compile until this module handles a new field.

use super::values::value_of;
use crate::snapshot::{
    Agent, Closed, Context, Count, Counters, Draft, Family, Gave, Input, OpenCall, Phase, Place,
    Routing, Span, Stack, Stands, Sum, Turn, Value, Weight,
};
use crate::stored::commit::{
    AdoptedAgent, AdoptedCall, AgentFact, CallFact, Counter, DraftStands, Period, Text,
};
use crate::stored::ids::{Body, Line, Name, Time};
use crate::stored::interaction::{Cause, Write};
use std::sync::Arc;

/// Returns the facts of an agent. Its effects are left out, because an adoption leaves none outstanding.
pub(crate) fn of_agent(agent: &Agent) -> AdoptedAgent {
    use AgentFact as Fact;
    let Agent {
        id,
        def,
        kind,
        family,
        phase,
        stack,
        input,
        turn,
        mode,
        routing,
        counters,
        context,
    } = agent;
    let Family {
        parent,
        path,
        named,
        births,
        children,
    } = family;
    let Stack {
        last,
        height,
        calls,
        open,
        running,
        // An adopted agent has no outstanding effect.
        owed: _,
    } = stack;
    let Input {
        serving,
        queue,
        args,
        message,
        before,
        prepared,
        unanswered,
        unread,
    } = input;
    let mut facts = Vec::new();
    facts.extend(parent.map(Fact::Parent));
    facts.extend(nonzero(*births).map(Fact::Births));
    facts.extend(named.clone().map(Fact::Named));
    facts.extend(matches!(phase, Phase::Thinking | Phase::Routing).then_some(Fact::Owes));
    facts.extend(serving.map(Fact::Serving));
    facts.extend(nonzero(*calls).map(Fact::Called));
    facts.extend(nonzero(*open).map(Fact::Open));
    facts.extend(nonzero(*running).map(Fact::Running));
    facts.extend(nonzero(context.exchanges).map(Fact::Exchanges));
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
    of_turn(turn, &mut facts);
    facts.push(Fact::Stack(*last, *height));
    facts.extend(mode.clone().map(Fact::Mode));
    of_routing(routing, &mut facts);
    of_counters(counters, &mut facts);
    of_context(context, &mut facts);
    AdoptedAgent {
        id: *id,
        def: def.clone(),
        kind: *kind,
        path: path.clone(),
        facts,
    }
}

fn of_turn(turn: &Turn, facts: &mut Vec<AgentFact>) {
    let Turn {
        began,
        said,
        spoke,
        draft,
        sent_back,
        missed,
        state,
        steps,
        gave,
        answer,
        ended,
    } = turn;
    facts.extend(began.is_some().then_some(AgentFact::Turn(*began)));
    facts.extend(said.map(AgentFact::Said));
    facts.extend(answer.map(AgentFact::Answer));
    facts.extend(ended.map(|(end, cause)| AgentFact::Ended(end, cause)));
    facts.extend(spoke.map(AgentFact::Spoke));
    facts.extend(draft.as_ref().map(|draft| {
        let Draft {
            body,
            cause,
            stands,
        } = draft;
        AgentFact::Draft(*body, *cause, of_draft(*stands))
    }));
    let sent_back = sent_back.iter().cloned();
    facts.extend(sent_back.map(|(tool, times)| AgentFact::SentBack(tool, times)));
    facts.extend(state.clone().map(AgentFact::State));
    let missed = missed.clone();
    facts.extend(missed.map(|(name, gave)| AgentFact::Missed(name, gave)));
    let steps = steps.iter().cloned();
    facts.extend(steps.map(|(state, n)| AgentFact::Steps(state, n)));
    facts.extend(gave.as_ref().map(|gave| {
        let Gave { ok, code, body } = gave.clone();
        AgentFact::Gave(ok, code, body)
    }));
}

fn of_context(context: &Context, facts: &mut Vec<AgentFact>) {
    let Context {
        // `of_agent` stores it, as `Exchanges`.
        exchanges: _,
        bare,
        used,
        lately,
        sums,
        weight,
    } = context;
    facts.extend(bare.then_some(AgentFact::Bare));
    let used = used.iter();
    facts.extend(used.map(|(name, times)| AgentFact::Used(name.clone(), times)));
    let lately = lately.iter();
    facts.extend(lately.map(|(name, all)| AgentFact::UsedIn(name.clone(), all.to_vec())));
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
        // An adopted agent has no outstanding effect.
        asked: _,
        tokens,
        since,
        exchanges,
        open,
        closed,
    } = &**weight;
    if **weight != Weight::default() {
        facts.push(AgentFact::Weighs(*tokens, *since, *open, *closed));
    }
    facts.extend(exchanges.iter().copied().map(AgentFact::Exchange));
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

fn nonzero(n: u32) -> Option<u32> {
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
    facts.extend(nonzero(*count).map(AgentFact::Routes));
    facts.extend(pending.iter().cloned().map(AgentFact::Pending));
    let last = last.clone();
    facts.extend(last.map(|(name, how, gave)| AgentFact::Acted(name, how, gave)));
    facts.extend(nonzero(*refused).map(AgentFact::Refused));
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
    facts.extend(nonzero(*said).map(AgentFact::Heard));
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
        // An adopted agent has no outstanding effect.
        working: _,
        stood,
        calls,
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
    for (name, count) in calls {
        let Count {
            ok,
            failed,
            args,
            result,
        } = &**count;
        facts.push(AgentFact::Calls {
            name: name.clone(),
            ok: *ok,
            failed: *failed,
            args: *args,
            result: *result,
        });
    }
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
fn in_context(context: &mut Context, fact: AgentFact) {
    match fact {
        AgentFact::Exchanges(n) => context.exchanges = n,
        AgentFact::Bare => context.bare = true,
        AgentFact::Used(name, times) => context.used.set(name, times),
        AgentFact::UsedIn(name, all) => drop(context.lately.insert(name, all.into())),
        AgentFact::Sums(policy, tried, covered, body, failed) => {
            let sum = Sum {
                tried,
                covered,
                body,
                failed,
            };
            context.sums.insert(policy, sum);
        }
        AgentFact::Weighs(tokens, since, open, closed) => {
            let weight = Arc::make_mut(&mut context.weight);
            (weight.tokens, weight.since) = (tokens, since);
            (weight.open, weight.closed) = (open, closed);
        }
        AgentFact::Exchange(bytes) => {
            Arc::make_mut(&mut context.weight).exchanges.push(bytes);
        }
        _ => unreachable!("the caller passes only facts about the context"),
    }
}

fn counted(counters: &mut Counters, fact: AgentFact) {
    let AgentFact::Calls {
        name,
        ok,
        failed,
        args,
        result,
    } = fact
    else {
        unreachable!("the caller passes only `Calls`");
    };
    let count = Count {
        ok,
        failed,
        args,
        result,
    };
    counters.calls.insert(name, Arc::new(count));
}

/// Returns the agent that the facts state.
pub(super) fn agent(adopted: &AdoptedAgent) -> Agent {
    let family = Family {
        path: adopted.path.clone(),
        ..Family::default()
    };
    let (def, kind) = (adopted.def.clone(), adopted.kind);
    let mut agent = Agent::born(adopted.id, def, kind, family, Time::default());
    let Agent {
        family,
        stack,
        input,
        turn,
        mode,
        counters,
        context,
        ..
    } = &mut agent;
    let mut owes = false;
    let mut routing = Routing::default();
    for fact in &adopted.facts {
        match fact.clone() {
            AgentFact::Parent(parent) => family.parent = Some(parent),
            AgentFact::Births(n) => family.births = n,
            AgentFact::Named(name) => family.named = Some(name),
            AgentFact::Owes => owes = true,
            AgentFact::Serving(call) => input.serving = Some(call),
            AgentFact::Called(n) => stack.calls = n,
            AgentFact::Open(n) => stack.open = n,
            AgentFact::Running(n) => stack.running = n,
            AgentFact::Queued(call) => drop(input.queue.insert(call)),
            AgentFact::Child(key, child) => drop(family.children.insert(key, child)),
            AgentFact::Args(body) => input.args = Some(body),
            AgentFact::Message(body) => input.message = Some(body),
            AgentFact::Before(name, gave) => drop(input.before.insert(name, gave)),
            AgentFact::Prepared => input.prepared = true,
            AgentFact::Unanswered(body) => input.unanswered.push(body),
            AgentFact::Unread(body) => input.unread.push(body),
            AgentFact::Said(body) => turn.said = Some(body),
            AgentFact::Answer(body) => turn.answer = Some(body),
            AgentFact::Ended(end, cause) => turn.ended = Some((end, cause)),
            AgentFact::Spoke(effect) => turn.spoke = Some(effect),
            AgentFact::Draft(body, cause, stands) => {
                turn.draft = Some(drafted(body, cause, stands));
            }
            AgentFact::SentBack(tool, times) => turn.sent_back.push((tool, times)),
            AgentFact::Stack(last, height) => (stack.last, stack.height) = (last, height),
            AgentFact::Mode(name) => *mode = Some(name),
            AgentFact::State(state) => turn.state = Some(state),
            AgentFact::Missed(name, gave) => turn.missed = Some((name, gave)),
            AgentFact::Turn(line) => turn.began = line,
            AgentFact::Steps(state, n) => turn.steps.push((state, n)),
            AgentFact::Gave(ok, code, body) => turn.gave = Some(Gave { ok, code, body }),
            fact @ (AgentFact::Exchanges(_)
            | AgentFact::Bare
            | AgentFact::Used(..)
            | AgentFact::UsedIn(..)
            | AgentFact::Sums(..)
            | AgentFact::Weighs(..)
            | AgentFact::Exchange(_)) => in_context(context, fact),
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
            AgentFact::Count(counter, n) => count(counters, counter, n),
            AgentFact::Same(digest, times) => counters.same = Some((digest, times)),
            AgentFact::LastCall => counters.last_call = true,
            AgentFact::Limited => counters.limited = true,
            AgentFact::CountBelow(period, counter, n) => {
                count_below(span(counters, period), counter, n);
            }
            AgentFact::Began(period, at) => span(counters, period).began = at,
            AgentFact::More(period, name, amount) => {
                span(counters, period).allowed().push((name, amount));
            }
            AgentFact::Moved(line) => counters.moved = line,
            AgentFact::Stood(millis) => counters.stood = millis,
            fact @ AgentFact::Calls { .. } => counted(counters, fact),
        }
    }
    agent.routing = Arc::new(routing);
    agent.phase = match (agent.stack.open, owes) {
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
        // These are counted only over a period and with all descendants (`count_below`).
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
        // These are counts of the agent alone, without its descendants.
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

/// Returns the facts of a call. `text` copies the value of a waiting write into the adopting line and returns its body there.
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
            let source = write.value.map(Body::line);
            let write = Write {
                value: value.as_ref().map(&mut text),
                ..write.clone()
            };
            facts.push(Fact::Write(write, source));
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
