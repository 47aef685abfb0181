"""Uses `desk`, whose payments a supervisor approves, with the official client of MCP: over HTTP and over a process, in both versions."""

import asyncio
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

AT, TOKEN = os.environ["STEERSMAN_AT"], os.environ["STEERSMAN_TOKEN"]
PROCESS = StdioServerParameters(
    command=os.environ["STEERSMAN_PROGRAM"],
    args=["mcp", "--as", "user", "--as", "supervisor", "--script-all", "script.yaml", "--store", sys.argv[1]],
    env=dict(os.environ),
)


def transport(kind):
    if kind == "process":
        return PROCESS
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False, timeout=60)
    return streamable_http_client(f"{AT}/mcp", http_client=http)


def turn(result):
    assert not result.is_error, result
    return result.structured_content


async def uses(kind, mode):
    asked, told = [], []

    async def person(context, params):
        asked.append(params.message)
        return ElicitResult(action="accept", content={"approve": True})

    async def progress(done, total, message):
        told.append((done, message))

    async with Client(transport(kind), mode=mode, elicitation_callback=person) as client:
        tools = await client.list_tools()
        assert [tool.name for tool in tools.tools] == ["desk"], tools
        sent = await client.call_tool("desk", {"message": "Send 150 to Anna."}, progress_callback=progress)
        sent = turn(sent)
        assert (sent["turn"], sent["text"]) == ("answered", "I sent 150.00 to Anna."), sent
        assert len(asked) == 1 and '"cents":15000' in asked[0], asked
        assert told[0] == (1, "send_money is called") and told == sorted(told), told
        more = turn(await client.call_tool("desk", {"session": sent["session"], "message": "Thank you."}))
        assert (more["text"], more["session"]) == ("You are welcome.", sent["session"]), more
        wrong = await client.call_tool("desk", {"session": "none", "message": "Hello."})
        assert wrong.is_error and "there is no session" in wrong.content[0].text, wrong
    # Without forms the result says who decides, and the session is the handle with which another connection goes on.
    async with Client(transport(kind), mode=mode) as client:
        asks = turn(await client.call_tool("desk", {"message": "Send 150 to Anna."}))
        place = "/#/s/" if kind == "http" else "--as supervisor"
        assert asks["turn"] == "asks" and place in asks["questions"][0]["decide"], asks
    async with Client(transport(kind), mode=mode, elicitation_callback=person) as client:
        sent = turn(await client.call_tool("desk", {"session": asks["session"]}))
        assert (sent["turn"], sent["session"]) == ("answered", asks["session"]), sent
    print(kind, mode, "ok")


async def main():
    for kind in ["http", "process"]:
        for mode in ["legacy", "auto", "2026-07-28"]:
            await uses(kind, mode)


asyncio.run(main())
