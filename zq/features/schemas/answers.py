"""What the verbs about the schemas of queues do."""

from zq.answers import Asked, VerbAnswers
from zq.features.schemas import verbs
from zq.features.schemas.service_running import Schemas
from zq.features.schemas.verbs import (
    QueueSchemaDocument,
    QueueSchemasDocument,
    decode_schema,
    schema_document,
)
from zq.model.names import check_name

ANSWERS = VerbAnswers()


@ANSWERS.to(verbs.LIST)
async def every(asked: Asked) -> QueueSchemasDocument:
    """The schemas of all queues that have one."""
    found = await asked.services[Schemas].every(asked.reach)
    return QueueSchemasDocument([schema_document(each) for each in found])


@ANSWERS.to(verbs.GET)
async def get(asked: Asked) -> QueueSchemaDocument:
    """The schema of a queue."""
    return schema_document(await asked.services[Schemas].get(_queue(asked), asked.reach))


@ANSWERS.to(verbs.PUT)
async def put(asked: Asked) -> QueueSchemaDocument:
    """Give a queue a schema of Avro, or another one: jobs that enter it have to match it.

    A job that does not match is refused with 422, by every door. If the schema is a record, a
    payload has to be an object with every field that has no default, each of its type. Jobs that
    the queue has already stay. A payload that is a text is read as JSON.
    """
    queue, schema = _queue(asked), decode_schema(asked.body, asked.codec)
    return schema_document(await asked.services[Schemas].put(queue, schema, asked.reach))


@ANSWERS.to(verbs.DELETE)
async def drop(asked: Asked) -> None:
    """Take the schema of a queue away: 204, also if there was none."""
    await asked.services[Schemas].drop(_queue(asked), asked.reach)


def _queue(asked: Asked) -> str:
    return check_name("queue", asked.path["queue"])
