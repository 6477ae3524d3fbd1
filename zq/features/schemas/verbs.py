"""The verbs about the schemas of queues. A slash in a queue's name is written `%2F`."""

from types import NoneType

from zq.features.schemas.wire import QueueSchemaDocument, QueueSchemasDocument, SchemaSent
from zq.model.keys import KeyScope
from zq.verbs.verb import Verb

READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

_SCHEMA = "/queues/{queue}/schema"
_NO_SCHEMA = {404: "The queue has no schema."}

LIST = Verb("GET", "/queues/schemas", READ, QueueSchemasDocument)
GET = Verb("GET", _SCHEMA, READ, QueueSchemaDocument, refusals=_NO_SCHEMA)
PUT = Verb("PUT", _SCHEMA, MANAGE, QueueSchemaDocument, SchemaSent)
DELETE = Verb("DELETE", _SCHEMA, MANAGE, NoneType)
