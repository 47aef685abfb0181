"""The client for asyncio. `cargo xtask clients` makes the client that blocks from this file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import TracebackType
from typing import Any, Union, cast

import httpx2

from ._api import ArtifactRow, AsyncApi, File, Question, Receipt, Turn
from ._call import Call, Frame, Frames, Patience, invalid, read, refusal
from ._errors import SteersmanError, refused
from ._follow import Event, Reading, may_come_back
from ._wire import Wire, ended, is_stream, media


class AsyncClient(Wire):
    """A client for asyncio. `api` has all operations of the server; the methods here are for everyday use.

    Requests are sent again for `patience` seconds while the server cannot be reached or says that it is busy, if that does no harm:
    each act has a key of its own, so it happens once. Without arguments the address is `STEERSMAN_SERVER` and the token
    `STEERSMAN_TOKEN`.
    """

    def __init__(
        self,
        url: Union[str, None] = None,
        token: Union[str, None] = None,
        *,
        patience: float = 10.0,
        http: Union[httpx2.AsyncClient, None] = None,
    ) -> None:
        super().__init__(url, token, patience)
        self._http = http or httpx2.AsyncClient(follow_redirects=False)
        self.api = AsyncApi(self._send, self._open)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: Union[type[BaseException], None], error: Union[BaseException, None], trace: Union[TracebackType, None]
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes all connections."""
        await self._http.aclose()

    async def start(
        self,
        definition: str,
        message: Union[str, None] = None,
        *,
        entry: Union[str, None] = None,
        args: Union[dict[str, Any], None] = None,
        files: Union[list[File], None] = None,
        as_: Union[str, None] = None,
        idempotency_key: Union[str, None] = None,
    ) -> AsyncSession:
        """Starts a session of a definition."""
        started = await self.api.sessions.start(
            definition=definition,
            message=message,
            entry=entry,
            args=args,
            files=files,
            as_=as_,
            idempotency_key=idempotency_key,
        )
        return self.session(started["session"])

    def session(self, id: str) -> AsyncSession:
        """Returns a session by its id. Nothing is sent."""
        return AsyncSession(self, id)

    async def _send(self, call: Call) -> Any:
        patience = Patience(self._patience)
        while True:
            try:
                response = await self._http.request(**self._request(call))
            except httpx2.TransportError as error:
                pause: Union[float, None] = self._pause(call, patience, error)
            else:
                pause = self._retry(call, patience, response)
                if pause is None:
                    return read(call, response.status_code, media(response), response.content)
            await asyncio.sleep(pause or 0.0)

    async def _open(self, call: Call) -> AsyncGenerator[Frame, None]:
        frames = Frames()
        try:
            async with self._http.stream(**self._request(call)) as response:
                if not is_stream(response):
                    body = await response.aread()
                    if response.status_code == 200:
                        raise invalid(200, media(response), body)
                    raise refusal(response.status_code, media(response), body)
                async for chunk in response.aiter_bytes():
                    for frame in frames.take(chunk):
                        yield frame
        except httpx2.TransportError as error:
            raise self._broken(call, error) from error

    async def follow(
        self,
        session: str,
        *,
        start: str = "start",
        kinds: Union[list[str], None] = None,
        branch: Union[str, None] = None,
        until_settled: bool = False,
    ) -> AsyncGenerator[Event, None]:
        """Tells the events of a session from a position on: a cursor, `start` or `now`.

        A broken connection is opened again behind the last event on disk, to this server or to one that was started in its place:
        no event is missing, none comes twice. An event `hello` says that streamed pieces told before are void. `StreamEnded` is raised
        after `patience` seconds without a connection.
        """
        reading = Reading(session, start, kinds, branch, until_settled)
        patience, why = Patience(self._patience), cast(Union[Exception, None], None)
        while True:
            try:
                async with aclosing(self.api.events.follow(session, **reading.query())) as frames:
                    async for frame in frames:
                        patience.begin()
                        event = reading.take(frame)
                        if event is not None:
                            yield event
                        if reading.is_over:
                            return
            except SteersmanError as error:
                if not may_come_back(error):
                    raise
                why = error
            pause = patience.pause()
            if pause is None:
                raise ended(reading, self.url, why) from why
            await asyncio.sleep(pause)


class AsyncSession:
    """A session."""

    def __init__(self, client: AsyncClient, id: str) -> None:
        self._client = client
        self.id = id
        """Its id."""

    async def say(
        self,
        text: str,
        *,
        files: Union[list[File], None] = None,
        as_: Union[str, None] = None,
        interrupt: Union[bool, None] = None,
        idempotency_key: Union[str, None] = None,
    ) -> Receipt:
        """Says something."""
        said = await self._client.api.sessions.say(
            self.id, text=text, files=files, as_=as_, interrupt=interrupt, idempotency_key=idempotency_key
        )
        return cast(Receipt, said)

    async def ask(self, text: str, *, files: Union[list[File], None] = None, as_: Union[str, None] = None) -> Turn:
        """Says something, and waits until the session settles after it, however long that takes."""
        receipt = await self.say(text, files=files, as_=as_)
        if "line" not in receipt:
            async with aclosing(self.follow(kinds=["accepted", "refused"])) as events:
                async for event in events:
                    if event.get("message") == receipt["message"]:
                        if event.kind == "refused":
                            raise refused(event["why"])
                        break
        return await self.settled()

    def follow(
        self,
        *,
        start: str = "start",
        kinds: Union[list[str], None] = None,
        branch: Union[str, None] = None,
        until_settled: bool = False,
    ) -> AsyncGenerator[Event, None]:
        """Tells the events of the session, as `Client.follow`."""
        return self._client.follow(self.id, start=start, kinds=kinds, branch=branch, until_settled=until_settled)

    async def settled(self) -> Turn:
        """Waits until the session settles: it answered, asks, waits, or stopped."""
        last: dict[str, Any] = {}
        async for event in self.follow(start="now", kinds=["settled"], until_settled=True):
            if event.kind == "settled":
                last = {**event.data, "session": self.id, "line": int(event.cursor.partition(".")[0])}
        return cast(Turn, last)

    async def questions(self) -> list[Question]:
        """Lists what the session waits for."""
        return (await self._client.api.questions.of_session(self.id))["items"]

    async def approve(
        self,
        question: str,
        *,
        args: Union[dict[str, Any], None] = None,
        as_: Union[str, None] = None,
        idempotency_key: Union[str, None] = None,
    ) -> Receipt:
        """Allows a held call to run once, with the arguments that were shown, or with `args` in place of those that may be changed."""
        return cast(Receipt, await self._client.api.questions.approve(self.id, question, args=args, as_=as_, idempotency_key=idempotency_key))

    async def reject(
        self,
        question: str,
        *,
        reason: Union[str, None] = None,
        as_: Union[str, None] = None,
        idempotency_key: Union[str, None] = None,
    ) -> Receipt:
        """Refuses a held call. The model reads the reason."""
        return cast(Receipt, await self._client.api.questions.reject(self.id, question, reason=reason, as_=as_, idempotency_key=idempotency_key))

    async def answer(
        self,
        question: str,
        text: str,
        *,
        as_: Union[str, None] = None,
        idempotency_key: Union[str, None] = None,
    ) -> Receipt:
        """Answers a question."""
        return cast(Receipt, await self._client.api.questions.answer(self.id, question, text=text, as_=as_, idempotency_key=idempotency_key))

    async def artifacts(self) -> list[ArtifactRow]:
        """Lists all versions of the artifacts of the current branch."""
        return (await self._client.api.views.artifacts(self.id))["items"]

    async def artifact(self, name: str, *, version: Union[int, None] = None) -> bytes:
        """Returns the content of an artifact: of its newest version, unless one is named."""
        return await self._client.api.views.artifact(self.id, name, version=version)
