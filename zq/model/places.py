"""Places in what a job brings: `payload.tenant`, `payload.kwargs.user`, `meta.user`."""

from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw

from zq.model.errors import InvalidRequest

MAX_PLACE = 200
"""The longest place, in characters."""

MOST_STEPS = 8
"""A place leads through at most so many objects. Each of them reads the rest again."""

_BASES = ("payload", "meta")


class FieldPlace:
    """A place, ready to read. Fields beside it are passed over, and not made into objects."""

    def __init__(self, text: str) -> None:
        """`text` is one that `check_place` accepts."""
        base, *names = text.split(".")
        self._of_meta = base == "meta"
        self._steps = [_field(name) for name in names]

    def read(self, payload: str, meta: str | None) -> Any:
        """The value there, from JSON texts; None if there is none."""
        text: str | Raw | None = meta if self._of_meta else payload
        if text is None:
            return None
        try:
            for step in self._steps:
                text = step.decode(text).value
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return None


@lru_cache(maxsize=1024)
def place_at(text: str) -> FieldPlace:
    """The place that a text names."""
    return FieldPlace(text)


def check_place(field: str, text: str) -> str:
    """Return a place, or raise `InvalidRequest` that says which rule it breaks."""
    base, *names = text.split(".")
    if base not in _BASES or not names or not all(names):
        raise InvalidRequest(
            f"{field} must name a field of the payload or of meta, such as payload.tenant or"
            f" meta.user, not {text[:64]!r}"
        )
    if len(text) > MAX_PLACE or len(names) > MOST_STEPS:
        raise InvalidRequest(
            f"{field} may have {MAX_PLACE} characters, and go {MOST_STEPS} fields deep"
        )
    return text


def _field(name: str) -> msgspec.json.Decoder[Any]:
    """Reads one field of an object as JSON text."""
    return msgspec.json.Decoder(
        msgspec.defstruct("Found", [("value", Raw)], rename={"value": name})
    )
