"""Job ids: an integer key in the store, a ULID on the wire, both in the order of minting.

The key holds, from the top: milliseconds since 2020, a 16-bit count, a 4-bit server slot. Its ULID
is the time as ULIDs have it, then the key's low 20 bits, then 60 bits that are drawn once for a
database.

Each of the servers over one store has its own slot, so their keys and holders never collide. A
store in one file has one server, whose slot is 0.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""The base 32 of Crockford, as in the ULID specification, in ASCII order."""

EPOCH_MS = 1_577_836_800_000
"""2020-01-01T00:00:00Z: keys count from here, so that they stay below 2**63 until the year 2298."""

LENGTH = 26
SUFFIX_LENGTH = 12

_PREFIX_LENGTH = LENGTH - SUFFIX_LENGTH
LOW_BITS = 20
SLOTS = 1 << 4
"""How many servers a store can have at a time."""

HOLDER_BITS = 40
"""A holder is a number that rises with every stream. The slot of its server lies above these bits,
so in slot 0 a holder is just the number. Number 0 stands for claimants."""

_VALUES = {char: value for value, char in enumerate(ALPHABET)}
_PAIRS = tuple(high + low for high in ALPHABET for low in ALPHABET)
_PAIR_VALUES = {pair: value for value, pair in enumerate(_PAIRS)}
_EPOCH_KEY = EPOCH_MS << LOW_BITS
MAX_KEY = (1 << 63) - 1
_MOST_TIMES = 4096
_MOST_EXPECTED = 16_384


def time_of(key: int) -> int:
    """When a key was minted, in milliseconds since the epoch."""
    return (key >> LOW_BITS) + EPOCH_MS


class Mint:
    """Hands out keys that always rise, whatever the wall clock does.

    `last` is the stored high-water mark: no higher key has been handed out.
    """

    def __init__(self, last: int, slot: int = 0) -> None:
        self.last = last
        self._slot = slot

    def take(self, count: int, now_ms: int) -> Sequence[int]:
        """`count` new keys in rising order."""
        # `last` may belong to another slot.
        after = (self.last | (SLOTS - 1)) + 1
        first = max((now_ms - EPOCH_MS) << LOW_BITS, after) + self._slot
        keys = range(first, first + count * SLOTS, SLOTS)
        self.last = keys[-1] if keys else self.last
        return keys


class FormerSuffix(NamedTuple):
    """The suffix of ids up to a key: these ids are older than a restore of the database."""

    last_key: int
    suffix: str


def codec_of(suffix: str, former: Sequence[FormerSuffix] = ()) -> "IdCodec":
    """The codec of a database with this `suffix`, and former ones, the oldest first."""
    return RestoredIdCodec(suffix, former) if former else IdCodec(suffix)


class IdCodec:
    """Converts keys to ULIDs and back for one database, whose constant `suffix` it has."""

    def __init__(self, suffix: str) -> None:
        self._suffix = suffix
        self._times: dict[int, str] = {}
        self._expected: dict[str, int] = {}
        self._expected_before: dict[str, int] = {}

    def text(self, key: int) -> str:
        """The ULID of a key."""
        return self.texts((key,))[0]

    def texts(self, keys: Iterable[int]) -> list[str]:
        """The ULIDs of keys."""
        times, suffix = self._times, self._suffix
        return [
            (times.get(key >> LOW_BITS) or self._time_text(key >> LOW_BITS))
            + _PAIRS[(key >> 10) & 1023]
            + _PAIRS[key & 1023]
            + suffix
            for key in keys
        ]

    def texts_to_return(self, keys: Sequence[int]) -> list[str]:
        """The ULIDs of keys. They are remembered for a while, since they will soon come back."""
        texts = self.texts(keys)
        self._expected.update(zip(texts, keys, strict=True))
        if len(self._expected) > _MOST_EXPECTED:
            self._expected, self._expected_before = {}, self._expected
        return texts

    def key(self, text: str) -> int | None:
        """The key of a ULID; None if the text cannot be an id of this database."""
        return self._expected.get(text) or self._expected_before.get(text) or self._parse(text)

    def _time_text(self, ms_since_epoch: int) -> str:
        if len(self._times) > _MOST_TIMES:
            self._times.clear()
        number = ms_since_epoch + EPOCH_MS
        text = (
            f"{_PAIRS[number >> 40]}{_PAIRS[(number >> 30) & 1023]}{_PAIRS[(number >> 20) & 1023]}"
            f"{_PAIRS[(number >> 10) & 1023]}{_PAIRS[number & 1023]}"
        )
        self._times[ms_since_epoch] = text
        return text

    def _parse(self, text: str) -> int | None:
        key = key_of_any(text)
        return key if key is not None and text.endswith(self._suffix) else None

    def _suffix_of(self, _key: int) -> str:
        return self._suffix

    def position(self, text: str) -> tuple[int, int]:
        """The place of any text among the ids: the last key at or before it, the first at or after
        it.

        A cursor need not name an existing job, nor even be an id: it is a place in the order of
        texts. Both keys are equal if the text is the ULID of a key.
        """
        number = 0
        for place in range(_PREFIX_LENGTH):
            rest = 5 * (_PREFIX_LENGTH - place)
            char = text[place : place + 1]
            value = _VALUES.get(char)
            if value is None:
                smaller = bisect_left(ALPHABET, char) if char else 0
                return _between((number << rest) + (smaller << (rest - 5)))
            number = number << 5 | value
        tail, suffix = text[_PREFIX_LENGTH:], self._suffix_of(number - _EPOCH_KEY)
        if tail == suffix:
            return _clamp(number - _EPOCH_KEY), _clamp(number - _EPOCH_KEY)
        return _between(number if tail < suffix else number + 1)


class RestoredIdCodec(IdCodec):
    """The codec of a restored database: old jobs keep their ids, new ids have another suffix.

    So a server that still runs on the original database makes none of the ids that this one makes.
    """

    def __init__(self, suffix: str, former: Sequence[FormerSuffix]) -> None:
        super().__init__(suffix)
        self._lasts = [last_key for last_key, _ in former]
        self._suffixes = [*(suffix for _, suffix in former), suffix]

    def texts(self, keys: Iterable[int]) -> list[str]:
        keys = list(keys)
        texts = super().texts(keys)
        newer = self._lasts[-1]
        return [
            text if key > newer else text[:_PREFIX_LENGTH] + self._suffix_of(key)
            for key, text in zip(keys, texts, strict=True)
        ]

    def _parse(self, text: str) -> int | None:
        key = key_of_any(text)
        return key if key is not None and text.endswith(self._suffix_of(key)) else None

    def _suffix_of(self, key: int) -> str:
        return self._suffixes[bisect_left(self._lasts, key)]


def key_of_any(text: str) -> int | None:
    """The key of a ULID of any database; None if the text is no such id."""
    if len(text) != LENGTH:
        return None
    number = 0
    for start in range(0, _PREFIX_LENGTH, 2):
        pair = _PAIR_VALUES.get(text[start : start + 2])
        if pair is None:
            return None
        number = number << 10 | pair
    key = number - _EPOCH_KEY
    return key if 0 <= key <= MAX_KEY else None


def minted_at(key: int) -> int:
    """When a key was minted, in milliseconds since 1970. Its job was created then."""
    return (key >> LOW_BITS) + EPOCH_MS


def key_at(ms: int) -> int:
    """The lowest key that is minted at a time, in milliseconds since 1970."""
    return max(ms - EPOCH_MS, 0) << LOW_BITS


def minted_times(keys: Iterable[int]) -> list[int]:
    """The times of several keys."""
    return [(key >> LOW_BITS) + EPOCH_MS for key in keys]


def timestamp_ms(text: str) -> int:
    """The time in a ULID, in milliseconds since the epoch: when the job was stored."""
    number = 0
    for char in text[:10]:
        number = number << 5 | _VALUES[char]
    return number


def rank(text: str) -> int:
    """The place of a job among all jobs: a number that rises from each stored job to the next."""
    number = 0
    for char in text[:_PREFIX_LENGTH]:
        number = number << 5 | _VALUES[char]
    return number - _EPOCH_KEY


def _between(number: int) -> tuple[int, int]:
    key = number - _EPOCH_KEY
    return _clamp(key - 1), _clamp(key)


def _clamp(key: int) -> int:
    return min(max(key, -1), MAX_KEY)
