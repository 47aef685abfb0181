//! Routes.

use super::{
    GoOn, Json, Keys, Map, Names, OnChange, Order, Release, Requires, Reset, View, keys, method,
    section, short,
};

section! {
    /// A route.
    Route = "Route" {
        "The first that holds." rules "rules" list(Rule);
        "One after the other; each gets the result of the one before." sequence "sequence" texts;
        "A graph of states with speakers." state "states" map_into(State);
        "A concierge over tasks." task "tasks" map_into(Task);
        "Who may hand over to whom; `[]`: to nobody." handoff "handoff" map_texts;
        "A model picks, or says that all is done." pick "pick" list(Choice);
        "A router in Rust, registered under the agent's name; its version." native "native" version;
        "First state, or first speaker of `handoff`." start "start" text;
        "`tasks`: who speaks when no task is chosen. Answers once, never keeps the floor." default "default" text;
        "Of judge, `by_model`, `pick`, orchestrator." model "model" text;
        "Of `pick`." system "system" text;
        "`tasks`: who is asked which task a message is about." orchestrator "orchestrator" into(Orchestrator);
        "`tasks`: what follows a task that is done: what was asked for, what a model says is left, nothing." go_on "continue" word(GoOn);
        "`tasks`: the user wants something else in the middle of a task." on_change "on_change" word(OnChange);
        "A member failed." on_failed "on_failed" text;
        "The routing model's answer cannot be used." on_unusable "on_unusable" into(Unusable);
    }
}

section! {
    /// A rule.
    Rule = "Rule" {
        "Holds." when "when" text;
        "An agent, several in sequence, or `finish`." to "to" into(Names);
        "A model picks." pick "pick" list(Choice);
        "The model that picks." model "model" text;
    }
}

section! {
    /// A choice.
    Choice = "Choice" short(agent: text) {
        "The member." agent "agent" text;
        "Offered while it holds." when "when" text;
    }
}

section! {
    /// Reaction to unusable answers of a routing model.
    Unusable = "Unusable" {
        "So often it is asked again, with the error shown." retries "retries" whole;
        "An agent, `stay`, `finish`." to "to" text;
    }
}

section! {
    /// A state.
    State = "StateNode" {
        "Ahead of each speaker's `system`." scene "scene" text;
        "In speaking order." speakers "speakers" list(Speaker);
        "Who speaks next; `random` is seeded by the session." order "order" word(Order);
        "Who begins." begin "begin" into(Begin);
        "What leads out: those that need no model first, in order, then one call over all `judge` entries." exits "exits" list(Exit);
        "What speakers see here." view "view" into(View);
        "When counters and opening start again." reset "reset" word(Reset);
    }
}

section! {
    /// A speaker.
    Speaker = "Speaker" short(agent: text) {
        "The member." agent "agent" text;
        "By what name models choose it." role "role" text;
        "Added to its `system` in this state." instructions "instructions" text;
        "State entries of the routed agent, or of one above it, filled from what it said, before the next decision." extract "extract" texts;
    }
}

section! {
    /// An opening.
    Begin = "Begin" {
        "Who speaks first." speaker "speaker" text;
        "Said without a model call." say "say" text;
    }
}

section! {
    /// An exit.
    Exit = "Exit" {
        "Holds." when "when" text;
        "A judge model says that this is so. It answers with the number of a `judge` entry, counted from 1, or 0 for stay." judge "judge" text;
        "So many messages were said in the state." after_messages "after_messages" whole;
        "A state, or `finish`." to "to" text;
    }
}

section! {
    /// A task.
    Task = "Task" {
        "Who does it." agent "agent" text;
        "Tasks that must be done first. Choosing this one while they are open begins the first open one and keeps this one as the goal." after "after" texts;
        "Judged when a turn of the task ends, never before its first, and when its agent calls `done`." done "done" text;
        "All must hold for it to begin." requires "requires" push(Requires);
        "State that is unset when it begins." clear "clear" texts;
        "What its agent may call to give the floor back." release "release" words(Release);
    }
}

section! {
    /// An orchestrator.
    Orchestrator = "Orchestrator" {
        "Its system prompt." system "system" text;
        "Its model." model "model" text;
        "May answer the user itself." speaks "speaks" flag;
    }
}
