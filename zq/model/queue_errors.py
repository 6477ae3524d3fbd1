"""The errors about queues as a whole, of the error tree in `zq.model.errors`."""

from zq.model.errors import Conflict, InvalidRequest, NotFound, TooLarge, Unprocessable


class QueueNotRegistered(Unprocessable):
    code = "queue_not_registered"

    def __init__(self, queue: str) -> None:
        super().__init__(f"queue {queue!r} is not registered: set something for it first")


class QuotaReached(Unprocessable):
    """A caller with prefixes has made as much of a kind as it may. Waiting does not help."""

    code = "quota_reached"

    def __init__(self, what: str, have: int, most: int) -> None:
        super().__init__(
            f"there are {have} {what} within the prefixes of this key, and at most {most} may be"
            " made with it: delete some, or use a key without prefixes"
        )


class NotArchived(Unprocessable):
    code = "not_archived"

    def __init__(self, queue: str) -> None:
        super().__init__(
            f"{queue!r} is not replayable: have its settings keep completed jobs first"
        )


class OutOfArchive(Unprocessable):
    code = "out_of_archive"

    def __init__(self, queue: str, kept_ms: int) -> None:
        super().__init__(
            f"{queue!r} keeps completed jobs for {kept_ms // 1000} s: begin at a later time"
        )


class InvalidSchema(InvalidRequest):
    code = "invalid_schema"

    def __init__(self, reason: str) -> None:
        super().__init__(f"invalid Avro schema: {reason}")


class SchemaMismatch(Unprocessable):
    code = "schema_mismatch"

    def __init__(self, reason: str) -> None:
        super().__init__(f"payload does not match topic schema: {reason}")


class NotCompared(Unprocessable):
    """A job is left for another transaction, since this one has compared enough payloads."""

    code = "not_compared"

    def __init__(self) -> None:
        super().__init__(
            "a transaction compares no more payloads with schemas: send fewer jobs at a time"
        )


class TooManyCompared(TooLarge):
    code = "too_many_compared"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"to compare the payloads of this request with their schemas takes more than {most}"
            " steps: send fewer jobs a request, or give fewer branches to unions"
        )


class SchemaNotFound(NotFound):
    code = "schema_not_found"

    def __init__(self, queue: str) -> None:
        super().__init__(f"{queue!r} has no schema")


class FanOutChain(Conflict):
    code = "fan_out_chain"

    def __init__(self, queue: str, target: str) -> None:
        super().__init__(
            f"{queue!r} cannot have the target {target!r}: a target must not have targets of its"
            " own. Name the last queues of the chain instead"
        )


class TargetExists(Conflict):
    code = "target_exists"

    def __init__(self, queue: str, target: str) -> None:
        super().__init__(f"{target!r} is a target of {queue!r} already")


class TargetNotFound(NotFound):
    code = "target_not_found"

    def __init__(self, queue: str, target: str) -> None:
        super().__init__(f"{target!r} is not a target of {queue!r}")


class KeyTaken(Conflict):
    """A job cannot come back, or move, since another one has its unique key by now."""

    code = "key_taken"

    def __init__(self, unique_key: str) -> None:
        super().__init__(
            f"another job has the unique key {unique_key!r} by now: cancel or delete that one, or"
            " try again when it is done"
        )
