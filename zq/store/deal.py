"""Who gets which of the jobs that a claim has found."""

from collections import deque
from collections.abc import Mapping, Sequence

from zq.model.job import Job
from zq.model.leasing import Terms

Credits = Sequence[tuple[int, int]]
"""Holders, and how many jobs each can take."""


def deal(jobs: Sequence[Job], credits: Credits, terms: Mapping[int, Terms] | None) -> list[Job]:
    """Give the jobs to the holders in turn, as cards are dealt, until their credit is used up.

    The jobs that were given, which are the first ones: all of them, unless whoever still has credit
    has as many bytes as they take at once.
    """
    rooms = {
        holder: asked.most_bytes
        for holder, asked in (terms or {}).items()
        if asked.most_bytes is not None
    }
    if not rooms:
        _deal_all(jobs, credits)
        return list(jobs)
    return _deal_weighed(jobs, credits, rooms)


def _deal_all(jobs: Sequence[Job], credits: Credits) -> None:
    players = list(credits)
    start = 0
    while start < len(jobs) and players:
        rounds = min(credit for _, credit in players)
        hand = jobs[start : start + rounds * len(players)]
        for seat, (holder, _) in enumerate(players):
            for job in hand[seat :: len(players)]:
                job.holder = holder
        start += len(hand)
        players = [(holder, credit - rounds) for holder, credit in players if credit > rounds]


def _deal_weighed(jobs: Sequence[Job], credits: Credits, rooms: dict[int, int]) -> list[Job]:
    """The same, job by job, as some of the holders have room for so many bytes and no more."""
    players = deque(credits)
    empty = {holder for holder, _ in credits}
    dealt: list[Job] = []
    for job in jobs:
        while players:
            holder, credit = players.popleft()
            room = rooms.get(holder)
            # The first one is given however large it is: it would never be otherwise.
            if room is None or holder in empty or job.payload_size <= room:
                break
        else:
            return dealt
        job.holder = holder
        dealt.append(job)
        empty.discard(holder)
        if room is not None:
            rooms[holder] = room - job.payload_size
        if credit > 1:
            players.append((holder, credit - 1))
    return dealt
