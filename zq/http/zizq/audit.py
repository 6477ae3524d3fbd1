"""GET /audit: what operators have done."""

from typing import Any

import msgspec
from aiohttp import web
from msgspec import UNSET, UnsetType

from zq.http.door import Route
from zq.http.transport.answer import Answer
from zq.http.zizq.endpoints import answer, lines_or_codec
from zq.http.zizq.query import parameters, whole_number
from zq.model.audit import RecordedAction
from zq.model.errors import InvalidRequest
from zq.model.job import MAX_TIME
from zq.model.keys import KeyScope
from zq.service import Services
from zq.wire.framing import NDJSON

DEFAULT_LIMIT = 100
MOST_LIMIT = 1_000


class ActionDocument(msgspec.Struct, kw_only=True):
    """One action. `at` is in milliseconds. `actor` names the key, if there are keys."""

    seq: int
    at: int
    actor: str | UnsetType = UNSET
    address: str
    method: str
    path: str
    query: str | UnsetType = UNSET
    status: int
    answer: Any = UNSET


class ActionsDocument(msgspec.Struct):
    """Actions, the latest one first."""

    actions: list[ActionDocument]


class AuditApi:
    """`/audit`."""

    def __init__(self, services: Services) -> None:
        self._audit = services.audit

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [Route("GET", "/audit", self.list, KeyScope.READ, whole=True)]

    async def list(self, request: web.BaseRequest) -> Answer:
        """What operators have done, the latest action first: each request with the scope `manage`.

        Each action has `seq`, `at`, `actor` (the name of the key), `address`, `method`, `path`,
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
        documents = [_document(each) for each in await self._audit.latest(before, limit)]
        if codec is None:
            body = b"".join(msgspec.json.encode(each) + b"\n" for each in documents)
            return Answer(200, body, {"Content-Type": NDJSON.content_type})
        return answer(ActionsDocument(documents), codec)


def _document(recorded: RecordedAction) -> ActionDocument:
    action = recorded.action
    return ActionDocument(
        seq=recorded.seq,
        at=action.at,
        actor=UNSET if action.actor is None else action.actor,
        address=action.address,
        method=action.method,
        path=action.path,
        query=action.query or UNSET,
        status=action.status,
        answer=msgspec.json.decode(action.answer) if bytes(action.answer) else UNSET,
    )
