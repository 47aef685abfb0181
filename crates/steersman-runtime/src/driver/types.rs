//! Input and output of the driver.

use super::budget::Bill;
use super::parts::{Node, Seat};
use crate::artifact::Artifacts;
use crate::bind::ManifestHash;
use crate::budgets::Shares;
use crate::engine::{Engine, EngineError};
use crate::inbox::Message;
use crate::limiter::{Ask, Ended, Limiter, Refused};
use crate::load::Loaded;
use crate::model::{Model, ModelCall};
use crate::past::{Absent, Past};
use crate::servers::Listed;
use crate::session::Fate;
use crate::step::Let;
use crate::store::{Batch, BoxedEvent, InboxMessage, Scope, StoreError};
use crate::toolset::{Question, StepEnd, ToolRun, Toolset};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use steersman_machine::network::Network;
use steersman_machine::network::manifest::Manifest;
use steersman_machine::stored::codec::Hash;
use steersman_machine::stored::commit::LogLine;
use steersman_machine::stored::ids::{Id, Line, Name, Time};
use steersman_machine::stored::interaction::Class;
use steersman_machine::stored::outcome::{Answer, Failure};
use steersman_machine::view::mapping::{Fault, Raw};

/// Something that happened outside of the session.
#[derive(Clone)]
pub(crate) enum Event {
    /// An attempt ended.
    Ended {
        effect: Id,
        attempt: u32,
        came: Came,
    },
    /// An attempt asks to begin a step, to wait, or to ask a person.
    Step {
        effect: Id,
        attempt: u32,
        name: Name,
        asks: Asks,
    },
    /// A step of an attempt ended: JSON of its result, or its error.
    Stepped {
        effect: Id,
        attempt: u32,
        name: Name,
        end: StepEnd,
    },
    /// The slot or the turn that an effect waited for: the executor holds it under the effect's name, or will not get it soon.
    Permit {
        effect: Id,
        turn: Result<(), Refused>,
    },
    /// The short delay before another attempt is over.
    Again { effect: Id, attempt: u32 },
    /// The place of a held model call answers, or this call is the one that tries the place.
    Place(Id),
    /// Servers listed their tools.
    Listed(Vec<Listed>),
    /// Something may be due.
    Time,
    /// The inbox may hold new messages.
    Look,
    /// A session that stops after each line may go on.
    Go(Let),
    /// Stop in an orderly way.
    Stop,
}

/// The end of an attempt.
#[derive(Clone)]
pub(crate) enum Came {
    Model(Box<Result<Answer, Failure>>),
    Tool(Raw),
    /// A tool that waits, or that was let go between two steps.
    Parked,
    /// A probe for this effect in doubt.
    Probe(Id, Raw),
    /// A notification of a person.
    Reach(Raw),
    /// A score of a node of a search; the effect is the search.
    Judge(Node, Raw),
}

/// A request of an attempt inside of its call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// To begin a step.
    Begin,
    /// To wait for this many milliseconds.
    Wait(u64),
    /// To ask a person.
    Person(Box<Question>),
}

/// The answer to an attempt that asked for a step or a wait, or that told the end of a step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    /// The step begins now.
    Begin,
    /// An earlier attempt recorded this end of the step.
    Ended(StepEnd),
    /// The wait is over, the end of the step is on disk, or the person was not asked.
    Over,
    /// The attempt ends here, and another one goes on.
    Park,
    /// The step does not begin, or its end is not recorded.
    Refused(Fault),
}

/// Everything that a call of the driver may read. It answers the same until the call ends, but for `permits`.
pub(crate) struct Captured<'a> {
    pub(crate) now: Time,
    /// The last line that is on disk.
    pub(crate) durable: Line,
    /// Lines and bytes that may be appended now.
    pub(crate) room: Room,
    /// The past as far as it is in memory.
    pub(crate) past: Arc<Past>,
    /// The same past, for attempts: it reads what is not in memory.
    pub(crate) reader: Arc<Past>,
    /// Answers to what the job at hand wanted.
    pub(crate) answers: Answers,
    pub(crate) permits: &'a dyn Permits,
    pub(crate) engine: &'a Engine,
}

/// Lines and bytes that the session may append before others reach the disk.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Room {
    pub(crate) lines: u64,
    pub(crate) bytes: usize,
    /// Nothing is on its way to the disk, so a batch of any size may be appended.
    pub(crate) idle: bool,
}

/// Something that a job needs and that is not in memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Want {
    Absent(Absent),
    /// The snapshot of the line's branch after the line.
    Snapshot(Line),
    /// The same, to drive the branch: the interactions that its agents read next are read with it.
    Branch(Line),
    /// The hash of a stored line.
    Hash(Line),
    /// A test if a line exists.
    There(Line),
    /// This line is on disk.
    Durable(Line),
    /// All lines from this one on.
    Since(Line),
    /// The messages of the inbox.
    Inbox,
    /// Events in the box of the store, by name and key.
    Box(Name, Arc<str>),
    /// The network of a stored definition, completed with a manifest.
    Network(Hash, Option<Hash>),
    Manifest(Hash),
    /// Put a message into the session's own inbox: the only want that changes something. Its id is the same each time that the job is
    /// done, so that one message lies there even if a crash comes before the line of the job.
    Put(Name),
}

impl Want {
    pub(crate) fn network(source: Hash, manifest: Option<ManifestHash>) -> Self {
        Self::Network(source, manifest.map(|hash| hash.0))
    }
}

/// The answer to a [`Want`].
pub(crate) enum Answered {
    Snapshot(Box<Loaded>),
    Hash(Hash),
    There(bool),
    Since(Vec<Arc<LogLine>>),
    Inbox(u64, Vec<InboxMessage>),
    Box(Vec<BoxedEvent>),
    Network(Result<Arc<Network>, String>),
    Manifest(Manifest),
    /// The reason why the inbox does not take the message.
    Put(Result<(), String>),
}

/// Answers to wants, and what is still wanted.
#[derive(Default)]
pub(crate) struct Answers {
    pub(crate) known: BTreeMap<Want, Answered>,
    pub(crate) wanted: BTreeMap<Want, Option<Box<Message>>>,
    /// Everything that the job at hand wanted so far.
    pub(crate) asked: BTreeSet<Want>,
}

/// Slots, turns and seats, which the executor holds under the names of effects. A job that is not done does not give back what it
/// took, so each method does nothing the second time.
pub(crate) trait Permits {
    /// Takes a slot of the tool for an effect, unless it holds one. Returns false if none is free.
    fn slot(&self, effect: Id, network: &Network, tool: &Name) -> bool;
    /// Returns true if the tool has a free slot.
    fn is_free(&self, network: &Network, tool: &Name) -> bool;
    /// Returns true if an effect holds a turn at its place.
    fn has_turn(&self, effect: Id) -> bool;
    /// Takes the slot or turn that came for an effect.
    fn accept(&self, effect: Id);
    /// Gives back the slot or turn that came for an effect.
    fn refuse(&self, effect: Id);
    /// Gives back the slot of an effect that has not begun.
    fn give_slot(&self, effect: Id);
    /// Gives back the turn of an effect that has not begun.
    fn give_turn(&self, effect: Id);
    /// Gives back what an attempt of a tool held, and tells its place how it ended.
    fn ended(&self, effect: Id, attempt: u32, ended: Ended);
    /// Takes a seat at the place of a held model call, unless it has one. Returns true if it is its turn now.
    fn seat(&self, seat: Seat) -> bool;
    /// Takes a seat at the place of a held model call, unless it has one.
    fn sit(&self, seat: Seat);
    /// Gives up the seats of all calls but these.
    fn keep_seats(&self, keep: &dyn Fn(Id) -> bool);
    /// Gives up the seat of a call.
    fn leave_seat(&self, effect: Id);
    /// Returns true if a call has a seat.
    fn is_seated(&self, effect: Id) -> bool;
    /// Returns the text that the running attempt of a model has shown so far, and the number of bytes that came.
    fn streamed(&self, effect: Id, attempt: u32) -> (Arc<str>, u64);
    /// Returns true if a sender waits for the fate of a message.
    fn is_awaited(&self, message: &Name) -> bool;
}

/// Reason why a job is not done.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It wants something that is not in memory ([`Answers::wanted`]).
    Wants,
    /// Its line has to wait until others are on disk.
    Room,
    /// It may want something, so it is done again on a copy. Nothing was changed yet.
    Copy,
    /// The session cannot be driven.
    Fault(EngineError),
}

impl From<EngineError> for Stop {
    fn from(error: EngineError) -> Self {
        Self::Fault(error)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

/// Everything that follows from events.
#[derive(Default)]
pub(crate) struct Turned {
    /// Batches to append, in order, each with its last line.
    pub(crate) batches: Vec<(Line, Batch)>,
    /// Contents that the job at hand made and no batch has yet. Empty between two jobs.
    pub(crate) blobs: Vec<(Hash, Arc<[u8]>)>,
    pub(crate) orders: Vec<Do>,
    pub(crate) told: Vec<Say>,
}

/// An order to the executor. Everything that it depends on is on disk.
pub(crate) enum Do {
    Begin(Box<Attempt>),
    /// Cancel a running attempt. Its end is still reported.
    Cut {
        effect: Id,
        attempt: u32,
    },
    /// Tell an attempt about its step.
    Step {
        effect: Id,
        attempt: u32,
        name: Name,
        told: Told,
    },
    /// Report [`Event::Again`] after this many milliseconds.
    Alarm {
        effect: Id,
        attempt: u32,
        millis: u64,
    },
    /// Cancel the tools that judge for a search.
    CutJudges(Id),
    /// Wait for a slot of the tool.
    Slot {
        effect: Id,
        network: Arc<Network>,
        tool: Name,
    },
    /// Wait for a turn at the place of a tool.
    Turn {
        effect: Id,
        limiter: Arc<Limiter>,
        ask: Ask,
    },
    /// Ask servers for their tools, on behalf of a tenant and subject.
    List(Vec<Name>, Scope),
}

/// Something to tell those who wait or follow.
pub(crate) enum Say {
    /// The fate of a message. Kept for a sender that asks a moment late.
    Receipt(Name, Fate),
    /// A message waits for this; told to a sender that waits now.
    Waits(Name, String),
    /// The pieces that an attempt of a model streamed are no longer valid.
    Withdrawn {
        effect: Id,
        attempt: u32,
        agent: Id,
        branch: Id,
    },
    /// The session is at work.
    Busy,
}

/// One attempt to run.
pub(crate) struct Attempt {
    pub(crate) effect: Id,
    /// Number of the attempt.
    pub(crate) number: u32,
    pub(crate) agent: Id,
    pub(crate) branch: Id,
    pub(crate) task: Task,
}

/// The work of an attempt.
pub(crate) enum Task {
    Model(Box<AskModel>),
    Tool(Box<RunTool>),
    Aside(Box<RunAside>),
}

/// A call of a model.
pub(crate) struct AskModel {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) call: ModelCall,
    /// The limiter of the model's place, and the request to it.
    pub(crate) limiter: Arc<Limiter>,
    pub(crate) ask: Ask,
    /// The budgets over sessions that count the call, and what it costs.
    pub(crate) shares: Shares,
    pub(crate) bill: Bill,
    /// Its text is shown to those who follow the session.
    pub(crate) is_shown: bool,
    /// Finds the parts of its answer that a schema describes.
    pub(crate) judged: Option<Judged>,
    /// Place for the milliseconds for which its limiter keeps it back, if somebody wants to know.
    pub(crate) waited: Option<Arc<AtomicU64>>,
    /// The contents of the files of its request, if there are any.
    pub(crate) files: Option<Artifacts>,
}

/// A call of a tool.
pub(crate) struct RunTool {
    pub(crate) toolset: Option<Arc<dyn Toolset>>,
    pub(crate) run: ToolRun,
    pub(crate) scope: Arc<super::transport::TransportScope>,
    /// Milliseconds that it may take.
    pub(crate) timeout: u64,
    /// A reason not to run it.
    pub(crate) locked: Option<Fault>,
}

/// A tool that the driver runs for itself.
pub(crate) struct RunAside {
    pub(crate) kind: Aside,
    pub(crate) class: Class,
    /// Its input and the milliseconds that it may take, or the reason why it cannot run.
    pub(crate) run: Result<(ToolRun, u64), Fault>,
    pub(crate) toolset: Option<Arc<dyn Toolset>>,
    pub(crate) place: Option<(Arc<Limiter>, Ask)>,
}

/// The kinds of tools that the driver runs for itself.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Aside {
    /// A probe for this effect in doubt.
    Probe(Id),
    /// A notification of a person.
    Reach,
    /// A judge of a node of a search.
    Judge(Node),
}

/// Finds the parts of an answer that a JSON Schema describes: calls by their index, `None` for the text.
pub(crate) type Judged = Arc<dyn Fn(&Answer) -> Vec<(Option<usize>, Arc<str>)> + Send + Sync>;
