"""The admin API: its errors, all in JSON."""

from collections.abc import Sequence

from aiohttp import web

from zq.http.api.endpoints import answer
from zq.http.api.problems import problem
from zq.http.door import Door, Ids, Route
from zq.http.listening import ListenerAddresses
from zq.http.transport.answer import Answer
from zq.model.errors import ZqError
from zq.wire.codecs import JSON


class AdminDoor(Door):
    """The door for `zq top`, Zizq's `top`, and backups."""

    refuses_queries = True

    def problem(self, request: web.BaseRequest | None, error: ZqError) -> Answer:
        return problem(error, JSON)

    def __init__(self, ids: Ids, routes: Sequence[Route], listeners: ListenerAddresses) -> None:
        super().__init__(ids, routes)
        self._listeners = listeners

    def not_found(self, request: web.BaseRequest) -> Answer:
        """Say where the API is: whoever asks for it here has mixed up the two ports."""
        place = self._listeners.primary_for(request)
        text = f"this is the admin listener, which has no such path: the API is at {place}"
        return self.malformed(request, 404, text)

    def malformed(self, request: web.BaseRequest | None, status: int, text: str) -> Answer:
        return answer({"error": text}, JSON, status)
