"""What the verbs about fair keys do."""

from zq.answers import Asked, VerbAnswers
from zq.features.fair import verbs
from zq.features.fair.model import FairLimit, FairOrder, check_key
from zq.features.fair.service import FairKeys
from zq.features.fair.verbs import (
    FairKeyDocument,
    FairKeysDocument,
    decode_limit,
    idle_document,
    key_document,
)
from zq.model.names import check_name
from zq.wire.query import choice, limit_in, whole_number

ANSWERS = VerbAnswers()


@ANSWERS.to(verbs.LIST)
async def keys(asked: Asked) -> FairKeysDocument:
    """The fair keys of a queue that have unfinished jobs: up to `limit` (50), and sums.

    The sums, and so each `share`, are of at most 10,000 keys of the queue. `behind_ms` tells the
    order in which they get their turns, `share` their part of the queue.
    """
    given = asked.query
    order = choice(given, "order", FairOrder, FairOrder.SHARE)
    skip = whole_number("from", given.get("from", "0"), verbs.MOST_SKIPPED)
    limit = limit_in(given, verbs.USUAL, verbs.MOST)
    found, sums = await asked.services[FairKeys].page(
        _queue(asked), asked.reach, order, skip, limit + 1
    )
    return FairKeysDocument(
        [key_document(*each, sums.weights) for each in found[:limit]],
        *(sums.keys, sums.waiting, sums.in_flight),
        next=skip + limit if len(found) > limit else None,
    )


@ANSWERS.to(verbs.GET)
async def get(asked: Asked) -> FairKeyDocument:
    """One fair key of a queue: its jobs, its turn, and what is set for it."""
    key = _key(asked)
    state, limit = await asked.services[FairKeys].get(_queue(asked), key, asked.reach)
    if state is not None:
        return key_document(state, limit)
    assert limit is not None
    return idle_document(key, limit)


@ANSWERS.to(verbs.PUT)
async def put(asked: Asked) -> FairLimit:
    """Set the `weight` of a key (0.01 to 100), its `max_in_flight` and its `rate` (a second).

    They come before the weights that jobs bring, and before the limits that the setting `fair` of
    the queue has for all keys. What is left out is left to these.
    """
    limit = decode_limit(asked.body, asked.codec)
    return await asked.services[FairKeys].put(_queue(asked), _key(asked), limit, asked.reach)


@ANSWERS.to(verbs.DELETE)
async def drop(asked: Asked) -> None:
    """Leave the weight and the limits of a key to its jobs and its queue again: 204."""
    await asked.services[FairKeys].drop(_queue(asked), _key(asked), asked.reach)


def _queue(asked: Asked) -> str:
    return check_name("queue", asked.path["queue"])


def _key(asked: Asked) -> str:
    return check_key("key", asked.path["key"])
