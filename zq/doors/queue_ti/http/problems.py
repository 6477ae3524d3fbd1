"""Errors as answers of queue-ti: their statuses, and a text under `error`."""

import msgspec

from zq.features.archive.model import NotArchived
from zq.features.targets.model import TargetExists, TargetNotFound
from zq.http.api.problems import CODE_HEADER, completed
from zq.http.api.problems import STATUSES as NATIVE
from zq.http.door import Statuses, status_in
from zq.http.transport.answer import Answer
from zq.http.words import Words
from zq.model import errors
from zq.model.errors import ZqError

STATUSES: Statuses = {**NATIVE, errors.NotDead: 404}

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
    headers = {CODE_HEADER: error.code}
    refusal = answer({"error": text_of(error)}, status_in(STATUSES, error), headers)
    return completed(refusal, error)
