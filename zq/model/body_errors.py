"""The errors about request bodies, of the error tree in `zq.model.errors`."""

from zq.model.errors import InvalidRequest, TooLarge


class UnknownField(InvalidRequest):
    """A body has a field, or a query a parameter, that there is not."""

    code = "unknown_field"


class TooManyValues(TooLarge):
    """A body holds more values than a request may, although it may have so many bytes."""

    code = "too_many_values"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"the body has more than {most} values, of which each text, number, array and object is"
            " one: send fewer jobs a request, store large data elsewhere, or raise --max-values"
        )
