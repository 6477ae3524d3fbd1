"""Medians over rounds, the spread, and ratios within a round, from samples."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.peers.rows.row import Figures, Metric


@dataclass(frozen=True)
class Sample:
    """One run of a row. `trouble` says why there are no figures."""

    row: str
    contender: str
    round: int
    figures: Figures | None
    trouble: str = ""


@dataclass(frozen=True)
class Spread:
    median: float
    low: float
    high: float


def values(samples: Sequence[Sample], row: str, contender: str, figure: str) -> dict[int, float]:
    """Round → the figure, if the round has it."""
    found = {}
    for sample in samples:
        if (sample.row, sample.contender) == (row, contender) and sample.figures:
            value = getattr(sample.figures, figure)
            if value is not None:
                found[sample.round] = float(value)
    return found


def spread(samples: Sequence[Sample], row: str, contender: str, figure: str) -> Spread | None:
    """The median, the lowest and the highest over the rounds; None if no round has the figure."""
    found = list(values(samples, row, contender, figure).values())
    return Spread(statistics.median(found), min(found), max(found)) if found else None


def ratio(
    samples: Sequence[Sample], row: str, contender: str, reference: str, metric: Metric
) -> float | None:
    """How many times better the reference is: the median of the ratios within each round. A slow
    round slows both down equally. None if no round has both."""
    theirs = values(samples, row, contender, metric.figure)
    ours = values(samples, row, reference, metric.figure)
    both = [(ours[n], theirs[n]) for n in ours.keys() & theirs.keys() if ours[n] and theirs[n]]
    if not both:
        return None
    return statistics.median(a / b if metric.higher_wins else b / a for a, b in both)


def trouble(samples: Sequence[Sample], row: str, contender: str) -> str:
    """Why a round of this row has no figures: the first reason."""
    for sample in samples:
        if (sample.row, sample.contender) == (row, contender) and sample.trouble:
            return sample.trouble
    return ""
