//! The machine alone, in memory: the cost of a tick with many agents, branches or calls around it, and the memory of
//! branches and interactions.

use crate::desk::{Desk, ask, look, network, tool};
use crate::measure::{Goal, Size, Table, Took, median, resident, short, timed};
use std::process::Command;
use std::sync::Arc;
use steersman_machine::network::Network;
use steersman_machine::snapshot::Snapshot;
use steersman_machine::stored::ids::Id;
use steersman_machine::stored::interaction::Interaction;

/// CPU time of one tick of a tool loop that begins with this model call, in microseconds, and the next model call.
fn per_tick(desk: &mut Desk, mut model: Id, turns: u64) -> (f64, Id) {
    let ((), took) = timed(|| {
        for _ in 0..turns {
            model = desk.turn(model);
        }
    });
    desk.forget_texts();
    (took.micros(turns * 2), model)
}

/// The median of several loops on the same session.
fn settled(desk: &mut Desk, mut model: Id, turns: u64, size: Size) -> f64 {
    let mut all = Vec::new();
    for _ in 0..size.repeat {
        let (each, next) = per_tick(desk, model, turns);
        all.push(each);
        model = next;
    }
    median(all)
}

fn at_turn(network: &Arc<Network>, turn: u64, sessions: u64) -> f64 {
    let turns = 10.min(turn);
    let mut all = Took::default();
    for _ in 0..sessions {
        let mut desk = Desk::new(network.clone());
        let model = desk.start().wish();
        let mut model = desk.turns(model, turn - turns / 2);
        let ((), took) = timed(|| {
            for _ in 0..turns {
                model = desk.turn(model);
            }
        });
        all.cpu += took.cpu;
    }
    all.micros(sessions * turns * 2)
}

/// CPU time of a tick while so many agents rest after their task.
fn resting(network: &Arc<Network>, agents: u64, size: Size) -> f64 {
    let mut desk = Desk::new(network.clone());
    let mut model = desk.start().wish();
    for n in 0..agents {
        let helper = desk.calls(model, vec![ask("helper", "message", n)]).wish();
        model = desk.text(helper, "Done.").wish();
        if n % 500 == 0 {
            desk.forget_texts();
        }
    }
    settled(&mut desk, model, size.of(2_000, 20), size)
}

/// Turns of a session before it is forked.
const BEFORE: u64 = 1_000;

/// Forks a session at rest so often; each branch takes one turn. Returns all branches but the last, and the model call
/// that the last one asks for.
fn branches(desk: &mut Desk, count: u64) -> (Vec<Snapshot>, Id) {
    let model = desk.start().wish();
    let model = desk.turns(model, BEFORE);
    desk.text(model, "Here you are.");
    desk.forget_texts();
    desk.keep = desk.last;
    let (base, prev) = (desk.snapshot.clone(), desk.prev);
    let (mut held, mut model) = (Vec::new(), model);
    for n in 0..count {
        (desk.snapshot, desk.prev) = (base.clone(), prev);
        model = desk.fork().wish();
        model = desk.turn(model);
        if n + 1 < count {
            held.push(std::mem::replace(&mut desk.snapshot, Snapshot::empty()));
        }
        if n % 500 == 0 {
            desk.forget_texts();
        }
    }
    (held, model)
}

fn forked(network: &Arc<Network>, count: u64, size: Size) -> f64 {
    let mut desk = Desk::new(network.clone());
    let (held, model) = branches(&mut desk, count);
    let each = settled(&mut desk, model, size.of(2_000, 20), size);
    drop(held);
    each
}

/// Calls that one agent makes in an answer.
const EACH: u64 = 100;

/// CPU time of a tick of a loop while so many calls of other agents are open, and of a tick that ends one of these
/// calls.
fn open_calls(network: &Arc<Network>, count: u64, size: Size) -> (f64, f64) {
    let mut desk = Desk::new(network.clone());
    let model = desk.start().wish();
    // One answer makes a hundred calls at most, so several other agents hold them.
    let mut asks = vec![ask("looker", "message", 0)];
    asks.extend((0..count.div_ceil(EACH)).map(|n| ask("holder", "message", n)));
    let models = desk.calls(model, asks).wishes;
    let mut calls: Vec<Id> = Vec::new();
    for (n, holder) in (0..).zip(&models[1..]) {
        let asks = (n * EACH..count.min((n + 1) * EACH)).map(|n| ask("wait", "what", n));
        let wishes = desk.calls(holder.id, asks.collect()).wishes;
        calls.extend(wishes.iter().filter(|w| tool(w).is_some()).map(|w| w.id));
    }
    desk.keep = desk.last;
    assert_eq!(calls.len() as u64, count);
    let beside = settled(&mut desk, models[0].id, size.of(2_000, 20), size);
    let ending = calls.len().min(2_000);
    let ((), took) = timed(|| {
        for call in &calls[..ending] {
            desk.done(*call);
        }
    });
    (beside, took.micros(ending as u64))
}

/// The section of the machine.
pub(crate) fn report(table: &Table, size: Size) {
    let network = network();
    let most = size.of(10_000, 200);
    let tenth = median((0..size.repeat).map(|_| at_turn(&network, 10, size.of(500, 5))));
    table.row(
        "CPU of a tick, tool loop at turn 10",
        tenth,
        " us",
        Goal::AtMost(5.0),
        "",
    );
    let late = {
        let mut desk = Desk::new(network.clone());
        let model = desk.start().wish();
        let model = desk.turns(model, most);
        settled(&mut desk, model, size.of(500, 5), size)
    };
    flat(table, &format!("at turn {most}"), late, tenth, "turn 10");
    let one = resting(&network, 1, size);
    let many = resting(&network, most, size);
    flat(
        table,
        &format!("{most} agents at rest"),
        many,
        one,
        "1 agent",
    );
    let (one, many) = (forked(&network, 1, size), forked(&network, most, size));
    flat(
        table,
        &format!("{most} branches held"),
        many,
        one,
        "1 branch",
    );
    let ((one, closing), (many, closing_many)) = (
        open_calls(&network, 1, size),
        open_calls(&network, most, size),
    );
    flat(
        table,
        &format!("{most} calls open beside"),
        many,
        one,
        "1 call",
    );
    let beside = format!("{} us for one of 1", short(closing));
    table.row(
        &format!("CPU of a tick that ends one of {most} calls open"),
        closing_many,
        " us",
        Goal::None,
        &beside,
    );
    weights(table, most);
}

fn flat(table: &Table, figure: &str, many: f64, one: f64, with: &str) {
    let beside = format!("{} us, and {} us with {with}", short(many), short(one));
    let figure = format!("CPU of a tick, {figure}, over {with}");
    table.row(&figure, many / one, " times", Goal::AtMost(2.0), &beside);
}

/// Memory is measured in separate processes, in which nothing was freed before.
fn weights(table: &Table, count: u64) {
    let of = |what: &str| -> f64 {
        let own = std::env::current_exe().expect("the path of the benchmark is known");
        let out = Command::new(own)
            .args(["--weigh", what, &count.to_string()])
            .output()
            .expect("it starts itself");
        let text = String::from_utf8_lossy(&out.stdout);
        text.trim().parse().expect("it prints a number")
    };
    let after = "fork, message, one turn; over many, by resident memory";
    let goal = Goal::AtMost(2048.0);
    table.row("memory of a branch", of("branch"), " bytes", goal, after);
    let beside = "a stack as rendering reads it, beside its texts";
    let goal = Goal::AtMost(200.0);
    table.row(
        "memory of an interaction",
        of("interaction"),
        " bytes",
        goal,
        beside,
    );
    let beside = "whole lines as the log is kept in memory, beside their texts";
    table.row(
        "memory of an interaction with its share of its line",
        of("line"),
        " bytes",
        Goal::None,
        beside,
    );
}

/// Prints the bytes of memory for one of `count` branches, interactions or lines. Runs in a separate process.
#[expect(
    clippy::print_stdout,
    reason = "a process of its own tells its number so"
)]
pub(crate) fn weigh(what: &str, count: u64) {
    let network = network();
    let mut desk = Desk::new(network);
    let each = if what == "branch" {
        let (warm, _) = branches(&mut desk, 10);
        let mut desk = Desk::new(desk.network.clone());
        let before = resident();
        let (held, _) = branches(&mut desk, count);
        desk.texts = crate::desk::Texts::default();
        let after = resident();
        drop((held, warm));
        (after - before) as f64 / count as f64
    } else {
        let mut model = desk.start().wish();
        model = desk.turns(model, 100);
        let text = "y".repeat(600);
        let mut stacks: Vec<Arc<[Interaction]>> = Vec::with_capacity(count as usize * 2);
        let mut lines = Vec::with_capacity(count as usize * 2);
        let before = resident();
        let (mut pushes, mut texts) = (0, 0);
        for n in 0..count {
            let first = desk.calls(model, vec![look(n)]);
            let second = desk.done(first.wish());
            model = second.wish();
            desk.forget_texts();
            for mut line in [first.line, second.line] {
                let commit = line.commit.as_ref().expect("a tick was taken");
                pushes += commit.pushes.len();
                if what == "interaction" {
                    stacks.push(commit.pushes.iter().map(|p| p.what.clone()).collect());
                } else {
                    // Not shared, as if it had been read.
                    texts += line.bodies.iter().map(text_len).sum::<usize>();
                    line.bodies.shrink_to_fit();
                    lines.push(Arc::new(line));
                }
            }
        }
        let after = resident();
        drop((stacks, lines, text));
        (after - before).saturating_sub(texts as u64) as f64 / pushes as f64
    };
    println!("{each:.0}");
}

fn text_len(text: &steersman_machine::stored::commit::Text) -> usize {
    match text {
        steersman_machine::stored::commit::Text::Here(text) => text.len(),
        _ => 0,
    }
}
