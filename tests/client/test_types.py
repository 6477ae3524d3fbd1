"""Annotations: each is honoured by every wire, or refused where the task is declared."""

import collections
import dataclasses
import enum
import sys
import typing
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence, Set
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    TypedDict,
    Unpack,
)
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest
from annotated_types import Gt
from conformance.site import Site
from conformance.streams import PATIENCE_S
from documents import region

import zq
from zq.client.app import App
from zq.client.formats import JSON, MSGPACK
from zq.client.hints import Unsupported
from zq.client.types import converter
from zq.client.unions import shown

from .workers import finish

T = typing.TypeVar("T")
D = typing.TypeVar("D", bound=date)
UserId = NewType("UserId", UUID)
U = UUID(int=7)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Size(enum.IntEnum):
    SMALL = 1


class Kind(enum.StrEnum):
    NEW = "new"


class Pair(enum.Enum):
    BOTH = (1, 2)


class Point(NamedTuple):
    x: int
    at: date


class Row(TypedDict):
    id: UUID
    note: NotRequired[str]


@dataclasses.dataclass
class Stock:
    by_id: dict[int, float]


@dataclasses.dataclass
class Box(Generic[T]):
    value: T


@dataclasses.dataclass
class Lost:
    path: Path


@attrs.define
class Attrs:
    id: UUID


@attrs.define
class Private:
    _id: int


@dataclasses.dataclass
class Positive:
    n: Annotated[int, Gt(0)]


class Made(msgspec.Struct, tag="made"):
    id: UUID


class Gone(msgspec.Struct, tag="gone"):
    why: str


class Aliased(pydantic.BaseModel):
    name: str = pydantic.Field(alias="fullName")

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def short(self) -> str:
        return self.name[:1]

    model_config = pydantic.ConfigDict(extra="forbid")


class Strict(pydantic.BaseModel):
    at: datetime

    model_config = pydantic.ConfigDict(strict=True)


class TwoAliases(pydantic.BaseModel):
    n: int = pydantic.Field(validation_alias="in", serialization_alias="out")


class Renamed(pydantic.BaseModel):
    n: int = pydantic.Field(alias="N")
    inner: Aliased

    model_config = pydantic.ConfigDict(extra="forbid", serialize_by_alias=True)


class Cat(pydantic.BaseModel):
    kind: Literal["cat"] = "cat"
    name: str


class Dog(pydantic.BaseModel):
    kind: Literal["dog"] = "dog"
    name: str


class Named(pydantic.BaseModel):
    name: str


class NamedToo(pydantic.BaseModel):
    name: str
    nick: str = ""


class HasText(pydantic.BaseModel):
    at: list[datetime | str]


class LeftOut(pydantic.BaseModel):
    n: int = pydantic.Field(1, exclude=True)


class HasLeftOut(pydantic.BaseModel):
    parts: list[LeftOut]


@dataclasses.dataclass
class Holder:
    part: LeftOut | None


class Account(pydantic.BaseModel):
    password: pydantic.SecretStr


class Nested(pydantic.BaseModel):
    accounts: list[Account]


HONOURED: list[tuple[Any, Any]] = [
    (int, 1),
    (float, 2),
    (str, "ž"),
    (bool, True),
    (None, None),
    (Any, {"a": [1, None]}),
    (object, "x"),
    (bytes, b"\0\xff"),
    (datetime, NOW),
    (date, NOW.date()),
    (time, time(3, 4, 5)),
    (timedelta, timedelta(seconds=90)),
    (Decimal, Decimal("1.50")),
    (UUID, U),
    (Size, Size.SMALL),
    (Kind, Kind.NEW),
    (Literal["a", 1], "a"),
    (list[int], [1, 2]),
    (set[int], {1, 2}),
    (frozenset[UUID], frozenset([U])),
    (tuple[int, date], (1, NOW.date())),
    (tuple[int, ...], (1, 2, 3)),
    (dict[str, int], {"a": 1}),
    (dict[int, float], {1: 2.5}),
    (dict[UUID, int], {U: 1}),
    (dict[Size, int], {Size.SMALL: 4}),
    (dict[date, list[int]], {NOW.date(): [1]}),
    (Iterable[UUID], [U]),
    (Sequence[date], [NOW.date()]),
    (Mapping[str, date], {"a": NOW.date()}),
    (Mapping, {"a": 1}),
    (typing.Mapping, {"a": [1]}),
    (Set[int], {1}),
    (int | None, None),
    (int | str, "1"),
    (UUID | list[UUID], [U]),
    (Decimal | float, Decimal("1.5")),
    (Made | Gone, Gone("lost")),
    (Point, Point(1, NOW.date())),
    (Row, {"id": U}),
    (Stock, Stock({1: 2.5})),
    (Box[UUID], Box(U)),
    (Attrs, Attrs(U)),
    (UserId, U),
    (D, NOW.date()),
    (T, [1]),
    (Annotated[int, msgspec.Meta(ge=1)], 1),
    (Annotated[int, Gt(0)], 1),
    (Annotated[str, "a note"], "x"),
    (Aliased, Aliased(fullName="Ann")),
    (list[Aliased], [Aliased(fullName="Ann")]),
    (Strict, Strict(at=NOW)),
    (Renamed, Renamed(N=1, inner=Aliased(fullName="Ann"))),
    (Positive, Positive(1)),
    (Cat | Dog, Dog(name="x")),
    (Cat | None, None),
    (list[Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]], [Dog(name="x")]),
    (Cat | int, 5),
    (Renamed | Cat, Cat(name="x")),
]

REFUSED: list[tuple[Any, str]] = [
    (str | UUID, "JSON would not tell str from UUID: choose one of them"),
    (datetime | str | None, "JSON would not tell datetime from str: choose one of them"),
    (Kind | str, "JSON would not tell Kind from str: choose one of them"),
    (Size | int, "JSON would not tell Size from int: choose one of them"),
    (Stock | Attrs, "JSON would not tell Stock from Attrs: choose one of them, or use"),
    (Stock | dict[str, Any], "JSON would not tell Stock from dict[str, Any]: choose one"),
    (list[int] | set[int], "JSON would not tell list[int] from set[int]: choose one of them"),
    (dict[str, list[str | bytes]], "JSON would not tell str from bytes: choose one of them"),
    (Named | NamedToo, "JSON would not tell Named from NamedToo: choose one of them, or give"),
    (Named | dict[str, str], "JSON would not tell Named from dict[str, str]: choose one of them"),
    (Named | Stock, "JSON would not tell Named from Stock: choose one of them"),
    (list[HasText], "JSON would not tell datetime from str: choose one of them"),
    (Pair, "all str or all int"),
    (Path, "Path cannot be made from JSON"),
    (Lost, "Path cannot be made from JSON"),
    (complex, "complex cannot be made from JSON"),
    (collections.defaultdict[str, date], "defaultdict cannot be made from JSON"),
    (collections.deque[int], "deque cannot be made from JSON"),
    (dict[tuple[int, int], str], "keys of JSON's objects are texts"),
    (dict[bool, str], "keys of JSON's objects are texts"),
    (TwoAliases, "the field n of TwoAliases is written as 'out' and read as 'in'"),
    (dict[int | str, str], "keys of JSON's objects are texts"),
    (Private, "the field _id of Private is private"),
    (list[Private], "the field _id of Private is private"),
    (LeftOut, "the field n of LeftOut has exclude=True"),
    (dict[str, HasLeftOut], "the field n of LeftOut has exclude=True"),
    (list[Holder], "the field n of LeftOut has exclude=True"),
    (Account, "stored readable or as stars"),
    (Nested, "stored readable or as stars"),
]


def row(*cells: str) -> str:
    return "".join(f"| {cell} " for cell in cells) + "|"


def quoted(text: str) -> str:
    """A cell of code."""
    return "`" + text.replace("|", "\\|") + "`"


def table_of_honoured() -> str:
    """Each annotation with a value as it travels."""
    rows = [row("Annotation", "A value in JSON"), "|---|---|"]
    for annotation, value in HONOURED:
        # What stands in a field of pydantic differs between its versions.
        if "FieldInfo" not in shown(annotation):
            rows.append(row(quoted(shown(annotation)), quoted(JSON.encode(value).decode())))
    return "\n".join(rows)


def table_of_refused() -> str:
    """Each annotation with the end of the message."""
    rows = [row("Annotation", "Message"), "|---|---|"]
    rows += [row(quoted(shown(each)), refusal(each).replace("|", "\\|")) for each, _ in REFUSED]
    return "\n".join(rows)


def refusal(annotation: Any) -> str:
    with pytest.raises(Unsupported) as refused:
        converter(annotation)
    return str(refused.value)


def test_the_tables_of_the_documents_are_what_these_tests_show() -> None:
    assert region("types that are honoured") == table_of_honoured()
    assert region("types that are refused") == table_of_refused()


def named(case: tuple[Any, Any]) -> str:
    return str(case[0])


@pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=["json", "msgpack"])
async def test_values_arrive_as_annotated_and_come_back_so(site: Site, codec: Any) -> None:
    async with App(site.url, codec=codec) as app:
        await arrive(app)


async def test_values_arrive_as_annotated_in_the_program_itself() -> None:
    async with App("sqlite://:memory:") as app:
        await arrive(app)


async def arrive(app: App) -> None:
    """Call a task for each annotation that is honoured."""
    got: dict[int, Any] = {}
    jobs = []
    for number, (annotation, value) in enumerate(HONOURED):

        async def work(x: Any, number: int = number) -> Any:
            got[number] = x
            return x

        work.__annotations__ = {"x": annotation, "return": annotation}
        task = app.task(name=f"t{number}", result_ttl=60, max_attempts=1)(work)
        jobs.append(await task.enqueue(value))
    await finish(app, concurrency=8)
    for number, (annotation, value) in enumerate(HONOURED):
        came = await jobs[number].result(PATIENCE_S)
        assert (got[number], type(got[number])) == (value, type(value)), annotation
        assert (came, type(came)) == (value, type(value)), annotation


@pytest.mark.parametrize("case", REFUSED, ids=named)
def test_what_json_cannot_give_back_is_refused_where_it_is_declared(
    case: tuple[Any, str], app: App
) -> None:
    annotation, words = case

    def work(x: Any) -> None: ...

    def back() -> Any: ...

    work.__annotations__ = {"x": annotation}
    back.__annotations__ = {"return": annotation}
    with pytest.raises(zq.InvalidOption, match="work: the parameter 'x' of the type") as refusal:
        app.task(work)
    assert words in refusal.value.message
    with pytest.raises(zq.InvalidOption, match="back: its result of the type"):
        app.task(back)
    with pytest.raises(zq.InvalidOption, match="the payload of the queue 'q': "):
        app.queue("q", payload=annotation)
    assert not app.tasks


async def test_arguments_without_names_of_their_own_are_converted_too(app: App) -> None:
    got: list[Any] = []

    @app.task
    async def many(*ids: UUID, **days: date) -> None:
        got.append((ids, days))

    @app.task
    async def options(**row: Unpack[Row]) -> None:
        got.append(row)

    await many.enqueue(U, U, first=NOW.date())
    await options.enqueue(id=U, note="x")
    await options.enqueue(id=5)  # type: ignore[arg-type]
    outcomes = await finish(app)
    assert got == [((U, U), {"first": NOW.date()}), {"id": U, "note": "x"}]
    assert [each.status for each in outcomes] == ["completed", "completed", "dead"]


async def test_constraints_are_held_to(app: App) -> None:
    @app.task
    async def work(n: Annotated[int, Gt(0)]) -> None: ...

    @app.task
    async def within(x: list[Positive]) -> None: ...

    await work.enqueue(0)
    await within.enqueue([Positive(0)])
    for outcome in await finish(app):
        assert (outcome.status, outcome.attempts) == ("dead", 1)
        assert outcome.error is not None
        assert "greater than 0" in outcome.error.message


def test_keys_that_would_come_back_as_texts_are_refused(app: App) -> None:
    @app.task
    def work(x: Mapping, y: Any = None, *z: dict[Any, int]) -> None: ...  # type: ignore[type-arg]

    work.args({"1": {2: 3}}, {1: 2}, {"1": 2})
    with pytest.raises(zq.InvalidPayload, match=r"work: x: .* annotate dict\[int, …\]"):
        work.args({1: 2})
    with pytest.raises(zq.InvalidPayload, match=r"work: z: .* annotate dict\[int, …\]"):
        work.args({}, None, {1: 2})


async def test_a_class_of_the_block_that_declares_a_task_is_known(app: App) -> None:
    @dataclasses.dataclass
    class Local:
        at: date

    def work(x: "Local") -> "Local":
        return x

    async with app:
        job = await app.task(result_ttl=60)(work).enqueue(Local(NOW.date()))
        await finish(app)
        assert await job.result(PATIENCE_S) == Local(NOW.date())


def typed(app: App, function: Any) -> Any:
    """A decorator of a program's own, which makes the task."""
    return app.task(result_ttl=60)(function)


async def test_a_local_class_is_known_behind_a_decorator_of_the_program(app: App) -> None:
    @dataclasses.dataclass
    class Local:
        at: date

    def declare() -> Any:
        def work(x: "list[Local]") -> "Local":
            return x[0]

        return typed(app, work)

    job = await declare().enqueue([Local(NOW.date())])
    await finish(app)
    assert await job.result(PATIENCE_S) == Local(NOW.date())


Declare = Callable[[str], dict[str, Any]]


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch) -> Declare:
    """Runs the text of a module, which may use `app`. Returns the module's names."""

    def declare(text: str) -> dict[str, Any]:
        module = ModuleType("declared")
        monkeypatch.setitem(sys.modules, "declared", module)
        names = vars(module)
        names["app"] = zq.App("sqlite://:memory:")
        exec(compile(text, "declared", "exec"), names)
        return names

    return declare


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("work: the parameter 'x' of the type UUID", "def work(x: UUID) -> int: ..."),
        ("work: the parameter 'x' of the type list.UUID.", "def work(x: list[UUID]) -> int: ..."),
        ("work: its result of the type UUID", "def work(x: int) -> UUID: ..."),
    ],
)
def test_a_name_for_type_checkers_only_is_told_where_the_task_is_declared(
    what: str, text: str, declare: Declare
) -> None:
    head = "from __future__ import annotations\nfrom typing import TYPE_CHECKING\n"
    head += "if TYPE_CHECKING:\n    from uuid import UUID\n"
    with pytest.raises(
        zq.InvalidOption, match=rf"^{what}: 'UUID' is not there .* outside of `if TYPE_CHECKING`"
    ):
        declare(f"{head}@app.task\n{text}\n")


async def test_a_class_that_its_module_defines_below_the_task_is_known_later(
    declare: Declare,
) -> None:
    text = """
from __future__ import annotations
import dataclasses
from datetime import date
@app.task(result_ttl=60)
def work(x: Below) -> Below: return x
@dataclasses.dataclass
class Below:
    at: date
"""
    names = declare(text)
    async with names["app"] as app:
        job = await names["work"].enqueue(names["Below"](NOW.date()))
        await finish(app)
        assert await job.result(PATIENCE_S) == names["Below"](NOW.date())


def test_a_class_that_is_defined_below_and_cannot_be_sent_stops_the_worker(
    declare: Declare,
) -> None:
    text = """
@app.task
def work(x: "Below") -> None: ...
class Below: ...
"""
    app = declare(text)["app"]
    with pytest.raises(zq.InvalidOption, match=r"^work: the parameter 'x' .* Below cannot be made"):
        zq.Worker(app)


@pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=["json", "msgpack"])
@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")], ids=str)
async def test_a_float_that_is_no_number_is_refused_by_its_place(
    site: Site, codec: Any, number: float
) -> None:
    async with App(site.url, codec=codec) as app:

        @app.task(result_ttl=60, max_attempts=1)
        async def work(x: Any, y: Any = None) -> Any:
            return {"rate": number} if x == "back" else 5

        with pytest.raises(zq.InvalidPayload, match=rf"work: y: .*: b is {number}, and JSON"):
            await work.enqueue(None, {"a": 1.5, "b": number})
        bad, good = await work.enqueue("back"), await work.enqueue(1.5)
        await finish(app, concurrency=2)
        assert await good.result(PATIENCE_S) == 5
        with pytest.raises(zq.JobFailed, match=rf"rate is {number}, and JSON has no"):
            await bad.result(PATIENCE_S)


async def test_a_model_with_a_secret_is_refused_where_nothing_is_annotated(app: App) -> None:
    @app.task
    async def work(x: Any) -> None: ...

    with pytest.raises(zq.InvalidPayload, match="stored readable or as stars"):
        await work.enqueue(Account(password=pydantic.SecretStr("x")))


@pytest.mark.parametrize("where", ["json", "msgpack", "embedded"])
async def test_an_argument_that_cannot_be_sent_is_named_by_its_parameter(
    site: Site, where: str
) -> None:
    codec = MSGPACK if where == "msgpack" else JSON
    url = "sqlite://:memory:" if where == "embedded" else site.url
    async with App(url, codec=codec) as app:

        @app.task
        async def work(n: int, x: Any = None, *more: Any, **named: Any) -> None: ...

        wrong: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
            ((1, float("nan")), {}, "work: x: .*it is nan"),
            ((1,), {"x": {"a": [float("inf")]}}, r"work: x: .*a\[0\] is inf"),
            ((1, 2, object), {}, "work: more: .*type cannot be sent"),
            ((1,), {"y": {2: object()}}, "work: named: .*object cannot be sent"),
        ]
        for args, kwargs, words in wrong:
            with pytest.raises(zq.InvalidPayload, match=words):
                await work.enqueue(*args, **kwargs)
            with pytest.raises(zq.InvalidPayload, match=words) as failure:
                await work.enqueue_many([work.args(1), work.args(*args, **kwargs)])
            assert failure.value.__notes__ == ["0 of the jobs were stored before that"]
            with pytest.raises(zq.InvalidPayload, match=words):
                await work.call(*args, **kwargs)
        assert await app.backend.count() == 0


async def test_the_handler_of_a_queue_without_a_type_is_held_to_its_own(app: App) -> None:
    got: list[Any] = []
    queue, sums = app.queue("q"), app.queue("sums")

    @queue.handler
    async def handle(stock: Stock, job: zq.Running[Stock]) -> None:
        got.append((stock, job.payload))

    @sums.handler
    async def add_up(n: int) -> None:
        raise AssertionError

    await queue.enqueue("a", Stock({1: 2.5}))
    await sums.enqueue("a", "1")
    outcomes = {each.job.queue: each for each in await finish(app)}

    assert got == [(Stock({1: 2.5}), Stock({1: 2.5}))]
    assert (outcomes["sums"].status, outcomes["sums"].attempts) == ("dead", 1)
    assert outcomes["sums"].error is not None
    assert "Expected `int" in outcomes["sums"].error.message
    with pytest.raises(zq.InvalidOption, match="the payload of the queue 'q': Path cannot"):

        @queue.handler
        async def wrong(path: Path) -> None: ...


async def test_a_default_of_none_makes_none_a_value(app: App) -> None:
    got: list[Any] = []

    @app.task
    async def work(n: int = None, at: date = None) -> None:  # type: ignore[assignment]  # noqa: RUF013
        got.append((n, at))

    loosely: Any = work
    await loosely.enqueue()
    await loosely.enqueue(None, NOW.date())
    await loosely.enqueue(at=None, n=1)
    await loosely.options(batch=zq.Batch.last("b")).enqueue(n=2)
    await finish(app)
    assert got == [(None, None), (None, NOW.date()), (1, None), (2, None)]
    with pytest.raises(
        zq.InvalidPayload, match=r"work: n: Expected `bool \| int \| null`, got `str`"
    ):
        work.args("1")  # type: ignore[arg-type]


async def test_a_function_may_say_that_it_returns_what_is_awaited(app: App) -> None:
    def work(at: date) -> Awaitable[date]:
        async def later() -> date:
            return at

        return later()

    def begin(at: date) -> Coroutine[Any, Any, date]:
        return begin_later(at)

    async def begin_later(at: date) -> date:
        return at

    jobs = [
        await app.task(result_ttl=60)(function).enqueue(NOW.date()) for function in (work, begin)
    ]
    await finish(app)
    assert [await job.result(PATIENCE_S) for job in jobs] == [NOW.date()] * 2
