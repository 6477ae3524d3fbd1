"""Copies topics to zq over HTTP: `python -m zq.moving.topics SOURCE TARGET`.

It copies configs, the records that are there in their order, and routers. Records get new numbers,
from one. A run that was stopped can be repeated within the `idempotency_window_ms` of the topics:
what was copied does not come twice. Stop the writers and the workers of the source first.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from urllib.parse import urlencode

from zq.moving.servers import Doc, MovingServer, parts, quoted, told

PREFIX = "/v0"
PAGE = 1_000
READ_ONLY = ("durable",)
"""Fields of a config that follow from others."""
OF_ROUTERS = ("router", "forwarded_total", "performance")
"""Fields of a router that nobody sets."""


def entries(server: MovingServer, kind: str) -> Iterator[Doc]:
    """All topics or routers, by name."""
    query = {"page_size": str(PAGE)}
    while True:
        page = server.ask("GET", f"/{kind}?{urlencode(query)}")
        yield from page[kind]
        if not page.get("next_cursor"):
            return
        query["cursor"] = page["next_cursor"]


def move(source: MovingServer, target: MovingServer) -> Counter[str]:
    """Copy everything. Return what was copied, by kind. Raises `MovingError`."""
    done: Counter[str] = Counter()
    for entry in list(entries(source, "topics")):
        name = entry["topic"]
        config = source.ask("GET", f"/topics/{quoted(name)}?touch=false")["config"]
        given = {field: value for field, value in config.items() if field not in READ_ONLY}
        target.ask("PUT", f"/topics/{quoted(name)}", given)
        done["topics copied"] += 1
        done["records copied"] += _copy_records(source, target, name)
    # Routers come last, for they would copy what is copied already.
    for router in list(entries(source, "routers")):
        name = router["router"]
        # A list may leave out what a router does besides its two ends.
        shown = source.ask("GET", f"/routers/{quoted(name)}")
        body = {field: value for field, value in shown.items() if field not in OF_ROUTERS}
        target.ask("PUT", f"/routers/{quoted(name)}", body)
        done["routers copied"] += 1
    return done


def _copy_records(source: MovingServer, target: MovingServer, topic: str) -> int:
    """Append the records of one topic. Return how many there were."""
    path, cursor, copied = f"/topics/{quoted(topic)}", 0, 0
    while True:
        wanted = {"from_seq": cursor, "limit": PAGE, "include_tags": True}
        page = source.ask("POST", f"{path}/diff", wanted)
        first = copied
        for part in parts(map(_new, page["records"])):
            key = f"moved:{cursor}+{copied - first}"
            target.ask("POST", path, {"records": part, "idempotency_key": key})
            copied += len(part)
        cursor = page["next_from_seq"]
        if page["caught_up"]:
            return copied


def _new(record: Doc) -> Doc:
    new = {"data": record["data"]}
    for shown, field in (("$node", "node"), ("$tag", "tag"), ("meta", "meta")):
        if shown in record:
            new[field] = record[shown]
    return new


def main(arguments: Sequence[str] | None = None) -> int:
    """Copy from one address to another, and print what was done. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m zq.moving.topics", description=__doc__)
    parser.add_argument("source", help="address of the old server, such as http://old:4000")
    parser.add_argument("target", help="address of the zq, such as http://127.0.0.1:7890")
    given = parser.parse_args(arguments)
    source = MovingServer(given.source, PREFIX, os.environ.get("SOURCE_TOKEN"))
    target = MovingServer(given.target, PREFIX, os.environ.get("TARGET_TOKEN"))
    return told(lambda: move(source, target))


if __name__ == "__main__":
    sys.exit(main())
