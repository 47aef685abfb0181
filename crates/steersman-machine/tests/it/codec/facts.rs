//! All facts of an agent that an adoption can hold.

use super::lines::{digest, id, name};
use steersman_machine::stored::commit::{AgentFact, Counter, Period};
use steersman_machine::stored::ids::{Body, Line, Time};
use steersman_machine::stored::interaction::{Cause, End, How};

pub(super) fn agent_facts() -> Vec<AgentFact> {
    use AgentFact as F;
    let said = Body::new(Line(43), 0);
    let mut facts = vec![
        F::Parent(id(1, 0)),
        F::Births(2),
        F::Named(name("strict")),
        F::Owes,
        F::Serving(id(39, 0)),
        F::Open(3),
        F::Called(9),
        F::Running(2),
        F::Exchanges(7),
        F::Queued(id(39, 1)),
        F::Child(name("clerk"), id(33, 0)),
        F::Args(said),
        F::Message(said),
        F::Unanswered(said),
        F::Said(said),
        F::Answer(said),
        F::Ended(End::Turn, Cause::Answer),
        F::Stack(Line(44), 31),
        F::Mode(name("plan")),
        F::Routes(3),
        F::Pending(name("clerk")),
        F::Acted(name("desk"), How::Finished, Some(said)),
        F::Refused(1),
        F::Same(digest("same"), 2),
        F::LastCall,
        F::Limited,
        F::Began(Period::Task, Time(1_790_000_000_000)),
        F::More(Period::Session, name("more/ticks/session"), 2),
        F::Moved(Line(44)),
        F::Stood(-5),
        F::Calls {
            name: name("look"),
            ok: 2,
            failed: 1,
            args: Some(said),
            result: None,
        },
    ];
    let counters = [
        Counter::ModelCalls,
        Counter::ModelCallsAll,
        Counter::AgentCalls,
        Counter::Corrections,
        Counter::Ticks,
        Counter::Rounds,
        Counter::ModeCalls,
        Counter::Tokens,
    ];
    facts.push(F::CountBelow(Period::Answer, Counter::Tokens, 1 << 40));
    facts.extend(counters.into_iter().map(|c| F::Count(c, 300)));
    facts
}
