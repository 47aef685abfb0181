//! Keys of routes.

use super::agent::View;
use super::kinds::{
    Expr, Few, Flag, List, Long, Many, Name, Names, Or, Prompt, Template, Text, Whole, Word, words,
};
use super::section;
use super::tool::Requires;
use steersman_machine::network::{GoOn, OnChange, Order, RouterKind};

words! {
    /// Reaction to a member that failed, apart from naming another one.
    enum Failed: Fail = "fail", Continue = "continue";
    /// Moment at which counters and opening of a state start again.
    enum Reset: OnEntry = "on_entry", Never = "never";
    /// A tool by which the agent of a task gives the floor back.
    enum Release: Done = "done", NeedHelp = "need_help";
}

words! {
    GoOn: Request = "request", ByModel = "by_model", None = "none";
    OnChange: Switch = "switch", Ask = "ask", FinishFirst = "finish_first";
    Order: InTurn = "in_turn", Random = "random", ByModel = "by_model";
}

section! {
    /// A route.
    Route<'a>: "Route", "a route" {
        rules: List<'a, Rule<'a>>, "The first that holds.";
        sequence: List<'a, Name<'a>>, "One after the other; each gets the result of the one before.", names Agent;
        states: Names<'a, StateNode<'a>>, "A graph of states with speakers.", declares Place;
        tasks: Names<'a, Task<'a>>, "A concierge over tasks.", declares Task;
        handoff: Names<'a, List<'a, Name<'a>>>, "Who may hand over to whom; `[]`: to nobody.", names Agent;
        pick: List<'a, Choice<'a>>, "A model picks, or says that all is done.";
        native: Or<Whole<'a, 0>, Text<'a>>, "A router in Rust, registered under the agent's name; its version.";
        start: Name<'a> | "first entry", "First state, or first speaker of `handoff`.",
            with ["states", "handoff"] "this kind of route", names Start;
        default: Name<'a>, "`tasks`: who speaks when no task is chosen. Answers once, never keeps the floor.",
            with ["tasks"] "this kind of route", names Agent;
        model: Name<'a> | "default", "Of judge, `by_model`, `pick`, orchestrator.",
            with ["states", "tasks", "pick", "rules"] "this kind of route", names Model;
        system: Prompt<'a> | "built in", "Of `pick`.",
            with ["pick", "rules"] "this kind of route";
        orchestrator: Orchestrator<'a>, "`tasks`: who is asked which task a message is about.",
            with ["tasks"] "this kind of route";
        go_on as "continue": Word<'a, GoOn> = GoOn::default(),
            "`tasks`: what follows a task that is done: what was asked for, what a model says is left, nothing.",
            with ["tasks"] "this kind of route";
        on_change: Word<'a, OnChange> = OnChange::default(), "`tasks`: the user wants something else in the middle of a task.",
            with ["tasks"] "this kind of route";
        on_failed: Or<Word<'a, Failed>, Name<'a>> | "`fail`; `tasks`: the default; `states`: `continue`", "A member failed.", names Agent;
        on_unusable: Unusable<'a> | "2 retries; then `tasks`: the default, `states`: `stay`, else it fails",
            "The routing model's answer cannot be used.";
    }
    exactly one of RouterKind::KEYS;

    /// A rule.
    Rule<'a>: "Rule", "a rule" {
        when: Expr<'a> | "true", "Holds.";
        to: Many<'a, Name<'a>>, "An agent, several in sequence, or `finish`.", names Agent;
        pick: List<'a, Choice<'a>>, "A model picks.";
        model: Name<'a> | "the route's", "The model that picks.", names Model;
    }
    exactly one of &["to", "pick"];

    /// A choice.
    Choice<'a>: "Choice", "a choice", short [Name<'a>, Long<Self>] agent {
        agent: Name<'a>, required "The member.", names Agent;
        when: Expr<'a> | "true", "Offered while it holds.";
    }

    /// Reaction to unusable answers of a routing model.
    Unusable<'a>: "Unusable", "what becomes of unusable answers" {
        retries: Few<'a, 0> = 2, "So often it is asked again, with the error shown.";
        to: Name<'a> | "as above", "An agent, `stay`, `finish`.", names Agent;
    }

    /// A state.
    StateNode<'a>: "StateNode", "a state"; ordered {
        scene: Template<'a>, "Ahead of each speaker's `system`.";
        speakers: List<'a, Speaker<'a>>, required "In speaking order.";
        order: Word<'a, Order> = Order::default(), "Who speaks next; `random` is seeded by the session.";
        begin: Begin<'a> | "the first speaker, without opening", "Who begins.";
        exits: List<'a, Exit<'a>> | "stays for ever",
            "What leads out: those that need no model first, in order, then one call over all `judge` entries.";
        view: View<'a> | "the route's", "What speakers see here.";
        reset: Word<'a, Reset> = Reset::OnEntry, "When counters and opening start again.";
    }

    /// A speaker.
    Speaker<'a>: "Speaker", "a speaker", short [Name<'a>, Long<Self>] agent {
        agent: Name<'a>, required "The member.", names Agent;
        role: Text<'a> | "the agent's name", "By what name models choose it.";
        instructions: Template<'a>, "Added to its `system` in this state.";
        extract: List<'a, Name<'a>>,
            "State entries of the routed agent, or of one above it, filled from what it said, before the next decision.", names State;
    }

    /// An opening.
    Begin<'a>: "Begin", "an opening" {
        speaker: Name<'a>, required "Who speaks first.", names Agent;
        say: Template<'a>, "Said without a model call.";
    }

    /// An exit.
    Exit<'a>: "Exit", "an exit" {
        when: Expr<'a>, "Holds.";
        judge: Template<'a>,
            "A judge model says that this is so. It answers with the number of a `judge` entry, counted from 1, or 0 for stay.";
        after_messages: Few<'a, 1>, "So many messages were said in the state.";
        to: Name<'a>, required "A state, or `finish`.", names Place;
    }
    exactly one of &["when", "judge", "after_messages"];

    /// A task.
    Task<'a>: "Task", "a task"; ordered {
        agent: Name<'a> | "the task's name", "Who does it.", names Agent;
        after: List<'a, Name<'a>>,
            "Tasks that must be done first. Choosing this one while they are open begins the first open one and keeps this one as the goal.", names Task;
        done: Expr<'a> | "its agent says so",
            "Judged when a turn of the task ends, never before its first, and when its agent calls `done`.";
        requires: Many<'a, Requires<'a>>, "All must hold for it to begin.";
        clear: List<'a, Name<'a>>, "State that is unset when it begins.", names State;
        release: List<'a, Word<'a, Release>> = vec![Release::Done, Release::NeedHelp],
            "What its agent may call to give the floor back.";
    }

    /// An orchestrator.
    Orchestrator<'a>: "Orchestrator", "an orchestrator" {
        system: Prompt<'a> | "built in", "Its system prompt.";
        model: Name<'a> | "the route's", "Its model.", names Model;
        speaks: Flag<'a> = false, "May answer the user itself.";
    }
}
