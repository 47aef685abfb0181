//! Agents, people, contexts and limits.

use super::{
    Agent, Approve, Count, Effects, Enter, Json, Keys, Map, Method, Names, OnLimit, Part,
    PerAnswer, Period, Requires, Route, Sees, Serialize, SharedView, Span, Turns, Type, data, keys,
    method, section, short,
};

keys! {
    Agent = "Agent" {
        "Told to models that may choose it." describe "description" text;
        "How it is called." parameter "parameters" map_into(Type);
        "Structured answer; `state.NAME` takes that entry's type and writes it there." output "output" into(Type);
        "State writes at its end, over `result`." set "set" map_data;
        "Opens a scope with each instance." state "state" map_into(Type);
        "Scope when it is called again." enter "enter" word(Enter);
        "The system prompt." system "system" text;
        "Model by name." model "model" text;
        "Over the model's." param "params" map_data;
        "Tools, agents, built-in sets." tools "tools" list(ToolUse);
        "`auto`, `any`, `none`, or a tool." tool_choice "tool_choice" text;
        "Begins the answer." prefill "prefill" text;
        "`chat`, `react`, `refact` (`react` with a reflection after each action), or one registered in Rust." net "net" text;
        "Variants of the agent, of which one is in force. What a mode does not say is the agent's." mode "modes" map_into(Mode);
        "First mode." start "start" text;
        "With `modes`: exits of every mode. They are checked before the mode's own; an exit to the present mode is passed over." exits "exits" list(ModeExit);
        "Tools that run ahead of every turn, together: `before.NAME` in templates." before "before" list(Before);
        "State entries filled from each new message by one model call, ahead of everything else (of a routed agent ahead of its decision). The model is `small` if one is declared, else `default`. A value that does not fit is left out, and the result says so." extract "extract" texts;
        "Text and Markdown, searched for the newest message ahead of every turn: files and folders." knowledge "knowledge" texts;
        "Judges the answer before anybody is told: by itself, or `by` a reviewer. `true` is by itself, one round." reflect "reflect" into(Reflect);
        "How its context is put together." context "context" into(Context);
        "What it sees of the others under a routed agent; at a routed agent: default for its members." view "view" into(View);
        "How it ends." turns "turns" word(Turns);
        "For this agent and all it started." limits "limits" into(Limits);
        "Answers by search over branches, dry unless it says otherwise. The branch that is worth most is adopted; where none can be, it answers without." search "search" into(Search);
        "A routed agent." route "route" into(Route);
        "A person." person "person" into(Person);
        "No model: one call of this tool." run "run" text;
        "For `run`." arg "args" map_data;
        "Replaces one of an imported file." overrides "override" flag;
    }
}

section! {
    /// A mode. Its keys are those of an agent that it may override, and its exits.
    Mode = "Mode" {
        "The system prompt." system "system" text;
        "Model by name." model "model" text;
        "Over the agent's, one by one." param "params" map_data;
        "Tools, agents, built-in sets; instead of the agent's." tools "tools" list(ToolUse);
        "`auto`, `any`, `none`, or a tool." tool_choice "tool_choice" text;
        "Begins the answer." prefill "prefill" text;
        "How its context is put together; over the agent's, key by key." context "context" into(Context);
        "Over the agent's, one by one. What they count goes on over modes." limits "limits" into(Limits);
        "What leads out, in order: the first that fires." exits "exits" list(ModeExit);
    }
}

section! {
    /// An exit of a mode.
    ModeExit = "ModeExit" {
        "One of these tools or agents succeeded in the exchange that just closed." after_tool "after_tool" into(Names);
        "So many model calls were made since the mode began." after_calls "after_calls" whole;
        "Holds. Judged when an exchange has closed, and where a model call is owed." when "when" text;
        "A mode; or `finish`: the task ends with what was said last, and the next one begins in `start`." to "to" text;
    }
}

section! {
    /// A tool that runs ahead of a turn.
    Before = "Before" short(tool: text) {
        "A `pure` or `read` tool." tool "tool" text;
        "Its arguments." arg "args" map_data;
        "What `before` calls it." seen "as" text;
        "Shown behind the history without being named." show "show" flag;
    }
}

section! {
    /// A reflection.
    Reflect = "Reflect" short(on: flag) {
        "A reviewer: an agent that is called with what it is to judge, and says `accept` or what to revise. Itself: one model call a round, whose answer is `accept` or the new draft." by "by" text;
        "At an agent: how often one answer is judged; the last draft is the answer then. At a tool: how often in a row a call of it may be sent back." rounds "rounds" whole;
        "Whether this one is judged, over `result`, at a tool `args` and `result`." when "when" text;
        "What the agent is told; for a reviewer its argument `prompt`, or the beginning of its `message`." prompt "prompt" text;
    }
}

section! {
    /// A view.
    View = "View" short(of: word Sees) {
        "What of the others." of "of" word(Sees);
        "The newest messages." window "window" whole;
        "Passages of what was said in the network that are found for the newest message and are not seen anyway, 20 at most." relevant "relevant" whole;
        "Running summary: what it stands for is left out but for the window. At a member: `summary: {}` shares the one of its network, if that has one." summary "summary" into(Summary);
    }
}

section! {
    /// A summary.
    Summary = "Summary" {
        "Written again after so many messages of members, before the router decides." every "every" whole;
        "Writes it." model "model" text;
        "What that model is told. At a member it reads `config` alone." prompt "prompt" text;
    }
}

section! {
    /// An offered tool.
    ToolUse = "ToolUse" short(tool: text) {
        "A tool." tool "tool" text;
        "An agent." agent "agent" text;
        "The name that the model sees." seen "as" text;
        "Fixed arguments, hidden from the model: templates over the agent that makes the call. If one cannot be evaluated or does not fit, the call ends with an error." arg "args" map_data;
        "In addition." requires "requires" push(Requires);
        "In addition." approve "approve" into(Approve);
        "An agent: the parameter `name` chooses the instance." named "named" flag;
        "What a started agent sees of the caller." view "view" word(SharedView);
        "At once." parallel "parallel" whole;
        "Calls per answer; of `fork`: branches." max "max" whole;
        "Offered while it holds." when "when" text;
        "`fork`: who picks the branch to adopt." choose "choose" text;
        "`fork`: when it is over: `all`, `any`, how many must end, or over `done`, `failed`, `open`, `answers`." join "join" into(Count);
        "`fork`: whether branches act." effects "effects" word(Effects);
    }
}

section! {
    /// A search.
    Search = "Search" {
        "`best_of`: independent branches, each to its end. `beam`: block by block, the best `width` of each level go on. `rollouts`: `width` first blocks, each tried to the end in turn. `mcts`: each branch begins where it promises most." method "method" word(Method);
        "Branches in all, at most 1000; of `beam`: of each level." n "n" whole;
        "`beam`: how many of a level go on. `rollouts`: how many first blocks. `mcts`: how often it branches at one place." width "width" whole;
        "Blocks of a branch at most; there it is judged as it stands." depth "depth" whole;
        "What a branch is worth: a number (or true, false) over `answer`, `state`, `calls`. One of `score`, `by`." score "score" text;
        "Who says so: a `pure` or `read` tool, or an agent, that answers a number. It gets `answer` and `state`, and entries of the state by their names." by "by" text;
        "A branch that is worth as much ends the search." enough "enough" number;
        "What all branches may use together; then the best so far is taken." budget "budget" into(SearchBudget);
        "What sampling begins from: each branch has a seed of its own, for models whose parameters have a `seed`, and for scripts." seed "seed" whole;
        "Whether tools that touch the world run on the branches." effects "effects" word(Effects);
    }
}

section! {
    /// The budget of a search.
    SearchBudget = "SearchBudget" {
        "Model calls, those of agents that are called included. A block that began is finished." model_calls "model_calls" whole;
        "Tokens in and out." tokens "tokens" whole;
        "Money, in the currency of the prices." cost "cost" number;
    }
}

section! {
    /// A person.
    Person = "Person" {
        "Who may answer." role "role" text;
        "An `idempotent` tool that is run when a question, an approval or a hold opens for them: `question`, `person`." reach "reach" text;
        "How long a question waits." timeout "timeout" span;
        "What happens then." on_timeout "on_timeout" into(PersonTimeout);
    }
}

section! {
    /// A person's time-out.
    PersonTimeout = "PersonTimeout" {
        "Answered in the person's place." text "text" text;
        "In a route: the member who acts instead." to "to" text;
        "Told to the other side, where nothing is answered in their place." say "say" text;
    }
}

section! {
    /// A context.
    Context = "Context" {
        "Order." parts "parts" words(Part);
        "Volatile facts, after the history." now "now" text;
        "Exchanges kept in view." keep_exchanges "keep_exchanges" whole;
        "A model sums up what lies further back before the context grows too large." compact "compact" into(Compact);
        "How the parts of the conversation look, by kind; made again when what a template reads has changed. It takes the place of the whole `render` of the agent or the file." render "render" into(ContextRender);
    }
}

section! {
    /// Templates for the parts of a conversation.
    ContextRender = "ContextRender" {
        "Instead of a message to the agent, over `message`: of a person, its caller (whose arguments are `args`) or another agent." user "user" text;
        "Instead of a message of the engine, over `message`." engine "engine" text;
        "Instead of the text of an answer, over `message`; its calls stay." assistant "assistant" text;
        "Instead of a summary of the conversation, over `message`." summary "summary" text;
        "Instead of a call of which its tool says nothing, over `tool` and `args`." call "call" text;
        "Instead of a result of which its tool says nothing, over `tool`, `args` and `result`." result "result" text;
    }
}

section! {
    /// A compaction.
    Compact = "Compact" {
        "Tokens of a request from which on it is compacted: as the provider counted, else a token for four bytes." when_tokens "when_tokens" whole;
        "Writes the summary." model "model" text;
        "The newest exchanges, which are never compacted." keep_exchanges "keep_exchanges" whole;
        "What its model is told." prompt "prompt" text;
    }
}

section! {
    /// Limits. At an agent, they cover it and, for limits that are counted, everything it started. At the top, they cover the
    /// root and so all agents. If an agent reaches a limit of an agent above it, it ends; the agent above applies the outcome
    /// of the limit when it moves next.
    Limits = "Limits" {
        "Model calls, and calls of states in Rust, each from its begin on. The default counts the agent's own; what is written counts those of all it started, too: sub-agents, members, reviewers. Branches count for themselves." model_calls "model_calls" into(Limit);
        "Calls of agents, counted like model calls. One more is refused with a result; where it was asked for, the limit is reached." agent_calls "agent_calls" into(Limit);
        "Calls of one exchange at once; the rest waits. At the top: of every agent." parallel "parallel" into(Bound);
        "How deep agents may stand, the root at 1; a deeper call is refused with a result. The least counts of what is written at the agent, above it and at the top." depth "depth" into(Bound);
        "Commits that move the agent; what is written counts those that move any it started, too." ticks "ticks" into(Limit);
        "The same calls with the same arguments and results in a row. Of a route: the same choice over the same values without progress in between (`2`, `fail`). At the top: of every agent." same_call "same_call" into(AnswerLimit);
        "Arguments and answers that could not be used. At the top: of every agent." corrections "corrections" into(AnswerLimit);
        "Time since it began. Per answer without the time in which nothing but people and waits keeps it; a call that waits for approval counts as one that runs." wall_time "wall_time" into(TimeLimit);
        "Tokens. At the top per session they are drawn ahead of use and count whatever becomes of the branch that spent them; else they are what the answers of this branch used, so calls that run at the same time may exceed it together." tokens "tokens" into(Limit);
        "Money, in the currency of the prices (US dollars in the built-in table). Drawn and counted like `tokens`. The price of every model must be known." cost "cost" into(MoneyLimit);
    }
}

section! {
    /// A limit.
    Limit = "Limit" short(max: whole) {
        "At most." max "max" whole;
        "Counted since the message that is being answered, the call that is being served (at the root: as `session`), or the agent's start." per "per" word(Period);
        "`answer`: one last model call with tools off (a routed root fails); `fail`; `finish`: ends with what it has; `ask`: a person may allow as much again from there." on_limit "on_limit" word(OnLimit);
    }
}

section! {
    /// A limit on events in a row; its count starts again with each answer.
    AnswerLimit = "AnswerLimit" short(max: whole) {
        "At most." max "max" whole;
        "Each answer is counted from 0." per "per" word(PerAnswer);
        "`answer`: one last model call with tools off (a routed root fails); `fail`; `finish`: ends with what it has; `ask`: a person may allow as much again from there." on_limit "on_limit" word(OnLimit);
    }
}

section! {
    /// A bound that is never exceeded, so it has neither a period nor an outcome.
    Bound = "Bound" short(max: whole) {
        "At most." max "max" whole;
    }
}

section! {
    /// A limit whose maximum is a duration.
    TimeLimit = "TimeLimit" short(max: span) {
        "At most." max "max" span;
        "Counted since the message that is being answered, the call that is being served (at the root: as `session`), or the agent's start." per "per" word(Period);
        "`answer`: one last model call with tools off (a routed root fails); `fail`; `finish`: ends with what it has; `ask`: a person may allow as much again from there." on_limit "on_limit" word(OnLimit);
    }
}

section! {
    /// A limit whose maximum is an amount of money.
    MoneyLimit = "MoneyLimit" short(max: number) {
        "At most." max "max" number;
        "Counted since the message that is being answered, the call that is being served (at the root: as `session`), or the agent's start." per "per" word(Period);
        "`answer`: one last model call with tools off (a routed root fails); `fail`; `finish`: ends with what it has; `ask`: a person may allow as much again from there." on_limit "on_limit" word(OnLimit);
    }
}
