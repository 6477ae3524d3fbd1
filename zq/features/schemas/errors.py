"""The errors about schemas of payloads."""

from zq.model.errors import InvalidRequest, NotFound, Unprocessable


class InvalidSchema(InvalidRequest):
    """A schema that is no schema of Avro."""

    code = "invalid_schema"

    def __init__(self, reason: str) -> None:
        super().__init__(f"invalid Avro schema: {reason}")


class SchemaMismatch(Unprocessable):
    """A payload does not match the schema of its queue."""

    code = "schema_mismatch"

    def __init__(self, reason: str) -> None:
        super().__init__(f"payload does not match topic schema: {reason}")


class SchemaNotFound(NotFound):
    code = "schema_not_found"

    def __init__(self, queue: str) -> None:
        super().__init__(f"{queue!r} has no schema")
