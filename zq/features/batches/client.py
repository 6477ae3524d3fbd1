"""Batches for tasks: one job for many calls, with jq programs that join the calls."""

import json
from dataclasses import dataclass
from typing import Self

from zq.client.errors import InvalidOption


@dataclass(frozen=True)
class Batch:
    """Jobs with this `key` fold into the first of them while it waits for a worker.

    `when` and `fold` are jq programs over `$existing` and `$new`. `when` says whether a job folds
    into the one that waits; `fold` gives the payload of both together. In a task's payload, the
    arguments are in ``kwargs`` by the names of its parameters.
    """

    key: str
    when: str
    fold: str

    @classmethod
    def append(cls, key: str, at: str, *, limit: int | None = None, unique: bool = False) -> Self:
        """Join calls by adding the lists that they have in one argument.

        `at` is the name of a parameter, or a path from there, with dots between its parts. With a
        `limit`, a list has no more elements than that; with `unique`, none twice, and they are
        sorted. All else is as the first call has it. Raises `InvalidOption`.
        """
        path = _path(at)
        both = f"($existing | getpath({path})) + ($new | getpath({path}))"
        both += " | unique" if unique else ""
        if limit is not None and limit < 1:
            raise InvalidOption(f"limit: {limit!r} is not a whole number from 1 on")
        when = "true" if limit is None else f"({both} | length) <= {limit}"
        return cls(key, when, f"({both}) as $both | $existing | setpath({path}; $both)")

    @classmethod
    def last(cls, key: str) -> Self:
        """The latest call replaces the one that waits."""
        return cls(key, "true", "$new")


def _path(at: str) -> str:
    parts = at.split(".")
    if not all(parts):
        raise InvalidOption(
            f"at: {at!r} is neither the name of a parameter nor a path that begins with one"
        )
    return json.dumps(["kwargs", *parts])
