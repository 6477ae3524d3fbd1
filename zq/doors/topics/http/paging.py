"""Pages of lists in the `/v0` dialect: their sizes, and cursors that are names in disguise."""

import base64
from collections.abc import Callable

from aiohttp import web

from zq.model.errors import InvalidRequest

USUAL_PAGE, LARGEST_PAGE = 100, 1_000


def page_size(request: web.BaseRequest) -> int:
    """How many entries are wanted. Raises `InvalidRequest`."""
    text = request.query.get("page_size", "")
    if not text:
        return USUAL_PAGE
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:10]) <= LARGEST_PAGE):
        raise InvalidRequest(f"page_size must be between 1 and {LARGEST_PAGE}")
    return int(text)


def cursor_of(name: str) -> str:
    """The cursor of a page that ends with this name."""
    return base64.urlsafe_b64encode(name.encode()).decode()


def name_in(cursor: str, check: Callable[[str], str]) -> str:
    """The name behind which a page begins; empty without a cursor. Raises `InvalidRequest`."""
    if not cursor:
        return ""
    try:
        return check(base64.b64decode(cursor, b"-_", validate=True).decode())
    except (ValueError, InvalidRequest):
        raise InvalidRequest("this cursor is none of this server: begin without one") from None
