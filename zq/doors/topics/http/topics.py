"""The endpoints for topics, their records and their routers in the `/v0` dialect."""

from functools import partial
from typing import Any

import msgspec
from aiohttp import web

from zq.doors.topics.http import documents
from zq.doors.topics.http.bodies import (
    CONFIG,
    DELETE,
    DIFF,
    ROUTER,
    AppendBody,
    TopicBodies,
    filtered,
    nodes_of,
    page_bytes,
    page_limit,
    sequence,
)
from zq.doors.topics.http.documents import (
    Stopwatch,
    config_document,
    cursor_of,
    name_in,
    new_records,
    page_size,
)
from zq.doors.topics.model import MOST_WAIT_MS, MOST_WRITE_KEY, NO_PATCH, TopicPatch, check_topic
from zq.doors.topics.model_routers import RouterConfig, RoutersWanted, TopicRouter, check_router
from zq.doors.topics.service import RecordsWanted, Routers, Topics
from zq.doors.topics.service_queues import QueueTopics
from zq.features.producers.model import ProducerMark, check_writer
from zq.features.producers.wire import HEADER, mark_of_header
from zq.http.door import PATH, Route
from zq.http.guard import KEY, Guard, reach_of
from zq.http.transport.answer import Answer
from zq.http.transport.answers import Answers
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


class TopicRecordsApi:
    """Appends, reads and deletes the records of a topic."""

    def __init__(
        self, services: Services, guard: Guard, bodies: TopicBodies, answers: Answers
    ) -> None:
        self._topics, self._queues = services[Topics], services[QueueTopics]
        self._guard = guard
        self._bodies = bodies
        self._answers = answers

    def routes(self) -> list[Route]:
        return [
            Route("POST", TOPIC, self.append, KeyScope.ENQUEUE),
            Route("POST", f"{TOPIC}/diff", self.diff, KeyScope.READ),
            Route("POST", f"{TOPIC}/delete", self.delete, KeyScope.MANAGE),
        ]

    async def append(self, request: web.BaseRequest) -> Answer:
        """Append records: all of them, or none."""
        watch = Stopwatch()
        sent, body = await self._bodies.read_new(request)
        try:
            return await self._append(request, sent, watch)
        finally:
            self._bodies.release(body)

    async def diff(self, request: web.BaseRequest) -> Answer:
        """Read the records behind a cursor."""
        watch = Stopwatch()
        sent = await self._bodies.read(request, DIFF)
        name, reach = topic_of(request), reach_of(request)
        wanted = RecordsWanted(
            sequence("from_seq", sent.from_seq),
            page_limit(sent.limit),
            nodes_of(sent.node),
            min(max(sent.wait_ms, 0), MOST_WAIT_MS),
            page_bytes(sent.max_bytes),
        )
        granted = partial(self._guard.while_granted, request)
        found = await self._topics.read(name, wanted, reach, granted)
        self._topics.touch(name)
        shown = documents.Shown(sent.include_tags, sent.include_meta)
        document = documents.page(name, found, shown)
        response = watch.answer(document)
        self._answers.admit(len(response.body))
        return response

    async def delete(self, request: web.BaseRequest) -> Answer:
        """Delete the matching records that exist now."""
        watch = Stopwatch()
        sent = await self._bodies.read(request, DELETE)
        if sent.match is None and sent.before_seq is None:
            raise InvalidRequest("say what to delete: by match, by before_seq, or by both")
        match = None if sent.match is None else filtered(sent.match, "match").match
        before = None if sent.before_seq is None else sequence("before_seq", sent.before_seq)
        name = topic_of(request)
        done = await self._queues.delete_records(name, match, before, reach_of(request))
        topic = done.state
        return watch.answer(
            {
                "topic": name,
                "deleted": done.deleted,
                "earliest_seq": topic.earliest_seq,
                "head_seq": topic.head_seq,
                "count": topic.count,
                "bytes": topic.bytes,
            }
        )

    async def _append(self, request: web.BaseRequest, sent: AppendBody, watch: Stopwatch) -> Answer:
        with_seqs = flag(request, "return_seqs", usual=True)
        records = new_records(sent.records, sent.node)
        name = topic_of(request)
        done = await self._topics.append(
            *(name, records, reach_of(request)),
            key=_key(request, sent),
            create=_create(sent),
            mark=(mark := _mark(request)),
        )
        document: dict[str, object] = {
            "topic": name,
            "first_seq": done.first_seq,
            "last_seq": done.last_seq,
            "head_seq": done.head_seq,
            "count": done.last_seq - done.first_seq + 1,
            "created": done.created,
            "deduped": done.deduped,
        }
        if mark is not None:
            document["duplicates"] = done.duplicates
        if with_seqs:
            document["seqs"] = list(range(done.first_seq, done.last_seq + 1))
        flushed = done.flush_s * 1000
        return watch.answer(document, 201 if done.created else 200, fsync_ms=flushed)


def _mark(request: web.BaseRequest) -> ProducerMark | None:
    """The producer of a write, if the key of the request may write as it."""
    text = request.headers.get(HEADER)
    return None if text is None else check_writer(mark_of_header(text), request.get(KEY))


def _key(request: web.BaseRequest, sent: AppendBody) -> str | None:
    key = sent.idempotency_key or request.headers.get("Idempotency-Key")
    if key is not None and (len(key) > MOST_WRITE_KEY or "\0" in key):
        raise InvalidRequest(
            f"idempotency_key must not have more than {MOST_WRITE_KEY} characters, and no NUL"
        )
    return key or None


def _create(sent: AppendBody) -> TopicPatch | None:
    if sent.create is False:
        return None
    return NO_PATCH if sent.config is None else sent.config


ROUTER_PATH = "/routers/{router}"


class TopicRoutersApi:
    """`/routers` and `/routers/{router}`."""

    def __init__(self, services: Services, bodies: TopicBodies) -> None:
        self._routers = services[Routers]
        self._bodies = bodies

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/routers", self.page, KeyScope.READ),
            Route("PUT", ROUTER_PATH, self.put, KeyScope.MANAGE),
            Route("GET", ROUTER_PATH, self.get, KeyScope.READ),
            Route("DELETE", ROUTER_PATH, self.delete, KeyScope.MANAGE),
        ]

    async def put(self, request: web.BaseRequest) -> Answer:
        """Create a router, or replace its settings."""
        watch = Stopwatch()
        sent = await self._bodies.read(request, ROUTER)
        if sent.source is None or sent.dest is None:
            raise InvalidRequest("source and dest are missing: name two topics")
        config = RouterConfig(
            *(sent.source, sent.dest, sent.preserve_node, sent.preserve_tag, sent.create_dest),
            None if sent.filter is None else filtered(sent.filter, "filter"),
            sent.allow_cycle,
        )
        name = _router_of(request)
        done = await self._routers.put(name, config, reach_of(request))
        document = {"created": done.created, **_document(name, config)}
        return watch.answer(document, 201 if done.created else 200)

    async def get(self, request: web.BaseRequest) -> Answer:
        """Show a router, and how many copies it has made."""
        watch = Stopwatch()
        found = await self._routers.get(_router_of(request), reach_of(request))
        document = _document(found.name, found.config)
        return watch.answer({**document, "forwarded_total": found.forwarded})

    async def page(self, request: web.BaseRequest) -> Answer:
        """List routers by name. `prefix`, `source` and `dest` limit the list."""
        watch = Stopwatch()
        query = request.query
        size = page_size(request)
        after = name_in(query.get("cursor", ""), check_router)
        wanted = RoutersWanted(
            *(query.get("prefix", ""), query.get("source") or None, query.get("dest") or None),
            *(after, size + 1),
        )
        found = await self._routers.page(wanted, reach_of(request))
        document: dict[str, object] = {"routers": [_entry(router) for router in found[:size]]}
        if len(found) > size:
            document["next_cursor"] = cursor_of(found[size - 1].name)
        return watch.answer(document)

    async def delete(self, request: web.BaseRequest) -> Answer:
        """Delete a router. Its copies stay."""
        watch = Stopwatch()
        name = _router_of(request)
        deleted = await self._routers.delete(name, reach_of(request))
        return watch.answer({"router": name, "deleted": deleted})


def _router_of(request: web.BaseRequest) -> str:
    return check_router(request[PATH]["router"])


def _document(name: str, config: RouterConfig) -> dict[str, Any]:
    return {"router": name, **msgspec.structs.asdict(config)}


def _entry(router: TopicRouter) -> dict[str, Any]:
    return {
        "router": router.name,
        "source": router.config.source,
        "dest": router.config.dest,
        "forwarded_total": router.forwarded,
    }
