"""Tasks that other programs call: over HTTP, on the command line, in other languages."""

import enum
import re
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
import pytest
from conformance.site import Site

import zq
from zq.client.app import App
from zq.client.values import Submission
from zq.model.job import Retention

from .workers import finish


class Person(msgspec.Struct):
    name: str
    born: datetime


@pytest.mark.parametrize(
    ("payload", "call"),
    [
        ({"to": "ann", "locale": "cs"}, (("ann",), "cs")),
        (["ann", "bob"], (("ann", "bob"), "en")),
        ("ann", (("ann",), "en")),
        (7, ((7,), "en")),
        (False, ((False,), "en")),
        (None, ((), "en")),
        ([], ((), "en")),
        ([["ann"]], ((["ann"],), "en")),
        ({"args": ["ann"], "kwargs": {"locale": "cs"}}, (("ann",), "cs")),
    ],
)
async def test_a_call_may_come_from_anybody(app: App, payload: Any, call: Any) -> None:
    @app.task
    async def named(to: Any, locale: str = "en") -> Any:
        return [[to], locale]

    @app.task
    async def spread(*to: Any, locale: str = "en") -> Any:
        return [list(to), locale]

    kind = "named" if isinstance(payload, dict) else "spread"
    (job,) = await app.backend.enqueue(
        [Submission("default", kind, payload, retention=Retention(60_000, None))]
    )
    await finish(app)

    assert (await app.backend.result(job.id, 0)).result == [list(call[0]), call[1]]


async def test_values_that_anybody_sends_are_made_into_what_is_annotated(app: App) -> None:
    got: list[Any] = []

    @app.task
    async def work(person: Person, photo: bytes = b"") -> None:
        got.append((person, photo))

    @app.task
    async def store(photo: bytes) -> None:
        got.append(photo)

    ann = {"name": "Ann", "born": "2000-01-02T00:00:00Z"}
    sent = Submission("default", "work", {"person": ann, "photo": "AP8="})
    posted = Submission("default", "store", "AP8=", content_type="application/octet-stream")
    await app.backend.enqueue([sent, posted])
    await finish(app)

    person = Person(name="Ann", born=datetime(2000, 1, 2, tzinfo=UTC))
    assert got == [(person, b"\0\xff"), b"\0\xff"]


@pytest.mark.parametrize("payload", [{}, None, {"at": 1}, {"args": [], "kwargs": {}}])
async def test_a_call_that_does_not_fit_tells_why_and_is_not_tried_again(
    app: App, payload: Any
) -> None:
    @app.task
    async def send(to: int, at: int = 0) -> None:
        raise AssertionError

    await app.backend.enqueue([Submission("default", "send", payload)])
    (outcome,) = await finish(app)

    assert (outcome.status, outcome.attempts) == ("dead", 1)
    assert outcome.error is not None
    assert outcome.error.error_type == "InvalidPayload"
    assert "send: " in outcome.error.message
    assert "an object holds named arguments" in outcome.error.message


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize(
    "payload", [["1", "2"], {"a": 1, "b": "2"}, {"args": [1], "kwargs": {"b": None}}]
)
async def test_plain_types_are_held_to_where_a_job_comes_from_elsewhere(
    site: Site, payload: Any, checks: bool
) -> None:
    app = zq.App(site.url, check_calls=checks)

    @app.task
    def add(a: int, b: int) -> str:
        return f"{a}{b}"

    async with app:
        await app.backend.enqueue([Submission("default", "add", payload)])
        (outcome,) = await finish(app)
    if not checks:
        assert outcome.ok
        return
    assert (outcome.status, outcome.attempts) == ("dead", 1)
    assert outcome.error is not None
    assert "add: " in outcome.error.message
    assert "Expected `int" in outcome.error.message


class Level(enum.StrEnum):
    LOW = "low"


async def test_a_call_with_an_argument_of_another_type_is_refused_at_once(app: App) -> None:
    @app.task
    async def send(
        to: str,
        copies: int = 1,
        *,
        ratio: float = 1.0,
        tags: list[str] | None = None,
        counts: dict[str, list[int]] | None = None,
        level: Literal["low", "high"] = "low",
        free: Any = None,
        moment: datetime | None = None,
    ) -> None: ...

    refused: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((1,), {}, "to: Expected `str`, got `int`"),
        (("a", "b"), {}, "copies: Expected `int`, got `str`"),
        (("a",), {"copies": 1.5}, "copies: Expected"),
        (("a",), {"ratio": "1"}, "ratio: Expected"),
        (("a",), {"tags": "b"}, "tags: Expected `array | null`, got `str`"),
        (("a",), {"tags": ["b", 1]}, "tags: Expected `str`, got `int` - at `$[1]`"),
        (("a",), {"counts": {"b": [1, "c"]}}, "counts: Expected"),
        (("a",), {"level": "middle"}, "level: Invalid enum value 'middle'"),
        ((None,), {}, "to: Expected `str`, got `null`"),
    ]
    for args, kwargs, words in refused:
        with pytest.raises(zq.InvalidPayload) as failure:
            await send.enqueue(*args, **kwargs)
        assert failure.value.message.startswith(f"{send.__qualname__}: {words}")
        with pytest.raises(zq.InvalidPayload):
            send.args(*args, **kwargs)
    assert await app.backend.count() == 0

    fine: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (("a", True), {"ratio": 1}),
        ((Level.LOW,), {"tags": (Level.LOW,), "counts": {"b": [1, True]}}),
        (("a",), {"level": "high", "free": [datetime.now(UTC)], "tags": None}),
        (("a",), {"moment": 5}),
    ]
    for args, kwargs in fine:
        await send.enqueue(*args, **kwargs)
    assert await app.backend.count() == len(fine)


def test_annotations_of_any_number_of_arguments_hold_for_each(app: App) -> None:
    @app.task
    def send(to: str, /, *copies: int, free: Any = None, **ratios: float) -> None: ...

    refused: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        (("a", 1, "b"), {}, "copies: Expected `int`, got `str`"),
        (("a",), {"free": [], "one": "b"}, "ratios: Expected"),
        (("a",), {"to": "b"}, "ratios: Expected"),
    ]
    for args, kwargs, words in refused:
        with pytest.raises(zq.InvalidPayload, match=f"send: {re.escape(words)}"):
            send.args(*args, **kwargs)
    send.args("a", 1, True, free=object, one=1, two=0.5)


async def test_an_app_may_leave_calls_unchecked(site: Site) -> None:
    async with App(site.url, check_calls=False) as app:

        @app.task
        async def send(to: str) -> None: ...

        await send.enqueue(1)  # type: ignore[arg-type]
        assert await app.backend.count() == 1


async def test_a_variable_leaves_calls_unchecked_unless_the_app_says_otherwise(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send(to: str) -> None: ...

    monkeypatch.setenv("ZQ_CHECK_CALLS", "No")
    async with App(site.url) as app, App(site.url, check_calls=True) as strict:
        await app.task(send).enqueue(1)  # type: ignore[arg-type]
        with pytest.raises(zq.InvalidPayload, match="to"):
            await strict.task(send).enqueue(1)  # type: ignore[arg-type]
        assert await app.backend.count() == 1

    monkeypatch.setenv("ZQ_CHECK_CALLS", "maybe")
    with pytest.raises(zq.InvalidOption, match=r"^ZQ_CHECK_CALLS='maybe': give yes or no$"):
        App(site.url)
