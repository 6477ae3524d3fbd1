"""queue-ti's API: its routes under `/api`, UUIDs for ids, and its errors."""

from collections.abc import Iterable, Sequence

from aiohttp import web

from zq import __version__
from zq.doors.queue_ti.http.bodies import MessageEndpoints
from zq.doors.queue_ti.http.calls import Defaults, MessageCalls
from zq.doors.queue_ti.http.description import QUEUE_TI
from zq.doors.queue_ti.http.documents import answer, problem
from zq.doors.queue_ti.http.messages import ArchiveApi, MessagesApi
from zq.doors.queue_ti.http.topics import GroupsApi, SchemasApi, TopicsApi
from zq.doors.queue_ti.http.users import AuthApi, DoorAuth, UsersApi, status_route
from zq.doors.queue_ti.service import Users
from zq.http.api.parts import ApiParts
from zq.http.door import Door, Route
from zq.http.json_description import JsonDescriptionApi
from zq.http.transport.answer import Answer
from zq.model.errors import ZqError


class QueueTiDoor(Door):
    """The REST API that queue-ti's clients use."""

    prefix = "/api"

    def problem(self, request: web.BaseRequest | None, error: ZqError) -> Answer:
        return problem(error)

    def malformed(self, request: web.BaseRequest | None, status: int, text: str) -> Answer:
        return answer({"error": text}, status)

    def not_found(self, request: web.BaseRequest) -> Answer:
        return answer({"error": f"Cannot {request.method} {request.path}"}, 404)

    def not_allowed(self, request: web.BaseRequest, methods: Iterable[str]) -> Answer:
        allow = {"Allow": ", ".join(sorted(methods))}
        return answer({"error": "method not allowed"}, 405, allow)


def queue_ti_routes(
    parts: ApiParts, calls: MessageCalls, defaults: Defaults, auth: DoorAuth | None = None
) -> Sequence[Route]:
    """Every route of the door, each with a slash behind it too."""
    services = parts.services
    endpoints = MessageEndpoints(parts.bodies, parts.line)
    messages = MessagesApi(services, parts.guard, endpoints, parts.answers, calls, defaults)
    archive = ArchiveApi(services, endpoints, calls.ids, defaults)
    schemas = SchemasApi(services, endpoints)
    topics = TopicsApi(services, endpoints)
    groups = GroupsApi(services, endpoints)
    apis = (messages, topics, archive, schemas, groups)
    routes = [route for api in apis for route in api.routes()]
    routes.append(Route("GET", "/version", _version, None))
    routes.append(status_route(required=auth is not None))
    if auth is not None:
        routes += AuthApi(*auth, endpoints).routes()
        routes += UsersApi(services[Users], endpoints).routes()
    routes += JsonDescriptionApi(QUEUE_TI, [*routes]).routes()
    if auth is not None:
        routes = auth.access.guarded(routes)
    return [*routes, *(route._replace(path=route.path + "/") for route in routes)]


async def _version(request: web.BaseRequest) -> Answer:
    """The version of this server."""
    return answer({"version": __version__})
