//! Schemas of answers that views make. The views have the data, and the document has these; a test compares both.

#![expect(dead_code, reason = "the document needs the schemas alone")]

use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The state in which a session settled: it goes on only with an input.
#[derive(ToSchema)]
pub(crate) struct Turn {
    /// The session.
    session: String,
    /// The last line on disk.
    line: u64,
    /// The position in the events.
    cursor: String,
    /// The kind of state. It says which of the other fields there are.
    status: TurnStatus,
    /// `answered`: the answer. `limit`: the answer that a limit demanded, if there is one.
    answer: Option<String>,
    /// `answered`: true if the task is over.
    task: Option<bool>,
    /// `answered`: texts that the user heard before the answer.
    before: Option<Vec<String>>,
    /// `asks`, `doubt`, `waits`: everything that is open.
    pending: Option<Vec<Question>>,
    /// `limit`, `failed`: the code.
    code: Option<String>,
    /// `failed`: the reason.
    message: Option<String>,
}

/// The kinds of states in which a session settles.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum TurnStatus {
    /// It answered.
    Answered,
    /// People are asked.
    Asks,
    /// An effect may have happened, and somebody has to say so.
    Doubt,
    /// It waits for events or times.
    Waits,
    /// A limit was reached.
    Limit,
    /// It failed.
    Failed,
    /// A person cancelled it.
    Cancelled,
    /// A person paused it.
    Paused,
}

/// Something that a session waits for.
#[derive(ToSchema)]
pub(crate) struct Question {
    /// The address of an answer: the effect, and the line of the hold.
    id: String,
    /// The session. A turn, which is of one session, leaves it out.
    session: Option<String>,
    /// The name of the definition of the session, where `session` is named.
    network: Option<String>,
    /// The effect that waits.
    effect: String,
    /// The branch of the effect.
    branch: String,
    /// The name of the agent in the definition.
    agent: String,
    /// The kind of the wait.
    kind: QuestionKind,
    /// The roles that may end the wait.
    r#for: Vec<String>,
    /// The people who may end the wait: `user`, people of the definition, `any`. One of them is enough.
    by: Vec<String>,
    /// The tool, if a tool was called.
    tool: Option<String>,
    /// The arguments of the call, without secret ones.
    args: Option<Value>,
    /// The text of the question, or the name of the event.
    text: String,
    /// Answers that may be chosen.
    options: Vec<String>,
    /// Names of artifacts that are shown with it.
    show: Vec<String>,
    /// Arguments that an approver may change.
    edit: Vec<String>,
    /// The reason for the question.
    because: Option<String>,
    /// The time at which the wait ends by itself.
    due: Option<String>,
    /// The person who is asked once `due` has passed.
    next: Option<String>,
    /// The earlier equal effect, which was done or is in doubt.
    repeats: Option<String>,
    /// Effects of the same tool with other arguments, on lines that the branch does not have.
    elsewhere: Option<Vec<Value>>,
    /// The place that does not answer.
    place: Option<String>,
    /// The time at which the session began to wait.
    since: String,
    /// True if no branch waits for the effect any more.
    left: bool,
    /// `doubt`: the parts of the result that a person must give if the effect happened.
    needs: Vec<String>,
    /// `doubt`: the probe that asks whether the effect happened.
    probe: Option<Value>,
}

/// The kinds of waits.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum QuestionKind {
    /// A person decides on a call with exactly these arguments.
    Approval,
    /// A person is asked for a secret.
    Input,
    /// An effect may have happened, and a person has to say whether it did.
    Doubt,
    /// A call may cost more than is left of a limit.
    Budget,
    /// An equal effect was done or given up before.
    Repeat,
    /// An agent asks a person a question.
    Question,
    /// An event from outside is awaited.
    Event,
    /// Only a time is awaited.
    Timer,
    /// A failed attempt is repeated at a time.
    Again,
    /// A person holds the tool.
    Hold,
    /// The place of a model does not answer.
    Outage,
}

/// A list of questions.
#[derive(ToSchema)]
pub(crate) struct QuestionList {
    /// The questions.
    items: Vec<Question>,
}

/// A session in a list.
#[derive(ToSchema)]
pub(crate) struct SessionRow {
    /// The id.
    session: String,
    /// The name of its definition.
    network: String,
    /// A short digest of its definition.
    definition: String,
    /// Its key.
    key: Option<String>,
    /// Its status: `running`, `answered`, `waits`, `doubt`, `limit`, `failed`, `cancelled`, `paused`, `interrupted`, `new`.
    status: String,
    /// The time of its creation.
    created: String,
    /// The time of the last commit.
    updated: String,
    /// The last line on disk.
    line: u64,
    /// The number of model calls.
    model_calls: u64,
    /// The number of tokens spent.
    tokens: u64,
    /// The money spent, in the currency of the prices.
    cost: f64,
    /// Names and values of its labels.
    labels: BTreeMap<String, Value>,
    /// The values of the definition's `outcome`.
    outcome: Value,
    /// The process that owns it now.
    owner: Option<String>,
    /// Calls that wait for a place that does not answer.
    places: Option<Vec<Value>>,
}

/// A page of sessions.
#[derive(ToSchema)]
pub(crate) struct SessionList {
    /// The sessions, newest first.
    items: Vec<SessionRow>,
    /// The value of `after` for the next page, if there is one.
    next: Option<String>,
}

/// A row of a story.
#[derive(ToSchema)]
pub(crate) struct StoryRow {
    /// The line of the log that the row is about.
    line: u64,
    /// The branch of that line.
    branch: String,
    /// The time of that line.
    at: String,
    /// The id of the agent that the row belongs to.
    agent: Option<String>,
    /// The line of the call that the row is about, for rows about a result, an attempt or a question.
    of: Option<u64>,
    /// The actor: an agent, `you`, a role; empty for the result of a call.
    who: String,
    /// The text.
    text: String,
    /// True if the text was cut.
    cut: Option<bool>,
    /// A note next to the text: a class, a duration, an end.
    note: String,
    /// Milliseconds that the model worked on the answer with which the row begins.
    took: Option<u64>,
    /// The number of owners that took the session over, for a row about that.
    owners: Option<u32>,
    /// The kind of row.
    tone: StoryTone,
}

/// The kinds of rows of a story.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum StoryTone {
    /// A message of a person or an agent.
    Said,
    /// A call of a tool or an agent.
    Called,
    /// A choice of a router, with its reason.
    Chose,
    /// A result of a call.
    Came,
    /// An error or a failure.
    Wrong,
    /// A question to a person.
    Asked,
    /// A person, a probe or a time-out ended a hold.
    Decided,
    /// An effect that may have happened.
    Doubt,
    /// An act of the engine.
    Engine,
    /// The result of a search.
    Found,
    /// The beginning of a branch.
    Begins,
}

/// A part of a story.
#[derive(ToSchema)]
pub(crate) struct StoryPage {
    /// The id of the branch.
    branch: String,
    /// The last line of the branch.
    head: u64,
    /// The rows, oldest first.
    items: Vec<StoryRow>,
    /// The last line in front of the page that has rows.
    before: Option<u64>,
    /// The first line behind the page that has rows.
    next: Option<u64>,
}

/// A version of an artifact.
#[derive(ToSchema)]
pub(crate) struct ArtifactRow {
    /// The name.
    name: String,
    /// The number of the version.
    version: u64,
    /// The media type.
    media: String,
    /// The number of bytes.
    len: u64,
    /// The digest of the content.
    hash: String,
    /// The call that made it.
    call: String,
    /// Its rating.
    rating: Option<Value>,
}

/// The artifacts of a branch.
#[derive(ToSchema)]
pub(crate) struct ArtifactList {
    /// All versions.
    items: Vec<ArtifactRow>,
}
