"""The rules for names: of queues, job types and groups, and of what is sent twice."""

from functools import lru_cache

from zq.model.errors import InvalidRequest

RESERVED = "*?[]{}\\"

MAX_LABEL = 512
"""Bytes of a group's name, and of one by which a job is recognised: they lie in indexes."""


@lru_cache(maxsize=8192)
def check_name(field: str, name: str) -> str:
    """Return `name`, or raise `InvalidRequest` that says which rule it breaks.

    A name is not empty and holds no comma (lists are written with commas), no NUL and none of
    ``* ? [ ] { } \\``, which are kept for patterns. Everything else is allowed, slashes too.
    """
    if not name:
        raise InvalidRequest(f"{field} must not be empty")
    if "," in name:
        raise InvalidRequest(f"{field} must not contain ','")
    if "\0" in name:
        raise InvalidRequest(f"{field} must not contain NUL")
    for char in RESERVED:
        if char in name:
            raise InvalidRequest(f"{field} must not contain '{char}' (reserved)")
    return name


def check_group(name: str) -> str:
    """Return the name of a group, or raise `InvalidRequest`: a name of up to `MAX_LABEL` bytes."""
    check_name("group", name)
    return _check_size("group", name)


def check_dedupe(id: str) -> str:
    """The same for the name by which a job is recognised: any text but NUL, of such a size."""
    if not id:
        raise InvalidRequest("dedupe.id must not be empty")
    if "\0" in id:
        raise InvalidRequest("dedupe.id must not contain NUL")
    return _check_size("dedupe.id", id)


def _check_size(field: str, name: str) -> str:
    if len(name.encode()) > MAX_LABEL:
        raise InvalidRequest(f"{field} must not have more than {MAX_LABEL} bytes")
    return name
