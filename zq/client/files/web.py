"""An aiohttp handler that pushes the body of a request to a queue, and answers at once."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, Self

from aiohttp import web

from zq.client.errors import BackendError, EmptyPayload, InvalidPayload, MissingGroup, Unavailable
from zq.model.errors import InvalidRequest
from zq.wire.pushing import MEDIA_TYPES, read_push

Handler = Callable[[web.Request], Awaitable[web.Response]]


class Target(Protocol):
    """A queue that takes pushes: a file's queue."""

    @property
    def fifo(self) -> bool: ...

    def group(self, id: str) -> Self: ...

    def dedupe(self, id: str | None) -> Self: ...

    async def push(
        self, payload: Any, params: Mapping[str, Any] | None = None, *, user: str | None = None
    ) -> str: ...


def handler(
    queue: Target,
    accepts: tuple[str, ...] | None = None,
    user: Callable[[web.Request], str | None] | None = None,
) -> Handler:
    """Make a handler that answers POST with 202 and the job's id in `X-Job-Id`.

    JSON, forms, text and bytes become payloads. Another media type, or one that it does not
    `accept`, gets 415. A body that is empty or cannot be read gets 422. A FIFO queue needs a route
    with ``{group}``, which may have ``{dedupe}``. The handler of the job gets all parameters of the
    route and the query as ``job.params``. `user` finds ``job.user`` in a request, by default in its
    ``request["user"]``.
    """
    allowed = MEDIA_TYPES if accepts is None else accepts

    async def push(request: web.Request) -> web.Response:
        sent = request.headers.get("Content-Type")
        if sent is not None and sent.partition(";")[0].strip().lower() not in allowed:
            return _refuse(415, f"send {', '.join(allowed)}, not {sent}")
        target = queue
        try:
            pushed = read_push(sent, await request.read())
            if pushed is None:
                return _refuse(415, f"send {', '.join(allowed)}, not {sent}")
            if queue.fifo and "group" in request.match_info:
                target = queue.group(request.match_info["group"])
                if "dedupe" in request.match_info:
                    target = target.dedupe(request.match_info["dedupe"])
            params = {**request.query, **request.match_info}
            who = _user(request) if user is None else user(request)
            id = await target.push(pushed.value(), params, user=who)
        except (InvalidRequest, InvalidPayload, EmptyPayload, MissingGroup) as error:
            return _refuse(422, error.message)
        except Unavailable as error:
            return _refuse(503, error.message)
        except BackendError as error:
            return _refuse(error.status or 422, error.message)
        return web.json_response({"id": id}, status=202, headers={"X-Job-Id": id})

    return push


def _user(request: web.Request) -> str | None:
    known = request.get("user")
    if isinstance(known, Mapping):
        known = known.get("id")
    return None if known is None else str(getattr(known, "id", known))


def _refuse(status: int, message: str) -> web.Response:
    return web.json_response({"error": message}, status=status)
