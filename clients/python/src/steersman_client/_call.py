"""Requests and answers, without input and output: both clients use this."""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Union
from urllib.parse import quote

from ._errors import ConnectionLost, InvalidAnswer, SteersmanError, Unreachable, problem

Given = dict[str, Any]

TIMEOUT = 60.0
"""Seconds without a byte after which a connection counts as broken. Streams have a comment every 15 seconds."""

LONGEST_LINE = 64 * 1024 * 1024
"""Most bytes of a line of a stream."""

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0


@dataclass(frozen=True)
class Frame:
    """A server-sent event."""

    event: str
    data: Any
    id: Union[str, None]


@dataclass
class Call:
    """A request."""

    verb: str
    path: str
    body: Any = None
    query: Given = field(default_factory=dict)
    idempotency_key: Union[str, None] = None
    wait: Union[int, None] = None
    if_match: Union[int, None] = None
    if_none_match: Union[str, None] = None
    last_event_id: Union[str, None] = None
    takes_key: bool = False
    answer: Literal["json", "bytes"] = "json"

    def __post_init__(self) -> None:
        if self.takes_key and self.idempotency_key is None:
            self.idempotency_key = uuid.uuid4().hex

    def headers(self, token: str) -> dict[str, str]:
        """Returns the headers."""
        headers = {"authorization": f"Bearer {token}"}
        if self.idempotency_key is not None:
            headers["idempotency-key"] = self.idempotency_key
        if self.wait is not None:
            headers["prefer"] = f"wait={self.wait}"
        if self.if_match is not None:
            headers["if-match"] = f'"{self.if_match}"'
        if self.if_none_match is not None:
            headers["if-none-match"] = self.if_none_match
        if self.last_event_id is not None:
            headers["last-event-id"] = self.last_event_id
        if self.body is not None:
            headers["content-type"] = "application/json"
        return headers

    def content(self) -> Union[bytes, None]:
        """Returns the body."""
        return None if self.body is None else json.dumps(self.body).encode()

    def timeout(self) -> float:
        """Returns the seconds after which a silent connection is broken."""
        return TIMEOUT + (self.wait or 0)

    def can_be_repeated(self) -> bool:
        """Returns true if the request may be sent again after it may have been carried out."""
        return self.verb in ("GET", "DELETE") or self.idempotency_key is not None


def given(fields: Given) -> Given:
    """Returns the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def path(form: str, **parts: Any) -> str:
    """Returns a path with its parameters."""
    return form.format(**{name: quote(str(part), safe="") for name, part in parts.items()})


def read(call: Call, status: int, media: str, body: bytes) -> Any:
    """Returns what an answer says. Raises the error that it is."""
    if status == 304:
        return None
    if 200 <= status < 300:
        if call.answer == "bytes":
            return body
        if not body:
            return None
        try:
            return json.loads(body)
        except ValueError:
            raise invalid(status, media, body) from None
    raise refusal(status, media, body)


def refusal(status: int, media: str, body: bytes) -> SteersmanError:
    """Returns the error of an answer that is no success."""
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if isinstance(document, dict) and isinstance(document.get("code"), str):
        return problem({"status": status, **document})
    return invalid(status, media, body)


def invalid(status: int, media: str, body: bytes) -> InvalidAnswer:
    """Returns the error of an answer that is not of the server."""
    begins = body[:80].decode("utf-8", "replace")
    return InvalidAnswer(
        f"the answer (status {status}, `{media or 'no media type'}`) is not JSON of a Steersman server; it begins with "
        f"{begins!r}: check the address",
        status,
    )


def unreachable(url: str, why: Exception) -> Unreachable:
    """Returns the error of a connection that could not be opened."""
    return Unreachable(f"no server answers at {url} ({why or type(why).__name__}): start `steersman serve`, or check the address")


def lost(url: str, call: Call, why: Exception) -> ConnectionLost:
    """Returns the error of a connection that broke."""
    said = f"the connection to {url} broke before the answer came ({why or type(why).__name__})"
    if call.can_be_repeated():
        return ConnectionLost(f"{said}: send it again under the same key")
    return ConnectionLost(f"{said}: look whether it was carried out before you send it again")


class Patience:
    """Pauses between attempts, until the time for all of them is over."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.begin()

    def begin(self) -> None:
        """Begins again, after something has succeeded."""
        self._until = time.monotonic() + self._seconds
        self._pause = _FIRST_PAUSE

    def pause(self, after: Union[float, None] = None) -> Union[float, None]:
        """Returns the seconds until the next attempt; `None` if there is none."""
        pause = max(self._pause * random.uniform(0.5, 1.0), after or 0.0)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return pause if time.monotonic() + pause < self._until else None


def after(status: int, retry_after: Union[str, None]) -> Union[float, None]:
    """Returns the seconds after which an answer says that the request may succeed; `None` if it says no such thing."""
    if status in (429, 503) and retry_after is not None:
        try:
            return max(float(retry_after), 0.0)
        except ValueError:
            return 1.0
    # A proxy in front of a server that is being started again.
    return 0.0 if status in (502, 503, 504) else None


class Frames:
    """Reads frames from the bytes of a stream."""

    def __init__(self) -> None:
        self._rest = b""
        self._clear()

    def _clear(self) -> None:
        self._event = "message"
        self._id: Union[str, None] = None
        self._data: list[str] = []

    def take(self, chunk: bytes) -> Iterator[Frame]:
        """Takes bytes, and returns the frames that they complete. What a break leaves incomplete is no frame."""
        # The texts of events may hold what Python takes for an end of a line, so only line feeds count.
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            raise invalid(200, "text/event-stream", self._rest)
        for line in lines:
            frame = self._line(line.removesuffix(b"\r"))
            if frame is not None:
                yield frame

    def _line(self, line: bytes) -> Union[Frame, None]:
        if not line:
            data, event, id = "\n".join(self._data), self._event, self._id
            self._clear()
            if not data:
                return None
            try:
                return Frame(event, json.loads(data), id)
            except ValueError:
                raise invalid(200, "text/event-stream", data.encode()) from None
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self._id = value
        return None
