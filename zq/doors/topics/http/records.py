"""The endpoints for records in the `/v0` dialect."""

from functools import partial

from aiohttp import web

from zq.doors.topics.http import documents
from zq.doors.topics.http.bodies import (
    DELETE,
    DIFF,
    AppendBody,
    TopicBodies,
    filtered,
    nodes_of,
    page_bytes,
    page_limit,
    sequence,
)
from zq.doors.topics.http.lifecycle import TOPIC, flag, topic_of
from zq.doors.topics.http.problems import Stopwatch
from zq.doors.topics.model import MOST_WAIT_MS, MOST_WRITE_KEY, NO_PATCH, TopicPatch
from zq.doors.topics.service import RecordsWanted, Topics
from zq.doors.topics.service_queues import QueueTopics
from zq.doors.topics.wire import new_records
from zq.features.producers.model import ProducerMark, check_writer
from zq.features.producers.wire import HEADER, mark_of_header
from zq.http.door import Route
from zq.http.guard import KEY, Guard, reach_of
from zq.http.transport.answer import Answer
from zq.http.transport.answers import Answers
from zq.model.errors import InvalidRequest
from zq.model.keys import KeyScope
from zq.service.services import Services


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
        """Method, path, handler and scope of each endpoint."""
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
