"""The `pages` object of a listing: links to this page, the next and the previous one."""

from collections.abc import Callable
from typing import NamedTuple

from zq.http.native.query import Paging


class Shown(NamedTuple):
    """What a page shows: the cursors of its first and last row, and whether more rows follow."""

    first: str | None
    last: str | None
    more: bool


def links(
    path: str, query: Callable[[Paging], str], paging: Paging, shown: Shown
) -> dict[str, str | None]:
    """`self`, `next` and `prev`; the latter two are null where there is no such page.

    The previous page is read backwards from this one's first row, so its rows arrive reversed.
    """

    def link(cursor: str | None, descending: bool) -> str:
        return f"{path}?{query(Paging(cursor, descending, paging.limit))}"

    has_previous = paging.cursor is not None and shown.first is not None
    return {
        "self": link(paging.cursor, paging.descending),
        "next": link(shown.last, paging.descending) if shown.more else None,
        "prev": link(shown.first, not paging.descending) if has_previous else None,
    }
