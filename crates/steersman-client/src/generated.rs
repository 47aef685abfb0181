//! Made by `cargo xtask clients` from docs/reference/openapi.json. Do not edit.

use crate::call::{Call, Given, Transport};
use crate::error::Error;
use crate::frames::Frames;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The last line of a branch that is adopted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Adopt {
    /// The line. Without one it is the last line, or the line before the first simulated effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The role in which it is answered.
    #[serde(rename = "as")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// One of the options of the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// The text. Where a secret is asked for, it is sealed before it is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// An approval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Approve {
    /// Arguments that replace those of the call, as far as the definition allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
    /// The role in which it is decided.
    #[serde(rename = "as")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// The artifacts of a branch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArtifactList {
    /// All versions.
    pub items: Vec<ArtifactRow>,
}

/// A rating of a version of an artifact.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArtifactRating {
    /// The role in which it is rated.
    #[serde(rename = "as")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// From 1 to 5.
    pub rating: u64,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The number of the version. Without one it is the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// A version of an artifact.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArtifactRow {
    /// The call that made it.
    pub call: String,
    /// The digest of the content.
    pub hash: String,
    /// The number of bytes.
    pub len: u64,
    /// The media type.
    pub media: String,
    /// The name.
    pub name: String,
    /// Its rating.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rating: Option<Value>,
    /// The number of the version.
    pub version: u64,
}

/// A wish to cancel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cancel {
    /// The role in which it is cancelled.
    #[serde(rename = "as")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The id of the call or agent, or the label or id of the branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The work to cancel.
    pub what: What,
}

/// A value of `config` before and after.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConfigChange {
    /// The name of the value.
    pub name: String,
    /// The value to which it is bound now.
    pub new: Value,
    /// The value to which the session was bound.
    pub old: Value,
}

/// Values that are bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfigChanged {
    /// Each value before and after.
    pub changes: Vec<ConfigChange>,
    /// The fate of the wish.
    pub receipt: Receipt,
}

/// Other values of `config` to bind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConfigChanges {
    /// The role in which it is done.
    #[serde(rename = "as")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The values.
    pub config: Map<String, Value>,
}

/// The faults of a definition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DefinitionFaults {
    /// Errors, warnings and notes.
    pub diagnostics: Vec<Map<String, Value>>,
    /// Faults of what has to be registered in Rust, such as a tool that this text alone does not have.
    pub in_rust: Vec<String>,
    /// The name of the network, if it has no errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// True if it has no errors.
    pub ok: bool,
}

/// A definition to check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DefinitionText {
    /// The texts of the files that it names, by their paths: prompts, schemas, imports. Files of the server are not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<std::collections::BTreeMap<String, String>>,
    /// The text of the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A value of a definition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DefinitionValue {
    /// Its path, such as `agents.desk.system`.
    pub path: String,
    /// The value, as the definition has it.
    pub value: Value,
}

/// Values of a definition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DefinitionValueList {
    /// The values, by their paths.
    pub items: Vec<DefinitionValue>,
}

/// The result of an erasure, or of one that is not carried out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Erased {
    /// True if it is erased.
    pub applied: bool,
    /// Number of contents of artifacts that go with it. They are not shown any more, and leave the store with the same `erase` of the
    /// program while no other process has the store open.
    pub contents: u64,
    /// True if these memories are forgotten, or would be.
    pub forgets: bool,
    /// Number of memories that these sessions saved.
    pub memories: u64,
    /// The session that it repeats, which holds the same texts and stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The reruns that are erased with it.
    pub reruns: Vec<String>,
    /// The session.
    pub session: String,
    /// Number of texts that are tombstones.
    pub texts: u64,
    /// True if every line that is left verifies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verifies: Option<bool>,
}

/// The part of a session that is to be erased.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Erasure {
    /// True to leave its reruns as they are. They hold the same texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<bool>,
    /// True to do it. Otherwise the answer says what would be erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apply: Option<bool>,
    /// The effect of which alone arguments and result are erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// The line of which alone all texts are erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// True to forget also what it saved to memory. The token needs the permission `memory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<bool>,
}

/// The token of a code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExchangedToken {
    /// The token itself.
    pub token: String,
}

/// A file that comes with a request. It becomes an artifact under its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct File {
    /// The content in base 64, if it is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// Its media type. Without one it follows from the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The name of the artifact.
    pub name: String,
    /// The content, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Memories to forget.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ForgetMemories {
    /// True to do it. Otherwise the answer says which are meant, and nothing is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apply: Option<bool>,
    /// Their numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memories: Option<Vec<u64>>,
    /// Their scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The session that saved them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// The memories that are forgotten.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ForgottenMemories {
    /// True if they are forgotten.
    pub applied: bool,
    /// Number of memories.
    pub count: u64,
    /// Their numbers.
    pub memories: Vec<u64>,
}

/// The fate of an effect in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    /// `done`.
    #[serde(rename = "done")]
    Done,
    /// `not_performed`.
    #[serde(rename = "not_performed")]
    NotPerformed,
    /// `fail`.
    #[serde(rename = "fail")]
    Fail,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Differences of its runs to the session: paths of the definition, and fields of the request such as `say`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Vec<String>>,
    /// Number of its runs that are done.
    pub done: u64,
    /// The problem by which it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Map<String, Value>>,
    /// The id of the job.
    pub job: String,
    /// Number of its runs.
    pub of: u64,
    /// The results of these runs: the session of the rerun, and how it differs.
    pub runs: Vec<Map<String, Value>>,
    /// The session that it is about, if the job is not lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Its state.
    pub state: JobState,
}

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum JobState {
    /// `running`.
    #[serde(rename = "running")]
    Running,
    /// `done`.
    #[serde(rename = "done")]
    Done,
    /// `failed`.
    #[serde(rename = "failed")]
    Failed,
    /// `stopped`.
    #[serde(rename = "stopped")]
    Stopped,
    /// `lost`.
    #[serde(rename = "lost")]
    Lost,
    /// A word that a newer server knows.
    #[serde(other)]
    Unknown,
}

/// Branches whose results are reported to the session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Join {
    /// The arguments of that tool. Their texts are templates over `result`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
    /// The labels or the ids of the branches.
    pub branches: Vec<String>,
    /// The condition: `all`, `any`, a number of branches, or an expression. Without one it is `all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// A tool that is called next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<String>,
}

/// A code that was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MadeCode {
    /// The code.
    pub code: String,
}

/// A webhook that was made, or its new secret.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MadeHook {
    /// The name of the webhook.
    pub name: String,
    /// The secret that signs messages (`whsec_` and base64). It is shown only here.
    pub secret: String,
}

/// A token that was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MadeToken {
    /// Its name.
    pub name: String,
    /// The token itself. It is shown only here.
    pub token: String,
}

/// A rating.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryRating {
    /// The role in which it is rated.
    #[serde(rename = "as")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// From 1 to 5.
    pub rating: u64,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A branch to open.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NewBranch {
    /// The line at which it leaves the other branch. Without one it is the last line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// The label or the id of the branch that it leaves. Without one it is the current branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// A label for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// True if effects that touch the world run on it, too. Otherwise they are simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<bool>,
    /// The first message on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
}

/// A webhook to make.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NewHook {
    /// Kinds of messages: `session.settled`, `session.failed`, `question.asked`, `effect.in_doubt`, `artifact.made`. Empty means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<String>>,
    /// The address to which messages are sent: `https`, without a user and a fragment.
    pub url: String,
    /// The sessions: `definition`, `key` and `label`, as in the query of the list of sessions. Without it all are meant.
    #[serde(rename = "where")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub where_: Option<String>,
}

/// A search to begin. What it does not say follows from the plan that the agent declares, or has its usual value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NewSearch {
    /// The line at which it begins. Without one it is the last of the branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// The label or the id of the branch. Without one it is the current branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The one who says what a branch is worth: a tool that only looks, or an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Maximum number of model calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Maximum number of blocks of a branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
    /// The value at which the search ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enough: Option<f64>,
    /// True if effects touch the world on all branches. Otherwise they are simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<bool>,
    /// `best_of`, `beam`, `rollouts` or `mcts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Maximum amount of money, in millionths of the currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micros: Option<u64>,
    /// Number of branches in all; of `beam` those of a level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    /// Said there first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
    /// An expression over `answer`, `state` and `calls`: what a branch is worth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<String>,
    /// The seed of sampling. Without one it is the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Maximum number of tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Of `beam`: how many of a level go on. Of `rollouts`: first blocks. Of `mcts`: branches at one place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u64>,
}

/// A token to make.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NewToken {
    /// The permissions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allows: Option<Vec<Permission>>,
    /// Names of the definitions that it may start. Empty means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definitions: Option<Vec<String>>,
    /// The time after which it is invalid, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// A note for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Roles in which its owner may act.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<String>>,
    /// The subject whose sessions alone it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// An order about a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OfTool {
    /// The role in which it is given.
    #[serde(rename = "as")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The tool. Without one all tools that may change the world are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

/// A branch that was opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// The id of the branch.
    pub branch: String,
    /// The line that opened it.
    pub line: u64,
    /// The session.
    pub session: String,
}

/// The role in which an order is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The role in which it is given.
    #[serde(rename = "as")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// The acts that many sessions can be given. Questions are decided one by one, because a person has to read each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OrderAct {
    /// `cancel`.
    #[serde(rename = "cancel")]
    Cancel,
    /// `pause`.
    #[serde(rename = "pause")]
    Pause,
    /// `resume`.
    #[serde(rename = "resume")]
    Resume,
    /// `hold`.
    #[serde(rename = "hold")]
    Hold,
    /// `release`.
    #[serde(rename = "release")]
    Release,
    /// `retry`.
    #[serde(rename = "retry")]
    Retry,
    /// `edit`.
    #[serde(rename = "edit")]
    Edit,
    /// `migrate`.
    #[serde(rename = "migrate")]
    Migrate,
}

/// The fates of an act in one of many sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum OrderFate {
    /// `taken`.
    #[serde(rename = "taken")]
    Taken,
    /// `waits`.
    #[serde(rename = "waits")]
    Waits,
    /// `queued`.
    #[serde(rename = "queued")]
    Queued,
    /// `known`.
    #[serde(rename = "known")]
    Known,
    /// `refused`.
    #[serde(rename = "refused")]
    Refused,
    /// `failed`.
    #[serde(rename = "failed")]
    Failed,
    /// `left`.
    #[serde(rename = "left")]
    Left,
    /// A word that a newer server knows.
    #[serde(other)]
    Unknown,
}

/// A session of an act for many.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OrderGiven {
    /// The value of `fate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fate: Option<OrderFate>,
    /// The line that took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The session.
    pub session: String,
    /// The reason why it has no effect, or none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// An act for many sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OrderMany {
    /// The act.
    pub act: OrderAct,
    /// True to do it. Otherwise the answer says which sessions are meant, and nothing is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apply: Option<bool>,
    /// The role in which it is given.
    #[serde(rename = "as")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Of `migrate`: the values of `config`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Map<String, Value>>,
    /// The sessions by their ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Vec<String>>,
    /// Of `edit`: the entries with their new values. `null` unsets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Map<String, Value>>,
    /// Of `hold` and `release`: the tool. Without one all tools that may change the world are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The sessions by a filter: `status = waits and vendor = Acme`. A request has this or `sessions`.
    #[serde(rename = "where")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub where_: Option<String>,
}

/// The sessions of an act, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OrdersGiven {
    /// True if the act was given.
    pub applied: bool,
    /// Number of sessions that are meant.
    pub count: u64,
    /// The sessions: those that a filter lets through are newest first, those that were named are in the order of their ids.
    pub items: Vec<OrderGiven>,
}

/// Something that a token may allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Permission {
    /// `read`.
    #[serde(rename = "read")]
    Read,
    /// `context`.
    #[serde(rename = "context")]
    Context,
    /// `write`.
    #[serde(rename = "write")]
    Write,
    /// `events`.
    #[serde(rename = "events")]
    Events,
    /// `decide`.
    #[serde(rename = "decide")]
    Decide,
    /// `operate`.
    #[serde(rename = "operate")]
    Operate,
    /// `time`.
    #[serde(rename = "time")]
    Time,
    /// `memory`.
    #[serde(rename = "memory")]
    Memory,
    /// `admin`.
    #[serde(rename = "admin")]
    Admin,
}

/// An event from outside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Post {
    /// The name of the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// The name of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Its fields. An artifact is an object of `name`, `media_type`, and `text` or `base64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Map<String, Value>>,
    /// The session for which it is, if the definition does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// The fate of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Posted {
    /// The fate of the event.
    pub sent: Where,
    /// The session that it went to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// The reason why a request was not carried out (RFC 9457).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// The code that programs branch on.
    pub code: ProblemCode,
    /// The fault, and what to do.
    pub detail: String,
    /// Errors of a definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<Vec<Value>>,
    /// The way out, where it is not a part of the detail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The status of the response.
    pub status: u64,
    /// A short title that is the same for every problem of this code.
    pub title: String,
    /// `urn:steersman:problem:` and the code.
    #[serde(rename = "type")]
    pub kind: String,
}

/// The code that programs branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ProblemCode {
    /// `body`.
    #[serde(rename = "body")]
    Body,
    /// `query`.
    #[serde(rename = "query")]
    Query,
    /// `cursor`.
    #[serde(rename = "cursor")]
    Cursor,
    /// `id`.
    #[serde(rename = "id")]
    Id,
    /// `token`.
    #[serde(rename = "token")]
    Token,
    /// `scope`.
    #[serde(rename = "scope")]
    Scope,
    /// `role_not_yours`.
    #[serde(rename = "role_not_yours")]
    RoleNotYours,
    /// `origin`.
    #[serde(rename = "origin")]
    Origin,
    /// `host`.
    #[serde(rename = "host")]
    Host,
    /// `path`.
    #[serde(rename = "path")]
    Path,
    /// `session`.
    #[serde(rename = "session")]
    Session,
    /// `branch`.
    #[serde(rename = "branch")]
    Branch,
    /// `line`.
    #[serde(rename = "line")]
    Line,
    /// `question`.
    #[serde(rename = "question")]
    Question,
    /// `effect`.
    #[serde(rename = "effect")]
    Effect,
    /// `artifact`.
    #[serde(rename = "artifact")]
    Artifact,
    /// `response`.
    #[serde(rename = "response")]
    Response,
    /// `definition`.
    #[serde(rename = "definition")]
    Definition,
    /// `job`.
    #[serde(rename = "job")]
    Job,
    /// `search`.
    #[serde(rename = "search")]
    Search,
    /// `memory`.
    #[serde(rename = "memory")]
    Memory,
    /// `unknown_token`.
    #[serde(rename = "unknown_token")]
    UnknownToken,
    /// `webhook`.
    #[serde(rename = "webhook")]
    Webhook,
    /// `method`.
    #[serde(rename = "method")]
    Method,
    /// `repeated`.
    #[serde(rename = "repeated")]
    Repeated,
    /// `exists`.
    #[serde(rename = "exists")]
    Exists,
    /// `busy`.
    #[serde(rename = "busy")]
    Busy,
    /// `unbound`.
    #[serde(rename = "unbound")]
    Unbound,
    /// `moved`.
    #[serde(rename = "moved")]
    Moved,
    /// `too_large`.
    #[serde(rename = "too_large")]
    TooLarge,
    /// `media`.
    #[serde(rename = "media")]
    Media,
    /// `rate`.
    #[serde(rename = "rate")]
    Rate,
    /// `streams`.
    #[serde(rename = "streams")]
    Streams,
    /// `refused`.
    #[serde(rename = "refused")]
    Refused,
    /// `faulty_definition`.
    #[serde(rename = "faulty_definition")]
    FaultyDefinition,
    /// `damaged`.
    #[serde(rename = "damaged")]
    Damaged,
    /// `internal`.
    #[serde(rename = "internal")]
    Internal,
    /// `store`.
    #[serde(rename = "store")]
    Store,
    /// `stopping`.
    #[serde(rename = "stopping")]
    Stopping,
    /// `late`.
    #[serde(rename = "late")]
    Late,
    /// `failed`.
    #[serde(rename = "failed")]
    Failed,
    /// A word that a newer server knows.
    #[serde(other)]
    Unknown,
}

/// Something that a session waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The name of the agent in the definition.
    pub agent: String,
    /// The arguments of the call, without secret ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// The reason for the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The branch of the effect.
    pub branch: String,
    /// The people who may end the wait: `user`, people of the definition, `any`. One of them is enough.
    pub by: Vec<String>,
    /// The time at which the wait ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// Arguments that an approver may change.
    pub edit: Vec<String>,
    /// The effect that waits.
    pub effect: String,
    /// Effects of the same tool with other arguments, on lines that the branch does not have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<Vec<Value>>,
    /// The roles that may end the wait.
    #[serde(rename = "for")]
    pub roles: Vec<String>,
    /// The address of an answer: the effect, and the line of the hold.
    pub id: String,
    /// The kind of the wait.
    pub kind: QuestionKind,
    /// True if no branch waits for the effect any more.
    pub left: bool,
    /// `doubt`: the parts of the result that a person must give if the effect happened.
    pub needs: Vec<String>,
    /// The name of the definition of the session, where `session` is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// The person who is asked once `due` has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Answers that may be chosen.
    pub options: Vec<String>,
    /// The place that does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// `doubt`: the probe that asks whether the effect happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Value>,
    /// The earlier equal effect, which was done or is in doubt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<String>,
    /// The session. A turn, which is of one session, leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Names of artifacts that are shown with it.
    pub show: Vec<String>,
    /// The time at which the session began to wait.
    pub since: String,
    /// The text of the question, or the name of the event.
    pub text: String,
    /// The tool, if a tool was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

/// The kinds of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum QuestionKind {
    /// `approval`.
    #[serde(rename = "approval")]
    Approval,
    /// `input`.
    #[serde(rename = "input")]
    Input,
    /// `doubt`.
    #[serde(rename = "doubt")]
    Doubt,
    /// `budget`.
    #[serde(rename = "budget")]
    Budget,
    /// `repeat`.
    #[serde(rename = "repeat")]
    Repeat,
    /// `question`.
    #[serde(rename = "question")]
    Question,
    /// `event`.
    #[serde(rename = "event")]
    Event,
    /// `timer`.
    #[serde(rename = "timer")]
    Timer,
    /// `again`.
    #[serde(rename = "again")]
    Again,
    /// `hold`.
    #[serde(rename = "hold")]
    Hold,
    /// `outage`.
    #[serde(rename = "outage")]
    Outage,
    /// A word that a newer server knows.
    #[serde(other)]
    Unknown,
}

/// A list of questions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QuestionList {
    /// The questions.
    pub items: Vec<Question>,
}

/// The receipt of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The fate of the message so far.
    pub fate: Stands,
    /// The line that took the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The id of the message. Events name it when the session takes it: `accepted`, `refused`.
    pub message: String,
    /// The session.
    pub session: String,
    /// The condition for which the message waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A rejection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reject {
    /// The role in which it is decided.
    #[serde(rename = "as")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The reason, which the model reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The changes of a rerun. Without any, the session is repeated as it was, and nobody is asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RerunChanges {
    /// The last line that stays as it was. Without one everything is run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// The label or the id of a branch. Without one it is the current branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Values of `config` in place of those that the session took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Map<String, Value>>,
    /// The name of another definition of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// True to let effects touch the world that are not on record. Otherwise they are simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<bool>,
    /// A name for it: its label `rerun`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The one who answers for people: `recorded`, `stop`, or an agent for questions without a recorded answer. Without it `recorded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub people: Option<String>,
    /// The number of times, at most 20. Without it once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u64>,
    /// Said at the line, in place of the next recorded message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
    /// Values of the definition by their paths: `models.default.model`, `agents.desk.system`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<Map<String, Value>>,
}

/// A person's statement about an effect in doubt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resolve {
    /// The role in which it is decided.
    #[serde(rename = "as")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The fate of the effect.
    pub how: How,
    /// The result, if it happened, in the form that the tool would have returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

/// An order to try again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// The role in which it is given.
    #[serde(rename = "as")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The effect. Without one everything that waits for its next attempt is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
}

/// A place to go back to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rewind {
    /// The line to go back to.
    pub at: u64,
    /// The label or the id of the branch. Without one it is the current branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// A label for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The first message there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
}

/// A message to a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Say {
    /// The role in which it is said.
    #[serde(rename = "as")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The label or the id of a branch. Without one it is the current branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Files that come with the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<File>>,
    /// True to cancel first whatever is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<bool>,
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The id of the agent or question that is meant. Without one it is the agent that has the floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// A search that has begun.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchBegun {
    /// The line that began it.
    pub line: u64,
    /// The id of the search.
    pub search: String,
    /// The session.
    pub session: String,
}

/// The server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerInfo {
    /// Names of its definitions.
    pub definitions: Vec<String>,
    /// Number of sessions that it drives now.
    pub driven: u64,
    /// True if it drives the sessions of its store.
    pub driving: bool,
    /// The protocols that it speaks in addition to its own.
    pub protocols: Vec<String>,
    /// Its version.
    pub version: String,
    /// Version of the JSON of all views. Additions do not count.
    pub views: u64,
}

/// A page of sessions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionList {
    /// The sessions, newest first.
    pub items: Vec<SessionRow>,
    /// The value of `after` for the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A session in a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionRow {
    /// The money spent, in the currency of the prices.
    pub cost: f64,
    /// The time of its creation.
    pub created: String,
    /// A short digest of its definition.
    pub definition: String,
    /// Its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Names and values of its labels.
    pub labels: Map<String, Value>,
    /// The last line on disk.
    pub line: u64,
    /// The number of model calls.
    pub model_calls: u64,
    /// The name of its definition.
    pub network: String,
    /// The values of the definition's `outcome`.
    pub outcome: Value,
    /// The process that owns it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Calls that wait for a place that does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<Vec<Value>>,
    /// The id.
    pub session: String,
    /// Its status: `running`, `answered`, `waits`, `doubt`, `limit`, `failed`, `cancelled`, `paused`, `interrupted`, `new`.
    pub status: String,
    /// The number of tokens spent.
    pub tokens: u64,
    /// The time of the last commit.
    pub updated: String,
}

/// The fate of a message so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Stands {
    /// `taken`.
    #[serde(rename = "taken")]
    Taken,
    /// `waits`.
    #[serde(rename = "waits")]
    Waits,
    /// `queued`.
    #[serde(rename = "queued")]
    Queued,
    /// `known`.
    #[serde(rename = "known")]
    Known,
    /// A word that a newer server knows.
    #[serde(other)]
    Unknown,
}

/// A session to start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Arguments for the parameters of the agent that begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
    /// The role in which the message is said.
    #[serde(rename = "as")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Values of `config` that take precedence over those of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Map<String, Value>>,
    /// The name of the definition.
    pub definition: String,
    /// The agent that begins. Without one it is the first entry of the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Files that come with the arguments or the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<File>>,
    /// The key by which events find the session. One session of a definition has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The seed of all randomness. Without one it is random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// A session that was started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The last line of its log.
    pub head: u64,
    /// The id of the session.
    pub session: String,
}

/// Entries of state to set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StateEdit {
    /// The role in which they are set. The definition may name the people who may.
    #[serde(rename = "as")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The entries with their new values. `null` unsets one.
    pub state: Map<String, Value>,
}

/// A part of a story.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoryPage {
    /// The last line in front of the page that has rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// The id of the branch.
    pub branch: String,
    /// The last line of the branch.
    pub head: u64,
    /// The rows, oldest first.
    pub items: Vec<StoryRow>,
    /// The first line behind the page that has rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// A row of a story.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoryRow {
    /// The id of the agent that the row belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The time of that line.
    pub at: String,
    /// The branch of that line.
    pub branch: String,
    /// True if the text was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<bool>,
    /// The line of the log that the row is about.
    pub line: u64,
    /// A note next to the text: a class, a duration, an end.
    pub note: String,
    /// The line of the call that the row is about, for rows about a result, an attempt or a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    /// The number of owners that took the session over, for a row about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owners: Option<u64>,
    /// The text.
    pub text: String,
    /// The kind of row.
    pub tone: StoryTone,
    /// Milliseconds that the model worked on the answer with which the row begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took: Option<u64>,
    /// The actor: an agent, `you`, a role; empty for the result of a call.
    pub who: String,
}

/// The kinds of rows of a story.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum StoryTone {
    /// `said`.
    #[serde(rename = "said")]
    Said,
    /// `called`.
    #[serde(rename = "called")]
    Called,
    /// `chose`.
    #[serde(rename = "chose")]
    Chose,
    /// `came`.
    #[serde(rename = "came")]
    Came,
    /// `wrong`.
    #[serde(rename = "wrong")]
    Wrong,
    /// `asked`.
    #[serde(rename = "asked")]
    Asked,
    /// `decided`.
    #[serde(rename = "decided")]
    Decided,
    /// `doubt`.
    #[serde(rename = "doubt")]
    Doubt,
    /// `engine`.
    #[serde(rename = "engine")]
    Engine,
    /// `found`.
    #[serde(rename = "found")]
    Found,
    /// `begins`.
    #[serde(rename = "begins")]
    Begins,
    /// A word that a newer server knows.
    #[serde(other)]
    Unknown,
}

/// A code to exchange.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenCode {
    /// The code.
    pub code: String,
}

/// The state in which a session settled: it goes on only with an input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// `answered`: the answer. `limit`: the answer that a limit demanded, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// `answered`: texts that the user heard before the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Vec<String>>,
    /// `limit`, `failed`: the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The position in the events.
    pub cursor: String,
    /// The last line on disk.
    pub line: u64,
    /// `failed`: the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// `asks`, `doubt`, `waits`: everything that is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Vec<Question>>,
    /// The session.
    pub session: String,
    /// The kind of state. It says which of the other fields there are.
    pub status: TurnStatus,
    /// `answered`: true if the task is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<bool>,
}

/// The kinds of states in which a session settles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TurnStatus {
    /// `answered`.
    #[serde(rename = "answered")]
    Answered,
    /// `asks`.
    #[serde(rename = "asks")]
    Asks,
    /// `doubt`.
    #[serde(rename = "doubt")]
    Doubt,
    /// `waits`.
    #[serde(rename = "waits")]
    Waits,
    /// `limit`.
    #[serde(rename = "limit")]
    Limit,
    /// `failed`.
    #[serde(rename = "failed")]
    Failed,
    /// `cancelled`.
    #[serde(rename = "cancelled")]
    Cancelled,
    /// `paused`.
    #[serde(rename = "paused")]
    Paused,
    /// A word that a newer server knows.
    #[serde(other)]
    Unknown,
}

/// The work to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// `turn`.
    #[serde(rename = "turn")]
    Turn,
    /// `call`.
    #[serde(rename = "call")]
    Call,
    /// `agent`.
    #[serde(rename = "agent")]
    Agent,
    /// `branch`.
    #[serde(rename = "branch")]
    Branch,
    /// `session`.
    #[serde(rename = "session")]
    Session,
}

/// The fates of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Where {
    /// `known`.
    #[serde(rename = "known")]
    Known,
    /// `started`.
    #[serde(rename = "started")]
    Started,
    /// `session`.
    #[serde(rename = "session")]
    Session,
    /// `offered`.
    #[serde(rename = "offered")]
    Offered,
    /// A word that a newer server knows.
    #[serde(other)]
    Unknown,
}

/// An answer that is one of several types.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum OpenedOrReceipt {
    /// A [`Opened`].
    Opened(Box<Opened>),
    /// A [`Receipt`].
    Receipt(Box<Receipt>),
}

/// An answer that is one of several types.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum SearchBegunOrReceipt {
    /// A [`SearchBegun`].
    SearchBegun(Box<SearchBegun>),
    /// A [`Receipt`].
    Receipt(Box<Receipt>),
}

/// An answer that is one of several types.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum TurnOrReceipt {
    /// A [`Turn`].
    Turn(Box<Turn>),
    /// A [`Receipt`].
    Receipt(Box<Receipt>),
}

/// An answer that is one of several types.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum TurnOrStarted {
    /// A [`Turn`].
    Turn(Box<Turn>),
    /// A [`Started`].
    Started(Box<Started>),
}

/// The operations of `branches`.
#[derive(Clone, Debug)]
pub struct BranchesApi<'c> {
    pub(crate) transport: &'c Transport,
}

impl BranchesApi<'_> {
    /// Adopts a branch: the session continues with its lines.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn adopt(
        &self,
        session: &str,
        branch: &str,
        body: &Adopt,
        given: &Given,
    ) -> Result<Receipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/branches/")
            .part(&branch)
            .text("/adopt")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Cancels everything that is open on a branch.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn cancel(
        &self,
        session: &str,
        branch: &str,
        given: &Given,
    ) -> Result<Receipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/branches/")
            .part(&branch)
            .text("/cancel")
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Makes a branch the current one, to which everything goes that names no branch.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn current(
        &self,
        session: &str,
        branch: &str,
        given: &Given,
    ) -> Result<Receipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/branches/")
            .part(&branch)
            .text("/current")
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Opens a branch at a line. It is dry unless `live` is set: effects that touch the world are simulated.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn fork(
        &self,
        session: &str,
        body: &NewBranch,
        given: &Given,
    ) -> Result<OpenedOrReceipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/branches")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Reports the results of branches to the session once a condition holds.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn join(&self, session: &str, body: &Join, given: &Given) -> Result<Receipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/join")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Lists the branches of a session.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn list(&self, session: &str) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .text("/branches");
        self.transport.json(call).await
    }

    /// Goes back to a line. What comes after it stays readable, and the new branch is the current one.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn rewind(
        &self,
        session: &str,
        body: &Rewind,
        given: &Given,
    ) -> Result<OpenedOrReceipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/rewind")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Says something on a branch.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn say(
        &self,
        session: &str,
        branch: &str,
        body: &Say,
        given: &Given,
    ) -> Result<TurnOrReceipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/branches/")
            .part(&branch)
            .text("/messages")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }
}

/// The operations of `definitions`.
#[derive(Clone, Debug)]
pub struct DefinitionsApi<'c> {
    pub(crate) transport: &'c Transport,
}

impl DefinitionsApi<'_> {
    /// Checks the text of a definition: returns its errors and warnings. Nothing is run, and nothing is kept.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn check_definition(&self, body: &DefinitionText) -> Result<DefinitionFaults, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/check")
            .body(body)?;
        self.transport.json(call).await
    }

    /// Returns the picture of a definition as SVG.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn draw_definition(&self, definition: &str) -> Result<Vec<u8>, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/definitions/")
            .part(&definition)
            .text("/graph.svg");
        self.transport.bytes(call).await
    }

    /// Returns the graph of a definition, and its shapes in coordinates.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn graph(&self, definition: &str) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/definitions/")
            .part(&definition)
            .text("/graph");
        self.transport.json(call).await
    }

    /// Lists the definitions that the token may start, with the parameters of their entries as JSON Schema.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn list(&self) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET).text("/v1/definitions");
        self.transport.json(call).await
    }

    /// Returns a definition: the parameters of its entries and the fields of its events as JSON Schema, and its people.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn one(&self, definition: &str) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/definitions/")
            .part(&definition);
        self.transport.json(call).await
    }
}

/// The conditions of `follow` of [`EventsApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EventsFollowQuery {
    /// The position after which the events begin: a cursor `12.3`, a line `12`, `start`, or `now`. `Last-Event-ID` goes before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Kinds of events, separated by commas. Without it all kinds come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<String>,
    /// The id of a branch. Without it the events of all branches come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// `settled`: the stream ends once the session has settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// The conditions of `watch_sessions` of [`EventsApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EventsWatchSessionsQuery {
    /// A filter, as of the list of sessions: `status = waits or status = doubt`.
    #[serde(rename = "where")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub where_: Option<String>,
}

/// The operations of `events`.
#[derive(Clone, Debug)]
pub struct EventsApi<'c> {
    pub(crate) transport: &'c Transport,
}

impl EventsApi<'_> {
    /// Follows the events of a session as server-sent events.
    ///
    /// The first is `hello` with the position, the last line, and who drives the session. The id of an event is its cursor; streamed
    /// pieces have none, so a client that comes back with its last id misses nothing and gets nothing twice. A comment comes every 15
    /// seconds.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn follow(
        &self,
        session: &str,
        query: &EventsFollowQuery,
        given: &Given,
    ) -> Result<Frames, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .text("/events")
            .query(query)
            .given(given);
        self.transport.open(call).await
    }

    /// Sends an event. As the definition says, it goes to a session, starts one, or is offered to the waits that match.
    ///
    /// The id that the definition gives the event is accepted once, so the request can be repeated.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn post(&self, body: &Post) -> Result<Posted, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/events")
            .body(body)?;
        self.transport.json(call).await
    }

    /// Follows the sessions that the token sees, as server-sent events.
    ///
    /// The first event is `hello`. `session` has the row of a session that changed, as lists have it; `left` names one that changed and
    /// that the filter does not let through; `skipped` says how many changes a slow client missed. Events have no ids: a client lists the
    /// sessions once `hello` has come, and again after a cut or a `skipped`.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn watch_sessions(&self, query: &EventsWatchSessionsQuery) -> Result<Frames, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/events/stream")
            .query(query);
        self.transport.open(call).await
    }
}

/// The operations of `health`.
#[derive(Clone, Debug)]
pub struct HealthApi<'c> {
    pub(crate) transport: &'c Transport,
}

impl HealthApi<'_> {
    /// Returns this document.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn document(&self) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET).text("/v1/openapi.json");
        self.transport.json(call).await
    }

    /// Says what the server is and does. Only an administrator of the tenant without a name may know it.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn get_server(&self) -> Result<ServerInfo, Error> {
        let call = Call::new(reqwest::Method::GET).text("/v1/server");
        self.transport.json(call).await
    }

    /// Says that the process answers.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn livez(&self) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET).text("/livez");
        self.transport.json(call).await
    }

    /// Says whether the server can do its work: it drives the store, the store answers, and it does not stop.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn readyz(&self) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET).text("/readyz");
        self.transport.json(call).await
    }
}

/// The conditions of `list_memories` of [`MemoriesApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MemoriesListMemoriesQuery {
    /// The scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The session that saved them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// True for a list that also has what another memory stands in the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<bool>,
    /// The position after which the list goes on: `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// The most rows of a page, at most 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The conditions of `search_memories` of [`MemoriesApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MemoriesSearchMemoriesQuery {
    /// The words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// The scope. Without one all scopes are searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The most memories of a scope, at most 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The operations of `memories`.
#[derive(Clone, Debug)]
pub struct MemoriesApi<'c> {
    pub(crate) transport: &'c Transport,
}

impl MemoriesApi<'_> {
    /// Forgets memories: by their numbers, of a session, or all of a scope. Without `apply` it only says which they are.
    ///
    /// Contents that nothing names any more stay in the store until `steersman gc` collects them.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn forget_memories(&self, body: &ForgetMemories) -> Result<ForgottenMemories, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/memories/forget")
            .body(body)?;
        self.transport.json(call).await
    }

    /// Forgets a memory. Sessions that found it keep what they were shown.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn forget_memory(&self, memory: u64) -> Result<(), Error> {
        let call = Call::new(reqwest::Method::DELETE)
            .text("/v1/memories/")
            .part(&memory);
        self.transport.nothing(call).await
    }

    /// Returns a memory with its content.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn get_memory(&self, memory: u64) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/memories/")
            .part(&memory);
        self.transport.json(call).await
    }

    /// Lists the memories that the token sees, newest first, without their contents.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn list_memories(&self, query: &MemoriesListMemoriesQuery) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/memories")
            .query(query);
        self.transport.json(call).await
    }

    /// Rates a memory. The rating of a person takes precedence over those of agents; the last one counts.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn rate_memory(&self, memory: u64, body: &MemoryRating) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/memories/")
            .part(&memory)
            .text("/rating")
            .body(body)?;
        self.transport.json(call).await
    }

    /// Finds the memories that fit words best, as agents of their scope would find them.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn search_memories(
        &self,
        query: &MemoriesSearchMemoriesQuery,
    ) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/memories/search")
            .query(query);
        self.transport.json(call).await
    }
}

/// The operations of `orders`.
#[derive(Clone, Debug)]
pub struct OrdersApi<'c> {
    pub(crate) transport: &'c Transport,
}

impl OrdersApi<'_> {
    /// Cancels a turn, a call, an agent, a branch or, with the permission `operate`, a whole session.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn cancel(
        &self,
        session: &str,
        body: &Cancel,
        given: &Given,
    ) -> Result<Receipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/cancel")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Keeps effects of a tool from beginning until they are released.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn hold(
        &self,
        session: &str,
        body: &OfTool,
        given: &Given,
    ) -> Result<Receipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/hold")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Gives an act to all sessions that a filter lets through, or to those that are named. Without `apply` it only says which they are.
    ///
    /// An act that one session refuses is still given to the others. With an idempotency key, each session takes it once.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn order_many(&self, body: &OrderMany, given: &Given) -> Result<OrdersGiven, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/orders")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Pauses a session: nothing new begins until it is resumed.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn pause(
        &self,
        session: &str,
        body: &Order,
        given: &Given,
    ) -> Result<Receipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/pause")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Takes a hold back.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn release(
        &self,
        session: &str,
        body: &OfTool,
        given: &Given,
    ) -> Result<Receipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/release")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Ends a pause.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn resume(
        &self,
        session: &str,
        body: &Order,
        given: &Given,
    ) -> Result<Receipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/resume")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Tries again what failed.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn retry(
        &self,
        session: &str,
        body: &Retry,
        given: &Given,
    ) -> Result<Receipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/retry")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }
}

/// The conditions of `list` of [`QuestionsApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QuestionsListQuery {
    /// A role that may decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// A kind: `approval`, `question`, `input`, `doubt`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The name of the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// The most questions, at most 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The operations of `questions`.
#[derive(Clone, Debug)]
pub struct QuestionsApi<'c> {
    pub(crate) transport: &'c Transport,
}

impl QuestionsApi<'_> {
    /// Answers a question, or gives a secret that was asked for.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn answer(
        &self,
        session: &str,
        question: &str,
        body: &Answer,
        given: &Given,
    ) -> Result<TurnOrReceipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/questions/")
            .part(&question)
            .text("/answer")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Allows a held effect to run once, with exactly its arguments.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn approve(
        &self,
        session: &str,
        question: &str,
        body: &Approve,
        given: &Given,
    ) -> Result<TurnOrReceipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/questions/")
            .part(&question)
            .text("/approve")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Lists what waits for people, events and times, in all sessions that the token sees, soonest due first.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn list(&self, query: &QuestionsListQuery) -> Result<QuestionList, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/questions")
            .query(query);
        self.transport.json(call).await
    }

    /// Lists what a session waits for, on all branches.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn of_session(&self, session: &str) -> Result<QuestionList, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .text("/questions");
        self.transport.json(call).await
    }

    /// Refuses a held effect.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn reject(
        &self,
        session: &str,
        question: &str,
        body: &Reject,
        given: &Given,
    ) -> Result<TurnOrReceipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/questions/")
            .part(&question)
            .text("/reject")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Says whether an effect in doubt happened.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn resolve(
        &self,
        session: &str,
        question: &str,
        body: &Resolve,
        given: &Given,
    ) -> Result<TurnOrReceipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/questions/")
            .part(&question)
            .text("/resolve")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }
}

/// The operations of `reruns`.
#[derive(Clone, Debug)]
pub struct RerunsApi<'c> {
    pub(crate) transport: &'c Transport,
}

impl RerunsApi<'_> {
    /// Tells how a job stands. A job whose process is gone is `lost`; the sessions that it made stay.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn get_job(&self, job: &str, given: &Given) -> Result<Job, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/jobs/")
            .part(&job)
            .given(given);
        self.transport.json(call).await
    }

    /// Lists the values of a session's definition that a rerun may set. Those that the definition does not declare may be set, too.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn list_rerun_values(&self, session: &str) -> Result<DefinitionValueList, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .text("/reruns/values");
        self.transport.json(call).await
    }

    /// Runs a session again from its recording with something changed, as new sessions. Effects are simulated unless `live` is set.
    ///
    /// The answer comes at once: `GET /v1/jobs/{job}` tells how it goes on. The new sessions have the label `rerun_of`.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn rerun_session(
        &self,
        session: &str,
        body: &RerunChanges,
        given: &Given,
    ) -> Result<Job, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/reruns")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Stops a job. The rerun that runs is left paused after its next line; what is done stays.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn stop_job(&self, job: &str) -> Result<(), Error> {
        let call = Call::new(reqwest::Method::DELETE)
            .text("/v1/jobs/")
            .part(&job);
        self.transport.nothing(call).await
    }
}

/// The operations of `searches`.
#[derive(Clone, Debug)]
pub struct SearchesApi<'c> {
    pub(crate) transport: &'c Transport,
}

impl SearchesApi<'_> {
    /// Begins a search over branches, which goes on while the session continues. Effects are simulated unless `live` is set.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn begin_search(
        &self,
        session: &str,
        body: &NewSearch,
        given: &Given,
    ) -> Result<SearchBegunOrReceipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/searches")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Returns a search: its tree, with values and costs, and its winner so far.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn get_search(&self, session: &str, search: &str) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .text("/searches/")
            .part(&search);
        self.transport.json(call).await
    }

    /// Lists the searches of a session, with their trees.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn list_searches(&self, session: &str) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .text("/searches");
        self.transport.json(call).await
    }

    /// Ends a search with the best result so far.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn stop_search(
        &self,
        session: &str,
        search: &str,
        given: &Given,
    ) -> Result<Receipt, Error> {
        let call = Call::new(reqwest::Method::DELETE)
            .text("/v1/sessions/")
            .part(&session)
            .text("/searches/")
            .part(&search)
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }
}

/// The conditions of `list` of [`SessionsApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SessionsListQuery {
    /// The name of the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// Statuses, separated by commas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The key of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// A label: `name:value`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The beginning of the id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// A filter, as `steersman sessions --where` takes it: `status = waits and vendor = Acme and updated > -7d`.
    #[serde(rename = "where")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub where_: Option<String>,
    /// The position after which the list goes on: `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The most rows of a page, at most 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The conditions of `page` of [`SessionsApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SessionsPageQuery {
    /// The label or the id of a branch. Without one it is the current branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// The operations of `sessions`.
#[derive(Clone, Debug)]
pub struct SessionsApi<'c> {
    pub(crate) transport: &'c Transport,
}

impl SessionsApi<'_> {
    /// Sets entries of state: gives a permission, corrects a value. The log says who did it.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn edit_state(
        &self,
        session: &str,
        body: &StateEdit,
        given: &Given,
    ) -> Result<Receipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/edit")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Erases what was said in a session, at a line or by an effect. All else still verifies. Without `apply` it only says what would go.
    ///
    /// Nothing of the session may be open. A repetition finds nothing that is left to erase.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn erase_session(&self, session: &str, body: &Erasure) -> Result<Erased, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/erase")
            .body(body)?;
        self.transport.json(call).await
    }

    /// Lists the sessions that the token sees, newest first.
    ///
    /// With a filter that lets through few sessions, a page may be short, or empty, although there is a `next`.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn list(&self, query: &SessionsListQuery) -> Result<SessionList, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions")
            .query(query);
        self.transport.json(call).await
    }

    /// Binds a session to other values of `config`. Nothing of the session may be open.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn migrate_session(
        &self,
        session: &str,
        body: &ConfigChanges,
        given: &Given,
    ) -> Result<ConfigChanged, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/migrate")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Returns a session on one page: its branches, agents, state, effects, and what it waits for.
    ///
    /// The `ETag` is the last line: with `If-None-Match` the answer is 304 while nothing new is on disk.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn page(
        &self,
        session: &str,
        query: &SessionsPageQuery,
        given: &Given,
    ) -> Result<Option<Value>, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .query(query)
            .given(given);
        self.transport.changed(call).await
    }

    /// Says something to a session.
    ///
    /// The answer is a receipt. With `Prefer: wait=N` it is the state in which the session settles within N seconds.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn say(
        &self,
        session: &str,
        body: &Say,
        given: &Given,
    ) -> Result<TurnOrReceipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/messages")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Starts a session.
    ///
    /// Under an idempotency key the session has an id that follows from the key, so that a repetition finds it. With `Prefer: wait=N` the
    /// answer is the state in which the session settles within N seconds.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn start(&self, body: &Start, given: &Given) -> Result<TurnOrStarted, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }
}

/// The conditions of `list` of [`TokensApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TokensListQuery {
    /// The position after which the list goes on: `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The most rows, at most 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The operations of `tokens`.
#[derive(Clone, Debug)]
pub struct TokensApi<'c> {
    pub(crate) transport: &'c Transport,
}

impl TokensApi<'_> {
    /// Returns the token for a code, and forgets the code. The request needs no token.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn exchange_code(&self, body: &TokenCode) -> Result<ExchangedToken, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/token/exchange")
            .body(body)?;
        self.transport.json(call).await
    }

    /// Lists the tokens of the tenant, without their secrets.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn list(&self, query: &TokensListQuery) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/tokens")
            .query(query);
        self.transport.json(call).await
    }

    /// Makes a token of the same tenant.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn make(&self, body: &NewToken) -> Result<MadeToken, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/tokens")
            .body(body)?;
        self.transport.json(call).await
    }

    /// Returns a code for the token of the request. `exchange` turns it into the token, once and within 60 seconds: a browser is started with
    /// it in the address (`/#c=CODE`), so that no token is in an address.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn make_code(&self) -> Result<MadeCode, Error> {
        let call = Call::new(reqwest::Method::POST).text("/v1/token/code");
        self.transport.json(call).await
    }

    /// Returns what the token is and may do, and the version of the server.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn me(&self) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET).text("/v1/me");
        self.transport.json(call).await
    }

    /// Revokes a token of the tenant. It is invalid from now on.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn revoke(&self, name: &str) -> Result<(), Error> {
        let call = Call::new(reqwest::Method::DELETE)
            .text("/v1/tokens/")
            .part(&name);
        self.transport.nothing(call).await
    }
}

/// The conditions of `artifact` of [`ViewsApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewsArtifactQuery {
    /// The label or the id of a branch. Without one it is the current branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The number of the version. Without one it is the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// The conditions of `artifacts` of [`ViewsApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewsArtifactsQuery {
    /// The label or the id of a branch. Without one it is the current branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// The conditions of `context` of [`ViewsApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewsContextQuery {
    /// The label or the id of a branch. Without one it is the current branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// `whole`: as it was sent. `why`: where each part comes from. `diff`: what changed since the call before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub show: Option<String>,
}

/// The conditions of `contexts` of [`ViewsApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewsContextsQuery {
    /// The label or the id of a branch. Without one it is the current branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// The conditions of `diff_sessions` of [`ViewsApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewsDiffSessionsQuery {
    /// A session, or a branch of it by label or id: `SESSION` or `SESSION:BRANCH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a: Option<String>,
    /// Another one, or another branch of the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b: Option<String>,
}

/// The conditions of `draw_session` of [`ViewsApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewsDrawSessionQuery {
    /// The label or the id of a branch. Without one it is the current branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// The conditions of `effects` of [`ViewsApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewsEffectsQuery {
    /// The label or the id of a branch. Without one it is the current branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// The conditions of `graph` of [`ViewsApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewsGraphQuery {
    /// The label or the id of a branch. Without one it is the current branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// The conditions of `lines` of [`ViewsApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewsLinesQuery {
    /// The first line. Without one it is the first of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The last line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// The label or the id of a branch. Without one the lines of all branches come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The most lines, at most 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The conditions of `list_screen` of [`ViewsApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewsListScreenQuery {
    /// A filter, as `steersman sessions --where` takes it.
    #[serde(rename = "where")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub where_: Option<String>,
    /// The most sessions, at most 10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Sums by `status`, `code` or `network`, in place of the sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// True to count reruns in sums, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reruns: Option<bool>,
}

/// The conditions of `map_session` of [`ViewsApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewsMapSessionQuery {
    /// The label or the id of a branch. Without one the entries of all branches come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The line behind which the entries begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// The last line. Without one it is the last of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// Only each so-manyth entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
}

/// The conditions of `screen` of [`ViewsApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewsScreenQuery {
    /// The label or the id of a branch. Without one it is the current branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// A line as the program takes it behind `@`: `12`, `-2`, `head`, or the name of a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// The thing that is meant, by its name or id: a call, an agent, an effect, an artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The form, where a screen has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
    /// The line after which a log begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// The most lines of a log, at most 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u64>,
}

/// The conditions of `state` of [`ViewsApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewsStateQuery {
    /// The label or the id of a branch. Without one it is the current branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The number of a line. Without one it is the last line of the branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
}

/// The conditions of `story` of [`ViewsApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewsStoryQuery {
    /// The label or the id of a branch. Without one it is the current branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The first line. Without one it is the first of the branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The last line. Without one it is the last of the branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// True to get the last rows of these lines, otherwise the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<bool>,
    /// The most rows, at most 1000. The rows of a line stay together, so a page may have a few more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The most characters of a text. What is longer is cut, and has `cut`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chars: Option<u64>,
    /// Only rows that have this in their text, actor or note, in upper or lower case. Secrets are not found by a token that may not see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub find: Option<String>,
}

/// The conditions of `why` of [`ViewsApi`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewsWhyQuery {
    /// The label or the id of a branch. Without one it is the current branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// The operations of `views`.
#[derive(Clone, Debug)]
pub struct ViewsApi<'c> {
    pub(crate) transport: &'c Transport,
}

impl ViewsApi<'_> {
    /// Returns the content of an artifact, as an attachment.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn artifact(
        &self,
        session: &str,
        name: &str,
        query: &ViewsArtifactQuery,
    ) -> Result<Vec<u8>, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .text("/artifacts/")
            .part(&name)
            .query(query);
        self.transport.bytes(call).await
    }

    /// Lists all versions of the artifacts of a branch.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn artifacts(
        &self,
        session: &str,
        query: &ViewsArtifactsQuery,
    ) -> Result<ArtifactList, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .text("/artifacts")
            .query(query);
        self.transport.json(call).await
    }

    /// Returns the context of a model call, exactly as it was sent.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn context(
        &self,
        session: &str,
        effect: &str,
        query: &ViewsContextQuery,
    ) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .text("/contexts/")
            .part(&effect)
            .query(query);
        self.transport.json(call).await
    }

    /// Lists the model calls that led to the head of a branch.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn contexts(
        &self,
        session: &str,
        query: &ViewsContextsQuery,
    ) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .text("/contexts")
            .query(query);
        self.transport.json(call).await
    }

    /// Says how two sessions or branches differ: what they came to, where they went apart, what they did.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn diff_sessions(&self, query: &ViewsDiffSessionsQuery) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/diff")
            .query(query);
        self.transport.json(call).await
    }

    /// Returns the graph of a session as a picture: SVG.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn draw_session(
        &self,
        session: &str,
        query: &ViewsDrawSessionQuery,
    ) -> Result<Vec<u8>, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .text("/graph.svg")
            .query(query);
        self.transport.bytes(call).await
    }

    /// Lists the effects of a session on the world, also those that may have happened.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn effects(&self, session: &str, query: &ViewsEffectsQuery) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .text("/effects")
            .query(query);
        self.transport.json(call).await
    }

    /// Returns the graph of a session's definition with the marks of where it stands, and its shapes in coordinates.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn graph(&self, session: &str, query: &ViewsGraphQuery) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .text("/graph")
            .query(query);
        self.transport.json(call).await
    }

    /// Returns one line of the log.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn line(&self, session: &str, line: u64) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .text("/lines/")
            .part(&line);
        self.transport.json(call).await
    }

    /// Lists lines of the log: what each committed and recorded, as text.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn lines(&self, session: &str, query: &ViewsLinesQuery) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .text("/lines")
            .query(query);
        self.transport.json(call).await
    }

    /// Returns what a command of the program prints of all sessions that the token sees: `sessions`, `pending`.
    ///
    /// Secrets are masked unless the token may see them.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn list_screen(
        &self,
        screen: &str,
        query: &ViewsListScreenQuery,
    ) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/screens/")
            .part(&screen)
            .query(query);
        self.transport.json(call).await
    }

    /// Returns the session as columns, one entry for each interaction, question, decision, edit, branch and owner. Columns have the same
    /// length; lines and times are differences to the entry before.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn map_session(
        &self,
        session: &str,
        query: &ViewsMapSessionQuery,
    ) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .text("/map")
            .query(query);
        self.transport.json(call).await
    }

    /// Rates a version of an artifact of the current branch. The rating of a person takes precedence over those of agents.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn rate_artifact(
        &self,
        session: &str,
        name: &str,
        body: &ArtifactRating,
        given: &Given,
    ) -> Result<Receipt, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/sessions/")
            .part(&session)
            .text("/artifacts/")
            .part(&name)
            .text("/rating")
            .body(body)?
            .given(given)
            .takes_key();
        self.transport.json(call).await
    }

    /// Returns what a command of the program prints of a session: `artifacts`, `context`, `effects`, `graph`, `log`, `show`, `why`, and
    /// `waits` for the commands that answer questions.
    ///
    /// Secrets are masked, whatever the token allows, as a terminal does not show them. A context needs the permission `context`, and is
    /// shown as it was sent.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn screen(
        &self,
        session: &str,
        screen: &str,
        query: &ViewsScreenQuery,
    ) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .text("/screens/")
            .part(&screen)
            .query(query);
        self.transport.json(call).await
    }

    /// Returns the state of a branch, as of a line if one is named.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn state(&self, session: &str, query: &ViewsStateQuery) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .text("/state")
            .query(query);
        self.transport.json(call).await
    }

    /// Tells what happened on a branch, row by row, in plain words, as `steersman show` does.
    ///
    /// `before` is the last line in front of the page that has rows, `next` the first line behind it; each is absent where there is none.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn story(&self, session: &str, query: &ViewsStoryQuery) -> Result<StoryPage, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .text("/story")
            .query(query);
        self.transport.json(call).await
    }

    /// Explains from the log why an agent acted: the chain of reasons of the act of a line, or of a call or an effect.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn why(
        &self,
        session: &str,
        what: &str,
        query: &ViewsWhyQuery,
    ) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET)
            .text("/v1/sessions/")
            .part(&session)
            .text("/why/")
            .part(&what)
            .query(query);
        self.transport.json(call).await
    }
}

/// The operations of `webhooks`.
#[derive(Clone, Debug)]
pub struct WebhooksApi<'c> {
    pub(crate) transport: &'c Transport,
}

impl WebhooksApi<'_> {
    /// Deletes a webhook of the tenant. Nothing is sent to it any more.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn delete(&self, name: &str) -> Result<(), Error> {
        let call = Call::new(reqwest::Method::DELETE)
            .text("/v1/webhooks/")
            .part(&name);
        self.transport.nothing(call).await
    }

    /// Lists the webhooks of the tenant, without their secrets.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn list(&self) -> Result<Value, Error> {
        let call = Call::new(reqwest::Method::GET).text("/v1/webhooks");
        self.transport.json(call).await
    }

    /// Makes a webhook: from now on messages about sessions of the tenant are sent to an address.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn make(&self, body: &NewHook) -> Result<MadeHook, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/webhooks")
            .body(body)?;
        self.transport.json(call).await
    }

    /// Sends to a webhook again that got nothing any more, from where it stopped.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn resume(&self, name: &str) -> Result<(), Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/webhooks/")
            .part(&name)
            .text("/resume");
        self.transport.nothing(call).await
    }

    /// Begins to exchange the secret of a webhook: until the exchange is ended, each message has a signature with the new secret and one with the
    /// one before.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn rotate(&self, name: &str) -> Result<MadeHook, Error> {
        let call = Call::new(reqwest::Method::POST)
            .text("/v1/webhooks/")
            .part(&name)
            .text("/rotation");
        self.transport.json(call).await
    }

    /// Ends the exchange of a secret: the new secret alone signs.
    ///
    /// # Errors
    /// As [`Error`] says.
    pub async fn rotated(&self, name: &str) -> Result<(), Error> {
        let call = Call::new(reqwest::Method::DELETE)
            .text("/v1/webhooks/")
            .part(&name)
            .text("/rotation");
        self.transport.nothing(call).await
    }
}

impl crate::Client {
    /// Returns the operations of `branches`.
    pub fn branches(&self) -> BranchesApi<'_> {
        BranchesApi {
            transport: &self.transport,
        }
    }

    /// Returns the operations of `definitions`.
    pub fn definitions(&self) -> DefinitionsApi<'_> {
        DefinitionsApi {
            transport: &self.transport,
        }
    }

    /// Returns the operations of `events`.
    pub fn events(&self) -> EventsApi<'_> {
        EventsApi {
            transport: &self.transport,
        }
    }

    /// Returns the operations of `health`.
    pub fn health(&self) -> HealthApi<'_> {
        HealthApi {
            transport: &self.transport,
        }
    }

    /// Returns the operations of `memories`.
    pub fn memories(&self) -> MemoriesApi<'_> {
        MemoriesApi {
            transport: &self.transport,
        }
    }

    /// Returns the operations of `orders`.
    pub fn orders(&self) -> OrdersApi<'_> {
        OrdersApi {
            transport: &self.transport,
        }
    }

    /// Returns the operations of `questions`.
    pub fn questions(&self) -> QuestionsApi<'_> {
        QuestionsApi {
            transport: &self.transport,
        }
    }

    /// Returns the operations of `reruns`.
    pub fn reruns(&self) -> RerunsApi<'_> {
        RerunsApi {
            transport: &self.transport,
        }
    }

    /// Returns the operations of `searches`.
    pub fn searches(&self) -> SearchesApi<'_> {
        SearchesApi {
            transport: &self.transport,
        }
    }

    /// Returns the operations of `sessions`.
    pub fn sessions(&self) -> SessionsApi<'_> {
        SessionsApi {
            transport: &self.transport,
        }
    }

    /// Returns the operations of `tokens`.
    pub fn tokens(&self) -> TokensApi<'_> {
        TokensApi {
            transport: &self.transport,
        }
    }

    /// Returns the operations of `views`.
    pub fn views(&self) -> ViewsApi<'_> {
        ViewsApi {
            transport: &self.transport,
        }
    }

    /// Returns the operations of `webhooks`.
    pub fn webhooks(&self) -> WebhooksApi<'_> {
        WebhooksApi {
            transport: &self.transport,
        }
    }
}
