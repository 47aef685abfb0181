//! Keys of tools, and of their requests, approvals, doubts, waits and horizons.

use super::agent::Reflect;
use super::kinds::{
    Data, Expr, Few, Flag, List, Long, Many, Map, Millis, Name, Names, Or, Path, Rate, Size,
    Template, Text, Type, Whole, Word, words,
};
use super::section;
use steersman_machine::network::{Beyond, HttpOutcome, ProbeElse};
use steersman_machine::stored::bounds::SPILL;
use steersman_machine::stored::interaction::Class;

words! {
    /// Way out of doubt in one word.
    enum DoubtWord: Ask = "ask", Fail = "fail";
    /// Handling of a call that repeats an earlier effect.
    enum Repeat: Ask = "ask", Allow = "allow";
    /// Method of a request.
    enum Verb: Get = "GET", Post = "POST", Put = "PUT", Patch = "PATCH", Delete = "DELETE", Head = "HEAD";
    /// Decision in the place of an approver who does not answer.
    enum Silent: Reject = "reject", Approve = "approve";
    /// Number of branches that a wait needs, as a word.
    enum AllOrAny: All = "all", Any = "any";
}

words! {
    HttpOutcome: Done = "done", NotPerformed = "not_performed", Unknown = "unknown";
    ProbeElse: NotPerformed = "not_performed", Ask = "ask", Fail = "fail";
    Beyond: Drop = "drop", Stub = "stub", Summary = "summary", Elide = "elide";
}

section! {
    /// A tool.
    Tool<'a>: "Tool", "a tool" {
        description: Text<'a> | "required if a model is offered it", "Told to the model.";
        parameters: Or<Names<'a, Type<'a>>, Path<'a>> | "{}", "Arguments, checked before it runs; a path names a JSON Schema.", declares Parameter;
        effect: Word<'a, Class> | "`unsafe`; without a source, or with `wait` or `ask`: `pure`", "Effect class.";
        requires: Many<'a, Requires<'a>>, "All must hold, else a refusal.";
        approve: Approve<'a>, "A person decides on exactly these arguments.";
        http: Http<'a>, "A request.";
        command: List<'a, Template<'a>>,
            "A program and its arguments, no shell. A parameter that is an artifact is the path of a file with its content here and in `env`.";
        env: Map<'a, Template<'a>>, "For `command`; secrets resolve here.",
            with ["command"] "a tool without `command`";
        save: Save<'a>,
            "The artifact that `command` makes: the file at the path `{{ save }}` if `command` or `env` name that, else what it prints. The result is what it prints besides, or the name.",
            with ["command"] "a tool without `command`";
        native: Or<Whole<'a, 0>, Text<'a>>, "In Rust, registered under this name; its version.";
        wait: Wait<'a>, "Parks the call.";
        ask: Name<'a>, "Puts the argument `question` to this person.", names Person;
        send: Name<'a>, "Puts the argument `message` into this agent's inbox.", names Agent;
        set: Map<'a, Data<'a>>, "State writes on success.", names State;
        result: Template<'a> | "the result as JSON", "What the model sees on success.";
        on_error: Map<'a, OnError<'a>>, "By code, the most specific first.";
        on_doubt: Or<Word<'a, DoubtWord>, Doubt<'a>> | "`ask` if a person can be reached, else `fail`", "Way out of doubt.";
        simulate: Data<'a>, "Result in dry mode.";
        repeat: Word<'a, Repeat> = Repeat::Ask,
            "A call with the same arguments as an effect that was done before in the session: a person is asked, or it runs.";
        then: Then<'a>, "Another tool follows, with no model turn between.";
        mode: Template<'a>,
            "On success: the mode in which its caller is next. A text that is empty leaves it as it is, and so does a caller that has no modes.";
        reflect: Reflect<'a>,
            "Judges each result, and the call may be made again; of `unsafe` tools the arguments, before the call. `rounds` is how often in a row it may be sent back.";
        render: Render<'a>, "How call and result look in the context.";
        timeout: Millis<'a> = 60_000, "Of one attempt.";
        retry: Few<'a, 0> = 4, "Further attempts at most.";
        parallel: Few<'a, 1> = 8, "At once, per process.";
        overrides as "override": Flag<'a> = false, "Replaces one of an imported file.";
    }
    at_most one of &["http", "command", "native", "wait", "ask", "send"];

    /// An artifact that a command makes.
    Save<'a>: "Save", "an artifact of a command", short [Template<'a>, Long<Self>] name {
        name: Template<'a>, required "Its name, a path below one folder.";
        media: Text<'a> | "by the ending of the name", "Its media type: `application/pdf`.";
    }

    /// A request.
    Http<'a>: "Http", "a request" {
        url: Template<'a>, required "Values put into path or query are percent-encoded; `| raw` says otherwise.";
        method: Word<'a, Verb> | "`GET`, with a body `POST`", "Method.";
        query: Or<Map<'a, Data<'a>>, Template<'a>>, "`none` is left out.";
        headers: Map<'a, Template<'a>>, "Headers.";
        json: Data<'a>, "JSON body.";
        form: Map<'a, Data<'a>>, "Form body.";
        file: Template<'a>, "Body: the artifact of this name.";
        key_header: Text<'a> = "Idempotency-Key".to_owned(), "Carries the effect id of `idempotent` tools.";
        save: Template<'a>, "Stores the body as an artifact of this name; the result is the name.";
        outcomes: Map<'a, Word<'a, HttpOutcome>> | "2xx done; 4xx but 408 not_performed; else unknown", "What a status means.";
        rate: Rate<'a, false> | "none",
            "How often it is sent at most: `5/s`, `100/min`. All tools and sessions of a process that ask one host at one rate share a limiter.";
    }
    at_most one of &["json", "form", "file"];

    /// A precondition.
    Requires<'a>: "Requires", "a precondition", short [Expr<'a>, Long<Self>] that {
        that: Expr<'a>, required "Must hold.";
        otherwise as "else": Template<'a> | "the expression", "What the model is told.";
    }

    /// An approval.
    Approve<'a>: "Approve", "an approval", short [Expr<'a>, Long<Self>] when {
        when: Expr<'a> | "true", "Whether it is wanted.";
        by: Name<'a> | "user", "A person, or `user`.", names Person;
        ask: Template<'a> | "tool and arguments", "The question.";
        show: List<'a, Name<'a>>, "Parameters that are artifacts, shown with it.", names Parameter;
        edit: List<'a, Name<'a>> | "none", "Arguments that the approver may change.", names Parameter;
        timeout: Millis<'a> | "none: waits", "How long it waits.";
        on_timeout: Or<Word<'a, Silent>, Long<Approve<'a>>> | "reject",
            "What happens then: or the next in line, who is asked.";
    }

    /// A way out of doubt.
    Doubt<'a>: "Doubt", "a way out of doubt" {
        probe: Name<'a> | "none: a person says",
            "A `pure` or `read` tool that finds out. It is tried again as its own `retry` says.", names Tool;
        args: Map<'a, Data<'a>>, "Its arguments.";
        done: Expr<'a> | "required with `probe`", "Over `result`: it happened.";
        otherwise as "else": Word<'a, ProbeElse> = ProbeElse::Ask, "When `done` is false.";
        by: Many<'a, Name<'a>> | "who is asked to approve the call, else `any`",
            "Who is asked, where a probe has not settled it: people, `user` or `any`. One answer is enough.", names Person;
    }

    /// An entry of `on_error`.
    OnError<'a>: "OnError", "an entry of `on_error`" {
        set: Map<'a, Data<'a>>, "State writes.", names State;
        result: Template<'a> | "code and message", "What the model sees.";
        then: Then<'a>, "A tool that follows.";
    }

    /// A tool that follows.
    Then<'a>: "Then", "a tool that follows", short [Name<'a>, Long<Self>] tool {
        tool: Name<'a>, required "Which.", names Tool;
        args: Map<'a, Data<'a>> | "result", "Its arguments.";
    }

    /// A wait.
    Wait<'a>: "Wait", "a wait" {
        event: Name<'a>, "For an event.", names Event;
        matching as "match": Map<'a, Data<'a>> | "required with `event`, unless that has `session`",
            "Fields that must be equal, each a value of its declared type.",
            with ["event"] "a wait without `event`";
        when: Expr<'a>, "With `event`: in addition. Alone: over state.";
        time: Or<Millis<'a>, Template<'a>>, "A span of time.";
        until: Template<'a>, "A date and time.";
        branches: Or<Whole<'a, 1>, Word<'a, AllOrAny>>, "Those forked here.";
        ticks: Whole<'a, 1>, "Commits of this branch.";
        any: List<'a, Wait<'a>>, "One of several.";
        all: List<'a, Wait<'a>>, "All of several.";
        timeout: Millis<'a> | "none", "How long at most.";
        on_timeout: Template<'a> | "error `timeout`", "The result instead.";
    }
    at_most one of &["event", "time", "until", "branches", "ticks", "any", "all"];

    /// The form of calls and results in a context.
    Render<'a>: "Render", "`render`" {
        call: Template<'a> | "as called", "Instead of the call.";
        result: Template<'a> | "the tool's `result`", "Instead of the result.";
        horizon: Or<Few<'a, 1>, Horizon<'a>> | "none: for ever",
            "How many of the agent's newest exchanges show it whole, at least. What is older goes in chunks, so that prefixes stay the same.";
        beyond: Word<'a, Beyond> | "stub; with `elide` and no `stub`: elide",
            "What becomes of it then: `drop` leaves call and result out, `stub` replaces the result, `summary` lets a model sum the results up, `elide` leaves arguments out alone.",
            with ["horizon"] "a rendering without `horizon`";
        stub: Template<'a> | "(result no longer shown)", "The text instead of the result.",
            with ["horizon"] "a rendering without `horizon`";
        elide: List<'a, Text<'a>>, "Arguments that are `...` then.",
            with ["horizon"] "a rendering without `horizon`";
        model: Name<'a> | "default", "Writes the summary.", names Model;
        spill: Size<'a> = SPILL,
            "Larger results become artifacts: the call gets their beginning and a reference. Results of agents and people have 16KiB.";
    }

    /// A horizon.
    Horizon<'a>: "Horizon", "a horizon" {
        own: Few<'a, 1>, required "Counts the exchanges with this tool alone.";
    }
}
