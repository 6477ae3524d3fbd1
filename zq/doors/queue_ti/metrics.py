"""Metrics by the names of queue-ti; `python -m zq.doors.queue_ti.metrics` prints them."""

from collections import Counter
from collections.abc import Callable

import msgspec

from zq.doors.queue_ti.http.documents import statistics
from zq.doors.queue_ti.settings import DOOR
from zq.engine.subscribers.tallies import MOST_COUNTED, QueueTallies
from zq.http.metrics import REST, Metric, Scrape, Values, markdown


def _counter(name: str, help: str, read: Callable[[QueueTallies], Counter[str]]) -> Metric:
    def values(scrape: Scrape) -> Values:
        return [((topic,), n) for topic, n in sorted(read(scrape.tallies).items())]

    return Metric(f"queueti_{name}_total", "counter", help, values, ("topic",), DOOR)


def _nacked(scrape: Scrape) -> Values:
    outcomes = msgspec.structs.asdict(scrape.tallies.nacks)
    return [
        ((topic, outcome), n)
        for outcome, counts in outcomes.items()
        for topic, n in sorted(counts.items())
    ]


def _depth(scrape: Scrape) -> Values:
    return [((row["topic"], row["status"]), row["count"]) for row in statistics(scrape.jobs)]


METRICS = (
    _counter(
        "enqueued",
        f"Accepted messages. At most {MOST_COUNTED} topics are counted by name, the"
        f" rest together as `{REST}`.",
        lambda t: t.enqueued,
    ),
    _counter("dequeued", "Messages handed to consumers.", lambda t: t.delivered),
    _counter("acked", "Messages that are done.", lambda t: t.completed),
    Metric(
        "queueti_nacked_total",
        "counter",
        "Failures of messages: `retry`, `failed`, or `dlq` if they moved to a dead-letter topic.",
        _nacked,
        ("topic", "outcome"),
        DOOR,
    ),
    _counter("requeued", "Messages that came back from the dead.", lambda t: t.revived),
    _counter("expired", "Messages whose time was over.", lambda t: t.expired),
    _counter("messages_deleted", "Messages that a purge has deleted.", lambda t: t.deleted),
    _counter("replayed", "Messages that came once more.", lambda t: t.replayed),
    Metric(
        "queueti_queue_depth",
        "gauge",
        "Messages by status, of the queues named in `zq_jobs`.",
        _depth,
        ("topic", "status"),
        DOOR,
    ),
)


if __name__ == "__main__":
    print(markdown(METRICS))
