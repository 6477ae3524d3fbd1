"""Attacks on what a listener keeps for its clients: cookies, sessions, and places."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator

from bench.attacks.site import Attack, Outcome, Site

KEYS = {"operator": "read,manage", "worker": "take"}


def long_cookie(site: Site, count: int) -> Outcome:
    """A cookie of backslashes in quotes, without a key."""
    cookie = 'a="' + "\\" * count + '"; b=1'
    reply = site.request("GET", "/ui/api/queues", port=site.admin_port, headers={"Cookie": cookie})
    return Outcome(f"{reply.status or reply.text}")


def many_sign_ins(site: Site, count: int) -> Outcome:
    """Sign-ins with a key that the page cannot use, while an operator is signed in."""
    operator = sign_in(site, "operator")
    answers = {sign_in(site, "worker") for _ in range(count)}
    return Outcome(f"operator {operator}, others {', '.join(map(str, sorted(answers)))}")


def sign_in(site: Site, key: str) -> int:
    body = json.dumps({"key": site.secrets[key]}).encode()
    return site.request("POST", "/ui/session", body, port=site.admin_port).status


def idle_admin(site: Site, count: int) -> Outcome:
    """Connections to the admin listener that ask for nothing, while an operator comes."""
    with idle(site.admin_port, count):
        reply = site.request("GET", "/health", port=site.admin_port)
    return Outcome(f"an operator gets {reply.status or reply.text}")


def idle_grpc(site: Site, count: int) -> Outcome:
    """Connections to the port of gRPC that ask for nothing."""
    with idle(site.grpc_port, count) as opened:
        reply = site.request("GET", "/health")
    return Outcome(f"{opened} opened, another client gets {reply.status or reply.text}")


@contextlib.contextmanager
def idle(port: int, count: int) -> Iterator[int]:
    """So many connections, as far as the listener takes them."""
    with contextlib.ExitStack() as stack:
        opened: list[socket.socket] = []
        with contextlib.suppress(OSError):
            while len(opened) < count:
                one = socket.create_connection(("127.0.0.1", port), 5.0)
                opened.append(stack.enter_context(one))
        yield len(opened)


ATTACKS = (
    Attack("cookie of 40 KB", long_cookie, 40_000, 4_000, keys=KEYS, parts=("admin",)),
    Attack("1,000 sign-ins of a worker", many_sign_ins, 1_000, 10, keys=KEYS, parts=("admin",)),
    Attack("200 idle connections to the admin listener", idle_admin, 200, 140, parts=("admin",)),
    Attack("1400 idle connections to gRPC", idle_grpc, 1_400, 20, parts=("grpc",)),
)
