"""Thousands of groups of takers that share a queue: how many of them one tick asks."""

from zq.engine.delivery.streams import MOST_GROUPS, Streams
from zq.engine.delivery.takers import Plan, Stream, Subscription
from zq.model.reach import EVERYWHERE

from .test_takers import KEY, job, refuse, result


def opened(streams: Streams, *queues: str) -> Stream:
    return streams.open(queues, EVERYWHERE, Subscription(window=5), 0, lambda: 0)


def asked(streams: Streams) -> list[Plan]:
    """The plans of ticks that find nothing, until no group is hungry."""
    plans = []
    while streams.is_hungry:
        plans.append(streams.plan([]))
        streams.apply(result(*([] for _ in plans[-1].claims)), plans[-1])
    return plans


async def test_a_tick_asks_so_many_groups_and_the_next_one_the_others() -> None:
    streams = Streams(0, 0, refuse)
    for number in range(2 * MOST_GROUPS + 1):
        opened(streams, "q", f"q{number}")
    plans = asked(streams)
    assert [len(plan.claims) for plan in plans] == [MOST_GROUPS, MOST_GROUPS, 1]
    assert len({group for plan in plans for group in plan.groups}) == 2 * MOST_GROUPS + 1


async def test_one_queue_that_has_no_more_jobs_is_not_asked_for_thousands_of_groups() -> None:
    streams = Streams(0, 0, refuse)
    takers = [opened(streams, "q", f"q{number}") for number in range(10 * MOST_GROUPS)]
    asked(streams)
    streams.touch(["q"])
    plan = streams.plan([])
    assert len(plan.claims) == MOST_GROUPS
    got = [[job(KEY, takers[0].number)], *([] for _ in plan.claims[1:])]
    streams.apply(result(*got), plan)
    assert takers[0].held == {KEY: 1}
    assert not streams.is_hungry


async def test_a_group_is_asked_if_another_of_its_queues_was_touched() -> None:
    streams = Streams(0, 0, refuse)
    for number in range(MOST_GROUPS + 1):
        opened(streams, "q", f"q{number}")
    last = opened(streams, "q", "b")
    asked(streams)
    streams.touch(["q"])
    streams.touch(["b"])
    groups = [group for plan in asked(streams) for group in plan.groups]
    assert groups.count(last.group) == 1
    assert len(groups) <= MOST_GROUPS + 1


async def test_what_a_full_claim_has_left_is_there_for_the_others() -> None:
    streams = Streams(0, 0, refuse)
    one, other = opened(streams, "q", "a"), opened(streams, "q", "b")
    asked(streams)
    streams.touch(["q"])
    plan = streams.plan([])
    first = [job(KEY + number, one.number) for number in range(5)]
    second = [job(KEY + 10 + number, other.number) for number in range(5)]
    streams.apply(result(first, second), plan)
    assert (len(one.held), len(other.held)) == (5, 5)

    late = opened(streams, "q", "c")
    assert [plan.groups for plan in asked(streams)] == [[late.group]]


async def test_a_group_with_an_idle_place_is_asked_before_one_whose_places_are_busy() -> None:
    streams = Streams(0, 0, refuse)
    busy, idle = opened(streams, "q", "more"), opened(streams, "q")
    asked(streams)
    streams.touch(["more"])
    plan = streams.plan([])
    streams.apply(result([job(KEY, busy.number)]), plan)
    asked(streams)
    streams.touch(["q"])
    plan = streams.plan([])
    assert plan.groups == [idle.group, busy.group]
    assert [claim.idle for claim in plan.claims] == [1, 0]


async def test_a_group_gives_its_idle_places_work_before_the_windows_of_busy_ones() -> None:
    streams = Streams(0, 0, refuse)
    busy = opened(streams, "q")
    streams.touch(["q"])
    plan = streams.plan([])
    streams.apply(result([job(KEY, busy.number)]), plan)
    idle = opened(streams, "q")
    streams.touch(["q"])
    (claim,) = streams.plan([]).claims
    assert (claim.credits, claim.idle) == (
        [(idle.number, 1), (busy.number, 4), (idle.number, 4)],
        1,
    )
