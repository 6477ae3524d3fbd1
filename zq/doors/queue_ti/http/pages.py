"""Pages of lists: what a query asks for, and how they are answered."""

from collections.abc import Sequence

import msgspec
from aiohttp import web

USUAL_PAGE, LARGEST_PAGE = 50, 200


class MessagePage(msgspec.Struct):
    """A page of a list, and how many items the list has."""

    items: Sequence[msgspec.Struct]
    total: int
    limit: int
    offset: int


def page_of(request: web.BaseRequest) -> tuple[int, int]:
    """The limit and the offset that a request asks for. What is out of range is clamped."""
    limit = min(_number(request.query.get("limit"), 1, USUAL_PAGE), LARGEST_PAGE)
    return limit, _number(request.query.get("offset"), 0, 0)


def _number(text: str | None, least: int, usual: int) -> int:
    """A whole number of a query. One that is missing, invalid or too small is the usual one."""
    if text is None or not text.isdecimal() or len(text) > 15 or int(text) < least:
        return usual
    return int(text)
