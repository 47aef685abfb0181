// Talks to a server with OpenAI's own client. The server has the definition `desk`: a refund that a manager approves.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(process.env.STEERSMAN_OPENAI_JS + "/");
const { default: OpenAI } = await import(require.resolve("openai"));

const client = new OpenAI({ baseURL: process.env.STEERSMAN_AT + "/openai/v1", apiKey: process.env.STEERSMAN_TOKEN });
const tools = [{ type: "function", function: { name: "approve", parameters: { type: "object" } } }];

const models = await client.models.list();
assert.deepEqual(models.data.map((model) => model.id), ["desk"]);

const messages = [{ role: "user", content: "My kettle is broken." }];
const asks = await client.chat.completions.create({ model: "desk", messages, tools });
assert.equal(asks.choices[0].finish_reason, "tool_calls");
const [call] = asks.choices[0].message.tool_calls;
messages.push(asks.choices[0].message);
messages.push({ role: "tool", tool_call_id: call.id, content: JSON.stringify({ approve: true }) });
const paid = await client.chat.completions.create({ model: "desk", messages, tools });
assert.equal(paid.choices[0].message.content, "Paid.");
messages.push(paid.choices[0].message, { role: "user", content: "And now?" });
const texts = [];
for (let n = 0; n < 2; n += 1) {
  let text = "";
  for await (const chunk of await client.chat.completions.create({ model: "desk", messages, stream: true })) {
    text += chunk.choices[0]?.delta.content ?? "";
  }
  texts.push(text);
}
assert.deepEqual(texts, ["To: And now?", "To: And now?"]);
console.log("chat ok");

const held = await client.responses.create({ model: "desk", input: "My kettle is broken." });
const asked = held.output.at(-1);
assert.equal(asked.type, "mcp_approval_request");
const input = [{ type: "mcp_approval_response", approval_request_id: asked.id, approve: true }];
const stream = client.responses.stream({ model: "desk", previous_response_id: held.id, input });
const kinds = [];
for await (const event of stream) kinds.push(event.type);
assert.equal(kinds.at(-1), "response.completed");
const final = await stream.finalResponse();
assert.equal(final.output_text, "Paid.");
assert.equal((await client.responses.retrieve(final.id)).status, "completed");
console.log("responses ok");

await assert.rejects(client.responses.retrieve("resp_none_1"), (error) => error.status === 404 && error.code === "response");
console.log("errors ok");
