"""A misspelt name in a program is an error: in the library's objects, and on the wire."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conformance.site import Site

import zq
from zq.client.http.address import Address
from zq.client.http.aio import AioTransport
from zq.client.http.transport import Request
from zq.client.values import Dedupe, Submission

APP = zq.App()


@APP.task
def task() -> None: ...


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (APP.task, "dedup"),
        (task.options, "dedup"),
        (lambda **odd: APP.periodic("@daily", **odd)(print), "timezon"),
        (partial(APP.queue, "q"), "kee"),
        (partial(zq.Budget, "b"), "cst"),
        (partial(Dedupe, "x"), "window"),
        (partial(Submission, "q", "t", 1), "dedup"),
    ],
)
def test_objects_of_the_library_refuse_what_they_do_not_know(made: Any, name: str) -> None:
    with pytest.raises((TypeError, zq.InvalidOption), match=name):
        made(**{name: 1})


def test_an_embedded_queue_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    queue: Any = zq.App(f"sqlite://{tmp_path}/data").queue("q").sync
    with pytest.raises((TypeError, zq.InvalidOption), match="dedup"):
        queue.enqueue("id", {}, dedup="x")


async def test_a_request_of_the_library_is_strict(site: Site) -> None:
    transport = AioTransport(Address(site.url))
    body = b'{"queue":"q","type":"t","payload":1,"dedup":{"id":"x"}}'
    reply = await transport.send(Request("POST", "/jobs", body))
    assert (reply.status, reply.headers["zq-error"]) == (400, "unknown_field")
    await transport.close()
