import type { Problem as Document, ProblemCode } from "./api.js";

/** An error of this client or of the server. Each says what happened and what to do. */
export class SteersmanError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** No answer came: the server could not be reached, or the connection broke before it answered. */
export class Unreachable extends SteersmanError {}

/** The answer has not the form of an answer of the server: something else may be at this address. */
export class InvalidAnswer extends SteersmanError {
  constructor(
    message: string,
    /** The status of the answer. */
    readonly status: number,
  ) {
    super(message);
  }
}

/** A stream of events ended, and could not be opened again. Follow from `cursor` to miss nothing. */
export class StreamEnded extends SteersmanError {
  constructor(
    message: string,
    /** The position behind the last event on disk that was told. */
    readonly cursor: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The server did not carry out the request, and says why. Branch on `code`. */
export class ProblemError extends SteersmanError {
  /** The code that programs branch on. */
  readonly code: ProblemCode;
  /** The status of the answer. */
  readonly status: number;

  constructor(
    /** The whole document (RFC 9457). */
    readonly document: Document,
  ) {
    const help = document.help ? `: ${document.help}` : "";
    super(`${document.detail}${help} (${document.code})`);
    this.code = document.code;
    this.status = document.status;
  }
}

/** Returns the error of an answer that is no success. */
export function refusal(status: number, media: string, body: string): SteersmanError {
  let document: Partial<Document> | undefined;
  try {
    document = JSON.parse(body) as Partial<Document>;
  } catch {
    document = undefined;
  }
  if (typeof document === "object" && document !== null && typeof document.code === "string") {
    return new ProblemError({ type: "about:blank", title: "", detail: "", status, ...document } as Document);
  }
  return invalid(status, media, body);
}

/** Returns the error of an answer that is not of the server. */
export function invalid(status: number, media: string, body: string): InvalidAnswer {
  const begins = JSON.stringify(body.slice(0, 80));
  return new InvalidAnswer(
    `the answer (status ${status}, \`${media || "no media type"}\`) is not JSON of a Steersman server; it begins with ${begins}: check the address`,
    status,
  );
}
