"""Copies a queue-ti's data to zq over HTTP: `python -m zq.moving.queue_ti SOURCE TARGET`.

It copies overrides, schemas, the schedule of the delete reaper, and pending messages, the oldest
first. What it leaves behind is counted at the end. Stop producers and consumers of the source
first: pages of messages move while messages come and go.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from zq.moving.servers import Doc, MovingError, MovingServer, quoted, told

PREFIX = "/api"
PAGE = 200
DLQ = ".dlq"


def messages_of(server: MovingServer) -> Iterator[Doc]:
    """All messages, the oldest first."""
    left: int = server.ask("GET", "/messages?limit=1")["total"]
    while left > 0:
        limit = min(PAGE, left)
        left -= limit
        page = server.ask("GET", f"/messages?limit={limit}&offset={left}")["items"]
        if len(page) < limit:
            raise MovingError("the source has lost messages meanwhile: stop its consumers")
        yield from reversed(page)


def move(source: MovingServer, target: MovingServer, *, dead: bool) -> Counter[str]:
    """Copy everything. Return what was copied and what was left, by kind. Raises `MovingError`.

    What a new message has to fit comes last, for old messages may be from before it.
    """
    done: Counter[str] = Counter()
    configs = source.ask("GET", "/topic-configs")["items"]
    for config in configs:
        _configure(target, {name: value for name, value in config.items() if name != "max_depth"})
        done["overrides copied"] += 1
    route = "/admin/delete-reaper/schedule"
    schedule = source.ask("GET", route, missing={"schedule": ""})["schedule"]
    if schedule:
        target.ask("PUT", route, {"schedule": schedule})
        done["schedules copied"] += 1
    for message in messages_of(source):
        done[_copy(message, target, dead=dead)] += 1
    for config in configs:
        if config.get("max_depth"):
            _configure(target, config)
    for schema in source.ask("GET", "/topic-schemas", missing={"items": []})["items"]:
        body = {"schema_json": schema["schema_json"]}
        target.ask("PUT", f"/topic-schemas/{quoted(schema['topic'])}", body)
        done["schemas copied"] += 1
    return done


def _configure(target: MovingServer, config: Doc) -> None:
    overrides = {name: value for name, value in config.items() if name != "topic"}
    target.ask("PUT", f"/topic-configs/{quoted(config['topic'])}", overrides)


def _copy(message: Doc, target: MovingServer, *, dead: bool) -> str:
    """Copy a message if it waits for a consumer. Return the kind of what was done."""
    topic, status = message["topic"], message["status"]
    is_dead = topic.endswith(DLQ)
    if is_dead and not dead:
        return "dead letters left"
    if status == "pending" and not is_dead and _is_over(message):
        # The source has not looked yet.
        status = "expired"
    if status != "pending":
        return f"{status} messages left"
    new: Doc = {"topic": message.get("original_topic") or topic.removesuffix(DLQ)}
    new["payload"] = message["payload"]
    for name in ("metadata", "key"):
        if message.get(name) is not None:
            new[name] = message[name]
    target.ask("POST", "/messages", new)
    return "dead letters copied" if is_dead else "messages copied"


def _is_over(message: Doc) -> bool:
    """True if the time of a message is over, so that nobody may take it any more."""
    end = message.get("expires_at")
    return end is not None and datetime.fromisoformat(end) <= datetime.now(UTC)


def main(arguments: Sequence[str] | None = None) -> int:
    """Copy from one address to another, and print what was done. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m zq.moving.queue_ti", description=__doc__)
    parser.add_argument("source", help="address of the queue-ti, such as http://old:8080")
    parser.add_argument("target", help="address of the zq, such as http://127.0.0.1:7890")
    parser.add_argument(
        "--dead", action="store_true", help="copy dead letters to the topics that they came from"
    )
    given = parser.parse_args(arguments)
    source = MovingServer(given.source, PREFIX, os.environ.get("SOURCE_TOKEN"))
    target = MovingServer(given.target, PREFIX, os.environ.get("TARGET_TOKEN"))
    return told(lambda: move(source, target, dead=given.dead))


if __name__ == "__main__":
    sys.exit(main())
