"""What the verbs of producers do."""

from zq.answers import Asked, VerbAnswers
from zq.features.producers import verbs
from zq.features.producers.service import Producers
from zq.features.producers.wire import ProducerDocument, ProducersDocument, producer_document
from zq.wire.query import limit_in

ANSWERS = VerbAnswers()


@ANSWERS.to(verbs.LIST)
async def producers(asked: Asked) -> ProducersDocument:
    """Producers by name: the last number that each has stored, and when."""
    limit = limit_in(asked.query, verbs.USUAL, verbs.MOST)
    found = await asked.services[Producers].page(asked.query.get("from", ""), limit + 1)
    next = found[limit - 1].name if len(found) > limit else None
    return ProducersDocument([producer_document(each) for each in found[:limit]], next)


@ANSWERS.to(verbs.GET)
async def producer(asked: Asked) -> ProducerDocument:
    """One producer: its epoch, and the last number that it has stored."""
    return producer_document(await asked.services[Producers].get(asked.path["name"]))


@ANSWERS.to(verbs.DELETE)
async def forget(asked: Asked) -> None:
    """Forget a producer. Its next request begins a new epoch, with number 1."""
    await asked.services[Producers].forget(asked.path["name"])
