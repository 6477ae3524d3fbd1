"""Ids as UUIDs: an id of the native API in the layout of version 7, there and back.

The time and the key's low bits are all there; of what is drawn for the database the last bits are
left out.
"""

from uuid import UUID

from zq.model.ids import ALPHABET, EPOCH_MS, LOW_BITS, IdCodec

_DIGITS = str.maketrans(ALPHABET, "0123456789abcdefghijklmnopqrstuv")
"""From Crockford's base 32 to Python's."""

_VERSION, _VARIANT = 7 << 76, 2 << 62
_SUFFIX_BITS, _KEPT_BITS = 60, 54


class UuidIds:
    """Keys as UUIDs. A restored database still knows the ids from before."""

    def __init__(self, ids: IdCodec) -> None:
        self._ids = ids

    def text(self, key: int) -> str:
        """The id of the job with this key."""
        return str(UUID(int=self._number(key)))

    def key(self, text: str) -> int | None:
        """The key that an id stands for, None where it can be no job's."""
        try:
            number = UUID(text).int
        except ValueError:
            return None
        low = (number >> 64 & 0xFFF) << 8 | number >> _KEPT_BITS & 0xFF
        key = (number >> 80) - EPOCH_MS << LOW_BITS | low
        return key if 0 < key < 2**63 and self._number(key) == number else None

    def _number(self, key: int) -> int:
        ulid = int(self._ids.text(key).translate(_DIGITS), 32)
        low = ulid >> _SUFFIX_BITS & (1 << LOW_BITS) - 1
        suffix = ulid >> _SUFFIX_BITS - _KEPT_BITS & (1 << _KEPT_BITS) - 1
        head = ulid >> _SUFFIX_BITS + LOW_BITS << 80 | low >> 8 << 64
        return head | (low & 0xFF) << _KEPT_BITS | suffix | _VERSION | _VARIANT
