"""Many listeners, most of which read nothing: each fan-out of a change to all who wait for it."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator, Sequence

from bench.attacks.site import PATIENCE, Attack, Outcome, Site
from bench.idle import allow_descriptors

CHANGES = 2
"""Changes that the attacker makes for each of its listeners."""

HANDSHAKE = (
    b"GET /events HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
)

JOB = {"queue": "q", "type": "t", "payload": 1}


@contextlib.contextmanager
def listening(site: Site, requests: Sequence[str], heads: bool = True) -> Iterator[int]:
    """Ask for lasting answers, each on a connection of its own, and read no more than their heads.

    Yields how many of them have begun.
    """
    allow_descriptors(len(requests))
    with contextlib.ExitStack() as opened:
        sockets = []
        for request in requests:
            reader = opened.enter_context(site.connect())
            reader.sendall(f"{request} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            sockets.append(reader)
        yield sum(each.recv(12).endswith(b"200") for each in sockets) if heads else len(sockets)


def events_unread(site: Site, count: int) -> Outcome:
    """Readers of all events read none of them, while jobs are enqueued."""
    with listening(site, ["GET /events"] * count) as begun:
        return Outcome(f"{begun} began; {enqueued(site, count * CHANGES)}")


def events_elsewhere(site: Site, count: int) -> Outcome:
    """Readers of the events of other queues, of which there are none."""
    with listening(site, [f"GET /events?queue=a{n}" for n in range(count)]) as begun:
        return Outcome(f"{begun} began; {enqueued(site, count * CHANGES)}")


def events_filtered(site: Site, count: int) -> Outcome:
    """Readers that each have a long filter of their own, so that no two get the same text."""
    filters = [",".join(["q", *(f"q{n}-{i}" for i in range(300))]) for n in range(count)]
    with listening(site, [f"GET /events?queue={each}" for each in filters]) as begun:
        return Outcome(f"{begun} began; {enqueued(site, count * CHANGES)}")


def watches_unread(site: Site, count: int) -> Outcome:
    """Watch sessions of one topic, whose readers read nothing, while records are appended."""
    site.need("PUT", "/v0/topics/t", b"{}")
    wanted = json.dumps({"topics": {"t": {"tail": True}}}).encode()
    made = [json.loads(site.need("POST", "/v0/watch", wanted)) for _ in range(count)]
    with listening(site, [f"GET {each['stream_url']}" for each in made]) as begun:
        record = json.dumps({"records": [{"data": {"n": 1}}]}).encode()
        return Outcome(f"{begun} began; {posted(site, '/v0/topics/t', record, count)}")


def polls_answered(site: Site, count: int) -> Outcome:
    """Long polls for the end of one job, which then ends."""
    job = json.loads(site.need("POST", "/jobs", json.dumps(JOB).encode()))["id"]
    polls = [f"GET /jobs/{job}/result?wait_ms=60000"] * count
    with listening(site, polls, heads=False) as begun:
        site.need("POST", f"/jobs/{job}/cancel")
        return Outcome(f"{begun} asked")


def takes_of_many_sets(site: Site, count: int) -> Outcome:
    """Take streams that each name another set of queues, all of which have one queue."""
    takes = [f"GET /jobs/take?queue=q,q{n}" for n in range(count)]
    with listening(site, takes) as begun:
        return Outcome(f"{begun} began; {enqueued(site, count)}")


def pings(site: Site, count: int) -> Outcome:
    """A viewer sends many pings at once, and reads no answer."""
    return frames(site, b"\x89\x80\x00\x00\x00\x00" * count)


def unmasked(site: Site, count: int) -> Outcome:
    """A viewer sends messages that are not masked."""
    return frames(site, b"\x81\x02{}" * count)


def frames(site: Site, data: bytes) -> Outcome:
    """Open a WebSocket and send frames. Return how many bytes were taken."""
    taken = 0
    with site.connect(site.admin_port) as viewer:
        viewer.sendall(HANDSHAKE)
        viewer.recv(12)
        try:
            while taken < len(data):
                taken += viewer.send(data[taken : taken + 65_536])
        except OSError as error:
            return Outcome(f"{taken >> 10} of {len(data) >> 10} KiB, then {type(error).__name__}")
    return Outcome(f"{taken >> 10} KiB")


def enqueued(site: Site, count: int) -> str:
    """Enqueue jobs one after the other. Return how they were answered."""
    return posted(site, "/jobs", json.dumps(JOB).encode(), count)


def posted(site: Site, path: str, body: bytes, count: int) -> str:
    """Post the same body again and again on one connection. Return how often it was accepted."""
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=PATIENCE)
    accepted = 0
    try:
        for _ in range(count):
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            response.read()
            accepted += 200 <= response.status < 300
    except (OSError, http.client.HTTPException) as error:
        return f"{accepted} accepted, then {type(error).__name__}"
    finally:
        connection.close()
    return f"{accepted} accepted"


ATTACKS = (
    Attack("1500 readers of events that read nothing", events_unread, 1500, 10),
    Attack("1500 readers of other events", events_elsewhere, 1500, 10),
    Attack("300 readers of events with long filters", events_filtered, 300, 10),
    Attack("1000 watch sessions that read nothing", watches_unread, 1000, 5),
    Attack("1500 long polls for one job", polls_answered, 1500, 10),
    Attack("1500 takes of as many sets of queues", takes_of_many_sets, 1500, 10),
    Attack("1000000 pings of a viewer", pings, 1_000_000, 10_000, parts=("admin",)),
    Attack("1000000 unmasked frames of a viewer", unmasked, 1_000_000, 10_000, parts=("admin",)),
)
