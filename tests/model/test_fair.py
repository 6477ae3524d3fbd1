"""The formula of fair shares: who is next, and what is bounded."""

import itertools
from collections import Counter
from heapq import heappop, heappush

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zq.features.fair.model import (
    check_key,
    check_weight,
    correction,
    counted,
    finish_of,
    key_from,
    let_through,
    mean_after,
    opens_at,
    paid_after,
    start_of,
)
from zq.model.errors import InvalidRequest
from zq.model.places import check_place, place_at

from .fair_queue import FairQueue


def run(queue: FairQueue, workers: int, lengths: dict[str, float], jobs: int) -> Counter[str]:
    """Let workers take and end jobs, each of its key's length. Return the workers' time by key."""
    running: list[tuple[float, int, tuple[str, int]]] = []
    spent: Counter[str] = Counter()
    now, count = 0.0, itertools.count()
    for _ in range(jobs):
        if len(running) == workers:
            now, _, ended = heappop(running)
            queue.end(ended, lengths[ended[0]])
            spent[ended[0]] += int(lengths[ended[0]])
        job = queue.take()
        assert isinstance(job, tuple)
        heappush(running, (now + lengths[job[0]], next(count), job))
    return spent


def full(jobs: dict[str, int], weights: dict[str, float] | None = None) -> FairQueue:
    queue = FairQueue()
    for key, n in jobs.items():
        for number in range(n):
            queue.put((key, number), key, (weights or {}).get(key, 1))
    return queue


@pytest.mark.parametrize("n", [1, 2, 10, 100])
def test_among_n_keys_the_first_job_of_a_new_one_comes_within_n_deliveries(n: int) -> None:
    queue = full({f"a{each}": 50 for each in range(n - 1)})
    for _ in range(37 * (n > 1)):
        taken = queue.take()
        queue.end(taken, 5)

    queue.put(("b", 0), "b")

    assert ("b", 0) in [queue.take() for _ in range(n)]


def test_a_flood_does_not_delay_the_first_job_of_another_key() -> None:
    queue = full({"a": 5_000})
    for _ in range(100):
        queue.end(queue.take(), 10)
    queue.put(("b", 0), "b")

    assert ("b", 0) in (queue.take(), queue.take())


def test_jobs_of_a_key_with_slow_jobs_count_by_their_time() -> None:
    spent = run(full({"slow": 100, "fast": 2_500}), 10, {"slow": 400, "fast": 20}, 2_000)

    assert spent["slow"] == pytest.approx(spent["fast"], rel=0.15)


def test_slow_jobs_do_not_get_all_workers_while_they_run() -> None:
    """Nothing is known of their length before the first has ended."""
    queue = full({"slow": 100, "fast": 100})
    first = [queue.take() for _ in range(10)]
    for job in first:
        if job == ("slow", 0):
            queue.end(job, 60_000)
    then = Counter(job[0] for job in (queue.take() for _ in range(20)) if isinstance(job, tuple))

    assert then["fast"] >= 15


def test_weights_divide_the_time_of_workers() -> None:
    lengths = {"a": 7.0, "b": 7.0, "c": 7.0}
    queue = full({"a": 900, "b": 900, "c": 900}, {"a": 1, "b": 2, "c": 4})
    spent = run(queue, 8, lengths, 1_400)

    for key, part in (("a", 1), ("b", 2), ("c", 4)):
        assert spent[key] / spent.total() == pytest.approx(part / 7, abs=0.02)


def test_a_key_alone_gets_everything_and_one_that_was_away_saves_nothing_up() -> None:
    queue = full({"a": 100})
    for _ in range(50):
        queue.end(queue.take(), 10)
    for number in range(50):
        queue.put(("b", number), "b")
    taken = [queue.take() for _ in range(20)]
    keys = Counter(job[0] for job in taken if isinstance(job, tuple))

    assert abs(keys["a"] - keys["b"]) <= 2


def test_a_more_urgent_priority_comes_first_whatever_the_shares() -> None:
    queue = full({"a": 3})
    queue.put("urgent", "a", priority=-1)
    queue.put(("b", 0), "b")

    assert queue.take() == "urgent"
    assert queue.take() == ("b", 0)


def test_keys_without_jobs_leave_nothing() -> None:
    queue = full({f"k{each}": 1 for each in range(100)})
    while (job := queue.take()) is not None:
        queue.end(job, 1)

    assert queue.shares == {}


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 10_000)), max_size=50),
    st.floats(0.01, 100),
)
def test_the_formula_of_the_server_is_that_of_the_exact_queue(
    runs: list[tuple[str, float]], weight: float
) -> None:
    queue = full({"a": 50, "b": 50, "c": 50}, {"a": weight, "b": weight, "c": weight})
    virtual, finish, all_mean = 0.0, dict.fromkeys("abc", 0.0), 1.0
    mean: dict[str, float | None] = dict.fromkeys("abc")
    for _, lasted in runs:
        ran = counted(lasted)
        job = queue.take()
        assert isinstance(job, tuple)
        key = job[0]
        start = start_of(virtual, finish[key])
        virtual, charged = max(virtual, start), mean[key] or all_mean
        finish[key] = finish_of(start, charged, weight) + correction(charged, ran, weight)
        mean[key], all_mean = mean_after(mean[key], ran), mean_after(all_mean, ran)
        queue.end(job, lasted)
        assert virtual == pytest.approx(float(queue.virtual), rel=1e-6)


@pytest.mark.parametrize("key", ["", "a" * 201, "a\0b"])
def test_a_key_that_is_none_is_refused(key: str) -> None:
    with pytest.raises(InvalidRequest, match="fair_key"):
        check_key("fair_key", key)


@pytest.mark.parametrize("weight", [0, 0.009, 100.1, -1, float("nan"), float("inf")])
def test_a_weight_out_of_range_is_refused_with_the_range(weight: float) -> None:
    with pytest.raises(InvalidRequest, match=r"must be between 0\.01 and 100, not"):
        check_weight("fair_weight", weight)


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("acme", "acme"),
        (7, "7"),
        (1.5, "1.5"),
        (True, "true"),
        ("", None),
        ("a" * 201, None),
        (None, None),
        ([1], None),
        ({"a": 1}, None),
    ],
)
def test_values_that_give_a_key(value: object, key: str | None) -> None:
    assert key_from(value) == key


@pytest.mark.parametrize(
    ("place", "payload", "meta", "value"),
    [
        ("payload.tenant", '{"x": [1, {"tenant": 2}], "tenant": "acme"}', None, "acme"),
        ("payload.kwargs.user", '{"args": [], "kwargs": {"user": 7}}', None, 7),
        ("meta.user", "1", '{"user": "mia"}', "mia"),
        ("meta.user", "1", None, None),
        ("payload.a", "[1]", None, None),
        ("payload.a", '"text"', None, None),
        ("payload.a.b", '{"a": null}', None, None),
        ("payload.a", "{}", None, None),
    ],
)
def test_a_place_is_read(place: str, payload: str, meta: str | None, value: object) -> None:
    assert place_at(place).read(payload, meta) == value


@pytest.mark.parametrize(
    "place", ["payload", "tenant", "payload.", "payload..a", "header.a", "payload" + ".a" * 9]
)
def test_a_place_that_is_none_is_refused(place: str) -> None:
    with pytest.raises(InvalidRequest, match=r"fair\.key"):
        check_place("fair.key", place)


@pytest.mark.parametrize("rate", [0.3, 1.0, 1.5, 3.0, 7.7, 50.0])
@pytest.mark.parametrize("paid_until", [None, 500.0, 999_900.0, 1_000_000.0, 1_000_400.3, 1_003e3])
def test_a_rate_lets_through_as_many_as_it_opens_for(rate: float, paid_until: float | None) -> None:
    now, passed, paid = 1_000_000, 0, paid_until
    while opens_at(paid, rate) <= now:
        paid = paid_after(paid, now, rate)
        passed += 1
    assert let_through(paid_until, now, rate) == passed
