"""A row's document: a job in the form of `POST /jobs`, with a dedupe id of its own.

The id is random and stored with the row. So the server recognises a row that is sent again, and
never takes a row of a database that was made anew for one of its predecessor. It begins with the
time: the server finds new ids beside each other, and writes fewer pages for them.
"""

import secrets
import time

import msgspec

from zq.client.errors import InvalidOption, InvalidPayload
from zq.client.formats import JSON
from zq.client.values import Dedupe, Submission

WINDOW_MS = 24 * 60 * 60 * 1000
"""How long the server recognises a row."""


class OutboxJob(Submission, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The job of a row. Other programs may write rows too, with any field of the server."""


def document_of(job: Submission) -> str:
    """The document for a job. Raises `InvalidOption` or `InvalidPayload`."""
    if job.dedupe is not None:
        raise InvalidOption(
            "dedupe: the outbox gives each row a dedupe id of its own; give the job a key instead"
        )
    moment = time.time_ns() // 1_000_000
    dedupe = Dedupe(f"outbox:{moment:012x}{secrets.token_hex(10)}", WINDOW_MS)
    return JSON.encode(msgspec.structs.replace(job, dedupe=dedupe)).decode()


def job_of(document: str) -> OutboxJob:
    """The job of a document, recognised for at least `WINDOW_MS`. Raises `InvalidPayload`."""
    try:
        job = _decoder.decode(document)
    except msgspec.MsgspecError as error:
        raise InvalidPayload(f"the document is not a job: {error}") from error
    if job.dedupe is None:
        raise InvalidPayload("the document has no dedupe id, so it could be enqueued twice")
    if (job.dedupe.window_ms or 0) >= WINDOW_MS:
        return job
    return msgspec.structs.replace(job, dedupe=Dedupe(job.dedupe.id, WINDOW_MS))


_decoder = msgspec.json.Decoder(OutboxJob)
