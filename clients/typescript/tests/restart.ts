// Follows a session of a real server that is killed and started again, acts meanwhile, and provokes each error.
//
// The test in Rust that runs it kills the server when it reads `kill`, answers `dead`, and starts it again. It compares the events
// printed here with the log.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import type { Event } from "../src/index.js";
import { Client, InvalidAnswer, Pieces, ProblemError, StreamEnded, Unreachable } from "../src/index.js";

const ROUNDS = 5;
const url = process.env["STEERSMAN_SERVER"] ?? "";
const token = process.env["STEERSMAN_TOKEN"] ?? "";
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

function tell(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Has the server killed: before what comes next, or while it is on its way. */
async function kill(waits: boolean): Promise<void> {
  tell("kill");
  if (waits) assert.equal((await input.next()).value, "dead");
}

function told(event: Event): void {
  if (event.line !== undefined) tell(`event ${JSON.stringify(event)}`);
}

async function followsAndActs(client: Client): Promise<void> {
  const session = await client.start("desk", "Send 150 to Anna.", { idempotencyKey: "one" });
  assert.equal((await client.start("desk", "Send 150 to Anna.", { idempotencyKey: "one" })).id, session.id);
  tell(`session ${session.id}`);
  let [rounds, hellos, cursor] = [0, 0, "start"];
  for await (const event of session.follow()) {
    told(event);
    cursor = event.cursor;
    if (event.event === "hello") hellos += 1;
    if (event.event === "asked") {
      await kill(true);
      const receipt = await session.approve(String(event["question"]), { as: "supervisor" });
      assert.ok(["taken", "queued", "known"].includes(receipt.fate), receipt.fate);
    } else if (event.event === "said" && event["text"]) {
      if (rounds === ROUNDS) break;
      await kill(rounds % 2 === 0);
      await session.say(`More ${rounds}.`);
      rounds += 1;
    }
  }
  assert.ok(hellos > ROUNDS, `${hellos}`);
  for await (const event of session.follow({ from: cursor, untilSettled: true })) told(event);
  const turn = await session.settled();
  assert.deepEqual([turn.status, turn.session], ["answered", session.id]);
  await assert.rejects(client.start("desk", "Something else.", { idempotencyKey: "one" }), problem("repeated"));
  await assert.rejects(session.artifact("nothing"), problem("artifact"));
  assert.deepEqual(await session.artifacts(), []);
  const listed = await client.api.sessions.list({ definition: "desk" });
  assert.deepEqual(listed.items.map((row) => row.session), [session.id]);
  tell("followed");
}

async function asks(client: Client): Promise<void> {
  const session = await client.start("desk", "Send 150 to Ben.");
  assert.equal((await session.settled()).status, "asks");
  const [question] = await session.questions();
  assert.ok(question);
  assert.deepEqual(question.args, { to: "anna", cents: 15000 });
  await session.reject(question.id, { as: "supervisor", reason: "Not him." });
  assert.equal((await session.settled()).status, "answered");
  const answered = await session.ask("Why?");
  assert.deepEqual([answered.status, answered.session], ["answered", session.id]);
  const kinds: string[] = [];
  for await (const event of session.follow({ kinds: ["asked", "decided"], untilSettled: true })) kinds.push(event.event);
  assert.deepEqual(kinds, ["hello", "asked", "decided"]);
  const stop = new AbortController();
  await assert.rejects(async () => {
    for await (const event of session.follow({ signal: stop.signal })) if (event.event === "asked") stop.abort();
  }, { name: "AbortError" });
  tell("asked");
}

function problem(code: string): (error: unknown) => boolean {
  return (error) => error instanceof ProblemError && error.code === code && error.message.endsWith(`(${code})`);
}

async function errors(): Promise<void> {
  await assert.rejects(new Client({ url, token: "stm_wrong_token", patience: 0 }).api.tokens.me(), problem("token"));
  const nobody = new Client({ url: "http://127.0.0.1:1", token: "stm_x", patience: 0 });
  await assert.rejects(nobody.api.tokens.me(), (error) => error instanceof Unreachable && error.message.includes("start `steersman serve`"));
  // A program that is no server of ours, and a stream that ends.
  const other = createServer((request, response) => {
    if (request.url === "/v1/me") {
      response.setHeader("content-type", "text/html").end("<html>Welcome</html>");
      return;
    }
    const last = request.headers["last-event-id"];
    const hello = `event: hello\ndata: {"cursor":"${last ?? "0.0"}"}\n\n`;
    const heard = last === undefined ? 'event: heard\nid: 1.1\ndata: {"cursor":"1.1","line":1,"text":"one\u2028two"}\n\n' : "";
    const piece = 'event: piece\ndata: {"cursor":"1.1","effect":"1.1","text":"Hel"}\n\n';
    response.setHeader("content-type", "text/event-stream").end(`${hello}${heard}${piece}event: said\nid: 1.2\ndata: {`);
  });
  await new Promise<void>((done) => other.listen(0, "127.0.0.1", done));
  const at = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  const client = new Client({ url: at, token: "stm_x", patience: 0.5 });
  await assert.rejects(client.api.tokens.me(), (error) => error instanceof InvalidAnswer && error.status === 200);
  const pieces = new Pieces();
  const shown: string[] = [];
  const heard: unknown[] = [];
  for await (const event of client.follow("s")) {
    pieces.take(event);
    shown.push(pieces.text());
    if (event.event === "heard") heard.push(event["text"]);
    if (shown.length === 5) break;
  }
  // The piece before the break is void, and the incomplete frame was none.
  assert.deepEqual([shown, heard], [["", "", "Hel", "", "Hel"], ["one\u2028two"]]);
  other.closeAllConnections();
  await new Promise((done) => other.close(done));
  await assert.rejects(
    async () => {
      for await (const event of client.follow("s", { from: "7.1" })) assert.fail(event.event);
    },
    (error) => error instanceof StreamEnded && error.cursor === "7.1" && error.message.includes("follow from this position"),
  );
  tell("errors");
}

const client = new Client({ url, token, patience: 60 });
await followsAndActs(client);
await asks(client);
await errors();
process.exit(0);
