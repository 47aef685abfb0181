//! What an adopting commit holds: the agents and calls of a branch as facts. **Stored**, like all of [`super`].
//!
//! The fold has the line alone, so what an adopted agent has come to must be in it. It is told in facts and not as the
//! snapshot's own structs: a snapshot may get another field in any version of this program, and an old adoption then
//! says nothing of it, which is the same as for an agent that never had to do with it. A fact is left out where it
//! would say what is so of a newborn agent or call.

use super::{Kind, Watermark};
use crate::ids::{Body, Digest, Id, Line, Name, Path, Time};
use crate::interaction::{Artifact, Call, Cause, End, How, Write};
use serde::{Deserialize, Serialize};

/// What an adopting commit took over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adoption {
    /// The branch that was chosen.
    pub branch: Id,
    /// Its line up to which it was adopted.
    pub at: Line,
    /// The agents of its scope as they were there; their stacks are chains that lead into it.
    pub agents: Vec<AdoptedAgent>,
    /// Calls that were open there.
    pub calls: Vec<AdoptedCall>,
    /// State that it wrote.
    pub cells: Vec<AdoptedCell>,
    /// Versions of artifacts that it added, oldest first.
    pub artifacts: Vec<Artifact>,
    /// Boundaries of rendering of its agents.
    pub watermarks: Vec<Watermark>,
}

/// An agent of an adopted branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdoptedAgent {
    /// Its id.
    pub id: Id,
    /// Its name in the definition.
    pub def: Name,
    /// Its kind.
    pub kind: Kind,
    /// Birth numbers from the root down.
    pub path: Path,
    /// What else is so of it.
    pub facts: Vec<AgentFact>,
}

/// Something that is so of an adopted agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AgentFact {
    /// Who started it.
    Parent(Id),
    /// How many it started.
    Births(u32),
    /// The name its caller gave it.
    Named(Name),
    /// A step is owed to it. Of an agent with open calls this is never said: its calls are owed.
    Owes,
    /// The call it works on.
    Serving(Id),
    /// Calls of its exchange that are still open.
    Open(u32),
    /// Those of them that have begun.
    Running(u32),
    /// Exchanges closed so far.
    Exchanges(u32),
    /// A call of its parent that waits for it, behind those told before.
    Queued(Id),
    /// A child to be continued, by the key under which it is.
    Child(Name, Id),
    /// Arguments of the call it serves.
    Args(Body),
    /// The newest message.
    Message(Body),
    /// A message since its last final `Finished`, behind those told before.
    Unanswered(Body),
    /// The text of its newest assistant message of this answer.
    Said(Body),
    /// Its last draft or answer.
    Answer(Body),
    /// Its last `Finished`.
    Ended(End, Cause),
    /// The line of its last push, and how many interactions lie on its stack.
    Stack(Line, u32),
    /// Its mode.
    Mode(Name),
    /// Of a routed agent: decisions taken since the answer began.
    Routes(u32),
    /// A member that was chosen and has not begun, behind those told before.
    Pending(Name),
    /// Who acted last, how it ended and what it gave.
    Acted(Name, How, Option<Body>),
    /// Refusals in a row.
    Refused(u32),
    /// So much was counted of it alone.
    Count(Counter, u64),
    /// So much was counted of it and all it started, since that began.
    CountBelow(Period, Counter, u64),
    /// When that began.
    Began(Period, Time),
    /// How much above a limit a person allowed, by the name of the question.
    More(Period, Name, u64),
    /// Digest of tool, arguments and result of the last exchanges, and how often it came.
    Same(Digest, u32),
    /// A limit was reached and one last model call with tools off was asked for.
    LastCall,
    /// It was asked for because of a limit.
    Limited,
    /// The last line that moved it or one of those that it started.
    Moved(Line),
    /// The moment from which the clock of its answer would have stood as long as it did: nothing of it is out.
    Stood(i64),
    /// `calls.NAME`.
    Calls {
        /// The name.
        name: Name,
        /// Ended well.
        ok: u32,
        /// Ended otherwise.
        failed: u32,
        /// Arguments of the last that ended well.
        args: Option<Body>,
        /// Its result as the model saw it.
        result: Option<Body>,
    },
    /// Of a routed agent: why the last of the refusals in a row.
    Why(Body),
    /// Its state of a graph, its task at work.
    At(Name),
    /// A state of a graph that was entered: what was said in it, which role was chosen last, the line that entered it.
    Place(Name, u32, Option<Name>, Line),
    /// Nothing was said in the state since its exits were looked at.
    Settled,
    /// Who ended, or whose task, and was not followed by a decision.
    Over(Name),
    /// A task that is to be done, behind those told before, with the message that asked for it.
    Goal(Name, Option<Body>),
    /// A task that was done.
    TaskDone(Name),
    /// What a tool that runs ahead of every turn gave for the newest message.
    Before(Name, Option<Body>),
    /// These tools were called for it.
    Prepared,
    /// A message that state was not filled from yet, behind those told before.
    Unread(Body),
    /// What was said last in a state of a graph was not looked at for state entries yet.
    SaidUnread,
    /// How often a member of a routed agent said something.
    Heard(u32),
    /// What had been said when the summary of this policy was written last, or tried.
    Summed(Name, u32),
    /// The state in which its net is.
    State(Name),
    /// What it called last gave nothing: the last of these calls, and what was told of it.
    Missed(Name, Option<Body>),
    /// Its newest answer had no call so far.
    Bare,
    /// Exchanges in which it called this tool.
    Used(Name, u32),
    /// Summaries of this policy: what the newest was wanted for, what is covered, the text, and where the last try failed how
    /// many exchanges the agent had then.
    Sums(Name, u32, u32, Option<Body>, Option<u32>),
    /// How large its context is: tokens that its newest own model call sent, bytes since then, bytes behind the newest closed
    /// exchange, the last line in which one closed.
    Weighs(u64, u64, u64, Line),
    /// Bytes of a closed exchange, behind those told before.
    Exchange(u32),
    /// The model call of its newest assistant message.
    Spoke(Id),
    /// The draft of its answer: its text, what gave it, and where it stands.
    Draft(Option<Body>, Cause, DraftStands),
    /// So often in a row calls of this tool were sent back.
    SentBack(Name, u32),
    /// Calls that it made over its life, without those that follow in a chain.
    Called(u32),
}

/// Where an adopted draft stands.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DraftStands {
    /// It is judged.
    Open,
    /// Nothing is said against it.
    Accepted,
    /// It is to be revised, and the model was not asked yet.
    Revise,
    /// It was to be revised, and the model went on.
    Criticised,
}

/// What is counted of an agent.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Counter {
    /// Model calls; of the agent alone those of this answer.
    ModelCalls,
    /// Model calls of the instance, failed ones included.
    ModelCallsAll,
    /// Agent calls; of the agent alone those of this answer.
    AgentCalls,
    /// Corrections of this answer.
    Corrections,
    /// Commits in which it moved; of the agent alone those of this answer.
    Ticks,
    /// Rounds of reflection of this answer.
    Rounds,
    /// Model calls since the mode began.
    ModeCalls,
    /// Tokens; only of the agent and all it started.
    Tokens,
    /// Money in millionths of the currency; only of the agent and all it started.
    Micros,
    /// Model calls of the instance that said what is left to be done.
    Restated,
    /// Model calls of the instance that filled state from what was said.
    Extracted,
    /// Model calls of the instance that wrote summaries.
    Summed,
    /// Model calls of the instance that compacted its context.
    Compacted,
}

/// Since when something is counted.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Period {
    /// Since the message that it answers.
    Answer,
    /// Since the call that it serves.
    Task,
    /// Since it was started.
    Session,
}

/// An open call of an adopted branch, or a closed one whose exchange is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdoptedCall {
    /// Whose exchange.
    pub owner: Id,
    /// The call as pushed.
    pub call: Call,
    /// When it was opened; of a wait by as much later as it stood still since.
    pub opened: Time,
    /// Commits on the branch's path when it was opened.
    pub opened_at: u64,
    /// Digest of tool and arguments.
    pub digest: Digest,
    /// What else is so of it.
    pub facts: Vec<CallFact>,
}

/// Something that is so of an adopted call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CallFact {
    /// Arguments that a person edited.
    Edited(Body),
    /// When its effect was due or its wait ends.
    Due(Time),
    /// It has begun.
    Begun,
    /// A person approved it with the arguments in `Edited`.
    Approved,
    /// The agent that chooses among its branches.
    Chooser(Id),
    /// JSON of how its branches ended.
    Ends(Body),
    /// The branch that was chosen and is to be adopted, as it stood at that line.
    Chosen(Id, Line),
    /// Of a wait: this part is over, and this came of it; none: nothing can come.
    Met(u32, Option<Body>),
    /// Of a wait: the key of the events of this part (JSON).
    Awaits(u32, Body),
    /// Who was to approve it and gave the arguments with which it runs.
    Approver(Name),
    /// It is closed: how, and the digest of what the model sees of it.
    Closed(How, Digest),
    /// A write that waits for the exchange to close. Its value is a text of the adopting line, and stood in that line
    /// before.
    Write(Write, Option<Line>),
    /// A version of an artifact that waits.
    Artifact(Artifact),
    /// The mode in which its caller is to be when the exchange closes.
    Mode(Name),
    /// What the model sees of what it gave.
    Gave(Body),
}

/// A state entry that an adopted branch wrote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdoptedCell {
    /// The instance that declares it.
    pub scope: Id,
    /// The entry.
    pub name: Name,
    /// What became of it; nothing: it was unset.
    pub facts: Vec<CellFact>,
}

/// Something that is so of an adopted state entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CellFact {
    /// It has this value, a text of the adopting line, and was written by that line: whoever erases a text there finds
    /// here where its value stands again.
    Set(Body, Line),
    /// It becomes unset then.
    Expires(Time),
}
