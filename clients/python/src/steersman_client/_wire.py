"""What the two clients share: requests as httpx2 sends them, and answers as it gives them."""

from __future__ import annotations

import os
from typing import Any, Union

import httpx2

from ._call import Call, Patience, after, lost, unreachable
from ._errors import SteersmanError, StreamEnded, Unreachable
from ._follow import Reading

_CONNECT = 5.0
"""Seconds in which a connection opens."""

_NOTHING_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


def _place(url: Union[str, None], token: Union[str, None]) -> tuple[str, str]:
    url = url or os.environ.get("STEERSMAN_SERVER") or "http://127.0.0.1:7410"
    token = token or os.environ.get("STEERSMAN_TOKEN")
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url!r} is not the address of a server: it begins with http:// or https://")
    if not token:
        raise ValueError("there is no token: give `token`, or set STEERSMAN_TOKEN; `steersman token new` makes one")
    return url.rstrip("/"), token.strip()


class Wire:
    """The base of both clients."""

    def __init__(self, url: Union[str, None], token: Union[str, None], patience: float) -> None:
        self.url, self._token = _place(url, token)
        self._patience = patience

    def _request(self, call: Call) -> dict[str, Any]:
        return {
            "method": call.verb,
            "url": self.url + call.path,
            "params": call.query,
            "content": call.content(),
            "headers": call.headers(self._token),
            "timeout": httpx2.Timeout(call.timeout(), connect=_CONNECT),
        }

    def _broken(self, call: Call, why: Exception) -> SteersmanError:
        if isinstance(why, _NOTHING_SENT):
            return unreachable(self.url, why)
        return lost(self.url, call, why)

    def _pause(self, call: Call, patience: Patience, error: Exception) -> float:
        """Returns the seconds until a request is sent again. Raises the error if it is not."""
        if isinstance(error, httpx2.TransportError):
            told = self._broken(call, error)
            repeats = isinstance(told, Unreachable) or call.can_be_repeated()
            pause = patience.pause() if repeats else None
            if pause is None:
                raise told from error
            return pause
        raise error

    def _retry(self, call: Call, patience: Patience, response: httpx2.Response) -> Union[float, None]:
        """Returns the seconds after which a request is sent again because the answer says so."""
        if not call.can_be_repeated():
            return None
        wanted = after(response.status_code, response.headers.get("retry-after"))
        return None if wanted is None else patience.pause(wanted)


def media(response: httpx2.Response) -> str:
    """Returns the media type of an answer."""
    return response.headers.get("content-type", "").partition(";")[0].strip()


def is_stream(response: httpx2.Response) -> bool:
    """Returns true if an answer is a stream of events."""
    return response.status_code == 200 and media(response) == "text/event-stream"


def ended(reading: Reading, url: str, why: Union[Exception, None]) -> StreamEnded:
    """Returns the error of a stream that could not be opened again."""
    cursor = reading.cursor or reading.start
    said = f"the events of {reading.session} ended behind {cursor}, and {url} could not be reached again"
    said += f" ({why})" if why else ""
    return StreamEnded(f"{said}: follow from this position once it is back", cursor)
