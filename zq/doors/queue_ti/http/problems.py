"""Errors as answers of queue-ti: their statuses, and a text under `error`."""

import msgspec

from zq.http.door import status_in
from zq.http.guard import CHALLENGE
from zq.http.transport.answer import Answer
from zq.http.transport.bodies import UnsupportedCoding
from zq.http.words import Words
from zq.model import errors
from zq.model.errors import ZqError
from zq.model.queue_errors import NotArchived, TargetExists, TargetNotFound

STATUSES: dict[type[ZqError], int] = {
    errors.InvalidRequest: 400,
    errors.Unauthorized: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.NotDead: 404,
    errors.RequestTimeout: 408,
    errors.Conflict: 409,
    errors.Gone: 410,
    errors.TooLarge: 413,
    UnsupportedCoding: 415,
    errors.Unprocessable: 422,
    errors.LimitReached: 429,
    errors.Internal: 500,
    errors.NotOnThisStore: 501,
    errors.ServiceUnavailable: 503,
    errors.StorageFull: 507,
}

_encode = msgspec.json.Encoder().encode
_SAID: dict[type[ZqError], str] = {
    errors.JobNotFound: "message not found",
    errors.NotInFlight: "message not found, or not in processing state",
    errors.NotDead: "message not found in a dead-letter topic",
    NotArchived: "the topic is not replayable: set the override `replayable` first",
    TargetExists: "consumer group already registered",
    TargetNotFound: "consumer group not found",
}
_WORDS = Words({"job": "message", "queue": "topic", "worker": "consumer"}, _SAID)


def answer(document: object, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    """A document as an answer."""
    return Answer(status, _encode(document), {"Content-Type": "application/json"} | (headers or {}))


def text_of(error: ZqError) -> str:
    """The text of an error, with messages in place of jobs."""
    return _WORDS.of(error)


def problem(error: ZqError) -> Answer:
    """An error as an answer."""
    headers = {"Zq-Error": error.code}
    if isinstance(error, errors.ServiceUnavailable | errors.LimitReached):
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, errors.Unauthorized):
        headers["WWW-Authenticate"] = CHALLENGE
    response = answer({"error": text_of(error)}, status_in(STATUSES, error), headers)
    if isinstance(error, errors.RequestTimeout):
        # What is left of the request may come or not: nothing can follow it.
        response.closes = True
    return response
