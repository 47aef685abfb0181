// Talks to servers with AG-UI's own client, which checks the order of all events (`verifyEvents`) and their form. The first server has the
// definition `front` of tests/it/agui.rs; the model of the second one takes its first words back, and waits in the second turn.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { connect } from "node:net";

const require = createRequire(process.env.STEERSMAN_AGUI + "/");
const { HttpAgent, buildResumeArray } = require("@ag-ui/client");

// Nothing that the client would strip or doubt.
const warnings = [];
console.warn = (...words) => warnings.push(words.join(" "));

const at = process.env.STEERSMAN_AT;
const headers = { authorization: "Bearer " + process.env.STEERSMAN_TOKEN };
const open = (threadId) => new HttpAgent({ url: at + "/agui/front", headers, threadId });

async function run(agent, text, resume) {
  if (text) agent.messages.push({ id: crypto.randomUUID(), role: "user", content: text });
  const seen = [];
  const result = await agent.runAgent({ resume }, { onEvent: ({ event }) => void seen.push(event) });
  return { ...result, seen, of: (kind) => seen.filter((event) => event.type === kind) };
}

const agent = open("client");
const asks = await run(agent, "My kettle is broken.");
const [interrupt] = agent.pendingInterrupts;
assert.equal(interrupt.reason, "tool_call");
assert.ok(interrupt.responseSchema.properties.editedArgs);
const resume = buildResumeArray(agent.pendingInterrupts, {
  [interrupt.id]: { status: "resolved", payload: { approved: true, editedArgs: { cents: 2990, order: "4711" } } },
});
const paid = await run(agent, null, resume);
const [result] = paid.of("TOOL_CALL_RESULT");
assert.equal(result.toolCallId, interrupt.toolCallId);
assert.ok(result.content.startsWith("2990"), result.content);
assert.equal(paid.result.answer, "Paid.");
assert.equal(agent.state.paid, 2990);
assert.equal(agent.pendingInterrupts.length, 0);
const said = agent.messages.filter((message) => message.role !== "activity");
assert.deepEqual(said.map((message) => message.role), ["user", "assistant", "tool", "assistant"]);
assert.equal(said[1].toolCalls[0].function.name, "refund");
assert.ok(asks.of("RUN_FINISHED")[0].usage[0].totalTokens > 0);
console.log("interrupts ok");

const looked = await run(agent, "Look.");
assert.equal(looked.of("SUBAGENT_STARTED")[0].name, "helper");
assert.equal(agent.messages.at(-1).content, "It says: Nothing there.");
assert.ok(agent.messages.some((message) => message.subagentRunId && message.content === "Nothing there."));
console.log("sub-agents ok");

await run(agent, "And that.");
const [question] = agent.pendingInterrupts;
assert.equal(question.reason, "input_required");
const answered = await run(agent, null, [{ interruptId: question.id, status: "resolved", payload: { answer: "Red" } }]);
assert.equal(answered.result.answer, "So Red.");
console.log("questions ok");

// Another client of the thread gets the last run with the conversation before it.
const second = open("client");
await run(second);
const texts = (of) => of.messages.filter((m) => m.role !== "activity").map((m) => [m.id, m.role, m.content ?? ""]);
assert.deepEqual(texts(second), texts(agent));
console.log("threads ok");

// The model of the second server begins when this client says that it listens.
const [, port] = process.env.STEERSMAN_GO.split(":");
const listens = () => new Promise((done) => connect(Number(port), "127.0.0.1").once("connect", done).unref());

const slow = new HttpAgent({
  url: process.env.STEERSMAN_SLOW_AT + "/agui/desk",
  headers: { authorization: "Bearer " + process.env.STEERSMAN_SLOW_TOKEN },
  threadId: "client",
});
slow.subscribe({ onRunStartedEvent: async () => void (await listens()) });
const taken = await run(slow, "What is it?");
const pieces = taken.of("TEXT_MESSAGE_CONTENT").map((event) => event.delta);
assert.ok(pieces.includes("Perhaps "), pieces.join("|"));
assert.equal(slow.messages.at(-1).content, "It boils water.");
assert.equal(slow.messages.length, 2);
console.log("withdrawal ok");

slow.messages.push({ id: "u2", role: "user", content: "Wait." });
let session;
const cancelled = await slow.runAgent({}, {
  onRunStartedEvent: ({ event }) => void (session = event.metadata.steersman.session),
  onTextMessageContentEvent: async () => {
    if (!session) return;
    const path = `${process.env.STEERSMAN_SLOW_AT}/v1/sessions/${session}/cancel`;
    session = undefined;
    const body = JSON.stringify({ what: "turn" });
    const told = await fetch(path, { method: "POST", headers: { ...slow.headers, "content-type": "application/json" }, body });
    assert.equal(told.status, 202);
  },
  onRunFinishedEvent: ({ outcome }) => assert.equal(outcome, "cancelled"),
});
assert.equal(cancelled.result, undefined);
console.log("cancel ok");

// The script is at its end, so the model fails.
const failed = await run(agent, "More.");
assert.equal(failed.seen.at(-1).type, "RUN_ERROR");
const tools = await agent.runAgent({ tools: [{ name: "toast", description: "Shows a text." }] }, {
  onRunErrorEvent: ({ event }) => assert.equal(event.code, "tools_unsupported"),
});
assert.deepEqual(tools.newMessages, []);
const nobody = new HttpAgent({ url: at + "/agui/front", headers: {}, threadId: "client" });
const error = console.error;
console.error = () => {};
await assert.rejects(run(nobody, "Hello."), (fault) => fault.status === 401);
console.error = error;
assert.deepEqual(warnings, []);
console.log("errors ok");
