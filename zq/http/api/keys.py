"""GET /keys: who may do what."""

from aiohttp import web

from zq.http.api.endpoints import answer, endpoint, parameters
from zq.http.api.parts import ApiParts
from zq.http.door import Route
from zq.http.transport.answer import Answer
from zq.model.keys import Key, KeyScope
from zq.model.reach import EVERYWHERE
from zq.wire.codecs import BodyCodec


class KeysApi:
    """`/keys`."""

    def __init__(self, parts: ApiParts) -> None:
        self._guard = parts.guard

    def routes(self) -> list[Route]:
        return [Route("GET", "/keys", endpoint(self.list), KeyScope.MANAGE, whole=True)]

    async def list(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The access keys in the order of their file, without their secrets.

        Each has `name`, `scopes`, the prefixes of its `queues` (empty: all queues) and the quota of
        its `budgets` (null: the usual share). Without a file of keys there is none.
        """
        parameters(request, ())
        return answer({"keys": list(map(_document, self._guard.keys))}, accepted)


def _document(key: Key) -> dict[str, object]:
    return {
        "name": key.name,
        "scopes": [scope for scope in KeyScope if scope in key.scopes],
        "budgets": key.budgets,
        "queues": [] if key.reach is EVERYWHERE else list(key.reach.prefixes),
    }
