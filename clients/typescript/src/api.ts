// Made by `cargo xtask clients` from docs/reference/openapi.json. Do not edit.

import type { Call, Frame, Options } from "./call.js";

type Send = (call: Call) => Promise<unknown>;
type Open = (call: Call) => AsyncIterable<Frame>;

/** The last line of a branch that is adopted. */
export interface Adopt {
  /** The line. Without one it is the last line, or the line before the first simulated effect. */
  at?: number | null | undefined;
}

/** An answer. */
export interface Answer {
  /** The role in which it is answered. */
  as?: string | null | undefined;
  /** One of the options of the question. */
  option?: string | null | undefined;
  /** The text. Where a secret is asked for, it is sealed before it is stored. */
  text?: string | null | undefined;
}

/** An approval. */
export interface Approve {
  /** Arguments that replace those of the call, as far as the definition allows. */
  args?: Record<string, unknown> | null | undefined;
  /** The role in which it is decided. */
  as?: string | null | undefined;
}

/** The artifacts of a branch. */
export interface ArtifactList {
  /** All versions. */
  items: Array<ArtifactRow>;
}

/** A rating of a version of an artifact. */
export interface ArtifactRating {
  /** The role in which it is rated. */
  as?: string | null | undefined;
  /** From 1 to 5. */
  rating: number;
  /** The reason. */
  reason?: string | null | undefined;
  /** The number of the version. Without one it is the newest. */
  version?: number | null | undefined;
}

/** A version of an artifact. */
export interface ArtifactRow {
  /** The call that made it. */
  call: string;
  /** The digest of the content. */
  hash: string;
  /** The number of bytes. */
  len: number;
  /** The media type. */
  media: string;
  /** The name. */
  name: string;
  /** Its rating. */
  rating?: unknown | null | undefined;
  /** The number of the version. */
  version: number;
}

/** A wish to cancel. */
export interface Cancel {
  /** The role in which it is cancelled. */
  as?: string | null | undefined;
  /** The id of the call or agent, or the label or id of the branch. */
  id?: string | null | undefined;
  /** The work to cancel. */
  what: What;
}

/** A value of `config` before and after. */
export interface ConfigChange {
  /** The name of the value. */
  name: string;
  /** The value to which it is bound now. */
  new: unknown;
  /** The value to which the session was bound. */
  old: unknown;
}

/** Values that are bound. */
export interface ConfigChanged {
  /** Each value before and after. */
  changes: Array<ConfigChange>;
  /** The fate of the wish. */
  receipt: Receipt;
}

/** Other values of `config` to bind. */
export interface ConfigChanges {
  /** The role in which it is done. */
  as?: string | null | undefined;
  /** The values. */
  config: Record<string, unknown>;
}

/** The faults of a definition. */
export interface DefinitionFaults {
  /** Errors, warnings and notes. */
  diagnostics: Array<Record<string, unknown>>;
  /** Faults of what has to be registered in Rust, such as a tool that this text alone does not have. */
  in_rust: Array<string>;
  /** The name of the network, if it has no errors. */
  network?: string | null | undefined;
  /** True if it has no errors. */
  ok: boolean;
}

/** A definition to check. */
export interface DefinitionText {
  /** The texts of the files that it names, by their paths: prompts, schemas, imports. Files of the server are not read. */
  files?: Record<string, string> | null | undefined;
  /** The text of the definition. */
  text?: string | null | undefined;
}

/** A value of a definition. */
export interface DefinitionValue {
  /** Its path, such as `agents.desk.system`. */
  path: string;
  /** The value, as the definition has it. */
  value: unknown;
}

/** Values of a definition. */
export interface DefinitionValueList {
  /** The values, by their paths. */
  items: Array<DefinitionValue>;
}

/** The result of an erasure, or of one that is not carried out. */
export interface Erased {
  /** True if it is erased. */
  applied: boolean;
  /**
   * Number of contents of artifacts that go with it. They are not shown any more, and leave the store with the same `erase` of the
   * program while no other process has the store open.
   */
  contents: number;
  /** True if these memories are forgotten, or would be. */
  forgets: boolean;
  /** Number of memories that these sessions saved. */
  memories: number;
  /** The session that it repeats, which holds the same texts and stays. */
  origin?: string | null | undefined;
  /** The reruns that are erased with it. */
  reruns: Array<string>;
  /** The session. */
  session: string;
  /** Number of texts that are tombstones. */
  texts: number;
  /** True if every line that is left verifies. */
  verifies?: boolean | null | undefined;
}

/** The part of a session that is to be erased. */
export interface Erasure {
  /** True to leave its reruns as they are. They hold the same texts. */
  alone?: boolean | null | undefined;
  /** True to do it. Otherwise the answer says what would be erased. */
  apply?: boolean | null | undefined;
  /** The effect of which alone arguments and result are erased. */
  effect?: string | null | undefined;
  /** The line of which alone all texts are erased. */
  line?: number | null | undefined;
  /** True to forget also what it saved to memory. The token needs the permission `memory`. */
  memory?: boolean | null | undefined;
}

/** The token of a code. */
export interface ExchangedToken {
  /** The token itself. */
  token: string;
}

/** A file that comes with a request. It becomes an artifact under its name. */
export interface File {
  /** The content in base 64, if it is not text. */
  base64?: string | null | undefined;
  /** Its media type. Without one it follows from the name. */
  media_type?: string | null | undefined;
  /** The name of the artifact. */
  name: string;
  /** The content, if it is text. */
  text?: string | null | undefined;
}

/** Memories to forget. */
export interface ForgetMemories {
  /** True to do it. Otherwise the answer says which are meant, and nothing is done. */
  apply?: boolean | null | undefined;
  /** Their numbers. */
  memories?: Array<number> | null | undefined;
  /** Their scope. */
  scope?: string | null | undefined;
  /** The session that saved them. */
  session?: string | null | undefined;
}

/** The memories that are forgotten. */
export interface ForgottenMemories {
  /** True if they are forgotten. */
  applied: boolean;
  /** Number of memories. */
  count: number;
  /** Their numbers. */
  memories: Array<number>;
}

/** The fate of an effect in doubt. */
export type How =
  | "done"
  | "not_performed"
  | "fail";

/** A job. */
export interface Job {
  /** Differences of its runs to the session: paths of the definition, and fields of the request such as `say`. */
  changed?: Array<string> | null | undefined;
  /** Number of its runs that are done. */
  done: number;
  /** The problem by which it ended. */
  error?: Record<string, unknown> | null | undefined;
  /** The id of the job. */
  job: string;
  /** Number of its runs. */
  of: number;
  /** The results of these runs: the session of the rerun, and how it differs. */
  runs: Array<Record<string, unknown>>;
  /** The session that it is about, if the job is not lost. */
  session?: string | null | undefined;
  /** Its state. */
  state: JobState;
}

/** The state of a job. */
export type JobState =
  | "running"
  | "done"
  | "failed"
  | "stopped"
  | "lost";

/** Branches whose results are reported to the session. */
export interface Join {
  /** The arguments of that tool. Their texts are templates over `result`. */
  args?: Record<string, unknown> | null | undefined;
  /** The labels or the ids of the branches. */
  branches: Array<string>;
  /** The condition: `all`, `any`, a number of branches, or an expression. Without one it is `all`. */
  on?: string | null | undefined;
  /** A tool that is called next. */
  then?: string | null | undefined;
}

/** A code that was made. */
export interface MadeCode {
  /** The code. */
  code: string;
}

/** A webhook that was made, or its new secret. */
export interface MadeHook {
  /** The name of the webhook. */
  name: string;
  /** The secret that signs messages (`whsec_` and base64). It is shown only here. */
  secret: string;
}

/** A token that was made. */
export interface MadeToken {
  /** Its name. */
  name: string;
  /** The token itself. It is shown only here. */
  token: string;
}

/** A rating. */
export interface MemoryRating {
  /** The role in which it is rated. */
  as?: string | null | undefined;
  /** From 1 to 5. */
  rating: number;
  /** The reason. */
  reason?: string | null | undefined;
}

/** A branch to open. */
export interface NewBranch {
  /** The line at which it leaves the other branch. Without one it is the last line. */
  at?: number | null | undefined;
  /** The label or the id of the branch that it leaves. Without one it is the current branch. */
  from?: string | null | undefined;
  /** A label for people. */
  label?: string | null | undefined;
  /** True if effects that touch the world run on it, too. Otherwise they are simulated. */
  live?: boolean | null | undefined;
  /** The first message on it. */
  say?: string | null | undefined;
}

/** A webhook to make. */
export interface NewHook {
  /** Kinds of messages: `session.settled`, `session.failed`, `question.asked`, `effect.in_doubt`, `artifact.made`. Empty means all. */
  kinds?: Array<string> | null | undefined;
  /** The address to which messages are sent: `https`, without a user and a fragment. */
  url: string;
  /** The sessions: `definition`, `key` and `label`, as in the query of the list of sessions. Without it all are meant. */
  where?: string | null | undefined;
}

/** A search to begin. What it does not say follows from the plan that the agent declares, or has its usual value. */
export interface NewSearch {
  /** The line at which it begins. Without one it is the last of the branch. */
  at?: number | null | undefined;
  /** The label or the id of the branch. Without one it is the current branch. */
  branch?: string | null | undefined;
  /** The one who says what a branch is worth: a tool that only looks, or an agent. */
  by?: string | null | undefined;
  /** Maximum number of model calls. */
  calls?: number | null | undefined;
  /** Maximum number of blocks of a branch. */
  depth?: number | null | undefined;
  /** The value at which the search ends. */
  enough?: number | null | undefined;
  /** True if effects touch the world on all branches. Otherwise they are simulated. */
  live?: boolean | null | undefined;
  /** `best_of`, `beam`, `rollouts` or `mcts`. */
  method?: string | null | undefined;
  /** Maximum amount of money, in millionths of the currency. */
  micros?: number | null | undefined;
  /** Number of branches in all; of `beam` those of a level. */
  n?: number | null | undefined;
  /** Said there first. */
  say?: string | null | undefined;
  /** An expression over `answer`, `state` and `calls`: what a branch is worth. */
  score?: string | null | undefined;
  /** The seed of sampling. Without one it is the session's. */
  seed?: number | null | undefined;
  /** Maximum number of tokens. */
  tokens?: number | null | undefined;
  /** Of `beam`: how many of a level go on. Of `rollouts`: first blocks. Of `mcts`: branches at one place. */
  width?: number | null | undefined;
}

/** A token to make. */
export interface NewToken {
  /** The permissions. */
  allows?: Array<Permission> | null | undefined;
  /** Names of the definitions that it may start. Empty means all. */
  definitions?: Array<string> | null | undefined;
  /** The time after which it is invalid, in RFC 3339. */
  expires?: string | null | undefined;
  /** A note for people. */
  note?: string | null | undefined;
  /** Roles in which its owner may act. */
  roles?: Array<string> | null | undefined;
  /** The subject whose sessions alone it may use. */
  subject?: string | null | undefined;
}

/** An order about a tool. */
export interface OfTool {
  /** The role in which it is given. */
  as?: string | null | undefined;
  /** The tool. Without one all tools that may change the world are meant. */
  tool?: string | null | undefined;
}

/** A branch that was opened. */
export interface Opened {
  /** The id of the branch. */
  branch: string;
  /** The line that opened it. */
  line: number;
  /** The session. */
  session: string;
}

/** The role in which an order is given. */
export interface Order {
  /** The role in which it is given. */
  as?: string | null | undefined;
}

/** The acts that many sessions can be given. Questions are decided one by one, because a person has to read each of them. */
export type OrderAct =
  | "cancel"
  | "pause"
  | "resume"
  | "hold"
  | "release"
  | "retry"
  | "edit"
  | "migrate";

/** The fates of an act in one of many sessions. */
export type OrderFate =
  | "taken"
  | "waits"
  | "queued"
  | "known"
  | "refused"
  | "failed"
  | "left";

/** A session of an act for many. */
export interface OrderGiven {
  fate?: OrderFate | null | undefined;
  /** The line that took it. */
  line?: number | null | undefined;
  /** The session. */
  session: string;
  /** The reason why it has no effect, or none yet. */
  why?: string | null | undefined;
}

/** An act for many sessions. */
export interface OrderMany {
  /** The act. */
  act: OrderAct;
  /** True to do it. Otherwise the answer says which sessions are meant, and nothing is done. */
  apply?: boolean | null | undefined;
  /** The role in which it is given. */
  as?: string | null | undefined;
  /** Of `migrate`: the values of `config`. */
  config?: Record<string, unknown> | null | undefined;
  /** The sessions by their ids. */
  sessions?: Array<string> | null | undefined;
  /** Of `edit`: the entries with their new values. `null` unsets one. */
  state?: Record<string, unknown> | null | undefined;
  /** Of `hold` and `release`: the tool. Without one all tools that may change the world are meant. */
  tool?: string | null | undefined;
  /** The sessions by a filter: `status = waits and vendor = Acme`. A request has this or `sessions`. */
  where?: string | null | undefined;
}

/** The sessions of an act, and what became of it. */
export interface OrdersGiven {
  /** True if the act was given. */
  applied: boolean;
  /** Number of sessions that are meant. */
  count: number;
  /** The sessions: those that a filter lets through are newest first, those that were named are in the order of their ids. */
  items: Array<OrderGiven>;
}

/** Something that a token may allow. */
export type Permission =
  | "read"
  | "context"
  | "write"
  | "events"
  | "decide"
  | "operate"
  | "time"
  | "memory"
  | "admin";

/** An event from outside. */
export interface Post {
  /** The name of the definition. */
  definition?: string | null | undefined;
  /** The name of the event. */
  event?: string | null | undefined;
  /** Its fields. An artifact is an object of `name`, `media_type`, and `text` or `base64`. */
  fields?: Record<string, unknown> | null | undefined;
  /** The session for which it is, if the definition does not say it. */
  session?: string | null | undefined;
}

/** The fate of an event. */
export interface Posted {
  /** The fate of the event. */
  sent: Where;
  /** The session that it went to. */
  session?: string | null | undefined;
}

/** The reason why a request was not carried out (RFC 9457). */
export interface Problem {
  /** The code that programs branch on. */
  code: ProblemCode;
  /** The fault, and what to do. */
  detail: string;
  /** Errors of a definition. */
  diagnostics?: Array<unknown> | null | undefined;
  /** The way out, where it is not a part of the detail. */
  help?: string | null | undefined;
  /** The status of the response. */
  status: number;
  /** A short title that is the same for every problem of this code. */
  title: string;
  /** `urn:steersman:problem:` and the code. */
  type: string;
}

/** The code that programs branch on. */
export type ProblemCode =
  | "body"
  | "query"
  | "cursor"
  | "id"
  | "token"
  | "scope"
  | "role_not_yours"
  | "origin"
  | "host"
  | "path"
  | "session"
  | "branch"
  | "line"
  | "question"
  | "effect"
  | "artifact"
  | "response"
  | "definition"
  | "job"
  | "search"
  | "memory"
  | "unknown_token"
  | "webhook"
  | "method"
  | "repeated"
  | "exists"
  | "busy"
  | "unbound"
  | "moved"
  | "too_large"
  | "media"
  | "rate"
  | "streams"
  | "refused"
  | "faulty_definition"
  | "damaged"
  | "internal"
  | "store"
  | "stopping"
  | "late"
  | "failed";

/** Something that a session waits for. */
export interface Question {
  /** The name of the agent in the definition. */
  agent: string;
  /** The arguments of the call, without secret ones. */
  args?: unknown | null | undefined;
  /** The reason for the question. */
  because?: string | null | undefined;
  /** The branch of the effect. */
  branch: string;
  /** The people who may end the wait: `user`, people of the definition, `any`. One of them is enough. */
  by: Array<string>;
  /** The time at which the wait ends by itself. */
  due?: string | null | undefined;
  /** Arguments that an approver may change. */
  edit: Array<string>;
  /** The effect that waits. */
  effect: string;
  /** Effects of the same tool with other arguments, on lines that the branch does not have. */
  elsewhere?: Array<unknown> | null | undefined;
  /** The roles that may end the wait. */
  for: Array<string>;
  /** The address of an answer: the effect, and the line of the hold. */
  id: string;
  /** The kind of the wait. */
  kind: QuestionKind;
  /** True if no branch waits for the effect any more. */
  left: boolean;
  /** `doubt`: the parts of the result that a person must give if the effect happened. */
  needs: Array<string>;
  /** The name of the definition of the session, where `session` is named. */
  network?: string | null | undefined;
  /** The person who is asked once `due` has passed. */
  next?: string | null | undefined;
  /** Answers that may be chosen. */
  options: Array<string>;
  /** The place that does not answer. */
  place?: string | null | undefined;
  /** `doubt`: the probe that asks whether the effect happened. */
  probe?: unknown | null | undefined;
  /** The earlier equal effect, which was done or is in doubt. */
  repeats?: string | null | undefined;
  /** The session. A turn, which is of one session, leaves it out. */
  session?: string | null | undefined;
  /** Names of artifacts that are shown with it. */
  show: Array<string>;
  /** The time at which the session began to wait. */
  since: string;
  /** The text of the question, or the name of the event. */
  text: string;
  /** The tool, if a tool was called. */
  tool?: string | null | undefined;
}

/** The kinds of waits. */
export type QuestionKind =
  | "approval"
  | "input"
  | "doubt"
  | "budget"
  | "repeat"
  | "question"
  | "event"
  | "timer"
  | "again"
  | "hold"
  | "outage";

/** A list of questions. */
export interface QuestionList {
  /** The questions. */
  items: Array<Question>;
}

/** The receipt of a message. */
export interface Receipt {
  /** The fate of the message so far. */
  fate: Stands;
  /** The line that took the message. */
  line?: number | null | undefined;
  /** The id of the message. Events name it when the session takes it: `accepted`, `refused`. */
  message: string;
  /** The session. */
  session: string;
  /** The condition for which the message waits. */
  why?: string | null | undefined;
}

/** A rejection. */
export interface Reject {
  /** The role in which it is decided. */
  as?: string | null | undefined;
  /** The reason, which the model reads. */
  reason?: string | null | undefined;
}

/** The changes of a rerun. Without any, the session is repeated as it was, and nobody is asked. */
export interface RerunChanges {
  /** The last line that stays as it was. Without one everything is run again. */
  at?: number | null | undefined;
  /** The label or the id of a branch. Without one it is the current branch. */
  branch?: string | null | undefined;
  /** Values of `config` in place of those that the session took. */
  config?: Record<string, unknown> | null | undefined;
  /** The name of another definition of the server. */
  definition?: string | null | undefined;
  /** True to let effects touch the world that are not on record. Otherwise they are simulated. */
  live?: boolean | null | undefined;
  /** A name for it: its label `rerun`. */
  name?: string | null | undefined;
  /** The one who answers for people: `recorded`, `stop`, or an agent for questions without a recorded answer. Without it `recorded`. */
  people?: string | null | undefined;
  /** The number of times, at most 20. Without it once. */
  repeat?: number | null | undefined;
  /** Said at the line, in place of the next recorded message. */
  say?: string | null | undefined;
  /** Values of the definition by their paths: `models.default.model`, `agents.desk.system`. */
  set?: Record<string, unknown> | null | undefined;
}

/** A person's statement about an effect in doubt. */
export interface Resolve {
  /** The role in which it is decided. */
  as?: string | null | undefined;
  /** The fate of the effect. */
  how: How;
  /** The result, if it happened, in the form that the tool would have returned. */
  result?: unknown | null | undefined;
}

/** An order to try again. */
export interface Retry {
  /** The role in which it is given. */
  as?: string | null | undefined;
  /** The effect. Without one everything that waits for its next attempt is meant. */
  effect?: string | null | undefined;
}

/** A place to go back to. */
export interface Rewind {
  /** The line to go back to. */
  at: number;
  /** The label or the id of the branch. Without one it is the current branch. */
  branch?: string | null | undefined;
  /** A label for people. */
  label?: string | null | undefined;
  /** The first message there. */
  say?: string | null | undefined;
}

/** A message to a session. */
export interface Say {
  /** The role in which it is said. */
  as?: string | null | undefined;
  /** The label or the id of a branch. Without one it is the current branch. */
  branch?: string | null | undefined;
  /** Files that come with the message. */
  files?: Array<File> | null | undefined;
  /** True to cancel first whatever is open. */
  interrupt?: boolean | null | undefined;
  /** The text. */
  text?: string | null | undefined;
  /** The id of the agent or question that is meant. Without one it is the agent that has the floor. */
  to?: string | null | undefined;
}

/** A search that has begun. */
export interface SearchBegun {
  /** The line that began it. */
  line: number;
  /** The id of the search. */
  search: string;
  /** The session. */
  session: string;
}

/** The server. */
export interface ServerInfo {
  /** Names of its definitions. */
  definitions: Array<string>;
  /** Number of sessions that it drives now. */
  driven: number;
  /** True if it drives the sessions of its store. */
  driving: boolean;
  /** The protocols that it speaks in addition to its own. */
  protocols: Array<string>;
  /** Its version. */
  version: string;
  /** Version of the JSON of all views. Additions do not count. */
  views: number;
}

/** A page of sessions. */
export interface SessionList {
  /** The sessions, newest first. */
  items: Array<SessionRow>;
  /** The value of `after` for the next page, if there is one. */
  next?: string | null | undefined;
}

/** A session in a list. */
export interface SessionRow {
  /** The money spent, in the currency of the prices. */
  cost: number;
  /** The time of its creation. */
  created: string;
  /** A short digest of its definition. */
  definition: string;
  /** Its key. */
  key?: string | null | undefined;
  /** Names and values of its labels. */
  labels: Record<string, unknown>;
  /** The last line on disk. */
  line: number;
  /** The number of model calls. */
  model_calls: number;
  /** The name of its definition. */
  network: string;
  /** The values of the definition's `outcome`. */
  outcome: unknown;
  /** The process that owns it now. */
  owner?: string | null | undefined;
  /** Calls that wait for a place that does not answer. */
  places?: Array<unknown> | null | undefined;
  /** The id. */
  session: string;
  /** Its status: `running`, `answered`, `waits`, `doubt`, `limit`, `failed`, `cancelled`, `paused`, `interrupted`, `new`. */
  status: string;
  /** The number of tokens spent. */
  tokens: number;
  /** The time of the last commit. */
  updated: string;
}

/** The fate of a message so far. */
export type Stands =
  | "taken"
  | "waits"
  | "queued"
  | "known";

/** A session to start. */
export interface Start {
  /** Arguments for the parameters of the agent that begins. */
  args?: Record<string, unknown> | null | undefined;
  /** The role in which the message is said. */
  as?: string | null | undefined;
  /** Values of `config` that take precedence over those of the server. */
  config?: Record<string, unknown> | null | undefined;
  /** The name of the definition. */
  definition: string;
  /** The agent that begins. Without one it is the first entry of the definition. */
  entry?: string | null | undefined;
  /** Files that come with the arguments or the message. */
  files?: Array<File> | null | undefined;
  /** The key by which events find the session. One session of a definition has it. */
  key?: string | null | undefined;
  /** The first message. */
  message?: string | null | undefined;
  /** The seed of all randomness. Without one it is random. */
  seed?: number | null | undefined;
}

/** A session that was started. */
export interface Started {
  /** The last line of its log. */
  head: number;
  /** The id of the session. */
  session: string;
}

/** Entries of state to set. */
export interface StateEdit {
  /** The role in which they are set. The definition may name the people who may. */
  as?: string | null | undefined;
  /** The entries with their new values. `null` unsets one. */
  state: Record<string, unknown>;
}

/** A part of a story. */
export interface StoryPage {
  /** The last line in front of the page that has rows. */
  before?: number | null | undefined;
  /** The id of the branch. */
  branch: string;
  /** The last line of the branch. */
  head: number;
  /** The rows, oldest first. */
  items: Array<StoryRow>;
  /** The first line behind the page that has rows. */
  next?: number | null | undefined;
}

/** A row of a story. */
export interface StoryRow {
  /** The id of the agent that the row belongs to. */
  agent?: string | null | undefined;
  /** The time of that line. */
  at: string;
  /** The branch of that line. */
  branch: string;
  /** True if the text was cut. */
  cut?: boolean | null | undefined;
  /** The line of the log that the row is about. */
  line: number;
  /** A note next to the text: a class, a duration, an end. */
  note: string;
  /** The line of the call that the row is about, for rows about a result, an attempt or a question. */
  of?: number | null | undefined;
  /** The number of owners that took the session over, for a row about that. */
  owners?: number | null | undefined;
  /** The text. */
  text: string;
  /** The kind of row. */
  tone: StoryTone;
  /** Milliseconds that the model worked on the answer with which the row begins. */
  took?: number | null | undefined;
  /** The actor: an agent, `you`, a role; empty for the result of a call. */
  who: string;
}

/** The kinds of rows of a story. */
export type StoryTone =
  | "said"
  | "called"
  | "chose"
  | "came"
  | "wrong"
  | "asked"
  | "decided"
  | "doubt"
  | "engine"
  | "found"
  | "begins";

/** A code to exchange. */
export interface TokenCode {
  /** The code. */
  code: string;
}

/** The state in which a session settled: it goes on only with an input. */
export interface Turn {
  /** `answered`: the answer. `limit`: the answer that a limit demanded, if there is one. */
  answer?: string | null | undefined;
  /** `answered`: texts that the user heard before the answer. */
  before?: Array<string> | null | undefined;
  /** `limit`, `failed`: the code. */
  code?: string | null | undefined;
  /** The position in the events. */
  cursor: string;
  /** The last line on disk. */
  line: number;
  /** `failed`: the reason. */
  message?: string | null | undefined;
  /** `asks`, `doubt`, `waits`: everything that is open. */
  pending?: Array<Question> | null | undefined;
  /** The session. */
  session: string;
  /** The kind of state. It says which of the other fields there are. */
  status: TurnStatus;
  /** `answered`: true if the task is over. */
  task?: boolean | null | undefined;
}

/** The kinds of states in which a session settles. */
export type TurnStatus =
  | "answered"
  | "asks"
  | "doubt"
  | "waits"
  | "limit"
  | "failed"
  | "cancelled"
  | "paused";

/** The work to cancel. */
export type What =
  | "turn"
  | "call"
  | "agent"
  | "branch"
  | "session";

/** The fates of an event. */
export type Where =
  | "known"
  | "started"
  | "session"
  | "offered";

/** The operations of `branches`. */
export class BranchesApi {
  constructor(
    private readonly send: Send,
  ) {}

  /**
   * Adopts a branch: the session continues with its lines.
   *
   * @param session The id of the session
   * @param branch The label or the id of the branch
   */
  adopt(
    session: string,
    branch: string,
    body: Adopt = {},
    options: Pick<Options, "key" | "ifMatch" | "signal"> = {},
  ): Promise<Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/branches/${encodeURIComponent(branch)}/adopt`,
      body,
      takesKey: true,
      options,
    }) as Promise<Receipt>;
  }

  /**
   * Cancels everything that is open on a branch.
   *
   * @param session The id of the session
   * @param branch The label or the id of the branch
   */
  cancel(
    session: string,
    branch: string,
    options: Pick<Options, "key" | "ifMatch" | "signal"> = {},
  ): Promise<Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/branches/${encodeURIComponent(branch)}/cancel`,
      takesKey: true,
      options,
    }) as Promise<Receipt>;
  }

  /**
   * Makes a branch the current one, to which everything goes that names no branch.
   *
   * @param session The id of the session
   * @param branch The label or the id of the branch
   */
  current(
    session: string,
    branch: string,
    options: Pick<Options, "key" | "ifMatch" | "signal"> = {},
  ): Promise<Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/branches/${encodeURIComponent(branch)}/current`,
      takesKey: true,
      options,
    }) as Promise<Receipt>;
  }

  /**
   * Opens a branch at a line. It is dry unless `live` is set: effects that touch the world are simulated.
   *
   * @param session The id of the session
   */
  fork(
    session: string,
    body: NewBranch = {},
    options: Pick<Options, "key" | "ifMatch" | "signal"> = {},
  ): Promise<Opened | Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/branches`,
      body,
      takesKey: true,
      options,
    }) as Promise<Opened | Receipt>;
  }

  /**
   * Reports the results of branches to the session once a condition holds.
   *
   * @param session The id of the session
   */
  join(
    session: string,
    body: Join,
    options: Pick<Options, "key" | "ifMatch" | "signal"> = {},
  ): Promise<Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/join`,
      body,
      takesKey: true,
      options,
    }) as Promise<Receipt>;
  }

  /**
   * Lists the branches of a session.
   *
   * @param session The id of the session
   */
  list(
    session: string,
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}/branches`,
      options,
    }) as Promise<unknown>;
  }

  /**
   * Goes back to a line. What comes after it stays readable, and the new branch is the current one.
   *
   * @param session The id of the session
   */
  rewind(
    session: string,
    body: Rewind,
    options: Pick<Options, "key" | "ifMatch" | "signal"> = {},
  ): Promise<Opened | Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/rewind`,
      body,
      takesKey: true,
      options,
    }) as Promise<Opened | Receipt>;
  }

  /**
   * Says something on a branch.
   *
   * @param session The id of the session
   * @param branch The label or the id of the branch
   */
  say(
    session: string,
    branch: string,
    body: Say = {},
    options: Pick<Options, "key" | "wait" | "signal"> = {},
  ): Promise<Turn | Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/branches/${encodeURIComponent(branch)}/messages`,
      body,
      takesKey: true,
      options,
    }) as Promise<Turn | Receipt>;
  }
}

/** The operations of `definitions`. */
export class DefinitionsApi {
  constructor(
    private readonly send: Send,
  ) {}

  /** Checks the text of a definition: returns its errors and warnings. Nothing is run, and nothing is kept. */
  checkDefinition(
    body: DefinitionText = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<DefinitionFaults> {
    return this.send({
      verb: "POST",
      path: `/v1/check`,
      body,
      options,
    }) as Promise<DefinitionFaults>;
  }

  /**
   * Returns the picture of a definition as SVG.
   *
   * @param definition The name of the definition
   */
  drawDefinition(
    definition: string,
    options: Pick<Options, "signal"> = {},
  ): Promise<Uint8Array> {
    return this.send({
      verb: "GET",
      path: `/v1/definitions/${encodeURIComponent(definition)}/graph.svg`,
      answer: "bytes",
      options,
    }) as Promise<Uint8Array>;
  }

  /**
   * Returns the graph of a definition, and its shapes in coordinates.
   *
   * @param definition The name of the definition
   */
  graph(
    definition: string,
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/definitions/${encodeURIComponent(definition)}/graph`,
      options,
    }) as Promise<unknown>;
  }

  /** Lists the definitions that the token may start, with the parameters of their entries as JSON Schema. */
  list(
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/definitions`,
      options,
    }) as Promise<unknown>;
  }

  /**
   * Returns a definition: the parameters of its entries and the fields of its events as JSON Schema, and its people.
   *
   * @param definition The name of the definition
   */
  one(
    definition: string,
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/definitions/${encodeURIComponent(definition)}`,
      options,
    }) as Promise<unknown>;
  }
}

/** The operations of `events`. */
export class EventsApi {
  constructor(
    private readonly send: Send,
    private readonly open: Open,
  ) {}

  /**
   * Follows the events of a session as server-sent events.
   *
   * The first is `hello` with the position, the last line, and who drives the session. The id of an event is its cursor; streamed
   * pieces have none, so a client that comes back with its last id misses nothing and gets nothing twice. A comment comes every 15
   * seconds.
   *
   * @param session The id of the session
   */
  follow(
    session: string,
    query: { from?: string | undefined; kinds?: string | undefined; branch?: string | undefined; until?: string | undefined } = {},
    options: Pick<Options, "lastEventId" | "signal"> = {},
  ): AsyncIterable<Frame> {
    return this.open({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}/events`,
      query,
      options,
    });
  }

  /**
   * Sends an event. As the definition says, it goes to a session, starts one, or is offered to the waits that match.
   *
   * The id that the definition gives the event is accepted once, so the request can be repeated.
   */
  post(
    body: Post = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<Posted> {
    return this.send({
      verb: "POST",
      path: `/v1/events`,
      body,
      options,
    }) as Promise<Posted>;
  }

  /**
   * Follows the sessions that the token sees, as server-sent events.
   *
   * The first event is `hello`. `session` has the row of a session that changed, as lists have it; `left` names one that changed and
   * that the filter does not let through; `skipped` says how many changes a slow client missed. Events have no ids: a client lists the
   * sessions once `hello` has come, and again after a cut or a `skipped`.
   */
  watchSessions(
    query: { where?: string | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): AsyncIterable<Frame> {
    return this.open({
      verb: "GET",
      path: `/v1/events/stream`,
      query,
      options,
    });
  }
}

/** The operations of `health`. */
export class HealthApi {
  constructor(
    private readonly send: Send,
  ) {}

  /** Returns this document. */
  document(
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/openapi.json`,
      options,
    }) as Promise<unknown>;
  }

  /** Says what the server is and does. Only an administrator of the tenant without a name may know it. */
  getServer(
    options: Pick<Options, "signal"> = {},
  ): Promise<ServerInfo> {
    return this.send({
      verb: "GET",
      path: `/v1/server`,
      options,
    }) as Promise<ServerInfo>;
  }

  /** Says that the process answers. */
  livez(
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/livez`,
      options,
    }) as Promise<unknown>;
  }

  /** Says whether the server can do its work: it drives the store, the store answers, and it does not stop. */
  readyz(
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/readyz`,
      options,
    }) as Promise<unknown>;
  }
}

/** The operations of `memories`. */
export class MemoriesApi {
  constructor(
    private readonly send: Send,
  ) {}

  /**
   * Forgets memories: by their numbers, of a session, or all of a scope. Without `apply` it only says which they are.
   *
   * Contents that nothing names any more stay in the store until `steersman gc` collects them.
   */
  forgetMemories(
    body: ForgetMemories = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<ForgottenMemories> {
    return this.send({
      verb: "POST",
      path: `/v1/memories/forget`,
      body,
      options,
    }) as Promise<ForgottenMemories>;
  }

  /**
   * Forgets a memory. Sessions that found it keep what they were shown.
   *
   * @param memory The number of the memory
   */
  forgetMemory(
    memory: number,
    options: Pick<Options, "signal"> = {},
  ): Promise<void> {
    return this.send({
      verb: "DELETE",
      path: `/v1/memories/${encodeURIComponent(memory)}`,
      options,
    }) as Promise<void>;
  }

  /**
   * Returns a memory with its content.
   *
   * @param memory The number of the memory
   */
  getMemory(
    memory: number,
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/memories/${encodeURIComponent(memory)}`,
      options,
    }) as Promise<unknown>;
  }

  /** Lists the memories that the token sees, newest first, without their contents. */
  listMemories(
    query: { scope?: string | undefined; session?: string | undefined; replaced?: boolean | undefined; after?: number | undefined; limit?: number | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/memories`,
      query,
      options,
    }) as Promise<unknown>;
  }

  /**
   * Rates a memory. The rating of a person takes precedence over those of agents; the last one counts.
   *
   * @param memory The number of the memory
   */
  rateMemory(
    memory: number,
    body: MemoryRating,
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "POST",
      path: `/v1/memories/${encodeURIComponent(memory)}/rating`,
      body,
      options,
    }) as Promise<unknown>;
  }

  /** Finds the memories that fit words best, as agents of their scope would find them. */
  searchMemories(
    query: { query?: string | undefined; scope?: string | undefined; limit?: number | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/memories/search`,
      query,
      options,
    }) as Promise<unknown>;
  }
}

/** The operations of `orders`. */
export class OrdersApi {
  constructor(
    private readonly send: Send,
  ) {}

  /**
   * Cancels a turn, a call, an agent, a branch or, with the permission `operate`, a whole session.
   *
   * @param session The id of the session
   */
  cancel(
    session: string,
    body: Cancel,
    options: Pick<Options, "key" | "signal"> = {},
  ): Promise<Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/cancel`,
      body,
      takesKey: true,
      options,
    }) as Promise<Receipt>;
  }

  /**
   * Keeps effects of a tool from beginning until they are released.
   *
   * @param session The id of the session
   */
  hold(
    session: string,
    body: OfTool = {},
    options: Pick<Options, "key" | "signal"> = {},
  ): Promise<Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/hold`,
      body,
      takesKey: true,
      options,
    }) as Promise<Receipt>;
  }

  /**
   * Gives an act to all sessions that a filter lets through, or to those that are named. Without `apply` it only says which they are.
   *
   * An act that one session refuses is still given to the others. With an idempotency key, each session takes it once.
   */
  orderMany(
    body: OrderMany,
    options: Pick<Options, "key" | "signal"> = {},
  ): Promise<OrdersGiven> {
    return this.send({
      verb: "POST",
      path: `/v1/orders`,
      body,
      takesKey: true,
      options,
    }) as Promise<OrdersGiven>;
  }

  /**
   * Pauses a session: nothing new begins until it is resumed.
   *
   * @param session The id of the session
   */
  pause(
    session: string,
    body: Order = {},
    options: Pick<Options, "key" | "signal"> = {},
  ): Promise<Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/pause`,
      body,
      takesKey: true,
      options,
    }) as Promise<Receipt>;
  }

  /**
   * Takes a hold back.
   *
   * @param session The id of the session
   */
  release(
    session: string,
    body: OfTool = {},
    options: Pick<Options, "key" | "signal"> = {},
  ): Promise<Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/release`,
      body,
      takesKey: true,
      options,
    }) as Promise<Receipt>;
  }

  /**
   * Ends a pause.
   *
   * @param session The id of the session
   */
  resume(
    session: string,
    body: Order = {},
    options: Pick<Options, "key" | "signal"> = {},
  ): Promise<Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/resume`,
      body,
      takesKey: true,
      options,
    }) as Promise<Receipt>;
  }

  /**
   * Tries again what failed.
   *
   * @param session The id of the session
   */
  retry(
    session: string,
    body: Retry = {},
    options: Pick<Options, "key" | "signal"> = {},
  ): Promise<Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/retry`,
      body,
      takesKey: true,
      options,
    }) as Promise<Receipt>;
  }
}

/** The operations of `questions`. */
export class QuestionsApi {
  constructor(
    private readonly send: Send,
  ) {}

  /**
   * Answers a question, or gives a secret that was asked for.
   *
   * @param session The id of the session
   * @param question The id of the question
   */
  answer(
    session: string,
    question: string,
    body: Answer = {},
    options: Pick<Options, "key" | "wait" | "signal"> = {},
  ): Promise<Turn | Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/questions/${encodeURIComponent(question)}/answer`,
      body,
      takesKey: true,
      options,
    }) as Promise<Turn | Receipt>;
  }

  /**
   * Allows a held effect to run once, with exactly its arguments.
   *
   * @param session The id of the session
   * @param question The id of the question
   */
  approve(
    session: string,
    question: string,
    body: Approve = {},
    options: Pick<Options, "key" | "wait" | "signal"> = {},
  ): Promise<Turn | Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/questions/${encodeURIComponent(question)}/approve`,
      body,
      takesKey: true,
      options,
    }) as Promise<Turn | Receipt>;
  }

  /** Lists what waits for people, events and times, in all sessions that the token sees, soonest due first. */
  list(
    query: { role?: string | undefined; kind?: string | undefined; definition?: string | undefined; limit?: number | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<QuestionList> {
    return this.send({
      verb: "GET",
      path: `/v1/questions`,
      query,
      options,
    }) as Promise<QuestionList>;
  }

  /**
   * Lists what a session waits for, on all branches.
   *
   * @param session The id of the session
   */
  ofSession(
    session: string,
    options: Pick<Options, "signal"> = {},
  ): Promise<QuestionList> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}/questions`,
      options,
    }) as Promise<QuestionList>;
  }

  /**
   * Refuses a held effect.
   *
   * @param session The id of the session
   * @param question The id of the question
   */
  reject(
    session: string,
    question: string,
    body: Reject = {},
    options: Pick<Options, "key" | "wait" | "signal"> = {},
  ): Promise<Turn | Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/questions/${encodeURIComponent(question)}/reject`,
      body,
      takesKey: true,
      options,
    }) as Promise<Turn | Receipt>;
  }

  /**
   * Says whether an effect in doubt happened.
   *
   * @param session The id of the session
   * @param question The id of the question
   */
  resolve(
    session: string,
    question: string,
    body: Resolve,
    options: Pick<Options, "key" | "wait" | "signal"> = {},
  ): Promise<Turn | Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/questions/${encodeURIComponent(question)}/resolve`,
      body,
      takesKey: true,
      options,
    }) as Promise<Turn | Receipt>;
  }
}

/** The operations of `reruns`. */
export class RerunsApi {
  constructor(
    private readonly send: Send,
  ) {}

  /**
   * Tells how a job stands. A job whose process is gone is `lost`; the sessions that it made stay.
   *
   * @param job The id of the job
   */
  getJob(
    job: string,
    options: Pick<Options, "wait" | "signal"> = {},
  ): Promise<Job> {
    return this.send({
      verb: "GET",
      path: `/v1/jobs/${encodeURIComponent(job)}`,
      options,
    }) as Promise<Job>;
  }

  /**
   * Lists the values of a session's definition that a rerun may set. Those that the definition does not declare may be set, too.
   *
   * @param session The id of the session
   */
  listRerunValues(
    session: string,
    options: Pick<Options, "signal"> = {},
  ): Promise<DefinitionValueList> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}/reruns/values`,
      options,
    }) as Promise<DefinitionValueList>;
  }

  /**
   * Runs a session again from its recording with something changed, as new sessions. Effects are simulated unless `live` is set.
   *
   * The answer comes at once: `GET /v1/jobs/{job}` tells how it goes on. The new sessions have the label `rerun_of`.
   *
   * @param session The id of the session
   */
  rerunSession(
    session: string,
    body: RerunChanges = {},
    options: Pick<Options, "key" | "wait" | "signal"> = {},
  ): Promise<Job> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/reruns`,
      body,
      takesKey: true,
      options,
    }) as Promise<Job>;
  }

  /**
   * Stops a job. The rerun that runs is left paused after its next line; what is done stays.
   *
   * @param job The id of the job
   */
  stopJob(
    job: string,
    options: Pick<Options, "signal"> = {},
  ): Promise<void> {
    return this.send({
      verb: "DELETE",
      path: `/v1/jobs/${encodeURIComponent(job)}`,
      options,
    }) as Promise<void>;
  }
}

/** The operations of `searches`. */
export class SearchesApi {
  constructor(
    private readonly send: Send,
  ) {}

  /**
   * Begins a search over branches, which goes on while the session continues. Effects are simulated unless `live` is set.
   *
   * @param session The id of the session
   */
  beginSearch(
    session: string,
    body: NewSearch = {},
    options: Pick<Options, "key" | "ifMatch" | "signal"> = {},
  ): Promise<SearchBegun | Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/searches`,
      body,
      takesKey: true,
      options,
    }) as Promise<SearchBegun | Receipt>;
  }

  /**
   * Returns a search: its tree, with values and costs, and its winner so far.
   *
   * @param session The id of the session
   * @param search The id of the search
   */
  getSearch(
    session: string,
    search: string,
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}/searches/${encodeURIComponent(search)}`,
      options,
    }) as Promise<unknown>;
  }

  /**
   * Lists the searches of a session, with their trees.
   *
   * @param session The id of the session
   */
  listSearches(
    session: string,
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}/searches`,
      options,
    }) as Promise<unknown>;
  }

  /**
   * Ends a search with the best result so far.
   *
   * @param session The id of the session
   * @param search The id of the search
   */
  stopSearch(
    session: string,
    search: string,
    options: Pick<Options, "key" | "signal"> = {},
  ): Promise<Receipt> {
    return this.send({
      verb: "DELETE",
      path: `/v1/sessions/${encodeURIComponent(session)}/searches/${encodeURIComponent(search)}`,
      takesKey: true,
      options,
    }) as Promise<Receipt>;
  }
}

/** The operations of `sessions`. */
export class SessionsApi {
  constructor(
    private readonly send: Send,
  ) {}

  /**
   * Sets entries of state: gives a permission, corrects a value. The log says who did it.
   *
   * @param session The id of the session
   */
  editState(
    session: string,
    body: StateEdit,
    options: Pick<Options, "key" | "ifMatch" | "signal"> = {},
  ): Promise<Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/edit`,
      body,
      takesKey: true,
      options,
    }) as Promise<Receipt>;
  }

  /**
   * Erases what was said in a session, at a line or by an effect. All else still verifies. Without `apply` it only says what would go.
   *
   * Nothing of the session may be open. A repetition finds nothing that is left to erase.
   *
   * @param session The id of the session
   */
  eraseSession(
    session: string,
    body: Erasure = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<Erased> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/erase`,
      body,
      options,
    }) as Promise<Erased>;
  }

  /**
   * Lists the sessions that the token sees, newest first.
   *
   * With a filter that lets through few sessions, a page may be short, or empty, although there is a `next`.
   */
  list(
    query: { definition?: string | undefined; status?: string | undefined; key?: string | undefined; label?: string | undefined; prefix?: string | undefined; where?: string | undefined; after?: string | undefined; limit?: number | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<SessionList> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions`,
      query,
      options,
    }) as Promise<SessionList>;
  }

  /**
   * Binds a session to other values of `config`. Nothing of the session may be open.
   *
   * @param session The id of the session
   */
  migrateSession(
    session: string,
    body: ConfigChanges,
    options: Pick<Options, "key" | "signal"> = {},
  ): Promise<ConfigChanged> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/migrate`,
      body,
      takesKey: true,
      options,
    }) as Promise<ConfigChanged>;
  }

  /**
   * Returns a session on one page: its branches, agents, state, effects, and what it waits for.
   *
   * The `ETag` is the last line: with `If-None-Match` the answer is 304 while nothing new is on disk.
   *
   * @param session The id of the session
   */
  page(
    session: string,
    query: { branch?: string | undefined } = {},
    options: Pick<Options, "ifNoneMatch" | "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}`,
      query,
      options,
    }) as Promise<unknown>;
  }

  /**
   * Says something to a session.
   *
   * The answer is a receipt. With `Prefer: wait=N` it is the state in which the session settles within N seconds.
   *
   * @param session The id of the session
   */
  say(
    session: string,
    body: Say = {},
    options: Pick<Options, "key" | "wait" | "signal"> = {},
  ): Promise<Turn | Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/messages`,
      body,
      takesKey: true,
      options,
    }) as Promise<Turn | Receipt>;
  }

  /**
   * Starts a session.
   *
   * Under an idempotency key the session has an id that follows from the key, so that a repetition finds it. With `Prefer: wait=N` the
   * answer is the state in which the session settles within N seconds.
   */
  start(
    body: Start,
    options: Pick<Options, "key" | "wait" | "signal"> = {},
  ): Promise<Turn | Started> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions`,
      body,
      takesKey: true,
      options,
    }) as Promise<Turn | Started>;
  }
}

/** The operations of `tokens`. */
export class TokensApi {
  constructor(
    private readonly send: Send,
  ) {}

  /** Returns the token for a code, and forgets the code. The request needs no token. */
  exchangeCode(
    body: TokenCode,
    options: Pick<Options, "signal"> = {},
  ): Promise<ExchangedToken> {
    return this.send({
      verb: "POST",
      path: `/v1/token/exchange`,
      body,
      options,
    }) as Promise<ExchangedToken>;
  }

  /** Lists the tokens of the tenant, without their secrets. */
  list(
    query: { after?: string | undefined; limit?: number | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/tokens`,
      query,
      options,
    }) as Promise<unknown>;
  }

  /** Makes a token of the same tenant. */
  make(
    body: NewToken = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<MadeToken> {
    return this.send({
      verb: "POST",
      path: `/v1/tokens`,
      body,
      options,
    }) as Promise<MadeToken>;
  }

  /**
   * Returns a code for the token of the request. `exchange` turns it into the token, once and within 60 seconds: a browser is started with
   * it in the address (`/#c=CODE`), so that no token is in an address.
   */
  makeCode(
    options: Pick<Options, "signal"> = {},
  ): Promise<MadeCode> {
    return this.send({
      verb: "POST",
      path: `/v1/token/code`,
      options,
    }) as Promise<MadeCode>;
  }

  /** Returns what the token is and may do, and the version of the server. */
  me(
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/me`,
      options,
    }) as Promise<unknown>;
  }

  /**
   * Revokes a token of the tenant. It is invalid from now on.
   *
   * @param name The name of the token
   */
  revoke(
    name: string,
    options: Pick<Options, "signal"> = {},
  ): Promise<void> {
    return this.send({
      verb: "DELETE",
      path: `/v1/tokens/${encodeURIComponent(name)}`,
      options,
    }) as Promise<void>;
  }
}

/** The operations of `views`. */
export class ViewsApi {
  constructor(
    private readonly send: Send,
  ) {}

  /**
   * Returns the content of an artifact, as an attachment.
   *
   * @param session The id of the session
   * @param name The name of the artifact, or `blake3:` with the beginning of the digest of its content
   */
  artifact(
    session: string,
    name: string,
    query: { branch?: string | undefined; version?: number | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<Uint8Array> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}/artifacts/${encodeURIComponent(name)}`,
      query,
      answer: "bytes",
      options,
    }) as Promise<Uint8Array>;
  }

  /**
   * Lists all versions of the artifacts of a branch.
   *
   * @param session The id of the session
   */
  artifacts(
    session: string,
    query: { branch?: string | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<ArtifactList> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}/artifacts`,
      query,
      options,
    }) as Promise<ArtifactList>;
  }

  /**
   * Returns the context of a model call, exactly as it was sent.
   *
   * @param session The id of the session
   * @param effect The id of the model call
   */
  context(
    session: string,
    effect: string,
    query: { branch?: string | undefined; show?: string | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}/contexts/${encodeURIComponent(effect)}`,
      query,
      options,
    }) as Promise<unknown>;
  }

  /**
   * Lists the model calls that led to the head of a branch.
   *
   * @param session The id of the session
   */
  contexts(
    session: string,
    query: { branch?: string | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}/contexts`,
      query,
      options,
    }) as Promise<unknown>;
  }

  /** Says how two sessions or branches differ: what they came to, where they went apart, what they did. */
  diffSessions(
    query: { a?: string | undefined; b?: string | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/diff`,
      query,
      options,
    }) as Promise<unknown>;
  }

  /**
   * Returns the graph of a session as a picture: SVG.
   *
   * @param session The id of the session
   */
  drawSession(
    session: string,
    query: { branch?: string | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<Uint8Array> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}/graph.svg`,
      query,
      answer: "bytes",
      options,
    }) as Promise<Uint8Array>;
  }

  /**
   * Lists the effects of a session on the world, also those that may have happened.
   *
   * @param session The id of the session
   */
  effects(
    session: string,
    query: { branch?: string | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}/effects`,
      query,
      options,
    }) as Promise<unknown>;
  }

  /**
   * Returns the graph of a session's definition with the marks of where it stands, and its shapes in coordinates.
   *
   * @param session The id of the session
   */
  graph(
    session: string,
    query: { branch?: string | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}/graph`,
      query,
      options,
    }) as Promise<unknown>;
  }

  /**
   * Returns one line of the log.
   *
   * @param session The id of the session
   * @param line The number of the line
   */
  line(
    session: string,
    line: number,
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}/lines/${encodeURIComponent(line)}`,
      options,
    }) as Promise<unknown>;
  }

  /**
   * Lists lines of the log: what each committed and recorded, as text.
   *
   * @param session The id of the session
   */
  lines(
    session: string,
    query: { from?: number | undefined; to?: number | undefined; branch?: string | undefined; limit?: number | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}/lines`,
      query,
      options,
    }) as Promise<unknown>;
  }

  /**
   * Returns what a command of the program prints of all sessions that the token sees: `sessions`, `pending`.
   *
   * Secrets are masked unless the token may see them.
   *
   * @param screen The name of the command
   */
  listScreen(
    screen: string,
    query: { where?: string | undefined; limit?: number | undefined; by?: string | undefined; reruns?: boolean | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/screens/${encodeURIComponent(screen)}`,
      query,
      options,
    }) as Promise<unknown>;
  }

  /**
   * Returns the session as columns, one entry for each interaction, question, decision, edit, branch and owner. Columns have the same
   * length; lines and times are differences to the entry before.
   *
   * @param session The id of the session
   */
  mapSession(
    session: string,
    query: { branch?: string | undefined; since?: number | undefined; until?: number | undefined; every?: number | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}/map`,
      query,
      options,
    }) as Promise<unknown>;
  }

  /**
   * Rates a version of an artifact of the current branch. The rating of a person takes precedence over those of agents.
   *
   * @param session The id of the session
   * @param name The name of the artifact
   */
  rateArtifact(
    session: string,
    name: string,
    body: ArtifactRating,
    options: Pick<Options, "key" | "signal"> = {},
  ): Promise<Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/artifacts/${encodeURIComponent(name)}/rating`,
      body,
      takesKey: true,
      options,
    }) as Promise<Receipt>;
  }

  /**
   * Returns what a command of the program prints of a session: `artifacts`, `context`, `effects`, `graph`, `log`, `show`, `why`, and
   * `waits` for the commands that answer questions.
   *
   * Secrets are masked, whatever the token allows, as a terminal does not show them. A context needs the permission `context`, and is
   * shown as it was sent.
   *
   * @param session The id of the session
   * @param screen The name of the command
   */
  screen(
    session: string,
    screen: string,
    query: { branch?: string | undefined; line?: string | undefined; of?: string | undefined; form?: string | undefined; after?: number | undefined; most?: number | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}/screens/${encodeURIComponent(screen)}`,
      query,
      options,
    }) as Promise<unknown>;
  }

  /**
   * Returns the state of a branch, as of a line if one is named.
   *
   * @param session The id of the session
   */
  state(
    session: string,
    query: { branch?: string | undefined; at?: number | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}/state`,
      query,
      options,
    }) as Promise<unknown>;
  }

  /**
   * Tells what happened on a branch, row by row, in plain words, as `steersman show` does.
   *
   * `before` is the last line in front of the page that has rows, `next` the first line behind it; each is absent where there is none.
   *
   * @param session The id of the session
   */
  story(
    session: string,
    query: { branch?: string | undefined; from?: number | undefined; to?: number | undefined; last?: boolean | undefined; limit?: number | undefined; chars?: number | undefined; find?: string | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<StoryPage> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}/story`,
      query,
      options,
    }) as Promise<StoryPage>;
  }

  /**
   * Explains from the log why an agent acted: the chain of reasons of the act of a line, or of a call or an effect.
   *
   * @param session The id of the session
   * @param what The number of a line, or the id of a call, an effect or an agent
   */
  why(
    session: string,
    what: string,
    query: { branch?: string | undefined } = {},
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/sessions/${encodeURIComponent(session)}/why/${encodeURIComponent(what)}`,
      query,
      options,
    }) as Promise<unknown>;
  }
}

/** The operations of `webhooks`. */
export class WebhooksApi {
  constructor(
    private readonly send: Send,
  ) {}

  /**
   * Deletes a webhook of the tenant. Nothing is sent to it any more.
   *
   * @param name The name of the webhook
   */
  delete(
    name: string,
    options: Pick<Options, "signal"> = {},
  ): Promise<void> {
    return this.send({
      verb: "DELETE",
      path: `/v1/webhooks/${encodeURIComponent(name)}`,
      options,
    }) as Promise<void>;
  }

  /** Lists the webhooks of the tenant, without their secrets. */
  list(
    options: Pick<Options, "signal"> = {},
  ): Promise<unknown> {
    return this.send({
      verb: "GET",
      path: `/v1/webhooks`,
      options,
    }) as Promise<unknown>;
  }

  /** Makes a webhook: from now on messages about sessions of the tenant are sent to an address. */
  make(
    body: NewHook,
    options: Pick<Options, "signal"> = {},
  ): Promise<MadeHook> {
    return this.send({
      verb: "POST",
      path: `/v1/webhooks`,
      body,
      options,
    }) as Promise<MadeHook>;
  }

  /**
   * Sends to a webhook again that got nothing any more, from where it stopped.
   *
   * @param name The name of the webhook
   */
  resume(
    name: string,
    options: Pick<Options, "signal"> = {},
  ): Promise<void> {
    return this.send({
      verb: "POST",
      path: `/v1/webhooks/${encodeURIComponent(name)}/resume`,
      options,
    }) as Promise<void>;
  }

  /**
   * Begins to exchange the secret of a webhook: until the exchange is ended, each message has a signature with the new secret and one with the
   * one before.
   *
   * @param name The name of the webhook
   */
  rotate(
    name: string,
    options: Pick<Options, "signal"> = {},
  ): Promise<MadeHook> {
    return this.send({
      verb: "POST",
      path: `/v1/webhooks/${encodeURIComponent(name)}/rotation`,
      options,
    }) as Promise<MadeHook>;
  }

  /**
   * Ends the exchange of a secret: the new secret alone signs.
   *
   * @param name The name of the webhook
   */
  rotated(
    name: string,
    options: Pick<Options, "signal"> = {},
  ): Promise<void> {
    return this.send({
      verb: "DELETE",
      path: `/v1/webhooks/${encodeURIComponent(name)}/rotation`,
      options,
    }) as Promise<void>;
  }
}

/** All operations, by tag. */
export class Api {
  readonly branches: BranchesApi;
  readonly definitions: DefinitionsApi;
  readonly events: EventsApi;
  readonly health: HealthApi;
  readonly memories: MemoriesApi;
  readonly orders: OrdersApi;
  readonly questions: QuestionsApi;
  readonly reruns: RerunsApi;
  readonly searches: SearchesApi;
  readonly sessions: SessionsApi;
  readonly tokens: TokensApi;
  readonly views: ViewsApi;
  readonly webhooks: WebhooksApi;

  constructor(send: Send, open: Open) {
    this.branches = new BranchesApi(send);
    this.definitions = new DefinitionsApi(send);
    this.events = new EventsApi(send, open);
    this.health = new HealthApi(send);
    this.memories = new MemoriesApi(send);
    this.orders = new OrdersApi(send);
    this.questions = new QuestionsApi(send);
    this.reruns = new RerunsApi(send);
    this.searches = new SearchesApi(send);
    this.sessions = new SessionsApi(send);
    this.tokens = new TokensApi(send);
    this.views = new ViewsApi(send);
    this.webhooks = new WebhooksApi(send);
  }
}
