/** Parameters that requests share. */
export interface Options {
  /** The key under which a repetition is carried out once. Without one the client makes one. */
  key?: string | undefined;
  /** Seconds, at most 60, for which the request waits until the session settles. */
  wait?: number | undefined;
  /** The last line that you know: nothing is done if there is a later one. */
  ifMatch?: number | undefined;
  /** The `ETag` that you have: the answer is null if nothing is new. */
  ifNoneMatch?: string | undefined;
  /** The cursor of the last event that you have. */
  lastEventId?: string | undefined;
  /** Ends the request. */
  signal?: AbortSignal | undefined;
}

/** A request. */
export interface Call {
  verb: string;
  path: string;
  body?: object;
  query?: object;
  options: Options;
  takesKey?: boolean;
  answer?: "bytes";
}

/** A server-sent event. */
export interface Frame {
  event: string;
  data: Record<string, unknown>;
  /** The cursor. Streamed pieces have none. */
  id: string | undefined;
}

/** Returns the address of a request. */
export function address(url: string, call: Call): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(call.query ?? {})) {
    if (value !== undefined && value !== null) query.set(name, String(value));
  }
  const text = query.toString();
  return url + call.path + (text ? `?${text}` : "");
}

/** Returns the headers of a request. */
export function headers(token: string, call: Call): Record<string, string> {
  const { key, wait, ifMatch, ifNoneMatch, lastEventId } = call.options;
  const headers: Record<string, string> = { authorization: `Bearer ${token}` };
  if (key !== undefined) headers["idempotency-key"] = key;
  if (wait !== undefined) headers["prefer"] = `wait=${wait}`;
  if (ifMatch !== undefined) headers["if-match"] = `"${ifMatch}"`;
  if (ifNoneMatch !== undefined) headers["if-none-match"] = ifNoneMatch;
  if (lastEventId !== undefined) headers["last-event-id"] = lastEventId;
  if (call.body !== undefined) headers["content-type"] = "application/json";
  return headers;
}

/** Returns true if a request may be sent again after it may have been carried out. */
export function canBeRepeated(call: Call): boolean {
  return call.verb === "GET" || call.verb === "DELETE" || call.options.key !== undefined;
}

/** Returns the seconds after which an answer says that the request may succeed; undefined if it says no such thing. */
export function after(status: number, retryAfter: string | null): number | undefined {
  if ((status === 429 || status === 503) && retryAfter !== null) {
    const seconds = Number(retryAfter);
    return Number.isFinite(seconds) ? Math.max(seconds, 0) : 1;
  }
  // A proxy in front of a server that is being started again.
  return isFromProxy(status) ? 0 : undefined;
}

/** Returns true if a proxy answers in place of a server that is being started again. */
export function isFromProxy(status: number): boolean {
  return status >= 502 && status <= 504;
}

const FIRST_PAUSE = 0.1;
const LONGEST_PAUSE = 2;

/** Pauses between attempts, until the time for all of them is over. */
export class Patience {
  private until = 0;
  private next = FIRST_PAUSE;

  constructor(private readonly seconds: number) {
    this.begin();
  }

  /** Begins again, after something has succeeded. */
  begin(): void {
    this.until = performance.now() + this.seconds * 1000;
    this.next = FIRST_PAUSE;
  }

  /** Waits until the next attempt. Returns false at once if there is none. */
  async pause(atLeast = 0, signal?: AbortSignal): Promise<boolean> {
    const pause = 1000 * Math.max(this.next * (0.5 + Math.random() / 2), atLeast);
    this.next = Math.min(this.next * 2, LONGEST_PAUSE);
    if (performance.now() + pause >= this.until) return false;
    await new Promise<void>((done, failed) => {
      const stop = () => {
        clearTimeout(timer);
        failed(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", stop);
        done();
      }, pause);
      signal?.addEventListener("abort", stop, { once: true });
    });
    return true;
  }
}
