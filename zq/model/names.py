"""The rule for names: queues and job types."""

from functools import lru_cache

from zq.model.errors import InvalidRequest

RESERVED = "*?[]{}\\"


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
