"""Between the engine's words and the wire's, which the library speaks."""

from collections.abc import Sequence

from zq.client.errors import refusal
from zq.client.values import JobQuery
from zq.engine.engine import Accepted
from zq.model import errors
from zq.model.filters import Filter
from zq.model.ids import IdCodec
from zq.model.job import NewJob
from zq.model.lifecycle import BY_NAME
from zq.model.outcome import Outcome
from zq.wire import codecs as wire
from zq.wire.documents import EnqueuedDocument, enqueued_documents, outcome_document

_OF_A_STATE = (errors.NotCancellable, errors.NotFinished, errors.NotDead)
_PASSING = (errors.Unavailable, errors.LimitReached, errors.StorageFull, errors.Internal)


def enqueued(new: Sequence[NewJob], stored: Accepted, ids: IdCodec) -> Sequence[EnqueuedDocument]:
    """The answer to an enqueue, as documents."""
    return enqueued_documents(new, stored.keys, stored.now, stored.reply, ids)


def outcome_text(outcome: Outcome, job: EnqueuedDocument | None) -> bytes:
    """An outcome as JSON."""
    return wire.JSON.encode(outcome_document(outcome, job))


def filter_of(query: JobQuery, ids: IdCodec) -> Filter:
    """A query as the engine takes it."""
    keys = None
    if query.ids:
        keys = tuple(key for key in map(ids.key, query.ids) if key is not None)
    return Filter(
        statuses=tuple(sorted(BY_NAME[status] for status in query.statuses)),
        queues=query.queues,
        types=query.types,
        keys=keys,
        program=query.filter,
    )


def refusal_of(error: errors.ZqError) -> errors.ZqError:
    """An error of the engine as the library's, which its own are already."""
    if type(error).__module__.startswith("zq.client."):
        return error
    state = error.status if isinstance(error, _OF_A_STATE) else ""
    status = 503 if isinstance(error, _PASSING) else None
    return refusal(error.code, error.message, status, state)
