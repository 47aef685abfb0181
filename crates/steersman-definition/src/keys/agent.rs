//! Keys of agents, people, contexts and limits.

use super::kinds::{
    Any, Data, Documents, Expr, Few, Flag, List, Long, Many, Map, Millis, Money, Name, Names, Or,
    Prompt, Real, Template, Text, Type, Whole, Word, Words, words,
};
use super::route::Route;
use super::section;
use super::tool::{Approve, Requires};
use crate::source::Node;
use steersman_machine::network;
use steersman_machine::network::search::{BRANCHES, DEPTH, Method};
use steersman_machine::network::{Limits as Usual, OnLimit, Part, Turns};
use steersman_machine::stored::commit::Period;

words! {
    /// Scope of an agent that is called again.
    enum Enter: Keep = "keep", Fresh = "fresh";
    /// The part of the others' work that an agent sees.
    enum Sees: Own = "own", Shared = "shared", SinceLastSpoke = "since_last_spoke", SinceEntry = "since_entry",
        Summary = "summary", Relevant = "relevant";
    /// The part of its caller's work that a started agent sees.
    enum SharedView: Own = "own", Shared = "shared";
    /// Effects of tools on branches.
    enum Effects: Dry = "dry", Live = "live";
    /// Period of a limit whose count starts again with each answer.
    enum PerAnswer: Answer = "answer";
}

words! {
    Turns: Dialogue = "dialogue", Task = "task", Once = "once";
    Method: BestOf = Self::BestOf.word(), Beam = Self::Beam.word(), Rollouts = Self::Rollouts.word(), Mcts = Self::Mcts.word();
    Part: System = "system", Tools = "tools", History = "history", Now = "now";
    Period: Answer = "answer", Task = "task", Session = "session";
    OnLimit: Answer = "answer", Fail = "fail", Finish = "finish", Ask = "ask";
}

section! {
    /// An agent.
    Agent<'a>: "Agent", "an agent" {
        description: Text<'a> | "required where a model chooses it", "Told to models that may choose it.";
        parameters: Names<'a, Type<'a>> | "{ message: string }", "How it is called.", declares Parameter;
        output: Or<Text<'a>, Type<'a>> | "text",
            "Structured answer; `state.NAME` takes that entry's type and writes it there.", names StateValue;
        set: Map<'a, Data<'a>>, "State writes at its end, over `result`.", names State;
        state: Names<'a, Type<'a>>, "Opens a scope with each instance.", declares State;
        enter: Word<'a, Enter> = Enter::Keep, "Scope when it is called again.";
        system: Prompt<'a>, "The system prompt.";
        model: Name<'a> | "default", "Model by name.", names Model;
        params: Map<'a, Any<'a>>, "Over the model's.";
        tools: List<'a, ToolUse<'a>> | "[]", "Tools, agents, built-in sets.", names Offer;
        tool_choice: Text<'a> | "auto", "`auto`, `any`, `none`, or a tool.", names Callable;
        prefill: Template<'a>, "Begins the answer.";
        net: Text<'a> | "chat",
            "`chat`, `react`, `refact` (`react` with a reflection after each action), or one registered in Rust.";
        modes: Names<'a, Mode<'a>>,
            "Variants of the agent, of which one is in force. What a mode does not say is the agent's.", declares Mode;
        start: Name<'a> | "first of `modes`", "First mode.", with ["modes"] "an agent without `modes`", names Mode;
        exits: List<'a, ModeExit<'a>>,
            "With `modes`: exits of every mode. They are checked before the mode's own; an exit to the present mode is passed over.",
            with ["modes"] "an agent without `modes`";
        before: List<'a, Before<'a>>, "Tools that run ahead of every turn, together: `before.NAME` in templates.";
        extract: List<'a, Name<'a>>,
            "State entries filled from each new message by one model call, ahead of everything else (of a routed agent ahead of its decision). The model is `small` if one is declared, else `default`. A value that does not fit is left out, and the result says so.", names State;
        knowledge: List<'a, Documents<'a>>,
            "Text and Markdown, searched for the newest message ahead of every turn: files and folders.";
        reflect: Reflect<'a>,
            "Judges the answer before anybody is told: by itself, or `by` a reviewer. `true` is by itself, one round.";
        context: Context<'a> | "the file's", "How its context is put together.";
        view: View<'a> | "`shared` under `states` and `handoff` and `tasks`, else `own`",
            "What it sees of the others under a routed agent; at a routed agent: default for its members.";
        turns: Word<'a, Turns> | "`dialogue` at the entry, of `tasks` and `handoff` and under them; else `task`",
            "How it ends.";
        limits: Limits<'a>, "For this agent and all it started.";
        search: Search<'a>,
            "Answers by search over branches, dry unless it says otherwise. The branch that is worth most is adopted; where none can be, it answers without.";
        route: Route<'a>, "A routed agent.";
        person: Person<'a>, "A person.";
        run: Name<'a>, "No model: one call of this tool.", names Tool;
        args: Map<'a, Data<'a>> | "its own arguments", "For `run`.", with ["run"] "an agent without `run`";
        overrides as "override": Flag<'a> = false, "Replaces one of an imported file.";
    }
    at_most one of &["route", "person", "run"];

    /// A mode. Its keys are those of an agent that it may override, and its exits.
    Mode<'a>: "Mode", "a mode"; ordered {
        system: Prompt<'a> | "the agent's", "The system prompt.";
        model: Name<'a> | "the agent's", "Model by name.", names Model;
        params: Map<'a, Any<'a>>, "Over the agent's, one by one.";
        tools: List<'a, ToolUse<'a>> | "the agent's", "Tools, agents, built-in sets; instead of the agent's.", names Offer;
        tool_choice: Text<'a> | "the agent's", "`auto`, `any`, `none`, or a tool.", names Callable;
        prefill: Template<'a> | "the agent's", "Begins the answer.";
        context: Context<'a>, "How its context is put together; over the agent's, key by key.";
        limits: Limits<'a>, "Over the agent's, one by one. What they count goes on over modes.";
        exits: List<'a, ModeExit<'a>> | "stays for ever", "What leads out, in order: the first that fires.";
    }

    /// An exit of a mode.
    ModeExit<'a>: "ModeExit", "an exit of a mode" {
        after_tool: Many<'a, Text<'a>>, "One of these tools or agents succeeded in the exchange that just closed.", names Callable;
        after_calls: Few<'a, 1>, "So many model calls were made since the mode began.";
        when: Expr<'a>, "Holds. Judged when an exchange has closed, and where a model call is owed.";
        to: Name<'a>,
            required "A mode; or `finish`: the task ends with what was said last, and the next one begins in `start`.", names Mode;
    }
    exactly one of &["after_tool", "after_calls", "when"];

    /// A tool that runs ahead of a turn.
    Before<'a>: "Before", "a tool that runs ahead of a turn", short [Text<'a>, Long<Self>] tool {
        tool: Text<'a>, required "A `pure` or `read` tool.", names Tool;
        args: Map<'a, Data<'a>> | "the message, if it takes one text", "Its arguments.";
        seen as "as": Name<'a> | "the tool's name", "What `before` calls it.";
        show: Flag<'a> = true, "Shown behind the history without being named.";
    }

    /// A reflection.
    Reflect<'a>: "Reflect", "a reflection", short [Flag<'a>, Long<Self>] on {
        by: Name<'a> | "itself",
            "A reviewer: an agent that is called with what it is to judge, and says `accept` or what to revise. Itself: one model call a round, whose answer is `accept` or the new draft.", names Agent;
        rounds: Few<'a, 1> = 1,
            "At an agent: how often one answer is judged; the last draft is the answer then. At a tool: how often in a row a call of it may be sent back.";
        when: Expr<'a> | "true", "Whether this one is judged, over `result`, at a tool `args` and `result`.";
        prompt: Template<'a> | "built in",
            "What the agent is told; for a reviewer its argument `prompt`, or the beginning of its `message`.";
    }

    /// A view.
    View<'a>: "View", "a view", short [Word<'a, Sees>, Long<Self>] of {
        of: Word<'a, Sees> | "as without it", "What of the others.";
        window: Few<'a, 1> | "none", "The newest messages.";
        relevant: Few<'a, 0> | "0; of the word `relevant` 5",
            "Passages of what was said in the network that are found for the newest message and are not seen anyway, 20 at most.";
        summary: Summary<'a>,
            "Running summary: what it stands for is left out but for the window. At a member: `summary: {}` shares the one of its network, if that has one.";
    }

    /// A summary.
    Summary<'a>: "Summary", "a summary" {
        every: Few<'a, 1> = 10, "Written again after so many messages of members, before the router decides.";
        model: Name<'a> | "default", "Writes it.", names Model;
        prompt: Prompt<'a> | "built in", "What that model is told. At a member it reads `config` alone.";
    }

    /// An offered tool.
    ToolUse<'a>: "ToolUse", "an offered tool", short [Text<'a>, Long<Self>] what {
        tool: Text<'a>, "A tool.", names Offer;
        agent: Name<'a>, "An agent.", names Agent;
        seen as "as": Name<'a> | "its name", "The name that the model sees.";
        args: Map<'a, Data<'a>>, "Fixed arguments, hidden from the model: templates over the agent that makes the call. If one cannot be evaluated or does not fit, the call ends with an error.";
        requires: Many<'a, Requires<'a>>, "In addition.";
        approve: Approve<'a>, "In addition.";
        named: Flag<'a> = false, "An agent: the parameter `name` chooses the instance.";
        view: Word<'a, SharedView> = SharedView::Own, "What a started agent sees of the caller.";
        parallel: Few<'a, 1> = 8, "At once.";
        max: Few<'a, 1>, "Calls per answer; of `fork`: branches.";
        when: Expr<'a> | "true", "Offered while it holds.";
        choose: Name<'a>, "`fork`: who picks the branch to adopt.", names Callable;
        join: Or<Whole<'a, 1>, Expr<'a>> | "all",
            "`fork`: when it is over: `all`, `any`, how many must end, or over `done`, `failed`, `open`, `answers`.";
        effects: Word<'a, Effects> = Effects::Dry, "`fork`: whether branches act.";
    }
    exactly one of &["tool", "agent"];

    /// A search.
    Search<'a>: "Search", "a search" {
        method: Word<'a, Method> = Method::default(),
            "`best_of`: independent branches, each to its end. `beam`: block by block, the best `width` of each level go on. `rollouts`: `width` first blocks, each tried to the end in turn. `mcts`: each branch begins where it promises most.";
        n: Few<'a, 1> = BRANCHES, "Branches in all, at most 1000; of `beam`: of each level.";
        width: Few<'a, 1> | "`beam`: half of `n`; else 3",
            "`beam`: how many of a level go on. `rollouts`: how many first blocks. `mcts`: how often it branches at one place.";
        depth: Few<'a, 1> = DEPTH, "Blocks of a branch at most; there it is judged as it stands.";
        score: Expr<'a>,
            "What a branch is worth: a number (or true, false) over `answer`, `state`, `calls`. One of `score`, `by`.";
        by: Name<'a>,
            "Who says so: a `pure` or `read` tool, or an agent, that answers a number. It gets `answer` and `state`, and entries of the state by their names.", names Callable;
        enough: Real<'a>, "A branch that is worth as much ends the search.";
        budget: SearchBudget<'a>, "What all branches may use together; then the best so far is taken.";
        seed: Whole<'a, 0> | "the session's",
            "What sampling begins from: each branch has a seed of its own, for models whose parameters have a `seed`, and for scripts.";
        effects: Word<'a, Effects> = Effects::Dry, "Whether tools that touch the world run on the branches.";
    }
    exactly one of &["score", "by"];

    /// The budget of a search.
    SearchBudget<'a>: "SearchBudget", "the budget of a search" {
        model_calls: Whole<'a, 1>, "Model calls, those of agents that are called included. A block that began is finished.";
        tokens: Whole<'a, 1>, "Tokens in and out.";
        cost: Money<'a>, "Money, in the currency of the prices.";
    }

    /// A person.
    Person<'a>: "Person", "a person" {
        role: Text<'a> | "the agent's name", "Who may answer.", declares Role;
        reach: Name<'a>,
            "An `idempotent` tool that is run when a question, an approval or a hold opens for them: `question`, `person`.", names Tool;
        timeout: Millis<'a> | "none", "How long a question waits.";
        on_timeout: PersonTimeout<'a> | "error `timeout`", "What happens then.";
    }

    /// A person's time-out.
    PersonTimeout<'a>: "PersonTimeout", "a person's time-out" {
        text: Template<'a>, "Answered in the person's place.";
        to: Name<'a>, "In a route: the member who acts instead.", names Agent;
        say: Template<'a>, "Told to the other side, where nothing is answered in their place.";
    }
    at_most one of &["text", "say"];

    /// A context.
    Context<'a>: "Context", "a context" {
        parts: List<'a, Word<'a, Part>> = vec![Part::System, Part::Tools, Part::History, Part::Now], "Order.";
        now: Template<'a>, "Volatile facts, after the history.";
        keep_exchanges: Few<'a, 1> = 50, "Exchanges kept in view.";
        compact: Compact<'a> | "at 70 % of the model's `window`, if that is known",
            "A model sums up what lies further back before the context grows too large.";
        render: ContextRender<'a>,
            "How the parts of the conversation look, by kind; made again when what a template reads has changed. It takes the place of the whole `render` of the agent or the file.";
    }

    /// Templates for the parts of a conversation.
    ContextRender<'a>: "ContextRender", "`render` of a context" {
        user: Template<'a> | "as told",
            "Instead of a message to the agent, over `message`: of a person, its caller (whose arguments are `args`) or another agent.";
        engine: Template<'a> | "as told", "Instead of a message of the engine, over `message`.";
        assistant: Template<'a> | "as said", "Instead of the text of an answer, over `message`; its calls stay.";
        summary: Template<'a> | "marked as information", "Instead of a summary of the conversation, over `message`.";
        call: Template<'a> | "as called", "Instead of a call of which its tool says nothing, over `tool` and `args`.";
        result: Template<'a> | "the tool's `result`", "Instead of a result of which its tool says nothing, over `tool`, `args` and `result`.";
    }

    /// A compaction.
    Compact<'a>: "Compact", "a compaction" {
        when_tokens: Whole<'a, 1> | "70 % of the model's `window`",
            "Tokens of a request from which on it is compacted: as the provider counted, else a token for four bytes.";
        model: Name<'a> | "default", "Writes the summary.", names Model;
        keep_exchanges: Few<'a, 1> = 10, "The newest exchanges, which are never compacted.";
        prompt: Prompt<'a> | "built in", "What its model is told.";
    }

    /// Limits. At an agent, they cover it and, for limits that are counted, everything it started. At the top, they cover the
    /// root and so all agents. If an agent reaches a limit of an agent above it, it ends; the agent above applies the outcome
    /// of the limit when it moves next.
    Limits<'a>: "Limits", "limits" {
        model_calls: Limit<'a> => || usual(Usual::standard(false).model_calls),
            "Model calls, and calls of states in Rust, each from its begin on. The default counts the agent's own; what is written counts those of all it started, too: sub-agents, members, reviewers. Branches count for themselves.";
        agent_calls: Limit<'a> => || usual(Usual::standard(false).agent_calls),
            "Calls of agents, counted like model calls. One more is refused with a result; where it was asked for, the limit is reached.";
        parallel: Bound<'a> => || Usual::standard(false).parallel.to_string(), "Calls of one exchange at once; the rest waits. At the top: of every agent.";
        depth: Bound<'a> => || network::DEPTH.to_string(),
            "How deep agents may stand, the root at 1; a deeper call is refused with a result. The least counts of what is written at the agent, above it and at the top.";
        ticks: Limit<'a> => || usual(Usual::standard(false).ticks),
            "Commits that move the agent; what is written counts those that move any it started, too.";
        same_call: AnswerLimit<'a> => || usual(Usual::standard(false).same_call),
            "The same calls with the same arguments and results in a row. Of a route: the same choice over the same values without progress in between (`2`, `fail`). At the top: of every agent.";
        corrections: AnswerLimit<'a> => || usual(Usual::standard(false).corrections),
            "Arguments and answers that could not be used. At the top: of every agent.";
        wall_time: TimeLimit<'a> | "none; per session, `fail`",
            "Time since it began. Per answer without the time in which nothing but people and waits keeps it; a call that waits for approval counts as one that runs.";
        tokens: Limit<'a> | "at the top 2000000, at an agent none; per session, `ask`",
            "Tokens. At the top per session they are drawn ahead of use and count whatever becomes of the branch that spent them; else they are what the answers of this branch used, so calls that run at the same time may exceed it together.";
        cost: MoneyLimit<'a> | "none; per session, `ask`",
            "Money, in the currency of the prices (US dollars in the built-in table). Drawn and counted like `tokens`. The price of every model must be known.";
    }

    /// A limit.
    Limit<'a>: "Limit", "a limit", short [Whole<'a, 1>, Long<Self>] max {
        max: Whole<'a, 1>, required "At most.";
        per: Word<'a, Period> | "as in Limits",
            "Counted since the message that is being answered, the call that is being served (at the root: as `session`), or the agent's start.";
        on_limit: Word<'a, OnLimit> | "as in Limits",
            "`answer`: one last model call with tools off (a routed root fails); `fail`; `finish`: ends with what it has; `ask`: a person may allow as much again from there.";
    }

    /// A limit on events in a row; its count starts again with each answer.
    AnswerLimit<'a>: "AnswerLimit", "a limit of one answer", short [Whole<'a, 1>, Long<Self>] max {
        max: Whole<'a, 1>, required "At most.";
        per: Word<'a, PerAnswer> | "answer", "Each answer is counted from 0.";
        on_limit: Word<'a, OnLimit> | "as in Limits",
            "`answer`: one last model call with tools off (a routed root fails); `fail`; `finish`: ends with what it has; `ask`: a person may allow as much again from there.";
    }

    /// A bound that is never exceeded, so it has neither a period nor an outcome.
    Bound<'a>: "Bound", "a bound", short [Few<'a, 1>, Long<Self>] max {
        max: Few<'a, 1>, required "At most.";
    }

    /// A limit whose maximum is a duration.
    TimeLimit<'a>: "TimeLimit", "a limit", short [Millis<'a>, Long<Self>] max {
        max: Millis<'a>, required "At most.";
        per: Word<'a, Period> | "as in Limits",
            "Counted since the message that is being answered, the call that is being served (at the root: as `session`), or the agent's start.";
        on_limit: Word<'a, OnLimit> | "as in Limits",
            "`answer`: one last model call with tools off (a routed root fails); `fail`; `finish`: ends with what it has; `ask`: a person may allow as much again from there.";
    }

    /// A limit whose maximum is an amount of money.
    MoneyLimit<'a>: "MoneyLimit", "a limit", short [Money<'a>, Long<Self>] max {
        max: Money<'a>, required "At most.";
        per: Word<'a, Period> | "as in Limits",
            "Counted since the message that is being answered, the call that is being served (at the root: as `session`), or the agent's start.";
        on_limit: Word<'a, OnLimit> | "as in Limits",
            "`answer`: one last model call with tools off (a routed root fails); `fail`; `finish`: ends with what it has; `ask`: a person may allow as much again from there.";
    }
}

/// Returns a limit in words.
fn usual(limit: network::Limit) -> String {
    format!("{} per {}, `{}`", limit.max, limit.per, limit.then.word())
}

impl<'a> ToolUse<'a> {
    /// Returns the place where the tool, agent or set is named.
    pub(crate) fn what(self) -> &'a Node {
        let tool = self.tool().map(|tool| tool.0);
        tool.or(self.agent().map(|agent| agent.0)).unwrap_or(self.0)
    }
}
