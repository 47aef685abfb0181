//! Tools, and their requests, approvals, doubts and waits.

use super::{
    Beyond, Class, Count, Declared, DoubtWord, HttpOutcome, Json, Keys, Map, Names, ProbeElse,
    Reflect, Repeat, Serialize, Silent, Span, Tool, Type, Verb, data, keys, method, section, short,
};

keys! {
    Tool, Declared = "Tool" {
        "Told to the model." describe "description" text;
        "Arguments, checked before it runs; a path names a JSON Schema." parameter "parameters" map_into(Type);
        "Arguments, checked before it runs; a path names a JSON Schema." parameters_file "parameters" text;
        "Effect class." effect "effect" word(Class);
        "All must hold, else a refusal." requires "requires" push(Requires);
        "A person decides on exactly these arguments." approve "approve" into(Approve);
        "A request." http "http" into(Http);
        "A program and its arguments, no shell. A parameter that is an artifact is the path of a file with its content here and in `env`." command "command" texts;
        "For `command`; secrets resolve here." env "env" map_text;
        "The artifact that `command` makes: the file at the path `{{ save }}` if `command` or `env` name that, else what it prints. The result is what it prints besides, or the name." save "save" into(Save);
        "Parks the call." wait "wait" into(Wait);
        "Puts the argument `question` to this person." ask "ask" text;
        "Puts the argument `message` into this agent's inbox." send "send" text;
        "State writes on success." set "set" map_data;
        "What the model sees on success." result "result" text;
        "By code, the most specific first." on_error "on_error" map_into(OnError);
        "Way out of doubt." on_doubt "on_doubt" into(Doubt);
        "Result in dry mode." simulate "simulate" data;
        "A call with the same arguments as an effect that was done before in the session: a person is asked, or it runs." repeat "repeat" word(Repeat);
        "Another tool follows, with no model turn between." then "then" into(Then);
        "On success: the mode in which its caller is next. A text that is empty leaves it as it is, and so does a caller that has no modes." mode "mode" text;
        "Judges each result, and the call may be made again; of `unsafe` tools the arguments, before the call. `rounds` is how often in a row it may be sent back." reflect "reflect" into(Reflect);
        "How call and result look in the context." render "render" into(Render);
        "Of one attempt." timeout "timeout" span;
        "Further attempts at most." retry "retry" whole;
        "At once, per process." parallel "parallel" whole;
        "Replaces one of an imported file." overrides "override" flag;
    }
}

section! {
    /// An artifact that a command makes.
    Save = "Save" short(name: text) {
        "Its name, a path below one folder." name "name" text;
        "Its media type: `application/pdf`." media "media" text;
    }
}

section! {
    /// A request.
    Http = "Http" {
        "Values put into path or query are percent-encoded; `| raw` says otherwise." url "url" text;
        "Method." method "method" word(Verb);
        "`none` is left out." query "query" map_data;
        "`none` is left out." query_text "query" text;
        "Headers." header "headers" map_text;
        "JSON body." json "json" data;
        "Form body." form "form" map_data;
        "Body: the artifact of this name." file "file" text;
        "Carries the effect id of `idempotent` tools." key_header "key_header" text;
        "Stores the body as an artifact of this name; the result is the name." save "save" text;
        "What a status means." outcome "outcomes" map_word(HttpOutcome);
        "How often it is sent at most: `5/s`, `100/min`. All tools and sessions of a process that ask one host at one rate share a limiter." rate "rate" text;
    }
}

section! {
    /// A precondition.
    Requires = "Requires" short(that: text) {
        "Must hold." that "that" text;
        "What the model is told." otherwise "else" text;
    }
}

section! {
    /// An approval.
    Approve = "Approve" short(when: text) {
        "Whether it is wanted." when "when" text;
        "A person, or `user`." by "by" text;
        "The question." ask "ask" text;
        "Parameters that are artifacts, shown with it." show "show" texts;
        "Arguments that the approver may change." edit "edit" texts;
        "How long it waits." timeout "timeout" span;
        "What happens then: or the next in line, who is asked." on_timeout "on_timeout" word(Silent);
        "What happens then: or the next in line, who is asked." next "on_timeout" into(Approve);
    }
}

section! {
    /// A way out of doubt.
    Doubt = "Doubt" short(else: word DoubtWord) {
        "A `pure` or `read` tool that finds out. It is tried again as its own `retry` says." probe "probe" text;
        "Its arguments." arg "args" map_data;
        "Over `result`: it happened." done "done" text;
        "When `done` is false." otherwise "else" word(ProbeElse);
        "Who is asked, where a probe has not settled it: people, `user` or `any`. One answer is enough." by "by" into(Names);
    }
}

section! {
    /// An entry of `on_error`.
    OnError = "OnError" {
        "State writes." set "set" map_data;
        "What the model sees." result "result" text;
        "A tool that follows." then "then" into(Then);
    }
}

section! {
    /// A tool that follows.
    Then = "Then" short(tool: text) {
        "Which." tool "tool" text;
        "Its arguments." arg "args" map_data;
    }
}

section! {
    /// A wait.
    Wait = "Wait" {
        "For an event." event "event" text;
        "Fields that must be equal, each a value of its declared type." matching "match" map_data;
        "With `event`: in addition. Alone: over state." when "when" text;
        "A span of time." time "time" span;
        "A date and time." until "until" text;
        "Those forked here." branches "branches" into(Count);
        "Commits of this branch." ticks "ticks" whole;
        "One of several." any "any" list(Wait);
        "All of several." all "all" list(Wait);
        "How long at most." timeout "timeout" span;
        "The result instead." on_timeout "on_timeout" text;
    }
}

section! {
    /// The form of calls and results in a context.
    Render = "Render" {
        "Instead of the call." call "call" text;
        "Instead of the result." result "result" text;
        "How many of the agent's newest exchanges show it whole, at least. What is older goes in chunks, so that prefixes stay the same." horizon "horizon" into(Horizon);
        "What becomes of it then: `drop` leaves call and result out, `stub` replaces the result, `summary` lets a model sum the results up, `elide` leaves arguments out alone." beyond "beyond" word(Beyond);
        "The text instead of the result." stub "stub" text;
        "Arguments that are `...` then." elide "elide" texts;
        "Writes the summary." model "model" text;
        "Larger results become artifacts: the call gets their beginning and a reference. Results of agents and people have 16KiB." spill "spill" text;
    }
}

section! {
    /// A horizon.
    Horizon = "Horizon" short(own: whole) {
        "Counts the exchanges with this tool alone." own "own" whole;
    }
}
