"""A typed client of `steersman serve`: sessions over HTTP, and streams of events that survive a restart of the server."""

from . import _api
from ._api import *  # noqa: F403
from ._async import AsyncClient, AsyncSession
from ._call import Frame
from ._errors import (
    Conflict,
    ConnectionLost,
    Forbidden,
    InvalidAnswer,
    InvalidRequest,
    InvalidToken,
    NotFound,
    Problem,
    Refused,
    ServerProblem,
    SteersmanError,
    StreamEnded,
    TooManyRequests,
    Unreachable,
)
from ._follow import Event, Pieces
from ._sync import Client, Session

__all__ = [
    "AsyncClient",
    "AsyncSession",
    "Client",
    "Conflict",
    "ConnectionLost",
    "Event",
    "Forbidden",
    "Frame",
    "InvalidAnswer",
    "InvalidRequest",
    "InvalidToken",
    "NotFound",
    "Pieces",
    "Problem",
    "Refused",
    "ServerProblem",
    "Session",
    "SteersmanError",
    "StreamEnded",
    "TooManyRequests",
    "Unreachable",
]
__all__ += _api.__all__
