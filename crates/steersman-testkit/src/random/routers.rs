//! Routers of random networks.

use crate::net::{Draft, expr, offers, text};
use steersman_machine::network::{
    AgentDef, Begin, Choosable, Desk, Does, Exit, ExitCause, ExitTo, Fallback, GoOn, Graph,
    Handoff, OnChange, Orchestrator, Order, RouteBy, Seen, Speaker, StateNode, SummaryDef, Task,
    Turns, ViewDef,
};
use steersman_machine::stored::built_in::BuiltIn;
use steersman_machine::stored::ids::Name;
use steersman_machine::values::expression::Template;

/// Adds routers by states, tasks, handoff and a model's choice, with their members.
pub(super) fn routed(draft: Draft) -> Draft {
    draft
        .change("lead", |agent| {
            agent.extract = vec!["topic".into(), "heap".into()];
        })
        .change("helper", |agent| agent.extract = vec!["sum".into()])
        .route("hall", hall())
        .route("shop", shop())
        .route("relay", relay())
        .route(
            "panel",
            RouteBy::Pick(["clerk", "deep"].map(choosable).to_vec()),
        )
        .change("hall", |agent| {
            of_route(agent, Fallback::Stay, Seen::SinceEntry);
            sums_up(agent, 2, None);
        })
        .change("clerk", |agent| {
            agent.view = Some(ViewDef {
                of: Seen::Shared,
                window: Some(2),
                summary: Some(Box::new(summary(3))),
                relevant: 0,
            });
        })
        .change("shop", |agent| {
            of_route(agent, Fallback::Member("clerk".into()), Seen::Shared);
            sums_up(agent, 1, None);
            agent.extract = vec!["topic".into(), "seen".into()];
        })
        .change("relay", |agent| {
            of_route(agent, Fallback::Finish, Seen::SinceLastSpoke);
            sums_up(agent, 1, Some(1));
        })
        .agent_turns(
            "buyer",
            Turns::Dialogue,
            offers(&["look", "note", "done", "need_help"], &[]),
        )
        .agent_turns(
            "payer",
            Turns::Dialogue,
            offers(&["pay", "done", "need_help"], &["deep"]),
        )
        .agent_turns("first", Turns::Dialogue, offers(&["look", "handoff"], &[]))
        .agent_turns("second", Turns::Dialogue, offers(&["mail", "handoff"], &[]))
        .built_in("done", BuiltIn::Done, &[])
        .built_in("need_help", BuiltIn::NeedHelp, &[("request", text())])
        .built_in(
            "handoff",
            BuiltIn::Handoff,
            &[("to", text()), ("reason", text())],
        )
}

/// Returns a graph of states that uses every feature.
fn hall() -> RouteBy {
    let speaker = |name: &str| Speaker {
        agent: name.into(),
        role: name.into(),
        instructions: None,
        extract: if name == "quick" {
            vec!["topic".into()]
        } else {
            Vec::new()
        },
    };
    let exit = |cause, to: &str| Exit {
        cause,
        to: match to {
            "finish" => ExitTo::Finish,
            state => ExitTo::State(state.into()),
        },
    };
    let judge = |words: &str| ExitCause::Judge(Template::plain(words));
    let node = |order, reset, exits| StateNode {
        scene: None,
        speakers: vec![speaker("clerk"), speaker("quick"), speaker("deep")],
        order,
        begin: Some(Begin {
            speaker: "quick".into(),
            say: Some(Template::plain("Welcome.")),
        }),
        exits,
        view: None,
        reset,
    };
    let open = vec![
        exit(judge("It is settled."), "shut"),
        exit(judge("It is over."), "finish"),
        exit(ExitCause::AfterMessages(4), "shut"),
    ];
    let shut = vec![
        exit(ExitCause::AfterMessages(3), "finish"),
        exit(judge("Again."), "open"),
    ];
    let states = [
        ("open".into(), node(Order::ByModel, true, open)),
        ("shut".into(), node(Order::Random, false, shut)),
    ];
    RouteBy::States(Graph {
        states: states.into(),
        start: "open".into(),
    })
}

/// Returns a router by tasks whose second task needs the first.
fn shop() -> RouteBy {
    let task = |name: &str, after: &[&str], done: Option<&str>| Task {
        name: name.into(),
        agent: name.into(),
        after: after.iter().map(|n| Name::from(*n)).collect(),
        done: done.map(expr),
        requires: Vec::new(),
        clear: vec!["other".into()],
        may_end: true,
        may_release: true,
    };
    RouteBy::Tasks(Desk {
        tasks: vec![
            task("buyer", &[], Some("state.seen is not none")),
            task("payer", &["buyer"], None),
        ],
        default: Some("clerk".into()),
        orchestrator: Orchestrator::default(),
        go_on: GoOn::Request,
        on_change: OnChange::Switch,
    })
}

fn relay() -> RouteBy {
    let to = [
        ("first".into(), vec!["second".into()]),
        ("second".into(), vec!["first".into()]),
    ];
    RouteBy::Handoff(Handoff {
        to: to.into(),
        start: "first".into(),
    })
}

fn choosable(name: &str) -> Choosable {
    Choosable {
        agent: name.into(),
        when: None,
    }
}

fn summary(every: u32) -> SummaryDef {
    SummaryDef {
        every,
        model: "default".into(),
        prompt: None,
        own: true,
    }
}

/// Adds a running summary to the view of a routed agent's members, every `every` messages.
fn sums_up(agent: &mut AgentDef, every: u32, window: Option<u32>) {
    if let Does::Route(route) = &mut agent.does {
        route.view.summary = Some(Box::new(summary(every)));
        route.view.window = window;
    }
}

/// Sets the fallback of a routed agent for unusable answers of its model, and the view that its members have.
fn of_route(agent: &mut AgentDef, to: Fallback, of: Seen) {
    if let Does::Route(route) = &mut agent.does {
        route.asks.unusable.to = to;
        route.view.of = of;
    }
}
