"""Access keys: their scopes and queues, and the text form of a key file.

A file has one key a line, with fields separated by blanks. Empty lines and lines that begin with
``#`` are ignored::

    # name   secret                    scopes                    queue prefixes (none: all queues)
    shop     sha256:<64 hex digits>    enqueue,read,budgets=100  shop-,orders-
    backup   -                         manage

Among the scopes may be a quota: how many budgets the key may make. There may be the producers as
which the key may store numbered jobs: ``producers=device-17|shop-*``. Without them, a key may write
as every producer whose name begins with one of its queue prefixes.

The secret itself is not in the file. A dash in its place means that only a client certificate with
this common name can use the key.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable
from enum import StrEnum

import msgspec
from msgspec.structs import force_setattr, replace

from zq.model.errors import InvalidRequest
from zq.model.names import check_name
from zq.model.reach import EVERYWHERE, BudgetMaker, Reach, reach_of

NO_SECRET = "-"
HASHED = "sha256:"
QUOTA = "budgets="
PRODUCERS = "producers="

_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_PATTERN = re.compile(r"[A-Za-z0-9._:@/-]{0,128}\*?")
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


class KeyScope(StrEnum):
    """The rights of a key. No scope includes another."""

    ENQUEUE = "enqueue"
    TAKE = "take"
    READ = "read"
    MANAGE = "manage"
    HISTORY = "history"
    REVEAL = "reveal"


class InvalidKey(ValueError):
    """A key, or a line of a key file, breaks a rule. The text says which."""


class Key(msgspec.Struct, frozen=True):
    """One key. `digest` is the SHA-256 of its secret, or None if only a certificate names it."""

    name: str
    digest: bytes | None
    scopes: frozenset[KeyScope]
    reach: Reach = EVERYWHERE
    budgets: int | None = None
    """How many budgets it may make; None means the usual share."""
    making: Reach = EVERYWHERE
    """The reach of the key where it makes something, with its quota."""
    producers: tuple[str, ...] | None = None
    """The names of its producers; a star at the end stands for any rest. None: see `produces`."""

    def __post_init__(self) -> None:
        if not self.manages_budgets:
            maker = BudgetMaker(self.name, self.budgets)
            force_setattr(self, "making", replace(self.reach, maker=maker))

    @property
    def manages_budgets(self) -> bool:
        """True if the key may make, change and delete all budgets, without a quota."""
        return KeyScope.MANAGE in self.scopes and self.reach is EVERYWHERE

    @property
    def producer_patterns(self) -> tuple[str, ...]:
        """The names, and beginnings of names, of the producers as which it may write."""
        if self.producers is not None:
            return self.producers
        return tuple(f"{prefix}*" for prefix in self.reach.prefixes)

    def produces(self, name: str) -> bool:
        """True if the key may write as the producer of this name, and so move its number."""
        return any(
            name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
            for pattern in self.producer_patterns
        )

    @property
    def line(self) -> str:
        """The key as a line of a key file."""
        secret = NO_SECRET if self.digest is None else HASHED + self.digest.hex()
        scopes = ",".join(scope for scope in KeyScope if scope in self.scopes)
        prefixes = "" if self.reach is EVERYWHERE else " " + ",".join(self.reach.prefixes)
        quota = "" if self.budgets is None else f",{QUOTA}{self.budgets}"
        named = "" if self.producers is None else f",{PRODUCERS}{'|'.join(self.producers)}"
        return f"{self.name} {secret} {scopes}{quota}{named}{prefixes}"


class KeyRing:
    """All keys of a server. No two share a name or a secret."""

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self._by_name: dict[str, Key] = {}
        self._by_digest: dict[bytes, Key] = {}
        for key in keys:
            self.add(key)

    def add(self, key: Key) -> None:
        """Add a key. Raises `InvalidKey` if its name or its secret is taken."""
        if key.name in self._by_name:
            raise InvalidKey(f"there is a key named {key.name!r} already: choose another name")
        if key.digest is not None:
            other = self._by_digest.setdefault(key.digest, key)
            if other is not key:
                raise InvalidKey(f"{key.name!r} has the same secret as {other.name!r}")
        self._by_name[key.name] = key

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys, in the order of the file."""
        return tuple(self._by_name.values())

    def named(self, name: str) -> Key | None:
        return self._by_name.get(name)

    def with_secret(self, secret: bytes) -> Key | None:
        """The key with this secret. The time of the call reveals nothing about any secret."""
        wanted = digest_of(secret)
        found: Key | None = None
        for digest, key in self._by_digest.items():
            if hmac.compare_digest(digest, wanted):
                found = key
        return found


def digest_of(secret: bytes) -> bytes:
    """The stored hash of a secret. Secrets are random, so a plain hash cannot be guessed."""
    return hashlib.sha256(secret).digest()


def check_key_name(name: str) -> None:
    """Raise `InvalidKey` for a name that a key file cannot hold."""
    if not _NAME.fullmatch(name):
        raise InvalidKey(
            f"{name!r} cannot be a key's name: use up to 64 of the letters a-z and A-Z, digits and"
            " . _ @ -"
        )


def make_key(name: str, digest: bytes | None, scopes: str, prefixes: Iterable[str]) -> Key:
    """Make a checked key. `scopes` is a comma list, perhaps with a quota. Raises `InvalidKey`."""
    check_key_name(name)
    words = scopes.split(",")
    quotas = [word for word in words if word.startswith(QUOTA)]
    named = [word for word in words if word.startswith(PRODUCERS)]
    plain = _scopes([word for word in words if word not in quotas and word not in named])
    key = Key(
        name,
        digest,
        plain,
        reach_of(map(_prefix, prefixes)),
        _quota(quotas),
        producers=_producers(named),
    )
    if quotas and key.manages_budgets:
        raise InvalidKey(
            f"a key with the scope manage and without a prefix manages all budgets: leave out"
            f" {quotas[0]}"
        )
    return key


def parse_keys(text: str, source: str) -> KeyRing:
    """The keys of a key file, called `source` in messages. Raises `InvalidKey`."""
    ring = KeyRing()
    for number, line in enumerate(text.split("\n"), start=1):
        if not is_comment(line):
            try:
                ring.add(_parse_line(line))
            except InvalidKey as error:
                raise InvalidKey(f"{source}, line {number}: {error}") from None
    return ring


def is_comment(line: str) -> bool:
    """True if a line of a key file is ignored."""
    return not line.strip() or line.lstrip().startswith("#")


def _parse_line(line: str) -> Key:
    name, *rest = line.strip().split(maxsplit=3)
    if len(rest) < 2:
        raise InvalidKey("a line is: name secret scopes [queue prefixes]")
    return make_key(name, _digest(rest[0]), rest[1], rest[2].split(",") if len(rest) > 2 else ())


def _digest(text: str) -> bytes | None:
    if text == NO_SECRET:
        return None
    match = _DIGEST.fullmatch(text)
    if match is None:
        # Do not repeat the text: it may be a secret that was put here by mistake.
        raise InvalidKey(
            "the second field must be sha256: and 64 hex digits in lower case, or - for a key that"
            " a client certificate names"
        )
    return bytes.fromhex(match[1])


def _quota(words: list[str]) -> int | None:
    """The quota among the words of a list of scopes."""
    for word in words:
        number = word.removeprefix(QUOTA)
        if len(words) > 1 or not re.fullmatch(r"[0-9]{1,7}", number):
            raise InvalidKey(f"{word}: a quota is one number of budgets, such as {QUOTA}100")
        return int(number)
    return None


def _producers(words: list[str]) -> tuple[str, ...] | None:
    """The patterns of producers' names among the words of a list of scopes."""
    if not words:
        return None
    patterns = words[0].removeprefix(PRODUCERS).split("|")
    if len(words) > 1 or not all(pattern and _PATTERN.fullmatch(pattern) for pattern in patterns):
        raise InvalidKey(
            f"{words[-1]}: producers are one list of names, such as {PRODUCERS}device-17|shop-*"
        )
    return tuple(patterns)


def _scopes(words: list[str]) -> frozenset[KeyScope]:
    scopes: set[KeyScope] = set()
    for word in words:
        if word not in tuple(KeyScope):
            raise InvalidKey(f"unknown scope {word!r}: use {', '.join(KeyScope)}, with commas")
        scopes.add(KeyScope(word))
    return frozenset(scopes)


def _prefix(text: str) -> str:
    try:
        check_name("a queue prefix", text)
    except InvalidRequest as error:
        raise InvalidKey(error.message) from None
    if text != text.strip() or not text.isprintable():
        raise InvalidKey(f"a queue prefix must be printable, without blanks at its ends: {text!r}")
    return text
