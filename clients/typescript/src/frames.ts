import type { Frame } from "./call.js";
import { invalid } from "./errors.js";

/** Most characters of a line of a stream. */
const LONGEST_LINE = 64 * 1024 * 1024;

/** Reads the frames of a stream. What a break leaves incomplete is no frame. */
export async function* frames(body: AsyncIterable<string>): AsyncGenerator<Frame, void, undefined> {
  let rest = "";
  let event = "message";
  let id: string | undefined;
  let data: string[] = [];
  for await (const chunk of body) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > LONGEST_LINE) throw invalid(200, "text/event-stream", rest);
    for (const whole of lines) {
      const line = whole.endsWith("\r") ? whole.slice(0, -1) : whole;
      if (line === "") {
        if (data.length > 0) yield { event, id, data: read(data.join("\n")) };
        event = "message";
        id = undefined;
        data = [];
        continue;
      }
      const colon = line.indexOf(":");
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (name === "event") event = value;
      else if (name === "data") data.push(value);
      else if (name === "id") id = value;
    }
  }
}

function read(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    throw invalid(200, "text/event-stream", text);
  }
}

/** Reads the texts of a response. Leaving the loop ends the response. */
export async function* texts(response: Response): AsyncGenerator<string, void, undefined> {
  const reader = response.body?.getReader();
  if (reader === undefined) return;
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
