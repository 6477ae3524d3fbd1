"""Query strings: strict parsing."""

from collections.abc import Collection

from aiohttp import web

from zq.http.strictness import is_strict
from zq.model.errors import UnknownField
from zq.wire.filters import ALIASES, CHOOSING, LISTS, TEXTS
from zq.wire.query import QUERY, filters_nothing, invalid_query
from zq.wire.strict import near_name

_READS = ("GET", "HEAD")

CAREFUL = web.RequestKey("careful", bool)
"""Set for the requests of the operators' page: no filter is passed over, and a change by filter is
bound to a preview."""


def is_careful(request: web.BaseRequest) -> bool:
    """True for a request of the operators' page."""
    return CAREFUL in request


def parameters(
    request: web.BaseRequest, allowed: Collection[str], may_be_empty: Collection[str] = ()
) -> dict[str, str]:
    """The query's parameters. An empty value counts as missing. Raises `InvalidRequest`.

    An empty filter is an error: if it counted as missing, a change could delete everything, and a
    list show more than was asked for. Some reads are Zizq's, whose clients send empty filters:
    these `may_be_empty`, but not for the operators' page and strict clients.
    """
    found: dict[str, str] = {}
    if request.method not in _READS:
        _refuse_lost_query(request)
    for name, value in request.rel_url.query.items():
        name = ALIASES.get(name, name)
        if name not in allowed:
            raise _unknown(name, allowed)
        if name in found:
            raise invalid_query(
                f"duplicate field `{name}`: give it once, with several names as a comma list"
                if name in LISTS
                else f"duplicate field `{name}`: give it once"
            )
        if (
            name in CHOOSING
            and filters_nothing(name, value)
            and (name not in may_be_empty or is_careful(request) or is_strict(request))
        ):
            raise invalid_query(
                f"`{name}` is empty: say which are meant, or leave it out, which means any"
            )
        found[name] = value
    return {name: value for name, value in found.items() if value or name in TEXTS}


def _refuse_lost_query(request: web.BaseRequest) -> None:
    """Raise `InvalidRequest` if a change has a `?` with nothing behind it: a filter was lost."""
    if not request.rel_url.query and "?" in request.raw_path:
        raise invalid_query(
            "nothing follows the `?`: say which jobs are meant, or leave out the `?`"
        )


def _unknown(name: str, allowed: Collection[str]) -> UnknownField:
    known = "`, `".join(allowed)
    expected = f"expected one of `{known}`" if known else "and this request has none in its query"
    near = near_name(name, allowed)
    question = f"; did you mean `{near}`?" if near else ""
    return UnknownField(f"{QUERY}{name}: unknown field `{name}`, {expected}{question}")
