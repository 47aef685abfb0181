// Requests to the API, and its streams. Errors are problem documents.

import * as auth from './auth.mjs';
import { place } from './route.mjs';
import { Frames } from './sse.mjs';

/** The reason why a request was not carried out. */
export class Problem extends Error {
  /** @type {number} */
  status;

  /** @param {{ title: string, detail?: string, code: string, help?: string, status: number }} document */
  constructor({ title, detail, code, help, status }) {
    super(detail ?? title);
    Object.assign(this, { title, detail, code, help, status });
  }
}

function unreached() {
  return new Problem({
    title: 'The server does not answer',
    detail: 'No answer came. What was sent under a key may be sent again.',
    code: 'unreached',
    status: 0,
  });
}

/** @param {{ body?: unknown, headers?: Record<string, string>, signal?: AbortSignal }} [more] */
async function send(method, path, more = {}) {
  const { body, headers, signal } = more;
  /** @type {Record<string, string>} */
  const sent = { ...headers };
  const token = auth.current();
  if (token) sent.authorization = `Bearer ${token}`;
  if (body !== undefined) sent['content-type'] = 'application/json';
  let response;
  try {
    response = await fetch(path, { method, headers: sent, body: body === undefined ? undefined : JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw unreached();
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({ title: response.statusText, code: 'internal' }));
  if (response.status === 401 && token === auth.current()) auth.lapse();
  throw new Problem({ ...problem, status: response.status });
}

export function path(parts, query) {
  return `v1/${place(parts, query)}`;
}

/** Returns the path of a part of a session. */
export function of(session, parts, query) {
  return path(['sessions', session, ...parts], query);
}

/** @param {{ signal?: AbortSignal }} [more] */
export async function get(where, more = {}) {
  const response = await send('GET', where, more);
  return response.json();
}

/** Returns the content of a path as bytes, and its media type. */
export async function content(where) {
  const response = await send('GET', where);
  return response.blob();
}

/** Carries out an act. The same key makes a repetition the same act. */
export async function act(where, body = {}, key = undefined) {
  const headers = key ? { 'idempotency-key': key } : {};
  const response = await send('POST', where, { body, headers });
  return response.status === 204 ? null : response.json();
}

export async function remove(where) {
  await send('DELETE', where);
}

export function key() {
  return auth.random();
}

/** Seconds between attempts to reach a stream again. */
const PAUSES = [1, 2, 4, 8, 16, 30];
/** Milliseconds without a sign of life after which a stream is opened again. The server sends a comment every 15 seconds. */
const SILENCE = 40_000;
/** Milliseconds between two looks at the clock, and a jump of it that shows that the computer slept. What was open then may be dead. */
const LOOK = 1000;
const SLEPT = 10_000;

/**
 * Follows a stream until `close` is called. `hear` gets each event; `state` gets `{ live: true }`, or `{ live: false, since, again }`.
 * A stream that breaks is opened again behind the last event that had an id.
 */
export function follow(where, hear, state) {
  const stop = new AbortController();
  let last = null;
  let failures = 0;
  let since = null;
  let wake = null;

  async function once() {
    const headers = last === null ? {} : { 'last-event-id': last };
    const lost = new AbortController();
    const cut = () => lost.abort();
    stop.signal.addEventListener('abort', cut);
    let timer;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(cut, SILENCE);
    };
    let seen = Date.now();
    const clock = setInterval(() => {
      if (Date.now() - seen > SLEPT) cut();
      seen = Date.now();
    }, LOOK);
    try {
      alive();
      const response = await send('GET', where, { headers, signal: lost.signal });
      const frames = new Frames();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        alive();
        for (const event of frames.push(value)) {
          if (event.id) last = event.id;
          if (event.event === 'hello') {
            failures = 0;
            since = null;
            state({ live: true });
          }
          hear(JSON.parse(event.data), event.event);
        }
      }
    } finally {
      clearTimeout(timer);
      clearInterval(clock);
      stop.signal.removeEventListener('abort', cut);
    }
  }

  async function run() {
    while (!stop.signal.aborted) {
      try {
        await once();
      } catch (error) {
        if (stop.signal.aborted) return;
        // What is wrong with the request stays wrong. Too many requests, and no answer, are tried again.
        if (error instanceof Problem && error.status >= 400 && error.status < 500 && error.status !== 429) {
          state({ live: false, since: since ?? Date.now(), problem: error });
          return;
        }
      }
      if (stop.signal.aborted) return;
      since ??= Date.now();
      const pause = PAUSES[Math.min(failures, PAUSES.length - 1)] * 1000 * (0.8 + 0.4 * Math.random());
      failures += 1;
      state({ live: false, since, again: Date.now() + pause });
      await new Promise((done) => {
        wake = done;
        setTimeout(done, pause);
      });
    }
  }

  run();
  return {
    close: () => {
      stop.abort();
      wake?.();
    },
  };
}
