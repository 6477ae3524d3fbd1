"""The verbs about the schemas of queues. A slash in a queue's name is written `%2F`."""

from types import NoneType
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from zq.features.schemas.model import StoredSchema
from zq.model.job import MAX_TIME
from zq.model.keys import KeyScope
from zq.verbs import Verb
from zq.wire.codecs import BodyCodec, decode

AvroSchema = dict[str, Any] | list[Any] | str


class SchemaSent(msgspec.Struct, forbid_unknown_fields=True):
    """A schema of Avro: an object, a union of schemas, or the name of a type."""

    schema: AvroSchema


class QueueSchemaDocument(msgspec.Struct):
    """The schema of a queue. `updated_at` is in milliseconds."""

    queue: str
    schema: AvroSchema
    version: int
    updated_at: int


class QueueSchemasDocument(msgspec.Struct):
    """The schemas of all queues that have one, by name."""

    schemas: list[QueueSchemaDocument]


class ReplaySent(msgspec.Struct, forbid_unknown_fields=True):
    """`since` is in milliseconds. Without it everything that is kept comes back."""

    since: Annotated[int, Meta(ge=0, le=MAX_TIME)] | None = None


class Replayed(msgspec.Struct, omit_defaults=True):
    """How many jobs came back. `kept` counts others by the reasons why they were left out."""

    replayed: int
    kept: dict[str, int] = {}


class CleaningDocument(msgspec.Struct, forbid_unknown_fields=True):
    """The schedule by which expired jobs are deleted. An empty one deletes none."""

    schedule: str


_schema = msgspec.json.Decoder(SchemaSent)
_replay = msgspec.json.Decoder(ReplaySent)
_cleaning = msgspec.json.Decoder(CleaningDocument)


def decode_schema(body: bytes, codec: BodyCodec) -> str:
    """The body that gives a queue a schema, as the text of the schema."""
    return msgspec.json.encode(decode(body, codec, _schema).schema).decode()


def decode_replay(body: bytes, codec: BodyCodec) -> int | None:
    """The body of a replay: the time it begins with. It may be missing."""
    return decode(body, codec, _replay).since if body else None


def decode_schedule(body: bytes, codec: BodyCodec) -> str:
    """The body that changes the schedule of cleaning."""
    return decode(body, codec, _cleaning).schedule


def schema_document(stored: StoredSchema) -> QueueSchemaDocument:
    schema = msgspec.json.decode(stored.body)
    return QueueSchemaDocument(stored.queue, schema, stored.version, stored.updated_at)


READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

_SCHEMA = "/queues/{queue}/schema"
_NO_SCHEMA = {404: "The queue has no schema."}

LIST = Verb("GET", "/queues/schemas", READ, QueueSchemasDocument)
GET = Verb("GET", _SCHEMA, READ, QueueSchemaDocument, refusals=_NO_SCHEMA)
PUT = Verb("PUT", _SCHEMA, MANAGE, QueueSchemaDocument, SchemaSent)
DELETE = Verb("DELETE", _SCHEMA, MANAGE, NoneType)
