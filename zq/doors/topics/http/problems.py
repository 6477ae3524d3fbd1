"""Answers of the `/v0` dialect: documents with their `performance`, and errors under `error`."""

import time
from typing import Any

import msgspec
from aiohttp import web

from zq.doors.topics import errors as topic_errors
from zq.features.producers.model import ProducerFenced, SequenceGap
from zq.http.api.endpoints import NotAcceptable
from zq.http.api.problems import STATUSES as NATIVE
from zq.http.api.problems import completed
from zq.http.door import Statuses, status_in
from zq.http.transport.answer import Answer
from zq.http.words import Words
from zq.model import errors
from zq.model.errors import ZqError

BUSY = (errors.InboxFull, errors.ReadersBusy, errors.AnswersFull, errors.TooManyStreams)
"""Errors with the code `throttled`: the client should send less."""

STATUSES: Statuses = {**NATIVE, **dict.fromkeys(BUSY, 429)}

CODES: dict[type[ZqError], str] = {
    errors.InvalidRequest: "invalid_request",
    errors.Forbidden: "forbidden",
    errors.NotFound: "not_found",
    errors.TooLarge: "payload_too_large",
    errors.LimitReached: "throttled",
    **dict.fromkeys(BUSY, "throttled"),
    errors.ServiceUnavailable: "not_ready",
    errors.OutcomeUnknown: "shutting_down",
    **{
        kind: kind.code
        for kind in (
            topic_errors.BatchTooLarge,
            topic_errors.RecordTooLarge,
            topic_errors.TopicNotFound,
            topic_errors.RouterNotFound,
        )
    },
}
"""Codes that differ from those of the errors. An error without one has its nearest ancestor's."""

OF_STATUS = {404: "not_found", 405: "method_not_allowed", 413: "payload_too_large"}
"""Codes of requests that are not valid HTTP, by status. All others are `invalid_request`."""

_SAID: dict[type[ZqError], str] = {
    errors.JobNotFound: "record not found",
    errors.NotInFlight: "the record is leased by nobody",
}
_WORDS = Words(
    {"job": "record", "queue": "topic"},
    _SAID,
    frozenset({topic_errors.NotAQueue, topic_errors.TopicIsQueue}),
)
"""A queue is a kind of topic here: errors about the kinds say so."""

_encode = msgspec.json.Encoder().encode
_JSON = {"Content-Type": "application/json"}


class Stopwatch:
    """Measures how long a request takes."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def answer(self, document: dict[str, Any], status: int = 200, **measures: float) -> Answer:
        """Make an answer from a document. `performance` gets the measures, in milliseconds."""
        total = (time.perf_counter() - self._began) * 1000
        document["performance"] = {"server_total_ms": total, **measures}
        return Answer(status, _encode(document), _JSON)


def problem(error: ZqError) -> Answer:
    """An error as an answer."""
    message = _message(error)
    return completed(refusal(status_of(error), _code(error), message, _detail(error)), error)


def status_of(error: ZqError) -> int:
    """The status of an error."""
    return status_in(STATUSES, error)


def refusal(
    status: int,
    code: str,
    message: str,
    detail: dict[str, object] | None = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    """The form of every error."""
    error: dict[str, object] = {"code": code, "message": message}
    if detail:
        error["detail"] = detail
    return Answer(status, _encode({"error": error}), {**_JSON, **(headers or {})})


def not_found(request: web.BaseRequest) -> Answer:
    """The answer if the path does not exist."""
    return refusal(404, "not_found", f"there is no {request.path} here: see docs/topics.md")


def _message(error: ZqError) -> str:
    if isinstance(error, NotAcceptable):
        return f"this is a stream of {error.supported[0]}: accept that, or send no Accept"
    return _WORDS.of(error)


def _code(error: ZqError) -> str:
    named = (CODES[kind] for kind in type(error).__mro__ if kind in CODES)
    return next(named, error.code)


def _detail(error: ZqError) -> dict[str, object]:
    match error:
        case topic_errors.TopicNotFound():
            return {"topic": error.topic}
        case topic_errors.TopicLimitReached():
            return {"limit": error.limit, "max": error.most}
        case topic_errors.RouterNotFound():
            return {"router": error.router}
        case topic_errors.RouterCycle():
            return {"cycle": error.cycle}
        case topic_errors.RouterFanIn():
            return {"reason": "router_dest_fan_in"}
        case SequenceGap() | ProducerFenced():
            return dict(error.details)
        case topic_errors.BatchTooLarge():
            return {error.field: error.count, "max": error.most}
        case errors.LimitReached() | errors.ServiceUnavailable():
            return {"retry_after_ms": error.retry_after_s * 1000}
        case _:
            return {}
