"""The endpoints for topics in the `/v0` dialect."""

from aiohttp import web

from zq.doors.topics.http import documents
from zq.doors.topics.http.bodies import CONFIG, TopicBodies
from zq.doors.topics.http.paging import cursor_of, name_in, page_size
from zq.doors.topics.http.problems import Stopwatch
from zq.doors.topics.model import check_topic
from zq.doors.topics.service import Topics
from zq.doors.topics.service_queues import QueueTopics
from zq.doors.topics.wire import config_document
from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.errors import InvalidRequest
from zq.model.keys import KeyScope
from zq.service.services import Services

TOPIC = "/topics/{topic}"


class TopicLifecycleApi:
    """`/topics` and `/topics/{topic}`."""

    def __init__(self, services: Services, bodies: TopicBodies) -> None:
        self._topics, self._queues = services[Topics], services[QueueTopics]
        self._bodies = bodies

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [
            Route("GET", "/topics", self.page, KeyScope.READ),
            Route("PUT", TOPIC, self.put, KeyScope.MANAGE),
            Route("GET", TOPIC, self.get, KeyScope.READ),
            Route("DELETE", TOPIC, self.delete, KeyScope.MANAGE),
        ]

    async def put(self, request: web.BaseRequest) -> Answer:
        """Create a topic, or change the given fields of its config."""
        watch = Stopwatch()
        patch = await self._bodies.read(request, CONFIG)
        name, reach = topic_of(request), reach_of(request)
        done = await self._topics.put(name, patch, reach)
        document = {
            "topic": name,
            "created": done.created,
            "config": config_document(done.state.config),
        }
        return watch.answer(document, 201 if done.created else 200)

    async def get(self, request: web.BaseRequest) -> Answer:
        """Show a topic. With `?touch=false` this does not count as a reading."""
        watch = Stopwatch()
        name = topic_of(request)
        found = await self._topics.get(name, reach_of(request))
        if flag(request, "touch", usual=True):
            self._topics.touch(name)
        return watch.answer(documents.state(found, self._topics.read_at(name)))

    async def page(self, request: web.BaseRequest) -> Answer:
        """List topics by name. `prefix` limits the list."""
        watch = Stopwatch()
        query = request.query
        size = page_size(request)
        after = name_in(query.get("cursor", ""), check_topic)
        found = await self._topics.page(query.get("prefix", ""), after, size + 1, reach_of(request))
        document: dict[str, object] = {"topics": [documents.entry(topic) for topic in found[:size]]}
        if len(found) > size:
            document["next_cursor"] = cursor_of(str(found[size - 1].name))
        return watch.answer(document)

    async def delete(self, request: web.BaseRequest) -> Answer:
        """Delete a topic and its routers. `?if_empty=true` refuses to delete one with records."""
        watch = Stopwatch()
        name = topic_of(request)
        if_empty = flag(request, "if_empty", usual=False)
        done = await self._queues.drop(name, reach_of(request), if_empty=if_empty)
        document = {"topic": name, "deleted": done.deleted, "routers_removed": done.routers}
        return watch.answer(document)


def topic_of(request: web.BaseRequest) -> str:
    """The topic in the path. Raises `InvalidRequest`."""
    return check_topic(request[PATH]["topic"])


def flag(request: web.BaseRequest, name: str, *, usual: bool) -> bool:
    """A switch in the query. Raises `InvalidRequest`."""
    text = request.query.get(name, "")
    if text not in ("", "true", "false"):
        raise InvalidRequest(f"{name} must be true or false")
    return text == "true" if text else usual
