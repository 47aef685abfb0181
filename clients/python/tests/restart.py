"""Follows a session of a real server that is killed and started again, acts meanwhile, and provokes each error.

The test in Rust that runs it kills the server when it reads `kill`, answers `dead`, and starts it again. It compares the events
printed here with the log.
"""

import asyncio
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Union

from steersman_client import (
    AsyncClient,
    Client,
    Conflict,
    Event,
    InvalidAnswer,
    InvalidToken,
    NotFound,
    Pieces,
    Refused,
    StreamEnded,
    Unreachable,
)

ROUNDS = 5


def tell(line: str) -> None:
    print(line, flush=True)


def kill(waits: bool) -> None:
    """Has the server killed: before what comes next, or while it is on its way."""
    tell("kill")
    if waits:
        assert sys.stdin.readline() == "dead\n"


def told(event: Event) -> None:
    if not event.is_provisional and event.kind != "hello":
        tell("event " + json.dumps(event.data))


def follows_and_acts(client: Client) -> None:
    session = client.start("desk", "Send 150 to Anna.", idempotency_key="one")
    assert client.start("desk", "Send 150 to Anna.", idempotency_key="one").id == session.id
    tell(f"session {session.id}")
    rounds, hellos, cursor = 0, 0, "start"
    for event in session.follow():
        told(event)
        cursor = event.cursor
        hellos += event.kind == "hello"
        if event.kind == "asked":
            kill(waits=True)
            assert session.approve(event["question"], as_="supervisor")["fate"] in ("taken", "queued", "known")
        elif event.kind == "said" and event["text"]:
            if rounds == ROUNDS:
                break
            kill(waits=rounds % 2 == 0)
            session.say(f"More {rounds}.")
            rounds += 1
    assert hellos > ROUNDS, hellos
    for event in session.follow(start=cursor, until_settled=True):
        told(event)
    turn = session.settled()
    assert turn["status"] == "answered" and turn["session"] == session.id, turn
    try:
        client.start("desk", "Something else.", idempotency_key="one")
        raise AssertionError("the key was used before")
    except Conflict as error:
        assert error.code == "repeated", error
    try:
        session.artifact("nothing")
        raise AssertionError("there is no artifact")
    except NotFound as missing:
        assert missing.code == "artifact" and missing.help, missing
    assert session.artifacts() == []
    listed = client.api.sessions.list(definition="desk")
    assert [row["session"] for row in listed["items"]] == [session.id], listed
    tell("followed")


async def asks_for_asyncio(client: AsyncClient) -> None:
    session = await client.start("desk", "Send 150 to Ben.")
    turn = await session.settled()
    assert turn["status"] == "asks", turn
    [question] = await session.questions()
    assert question["args"] == {"to": "anna", "cents": 15000}, question
    try:
        await session.approve("99.9", as_="supervisor", args=None)
        raise AssertionError("nothing of this name is asked")
    except Refused as error:
        assert error.code == "refused", error
    await session.reject(question["id"], as_="supervisor", reason="Not him.")
    assert (await session.settled())["status"] == "answered"
    answered = await session.ask("Why?")
    assert answered["status"] == "answered" and answered["session"] == session.id, answered
    kinds = [event.kind async for event in session.follow(kinds=["asked", "decided"], until_settled=True)]
    assert kinds == ["hello", "asked", "decided"], kinds
    tell("asyncio")


class Other(BaseHTTPRequestHandler):
    """A program that is no server of ours, and a stream that ends."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path.endswith("/me"):
            body, media = b"<html>Welcome</html>", "text/html"
        else:
            last = self.headers.get("last-event-id")
            # What Python takes for an end of a line is none here.
            heard = ("heard", "1.1", {"cursor": "1.1", "line": 1, "text": "one\u2028two"})
            frames: list[tuple[str, Union[str, None], dict[str, object]]] = [
                ("hello", None, {"cursor": last or "0.0"}),
                *([heard] if last is None else []),
                ("piece", None, {"cursor": "1.1", "effect": "1.1", "text": "Hel"}),
            ]
            text = "".join(
                f"event: {kind}\n{f'id: {id}' + chr(10) if id else ''}data: {json.dumps(data, ensure_ascii=False)}\n\n"
                for kind, id, data in frames
            )
            body, media = (text + "event: said\nid: 1.2\ndata: {").encode(), "text/event-stream"
        self.send_response(200)
        self.send_header("content-type", media)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def errors(url: str) -> None:
    try:
        Client(url, "stm_wrong_token", patience=0).api.tokens.me()
        raise AssertionError("the token is wrong")
    except InvalidToken as error:
        assert error.code == "token" and "steersman token new" in str(error), error
    try:
        Client("http://127.0.0.1:1", "stm_x", patience=0).api.tokens.me()
        raise AssertionError("nobody is there")
    except Unreachable as error:
        assert "start `steersman serve`" in str(error), error
    other = ThreadingHTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    client = Client(f"http://127.0.0.1:{other.server_port}", "stm_x", patience=0.5)
    try:
        client.api.tokens.me()
        raise AssertionError("it is not JSON")
    except InvalidAnswer as error:
        assert error.status == 200 and "check the address" in str(error), error
    pieces, shown, heard = Pieces(), [], []
    events = client.follow("s")
    for event in events:
        pieces.take(event)
        shown.append(pieces.text())
        if event.kind == "heard":
            heard.append(event["text"])
        if len(shown) == 5:
            break
    events.close()
    # The piece before the break is void, and the incomplete frame was none.
    assert shown == ["", "", "Hel", "", "Hel"] and heard == ["one\u2028two"], (shown, heard)
    other.shutdown()
    other.server_close()
    try:
        for _ in Client(client.url, "stm_x", patience=0.3).follow("s", start="7.1"):
            pass
        raise AssertionError("the stream cannot be opened")
    except StreamEnded as error:
        assert error.cursor == "7.1" and "follow from this position" in str(error), error
    tell("errors")


async def main(url: str, token: str) -> None:
    async with AsyncClient(url, token) as client:
        await asks_for_asyncio(client)


if __name__ == "__main__":
    url, token = os.environ["STEERSMAN_SERVER"], os.environ["STEERSMAN_TOKEN"]
    with Client(patience=60) as client:
        follows_and_acts(client)
    asyncio.run(main(url, token))
    errors(url)
