"""Time zones by their names."""

from datetime import tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from zq.model.errors import InvalidRequest

MAX_ZONE = 255


@lru_cache(maxsize=1024)
def zone_named(name: str) -> tzinfo:
    """The zone of the IANA database with this name. Raises `InvalidRequest`."""
    if 0 < len(name) <= MAX_ZONE:
        try:
            return ZoneInfo(name)
        except (LookupError, ValueError, OSError):
            pass
    raise InvalidRequest(f'invalid timezone: "{name[:MAX_ZONE]}"')
