//! The cost of routing: transitions of routed agents, compared with those of the tool loop of one agent, in memory.

use crate::desk::{Desk, look, network, network_of};
use crate::measure::{Goal, Size, Table, median, short, timed};
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::stored::ids::Id;

/// Two members that answer in turn, without an end.
const MEMBERS: &str = r"
steersman: 1
name: bench
models: { default: scripted }
agents:
  a: { system: You are a., description: Is a., limits: &high { model_calls: 100000000, agent_calls: 100000000, ticks: 100000000 } }
  b: { system: You are b., description: Is b., limits: *high }
  loop:
    limits: { model_calls: 100000000, agent_calls: 100000000, ticks: 100000000, same_call: 100000000 }
    route: ROUTE
entry: loop
limits: { tokens: 1000000000000 }
";

const RULES: &str = "{ rules: [ { when: route.last.agent is not none and route.last.agent == 'a', to: b }, { to: a } ] }";
const STATES: &str = "{ states: { talk: { speakers: [a, b], exits: [ { after_messages: 100000000, to: finish } ] } } }";

fn routed(route: &str) -> Arc<Network> {
    network_of(&MEMBERS.replace("ROUTE", route))
}

/// CPU time of a transition (an interaction that is pushed), in microseconds. `step` returns the next model call and
/// the number of its transitions.
fn each(mut desk: Desk, size: Size, step: impl Fn(&mut Desk, Id) -> (Id, u64)) -> f64 {
    let mut model = desk.start().wish();
    let steps = size.of(2_000, 20);
    let all = (0..size.repeat).map(|_| {
        let (pushed, took) = timed(|| {
            let mut pushed = 0;
            for _ in 0..steps {
                let (next, more) = step(&mut desk, model);
                model = next;
                pushed += more;
            }
            pushed
        });
        desk.forget_texts();
        took.micros(pushed)
    });
    median(all)
}

fn plain(size: Size) -> f64 {
    each(Desk::new(network()), size, |desk, model| {
        let called = desk.calls(model, vec![look(desk.last.0)]);
        let given = desk.done(called.wish());
        (given.wish(), called.pushes() + given.pushes())
    })
}

fn words(network: Arc<Network>, size: Size) -> f64 {
    each(Desk::new(network), size, |desk, model| {
        let said = desk.text(model, "Go on.");
        (said.wish(), said.pushes())
    })
}

/// The section of routes.
pub(crate) fn report(table: &Table, size: Size) {
    let plain = plain(size);
    let beside = "a call and its result, over and over";
    table.row(
        "CPU of a transition, tool loop of one agent",
        plain,
        " us",
        Goal::None,
        beside,
    );
    for (what, route) in [("rules", RULES), ("an SOP of two speakers", STATES)] {
        let each = words(routed(route), size);
        let beside = format!("{} us", short(each));
        let figure = format!("transitions a second, {what}: the tool loop's over its own");
        table.row(&figure, each / plain, " times", Goal::AtMost(2.0), &beside);
    }
}
