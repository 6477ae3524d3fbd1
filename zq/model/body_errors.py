"""The errors about request bodies, of the error tree in `zq.model.errors`."""

from zq.model.errors import InvalidRequest, TooLarge


class UnknownField(InvalidRequest):
    """A body has a field, or a query a parameter, that there is not."""

    code = "unknown_field"


class BulkTooLarge(TooLarge):
    """The payloads of one bulk request would hold all others up while they are stored."""

    code = "bulk_too_large"

    def __init__(self, size: int, most: int) -> None:
        super().__init__(
            f"the payloads of this request have {size} bytes, but at most {most} are stored in one"
            " go: send several requests, or raise --max-bulk-bytes"
        )


class TooManyValues(TooLarge):
    """A body holds more values than a request may, although it may have so many bytes."""

    code = "too_many_values"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"the body has more than {most} values, of which each text, number, array and object is"
            " one: send fewer jobs a request, store large data elsewhere, or raise --max-values"
        )
