// Uses `desk`, whose payments a supervisor approves, with the official client of MCP: over HTTP and over a process.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(`${process.env.STEERSMAN_MCP_JS}/x.js`));
const load = (path) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${path}`)).href);
const { Client } = await load("client/index.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { ElicitRequestSchema } = await load("types.js");

const { STEERSMAN_AT, STEERSMAN_TOKEN, STEERSMAN_PROGRAM } = process.env;

function transport(kind) {
  if (kind === "process") {
    const args = ["mcp", "--as", "user", "--as", "supervisor", "--script-all", "script.yaml", "--store", process.argv[2]];
    return new StdioClientTransport({ command: STEERSMAN_PROGRAM, args, env: process.env, stderr: "ignore" });
  }
  const requestInit = { headers: { Authorization: `Bearer ${STEERSMAN_TOKEN}` } };
  return new StreamableHTTPClientTransport(new URL(`${STEERSMAN_AT}/mcp`), { requestInit });
}

async function connected(kind, capabilities) {
  const client = new Client({ name: "test", version: "1" }, { capabilities });
  await client.connect(transport(kind));
  return client;
}

for (const kind of ["http", "process"]) {
  const asked = [];
  const told = [];
  let client = await connected(kind, { elicitation: { form: {} } });
  client.setRequestHandler(ElicitRequestSchema, async (request) => {
    asked.push(request.params.message);
    return { action: "accept", content: { approve: true } };
  });
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), ["desk"]);
  const call = async (args) => {
    const result = await client.callTool({ name: "desk", arguments: args }, undefined, { onprogress: (one) => told.push(one.message) });
    assert.ok(!result.isError, JSON.stringify(result));
    return result.structuredContent;
  };
  const sent = await call({ message: "Send 150 to Anna." });
  assert.equal(sent.text, "I sent 150.00 to Anna.");
  assert.equal(asked.length, 1);
  assert.equal(told[0], "send_money is called");
  const more = await call({ session: sent.session, message: "Thank you." });
  assert.equal(more.text, "You are welcome.");
  await client.close();

  client = await connected(kind, {});
  const asks = await call({ message: "Send 150 to Anna." });
  assert.equal(asks.turn, "asks");
  const place = kind === "http" ? /^http:.*\/#\/s\/.*\/q\// : /^steersman approve .* --as supervisor$/;
  assert.match(asks.questions[0].decide, place);
  const still = await call({ session: asks.session });
  assert.deepEqual(still.questions, asks.questions);
  await client.close();
  console.log(kind, "ok");
}
