//! Words that keys may have as values.

use super::{Json, words};

words! {
    /// The fate of old results.
    Beyond { Drop = "drop", Stub = "stub", Summary = "summary", Elide = "elide" }
}

words! {
    /// The way in which tools are told and called.
    CallStyle { Auto = "auto", Native = "native", Structured = "structured", Text = "text" }
}

words! {
    /// The effect class.
    Class { Pure = "pure", Read = "read", Idempotent = "idempotent", Unsafe = "unsafe" }
}

words! {
    /// Way out of doubt in one word.
    DoubtWord { Ask = "ask", Fail = "fail" }
}

words! {
    /// The calls that a budget counts.
    Counted { Network = "network", Key = "key" }
}

words! {
    /// Effects of tools on branches.
    Effects { Dry = "dry", Live = "live" }
}

words! {
    /// Scope of an agent that is called again.
    Enter { Keep = "keep", Fresh = "fresh" }
}

words! {
    /// A kind of files that a model takes.
    FileKind { Image = "image", Pdf = "pdf" }
}

words! {
    /// The step that follows a task that is done.
    GoOn { Request = "request", ByModel = "by_model", None = "none" }
}

words! {
    /// The meaning of a status.
    HttpOutcome { Done = "done", NotPerformed = "not_performed", Unknown = "unknown" }
}

words! {
    /// The method of a search.
    Method { BestOf = "best_of", Beam = "beam", Rollouts = "rollouts", Mcts = "mcts" }
}

words! {
    /// The reaction when the user wants something else.
    OnChange { Switch = "switch", Ask = "ask", FinishFirst = "finish_first" }
}

words! {
    /// The reaction at a limit.
    OnLimit { Answer = "answer", Fail = "fail", Finish = "finish", Ask = "ask" }
}

words! {
    /// The reaction of a model call that does not fit into a budget.
    OnSpent { Wait = "wait", Fail = "fail" }
}

words! {
    /// The choice of the next speaker.
    Order { InTurn = "in_turn", Random = "random", ByModel = "by_model" }
}

words! {
    /// A part of a context.
    Part { System = "system", Tools = "tools", History = "history", Now = "now" }
}

words! {
    /// The period of a budget.
    Per { Hour = "hour", Day = "day", Week = "week", Month = "month" }
}

words! {
    /// Period of a limit whose count starts again with each answer.
    PerAnswer { Answer = "answer" }
}

words! {
    /// The period of a limit.
    Period { Answer = "answer", Task = "task", Session = "session" }
}

words! {
    /// Type of a config value.
    Plain { String = "string", Integer = "integer", Number = "number", Boolean = "boolean" }
}

words! {
    /// The reaction when a probe does not find the effect.
    ProbeElse { NotPerformed = "not_performed", Ask = "ask", Fail = "fail" }
}

words! {
    /// Data that is stored in addition to the log.
    Recorded { Raw = "raw", Requests = "requests" }
}

words! {
    /// The way in which several writes of one exchange come together.
    Reduce { Last = "last", Append = "append", Sum = "sum", Max = "max", Merge = "merge" }
}

words! {
    /// Handling of a changed list of tools.
    Refresh { Pinned = "pinned", Follow = "follow" }
}

words! {
    /// A tool by which the agent of a task gives the floor back.
    Release { Done = "done", NeedHelp = "need_help" }
}

words! {
    /// Handling of a call that repeats an earlier effect.
    Repeat { Ask = "ask", Allow = "allow" }
}

words! {
    /// Moment at which counters and opening of a state start again.
    Reset { OnEntry = "on_entry", Never = "never" }
}

words! {
    /// The decision on a doubt.
    Resolve { Done = "done", NotPerformed = "not_performed", Fail = "fail" }
}

words! {
    /// The run that a test must equal.
    SameAs { Undisturbed = "undisturbed" }
}

words! {
    /// The part of the others' work that an agent sees.
    Sees { Own = "own", Shared = "shared", SinceLastSpoke = "since_last_spoke", SinceEntry = "since_entry", Summary = "summary", Relevant = "relevant" }
}

words! {
    /// Class of the tools of a server.
    ServerClass { Pure = "pure", Read = "read", Idempotent = "idempotent", Unsafe = "unsafe", Annotations = "annotations" }
}

words! {
    /// The part of its caller's work that a started agent sees.
    SharedView { Own = "own", Shared = "shared" }
}

words! {
    /// The one who signs in at a server.
    SignsIn { Person = "person", Program = "program" }
}

words! {
    /// Decision in the place of an approver who does not answer.
    Silent { Reject = "reject", Approve = "approve" }
}

words! {
    /// The way in which an agent ends.
    Turns { Dialogue = "dialogue", Task = "task", Once = "once" }
}

words! {
    /// Method of a request.
    Verb { Get = "GET", Post = "POST", Put = "PUT", Patch = "PATCH", Delete = "DELETE", Head = "HEAD" }
}
