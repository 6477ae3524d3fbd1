"""Arguments and results of tasks: made into what is annotated, or refused."""

import dataclasses
import enum
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import pydantic
import pytest

import zq
from zq.client.app import App
from zq.client.values import JobQuery, Submission

from .workers import finish


class Colour(enum.Enum):
    RED = "red"


class Point(msgspec.Struct):
    x: int
    y: int = 0


@dataclasses.dataclass
class Box:
    low: Point
    high: Point


class Person(pydantic.BaseModel):
    name: str
    born: datetime


async def test_arguments_and_results_are_made_into_what_is_annotated(app: App) -> None:
    got: list[Any] = []
    born = datetime(2000, 1, 2, tzinfo=UTC)

    @app.task
    async def work(
        box: Box,
        people: list[Person],
        colour: Colour | None,
        at: datetime,
        raw: bytes = b"",
        *,
        ids: set[UUID],
    ) -> Box:
        got.extend((box, people, colour, at, raw, ids))
        return box

    box = Box(Point(1), Point(2, 3))
    person = Person(name="Ann", born=born)
    job = await work.enqueue(box, [person], Colour.RED, born, b"\0\xff", ids={UUID(int=1)})
    await finish(app)

    assert got == [box, [person], Colour.RED, born, b"\0\xff", {UUID(int=1)}]
    assert await job.result() == box


async def test_a_model_comes_back_from_a_task(app: App) -> None:
    @app.task
    async def find(name: str) -> Person | None:
        return Person(name=name, born=datetime(2000, 1, 2, tzinfo=UTC)) if name else None

    known, unknown = await find.enqueue("Ann"), await find.enqueue("")
    await finish(app)

    person = await known.result()
    assert isinstance(person, Person)
    assert person.name == "Ann"
    assert await unknown.result() is None


async def test_a_wrong_value_for_an_annotated_parameter_is_not_tried_again(app: App) -> None:
    @app.task
    async def greet(person: Person) -> None:
        raise AssertionError

    wrong: Any = greet
    await wrong.enqueue({"name": "Ann"})
    (outcome,) = await finish(app)

    assert (outcome.status, outcome.attempts) == ("dead", 1)
    assert outcome.error is not None
    assert outcome.error.error_type == "InvalidPayload"
    assert "born" in outcome.error.message
    assert "greet: person" in outcome.error.message


async def test_a_payload_that_is_no_call_is_not_tried_again(app: App) -> None:
    @app.task
    async def work(point: Point) -> None:
        raise AssertionError

    nonsense: list[Any] = [None, {}, 5]
    await app.backend.enqueue([Submission("default", "work", each) for each in nonsense])
    outcomes = await finish(app)

    assert [each.status for each in outcomes] == ["dead"] * 3


async def test_what_is_no_data_cannot_be_enqueued(app: App) -> None:
    @app.task
    async def work(value: object) -> None: ...

    for value in (object(), lambda: None, open):
        with pytest.raises(zq.InvalidPayload, match="cannot be sent"):
            await work.enqueue(value)
    assert await app.backend.count(JobQuery()) == 0
