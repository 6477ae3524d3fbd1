"""Health, readiness and metrics of the `/v0` dialect."""

from aiohttp import hdrs, web

from zq import __version__
from zq.http.door import Route
from zq.http.guard import reach_of
from zq.http.topics.problems import Stopwatch
from zq.http.transport.answer import Answer
from zq.model.keys import KeyScope
from zq.model.topics import TopicState
from zq.service import Services

MOST_SHOWN = 1_000
"""Topics that have a label of their own: what a scrape costs must not grow with their number."""

FIGURES = {
    "topics_topic_head_seq": "head_seq",
    "topics_topic_earliest_seq": "earliest_seq",
    "topics_topic_records_live": "count",
    "topics_topic_bytes_live": "bytes",
}
"""What is told of each topic, and the field that it is."""


class TopicsServiceApi:
    """Everything that is about no topic."""

    def __init__(self, services: Services) -> None:
        self._topics = services.topics
        self._clock = services.clock
        self._began = self._clock.monotonic()

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [
            Route("GET", "/health", self.health, None),
            Route("GET", "/ready", self.ready, None),
            Route("GET", "/metrics", self.metrics, KeyScope.READ),
        ]

    async def health(self, _request: web.BaseRequest) -> Answer:
        """That the server runs, and for how long."""
        document = {"status": "ok", "version": __version__, "uptime_ms": self._uptime()}
        return Stopwatch().answer(document)

    async def ready(self, _request: web.BaseRequest) -> Answer:
        """That it takes requests, which it does from its start on."""
        watch = Stopwatch()
        topics = await self._topics.count()
        return watch.answer({"status": "ready", "wal_replay_complete": True, "topics": topics})

    async def metrics(self, request: web.BaseRequest) -> Answer:
        """The figures of topics, as text for Prometheus or as JSON."""
        watch = Stopwatch()
        total = await self._topics.count()
        found = await self._topics.page("", "", MOST_SHOWN, reach_of(request))
        plain = {"topics_topics": total, "topics_ready": 1, "topics_uptime_ms": self._uptime()}
        if "application/json" in request.headers.get(hdrs.ACCEPT, ""):
            figures = {name: _by_topic(found, field) for name, field in FIGURES.items()}
            return watch.answer({**plain, **figures})
        lines = [f"{name} {value}" for name, value in plain.items()]
        for name, field in FIGURES.items():
            lines += [
                f'{name}{{topic="{topic}"}} {value}'
                for topic, value in _by_topic(found, field).items()
            ]
        text = "\n".join([*lines, ""])
        return Answer(200, text.encode(), {"Content-Type": "text/plain; version=0.0.4"})

    def _uptime(self) -> int:
        return round((self._clock.monotonic() - self._began) * 1000)


def _by_topic(topics: list[TopicState], field: str) -> dict[str, int]:
    return {str(topic.name): getattr(topic, field) for topic in topics}
