"""What budgets add to the bodies and the documents of jobs."""

from typing import Any

import msgspec

from zq.features.budgets.wire import DrawBody, DrawDocument, draw_documents, with_draws
from zq.model.job import NewJob


class DrawsSent(msgspec.Struct, frozen=True, kw_only=True):
    """The field of a body."""

    budgets: list[DrawBody] | None = None


class DrawsShown(msgspec.Struct, kw_only=True):
    """The field of a document."""

    budgets: list[DrawDocument] | None = None


def take(sent: Any, job: NewJob) -> NewJob:
    """A new job that draws from the budgets of its body, and brings those that it may create."""
    if not sent.budgets:
        return job
    options, made = with_draws(job.options, sent.budgets)
    return msgspec.structs.replace(job, options=options, makes=made)


BODY = DrawsSent
DOCUMENT = DrawsShown
SHOWN = {"budgets": draw_documents}
