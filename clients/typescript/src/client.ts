import type { ArtifactRow, File, Question, Receipt, Start, Say, Turn } from "./api.js";
import { Api } from "./api.js";
import type { Call, Frame } from "./call.js";
import { address, after, canBeRepeated, headers, Patience } from "./call.js";
import { invalid, ProblemError, refusal, StreamEnded, SteersmanError, Unreachable } from "./errors.js";
import type { Event, Follow } from "./follow.js";
import { mayComeBack, Reading } from "./follow.js";
import { frames, texts } from "./frames.js";

/** Milliseconds without a byte after which a connection counts as broken. Streams have a comment every 15 seconds. */
const SILENCE = 60_000;

/** The place of a server, and how it is used. */
export interface ClientOptions {
  /** The address: `http://127.0.0.1:7410`. */
  url: string;
  /** The token: `stm_...`. */
  token: string;
  /** Seconds for which requests are sent again while the server cannot be reached or is busy. Default 10. */
  patience?: number;
  /** The function that sends requests. Default: that of the platform. */
  fetch?: typeof globalThis.fetch;
}

/**
 * A client of a server. `api` has all operations; the methods here are for everyday use.
 *
 * Requests are sent again while the server cannot be reached or says that it is busy, if that does no harm: each act has a key of
 * its own, so it happens once.
 */
export class Client {
  /** All operations of the server, by tag. */
  readonly api: Api;
  private readonly url: string;
  private readonly token: string;
  private readonly patience: number;
  private readonly fetch: typeof globalThis.fetch;

  constructor(options: ClientOptions) {
    if (!/^https?:\/\//.test(options.url)) {
      throw new TypeError(`\`${options.url}\` is not the address of a server: it begins with http:// or https://`);
    }
    this.url = options.url.replace(/\/+$/, "");
    this.token = options.token.trim();
    this.patience = options.patience ?? 10;
    this.fetch = options.fetch ?? ((...request) => globalThis.fetch(...request));
    this.api = new Api(
      (call) => this.send(call),
      (call) => this.open(call),
    );
  }

  /** Starts a session of a definition. */
  async start(definition: string, message?: string, more: Omit<Start, "definition" | "message"> & { idempotencyKey?: string } = {}): Promise<Session> {
    // `key` is the field of the body, which events find the session by; `idempotencyKey` is that of the request.
    const { idempotencyKey, ...start } = more;
    const started = await this.api.sessions.start({ ...start, definition, message }, { key: idempotencyKey });
    return this.session(started.session);
  }

  /** Returns a session by its id. Nothing is sent. */
  session(id: string): Session {
    return new Session(this, id);
  }

  /**
   * Tells the events of a session.
   *
   * A broken connection is opened again behind the last event on disk, to this server or to one that was started in its place: no
   * event is missing, none comes twice. An event `hello` says that streamed pieces told before are void. `StreamEnded` is thrown
   * once there was no connection for the time of the client's patience.
   */
  async *follow(session: string, wanted: Follow = {}): AsyncGenerator<Event, void, undefined> {
    const reading = new Reading(wanted);
    const patience = new Patience(this.patience);
    const { signal } = wanted;
    for (;;) {
      let why: unknown;
      try {
        const options = { lastEventId: reading.cursor, signal };
        for await (const frame of this.api.events.follow(session, reading.query(), options)) {
          patience.begin();
          const event = reading.take(frame);
          if (event !== undefined) yield event;
          if (reading.isOver) return;
        }
      } catch (error) {
        if (!mayComeBack(error)) throw error;
        why = error;
      }
      if (!(await patience.pause(0, signal))) {
        const reason = why instanceof Error ? ` (${why.message})` : "";
        throw new StreamEnded(
          `the events of ${session} ended behind ${reading.position}, and ${this.url} could not be reached again${reason}: follow from this position once it is back`,
          reading.position,
          { cause: why },
        );
      }
    }
  }

  private async send(call: Call): Promise<unknown> {
    const patience = new Patience(this.patience);
    const { signal } = call.options;
    if (call.takesKey && call.options.key === undefined) {
      call = { ...call, options: { ...call.options, key: randomKey() } };
    }
    for (;;) {
      const silence = AbortSignal.timeout(SILENCE + 1000 * (call.options.wait ?? 0));
      const limit = signal === undefined ? silence : AbortSignal.any([signal, silence]);
      let response: Response;
      let body: Uint8Array;
      try {
        response = await this.request(call, limit);
        body = new Uint8Array(await response.arrayBuffer());
      } catch (error) {
        const told = this.broken(call, error, signal);
        if (canBeRepeated(call) && (await patience.pause(0, signal))) continue;
        throw told;
      }
      const wanted = canBeRepeated(call) ? after(response.status, response.headers.get("retry-after")) : undefined;
      if (wanted !== undefined && (await patience.pause(wanted, signal))) continue;
      return answer(call, response, body);
    }
  }

  private async *open(call: Call): AsyncGenerator<Frame, void, undefined> {
    const { signal } = call.options;
    const watch = new AbortController();
    const limit = signal === undefined ? watch.signal : AbortSignal.any([signal, watch.signal]);
    let timer = setTimeout(() => watch.abort(), SILENCE);
    try {
      const response = await this.request(call, limit);
      const media = mediaOf(response);
      if (response.status !== 200 || media !== "text/event-stream") {
        const body = await response.text();
        throw response.status === 200 ? invalid(200, media, body) : refusal(response.status, media, body);
      }
      const heard = (async function* () {
        for await (const text of texts(response)) {
          clearTimeout(timer);
          timer = setTimeout(() => watch.abort(), SILENCE);
          yield text;
        }
      })();
      yield* frames(heard);
    } catch (error) {
      throw error instanceof SteersmanError ? error : this.broken(call, error, signal);
    } finally {
      clearTimeout(timer);
    }
  }

  private request(call: Call, signal: AbortSignal): Promise<Response> {
    const body = call.body === undefined ? {} : { body: JSON.stringify(call.body) };
    return this.fetch(address(this.url, call), {
      method: call.verb,
      headers: headers(this.token, call),
      redirect: "manual",
      signal,
      ...body,
    });
  }

  /** Returns the error of a connection that could not be opened or broke. What the caller ended stays as it is. */
  private broken(call: Call, error: unknown, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted) return error;
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const why = cause instanceof Error ? cause.message || cause.name : String(cause);
    const help = canBeRepeated(call)
      ? "start `steersman serve`, or check the address"
      : "look whether the request was carried out before you send it again";
    return new Unreachable(`no answer came from ${this.url} (${why}): ${help}`, { cause: error });
  }
}

function answer(call: Call, response: Response, body: Uint8Array): unknown {
  if (response.status === 304) return null;
  const text = () => new TextDecoder().decode(body);
  if (!response.ok) throw refusal(response.status, mediaOf(response), text());
  if (call.answer === "bytes") return body;
  if (body.length === 0) return undefined;
  try {
    return JSON.parse(text());
  } catch {
    throw invalid(response.status, mediaOf(response), text());
  }
}

function mediaOf(response: Response): string {
  return response.headers.get("content-type")?.split(";")[0]?.trim() ?? "";
}

/** Returns a key that nobody else has. `randomUUID` is missing on pages without TLS. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Who decides, and under which key. */
export interface Deciding {
  /** The role in which it is decided. */
  as?: string;
  /** The key under which a repetition is carried out once. Without one the client makes one. */
  key?: string;
}

/** A session. */
export class Session {
  constructor(
    private readonly client: Client,
    /** Its id. */
    readonly id: string,
  ) {}

  /** Says something. */
  async say(text: string, more: { files?: File[]; as?: string; interrupt?: boolean; key?: string } = {}): Promise<Receipt> {
    const { key, ...say } = more;
    const body: Say = { ...say, text };
    return (await this.client.api.sessions.say(this.id, body, { key })) as Receipt;
  }

  /** Says something, and waits until the session settles after it, however long that takes. */
  async ask(text: string, more: { files?: File[]; as?: string } = {}): Promise<Turn> {
    const receipt = await this.say(text, more);
    if (receipt.line === undefined || receipt.line === null) {
      for await (const event of this.follow({ kinds: ["accepted", "refused"] })) {
        if (event["message"] !== receipt.message) continue;
        if (event.event === "accepted") break;
        const detail = String(event["why"]);
        throw new ProblemError({ type: "urn:steersman:problem:refused", title: "The session refused it", status: 422, detail, code: "refused" });
      }
    }
    return this.settled();
  }

  /** Tells the events of the session, as `Client.follow`. */
  follow(wanted: Follow = {}): AsyncGenerator<Event, void, undefined> {
    return this.client.follow(this.id, wanted);
  }

  /** Waits until the session settles: it answered, asks, waits, or stopped. */
  async settled(signal?: AbortSignal): Promise<Turn> {
    let last: Event | undefined;
    const wanted = { from: "now", kinds: ["settled"], untilSettled: true };
    for await (const event of this.follow(signal === undefined ? wanted : { ...wanted, signal })) {
      if (event.event === "settled") last = event;
    }
    return { ...last, session: this.id, line: Number.parseInt(last?.cursor ?? "0", 10) } as unknown as Turn;
  }

  /** Lists what the session waits for. */
  async questions(): Promise<Question[]> {
    return (await this.client.api.questions.ofSession(this.id)).items;
  }

  /** Allows a held call to run once, with the arguments that were shown, or with `args` in place of those that may be changed. */
  async approve(question: string, { key, ...body }: Deciding & { args?: Record<string, unknown> } = {}): Promise<Receipt> {
    return (await this.client.api.questions.approve(this.id, question, body, { key })) as Receipt;
  }

  /** Refuses a held call. The model reads the reason. */
  async reject(question: string, { key, ...body }: Deciding & { reason?: string } = {}): Promise<Receipt> {
    return (await this.client.api.questions.reject(this.id, question, body, { key })) as Receipt;
  }

  /** Answers a question. */
  async answer(question: string, text: string, { key, ...body }: Deciding = {}): Promise<Receipt> {
    return (await this.client.api.questions.answer(this.id, question, { ...body, text }, { key })) as Receipt;
  }

  /** Lists all versions of the artifacts of the current branch. */
  async artifacts(): Promise<ArtifactRow[]> {
    return (await this.client.api.views.artifacts(this.id)).items;
  }

  /** Returns the content of an artifact: of its newest version, unless one is named. */
  artifact(name: string, version?: number): Promise<Uint8Array> {
    return this.client.api.views.artifact(this.id, name, { version });
  }
}
