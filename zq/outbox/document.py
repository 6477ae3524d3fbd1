"""A row's document: a job in the form of `POST /jobs`."""

import msgspec

from zq.client.errors import InvalidOption, InvalidPayload
from zq.client.formats import JSON
from zq.client.values import Submission


class OutboxJob(Submission, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The job of a row. Other programs may write rows too, with any field of the server."""


def document_of(job: Submission) -> str:
    """The document for a job. Raises `InvalidOption` or `InvalidPayload`."""
    if job.batch is not None:
        raise InvalidOption("batch: rows of the outbox are numbered, and jobs that fold cannot be")
    return JSON.encode(job).decode()


def job_of(document: str) -> OutboxJob:
    """The job of a document. Raises `InvalidPayload`."""
    try:
        return _decoder.decode(document)
    except msgspec.MsgspecError as error:
        raise InvalidPayload(f"the document is not a job: {error}") from error


_decoder = msgspec.json.Decoder(OutboxJob)
