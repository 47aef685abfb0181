"""Errors. Each says what happened and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union, cast

if TYPE_CHECKING:
    from ._api import ProblemCode


class SteersmanError(Exception):
    """An error of this client or of the server."""


class Unreachable(SteersmanError):
    """No connection to the server could be opened: nothing was sent."""


class ConnectionLost(SteersmanError):
    """The connection broke before the answer came. The server may have carried out the request."""


class InvalidAnswer(SteersmanError):
    """The answer has not the form of an answer of the server: something else may be at this address."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
        """The status of the answer."""


class StreamEnded(SteersmanError):
    """A stream of events ended, and could not be opened again. Follow from `cursor` to miss nothing."""

    def __init__(self, message: str, cursor: str) -> None:
        super().__init__(message)
        self.cursor = cursor
        """The position behind the last event on disk that was told."""


class Problem(SteersmanError):
    """The server did not carry out the request, and says why."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.code = cast("ProblemCode", document["code"])
        """The code that programs branch on."""
        self.status = int(document.get("status", 0))
        """The status of the answer."""
        self.title = str(document.get("title", ""))
        """A title that is the same for every problem of this code."""
        self.detail = str(document.get("detail", ""))
        """The fault."""
        self.help = cast(Union[str, None], document.get("help"))
        """The way out, if it is not a part of the detail."""
        self.diagnostics: Sequence[Any] = document.get("diagnostics") or []
        """Errors of a definition."""
        help = f": {self.help}" if self.help else ""
        super().__init__(f"{self.detail}{help} ({self.code})")


class InvalidRequest(Problem):
    """The request does not fit (400, 405, 413, 415)."""


class InvalidToken(Problem):
    """The token is missing, unknown, revoked or expired (401)."""


class Forbidden(Problem):
    """The token does not allow this, or does not have the role (403)."""


class NotFound(Problem):
    """It does not exist, or the token does not see it (404)."""


class Conflict(Problem):
    """It exists already, was said otherwise under the same key, or the session has changed (409, 412)."""


class Refused(Problem):
    """The session refused it, or the definition has errors (422)."""


class TooManyRequests(Problem):
    """Too many requests or streams (429)."""


class ServerProblem(Problem):
    """The server or its store could not do it now (5xx)."""


_BY_STATUS: dict[int, type[Problem]] = {
    400: InvalidRequest,
    401: InvalidToken,
    403: Forbidden,
    404: NotFound,
    405: InvalidRequest,
    409: Conflict,
    412: Conflict,
    413: InvalidRequest,
    415: InvalidRequest,
    422: Refused,
    429: TooManyRequests,
}


def problem(document: dict[str, Any]) -> Problem:
    """Returns the error of a problem document (RFC 9457)."""
    status = int(document.get("status", 0))
    kind = _BY_STATUS.get(status, ServerProblem if status >= 500 else Problem)
    return kind(document)


def refused(why: str) -> Problem:
    """Returns the error of a message that the session refused after the answer of the request."""
    return problem({"code": "refused", "status": 422, "title": "The session refused it", "detail": why})
