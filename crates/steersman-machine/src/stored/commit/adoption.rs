//! Content of an adopting commit: the agents and calls of a branch as facts. **Stored**, like all of [`super`].
//!
//! The fold has only the line, so the state of an adopted agent must be in it. The state is stored as facts and not as the
//! snapshot's own structs, because a snapshot may get new fields in any version of this program. An old adoption has no fact for
//! a new field; then the field has its default. A fact that would only state the default of a new agent or call is left out.

use super::{Kind, Watermark};
use crate::stored::ids::{Body, Digest, Id, Line, Name, Path, Time};
use crate::stored::interaction::{Artifact, Call, Cause, End, How, Write};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The agents, calls and data that an adopting commit took over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adoption {
    /// The branch that was chosen.
    pub branch: Id,
    /// The line of that branch up to which it was adopted.
    pub at: Line,
    /// The agents of the branch's scope at that line. Their stacks are chains that lead into the branch.
    pub agents: Vec<AdoptedAgent>,
    /// Calls that were open at that line.
    pub calls: Vec<AdoptedCall>,
    /// State that the branch wrote.
    pub cells: Vec<AdoptedCell>,
    /// Versions of artifacts that the branch added, oldest first.
    pub artifacts: Vec<Artifact>,
    /// Boundaries of rendering of the adopted agents.
    pub watermarks: Vec<Watermark>,
}

/// An agent of an adopted branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdoptedAgent {
    /// Id of the instance.
    pub id: Id,
    /// Name of the agent in the definition.
    pub def: Name,
    /// Kind of the agent: model-driven or routed.
    pub kind: Kind,
    /// Birth numbers from the root down to this agent.
    pub path: Path,
    /// Everything else that differs from a new agent.
    pub facts: Vec<AgentFact>,
}

/// A fact about an adopted agent. Facts of a list are repeated, in order, for each element.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AgentFact {
    /// The agent that started it.
    Parent(Id),
    /// Number of agents that it started.
    Births(u32),
    /// Name that its caller gave to the instance.
    Named(Name),
    /// The agent owes a step. Never stored for an agent with open calls, which owes nothing until they close.
    Owes,
    /// The call that the agent serves.
    Serving(Id),
    /// Number of open calls of its exchange.
    Open(u32),
    /// Number of these calls that have begun.
    Running(u32),
    /// Number of exchanges that are closed.
    Exchanges(u32),
    /// A call of its parent that waits for it.
    Queued(Id),
    /// A child that further calls continue, with its key among the children.
    Child(Name, Id),
    /// Arguments of the call that it serves; for a root, its first message from outside.
    Args(Body),
    /// The newest message.
    Message(Body),
    /// A message since it last ended a turn or a task.
    Unanswered(Body),
    /// Text of its newest assistant message of this answer.
    Said(Body),
    /// Text of the last `Finished` that ended a turn or a task.
    Answer(Body),
    /// End and cause of that `Finished`.
    Ended(End, Cause),
    /// The line of its last push, and the number of interactions on its stack.
    Stack(Line, u32),
    /// Mode of the agent.
    Mode(Name),
    /// For a routed agent: number of decisions since the answer began.
    Routes(u32),
    /// A member that was chosen and has not begun.
    Pending(Name),
    /// The member that acted last, how its call ended, and its result.
    Acted(Name, How, Option<Body>),
    /// Number of refused answers of the routing model in a row.
    Refused(u32),
    /// A count of the agent alone.
    Count(Counter, u64),
    /// A count of the agent and everything it started, over a period.
    CountBelow(Period, Counter, u64),
    /// Time at which a period began.
    Began(Period, Time),
    /// Amount above a limit that a person allowed in a period, by the name of the question.
    More(Period, Name, u64),
    /// Digest of the last exchange (tools, arguments, results) or choice, and how often it came in a row.
    Same(Digest, u32),
    /// One last model call with tools off was asked for.
    LastCall,
    /// A limit asked for that last call.
    Limited,
    /// The last line that moved the agent or a descendant.
    Moved(Line),
    /// `stood` of [`crate::snapshot::Counters`]. The clock of its answer is stopped, because no effect of the agent is
    /// outstanding.
    Stood(i64),
    /// Counts of a name of `calls`: `calls.NAME`.
    Calls {
        /// The name in `calls`.
        name: Name,
        /// Number of calls that ended well.
        ok: u32,
        /// Number of calls that ended otherwise.
        failed: u32,
        /// Arguments of the last call that ended well.
        args: Option<Body>,
        /// Result of that call, as the model saw it.
        result: Option<Body>,
    },
    /// For a routed agent: reason of the last refusal.
    Why(Body),
    /// The current state of a graph, or the current task.
    At(Name),
    /// A state of a graph that was entered: number of messages in it, the role that was chosen last, the line that entered it.
    Place(Name, u32, Option<Name>, Line),
    /// No message came in the state since it was entered or its exits were last checked.
    Settled,
    /// The task that ended, or the member whose call ended outside of a task, if no decision has followed.
    Over(Name),
    /// A task that is still to be done, with the message that asked for it.
    Goal(Name, Option<Body>),
    /// A task that is done.
    TaskDone(Name),
    /// Result of a tool that runs before every turn, for the newest message. `None` means that the tool failed.
    Before(Name, Option<Body>),
    /// Those tools were called for the newest message.
    Prepared,
    /// An unanswered message that no extraction has read yet.
    Unread(Body),
    /// No extraction has read the last message of a graph's state yet.
    SaidUnread,
    /// For a routed agent: `said` of [`crate::snapshot::Routing`].
    Heard(u32),
    /// The value of `said` when the summary of this policy was last written or tried.
    Summed(Name, u32),
    /// State of the agent's net.
    State(Name),
    /// The last call that failed in this turn, with the text of its result, if no call of the same or a later exchange succeeded.
    Missed(Name, Option<Body>),
    /// Its newest answer has no call so far.
    Bare,
    /// Number of exchanges in which it called this tool.
    Used(Name, u32),
    /// Summaries of this policy, as in [`crate::snapshot::Sum`]: boundary tried, boundary covered, text, and the number of the
    /// agent's exchanges when the last try failed.
    Sums(Name, u32, u32, Option<Body>, Option<u32>),
    /// Size of its context: input tokens of its newest own model call, bytes since then, bytes after the newest closed exchange,
    /// and the last line in which an exchange closed.
    Weighs(u64, u64, u64, Line),
    /// Bytes of a closed exchange.
    Exchange(u32),
    /// The model call of its newest assistant message.
    Spoke(Id),
    /// The draft of its answer: text, origin, and state of its judgement.
    Draft(Option<Body>, Cause, DraftStands),
    /// A tool whose calls were sent back, and how often in a row.
    SentBack(Name, u32),
    /// Highest number that a call of the agent has had. A call that follows in a chain repeats the number of the first call.
    Called(u32),
    /// The line in which its newest turn began, as in [`crate::snapshot::Turn`].
    Turn(Line),
    /// A state of its net, and the number of steps that the state made in this turn.
    Steps(Name, u32),
    /// The end of a call of its state, on which it has not acted: true if it succeeded, code of the failure, and text.
    Gave(bool, Option<Name>, Option<Body>),
    /// The newest closed exchanges, by their numbers, in which it called this tool.
    UsedIn(Name, Vec<u32>),
}

/// State of the judgement of an adopted draft, as in [`crate::snapshot::Stands`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DraftStands {
    /// The draft is being judged.
    Open,
    /// The reviewer has no objection, or its judgement could not be used.
    Accepted,
    /// The draft must be revised, and the model has not answered since.
    Revise,
    /// The draft had to be revised, and the model has answered since.
    Criticised,
}

/// A quantity that is counted for an agent.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Counter {
    /// Model calls. For the agent alone: those of this answer.
    ModelCalls,
    /// Model calls of the instance, failed ones included.
    ModelCallsAll,
    /// Agent calls. For the agent alone: those of this answer.
    AgentCalls,
    /// Corrections of this answer.
    Corrections,
    /// Commits in which the agent moved. For the agent alone: those of this answer.
    Ticks,
    /// Rounds of reflection of this answer.
    Rounds,
    /// Model calls since the mode began.
    ModeCalls,
    /// Tokens; only counted for the agent and everything it started.
    Tokens,
    /// Cost in millionths of the currency; only counted for the agent and everything it started.
    Micros,
    /// Model calls of the instance that said what is left to be done.
    Restated,
    /// Model calls of the instance for extractions.
    Extracted,
    /// Model calls of the instance that wrote summaries.
    Summed,
    /// Model calls of the instance that compacted its context.
    Compacted,
}

/// Period over which something is counted, and for which a limit holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Period {
    /// Since the message that the agent answers.
    Answer,
    /// Since the call that the agent serves.
    Task,
    /// Since the agent was started; for the root this is the session. Only commits on the path of its branch count.
    Session,
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answer => "answer",
            Self::Task => "task",
            Self::Session => "session",
        })
    }
}

/// An open call of an adopted branch, or a closed one whose exchange is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdoptedCall {
    /// The agent that made the call.
    pub owner: Id,
    /// The call as it was pushed.
    pub call: Call,
    /// Time at which the call was opened. A wait is moved by the time in which the branch did not run.
    pub opened: Time,
    /// Number of commits on the branch's path when the call was opened.
    pub opened_at: u64,
    /// Digest of tool and arguments.
    pub digest: Digest,
    /// Everything else that differs from a new call.
    pub facts: Vec<CallFact>,
}

/// A fact about an adopted call. Facts of a list are repeated, in order, for each element.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CallFact {
    /// Arguments that replace the call's, as in `edited` of [`crate::snapshot::OpenCall`].
    Edited(Body),
    /// Time at which its effect was due or its wait ends.
    Due(Time),
    /// The call has begun.
    Begun,
    /// A person approved the call with the arguments in `Edited`.
    Approved,
    /// The agent that chooses among its branches.
    Chooser(Id),
    /// JSON of the ends of its branches.
    Ends(Body),
    /// The chosen branch and the line up to which it is to be adopted.
    Chosen(Id, Line),
    /// For a wait: this part is over, with the JSON of its result. `None` means that it can no longer be met.
    Met(u32, Option<Body>),
    /// For a wait: the key of the events of this part (JSON).
    Awaits(u32, Body),
    /// The approver in whose place a person changed the arguments to those in `Edited`.
    Approver(Name),
    /// The call is closed: how it ended, and the digest of the call together with the result that the model sees.
    Closed(How, Digest),
    /// A write that waits for the exchange to close. Its value is a text of the adopting line. The second field is the line that
    /// held the value on the branch.
    Write(Write, Option<Line>),
    /// A version of an artifact that waits for the exchange to close.
    Artifact(Artifact),
    /// The mode that its caller enters when the exchange closes.
    Mode(Name),
    /// Text of the result that the model sees.
    Gave(Body),
}

/// A state entry that an adopted branch wrote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdoptedCell {
    /// The instance that declares the entry.
    pub scope: Id,
    /// Name of the entry.
    pub name: Name,
    /// Facts about the entry. Empty if the branch unset it.
    pub facts: Vec<CellFact>,
}

/// A fact about an adopted state entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CellFact {
    /// The entry has this value, a text of the adopting line. The line given here wrote it on the branch. An erasure of a text in
    /// that line finds the copy by this fact.
    Set(Body, Line),
    /// The entry becomes unset at this time.
    Expires(Time),
}
