"""The settings of all queues, as the writer has them in memory while it decides about jobs."""

import sqlite3
from collections.abc import Mapping
from typing import Self

import msgspec

from zq.model.errors import DeadLetterCycle
from zq.model.settings import NO_SETTINGS, QueueSettings, policy_for
from zq.model.settling import Policy
from zq.store.queries import load

_pairs = msgspec.json.Decoder(list[tuple[str, QueueSettings]])


class Rulebook:
    """Never changes: a transaction that changes settings makes a new one, and leaves it behind.

    So one that is rolled back leaves nothing in memory.
    """

    def __init__(self, policy: Policy, settings: Mapping[str, QueueSettings]) -> None:
        self.server = policy
        """The server's own policy."""
        self.settings = settings
        """Of the queues that have any."""
        self.paused = frozenset(queue for queue, own in settings.items() if own.paused)
        self.limited = frozenset(queue for queue, own in settings.items() if own.is_limited)
        self.bounded = frozenset(q for q, own in settings.items() if own.max_depth is not None)
        self.timed = frozenset(q for q, own in settings.items() if own.ttl_ms is not None)
        self.has_leases = any(own.lease_ms is not None for own in settings.values())
        """Whether the leases of some queue's jobs have deadlines by themselves."""

    @property
    def has_gates(self) -> bool:
        """Whether a claim has to look at queues one by one."""
        return bool(self.paused or self.limited)

    def of(self, queue: str) -> QueueSettings:
        """The settings of a queue."""
        return self.settings.get(queue, NO_SETTINGS)

    def policy(self, queue: str) -> Policy:
        """What holds for jobs of a queue that set nothing themselves."""
        own = self.settings.get(queue)
        return self.server if own is None else policy_for(own, self.server)

    def with_settings(self, queue: str, settings: QueueSettings) -> Self:
        """The rulebook with other settings of one queue. Raises `DeadLetterCycle`."""
        changed = {**self.settings, queue: settings}
        if settings == NO_SETTINGS:
            del changed[queue]
        book = type(self)(self.server, changed)
        book._refuse_cycle(queue)
        return book

    def without_settings(self) -> Self:
        """The server's policy alone."""
        return type(self)(self.server, {})

    def _refuse_cycle(self, start: str) -> None:
        path = [start]
        while (target := self.of(path[-1]).dead_letter) is not None:
            path.append(target)
            if target == start:
                raise DeadLetterCycle(path)


def read_rulebook(connection: sqlite3.Connection, policy: Policy) -> Rulebook:
    """The rulebook that the database holds."""
    text = connection.execute(load("settings.sql")["read_settings"]).fetchone()[0]
    return Rulebook(policy, dict(_pairs.decode(text)))
