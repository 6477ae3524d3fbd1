"""The parameters and answers of the routes about schemas of queues."""

from zq.features.schemas.wire import QueueSchemaDocument, QueueSchemasDocument, SchemaSent
from zq.http.api.description.operation import Operation

_NO_SCHEMA = {404: "The queue has no schema."}

OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/queues/schemas"): Operation({200: QueueSchemasDocument}),
    ("GET", "/queues/{queue}/schema"): Operation({200: QueueSchemaDocument}, refusals=_NO_SCHEMA),
    ("PUT", "/queues/{queue}/schema"): Operation({200: QueueSchemaDocument}, SchemaSent),
    ("DELETE", "/queues/{queue}/schema"): Operation({204: None}),
}
