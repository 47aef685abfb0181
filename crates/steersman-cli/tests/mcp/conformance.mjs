// Runs the server scenarios of the conformance suite of MCP against a server that wants a token, which the suite cannot send: a proxy
// adds it. Host and origin stay as the suite sends them, except that those of the proxy become those of the server.
//
//   node conformance.mjs FOLDER [SCENARIO]
import { spawn } from "node:child_process";
import http from "node:http";

const [, , folder, scenario] = process.argv;
const server = new URL(process.env.STEERSMAN_AT);
const token = process.env.STEERSMAN_TOKEN;

const proxy = http.createServer((asked, answer) => {
  const own = `localhost:${proxy.address().port}`;
  const headers = { ...asked.headers, authorization: `Bearer ${token}` };
  if (headers.host === own) headers.host = server.host;
  if (headers.origin === `http://${own}`) headers.origin = server.origin;
  const { hostname, port } = server;
  const on = http.request({ hostname, port, path: asked.url, method: asked.method, headers }, (from) => {
    answer.writeHead(from.statusCode, from.headers);
    from.pipe(answer);
  });
  on.on("error", () => answer.destroy());
  asked.pipe(on);
});

proxy.listen(0, "localhost", () => {
  const url = `http://localhost:${proxy.address().port}/mcp`;
  const suite = `${folder}/node_modules/@modelcontextprotocol/conformance/dist/index.js`;
  const which = scenario ? ["--verbose", "--scenario", scenario] : ["--suite", "all"];
  const ran = spawn(process.execPath, [suite, "server", "--url", url, ...which], { stdio: "inherit" });
  // Some scenarios fail, because they try what is not offered: the caller reads which.
  ran.on("exit", () => process.exit(0));
});
