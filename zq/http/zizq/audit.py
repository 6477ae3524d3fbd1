"""GET /audit: what operators have done."""

import msgspec
from aiohttp import web

from zq.http.door import Route
from zq.http.transport.answer import Answer
from zq.http.zizq.endpoints import answer, lines_or_codec
from zq.http.zizq.query import parameters, whole_number
from zq.model.errors import InvalidRequest
from zq.model.job import MAX_TIME
from zq.model.keys import KeyScope
from zq.service import Services
from zq.wire.audit import ActionsDocument, action_document
from zq.wire.framing import NDJSON

DEFAULT_LIMIT = 100
MOST_LIMIT = 1_000


class AuditApi:
    """`/audit`."""

    def __init__(self, services: Services) -> None:
        self._audit = services.audit

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [Route("GET", "/audit", self.list, KeyScope.READ, whole=True, query=True)]

    async def list(self, request: web.BaseRequest) -> Answer:
        """What operators have done, the latest action first: each request with the scope `manage`.

        What the operators' page reveals is among it. Each action has `seq`, `at`, `actor` (the name
        of the user or the key), `address`, `method`, `path`,
        `query`, `status`, and `answer` if that is small. `limit` is how many at most: 1 to 1,000;
        100 by default. `before` leaves out those from this `seq` on. NDJSON has one action a line.
        """
        codec = lines_or_codec(request)
        given = parameters(request, ("before", "limit"))
        before = whole_number("before", given["before"], MAX_TIME) if "before" in given else None
        limit = DEFAULT_LIMIT
        if "limit" in given:
            limit = whole_number("limit", given["limit"], MOST_LIMIT)
            if not limit:
                raise InvalidRequest(f"limit must be between 1 and {MOST_LIMIT}")
        documents = [action_document(each) for each in await self._audit.latest(before, limit)]
        if codec is None:
            body = b"".join(msgspec.json.encode(each) + b"\n" for each in documents)
            return Answer(200, body, {"Content-Type": NDJSON.content_type})
        return answer(ActionsDocument(documents), codec)
