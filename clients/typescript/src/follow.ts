import type { Frame } from "./call.js";
import { isFromProxy } from "./call.js";
import { InvalidAnswer, ProblemError, refusal, Unreachable } from "./errors.js";

/** An event of a session. The reference of events lists the kinds and their fields; more of both may be added. */
export interface Event {
  /** The kind: `said`, `asked`, `piece`. `hello` comes first, and again after each break: pieces told before are void. */
  event: string;
  /** The position behind the event. */
  cursor: string;
  /** The line of the log that holds it. Without one it is provisional: only readers that are attached now see it. */
  line?: number;
  /** The time of that line. */
  at?: string;
  /** The id of the branch. */
  branch?: string;
  /** The name of the agent that it belongs to. */
  agent?: string;
  /** The id of that agent. */
  agent_id?: string;
  [field: string]: unknown;
}

/** Conditions on events. */
export interface Follow {
  /** The position after which the events begin: a cursor, `start` or `now`. */
  from?: string;
  /** Kinds of events. Without them all kinds come. */
  kinds?: string[];
  /** The id of a branch. */
  branch?: string;
  /** True to end once the session has settled. */
  untilSettled?: boolean;
  /** Ends the stream. */
  signal?: AbortSignal;
}

/** Codes of problems after which a stream is opened again. */
const LATER: string[] = ["store", "stopping", "late", "rate", "streams"];

/** The place of a reader in the events of a session, over all connections. */
export class Reading {
  cursor: string | undefined;
  isOver = false;

  constructor(private readonly wanted: Follow) {}

  /** Returns the position that is known. */
  get position(): string {
    return this.cursor ?? this.wanted.from ?? "start";
  }

  /** Returns the query of the next request. */
  query(): { from?: string; kinds?: string; branch?: string; until?: string } {
    const { kinds, branch, untilSettled } = this.wanted;
    // The end is known by `settled`.
    const all = kinds && untilSettled ? [...kinds, "settled"] : kinds;
    return {
      ...(this.cursor === undefined ? { from: this.position } : {}),
      ...(all ? { kinds: all.join(",") } : {}),
      ...(branch === undefined ? {} : { branch }),
      ...(untilSettled ? { until: "settled" } : {}),
    };
  }

  /** Takes a frame. Returns the event to tell, if it is one. Throws the problem with which the server ended the stream. */
  take(frame: Frame): Event | undefined {
    if (frame.event === "problem") {
      throw refusal(Number(frame.data["status"]), "application/problem+json", JSON.stringify(frame.data));
    }
    const event: Event = { cursor: this.position, ...frame.data, event: frame.event };
    if (frame.event === "hello") {
      this.cursor = event.cursor;
      return event;
    }
    if (frame.id !== undefined) this.cursor = frame.id;
    if (frame.event === "settled") this.isOver = this.wanted.untilSettled ?? false;
    return this.wanted.kinds === undefined || this.wanted.kinds.includes(frame.event) ? event : undefined;
  }
}

/** Returns true if a stream that this error ended is opened again. */
export function mayComeBack(error: unknown): boolean {
  if (error instanceof InvalidAnswer) return isFromProxy(error.status);
  if (error instanceof ProblemError) return LATER.includes(error.code);
  return error instanceof Unreachable;
}

/** The streamed pieces of answers that are not complete yet, by the model call. Give it every event. */
export class Pieces {
  private readonly texts = new Map<string, string>();

  /** Adds a piece, or drops those that are void: after a break, a withdrawal, or the complete text. */
  take(event: Event): void {
    const effect = String(event["effect"]);
    if (event.event === "hello") this.texts.clear();
    else if (event.event === "piece") this.texts.set(effect, (this.texts.get(effect) ?? "") + String(event["text"]));
    else if (event.event === "withdrawn" || event.event === "said") this.texts.delete(effect);
  }

  /** Returns what has been streamed of answers that are not complete. */
  text(): string {
    return [...this.texts.values()].join("");
  }
}
