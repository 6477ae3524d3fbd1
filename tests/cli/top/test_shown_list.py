"""The cursor and the known part of a list, while jobs come and go."""

import random

from zq.operators.admin.cli.job_lists import HEAD, ORDERS, ShownList, around
from zq.operators.admin.model import ListName
from zq.operators.admin.wire import AdminJob, OffsetPlace, WindowDocument


def job(number: int, priority: int = 5) -> AdminJob:
    return AdminJob(f"{number:026}", "mail", "send", priority, 1000, 0)


def view(*jobs: AdminJob, first: int = 0, total: int | None = None) -> ShownList:
    made = ShownList(ListName.READY)
    made.show(WindowDocument(list(jobs), first, len(jobs) if total is None else total), len(jobs))
    return made


def test_the_cursor_stays_on_its_row_until_it_is_moved() -> None:
    seen = view(job(1), job(2), job(3))
    seen.drop(job(1).id)
    assert seen.selected == job(2)


def test_a_cursor_that_was_moved_follows_its_job() -> None:
    seen = view(job(1), job(2), job(3))
    seen.move(2)
    seen.drop(job(1).id)
    assert seen.selected == job(3)
    seen.add(job(0))
    seen.add(job(9, priority=0))
    assert seen.selected == job(3)
    assert [each.id for each in seen.items] == [
        *(job(9).id, job(0).id, job(2).id, job(3).id),
    ]


def test_a_followed_job_keeps_its_row_on_the_screen() -> None:
    seen = view(*map(job, range(100)))
    seen.move(50)
    seen.scroll(10)
    row = seen.cursor - seen.top
    for number in range(30):
        seen.drop(job(number).id)
    seen.scroll(10)
    assert (seen.selected, seen.cursor - seen.top) == (job(50), row)


def test_when_the_followed_job_leaves_the_list_the_cursor_stays_on_the_row() -> None:
    seen = view(job(1), job(2), job(3))
    seen.move(1)
    seen.drop(job(2).id)
    assert (seen.selected, seen.followed, seen.wanted()) == (job(3), None, None)


def test_a_followed_job_that_left_the_known_part_is_looked_for() -> None:
    seen = view(*map(job, range(40)), total=1000)
    seen.move(20)
    seen.show(WindowDocument([job(each, priority=1) for each in range(100, 140)], 0, 1040), 40)
    assert seen.wanted() == around(job(20).id)


def test_more_is_asked_for_before_the_edge_is_reached() -> None:
    seen = view(*map(job, range(100, 160)), first=100, total=1000)
    assert seen.wanted() == OffsetPlace(70)
    seen.move(30)
    assert seen.wanted() is None
    seen.move(20)
    assert seen.wanted() == OffsetPlace(120)


def test_nothing_is_asked_for_at_the_ends_of_a_list() -> None:
    seen = view(*map(job, range(60)), total=60)
    assert seen.wanted() is None
    seen.move(100)
    assert (seen.cursor, seen.wanted(), seen.anchor) == (59, None, HEAD)


def test_a_followed_job_that_falls_out_at_the_front_is_looked_for() -> None:
    seen = view(*map(job, range(100, 160)), first=100, total=1000)
    seen.move(20)
    for number in range(100, 121):
        seen.drop(job(number).id)
    assert seen.wanted() == around(job(120).id)


def test_the_order_of_the_list_holds_whatever_comes_and_goes() -> None:
    draw = random.Random(7)
    seen, known = ShownList(ListName.READY), dict[str, AdminJob]()
    for _ in range(500):
        each = job(draw.randrange(50), draw.randrange(3))
        if draw.random() < 0.6:
            known[each.id] = each
            seen.add(each)
        else:
            known.pop(each.id, None)
            seen.drop(each.id)
        assert seen.items == sorted(known.values(), key=ORDERS[ListName.READY])
        followed = seen.followed
        assert followed is None or seen.selected == followed
        seen.move(draw.randrange(-2, 3))
