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

/** The fate of an effect in doubt. */
export type How =
  | "done"
  | "not_performed"
  | "fail";

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

/** A token that was made. */
export interface MadeToken {
  /** Its name. */
  name: string;
  /** The token itself. It is shown only here. */
  token: string;
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

/** Something that a token may allow. */
export type Permission =
  | "read"
  | "context"
  | "write"
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
  | "unknown_token"
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
  definition?: string | null | undefined;
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

  /** Lists the definitions that the token may start. */
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
    options: Pick<Options, "key" | "signal"> = {},
  ): Promise<Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/questions/${encodeURIComponent(question)}/answer`,
      body,
      takesKey: true,
      options,
    }) as Promise<Receipt>;
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
    options: Pick<Options, "key" | "signal"> = {},
  ): Promise<Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/questions/${encodeURIComponent(question)}/approve`,
      body,
      takesKey: true,
      options,
    }) as Promise<Receipt>;
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
    options: Pick<Options, "key" | "signal"> = {},
  ): Promise<Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/questions/${encodeURIComponent(question)}/reject`,
      body,
      takesKey: true,
      options,
    }) as Promise<Receipt>;
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
    options: Pick<Options, "key" | "signal"> = {},
  ): Promise<Receipt> {
    return this.send({
      verb: "POST",
      path: `/v1/sessions/${encodeURIComponent(session)}/questions/${encodeURIComponent(question)}/resolve`,
      body,
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

  /** Lists the sessions that the token sees, newest first. */
  list(
    query: { definition?: string | undefined; status?: string | undefined; key?: string | undefined; label?: string | undefined; after?: string | undefined; limit?: number | undefined } = {},
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
    body: Start = {},
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
   * @param name The name of the artifact
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

/** All operations, by tag. */
export class Api {
  readonly branches: BranchesApi;
  readonly definitions: DefinitionsApi;
  readonly events: EventsApi;
  readonly health: HealthApi;
  readonly orders: OrdersApi;
  readonly questions: QuestionsApi;
  readonly sessions: SessionsApi;
  readonly tokens: TokensApi;
  readonly views: ViewsApi;

  constructor(send: Send, open: Open) {
    this.branches = new BranchesApi(send);
    this.definitions = new DefinitionsApi(send);
    this.events = new EventsApi(send, open);
    this.health = new HealthApi(send);
    this.orders = new OrdersApi(send);
    this.questions = new QuestionsApi(send);
    this.sessions = new SessionsApi(send);
    this.tokens = new TokensApi(send);
    this.views = new ViewsApi(send);
  }
}
