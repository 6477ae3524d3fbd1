"""GET /audit: what operators have done."""

from collections.abc import Callable, Mapping

import msgspec
from aiohttp import web
from msgspec import UNSET

from zq.features.audit.model import OperatorAction
from zq.features.audit.service import Audit
from zq.features.audit.wire import ActionsDocument, action_document
from zq.features.audit.wire_deeds import deed_of
from zq.http.api.endpoints import answer, lines_or_codec
from zq.http.api.query import parameters
from zq.http.door import Route
from zq.http.transport.answer import Answer
from zq.model.errors import InvalidRequest
from zq.model.job import MAX_TIME
from zq.model.keys import KeyScope
from zq.service.services import Services
from zq.wire.framing import NDJSON
from zq.wire.query import whole_number

DEFAULT_LIMIT = 100
MOST_LIMIT = 1_000

CHOOSING = ("who", "verb", "queue", "since", "until")


class AuditApi:
    """`/audit`."""

    def __init__(self, services: Services) -> None:
        self._audit = services[Audit]

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [Route("GET", "/audit", self.list, KeyScope.READ, whole=True, query=True)]

    async def list(self, request: web.BaseRequest) -> Answer:
        """What operators have done, the latest action first: each request with the scope `manage`.

        What the operators' page reveals is among it. Each action has `seq`, `at`, `actor` (the name
        of the user or the key), `address`, `method`, `path`, `query`, `status`, `answer` if that is
        small, and what was done: `verb` and `words`. `limit` is how many at most: 1 to 1,000; 100
        by default. `before` leaves out those from this `seq` on. `who` (an actor or an address),
        `verb`, `queue`, `since` and `until` (in milliseconds) choose among them. A search looks at
        20,000 actions; if there are more, it says `searched_to`, and the same request with that as
        `before` goes on. NDJSON has one action a line.
        """
        codec = lines_or_codec(request)
        given = parameters(request, ("before", "limit", *CHOOSING))
        before = whole_number("before", given["before"], MAX_TIME) if "before" in given else None
        limit = DEFAULT_LIMIT
        if "limit" in given:
            limit = whole_number("limit", given["limit"], MOST_LIMIT)
            if not limit:
                raise InvalidRequest(f"limit must be between 1 and {MOST_LIMIT}")
        page = await self._audit.latest(before, limit, _chosen(given))
        documents = [action_document(each) for each in page.actions]
        if codec is None:
            body = b"".join(msgspec.json.encode(each) + b"\n" for each in documents)
            return Answer(200, body, {"Content-Type": NDJSON.content_type})
        reached = UNSET if page.reached is None else page.reached
        return answer(ActionsDocument(documents, reached), codec)


def _chosen(given: Mapping[str, str]) -> Callable[[OperatorAction], bool] | None:
    """The choice in a query, if there is one. Raises `InvalidRequest`."""
    if not any(name in given for name in CHOOSING):
        return None
    since = whole_number("since", given.get("since", "0"), MAX_TIME)
    until = whole_number("until", given.get("until", str(MAX_TIME)), MAX_TIME)
    who, verb, queue = given.get("who"), given.get("verb"), given.get("queue")

    def matches(action: OperatorAction) -> bool:
        if not since <= action.at <= until or who not in (None, action.actor, action.address):
            return False
        if verb is None and queue is None:
            return True
        deed = deed_of(action)
        return verb in (None, deed.verb) and (queue is None or queue in deed.queues)

    return matches
