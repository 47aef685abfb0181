//! Ledger entries. **Stored**, like all of [`super`].

use super::{About, Hold, Probing, Reaching, Recorded, Release, Stepped, Why};
use crate::stored::by::{By, Decider};
use crate::stored::ids::{Body, Digest, Id, Line, Name, Time};
use crate::stored::interaction::{Class, Doubtful};
use serde::{Deserialize, Serialize};

/// Entries about the world. They belong to no branch and nothing rewinds them. Append-only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LedgerEntry {
    /// A new owner. This entry is in the first line that the owner writes.
    Claimed {
        /// Number of the owner; grows by one with each owner.
        epoch: u64,
        /// Random number that makes ids unique after a restored backup.
        mark: u64,
        /// Name of the process: host and process id, or the name in its options.
        owner: Name,
        /// Version of its program.
        build: Name,
        /// Revision of the stored forms that it writes ([`codec::REVISION`](crate::stored::codec::REVISION)).
        revision: u16,
    },
    /// An inbox message was accepted.
    Accepted {
        /// Id of the message.
        message: Name,
        /// The sender. `None` for a message that no person or program sent: an agent's `send`, an event.
        by: Option<By>,
        /// Trace context of the request, a W3C `traceparent` of at most 55 bytes.
        parent: Option<Name>,
    },
    /// The owner reserved this much of the budget before using it.
    Escrow {
        /// Number of tokens that were reserved.
        tokens: u64,
        /// Reserved money in millionths of the currency.
        micros: u64,
    },
    /// A model call was paid.
    Spend {
        /// Effect of the model call.
        effect: Id,
        /// Sum of input and output tokens.
        tokens: u64,
        /// Price in millionths of the currency.
        micros: u64,
    },
    /// The reservation ends, and this much of what is left of it counts as spent: nothing if the owner gives the rest back, all
    /// of it if the owner died.
    Settle {
        /// Number of tokens that count as spent.
        tokens: u64,
        /// Money that counts as spent, in millionths of the currency.
        micros: u64,
    },
    /// A hold on an effect begins: the effect does not run, or does not close.
    Hold(Hold),
    /// A hold of an effect ended.
    Released {
        /// The effect that was held.
        effect: Id,
        /// Kind of the hold.
        why: Why,
        /// The way in which the hold ended.
        how: Release,
        /// The subject of the hold, as in [`Hold::about`].
        about: Option<About>,
        /// The party that ended it.
        by: Decider,
        /// The reason, the edited arguments, the sealed value, or the fields of an event or answer, if any.
        body: Option<Body>,
    },
    /// An attempt may begin from here on.
    Started {
        /// The effect that begins.
        effect: Id,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// Epoch of the owner that begins it.
        epoch: u64,
        /// Key of the repeat guard: digest of tool name and arguments.
        digest: Digest,
        /// The class that the tool had when the attempt began. It stays the class of the attempt, even if a later definition
        /// changes the tool's class.
        class: Class,
    },
    /// The effect happened.
    Done {
        /// The effect that happened.
        effect: Id,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// The mapped outcome as JSON, if no commit of this line takes it.
        kept: Option<Body>,
    },
    /// The effect is proved not to have happened.
    NotPerformed {
        /// The effect that did not happen.
        effect: Id,
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// It is unknown whether the effect happened.
    Unknown {
        /// The effect in doubt.
        effect: Id,
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// An outcome came after its doubt was resolved, or for an effect that is not in the log.
    Late {
        /// The effect of the late outcome.
        effect: Id,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// The outcome in words.
        body: Option<Body>,
    },
    /// Another attempt is due later, for example after a long `Retry-After`.
    Again {
        /// The effect of the next attempt.
        effect: Id,
        /// The moment at which the attempt is due.
        at: Time,
    },
    /// A branch was opened. Its first line may come later.
    Opened {
        /// Id of the new branch.
        branch: Id,
        /// The branch that was forked.
        from: Id,
        /// The commit of that branch at which it was forked.
        at: Line,
    },
    /// The branch of this id ended: the top agent of its scope rests, or the branch cannot go on (a leaf).
    Ended(Id),
    /// The branch is superseded after one of its lines: it gets no further tick, unless it becomes the current one again.
    Superseded {
        /// The superseded branch.
        branch: Id,
        /// The last line of the branch that is still valid.
        after: Line,
    },
    /// This branch is the current one from now on. Requests that name no branch go to it.
    Current(Id),
    /// A branch was adopted up to a line.
    Adopted {
        /// The adopted branch.
        branch: Id,
        /// The last line of it that was adopted.
        at: Line,
    },
    /// An effect of superseded lines, listed for the person who rewinds.
    Listed(Id),
    /// In dry mode: this effect would have needed an approval.
    WouldAsk(Id),
    /// A person paused or resumed the session.
    Paused {
        /// True if the session is paused.
        paused: bool,
        /// The person who gave the order.
        by: By,
    },
    /// A person keeps effects of a tool from beginning (true), or lets them begin again (false). The order applies to all
    /// branches until it is taken back.
    Barred {
        /// Name of the tool. `None` means every tool that is `idempotent` or `unsafe`.
        tool: Option<Name>,
        /// True if the effects are kept from beginning.
        barred: bool,
        /// The person who gave the order.
        by: By,
    },
    /// The request of an inbox message was refused. The process that sent the message can read the reason here.
    Refused {
        /// Id of the inbox message.
        message: Name,
        /// The reason, in words for people.
        why: Body,
    },
    /// The tool of a person's `reach` notifies the person of a question or a held effect. Each person who may answer is
    /// notified once.
    Reach {
        /// Id of the notification, made by the first of these lines. It is the idempotency key of every attempt.
        effect: Id,
        /// The question or the held effect.
        of: Id,
        /// The role that is notified, one of those in [`Hold::by`].
        role: Name,
        /// Progress of the notification.
        what: Reaching,
    },
    /// A step of a search over branches ([`crate::search`]).
    Search {
        /// Id of the search. For the search of an agent: the effect of the step that the search replaces. For the search of a
        /// person: the branch at whose first commit the search begins.
        search: Id,
        /// The step of the search.
        what: Searching,
    },
    /// A person accepted the store of this session, so the session may be driven. Effects that happened but are in no line of
    /// this log remain unknown.
    StoreAccepted {
        /// The moment of acceptance.
        at: Time,
        /// The reason why the store was in doubt.
        was: Doubtful,
    },
    /// A tool finds out whether an effect in doubt happened. The probe is an effect of its own. It changes nothing outside, so
    /// the next owner may begin it again.
    Probe {
        /// Id of the probe, made by the first of these lines. It is the idempotency key of every attempt.
        effect: Id,
        /// The effect in doubt.
        of: Id,
        /// Progress of the probe.
        what: Probing,
    },
    /// The session that this one reruns performed this effect, or may have. The repeat guard of this session counts it too.
    Recorded {
        /// Id of the effect in that session.
        effect: Id,
        /// The line of that session that records the state of the effect.
        at: Line,
        /// Digest of tool name and arguments.
        digest: Digest,
        /// The class that the tool had.
        class: Class,
        /// State of the effect in that session.
        how: Recorded,
    },
    /// The place of a model does not answer, and a call of that model is held. The hold of this line names the place.
    Outage {
        /// The effect of the held model call.
        effect: Id,
        /// The moment at which the call began to wait.
        since: Time,
    },
    /// A call may cost more than is left of a limit of the session. A hold asks for the missing amounts, or they were granted.
    /// An amount is zero if it is not limited, or if enough is left. If nothing was granted but the call itself, it did not fit into a
    /// budget that sessions share, and is made all the same.
    More {
        /// The call that may cost this much.
        effect: Id,
        /// Number of tokens; zero if none are asked for.
        tokens: u64,
        /// Money in millionths of the currency; zero if none is asked for.
        micros: u64,
        /// True if the amount was granted.
        granted: bool,
    },
    /// A provider reported impossible numbers for a call. The usage of the call contains the upper bound instead, and that
    /// counts as spent.
    Unbelievable {
        /// The model call.
        effect: Id,
        /// Input tokens as reported.
        input: u64,
        /// Output tokens as reported.
        output: u64,
        /// Price in millionths of the currency, as reported.
        micros: Option<u64>,
    },
    /// A tool ran a step of its own work. Effect and name identify a step in all attempts: a later attempt gets the recorded
    /// result of a finished step.
    Step {
        /// The effect of the tool.
        effect: Id,
        /// Number of the attempt that ran the step, from 1.
        attempt: u32,
        /// Number among the steps and waits of the call, from 1.
        nth: u32,
        /// Name of the step, unique in its call.
        name: Name,
        /// Progress of the step.
        what: Stepped,
    },
}

/// A step of a search over branches. The search tree follows from these entries and the branches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Searching {
    /// The search begins at a commit, which is the root of its tree.
    Began {
        /// The agent that answers with the result. `None` means that a person started the search.
        agent: Option<Id>,
        /// The branch of the root.
        branch: Id,
        /// The commit of the root; `Line::NONE` means the commit of this line.
        at: Line,
        /// JSON of the plan ([`crate::network::search::Plan`]), with its seed.
        plan: Body,
    },
    /// A branch of the search is opened.
    Tried {
        /// Id of the new branch.
        branch: Id,
        /// Number of the branch, from 1. A replay of the search gives the same numbers.
        number: u32,
    },
    /// A branch is opened on which an agent judges the state of another branch.
    Judged {
        /// Id of the new branch.
        branch: Id,
        /// The branch that is judged.
        of: Id,
        /// The commit of that branch that is judged.
        at: Line,
    },
    /// A branch reached the end of a block. This point is a node of the tree.
    Stood {
        /// The branch of the node.
        branch: Id,
        /// The commit of the node.
        at: Line,
        /// True if the branch ended there.
        over: bool,
        /// Model calls of the block.
        calls: u64,
        /// Tokens of the block.
        tokens: u64,
        /// Money of the block, in millionths of the currency.
        micros: u64,
    },
    /// A node of the tree was judged.
    Scored {
        /// The branch of the node.
        branch: Id,
        /// The commit of the node.
        at: Line,
        /// The score, a JSON number. `None` means that the judgement could not be used.
        value: Option<Name>,
        /// The reason why it could not be used.
        why: Option<Body>,
    },
    /// The search ended.
    Over {
        /// The branch with the best score, up to this commit. `None` means that no branch won.
        winner: Option<(Id, Line)>,
        /// The reason: `done`, `enough`, `budget`, `session_tokens`, `session_cost`, `stopped`, `cancelled`.
        why: Name,
    },
    /// The search has no usable result, for this reason. An agent then answers without the search; a person gets no branch.
    Without(Body),
}
