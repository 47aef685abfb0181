"""Made by `cargo xtask clients` from docs/reference/openapi.json. Do not edit."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Any, List, Literal, TypedDict, Union, cast

from ._call import Call, Frame, given, path

__all__ = [
    "Api",
    "ArtifactList",
    "ArtifactRow",
    "AsyncApi",
    "ConfigChange",
    "ConfigChanged",
    "DefinitionFaults",
    "DefinitionValue",
    "DefinitionValueList",
    "Erased",
    "ExchangedToken",
    "File",
    "ForgottenMemories",
    "How",
    "Job",
    "JobState",
    "MadeCode",
    "MadeHook",
    "MadeToken",
    "Opened",
    "OrderAct",
    "OrderFate",
    "OrderGiven",
    "OrdersGiven",
    "Permission",
    "Posted",
    "ProblemCode",
    "Question",
    "QuestionKind",
    "QuestionList",
    "Receipt",
    "SearchBegun",
    "ServerInfo",
    "SessionList",
    "SessionRow",
    "Stands",
    "Started",
    "StoryPage",
    "StoryRow",
    "StoryTone",
    "Turn",
    "TurnStatus",
    "What",
    "Where",
]


How = Literal[
    "done",
    "not_performed",
    "fail",
]
"""The fate of an effect in doubt."""


JobState = Literal[
    "running",
    "done",
    "failed",
    "stopped",
    "lost",
]
"""The state of a job."""


OrderAct = Literal[
    "cancel",
    "pause",
    "resume",
    "hold",
    "release",
    "retry",
    "edit",
    "migrate",
]
"""The acts that many sessions can be given. Questions are decided one by one, because a person has to read each of them."""


OrderFate = Literal[
    "taken",
    "waits",
    "queued",
    "known",
    "refused",
    "failed",
    "left",
]
"""The fates of an act in one of many sessions."""


Permission = Literal[
    "read",
    "context",
    "write",
    "events",
    "decide",
    "operate",
    "time",
    "memory",
    "admin",
]
"""Something that a token may allow."""


ProblemCode = Literal[
    "body",
    "query",
    "cursor",
    "id",
    "token",
    "scope",
    "role_not_yours",
    "origin",
    "host",
    "path",
    "session",
    "branch",
    "line",
    "question",
    "effect",
    "artifact",
    "response",
    "definition",
    "job",
    "search",
    "memory",
    "unknown_token",
    "webhook",
    "method",
    "repeated",
    "exists",
    "busy",
    "unbound",
    "moved",
    "too_large",
    "media",
    "rate",
    "streams",
    "refused",
    "faulty_definition",
    "damaged",
    "internal",
    "store",
    "stopping",
    "late",
    "failed",
]
"""The code that programs branch on."""


QuestionKind = Literal[
    "approval",
    "input",
    "doubt",
    "budget",
    "repeat",
    "question",
    "event",
    "timer",
    "again",
    "hold",
    "outage",
]
"""The kinds of waits."""


Stands = Literal[
    "taken",
    "waits",
    "queued",
    "known",
]
"""The fate of a message so far."""


StoryTone = Literal[
    "said",
    "called",
    "chose",
    "came",
    "wrong",
    "asked",
    "decided",
    "doubt",
    "engine",
    "found",
    "begins",
]
"""The kinds of rows of a story."""


TurnStatus = Literal[
    "answered",
    "asks",
    "doubt",
    "waits",
    "limit",
    "failed",
    "cancelled",
    "paused",
]
"""The kinds of states in which a session settles."""


What = Literal[
    "turn",
    "call",
    "agent",
    "branch",
    "session",
]
"""The work to cancel."""


Where = Literal[
    "known",
    "started",
    "session",
    "offered",
]
"""The fates of an event."""


_ArtifactListRequired = TypedDict(
    "_ArtifactListRequired",
    {
        # All versions.
        "items": "List[ArtifactRow]",
    },
)

_ArtifactListOptional = TypedDict(
    "_ArtifactListOptional",
    {
    },
    total=False,
)


class ArtifactList(_ArtifactListRequired, _ArtifactListOptional):
    """The artifacts of a branch."""


_ArtifactRowRequired = TypedDict(
    "_ArtifactRowRequired",
    {
        # The call that made it.
        "call": "str",
        # The digest of the content.
        "hash": "str",
        # The number of bytes.
        "len": "int",
        # The media type.
        "media": "str",
        # The name.
        "name": "str",
        # The number of the version.
        "version": "int",
    },
)

_ArtifactRowOptional = TypedDict(
    "_ArtifactRowOptional",
    {
        # Its rating.
        "rating": "Union[Any, None]",
    },
    total=False,
)


class ArtifactRow(_ArtifactRowRequired, _ArtifactRowOptional):
    """A version of an artifact."""


_ConfigChangeRequired = TypedDict(
    "_ConfigChangeRequired",
    {
        # The name of the value.
        "name": "str",
        # The value to which it is bound now.
        "new": "Any",
        # The value to which the session was bound.
        "old": "Any",
    },
)

_ConfigChangeOptional = TypedDict(
    "_ConfigChangeOptional",
    {
    },
    total=False,
)


class ConfigChange(_ConfigChangeRequired, _ConfigChangeOptional):
    """A value of `config` before and after."""


_ConfigChangedRequired = TypedDict(
    "_ConfigChangedRequired",
    {
        # Each value before and after.
        "changes": "List[ConfigChange]",
        # The fate of the wish.
        "receipt": "Receipt",
    },
)

_ConfigChangedOptional = TypedDict(
    "_ConfigChangedOptional",
    {
    },
    total=False,
)


class ConfigChanged(_ConfigChangedRequired, _ConfigChangedOptional):
    """Values that are bound."""


_DefinitionFaultsRequired = TypedDict(
    "_DefinitionFaultsRequired",
    {
        # Errors, warnings and notes.
        "diagnostics": "List[dict[str, Any]]",
        # Faults of what has to be registered in Rust, such as a tool that this text alone does not have.
        "in_rust": "List[str]",
        # True if it has no errors.
        "ok": "bool",
    },
)

_DefinitionFaultsOptional = TypedDict(
    "_DefinitionFaultsOptional",
    {
        # The name of the network, if it has no errors.
        "network": "Union[str, None]",
    },
    total=False,
)


class DefinitionFaults(_DefinitionFaultsRequired, _DefinitionFaultsOptional):
    """The faults of a definition."""


_DefinitionValueRequired = TypedDict(
    "_DefinitionValueRequired",
    {
        # Its path, such as `agents.desk.system`.
        "path": "str",
        # The value, as the definition has it.
        "value": "Any",
    },
)

_DefinitionValueOptional = TypedDict(
    "_DefinitionValueOptional",
    {
    },
    total=False,
)


class DefinitionValue(_DefinitionValueRequired, _DefinitionValueOptional):
    """A value of a definition."""


_DefinitionValueListRequired = TypedDict(
    "_DefinitionValueListRequired",
    {
        # The values, by their paths.
        "items": "List[DefinitionValue]",
    },
)

_DefinitionValueListOptional = TypedDict(
    "_DefinitionValueListOptional",
    {
    },
    total=False,
)


class DefinitionValueList(_DefinitionValueListRequired, _DefinitionValueListOptional):
    """Values of a definition."""


_ErasedRequired = TypedDict(
    "_ErasedRequired",
    {
        # True if it is erased.
        "applied": "bool",
        # Number of contents of artifacts that go with it. They are not shown any more, and leave the store with the same `erase` of the
        # program while no other process has the store open.
        "contents": "int",
        # True if these memories are forgotten, or would be.
        "forgets": "bool",
        # Number of memories that these sessions saved.
        "memories": "int",
        # The reruns that are erased with it.
        "reruns": "List[str]",
        # The session.
        "session": "str",
        # Number of texts that are tombstones.
        "texts": "int",
    },
)

_ErasedOptional = TypedDict(
    "_ErasedOptional",
    {
        # The session that it repeats, which holds the same texts and stays.
        "origin": "Union[str, None]",
        # True if every line that is left verifies.
        "verifies": "Union[bool, None]",
    },
    total=False,
)


class Erased(_ErasedRequired, _ErasedOptional):
    """The result of an erasure, or of one that is not carried out."""


_ExchangedTokenRequired = TypedDict(
    "_ExchangedTokenRequired",
    {
        # The token itself.
        "token": "str",
    },
)

_ExchangedTokenOptional = TypedDict(
    "_ExchangedTokenOptional",
    {
    },
    total=False,
)


class ExchangedToken(_ExchangedTokenRequired, _ExchangedTokenOptional):
    """The token of a code."""


_FileRequired = TypedDict(
    "_FileRequired",
    {
        # The name of the artifact.
        "name": "str",
    },
)

_FileOptional = TypedDict(
    "_FileOptional",
    {
        # The content in base 64, if it is not text.
        "base64": "Union[str, None]",
        # Its media type. Without one it follows from the name.
        "media_type": "Union[str, None]",
        # The content, if it is text.
        "text": "Union[str, None]",
    },
    total=False,
)


class File(_FileRequired, _FileOptional):
    """A file that comes with a request. It becomes an artifact under its name."""


_ForgottenMemoriesRequired = TypedDict(
    "_ForgottenMemoriesRequired",
    {
        # True if they are forgotten.
        "applied": "bool",
        # Number of memories.
        "count": "int",
        # Their numbers.
        "memories": "List[int]",
    },
)

_ForgottenMemoriesOptional = TypedDict(
    "_ForgottenMemoriesOptional",
    {
    },
    total=False,
)


class ForgottenMemories(_ForgottenMemoriesRequired, _ForgottenMemoriesOptional):
    """The memories that are forgotten."""


_JobRequired = TypedDict(
    "_JobRequired",
    {
        # Number of its runs that are done.
        "done": "int",
        # The id of the job.
        "job": "str",
        # Number of its runs.
        "of": "int",
        # The results of these runs: the session of the rerun, and how it differs.
        "runs": "List[dict[str, Any]]",
        # Its state.
        "state": "JobState",
    },
)

_JobOptional = TypedDict(
    "_JobOptional",
    {
        # Differences of its runs to the session: paths of the definition, and fields of the request such as `say`.
        "changed": "Union[List[str], None]",
        # The problem by which it ended.
        "error": "Union[dict[str, Any], None]",
        # The session that it is about, if the job is not lost.
        "session": "Union[str, None]",
    },
    total=False,
)


class Job(_JobRequired, _JobOptional):
    """A job."""


_MadeCodeRequired = TypedDict(
    "_MadeCodeRequired",
    {
        # The code.
        "code": "str",
    },
)

_MadeCodeOptional = TypedDict(
    "_MadeCodeOptional",
    {
    },
    total=False,
)


class MadeCode(_MadeCodeRequired, _MadeCodeOptional):
    """A code that was made."""


_MadeHookRequired = TypedDict(
    "_MadeHookRequired",
    {
        # The name of the webhook.
        "name": "str",
        # The secret that signs messages (`whsec_` and base64). It is shown only here.
        "secret": "str",
    },
)

_MadeHookOptional = TypedDict(
    "_MadeHookOptional",
    {
    },
    total=False,
)


class MadeHook(_MadeHookRequired, _MadeHookOptional):
    """A webhook that was made, or its new secret."""


_MadeTokenRequired = TypedDict(
    "_MadeTokenRequired",
    {
        # Its name.
        "name": "str",
        # The token itself. It is shown only here.
        "token": "str",
    },
)

_MadeTokenOptional = TypedDict(
    "_MadeTokenOptional",
    {
    },
    total=False,
)


class MadeToken(_MadeTokenRequired, _MadeTokenOptional):
    """A token that was made."""


_OpenedRequired = TypedDict(
    "_OpenedRequired",
    {
        # The id of the branch.
        "branch": "str",
        # The line that opened it.
        "line": "int",
        # The session.
        "session": "str",
    },
)

_OpenedOptional = TypedDict(
    "_OpenedOptional",
    {
    },
    total=False,
)


class Opened(_OpenedRequired, _OpenedOptional):
    """A branch that was opened."""


_OrderGivenRequired = TypedDict(
    "_OrderGivenRequired",
    {
        # The session.
        "session": "str",
    },
)

_OrderGivenOptional = TypedDict(
    "_OrderGivenOptional",
    {
        "fate": "Union[OrderFate, None]",
        # The line that took it.
        "line": "Union[int, None]",
        # The reason why it has no effect, or none yet.
        "why": "Union[str, None]",
    },
    total=False,
)


class OrderGiven(_OrderGivenRequired, _OrderGivenOptional):
    """A session of an act for many."""


_OrdersGivenRequired = TypedDict(
    "_OrdersGivenRequired",
    {
        # True if the act was given.
        "applied": "bool",
        # Number of sessions that are meant.
        "count": "int",
        # The sessions: those that a filter lets through are newest first, those that were named are in the order of their ids.
        "items": "List[OrderGiven]",
    },
)

_OrdersGivenOptional = TypedDict(
    "_OrdersGivenOptional",
    {
    },
    total=False,
)


class OrdersGiven(_OrdersGivenRequired, _OrdersGivenOptional):
    """The sessions of an act, and what became of it."""


_PostedRequired = TypedDict(
    "_PostedRequired",
    {
        # The fate of the event.
        "sent": "Where",
    },
)

_PostedOptional = TypedDict(
    "_PostedOptional",
    {
        # The session that it went to.
        "session": "Union[str, None]",
    },
    total=False,
)


class Posted(_PostedRequired, _PostedOptional):
    """The fate of an event."""


_ProblemRequired = TypedDict(
    "_ProblemRequired",
    {
        # The code that programs branch on.
        "code": "ProblemCode",
        # The fault, and what to do.
        "detail": "str",
        # The status of the response.
        "status": "int",
        # A short title that is the same for every problem of this code.
        "title": "str",
        # `urn:steersman:problem:` and the code.
        "type": "str",
    },
)

_ProblemOptional = TypedDict(
    "_ProblemOptional",
    {
        # Errors of a definition.
        "diagnostics": "Union[List[Any], None]",
        # The way out, where it is not a part of the detail.
        "help": "Union[str, None]",
    },
    total=False,
)


class Problem(_ProblemRequired, _ProblemOptional):
    """The reason why a request was not carried out (RFC 9457)."""


_QuestionRequired = TypedDict(
    "_QuestionRequired",
    {
        # The name of the agent in the definition.
        "agent": "str",
        # The branch of the effect.
        "branch": "str",
        # The people who may end the wait: `user`, people of the definition, `any`. One of them is enough.
        "by": "List[str]",
        # Arguments that an approver may change.
        "edit": "List[str]",
        # The effect that waits.
        "effect": "str",
        # The roles that may end the wait.
        "for": "List[str]",
        # The address of an answer: the effect, and the line of the hold.
        "id": "str",
        # The kind of the wait.
        "kind": "QuestionKind",
        # True if no branch waits for the effect any more.
        "left": "bool",
        # `doubt`: the parts of the result that a person must give if the effect happened.
        "needs": "List[str]",
        # Answers that may be chosen.
        "options": "List[str]",
        # Names of artifacts that are shown with it.
        "show": "List[str]",
        # The time at which the session began to wait.
        "since": "str",
        # The text of the question, or the name of the event.
        "text": "str",
    },
)

_QuestionOptional = TypedDict(
    "_QuestionOptional",
    {
        # The arguments of the call, without secret ones.
        "args": "Union[Any, None]",
        # The reason for the question.
        "because": "Union[str, None]",
        # The time at which the wait ends by itself.
        "due": "Union[str, None]",
        # Effects of the same tool with other arguments, on lines that the branch does not have.
        "elsewhere": "Union[List[Any], None]",
        # The name of the definition of the session, where `session` is named.
        "network": "Union[str, None]",
        # The person who is asked once `due` has passed.
        "next": "Union[str, None]",
        # The place that does not answer.
        "place": "Union[str, None]",
        # `doubt`: the probe that asks whether the effect happened.
        "probe": "Union[Any, None]",
        # The earlier equal effect, which was done or is in doubt.
        "repeats": "Union[str, None]",
        # The session. A turn, which is of one session, leaves it out.
        "session": "Union[str, None]",
        # The tool, if a tool was called.
        "tool": "Union[str, None]",
    },
    total=False,
)


class Question(_QuestionRequired, _QuestionOptional):
    """Something that a session waits for."""


_QuestionListRequired = TypedDict(
    "_QuestionListRequired",
    {
        # The questions.
        "items": "List[Question]",
    },
)

_QuestionListOptional = TypedDict(
    "_QuestionListOptional",
    {
    },
    total=False,
)


class QuestionList(_QuestionListRequired, _QuestionListOptional):
    """A list of questions."""


_ReceiptRequired = TypedDict(
    "_ReceiptRequired",
    {
        # The fate of the message so far.
        "fate": "Stands",
        # The id of the message. Events name it when the session takes it: `accepted`, `refused`.
        "message": "str",
        # The session.
        "session": "str",
    },
)

_ReceiptOptional = TypedDict(
    "_ReceiptOptional",
    {
        # The line that took the message.
        "line": "Union[int, None]",
        # The condition for which the message waits.
        "why": "Union[str, None]",
    },
    total=False,
)


class Receipt(_ReceiptRequired, _ReceiptOptional):
    """The receipt of a message."""


_SearchBegunRequired = TypedDict(
    "_SearchBegunRequired",
    {
        # The line that began it.
        "line": "int",
        # The id of the search.
        "search": "str",
        # The session.
        "session": "str",
    },
)

_SearchBegunOptional = TypedDict(
    "_SearchBegunOptional",
    {
    },
    total=False,
)


class SearchBegun(_SearchBegunRequired, _SearchBegunOptional):
    """A search that has begun."""


_ServerInfoRequired = TypedDict(
    "_ServerInfoRequired",
    {
        # Names of its definitions.
        "definitions": "List[str]",
        # Number of sessions that it drives now.
        "driven": "int",
        # True if it drives the sessions of its store.
        "driving": "bool",
        # The protocols that it speaks in addition to its own.
        "protocols": "List[str]",
        # Its version.
        "version": "str",
        # Version of the JSON of all views. Additions do not count.
        "views": "int",
    },
)

_ServerInfoOptional = TypedDict(
    "_ServerInfoOptional",
    {
    },
    total=False,
)


class ServerInfo(_ServerInfoRequired, _ServerInfoOptional):
    """The server."""


_SessionListRequired = TypedDict(
    "_SessionListRequired",
    {
        # The sessions, newest first.
        "items": "List[SessionRow]",
    },
)

_SessionListOptional = TypedDict(
    "_SessionListOptional",
    {
        # The value of `after` for the next page, if there is one.
        "next": "Union[str, None]",
    },
    total=False,
)


class SessionList(_SessionListRequired, _SessionListOptional):
    """A page of sessions."""


_SessionRowRequired = TypedDict(
    "_SessionRowRequired",
    {
        # The money spent, in the currency of the prices.
        "cost": "float",
        # The time of its creation.
        "created": "str",
        # A short digest of its definition.
        "definition": "str",
        # Names and values of its labels.
        "labels": "dict[str, Any]",
        # The last line on disk.
        "line": "int",
        # The number of model calls.
        "model_calls": "int",
        # The name of its definition.
        "network": "str",
        # The values of the definition's `outcome`.
        "outcome": "Any",
        # The id.
        "session": "str",
        # Its status: `running`, `answered`, `waits`, `doubt`, `limit`, `failed`, `cancelled`, `paused`, `interrupted`, `new`.
        "status": "str",
        # The number of tokens spent.
        "tokens": "int",
        # The time of the last commit.
        "updated": "str",
    },
)

_SessionRowOptional = TypedDict(
    "_SessionRowOptional",
    {
        # Its key.
        "key": "Union[str, None]",
        # The process that owns it now.
        "owner": "Union[str, None]",
        # Calls that wait for a place that does not answer.
        "places": "Union[List[Any], None]",
    },
    total=False,
)


class SessionRow(_SessionRowRequired, _SessionRowOptional):
    """A session in a list."""


_StartedRequired = TypedDict(
    "_StartedRequired",
    {
        # The last line of its log.
        "head": "int",
        # The id of the session.
        "session": "str",
    },
)

_StartedOptional = TypedDict(
    "_StartedOptional",
    {
    },
    total=False,
)


class Started(_StartedRequired, _StartedOptional):
    """A session that was started."""


_StoryPageRequired = TypedDict(
    "_StoryPageRequired",
    {
        # The id of the branch.
        "branch": "str",
        # The last line of the branch.
        "head": "int",
        # The rows, oldest first.
        "items": "List[StoryRow]",
    },
)

_StoryPageOptional = TypedDict(
    "_StoryPageOptional",
    {
        # The last line in front of the page that has rows.
        "before": "Union[int, None]",
        # The first line behind the page that has rows.
        "next": "Union[int, None]",
    },
    total=False,
)


class StoryPage(_StoryPageRequired, _StoryPageOptional):
    """A part of a story."""


_StoryRowRequired = TypedDict(
    "_StoryRowRequired",
    {
        # The time of that line.
        "at": "str",
        # The branch of that line.
        "branch": "str",
        # The line of the log that the row is about.
        "line": "int",
        # A note next to the text: a class, a duration, an end.
        "note": "str",
        # The text.
        "text": "str",
        # The kind of row.
        "tone": "StoryTone",
        # The actor: an agent, `you`, a role; empty for the result of a call.
        "who": "str",
    },
)

_StoryRowOptional = TypedDict(
    "_StoryRowOptional",
    {
        # The id of the agent that the row belongs to.
        "agent": "Union[str, None]",
        # True if the text was cut.
        "cut": "Union[bool, None]",
        # The line of the call that the row is about, for rows about a result, an attempt or a question.
        "of": "Union[int, None]",
        # The number of owners that took the session over, for a row about that.
        "owners": "Union[int, None]",
        # Milliseconds that the model worked on the answer with which the row begins.
        "took": "Union[int, None]",
    },
    total=False,
)


class StoryRow(_StoryRowRequired, _StoryRowOptional):
    """A row of a story."""


_TurnRequired = TypedDict(
    "_TurnRequired",
    {
        # The position in the events.
        "cursor": "str",
        # The last line on disk.
        "line": "int",
        # The session.
        "session": "str",
        # The kind of state. It says which of the other fields there are.
        "status": "TurnStatus",
    },
)

_TurnOptional = TypedDict(
    "_TurnOptional",
    {
        # `answered`: the answer. `limit`: the answer that a limit demanded, if there is one.
        "answer": "Union[str, None]",
        # `answered`: texts that the user heard before the answer.
        "before": "Union[List[str], None]",
        # `limit`, `failed`: the code.
        "code": "Union[str, None]",
        # `failed`: the reason.
        "message": "Union[str, None]",
        # `asks`, `doubt`, `waits`: everything that is open.
        "pending": "Union[List[Question], None]",
        # `answered`: true if the task is over.
        "task": "Union[bool, None]",
    },
    total=False,
)


class Turn(_TurnRequired, _TurnOptional):
    """The state in which a session settled: it goes on only with an input."""


class Branches:
    """The operations of `branches`."""

    def __init__(self, send: Callable[[Call], Any], open: Callable[[Call], Generator[Frame, None, None]]) -> None:
        self._send = send
        self._open = open

    def adopt(
        self,
        session: str,
        branch: str,
        *,
        at: int | None = None,
        idempotency_key: str | None = None,
        if_match: int | None = None,
    ) -> Receipt:
        """Adopts a branch: the session continues with its lines.

        session: The id of the session
        branch: The label or the id of the branch
        at: The line. Without one it is the last line, or the line before the first simulated effect.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        if_match: The last line that you know: nothing is done if there is a later one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/branches/{branch}/adopt", session=session, branch=branch),
            body=given(
                {
                    "at": at,
                }
            ),
            idempotency_key=idempotency_key,
            if_match=if_match,
            takes_key=True,
        )
        return cast("Receipt", self._send(call))

    def cancel(
        self,
        session: str,
        branch: str,
        *,
        idempotency_key: str | None = None,
        if_match: int | None = None,
    ) -> Receipt:
        """Cancels everything that is open on a branch.

        session: The id of the session
        branch: The label or the id of the branch
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        if_match: The last line that you know: nothing is done if there is a later one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/branches/{branch}/cancel", session=session, branch=branch),
            idempotency_key=idempotency_key,
            if_match=if_match,
            takes_key=True,
        )
        return cast("Receipt", self._send(call))

    def current(
        self,
        session: str,
        branch: str,
        *,
        idempotency_key: str | None = None,
        if_match: int | None = None,
    ) -> Receipt:
        """Makes a branch the current one, to which everything goes that names no branch.

        session: The id of the session
        branch: The label or the id of the branch
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        if_match: The last line that you know: nothing is done if there is a later one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/branches/{branch}/current", session=session, branch=branch),
            idempotency_key=idempotency_key,
            if_match=if_match,
            takes_key=True,
        )
        return cast("Receipt", self._send(call))

    def fork(
        self,
        session: str,
        *,
        at: int | None = None,
        from_: str | None = None,
        label: str | None = None,
        live: bool | None = None,
        say: str | None = None,
        idempotency_key: str | None = None,
        if_match: int | None = None,
    ) -> Opened | Receipt:
        """Opens a branch at a line. It is dry unless `live` is set: effects that touch the world are simulated.

        session: The id of the session
        at: The line at which it leaves the other branch. Without one it is the last line.
        from_: The label or the id of the branch that it leaves. Without one it is the current branch.
        label: A label for people.
        live: True if effects that touch the world run on it, too. Otherwise they are simulated.
        say: The first message on it.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        if_match: The last line that you know: nothing is done if there is a later one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/branches", session=session),
            body=given(
                {
                    "at": at,
                    "from": from_,
                    "label": label,
                    "live": live,
                    "say": say,
                }
            ),
            idempotency_key=idempotency_key,
            if_match=if_match,
            takes_key=True,
        )
        return cast("Opened | Receipt", self._send(call))

    def join(
        self,
        session: str,
        *,
        branches: List[str],
        args: dict[str, Any] | None = None,
        on: str | None = None,
        then: str | None = None,
        idempotency_key: str | None = None,
        if_match: int | None = None,
    ) -> Receipt:
        """Reports the results of branches to the session once a condition holds.

        session: The id of the session
        branches: The labels or the ids of the branches.
        args: The arguments of that tool. Their texts are templates over `result`.
        on: The condition: `all`, `any`, a number of branches, or an expression. Without one it is `all`.
        then: A tool that is called next.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        if_match: The last line that you know: nothing is done if there is a later one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/join", session=session),
            body=given(
                {
                    "branches": branches,
                    "args": args,
                    "on": on,
                    "then": then,
                }
            ),
            idempotency_key=idempotency_key,
            if_match=if_match,
            takes_key=True,
        )
        return cast("Receipt", self._send(call))

    def list(
        self,
        session: str,
    ) -> Any:
        """Lists the branches of a session.

        session: The id of the session
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/branches", session=session),
        )
        return self._send(call)

    def rewind(
        self,
        session: str,
        *,
        at: int,
        branch: str | None = None,
        label: str | None = None,
        say: str | None = None,
        idempotency_key: str | None = None,
        if_match: int | None = None,
    ) -> Opened | Receipt:
        """Goes back to a line. What comes after it stays readable, and the new branch is the current one.

        session: The id of the session
        at: The line to go back to.
        branch: The label or the id of the branch. Without one it is the current branch.
        label: A label for people.
        say: The first message there.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        if_match: The last line that you know: nothing is done if there is a later one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/rewind", session=session),
            body=given(
                {
                    "at": at,
                    "branch": branch,
                    "label": label,
                    "say": say,
                }
            ),
            idempotency_key=idempotency_key,
            if_match=if_match,
            takes_key=True,
        )
        return cast("Opened | Receipt", self._send(call))

    def say(
        self,
        session: str,
        branch: str,
        *,
        as_: str | None = None,
        files: List[File] | None = None,
        interrupt: bool | None = None,
        text: str | None = None,
        to: str | None = None,
        idempotency_key: str | None = None,
        wait: int | None = None,
    ) -> Turn | Receipt:
        """Says something on a branch.

        session: The id of the session
        branch: The label or the id of the branch
        as_: The role in which it is said.
        files: Files that come with the message.
        interrupt: True to cancel first whatever is open.
        text: The text.
        to: The id of the agent or question that is meant. Without one it is the agent that has the floor.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        wait: Seconds, at most 60, for which the request waits until the session settles.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/branches/{branch}/messages", session=session, branch=branch),
            body=given(
                {
                    "as": as_,
                    "files": files,
                    "interrupt": interrupt,
                    "text": text,
                    "to": to,
                }
            ),
            idempotency_key=idempotency_key,
            wait=wait,
            takes_key=True,
        )
        return cast("Turn | Receipt", self._send(call))


class AsyncBranches:
    """The operations of `branches`."""

    def __init__(self, send: Callable[[Call], Awaitable[Any]], open: Callable[[Call], AsyncGenerator[Frame, None]]) -> None:
        self._send = send
        self._open = open

    async def adopt(
        self,
        session: str,
        branch: str,
        *,
        at: int | None = None,
        idempotency_key: str | None = None,
        if_match: int | None = None,
    ) -> Receipt:
        """Adopts a branch: the session continues with its lines.

        session: The id of the session
        branch: The label or the id of the branch
        at: The line. Without one it is the last line, or the line before the first simulated effect.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        if_match: The last line that you know: nothing is done if there is a later one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/branches/{branch}/adopt", session=session, branch=branch),
            body=given(
                {
                    "at": at,
                }
            ),
            idempotency_key=idempotency_key,
            if_match=if_match,
            takes_key=True,
        )
        return cast("Receipt", await self._send(call))

    async def cancel(
        self,
        session: str,
        branch: str,
        *,
        idempotency_key: str | None = None,
        if_match: int | None = None,
    ) -> Receipt:
        """Cancels everything that is open on a branch.

        session: The id of the session
        branch: The label or the id of the branch
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        if_match: The last line that you know: nothing is done if there is a later one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/branches/{branch}/cancel", session=session, branch=branch),
            idempotency_key=idempotency_key,
            if_match=if_match,
            takes_key=True,
        )
        return cast("Receipt", await self._send(call))

    async def current(
        self,
        session: str,
        branch: str,
        *,
        idempotency_key: str | None = None,
        if_match: int | None = None,
    ) -> Receipt:
        """Makes a branch the current one, to which everything goes that names no branch.

        session: The id of the session
        branch: The label or the id of the branch
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        if_match: The last line that you know: nothing is done if there is a later one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/branches/{branch}/current", session=session, branch=branch),
            idempotency_key=idempotency_key,
            if_match=if_match,
            takes_key=True,
        )
        return cast("Receipt", await self._send(call))

    async def fork(
        self,
        session: str,
        *,
        at: int | None = None,
        from_: str | None = None,
        label: str | None = None,
        live: bool | None = None,
        say: str | None = None,
        idempotency_key: str | None = None,
        if_match: int | None = None,
    ) -> Opened | Receipt:
        """Opens a branch at a line. It is dry unless `live` is set: effects that touch the world are simulated.

        session: The id of the session
        at: The line at which it leaves the other branch. Without one it is the last line.
        from_: The label or the id of the branch that it leaves. Without one it is the current branch.
        label: A label for people.
        live: True if effects that touch the world run on it, too. Otherwise they are simulated.
        say: The first message on it.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        if_match: The last line that you know: nothing is done if there is a later one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/branches", session=session),
            body=given(
                {
                    "at": at,
                    "from": from_,
                    "label": label,
                    "live": live,
                    "say": say,
                }
            ),
            idempotency_key=idempotency_key,
            if_match=if_match,
            takes_key=True,
        )
        return cast("Opened | Receipt", await self._send(call))

    async def join(
        self,
        session: str,
        *,
        branches: List[str],
        args: dict[str, Any] | None = None,
        on: str | None = None,
        then: str | None = None,
        idempotency_key: str | None = None,
        if_match: int | None = None,
    ) -> Receipt:
        """Reports the results of branches to the session once a condition holds.

        session: The id of the session
        branches: The labels or the ids of the branches.
        args: The arguments of that tool. Their texts are templates over `result`.
        on: The condition: `all`, `any`, a number of branches, or an expression. Without one it is `all`.
        then: A tool that is called next.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        if_match: The last line that you know: nothing is done if there is a later one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/join", session=session),
            body=given(
                {
                    "branches": branches,
                    "args": args,
                    "on": on,
                    "then": then,
                }
            ),
            idempotency_key=idempotency_key,
            if_match=if_match,
            takes_key=True,
        )
        return cast("Receipt", await self._send(call))

    async def list(
        self,
        session: str,
    ) -> Any:
        """Lists the branches of a session.

        session: The id of the session
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/branches", session=session),
        )
        return await self._send(call)

    async def rewind(
        self,
        session: str,
        *,
        at: int,
        branch: str | None = None,
        label: str | None = None,
        say: str | None = None,
        idempotency_key: str | None = None,
        if_match: int | None = None,
    ) -> Opened | Receipt:
        """Goes back to a line. What comes after it stays readable, and the new branch is the current one.

        session: The id of the session
        at: The line to go back to.
        branch: The label or the id of the branch. Without one it is the current branch.
        label: A label for people.
        say: The first message there.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        if_match: The last line that you know: nothing is done if there is a later one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/rewind", session=session),
            body=given(
                {
                    "at": at,
                    "branch": branch,
                    "label": label,
                    "say": say,
                }
            ),
            idempotency_key=idempotency_key,
            if_match=if_match,
            takes_key=True,
        )
        return cast("Opened | Receipt", await self._send(call))

    async def say(
        self,
        session: str,
        branch: str,
        *,
        as_: str | None = None,
        files: List[File] | None = None,
        interrupt: bool | None = None,
        text: str | None = None,
        to: str | None = None,
        idempotency_key: str | None = None,
        wait: int | None = None,
    ) -> Turn | Receipt:
        """Says something on a branch.

        session: The id of the session
        branch: The label or the id of the branch
        as_: The role in which it is said.
        files: Files that come with the message.
        interrupt: True to cancel first whatever is open.
        text: The text.
        to: The id of the agent or question that is meant. Without one it is the agent that has the floor.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        wait: Seconds, at most 60, for which the request waits until the session settles.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/branches/{branch}/messages", session=session, branch=branch),
            body=given(
                {
                    "as": as_,
                    "files": files,
                    "interrupt": interrupt,
                    "text": text,
                    "to": to,
                }
            ),
            idempotency_key=idempotency_key,
            wait=wait,
            takes_key=True,
        )
        return cast("Turn | Receipt", await self._send(call))


class Definitions:
    """The operations of `definitions`."""

    def __init__(self, send: Callable[[Call], Any], open: Callable[[Call], Generator[Frame, None, None]]) -> None:
        self._send = send
        self._open = open

    def check_definition(
        self,
        *,
        files: dict[str, str] | None = None,
        text: str | None = None,
    ) -> DefinitionFaults:
        """Checks the text of a definition: returns its errors and warnings. Nothing is run, and nothing is kept.

        files: The texts of the files that it names, by their paths: prompts, schemas, imports. Files of the server are not read.
        text: The text of the definition.
        """
        call = Call(
            "POST",
            path("/v1/check"),
            body=given(
                {
                    "files": files,
                    "text": text,
                }
            ),
        )
        return cast("DefinitionFaults", self._send(call))

    def draw_definition(
        self,
        definition: str,
    ) -> bytes:
        """Returns the picture of a definition as SVG.

        definition: The name of the definition
        """
        call = Call(
            "GET",
            path("/v1/definitions/{definition}/graph.svg", definition=definition),
            answer="bytes",
        )
        return cast("bytes", self._send(call))

    def graph(
        self,
        definition: str,
    ) -> Any:
        """Returns the graph of a definition, and its shapes in coordinates.

        definition: The name of the definition
        """
        call = Call(
            "GET",
            path("/v1/definitions/{definition}/graph", definition=definition),
        )
        return self._send(call)

    def list(
        self,
    ) -> Any:
        """Lists the definitions that the token may start, with the parameters of their entries as JSON Schema."""
        call = Call(
            "GET",
            path("/v1/definitions"),
        )
        return self._send(call)

    def one(
        self,
        definition: str,
    ) -> Any:
        """Returns a definition: the parameters of its entries and the fields of its events as JSON Schema, and its people.

        definition: The name of the definition
        """
        call = Call(
            "GET",
            path("/v1/definitions/{definition}", definition=definition),
        )
        return self._send(call)


class AsyncDefinitions:
    """The operations of `definitions`."""

    def __init__(self, send: Callable[[Call], Awaitable[Any]], open: Callable[[Call], AsyncGenerator[Frame, None]]) -> None:
        self._send = send
        self._open = open

    async def check_definition(
        self,
        *,
        files: dict[str, str] | None = None,
        text: str | None = None,
    ) -> DefinitionFaults:
        """Checks the text of a definition: returns its errors and warnings. Nothing is run, and nothing is kept.

        files: The texts of the files that it names, by their paths: prompts, schemas, imports. Files of the server are not read.
        text: The text of the definition.
        """
        call = Call(
            "POST",
            path("/v1/check"),
            body=given(
                {
                    "files": files,
                    "text": text,
                }
            ),
        )
        return cast("DefinitionFaults", await self._send(call))

    async def draw_definition(
        self,
        definition: str,
    ) -> bytes:
        """Returns the picture of a definition as SVG.

        definition: The name of the definition
        """
        call = Call(
            "GET",
            path("/v1/definitions/{definition}/graph.svg", definition=definition),
            answer="bytes",
        )
        return cast("bytes", await self._send(call))

    async def graph(
        self,
        definition: str,
    ) -> Any:
        """Returns the graph of a definition, and its shapes in coordinates.

        definition: The name of the definition
        """
        call = Call(
            "GET",
            path("/v1/definitions/{definition}/graph", definition=definition),
        )
        return await self._send(call)

    async def list(
        self,
    ) -> Any:
        """Lists the definitions that the token may start, with the parameters of their entries as JSON Schema."""
        call = Call(
            "GET",
            path("/v1/definitions"),
        )
        return await self._send(call)

    async def one(
        self,
        definition: str,
    ) -> Any:
        """Returns a definition: the parameters of its entries and the fields of its events as JSON Schema, and its people.

        definition: The name of the definition
        """
        call = Call(
            "GET",
            path("/v1/definitions/{definition}", definition=definition),
        )
        return await self._send(call)


class Events:
    """The operations of `events`."""

    def __init__(self, send: Callable[[Call], Any], open: Callable[[Call], Generator[Frame, None, None]]) -> None:
        self._send = send
        self._open = open

    def follow(
        self,
        session: str,
        *,
        from_: str | None = None,
        kinds: str | None = None,
        branch: str | None = None,
        until: str | None = None,
        last_event_id: str | None = None,
    ) -> Generator[Frame, None, None]:
        """Follows the events of a session as server-sent events.

        The first is `hello` with the position, the last line, and who drives the session. The id of an event is its cursor; streamed
        pieces have none, so a client that comes back with its last id misses nothing and gets nothing twice. A comment comes every 15
        seconds.

        session: The id of the session
        from_: The position after which the events begin: a cursor `12.3`, a line `12`, `start`, or `now`. `Last-Event-ID` goes before it.
        kinds: Kinds of events, separated by commas. Without it all kinds come.
        branch: The id of a branch. Without it the events of all branches come.
        until: `settled`: the stream ends once the session has settled.
        last_event_id: The cursor of the last event that you have.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/events", session=session),
            query=given(
                {
                    "from": from_,
                    "kinds": kinds,
                    "branch": branch,
                    "until": until,
                }
            ),
            last_event_id=last_event_id,
        )
        return self._open(call)

    def post(
        self,
        *,
        definition: str | None = None,
        event: str | None = None,
        fields: dict[str, Any] | None = None,
        session: str | None = None,
    ) -> Posted:
        """Sends an event. As the definition says, it goes to a session, starts one, or is offered to the waits that match.

        The id that the definition gives the event is accepted once, so the request can be repeated.

        definition: The name of the definition.
        event: The name of the event.
        fields: Its fields. An artifact is an object of `name`, `media_type`, and `text` or `base64`.
        session: The session for which it is, if the definition does not say it.
        """
        call = Call(
            "POST",
            path("/v1/events"),
            body=given(
                {
                    "definition": definition,
                    "event": event,
                    "fields": fields,
                    "session": session,
                }
            ),
        )
        return cast("Posted", self._send(call))

    def watch_sessions(
        self,
        *,
        where: str | None = None,
    ) -> Generator[Frame, None, None]:
        """Follows the sessions that the token sees, as server-sent events.

        The first event is `hello`. `session` has the row of a session that changed, as lists have it; `left` names one that changed and
        that the filter does not let through; `skipped` says how many changes a slow client missed. Events have no ids: a client lists the
        sessions once `hello` has come, and again after a cut or a `skipped`.

        where: A filter, as of the list of sessions: `status = waits or status = doubt`.
        """
        call = Call(
            "GET",
            path("/v1/events/stream"),
            query=given(
                {
                    "where": where,
                }
            ),
        )
        return self._open(call)


class AsyncEvents:
    """The operations of `events`."""

    def __init__(self, send: Callable[[Call], Awaitable[Any]], open: Callable[[Call], AsyncGenerator[Frame, None]]) -> None:
        self._send = send
        self._open = open

    def follow(
        self,
        session: str,
        *,
        from_: str | None = None,
        kinds: str | None = None,
        branch: str | None = None,
        until: str | None = None,
        last_event_id: str | None = None,
    ) -> AsyncGenerator[Frame, None]:
        """Follows the events of a session as server-sent events.

        The first is `hello` with the position, the last line, and who drives the session. The id of an event is its cursor; streamed
        pieces have none, so a client that comes back with its last id misses nothing and gets nothing twice. A comment comes every 15
        seconds.

        session: The id of the session
        from_: The position after which the events begin: a cursor `12.3`, a line `12`, `start`, or `now`. `Last-Event-ID` goes before it.
        kinds: Kinds of events, separated by commas. Without it all kinds come.
        branch: The id of a branch. Without it the events of all branches come.
        until: `settled`: the stream ends once the session has settled.
        last_event_id: The cursor of the last event that you have.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/events", session=session),
            query=given(
                {
                    "from": from_,
                    "kinds": kinds,
                    "branch": branch,
                    "until": until,
                }
            ),
            last_event_id=last_event_id,
        )
        return self._open(call)

    async def post(
        self,
        *,
        definition: str | None = None,
        event: str | None = None,
        fields: dict[str, Any] | None = None,
        session: str | None = None,
    ) -> Posted:
        """Sends an event. As the definition says, it goes to a session, starts one, or is offered to the waits that match.

        The id that the definition gives the event is accepted once, so the request can be repeated.

        definition: The name of the definition.
        event: The name of the event.
        fields: Its fields. An artifact is an object of `name`, `media_type`, and `text` or `base64`.
        session: The session for which it is, if the definition does not say it.
        """
        call = Call(
            "POST",
            path("/v1/events"),
            body=given(
                {
                    "definition": definition,
                    "event": event,
                    "fields": fields,
                    "session": session,
                }
            ),
        )
        return cast("Posted", await self._send(call))

    def watch_sessions(
        self,
        *,
        where: str | None = None,
    ) -> AsyncGenerator[Frame, None]:
        """Follows the sessions that the token sees, as server-sent events.

        The first event is `hello`. `session` has the row of a session that changed, as lists have it; `left` names one that changed and
        that the filter does not let through; `skipped` says how many changes a slow client missed. Events have no ids: a client lists the
        sessions once `hello` has come, and again after a cut or a `skipped`.

        where: A filter, as of the list of sessions: `status = waits or status = doubt`.
        """
        call = Call(
            "GET",
            path("/v1/events/stream"),
            query=given(
                {
                    "where": where,
                }
            ),
        )
        return self._open(call)


class Health:
    """The operations of `health`."""

    def __init__(self, send: Callable[[Call], Any], open: Callable[[Call], Generator[Frame, None, None]]) -> None:
        self._send = send
        self._open = open

    def document(
        self,
    ) -> Any:
        """Returns this document."""
        call = Call(
            "GET",
            path("/v1/openapi.json"),
        )
        return self._send(call)

    def get_server(
        self,
    ) -> ServerInfo:
        """Says what the server is and does. Only an administrator of the tenant without a name may know it."""
        call = Call(
            "GET",
            path("/v1/server"),
        )
        return cast("ServerInfo", self._send(call))

    def livez(
        self,
    ) -> Any:
        """Says that the process answers."""
        call = Call(
            "GET",
            path("/livez"),
        )
        return self._send(call)

    def readyz(
        self,
    ) -> Any:
        """Says whether the server can do its work: it drives the store, the store answers, and it does not stop."""
        call = Call(
            "GET",
            path("/readyz"),
        )
        return self._send(call)


class AsyncHealth:
    """The operations of `health`."""

    def __init__(self, send: Callable[[Call], Awaitable[Any]], open: Callable[[Call], AsyncGenerator[Frame, None]]) -> None:
        self._send = send
        self._open = open

    async def document(
        self,
    ) -> Any:
        """Returns this document."""
        call = Call(
            "GET",
            path("/v1/openapi.json"),
        )
        return await self._send(call)

    async def get_server(
        self,
    ) -> ServerInfo:
        """Says what the server is and does. Only an administrator of the tenant without a name may know it."""
        call = Call(
            "GET",
            path("/v1/server"),
        )
        return cast("ServerInfo", await self._send(call))

    async def livez(
        self,
    ) -> Any:
        """Says that the process answers."""
        call = Call(
            "GET",
            path("/livez"),
        )
        return await self._send(call)

    async def readyz(
        self,
    ) -> Any:
        """Says whether the server can do its work: it drives the store, the store answers, and it does not stop."""
        call = Call(
            "GET",
            path("/readyz"),
        )
        return await self._send(call)


class Memories:
    """The operations of `memories`."""

    def __init__(self, send: Callable[[Call], Any], open: Callable[[Call], Generator[Frame, None, None]]) -> None:
        self._send = send
        self._open = open

    def forget_memories(
        self,
        *,
        apply: bool | None = None,
        memories: List[int] | None = None,
        scope: str | None = None,
        session: str | None = None,
    ) -> ForgottenMemories:
        """Forgets memories: by their numbers, of a session, or all of a scope. Without `apply` it only says which they are.

        Contents that nothing names any more stay in the store until `steersman gc` collects them.

        apply: True to do it. Otherwise the answer says which are meant, and nothing is done.
        memories: Their numbers.
        scope: Their scope.
        session: The session that saved them.
        """
        call = Call(
            "POST",
            path("/v1/memories/forget"),
            body=given(
                {
                    "apply": apply,
                    "memories": memories,
                    "scope": scope,
                    "session": session,
                }
            ),
        )
        return cast("ForgottenMemories", self._send(call))

    def forget_memory(
        self,
        memory: int,
    ) -> None:
        """Forgets a memory. Sessions that found it keep what they were shown.

        memory: The number of the memory
        """
        call = Call(
            "DELETE",
            path("/v1/memories/{memory}", memory=memory),
        )
        self._send(call)

    def get_memory(
        self,
        memory: int,
    ) -> Any:
        """Returns a memory with its content.

        memory: The number of the memory
        """
        call = Call(
            "GET",
            path("/v1/memories/{memory}", memory=memory),
        )
        return self._send(call)

    def list_memories(
        self,
        *,
        scope: str | None = None,
        session: str | None = None,
        replaced: bool | None = None,
        after: int | None = None,
        limit: int | None = None,
    ) -> Any:
        """Lists the memories that the token sees, newest first, without their contents.

        scope: The scope.
        session: The session that saved them.
        replaced: True for a list that also has what another memory stands in the place of.
        after: The position after which the list goes on: `next` of the page before.
        limit: The most rows of a page, at most 200.
        """
        call = Call(
            "GET",
            path("/v1/memories"),
            query=given(
                {
                    "scope": scope,
                    "session": session,
                    "replaced": replaced,
                    "after": after,
                    "limit": limit,
                }
            ),
        )
        return self._send(call)

    def rate_memory(
        self,
        memory: int,
        *,
        rating: int,
        as_: str | None = None,
        reason: str | None = None,
    ) -> Any:
        """Rates a memory. The rating of a person takes precedence over those of agents; the last one counts.

        memory: The number of the memory
        rating: From 1 to 5.
        as_: The role in which it is rated.
        reason: The reason.
        """
        call = Call(
            "POST",
            path("/v1/memories/{memory}/rating", memory=memory),
            body=given(
                {
                    "rating": rating,
                    "as": as_,
                    "reason": reason,
                }
            ),
        )
        return self._send(call)

    def search_memories(
        self,
        *,
        query: str | None = None,
        scope: str | None = None,
        limit: int | None = None,
    ) -> Any:
        """Finds the memories that fit words best, as agents of their scope would find them.

        query: The words.
        scope: The scope. Without one all scopes are searched.
        limit: The most memories of a scope, at most 200.
        """
        call = Call(
            "GET",
            path("/v1/memories/search"),
            query=given(
                {
                    "query": query,
                    "scope": scope,
                    "limit": limit,
                }
            ),
        )
        return self._send(call)


class AsyncMemories:
    """The operations of `memories`."""

    def __init__(self, send: Callable[[Call], Awaitable[Any]], open: Callable[[Call], AsyncGenerator[Frame, None]]) -> None:
        self._send = send
        self._open = open

    async def forget_memories(
        self,
        *,
        apply: bool | None = None,
        memories: List[int] | None = None,
        scope: str | None = None,
        session: str | None = None,
    ) -> ForgottenMemories:
        """Forgets memories: by their numbers, of a session, or all of a scope. Without `apply` it only says which they are.

        Contents that nothing names any more stay in the store until `steersman gc` collects them.

        apply: True to do it. Otherwise the answer says which are meant, and nothing is done.
        memories: Their numbers.
        scope: Their scope.
        session: The session that saved them.
        """
        call = Call(
            "POST",
            path("/v1/memories/forget"),
            body=given(
                {
                    "apply": apply,
                    "memories": memories,
                    "scope": scope,
                    "session": session,
                }
            ),
        )
        return cast("ForgottenMemories", await self._send(call))

    async def forget_memory(
        self,
        memory: int,
    ) -> None:
        """Forgets a memory. Sessions that found it keep what they were shown.

        memory: The number of the memory
        """
        call = Call(
            "DELETE",
            path("/v1/memories/{memory}", memory=memory),
        )
        await self._send(call)

    async def get_memory(
        self,
        memory: int,
    ) -> Any:
        """Returns a memory with its content.

        memory: The number of the memory
        """
        call = Call(
            "GET",
            path("/v1/memories/{memory}", memory=memory),
        )
        return await self._send(call)

    async def list_memories(
        self,
        *,
        scope: str | None = None,
        session: str | None = None,
        replaced: bool | None = None,
        after: int | None = None,
        limit: int | None = None,
    ) -> Any:
        """Lists the memories that the token sees, newest first, without their contents.

        scope: The scope.
        session: The session that saved them.
        replaced: True for a list that also has what another memory stands in the place of.
        after: The position after which the list goes on: `next` of the page before.
        limit: The most rows of a page, at most 200.
        """
        call = Call(
            "GET",
            path("/v1/memories"),
            query=given(
                {
                    "scope": scope,
                    "session": session,
                    "replaced": replaced,
                    "after": after,
                    "limit": limit,
                }
            ),
        )
        return await self._send(call)

    async def rate_memory(
        self,
        memory: int,
        *,
        rating: int,
        as_: str | None = None,
        reason: str | None = None,
    ) -> Any:
        """Rates a memory. The rating of a person takes precedence over those of agents; the last one counts.

        memory: The number of the memory
        rating: From 1 to 5.
        as_: The role in which it is rated.
        reason: The reason.
        """
        call = Call(
            "POST",
            path("/v1/memories/{memory}/rating", memory=memory),
            body=given(
                {
                    "rating": rating,
                    "as": as_,
                    "reason": reason,
                }
            ),
        )
        return await self._send(call)

    async def search_memories(
        self,
        *,
        query: str | None = None,
        scope: str | None = None,
        limit: int | None = None,
    ) -> Any:
        """Finds the memories that fit words best, as agents of their scope would find them.

        query: The words.
        scope: The scope. Without one all scopes are searched.
        limit: The most memories of a scope, at most 200.
        """
        call = Call(
            "GET",
            path("/v1/memories/search"),
            query=given(
                {
                    "query": query,
                    "scope": scope,
                    "limit": limit,
                }
            ),
        )
        return await self._send(call)


class Orders:
    """The operations of `orders`."""

    def __init__(self, send: Callable[[Call], Any], open: Callable[[Call], Generator[Frame, None, None]]) -> None:
        self._send = send
        self._open = open

    def cancel(
        self,
        session: str,
        *,
        what: What,
        as_: str | None = None,
        id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Cancels a turn, a call, an agent, a branch or, with the permission `operate`, a whole session.

        session: The id of the session
        what: The work to cancel.
        as_: The role in which it is cancelled.
        id: The id of the call or agent, or the label or id of the branch.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/cancel", session=session),
            body=given(
                {
                    "what": what,
                    "as": as_,
                    "id": id,
                }
            ),
            idempotency_key=idempotency_key,
            takes_key=True,
        )
        return cast("Receipt", self._send(call))

    def hold(
        self,
        session: str,
        *,
        as_: str | None = None,
        tool: str | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Keeps effects of a tool from beginning until they are released.

        session: The id of the session
        as_: The role in which it is given.
        tool: The tool. Without one all tools that may change the world are meant.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/hold", session=session),
            body=given(
                {
                    "as": as_,
                    "tool": tool,
                }
            ),
            idempotency_key=idempotency_key,
            takes_key=True,
        )
        return cast("Receipt", self._send(call))

    def order_many(
        self,
        *,
        act: OrderAct,
        apply: bool | None = None,
        as_: str | None = None,
        config: dict[str, Any] | None = None,
        sessions: List[str] | None = None,
        state: dict[str, Any] | None = None,
        tool: str | None = None,
        where: str | None = None,
        idempotency_key: str | None = None,
    ) -> OrdersGiven:
        """Gives an act to all sessions that a filter lets through, or to those that are named. Without `apply` it only says which they are.

        An act that one session refuses is still given to the others. With an idempotency key, each session takes it once.

        act: The act.
        apply: True to do it. Otherwise the answer says which sessions are meant, and nothing is done.
        as_: The role in which it is given.
        config: Of `migrate`: the values of `config`.
        sessions: The sessions by their ids.
        state: Of `edit`: the entries with their new values. `null` unsets one.
        tool: Of `hold` and `release`: the tool. Without one all tools that may change the world are meant.
        where: The sessions by a filter: `status = waits and vendor = Acme`. A request has this or `sessions`.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        """
        call = Call(
            "POST",
            path("/v1/orders"),
            body=given(
                {
                    "act": act,
                    "apply": apply,
                    "as": as_,
                    "config": config,
                    "sessions": sessions,
                    "state": state,
                    "tool": tool,
                    "where": where,
                }
            ),
            idempotency_key=idempotency_key,
            takes_key=True,
        )
        return cast("OrdersGiven", self._send(call))

    def pause(
        self,
        session: str,
        *,
        as_: str | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Pauses a session: nothing new begins until it is resumed.

        session: The id of the session
        as_: The role in which it is given.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/pause", session=session),
            body=given(
                {
                    "as": as_,
                }
            ),
            idempotency_key=idempotency_key,
            takes_key=True,
        )
        return cast("Receipt", self._send(call))

    def release(
        self,
        session: str,
        *,
        as_: str | None = None,
        tool: str | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Takes a hold back.

        session: The id of the session
        as_: The role in which it is given.
        tool: The tool. Without one all tools that may change the world are meant.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/release", session=session),
            body=given(
                {
                    "as": as_,
                    "tool": tool,
                }
            ),
            idempotency_key=idempotency_key,
            takes_key=True,
        )
        return cast("Receipt", self._send(call))

    def resume(
        self,
        session: str,
        *,
        as_: str | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Ends a pause.

        session: The id of the session
        as_: The role in which it is given.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/resume", session=session),
            body=given(
                {
                    "as": as_,
                }
            ),
            idempotency_key=idempotency_key,
            takes_key=True,
        )
        return cast("Receipt", self._send(call))

    def retry(
        self,
        session: str,
        *,
        as_: str | None = None,
        effect: str | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Tries again what failed.

        session: The id of the session
        as_: The role in which it is given.
        effect: The effect. Without one everything that waits for its next attempt is meant.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/retry", session=session),
            body=given(
                {
                    "as": as_,
                    "effect": effect,
                }
            ),
            idempotency_key=idempotency_key,
            takes_key=True,
        )
        return cast("Receipt", self._send(call))


class AsyncOrders:
    """The operations of `orders`."""

    def __init__(self, send: Callable[[Call], Awaitable[Any]], open: Callable[[Call], AsyncGenerator[Frame, None]]) -> None:
        self._send = send
        self._open = open

    async def cancel(
        self,
        session: str,
        *,
        what: What,
        as_: str | None = None,
        id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Cancels a turn, a call, an agent, a branch or, with the permission `operate`, a whole session.

        session: The id of the session
        what: The work to cancel.
        as_: The role in which it is cancelled.
        id: The id of the call or agent, or the label or id of the branch.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/cancel", session=session),
            body=given(
                {
                    "what": what,
                    "as": as_,
                    "id": id,
                }
            ),
            idempotency_key=idempotency_key,
            takes_key=True,
        )
        return cast("Receipt", await self._send(call))

    async def hold(
        self,
        session: str,
        *,
        as_: str | None = None,
        tool: str | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Keeps effects of a tool from beginning until they are released.

        session: The id of the session
        as_: The role in which it is given.
        tool: The tool. Without one all tools that may change the world are meant.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/hold", session=session),
            body=given(
                {
                    "as": as_,
                    "tool": tool,
                }
            ),
            idempotency_key=idempotency_key,
            takes_key=True,
        )
        return cast("Receipt", await self._send(call))

    async def order_many(
        self,
        *,
        act: OrderAct,
        apply: bool | None = None,
        as_: str | None = None,
        config: dict[str, Any] | None = None,
        sessions: List[str] | None = None,
        state: dict[str, Any] | None = None,
        tool: str | None = None,
        where: str | None = None,
        idempotency_key: str | None = None,
    ) -> OrdersGiven:
        """Gives an act to all sessions that a filter lets through, or to those that are named. Without `apply` it only says which they are.

        An act that one session refuses is still given to the others. With an idempotency key, each session takes it once.

        act: The act.
        apply: True to do it. Otherwise the answer says which sessions are meant, and nothing is done.
        as_: The role in which it is given.
        config: Of `migrate`: the values of `config`.
        sessions: The sessions by their ids.
        state: Of `edit`: the entries with their new values. `null` unsets one.
        tool: Of `hold` and `release`: the tool. Without one all tools that may change the world are meant.
        where: The sessions by a filter: `status = waits and vendor = Acme`. A request has this or `sessions`.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        """
        call = Call(
            "POST",
            path("/v1/orders"),
            body=given(
                {
                    "act": act,
                    "apply": apply,
                    "as": as_,
                    "config": config,
                    "sessions": sessions,
                    "state": state,
                    "tool": tool,
                    "where": where,
                }
            ),
            idempotency_key=idempotency_key,
            takes_key=True,
        )
        return cast("OrdersGiven", await self._send(call))

    async def pause(
        self,
        session: str,
        *,
        as_: str | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Pauses a session: nothing new begins until it is resumed.

        session: The id of the session
        as_: The role in which it is given.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/pause", session=session),
            body=given(
                {
                    "as": as_,
                }
            ),
            idempotency_key=idempotency_key,
            takes_key=True,
        )
        return cast("Receipt", await self._send(call))

    async def release(
        self,
        session: str,
        *,
        as_: str | None = None,
        tool: str | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Takes a hold back.

        session: The id of the session
        as_: The role in which it is given.
        tool: The tool. Without one all tools that may change the world are meant.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/release", session=session),
            body=given(
                {
                    "as": as_,
                    "tool": tool,
                }
            ),
            idempotency_key=idempotency_key,
            takes_key=True,
        )
        return cast("Receipt", await self._send(call))

    async def resume(
        self,
        session: str,
        *,
        as_: str | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Ends a pause.

        session: The id of the session
        as_: The role in which it is given.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/resume", session=session),
            body=given(
                {
                    "as": as_,
                }
            ),
            idempotency_key=idempotency_key,
            takes_key=True,
        )
        return cast("Receipt", await self._send(call))

    async def retry(
        self,
        session: str,
        *,
        as_: str | None = None,
        effect: str | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Tries again what failed.

        session: The id of the session
        as_: The role in which it is given.
        effect: The effect. Without one everything that waits for its next attempt is meant.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/retry", session=session),
            body=given(
                {
                    "as": as_,
                    "effect": effect,
                }
            ),
            idempotency_key=idempotency_key,
            takes_key=True,
        )
        return cast("Receipt", await self._send(call))


class Questions:
    """The operations of `questions`."""

    def __init__(self, send: Callable[[Call], Any], open: Callable[[Call], Generator[Frame, None, None]]) -> None:
        self._send = send
        self._open = open

    def answer(
        self,
        session: str,
        question: str,
        *,
        as_: str | None = None,
        option: str | None = None,
        text: str | None = None,
        idempotency_key: str | None = None,
        wait: int | None = None,
    ) -> Turn | Receipt:
        """Answers a question, or gives a secret that was asked for.

        session: The id of the session
        question: The id of the question
        as_: The role in which it is answered.
        option: One of the options of the question.
        text: The text. Where a secret is asked for, it is sealed before it is stored.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        wait: Seconds, at most 60, for which the request waits until the session settles.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/questions/{question}/answer", session=session, question=question),
            body=given(
                {
                    "as": as_,
                    "option": option,
                    "text": text,
                }
            ),
            idempotency_key=idempotency_key,
            wait=wait,
            takes_key=True,
        )
        return cast("Turn | Receipt", self._send(call))

    def approve(
        self,
        session: str,
        question: str,
        *,
        args: dict[str, Any] | None = None,
        as_: str | None = None,
        idempotency_key: str | None = None,
        wait: int | None = None,
    ) -> Turn | Receipt:
        """Allows a held effect to run once, with exactly its arguments.

        session: The id of the session
        question: The id of the question
        args: Arguments that replace those of the call, as far as the definition allows.
        as_: The role in which it is decided.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        wait: Seconds, at most 60, for which the request waits until the session settles.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/questions/{question}/approve", session=session, question=question),
            body=given(
                {
                    "args": args,
                    "as": as_,
                }
            ),
            idempotency_key=idempotency_key,
            wait=wait,
            takes_key=True,
        )
        return cast("Turn | Receipt", self._send(call))

    def list(
        self,
        *,
        role: str | None = None,
        kind: str | None = None,
        definition: str | None = None,
        limit: int | None = None,
    ) -> QuestionList:
        """Lists what waits for people, events and times, in all sessions that the token sees, soonest due first.

        role: A role that may decide.
        kind: A kind: `approval`, `question`, `input`, `doubt`, ...
        definition: The name of the definition.
        limit: The most questions, at most 200.
        """
        call = Call(
            "GET",
            path("/v1/questions"),
            query=given(
                {
                    "role": role,
                    "kind": kind,
                    "definition": definition,
                    "limit": limit,
                }
            ),
        )
        return cast("QuestionList", self._send(call))

    def of_session(
        self,
        session: str,
    ) -> QuestionList:
        """Lists what a session waits for, on all branches.

        session: The id of the session
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/questions", session=session),
        )
        return cast("QuestionList", self._send(call))

    def reject(
        self,
        session: str,
        question: str,
        *,
        as_: str | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
        wait: int | None = None,
    ) -> Turn | Receipt:
        """Refuses a held effect.

        session: The id of the session
        question: The id of the question
        as_: The role in which it is decided.
        reason: The reason, which the model reads.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        wait: Seconds, at most 60, for which the request waits until the session settles.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/questions/{question}/reject", session=session, question=question),
            body=given(
                {
                    "as": as_,
                    "reason": reason,
                }
            ),
            idempotency_key=idempotency_key,
            wait=wait,
            takes_key=True,
        )
        return cast("Turn | Receipt", self._send(call))

    def resolve(
        self,
        session: str,
        question: str,
        *,
        how: How,
        as_: str | None = None,
        result: Any | None = None,
        idempotency_key: str | None = None,
        wait: int | None = None,
    ) -> Turn | Receipt:
        """Says whether an effect in doubt happened.

        session: The id of the session
        question: The id of the question
        how: The fate of the effect.
        as_: The role in which it is decided.
        result: The result, if it happened, in the form that the tool would have returned.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        wait: Seconds, at most 60, for which the request waits until the session settles.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/questions/{question}/resolve", session=session, question=question),
            body=given(
                {
                    "how": how,
                    "as": as_,
                    "result": result,
                }
            ),
            idempotency_key=idempotency_key,
            wait=wait,
            takes_key=True,
        )
        return cast("Turn | Receipt", self._send(call))


class AsyncQuestions:
    """The operations of `questions`."""

    def __init__(self, send: Callable[[Call], Awaitable[Any]], open: Callable[[Call], AsyncGenerator[Frame, None]]) -> None:
        self._send = send
        self._open = open

    async def answer(
        self,
        session: str,
        question: str,
        *,
        as_: str | None = None,
        option: str | None = None,
        text: str | None = None,
        idempotency_key: str | None = None,
        wait: int | None = None,
    ) -> Turn | Receipt:
        """Answers a question, or gives a secret that was asked for.

        session: The id of the session
        question: The id of the question
        as_: The role in which it is answered.
        option: One of the options of the question.
        text: The text. Where a secret is asked for, it is sealed before it is stored.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        wait: Seconds, at most 60, for which the request waits until the session settles.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/questions/{question}/answer", session=session, question=question),
            body=given(
                {
                    "as": as_,
                    "option": option,
                    "text": text,
                }
            ),
            idempotency_key=idempotency_key,
            wait=wait,
            takes_key=True,
        )
        return cast("Turn | Receipt", await self._send(call))

    async def approve(
        self,
        session: str,
        question: str,
        *,
        args: dict[str, Any] | None = None,
        as_: str | None = None,
        idempotency_key: str | None = None,
        wait: int | None = None,
    ) -> Turn | Receipt:
        """Allows a held effect to run once, with exactly its arguments.

        session: The id of the session
        question: The id of the question
        args: Arguments that replace those of the call, as far as the definition allows.
        as_: The role in which it is decided.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        wait: Seconds, at most 60, for which the request waits until the session settles.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/questions/{question}/approve", session=session, question=question),
            body=given(
                {
                    "args": args,
                    "as": as_,
                }
            ),
            idempotency_key=idempotency_key,
            wait=wait,
            takes_key=True,
        )
        return cast("Turn | Receipt", await self._send(call))

    async def list(
        self,
        *,
        role: str | None = None,
        kind: str | None = None,
        definition: str | None = None,
        limit: int | None = None,
    ) -> QuestionList:
        """Lists what waits for people, events and times, in all sessions that the token sees, soonest due first.

        role: A role that may decide.
        kind: A kind: `approval`, `question`, `input`, `doubt`, ...
        definition: The name of the definition.
        limit: The most questions, at most 200.
        """
        call = Call(
            "GET",
            path("/v1/questions"),
            query=given(
                {
                    "role": role,
                    "kind": kind,
                    "definition": definition,
                    "limit": limit,
                }
            ),
        )
        return cast("QuestionList", await self._send(call))

    async def of_session(
        self,
        session: str,
    ) -> QuestionList:
        """Lists what a session waits for, on all branches.

        session: The id of the session
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/questions", session=session),
        )
        return cast("QuestionList", await self._send(call))

    async def reject(
        self,
        session: str,
        question: str,
        *,
        as_: str | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
        wait: int | None = None,
    ) -> Turn | Receipt:
        """Refuses a held effect.

        session: The id of the session
        question: The id of the question
        as_: The role in which it is decided.
        reason: The reason, which the model reads.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        wait: Seconds, at most 60, for which the request waits until the session settles.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/questions/{question}/reject", session=session, question=question),
            body=given(
                {
                    "as": as_,
                    "reason": reason,
                }
            ),
            idempotency_key=idempotency_key,
            wait=wait,
            takes_key=True,
        )
        return cast("Turn | Receipt", await self._send(call))

    async def resolve(
        self,
        session: str,
        question: str,
        *,
        how: How,
        as_: str | None = None,
        result: Any | None = None,
        idempotency_key: str | None = None,
        wait: int | None = None,
    ) -> Turn | Receipt:
        """Says whether an effect in doubt happened.

        session: The id of the session
        question: The id of the question
        how: The fate of the effect.
        as_: The role in which it is decided.
        result: The result, if it happened, in the form that the tool would have returned.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        wait: Seconds, at most 60, for which the request waits until the session settles.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/questions/{question}/resolve", session=session, question=question),
            body=given(
                {
                    "how": how,
                    "as": as_,
                    "result": result,
                }
            ),
            idempotency_key=idempotency_key,
            wait=wait,
            takes_key=True,
        )
        return cast("Turn | Receipt", await self._send(call))


class Reruns:
    """The operations of `reruns`."""

    def __init__(self, send: Callable[[Call], Any], open: Callable[[Call], Generator[Frame, None, None]]) -> None:
        self._send = send
        self._open = open

    def get_job(
        self,
        job: str,
        *,
        wait: int | None = None,
    ) -> Job:
        """Tells how a job stands. A job whose process is gone is `lost`; the sessions that it made stay.

        job: The id of the job
        wait: Seconds, at most 60, for which the request waits until the session settles.
        """
        call = Call(
            "GET",
            path("/v1/jobs/{job}", job=job),
            wait=wait,
        )
        return cast("Job", self._send(call))

    def list_rerun_values(
        self,
        session: str,
    ) -> DefinitionValueList:
        """Lists the values of a session's definition that a rerun may set. Those that the definition does not declare may be set, too.

        session: The id of the session
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/reruns/values", session=session),
        )
        return cast("DefinitionValueList", self._send(call))

    def rerun_session(
        self,
        session: str,
        *,
        at: int | None = None,
        branch: str | None = None,
        config: dict[str, Any] | None = None,
        definition: str | None = None,
        live: bool | None = None,
        name: str | None = None,
        people: str | None = None,
        repeat: int | None = None,
        say: str | None = None,
        set: dict[str, Any] | None = None,
        idempotency_key: str | None = None,
        wait: int | None = None,
    ) -> Job:
        """Runs a session again from its recording with something changed, as new sessions. Effects are simulated unless `live` is set.

        The answer comes at once: `GET /v1/jobs/{job}` tells how it goes on. The new sessions have the label `rerun_of`.

        session: The id of the session
        at: The last line that stays as it was. Without one everything is run again.
        branch: The label or the id of a branch. Without one it is the current branch.
        config: Values of `config` in place of those that the session took.
        definition: The name of another definition of the server.
        live: True to let effects touch the world that are not on record. Otherwise they are simulated.
        name: A name for it: its label `rerun`.
        people: The one who answers for people: `recorded`, `stop`, or an agent for questions without a recorded answer. Without it `recorded`.
        repeat: The number of times, at most 20. Without it once.
        say: Said at the line, in place of the next recorded message.
        set: Values of the definition by their paths: `models.default.model`, `agents.desk.system`.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        wait: Seconds, at most 60, for which the request waits until the session settles.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/reruns", session=session),
            body=given(
                {
                    "at": at,
                    "branch": branch,
                    "config": config,
                    "definition": definition,
                    "live": live,
                    "name": name,
                    "people": people,
                    "repeat": repeat,
                    "say": say,
                    "set": set,
                }
            ),
            idempotency_key=idempotency_key,
            wait=wait,
            takes_key=True,
        )
        return cast("Job", self._send(call))

    def stop_job(
        self,
        job: str,
    ) -> None:
        """Stops a job. The rerun that runs is left paused after its next line; what is done stays.

        job: The id of the job
        """
        call = Call(
            "DELETE",
            path("/v1/jobs/{job}", job=job),
        )
        self._send(call)


class AsyncReruns:
    """The operations of `reruns`."""

    def __init__(self, send: Callable[[Call], Awaitable[Any]], open: Callable[[Call], AsyncGenerator[Frame, None]]) -> None:
        self._send = send
        self._open = open

    async def get_job(
        self,
        job: str,
        *,
        wait: int | None = None,
    ) -> Job:
        """Tells how a job stands. A job whose process is gone is `lost`; the sessions that it made stay.

        job: The id of the job
        wait: Seconds, at most 60, for which the request waits until the session settles.
        """
        call = Call(
            "GET",
            path("/v1/jobs/{job}", job=job),
            wait=wait,
        )
        return cast("Job", await self._send(call))

    async def list_rerun_values(
        self,
        session: str,
    ) -> DefinitionValueList:
        """Lists the values of a session's definition that a rerun may set. Those that the definition does not declare may be set, too.

        session: The id of the session
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/reruns/values", session=session),
        )
        return cast("DefinitionValueList", await self._send(call))

    async def rerun_session(
        self,
        session: str,
        *,
        at: int | None = None,
        branch: str | None = None,
        config: dict[str, Any] | None = None,
        definition: str | None = None,
        live: bool | None = None,
        name: str | None = None,
        people: str | None = None,
        repeat: int | None = None,
        say: str | None = None,
        set: dict[str, Any] | None = None,
        idempotency_key: str | None = None,
        wait: int | None = None,
    ) -> Job:
        """Runs a session again from its recording with something changed, as new sessions. Effects are simulated unless `live` is set.

        The answer comes at once: `GET /v1/jobs/{job}` tells how it goes on. The new sessions have the label `rerun_of`.

        session: The id of the session
        at: The last line that stays as it was. Without one everything is run again.
        branch: The label or the id of a branch. Without one it is the current branch.
        config: Values of `config` in place of those that the session took.
        definition: The name of another definition of the server.
        live: True to let effects touch the world that are not on record. Otherwise they are simulated.
        name: A name for it: its label `rerun`.
        people: The one who answers for people: `recorded`, `stop`, or an agent for questions without a recorded answer. Without it `recorded`.
        repeat: The number of times, at most 20. Without it once.
        say: Said at the line, in place of the next recorded message.
        set: Values of the definition by their paths: `models.default.model`, `agents.desk.system`.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        wait: Seconds, at most 60, for which the request waits until the session settles.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/reruns", session=session),
            body=given(
                {
                    "at": at,
                    "branch": branch,
                    "config": config,
                    "definition": definition,
                    "live": live,
                    "name": name,
                    "people": people,
                    "repeat": repeat,
                    "say": say,
                    "set": set,
                }
            ),
            idempotency_key=idempotency_key,
            wait=wait,
            takes_key=True,
        )
        return cast("Job", await self._send(call))

    async def stop_job(
        self,
        job: str,
    ) -> None:
        """Stops a job. The rerun that runs is left paused after its next line; what is done stays.

        job: The id of the job
        """
        call = Call(
            "DELETE",
            path("/v1/jobs/{job}", job=job),
        )
        await self._send(call)


class Searches:
    """The operations of `searches`."""

    def __init__(self, send: Callable[[Call], Any], open: Callable[[Call], Generator[Frame, None, None]]) -> None:
        self._send = send
        self._open = open

    def begin_search(
        self,
        session: str,
        *,
        at: int | None = None,
        branch: str | None = None,
        by: str | None = None,
        calls: int | None = None,
        depth: int | None = None,
        enough: float | None = None,
        live: bool | None = None,
        method: str | None = None,
        micros: int | None = None,
        n: int | None = None,
        say: str | None = None,
        score: str | None = None,
        seed: int | None = None,
        tokens: int | None = None,
        width: int | None = None,
        idempotency_key: str | None = None,
        if_match: int | None = None,
    ) -> SearchBegun | Receipt:
        """Begins a search over branches, which goes on while the session continues. Effects are simulated unless `live` is set.

        session: The id of the session
        at: The line at which it begins. Without one it is the last of the branch.
        branch: The label or the id of the branch. Without one it is the current branch.
        by: The one who says what a branch is worth: a tool that only looks, or an agent.
        calls: Maximum number of model calls.
        depth: Maximum number of blocks of a branch.
        enough: The value at which the search ends.
        live: True if effects touch the world on all branches. Otherwise they are simulated.
        method: `best_of`, `beam`, `rollouts` or `mcts`.
        micros: Maximum amount of money, in millionths of the currency.
        n: Number of branches in all; of `beam` those of a level.
        say: Said there first.
        score: An expression over `answer`, `state` and `calls`: what a branch is worth.
        seed: The seed of sampling. Without one it is the session's.
        tokens: Maximum number of tokens.
        width: Of `beam`: how many of a level go on. Of `rollouts`: first blocks. Of `mcts`: branches at one place.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        if_match: The last line that you know: nothing is done if there is a later one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/searches", session=session),
            body=given(
                {
                    "at": at,
                    "branch": branch,
                    "by": by,
                    "calls": calls,
                    "depth": depth,
                    "enough": enough,
                    "live": live,
                    "method": method,
                    "micros": micros,
                    "n": n,
                    "say": say,
                    "score": score,
                    "seed": seed,
                    "tokens": tokens,
                    "width": width,
                }
            ),
            idempotency_key=idempotency_key,
            if_match=if_match,
            takes_key=True,
        )
        return cast("SearchBegun | Receipt", self._send(call))

    def get_search(
        self,
        session: str,
        search: str,
    ) -> Any:
        """Returns a search: its tree, with values and costs, and its winner so far.

        session: The id of the session
        search: The id of the search
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/searches/{search}", session=session, search=search),
        )
        return self._send(call)

    def list_searches(
        self,
        session: str,
    ) -> Any:
        """Lists the searches of a session, with their trees.

        session: The id of the session
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/searches", session=session),
        )
        return self._send(call)

    def stop_search(
        self,
        session: str,
        search: str,
        *,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Ends a search with the best result so far.

        session: The id of the session
        search: The id of the search
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        """
        call = Call(
            "DELETE",
            path("/v1/sessions/{session}/searches/{search}", session=session, search=search),
            idempotency_key=idempotency_key,
            takes_key=True,
        )
        return cast("Receipt", self._send(call))


class AsyncSearches:
    """The operations of `searches`."""

    def __init__(self, send: Callable[[Call], Awaitable[Any]], open: Callable[[Call], AsyncGenerator[Frame, None]]) -> None:
        self._send = send
        self._open = open

    async def begin_search(
        self,
        session: str,
        *,
        at: int | None = None,
        branch: str | None = None,
        by: str | None = None,
        calls: int | None = None,
        depth: int | None = None,
        enough: float | None = None,
        live: bool | None = None,
        method: str | None = None,
        micros: int | None = None,
        n: int | None = None,
        say: str | None = None,
        score: str | None = None,
        seed: int | None = None,
        tokens: int | None = None,
        width: int | None = None,
        idempotency_key: str | None = None,
        if_match: int | None = None,
    ) -> SearchBegun | Receipt:
        """Begins a search over branches, which goes on while the session continues. Effects are simulated unless `live` is set.

        session: The id of the session
        at: The line at which it begins. Without one it is the last of the branch.
        branch: The label or the id of the branch. Without one it is the current branch.
        by: The one who says what a branch is worth: a tool that only looks, or an agent.
        calls: Maximum number of model calls.
        depth: Maximum number of blocks of a branch.
        enough: The value at which the search ends.
        live: True if effects touch the world on all branches. Otherwise they are simulated.
        method: `best_of`, `beam`, `rollouts` or `mcts`.
        micros: Maximum amount of money, in millionths of the currency.
        n: Number of branches in all; of `beam` those of a level.
        say: Said there first.
        score: An expression over `answer`, `state` and `calls`: what a branch is worth.
        seed: The seed of sampling. Without one it is the session's.
        tokens: Maximum number of tokens.
        width: Of `beam`: how many of a level go on. Of `rollouts`: first blocks. Of `mcts`: branches at one place.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        if_match: The last line that you know: nothing is done if there is a later one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/searches", session=session),
            body=given(
                {
                    "at": at,
                    "branch": branch,
                    "by": by,
                    "calls": calls,
                    "depth": depth,
                    "enough": enough,
                    "live": live,
                    "method": method,
                    "micros": micros,
                    "n": n,
                    "say": say,
                    "score": score,
                    "seed": seed,
                    "tokens": tokens,
                    "width": width,
                }
            ),
            idempotency_key=idempotency_key,
            if_match=if_match,
            takes_key=True,
        )
        return cast("SearchBegun | Receipt", await self._send(call))

    async def get_search(
        self,
        session: str,
        search: str,
    ) -> Any:
        """Returns a search: its tree, with values and costs, and its winner so far.

        session: The id of the session
        search: The id of the search
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/searches/{search}", session=session, search=search),
        )
        return await self._send(call)

    async def list_searches(
        self,
        session: str,
    ) -> Any:
        """Lists the searches of a session, with their trees.

        session: The id of the session
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/searches", session=session),
        )
        return await self._send(call)

    async def stop_search(
        self,
        session: str,
        search: str,
        *,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Ends a search with the best result so far.

        session: The id of the session
        search: The id of the search
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        """
        call = Call(
            "DELETE",
            path("/v1/sessions/{session}/searches/{search}", session=session, search=search),
            idempotency_key=idempotency_key,
            takes_key=True,
        )
        return cast("Receipt", await self._send(call))


class Sessions:
    """The operations of `sessions`."""

    def __init__(self, send: Callable[[Call], Any], open: Callable[[Call], Generator[Frame, None, None]]) -> None:
        self._send = send
        self._open = open

    def edit_state(
        self,
        session: str,
        *,
        state: dict[str, Any],
        as_: str | None = None,
        idempotency_key: str | None = None,
        if_match: int | None = None,
    ) -> Receipt:
        """Sets entries of state: gives a permission, corrects a value. The log says who did it.

        session: The id of the session
        state: The entries with their new values. `null` unsets one.
        as_: The role in which they are set. The definition may name the people who may.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        if_match: The last line that you know: nothing is done if there is a later one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/edit", session=session),
            body=given(
                {
                    "state": state,
                    "as": as_,
                }
            ),
            idempotency_key=idempotency_key,
            if_match=if_match,
            takes_key=True,
        )
        return cast("Receipt", self._send(call))

    def erase_session(
        self,
        session: str,
        *,
        alone: bool | None = None,
        apply: bool | None = None,
        effect: str | None = None,
        line: int | None = None,
        memory: bool | None = None,
    ) -> Erased:
        """Erases what was said in a session, at a line or by an effect. All else still verifies. Without `apply` it only says what would go.

        Nothing of the session may be open. A repetition finds nothing that is left to erase.

        session: The id of the session
        alone: True to leave its reruns as they are. They hold the same texts.
        apply: True to do it. Otherwise the answer says what would be erased.
        effect: The effect of which alone arguments and result are erased.
        line: The line of which alone all texts are erased.
        memory: True to forget also what it saved to memory. The token needs the permission `memory`.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/erase", session=session),
            body=given(
                {
                    "alone": alone,
                    "apply": apply,
                    "effect": effect,
                    "line": line,
                    "memory": memory,
                }
            ),
        )
        return cast("Erased", self._send(call))

    def list(
        self,
        *,
        definition: str | None = None,
        status: str | None = None,
        key: str | None = None,
        label: str | None = None,
        prefix: str | None = None,
        where: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> SessionList:
        """Lists the sessions that the token sees, newest first.

        With a filter that lets through few sessions, a page may be short, or empty, although there is a `next`.

        definition: The name of the definition.
        status: Statuses, separated by commas.
        key: The key of the session.
        label: A label: `name:value`.
        prefix: The beginning of the id of the session.
        where: A filter, as `steersman sessions --where` takes it: `status = waits and vendor = Acme and updated > -7d`.
        after: The position after which the list goes on: `next` of the page before.
        limit: The most rows of a page, at most 200.
        """
        call = Call(
            "GET",
            path("/v1/sessions"),
            query=given(
                {
                    "definition": definition,
                    "status": status,
                    "key": key,
                    "label": label,
                    "prefix": prefix,
                    "where": where,
                    "after": after,
                    "limit": limit,
                }
            ),
        )
        return cast("SessionList", self._send(call))

    def migrate_session(
        self,
        session: str,
        *,
        config: dict[str, Any],
        as_: str | None = None,
        idempotency_key: str | None = None,
    ) -> ConfigChanged:
        """Binds a session to other values of `config`. Nothing of the session may be open.

        session: The id of the session
        config: The values.
        as_: The role in which it is done.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/migrate", session=session),
            body=given(
                {
                    "config": config,
                    "as": as_,
                }
            ),
            idempotency_key=idempotency_key,
            takes_key=True,
        )
        return cast("ConfigChanged", self._send(call))

    def page(
        self,
        session: str,
        *,
        branch: str | None = None,
        if_none_match: str | None = None,
    ) -> Any:
        """Returns a session on one page: its branches, agents, state, effects, and what it waits for.

        The `ETag` is the last line: with `If-None-Match` the answer is 304 while nothing new is on disk.

        session: The id of the session
        branch: The label or the id of a branch. Without one it is the current branch.
        if_none_match: The `ETag` that you have: the answer is `None` if nothing is new.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}", session=session),
            query=given(
                {
                    "branch": branch,
                }
            ),
            if_none_match=if_none_match,
        )
        return self._send(call)

    def say(
        self,
        session: str,
        *,
        as_: str | None = None,
        branch: str | None = None,
        files: List[File] | None = None,
        interrupt: bool | None = None,
        text: str | None = None,
        to: str | None = None,
        idempotency_key: str | None = None,
        wait: int | None = None,
    ) -> Turn | Receipt:
        """Says something to a session.

        The answer is a receipt. With `Prefer: wait=N` it is the state in which the session settles within N seconds.

        session: The id of the session
        as_: The role in which it is said.
        branch: The label or the id of a branch. Without one it is the current branch.
        files: Files that come with the message.
        interrupt: True to cancel first whatever is open.
        text: The text.
        to: The id of the agent or question that is meant. Without one it is the agent that has the floor.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        wait: Seconds, at most 60, for which the request waits until the session settles.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/messages", session=session),
            body=given(
                {
                    "as": as_,
                    "branch": branch,
                    "files": files,
                    "interrupt": interrupt,
                    "text": text,
                    "to": to,
                }
            ),
            idempotency_key=idempotency_key,
            wait=wait,
            takes_key=True,
        )
        return cast("Turn | Receipt", self._send(call))

    def start(
        self,
        *,
        definition: str,
        args: dict[str, Any] | None = None,
        as_: str | None = None,
        config: dict[str, Any] | None = None,
        entry: str | None = None,
        files: List[File] | None = None,
        key: str | None = None,
        message: str | None = None,
        seed: int | None = None,
        idempotency_key: str | None = None,
        wait: int | None = None,
    ) -> Turn | Started:
        """Starts a session.

        Under an idempotency key the session has an id that follows from the key, so that a repetition finds it. With `Prefer: wait=N` the
        answer is the state in which the session settles within N seconds.

        definition: The name of the definition.
        args: Arguments for the parameters of the agent that begins.
        as_: The role in which the message is said.
        config: Values of `config` that take precedence over those of the server.
        entry: The agent that begins. Without one it is the first entry of the definition.
        files: Files that come with the arguments or the message.
        key: The key by which events find the session. One session of a definition has it.
        message: The first message.
        seed: The seed of all randomness. Without one it is random.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        wait: Seconds, at most 60, for which the request waits until the session settles.
        """
        call = Call(
            "POST",
            path("/v1/sessions"),
            body=given(
                {
                    "definition": definition,
                    "args": args,
                    "as": as_,
                    "config": config,
                    "entry": entry,
                    "files": files,
                    "key": key,
                    "message": message,
                    "seed": seed,
                }
            ),
            idempotency_key=idempotency_key,
            wait=wait,
            takes_key=True,
        )
        return cast("Turn | Started", self._send(call))


class AsyncSessions:
    """The operations of `sessions`."""

    def __init__(self, send: Callable[[Call], Awaitable[Any]], open: Callable[[Call], AsyncGenerator[Frame, None]]) -> None:
        self._send = send
        self._open = open

    async def edit_state(
        self,
        session: str,
        *,
        state: dict[str, Any],
        as_: str | None = None,
        idempotency_key: str | None = None,
        if_match: int | None = None,
    ) -> Receipt:
        """Sets entries of state: gives a permission, corrects a value. The log says who did it.

        session: The id of the session
        state: The entries with their new values. `null` unsets one.
        as_: The role in which they are set. The definition may name the people who may.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        if_match: The last line that you know: nothing is done if there is a later one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/edit", session=session),
            body=given(
                {
                    "state": state,
                    "as": as_,
                }
            ),
            idempotency_key=idempotency_key,
            if_match=if_match,
            takes_key=True,
        )
        return cast("Receipt", await self._send(call))

    async def erase_session(
        self,
        session: str,
        *,
        alone: bool | None = None,
        apply: bool | None = None,
        effect: str | None = None,
        line: int | None = None,
        memory: bool | None = None,
    ) -> Erased:
        """Erases what was said in a session, at a line or by an effect. All else still verifies. Without `apply` it only says what would go.

        Nothing of the session may be open. A repetition finds nothing that is left to erase.

        session: The id of the session
        alone: True to leave its reruns as they are. They hold the same texts.
        apply: True to do it. Otherwise the answer says what would be erased.
        effect: The effect of which alone arguments and result are erased.
        line: The line of which alone all texts are erased.
        memory: True to forget also what it saved to memory. The token needs the permission `memory`.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/erase", session=session),
            body=given(
                {
                    "alone": alone,
                    "apply": apply,
                    "effect": effect,
                    "line": line,
                    "memory": memory,
                }
            ),
        )
        return cast("Erased", await self._send(call))

    async def list(
        self,
        *,
        definition: str | None = None,
        status: str | None = None,
        key: str | None = None,
        label: str | None = None,
        prefix: str | None = None,
        where: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> SessionList:
        """Lists the sessions that the token sees, newest first.

        With a filter that lets through few sessions, a page may be short, or empty, although there is a `next`.

        definition: The name of the definition.
        status: Statuses, separated by commas.
        key: The key of the session.
        label: A label: `name:value`.
        prefix: The beginning of the id of the session.
        where: A filter, as `steersman sessions --where` takes it: `status = waits and vendor = Acme and updated > -7d`.
        after: The position after which the list goes on: `next` of the page before.
        limit: The most rows of a page, at most 200.
        """
        call = Call(
            "GET",
            path("/v1/sessions"),
            query=given(
                {
                    "definition": definition,
                    "status": status,
                    "key": key,
                    "label": label,
                    "prefix": prefix,
                    "where": where,
                    "after": after,
                    "limit": limit,
                }
            ),
        )
        return cast("SessionList", await self._send(call))

    async def migrate_session(
        self,
        session: str,
        *,
        config: dict[str, Any],
        as_: str | None = None,
        idempotency_key: str | None = None,
    ) -> ConfigChanged:
        """Binds a session to other values of `config`. Nothing of the session may be open.

        session: The id of the session
        config: The values.
        as_: The role in which it is done.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/migrate", session=session),
            body=given(
                {
                    "config": config,
                    "as": as_,
                }
            ),
            idempotency_key=idempotency_key,
            takes_key=True,
        )
        return cast("ConfigChanged", await self._send(call))

    async def page(
        self,
        session: str,
        *,
        branch: str | None = None,
        if_none_match: str | None = None,
    ) -> Any:
        """Returns a session on one page: its branches, agents, state, effects, and what it waits for.

        The `ETag` is the last line: with `If-None-Match` the answer is 304 while nothing new is on disk.

        session: The id of the session
        branch: The label or the id of a branch. Without one it is the current branch.
        if_none_match: The `ETag` that you have: the answer is `None` if nothing is new.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}", session=session),
            query=given(
                {
                    "branch": branch,
                }
            ),
            if_none_match=if_none_match,
        )
        return await self._send(call)

    async def say(
        self,
        session: str,
        *,
        as_: str | None = None,
        branch: str | None = None,
        files: List[File] | None = None,
        interrupt: bool | None = None,
        text: str | None = None,
        to: str | None = None,
        idempotency_key: str | None = None,
        wait: int | None = None,
    ) -> Turn | Receipt:
        """Says something to a session.

        The answer is a receipt. With `Prefer: wait=N` it is the state in which the session settles within N seconds.

        session: The id of the session
        as_: The role in which it is said.
        branch: The label or the id of a branch. Without one it is the current branch.
        files: Files that come with the message.
        interrupt: True to cancel first whatever is open.
        text: The text.
        to: The id of the agent or question that is meant. Without one it is the agent that has the floor.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        wait: Seconds, at most 60, for which the request waits until the session settles.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/messages", session=session),
            body=given(
                {
                    "as": as_,
                    "branch": branch,
                    "files": files,
                    "interrupt": interrupt,
                    "text": text,
                    "to": to,
                }
            ),
            idempotency_key=idempotency_key,
            wait=wait,
            takes_key=True,
        )
        return cast("Turn | Receipt", await self._send(call))

    async def start(
        self,
        *,
        definition: str,
        args: dict[str, Any] | None = None,
        as_: str | None = None,
        config: dict[str, Any] | None = None,
        entry: str | None = None,
        files: List[File] | None = None,
        key: str | None = None,
        message: str | None = None,
        seed: int | None = None,
        idempotency_key: str | None = None,
        wait: int | None = None,
    ) -> Turn | Started:
        """Starts a session.

        Under an idempotency key the session has an id that follows from the key, so that a repetition finds it. With `Prefer: wait=N` the
        answer is the state in which the session settles within N seconds.

        definition: The name of the definition.
        args: Arguments for the parameters of the agent that begins.
        as_: The role in which the message is said.
        config: Values of `config` that take precedence over those of the server.
        entry: The agent that begins. Without one it is the first entry of the definition.
        files: Files that come with the arguments or the message.
        key: The key by which events find the session. One session of a definition has it.
        message: The first message.
        seed: The seed of all randomness. Without one it is random.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        wait: Seconds, at most 60, for which the request waits until the session settles.
        """
        call = Call(
            "POST",
            path("/v1/sessions"),
            body=given(
                {
                    "definition": definition,
                    "args": args,
                    "as": as_,
                    "config": config,
                    "entry": entry,
                    "files": files,
                    "key": key,
                    "message": message,
                    "seed": seed,
                }
            ),
            idempotency_key=idempotency_key,
            wait=wait,
            takes_key=True,
        )
        return cast("Turn | Started", await self._send(call))


class Tokens:
    """The operations of `tokens`."""

    def __init__(self, send: Callable[[Call], Any], open: Callable[[Call], Generator[Frame, None, None]]) -> None:
        self._send = send
        self._open = open

    def exchange_code(
        self,
        *,
        code: str,
    ) -> ExchangedToken:
        """Returns the token for a code, and forgets the code. The request needs no token.

        code: The code.
        """
        call = Call(
            "POST",
            path("/v1/token/exchange"),
            body=given(
                {
                    "code": code,
                }
            ),
        )
        return cast("ExchangedToken", self._send(call))

    def list(
        self,
        *,
        after: str | None = None,
        limit: int | None = None,
    ) -> Any:
        """Lists the tokens of the tenant, without their secrets.

        after: The position after which the list goes on: `next` of the page before.
        limit: The most rows, at most 200.
        """
        call = Call(
            "GET",
            path("/v1/tokens"),
            query=given(
                {
                    "after": after,
                    "limit": limit,
                }
            ),
        )
        return self._send(call)

    def make(
        self,
        *,
        allows: List[Permission] | None = None,
        definitions: List[str] | None = None,
        expires: str | None = None,
        note: str | None = None,
        roles: List[str] | None = None,
        subject: str | None = None,
    ) -> MadeToken:
        """Makes a token of the same tenant.

        allows: The permissions.
        definitions: Names of the definitions that it may start. Empty means all.
        expires: The time after which it is invalid, in RFC 3339.
        note: A note for people.
        roles: Roles in which its owner may act.
        subject: The subject whose sessions alone it may use.
        """
        call = Call(
            "POST",
            path("/v1/tokens"),
            body=given(
                {
                    "allows": allows,
                    "definitions": definitions,
                    "expires": expires,
                    "note": note,
                    "roles": roles,
                    "subject": subject,
                }
            ),
        )
        return cast("MadeToken", self._send(call))

    def make_code(
        self,
    ) -> MadeCode:
        """Returns a code for the token of the request. `exchange` turns it into the token, once and within 60 seconds: a browser is started with
        it in the address (`/#c=CODE`), so that no token is in an address.
        """
        call = Call(
            "POST",
            path("/v1/token/code"),
        )
        return cast("MadeCode", self._send(call))

    def me(
        self,
    ) -> Any:
        """Returns what the token is and may do, and the version of the server."""
        call = Call(
            "GET",
            path("/v1/me"),
        )
        return self._send(call)

    def revoke(
        self,
        name: str,
    ) -> None:
        """Revokes a token of the tenant. It is invalid from now on.

        name: The name of the token
        """
        call = Call(
            "DELETE",
            path("/v1/tokens/{name}", name=name),
        )
        self._send(call)


class AsyncTokens:
    """The operations of `tokens`."""

    def __init__(self, send: Callable[[Call], Awaitable[Any]], open: Callable[[Call], AsyncGenerator[Frame, None]]) -> None:
        self._send = send
        self._open = open

    async def exchange_code(
        self,
        *,
        code: str,
    ) -> ExchangedToken:
        """Returns the token for a code, and forgets the code. The request needs no token.

        code: The code.
        """
        call = Call(
            "POST",
            path("/v1/token/exchange"),
            body=given(
                {
                    "code": code,
                }
            ),
        )
        return cast("ExchangedToken", await self._send(call))

    async def list(
        self,
        *,
        after: str | None = None,
        limit: int | None = None,
    ) -> Any:
        """Lists the tokens of the tenant, without their secrets.

        after: The position after which the list goes on: `next` of the page before.
        limit: The most rows, at most 200.
        """
        call = Call(
            "GET",
            path("/v1/tokens"),
            query=given(
                {
                    "after": after,
                    "limit": limit,
                }
            ),
        )
        return await self._send(call)

    async def make(
        self,
        *,
        allows: List[Permission] | None = None,
        definitions: List[str] | None = None,
        expires: str | None = None,
        note: str | None = None,
        roles: List[str] | None = None,
        subject: str | None = None,
    ) -> MadeToken:
        """Makes a token of the same tenant.

        allows: The permissions.
        definitions: Names of the definitions that it may start. Empty means all.
        expires: The time after which it is invalid, in RFC 3339.
        note: A note for people.
        roles: Roles in which its owner may act.
        subject: The subject whose sessions alone it may use.
        """
        call = Call(
            "POST",
            path("/v1/tokens"),
            body=given(
                {
                    "allows": allows,
                    "definitions": definitions,
                    "expires": expires,
                    "note": note,
                    "roles": roles,
                    "subject": subject,
                }
            ),
        )
        return cast("MadeToken", await self._send(call))

    async def make_code(
        self,
    ) -> MadeCode:
        """Returns a code for the token of the request. `exchange` turns it into the token, once and within 60 seconds: a browser is started with
        it in the address (`/#c=CODE`), so that no token is in an address.
        """
        call = Call(
            "POST",
            path("/v1/token/code"),
        )
        return cast("MadeCode", await self._send(call))

    async def me(
        self,
    ) -> Any:
        """Returns what the token is and may do, and the version of the server."""
        call = Call(
            "GET",
            path("/v1/me"),
        )
        return await self._send(call)

    async def revoke(
        self,
        name: str,
    ) -> None:
        """Revokes a token of the tenant. It is invalid from now on.

        name: The name of the token
        """
        call = Call(
            "DELETE",
            path("/v1/tokens/{name}", name=name),
        )
        await self._send(call)


class Views:
    """The operations of `views`."""

    def __init__(self, send: Callable[[Call], Any], open: Callable[[Call], Generator[Frame, None, None]]) -> None:
        self._send = send
        self._open = open

    def artifact(
        self,
        session: str,
        name: str,
        *,
        branch: str | None = None,
        version: int | None = None,
    ) -> bytes:
        """Returns the content of an artifact, as an attachment.

        session: The id of the session
        name: The name of the artifact, or `blake3:` with the beginning of the digest of its content
        branch: The label or the id of a branch. Without one it is the current branch.
        version: The number of the version. Without one it is the newest.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/artifacts/{name}", session=session, name=name),
            query=given(
                {
                    "branch": branch,
                    "version": version,
                }
            ),
            answer="bytes",
        )
        return cast("bytes", self._send(call))

    def artifacts(
        self,
        session: str,
        *,
        branch: str | None = None,
    ) -> ArtifactList:
        """Lists all versions of the artifacts of a branch.

        session: The id of the session
        branch: The label or the id of a branch. Without one it is the current branch.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/artifacts", session=session),
            query=given(
                {
                    "branch": branch,
                }
            ),
        )
        return cast("ArtifactList", self._send(call))

    def context(
        self,
        session: str,
        effect: str,
        *,
        branch: str | None = None,
        show: str | None = None,
    ) -> Any:
        """Returns the context of a model call, exactly as it was sent.

        session: The id of the session
        effect: The id of the model call
        branch: The label or the id of a branch. Without one it is the current branch.
        show: `whole`: as it was sent. `why`: where each part comes from. `diff`: what changed since the call before.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/contexts/{effect}", session=session, effect=effect),
            query=given(
                {
                    "branch": branch,
                    "show": show,
                }
            ),
        )
        return self._send(call)

    def contexts(
        self,
        session: str,
        *,
        branch: str | None = None,
    ) -> Any:
        """Lists the model calls that led to the head of a branch.

        session: The id of the session
        branch: The label or the id of a branch. Without one it is the current branch.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/contexts", session=session),
            query=given(
                {
                    "branch": branch,
                }
            ),
        )
        return self._send(call)

    def diff_sessions(
        self,
        *,
        a: str | None = None,
        b: str | None = None,
    ) -> Any:
        """Says how two sessions or branches differ: what they came to, where they went apart, what they did.

        a: A session, or a branch of it by label or id: `SESSION` or `SESSION:BRANCH`.
        b: Another one, or another branch of the same.
        """
        call = Call(
            "GET",
            path("/v1/diff"),
            query=given(
                {
                    "a": a,
                    "b": b,
                }
            ),
        )
        return self._send(call)

    def draw_session(
        self,
        session: str,
        *,
        branch: str | None = None,
    ) -> bytes:
        """Returns the graph of a session as a picture: SVG.

        session: The id of the session
        branch: The label or the id of a branch. Without one it is the current branch.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/graph.svg", session=session),
            query=given(
                {
                    "branch": branch,
                }
            ),
            answer="bytes",
        )
        return cast("bytes", self._send(call))

    def effects(
        self,
        session: str,
        *,
        branch: str | None = None,
    ) -> Any:
        """Lists the effects of a session on the world, also those that may have happened.

        session: The id of the session
        branch: The label or the id of a branch. Without one it is the current branch.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/effects", session=session),
            query=given(
                {
                    "branch": branch,
                }
            ),
        )
        return self._send(call)

    def graph(
        self,
        session: str,
        *,
        branch: str | None = None,
    ) -> Any:
        """Returns the graph of a session's definition with the marks of where it stands, and its shapes in coordinates.

        session: The id of the session
        branch: The label or the id of a branch. Without one it is the current branch.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/graph", session=session),
            query=given(
                {
                    "branch": branch,
                }
            ),
        )
        return self._send(call)

    def line(
        self,
        session: str,
        line: int,
    ) -> Any:
        """Returns one line of the log.

        session: The id of the session
        line: The number of the line
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/lines/{line}", session=session, line=line),
        )
        return self._send(call)

    def lines(
        self,
        session: str,
        *,
        from_: int | None = None,
        to: int | None = None,
        branch: str | None = None,
        limit: int | None = None,
    ) -> Any:
        """Lists lines of the log: what each committed and recorded, as text.

        session: The id of the session
        from_: The first line. Without one it is the first of the session.
        to: The last line.
        branch: The label or the id of a branch. Without one the lines of all branches come.
        limit: The most lines, at most 200.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/lines", session=session),
            query=given(
                {
                    "from": from_,
                    "to": to,
                    "branch": branch,
                    "limit": limit,
                }
            ),
        )
        return self._send(call)

    def list_screen(
        self,
        screen: str,
        *,
        where: str | None = None,
        limit: int | None = None,
        by: str | None = None,
        reruns: bool | None = None,
    ) -> Any:
        """Returns what a command of the program prints of all sessions that the token sees: `sessions`, `pending`.

        Secrets are masked unless the token may see them.

        screen: The name of the command
        where: A filter, as `steersman sessions --where` takes it.
        limit: The most sessions, at most 10000.
        by: Sums by `status`, `code` or `network`, in place of the sessions.
        reruns: True to count reruns in sums, too.
        """
        call = Call(
            "GET",
            path("/v1/screens/{screen}", screen=screen),
            query=given(
                {
                    "where": where,
                    "limit": limit,
                    "by": by,
                    "reruns": reruns,
                }
            ),
        )
        return self._send(call)

    def map_session(
        self,
        session: str,
        *,
        branch: str | None = None,
        since: int | None = None,
        until: int | None = None,
        every: int | None = None,
    ) -> Any:
        """Returns the session as columns, one entry for each interaction, question, decision, edit, branch and owner. Columns have the same
        length; lines and times are differences to the entry before.

        session: The id of the session
        branch: The label or the id of a branch. Without one the entries of all branches come.
        since: The line behind which the entries begin.
        until: The last line. Without one it is the last of the session.
        every: Only each so-manyth entry.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/map", session=session),
            query=given(
                {
                    "branch": branch,
                    "since": since,
                    "until": until,
                    "every": every,
                }
            ),
        )
        return self._send(call)

    def rate_artifact(
        self,
        session: str,
        name: str,
        *,
        rating: int,
        as_: str | None = None,
        reason: str | None = None,
        version: int | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Rates a version of an artifact of the current branch. The rating of a person takes precedence over those of agents.

        session: The id of the session
        name: The name of the artifact
        rating: From 1 to 5.
        as_: The role in which it is rated.
        reason: The reason.
        version: The number of the version. Without one it is the newest.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/artifacts/{name}/rating", session=session, name=name),
            body=given(
                {
                    "rating": rating,
                    "as": as_,
                    "reason": reason,
                    "version": version,
                }
            ),
            idempotency_key=idempotency_key,
            takes_key=True,
        )
        return cast("Receipt", self._send(call))

    def screen(
        self,
        session: str,
        screen: str,
        *,
        branch: str | None = None,
        line: str | None = None,
        of: str | None = None,
        form: str | None = None,
        after: int | None = None,
        most: int | None = None,
    ) -> Any:
        """Returns what a command of the program prints of a session: `artifacts`, `context`, `effects`, `graph`, `log`, `show`, `why`, and
        `waits` for the commands that answer questions.

        Secrets are masked, whatever the token allows, as a terminal does not show them. A context needs the permission `context`, and is
        shown as it was sent.

        session: The id of the session
        screen: The name of the command
        branch: The label or the id of a branch. Without one it is the current branch.
        line: A line as the program takes it behind `@`: `12`, `-2`, `head`, or the name of a tool.
        of: The thing that is meant, by its name or id: a call, an agent, an effect, an artifact.
        form: The form, where a screen has several.
        after: The line after which a log begins.
        most: The most lines of a log, at most 1000.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/screens/{screen}", session=session, screen=screen),
            query=given(
                {
                    "branch": branch,
                    "line": line,
                    "of": of,
                    "form": form,
                    "after": after,
                    "most": most,
                }
            ),
        )
        return self._send(call)

    def state(
        self,
        session: str,
        *,
        branch: str | None = None,
        at: int | None = None,
    ) -> Any:
        """Returns the state of a branch, as of a line if one is named.

        session: The id of the session
        branch: The label or the id of a branch. Without one it is the current branch.
        at: The number of a line. Without one it is the last line of the branch.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/state", session=session),
            query=given(
                {
                    "branch": branch,
                    "at": at,
                }
            ),
        )
        return self._send(call)

    def story(
        self,
        session: str,
        *,
        branch: str | None = None,
        from_: int | None = None,
        to: int | None = None,
        last: bool | None = None,
        limit: int | None = None,
        chars: int | None = None,
        find: str | None = None,
    ) -> StoryPage:
        """Tells what happened on a branch, row by row, in plain words, as `steersman show` does.

        `before` is the last line in front of the page that has rows, `next` the first line behind it; each is absent where there is none.

        session: The id of the session
        branch: The label or the id of a branch. Without one it is the current branch.
        from_: The first line. Without one it is the first of the branch.
        to: The last line. Without one it is the last of the branch.
        last: True to get the last rows of these lines, otherwise the first.
        limit: The most rows, at most 1000. The rows of a line stay together, so a page may have a few more.
        chars: The most characters of a text. What is longer is cut, and has `cut`.
        find: Only rows that have this in their text, actor or note, in upper or lower case. Secrets are not found by a token that may not see them.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/story", session=session),
            query=given(
                {
                    "branch": branch,
                    "from": from_,
                    "to": to,
                    "last": last,
                    "limit": limit,
                    "chars": chars,
                    "find": find,
                }
            ),
        )
        return cast("StoryPage", self._send(call))

    def why(
        self,
        session: str,
        what: str,
        *,
        branch: str | None = None,
    ) -> Any:
        """Explains from the log why an agent acted: the chain of reasons of the act of a line, or of a call or an effect.

        session: The id of the session
        what: The number of a line, or the id of a call, an effect or an agent
        branch: The label or the id of a branch. Without one it is the current branch.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/why/{what}", session=session, what=what),
            query=given(
                {
                    "branch": branch,
                }
            ),
        )
        return self._send(call)


class AsyncViews:
    """The operations of `views`."""

    def __init__(self, send: Callable[[Call], Awaitable[Any]], open: Callable[[Call], AsyncGenerator[Frame, None]]) -> None:
        self._send = send
        self._open = open

    async def artifact(
        self,
        session: str,
        name: str,
        *,
        branch: str | None = None,
        version: int | None = None,
    ) -> bytes:
        """Returns the content of an artifact, as an attachment.

        session: The id of the session
        name: The name of the artifact, or `blake3:` with the beginning of the digest of its content
        branch: The label or the id of a branch. Without one it is the current branch.
        version: The number of the version. Without one it is the newest.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/artifacts/{name}", session=session, name=name),
            query=given(
                {
                    "branch": branch,
                    "version": version,
                }
            ),
            answer="bytes",
        )
        return cast("bytes", await self._send(call))

    async def artifacts(
        self,
        session: str,
        *,
        branch: str | None = None,
    ) -> ArtifactList:
        """Lists all versions of the artifacts of a branch.

        session: The id of the session
        branch: The label or the id of a branch. Without one it is the current branch.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/artifacts", session=session),
            query=given(
                {
                    "branch": branch,
                }
            ),
        )
        return cast("ArtifactList", await self._send(call))

    async def context(
        self,
        session: str,
        effect: str,
        *,
        branch: str | None = None,
        show: str | None = None,
    ) -> Any:
        """Returns the context of a model call, exactly as it was sent.

        session: The id of the session
        effect: The id of the model call
        branch: The label or the id of a branch. Without one it is the current branch.
        show: `whole`: as it was sent. `why`: where each part comes from. `diff`: what changed since the call before.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/contexts/{effect}", session=session, effect=effect),
            query=given(
                {
                    "branch": branch,
                    "show": show,
                }
            ),
        )
        return await self._send(call)

    async def contexts(
        self,
        session: str,
        *,
        branch: str | None = None,
    ) -> Any:
        """Lists the model calls that led to the head of a branch.

        session: The id of the session
        branch: The label or the id of a branch. Without one it is the current branch.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/contexts", session=session),
            query=given(
                {
                    "branch": branch,
                }
            ),
        )
        return await self._send(call)

    async def diff_sessions(
        self,
        *,
        a: str | None = None,
        b: str | None = None,
    ) -> Any:
        """Says how two sessions or branches differ: what they came to, where they went apart, what they did.

        a: A session, or a branch of it by label or id: `SESSION` or `SESSION:BRANCH`.
        b: Another one, or another branch of the same.
        """
        call = Call(
            "GET",
            path("/v1/diff"),
            query=given(
                {
                    "a": a,
                    "b": b,
                }
            ),
        )
        return await self._send(call)

    async def draw_session(
        self,
        session: str,
        *,
        branch: str | None = None,
    ) -> bytes:
        """Returns the graph of a session as a picture: SVG.

        session: The id of the session
        branch: The label or the id of a branch. Without one it is the current branch.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/graph.svg", session=session),
            query=given(
                {
                    "branch": branch,
                }
            ),
            answer="bytes",
        )
        return cast("bytes", await self._send(call))

    async def effects(
        self,
        session: str,
        *,
        branch: str | None = None,
    ) -> Any:
        """Lists the effects of a session on the world, also those that may have happened.

        session: The id of the session
        branch: The label or the id of a branch. Without one it is the current branch.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/effects", session=session),
            query=given(
                {
                    "branch": branch,
                }
            ),
        )
        return await self._send(call)

    async def graph(
        self,
        session: str,
        *,
        branch: str | None = None,
    ) -> Any:
        """Returns the graph of a session's definition with the marks of where it stands, and its shapes in coordinates.

        session: The id of the session
        branch: The label or the id of a branch. Without one it is the current branch.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/graph", session=session),
            query=given(
                {
                    "branch": branch,
                }
            ),
        )
        return await self._send(call)

    async def line(
        self,
        session: str,
        line: int,
    ) -> Any:
        """Returns one line of the log.

        session: The id of the session
        line: The number of the line
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/lines/{line}", session=session, line=line),
        )
        return await self._send(call)

    async def lines(
        self,
        session: str,
        *,
        from_: int | None = None,
        to: int | None = None,
        branch: str | None = None,
        limit: int | None = None,
    ) -> Any:
        """Lists lines of the log: what each committed and recorded, as text.

        session: The id of the session
        from_: The first line. Without one it is the first of the session.
        to: The last line.
        branch: The label or the id of a branch. Without one the lines of all branches come.
        limit: The most lines, at most 200.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/lines", session=session),
            query=given(
                {
                    "from": from_,
                    "to": to,
                    "branch": branch,
                    "limit": limit,
                }
            ),
        )
        return await self._send(call)

    async def list_screen(
        self,
        screen: str,
        *,
        where: str | None = None,
        limit: int | None = None,
        by: str | None = None,
        reruns: bool | None = None,
    ) -> Any:
        """Returns what a command of the program prints of all sessions that the token sees: `sessions`, `pending`.

        Secrets are masked unless the token may see them.

        screen: The name of the command
        where: A filter, as `steersman sessions --where` takes it.
        limit: The most sessions, at most 10000.
        by: Sums by `status`, `code` or `network`, in place of the sessions.
        reruns: True to count reruns in sums, too.
        """
        call = Call(
            "GET",
            path("/v1/screens/{screen}", screen=screen),
            query=given(
                {
                    "where": where,
                    "limit": limit,
                    "by": by,
                    "reruns": reruns,
                }
            ),
        )
        return await self._send(call)

    async def map_session(
        self,
        session: str,
        *,
        branch: str | None = None,
        since: int | None = None,
        until: int | None = None,
        every: int | None = None,
    ) -> Any:
        """Returns the session as columns, one entry for each interaction, question, decision, edit, branch and owner. Columns have the same
        length; lines and times are differences to the entry before.

        session: The id of the session
        branch: The label or the id of a branch. Without one the entries of all branches come.
        since: The line behind which the entries begin.
        until: The last line. Without one it is the last of the session.
        every: Only each so-manyth entry.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/map", session=session),
            query=given(
                {
                    "branch": branch,
                    "since": since,
                    "until": until,
                    "every": every,
                }
            ),
        )
        return await self._send(call)

    async def rate_artifact(
        self,
        session: str,
        name: str,
        *,
        rating: int,
        as_: str | None = None,
        reason: str | None = None,
        version: int | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Rates a version of an artifact of the current branch. The rating of a person takes precedence over those of agents.

        session: The id of the session
        name: The name of the artifact
        rating: From 1 to 5.
        as_: The role in which it is rated.
        reason: The reason.
        version: The number of the version. Without one it is the newest.
        idempotency_key: The key under which a repetition is carried out once. Without one the client makes one.
        """
        call = Call(
            "POST",
            path("/v1/sessions/{session}/artifacts/{name}/rating", session=session, name=name),
            body=given(
                {
                    "rating": rating,
                    "as": as_,
                    "reason": reason,
                    "version": version,
                }
            ),
            idempotency_key=idempotency_key,
            takes_key=True,
        )
        return cast("Receipt", await self._send(call))

    async def screen(
        self,
        session: str,
        screen: str,
        *,
        branch: str | None = None,
        line: str | None = None,
        of: str | None = None,
        form: str | None = None,
        after: int | None = None,
        most: int | None = None,
    ) -> Any:
        """Returns what a command of the program prints of a session: `artifacts`, `context`, `effects`, `graph`, `log`, `show`, `why`, and
        `waits` for the commands that answer questions.

        Secrets are masked, whatever the token allows, as a terminal does not show them. A context needs the permission `context`, and is
        shown as it was sent.

        session: The id of the session
        screen: The name of the command
        branch: The label or the id of a branch. Without one it is the current branch.
        line: A line as the program takes it behind `@`: `12`, `-2`, `head`, or the name of a tool.
        of: The thing that is meant, by its name or id: a call, an agent, an effect, an artifact.
        form: The form, where a screen has several.
        after: The line after which a log begins.
        most: The most lines of a log, at most 1000.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/screens/{screen}", session=session, screen=screen),
            query=given(
                {
                    "branch": branch,
                    "line": line,
                    "of": of,
                    "form": form,
                    "after": after,
                    "most": most,
                }
            ),
        )
        return await self._send(call)

    async def state(
        self,
        session: str,
        *,
        branch: str | None = None,
        at: int | None = None,
    ) -> Any:
        """Returns the state of a branch, as of a line if one is named.

        session: The id of the session
        branch: The label or the id of a branch. Without one it is the current branch.
        at: The number of a line. Without one it is the last line of the branch.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/state", session=session),
            query=given(
                {
                    "branch": branch,
                    "at": at,
                }
            ),
        )
        return await self._send(call)

    async def story(
        self,
        session: str,
        *,
        branch: str | None = None,
        from_: int | None = None,
        to: int | None = None,
        last: bool | None = None,
        limit: int | None = None,
        chars: int | None = None,
        find: str | None = None,
    ) -> StoryPage:
        """Tells what happened on a branch, row by row, in plain words, as `steersman show` does.

        `before` is the last line in front of the page that has rows, `next` the first line behind it; each is absent where there is none.

        session: The id of the session
        branch: The label or the id of a branch. Without one it is the current branch.
        from_: The first line. Without one it is the first of the branch.
        to: The last line. Without one it is the last of the branch.
        last: True to get the last rows of these lines, otherwise the first.
        limit: The most rows, at most 1000. The rows of a line stay together, so a page may have a few more.
        chars: The most characters of a text. What is longer is cut, and has `cut`.
        find: Only rows that have this in their text, actor or note, in upper or lower case. Secrets are not found by a token that may not see them.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/story", session=session),
            query=given(
                {
                    "branch": branch,
                    "from": from_,
                    "to": to,
                    "last": last,
                    "limit": limit,
                    "chars": chars,
                    "find": find,
                }
            ),
        )
        return cast("StoryPage", await self._send(call))

    async def why(
        self,
        session: str,
        what: str,
        *,
        branch: str | None = None,
    ) -> Any:
        """Explains from the log why an agent acted: the chain of reasons of the act of a line, or of a call or an effect.

        session: The id of the session
        what: The number of a line, or the id of a call, an effect or an agent
        branch: The label or the id of a branch. Without one it is the current branch.
        """
        call = Call(
            "GET",
            path("/v1/sessions/{session}/why/{what}", session=session, what=what),
            query=given(
                {
                    "branch": branch,
                }
            ),
        )
        return await self._send(call)


class Webhooks:
    """The operations of `webhooks`."""

    def __init__(self, send: Callable[[Call], Any], open: Callable[[Call], Generator[Frame, None, None]]) -> None:
        self._send = send
        self._open = open

    def delete(
        self,
        name: str,
    ) -> None:
        """Deletes a webhook of the tenant. Nothing is sent to it any more.

        name: The name of the webhook
        """
        call = Call(
            "DELETE",
            path("/v1/webhooks/{name}", name=name),
        )
        self._send(call)

    def list(
        self,
    ) -> Any:
        """Lists the webhooks of the tenant, without their secrets."""
        call = Call(
            "GET",
            path("/v1/webhooks"),
        )
        return self._send(call)

    def make(
        self,
        *,
        url: str,
        kinds: List[str] | None = None,
        where: str | None = None,
    ) -> MadeHook:
        """Makes a webhook: from now on messages about sessions of the tenant are sent to an address.

        url: The address to which messages are sent: `https`, without a user and a fragment.
        kinds: Kinds of messages: `session.settled`, `session.failed`, `question.asked`, `effect.in_doubt`, `artifact.made`. Empty means all.
        where: The sessions: `definition`, `key` and `label`, as in the query of the list of sessions. Without it all are meant.
        """
        call = Call(
            "POST",
            path("/v1/webhooks"),
            body=given(
                {
                    "url": url,
                    "kinds": kinds,
                    "where": where,
                }
            ),
        )
        return cast("MadeHook", self._send(call))

    def resume(
        self,
        name: str,
    ) -> None:
        """Sends to a webhook again that got nothing any more, from where it stopped.

        name: The name of the webhook
        """
        call = Call(
            "POST",
            path("/v1/webhooks/{name}/resume", name=name),
        )
        self._send(call)

    def rotate(
        self,
        name: str,
    ) -> MadeHook:
        """Begins to exchange the secret of a webhook: until the exchange is ended, each message has a signature with the new secret and one with the
        one before.

        name: The name of the webhook
        """
        call = Call(
            "POST",
            path("/v1/webhooks/{name}/rotation", name=name),
        )
        return cast("MadeHook", self._send(call))

    def rotated(
        self,
        name: str,
    ) -> None:
        """Ends the exchange of a secret: the new secret alone signs.

        name: The name of the webhook
        """
        call = Call(
            "DELETE",
            path("/v1/webhooks/{name}/rotation", name=name),
        )
        self._send(call)


class AsyncWebhooks:
    """The operations of `webhooks`."""

    def __init__(self, send: Callable[[Call], Awaitable[Any]], open: Callable[[Call], AsyncGenerator[Frame, None]]) -> None:
        self._send = send
        self._open = open

    async def delete(
        self,
        name: str,
    ) -> None:
        """Deletes a webhook of the tenant. Nothing is sent to it any more.

        name: The name of the webhook
        """
        call = Call(
            "DELETE",
            path("/v1/webhooks/{name}", name=name),
        )
        await self._send(call)

    async def list(
        self,
    ) -> Any:
        """Lists the webhooks of the tenant, without their secrets."""
        call = Call(
            "GET",
            path("/v1/webhooks"),
        )
        return await self._send(call)

    async def make(
        self,
        *,
        url: str,
        kinds: List[str] | None = None,
        where: str | None = None,
    ) -> MadeHook:
        """Makes a webhook: from now on messages about sessions of the tenant are sent to an address.

        url: The address to which messages are sent: `https`, without a user and a fragment.
        kinds: Kinds of messages: `session.settled`, `session.failed`, `question.asked`, `effect.in_doubt`, `artifact.made`. Empty means all.
        where: The sessions: `definition`, `key` and `label`, as in the query of the list of sessions. Without it all are meant.
        """
        call = Call(
            "POST",
            path("/v1/webhooks"),
            body=given(
                {
                    "url": url,
                    "kinds": kinds,
                    "where": where,
                }
            ),
        )
        return cast("MadeHook", await self._send(call))

    async def resume(
        self,
        name: str,
    ) -> None:
        """Sends to a webhook again that got nothing any more, from where it stopped.

        name: The name of the webhook
        """
        call = Call(
            "POST",
            path("/v1/webhooks/{name}/resume", name=name),
        )
        await self._send(call)

    async def rotate(
        self,
        name: str,
    ) -> MadeHook:
        """Begins to exchange the secret of a webhook: until the exchange is ended, each message has a signature with the new secret and one with the
        one before.

        name: The name of the webhook
        """
        call = Call(
            "POST",
            path("/v1/webhooks/{name}/rotation", name=name),
        )
        return cast("MadeHook", await self._send(call))

    async def rotated(
        self,
        name: str,
    ) -> None:
        """Ends the exchange of a secret: the new secret alone signs.

        name: The name of the webhook
        """
        call = Call(
            "DELETE",
            path("/v1/webhooks/{name}/rotation", name=name),
        )
        await self._send(call)


class Api:
    """All operations, by tag."""

    def __init__(self, send: Callable[[Call], Any], open: Callable[[Call], Generator[Frame, None, None]]) -> None:
        self.branches = Branches(send, open)
        self.definitions = Definitions(send, open)
        self.events = Events(send, open)
        self.health = Health(send, open)
        self.memories = Memories(send, open)
        self.orders = Orders(send, open)
        self.questions = Questions(send, open)
        self.reruns = Reruns(send, open)
        self.searches = Searches(send, open)
        self.sessions = Sessions(send, open)
        self.tokens = Tokens(send, open)
        self.views = Views(send, open)
        self.webhooks = Webhooks(send, open)


class AsyncApi:
    """All operations, by tag."""

    def __init__(self, send: Callable[[Call], Awaitable[Any]], open: Callable[[Call], AsyncGenerator[Frame, None]]) -> None:
        self.branches = AsyncBranches(send, open)
        self.definitions = AsyncDefinitions(send, open)
        self.events = AsyncEvents(send, open)
        self.health = AsyncHealth(send, open)
        self.memories = AsyncMemories(send, open)
        self.orders = AsyncOrders(send, open)
        self.questions = AsyncQuestions(send, open)
        self.reruns = AsyncReruns(send, open)
        self.searches = AsyncSearches(send, open)
        self.sessions = AsyncSessions(send, open)
        self.tokens = AsyncTokens(send, open)
        self.views = AsyncViews(send, open)
        self.webhooks = AsyncWebhooks(send, open)
