"""The rules for names and texts: queues, job types, groups, unique keys, batches, dedupe ids; and
the names that are close to a mistyped one."""

from collections.abc import Iterable

from zq.model.errors import InvalidRequest

RESERVED = "*?[]{}\\"

MAX_LABEL = 512
"""The longest name of a queue, a job type, a group or a copy, in bytes.

These names are in indexes, and pages of jobs, lists of queues and metrics repeat them.
"""

MAX_KEY = 2048
"""The longest unique key, in bytes. Clients send a digest, or the source of the key. That is often
an address, and addresses that every browser accepts are shorter."""

MAX_PROGRAM = 8192
"""The longest program of a batch, in bytes. The latest thousand rules stay in memory."""

_fits = frozenset(f",\0{RESERVED}").isdisjoint


def names_in(text: str) -> tuple[str, ...]:
    """The names of a list that has commas, and perhaps spaces, between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def check_name(field: str, name: str) -> str:
    """Return `name`, or raise `InvalidRequest` that says which rule it breaks.

    A name is not empty, has up to `MAX_LABEL` bytes and has no comma (lists are written with
    commas), no NUL and none of ``* ? [ ] { } \\``, which are reserved for patterns. Everything else
    is allowed, slashes too.
    """
    if not name:
        raise InvalidRequest(f"{field} must not be empty")
    # A character has up to four bytes, so most names need no closer look.
    if len(name) * 4 > MAX_LABEL:
        _check_size(field, name, MAX_LABEL)
    if not _fits(name):
        _refuse(field, name)
    return name


def check_group(name: str) -> str:
    """The name of a group, if it is valid. Raises `InvalidRequest`."""
    return check_name("group", name)


def check_key(key: str) -> str:
    """A unique key, if it is valid: any text of up to `MAX_KEY` bytes."""
    return _check_size("unique_key", key, MAX_KEY)


def check_batch(key: str) -> str:
    """The key of a batch, if it is valid: any text that is not empty, up to its largest size."""
    if not key:
        raise InvalidRequest("batch.key must not be empty")
    return _check_size("batch.key", key, MAX_KEY)


def check_program(field: str, text: str) -> str:
    """A program of a batch, if it is valid: any text of up to `MAX_PROGRAM` bytes."""
    if len(text) * 4 > MAX_PROGRAM and len(text.encode(errors="surrogatepass")) > MAX_PROGRAM:
        raise InvalidRequest(
            f"{field} must not have more than {MAX_PROGRAM} bytes: shorten the program, or keep"
            " what it needs in the payload"
        )
    return text


def check_dedupe(id: str) -> str:
    """A dedupe id, if it is valid: any text without NUL, up to its largest size."""
    if not id:
        raise InvalidRequest("dedupe.id must not be empty")
    if "\0" in id:
        raise InvalidRequest("dedupe.id must not contain NUL")
    return _check_size("dedupe.id", id, MAX_LABEL)


def _refuse(field: str, name: str) -> None:
    if "," in name:
        raise InvalidRequest(f"{field} must not contain ','")
    if "\0" in name:
        raise InvalidRequest(f"{field} must not contain NUL")
    for char in RESERVED:
        if char in name:
            raise InvalidRequest(f"{field} must not contain '{char}' (reserved)")


def _check_size(field: str, name: str, most: int) -> str:
    if len(name) * 4 > most and len(name.encode()) > most:
        raise InvalidRequest(
            f"{field} must not have more than {most} bytes: keep what is longer in the payload, or"
            " send a digest of it"
        )
    return name


MOST_NEAR = 3
"""The most names that are proposed for a mistyped one."""


def near(name: str, known: Iterable[str]) -> list[str]:
    """The known names that are like a name, the nearest first. Case makes no difference."""
    from difflib import get_close_matches  # only mistakes need it

    by_folded = {each.casefold(): each for each in sorted(known)}
    found = get_close_matches(name.casefold(), by_folded, MOST_NEAR, 0.7)
    return [by_folded[each] for each in found]


def meant(name: str, known: Iterable[str]) -> str:
    """A question about the known names that are like a name: `; did you mean mail?`, or nothing."""
    found = near(name, known)
    return f"; did you mean {' or '.join(found)}?" if found else ""
