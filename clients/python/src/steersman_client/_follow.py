"""Events of a session, and the place of a reader in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Union

from ._call import Frame
from ._errors import ConnectionLost, InvalidAnswer, Problem, SteersmanError, Unreachable, problem

_LATER = ("store", "stopping", "late", "rate", "streams")
"""Codes of problems after which a stream is opened again."""


@dataclass(frozen=True)
class Event:
    """An event of a session. The reference of events lists the kinds and their fields; more of both may be added."""

    kind: str
    """The kind: `said`, `asked`, `piece`. `hello` comes first, and again after each break: pieces shown before are void."""
    cursor: str
    """The position behind the event."""
    data: Mapping[str, Any]
    """All fields."""

    @property
    def line(self) -> Union[int, None]:
        """The line of the log that holds it."""
        return self.data.get("line")

    @property
    def is_provisional(self) -> bool:
        """True if it is in no line: only readers that are attached now see it."""
        return self.line is None

    @property
    def agent(self) -> Union[str, None]:
        """The name of the agent that it belongs to."""
        return self.data.get("agent")

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Returns a field."""
        return self.data.get(name, default)


class Reading:
    """The place of a reader in the events of a session, over all connections."""

    def __init__(
        self,
        session: str,
        start: str,
        kinds: Union[list[str], None],
        branch: Union[str, None],
        until_settled: bool,
    ) -> None:
        self.session, self.start, self.branch = session, start, branch
        self.until_settled = until_settled
        self.cursor: Union[str, None] = None
        self.is_over = False
        self._kinds = kinds

    def query(self) -> dict[str, Any]:
        """Returns the arguments of the next request."""
        kinds = self._kinds
        if kinds is not None and self.until_settled:
            # The end is known by it.
            kinds = [*kinds, "settled"]
        return {
            "from_": None if self.cursor else self.start,
            "last_event_id": self.cursor,
            "kinds": None if kinds is None else ",".join(kinds),
            "branch": self.branch,
            "until": "settled" if self.until_settled else None,
        }

    def take(self, frame: Frame) -> Union[Event, None]:
        """Takes a frame. Returns the event to tell, if it is one. Raises the problem with which the server ended the stream."""
        if frame.event == "problem":
            raise problem(frame.data)
        event = Event(frame.event, frame.data.get("cursor", self.cursor or self.start), frame.data)
        if frame.event == "hello":
            self.cursor = event.cursor
            return event
        if frame.id is not None:
            self.cursor = frame.id
        if frame.event == "settled":
            self.is_over = self.until_settled
        is_wanted = self._kinds is None or frame.event in self._kinds
        return event if is_wanted else None


def may_come_back(error: SteersmanError) -> bool:
    """Returns true if a stream that this error ended is opened again."""
    if isinstance(error, InvalidAnswer):
        # A proxy in front of a server that is being started again.
        return error.status in (502, 503, 504)
    if isinstance(error, Problem):
        return error.code in _LATER
    return isinstance(error, (Unreachable, ConnectionLost))


class Pieces:
    """The streamed pieces of answers that are not complete yet, by the model call. Give it every event."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def take(self, event: Event) -> None:
        """Adds a piece, or drops those that are void: after a break, a withdrawal, or the complete text."""
        if event.kind == "hello":
            self._texts.clear()
        elif event.kind == "piece":
            effect = event["effect"]
            self._texts[effect] = self._texts.get(effect, "") + event["text"]
        elif event.kind in ("withdrawn", "said"):
            self._texts.pop(event["effect"], None)

    def text(self) -> str:
        """Returns what has been streamed of answers that are not complete."""
        return "".join(self._texts.values())
