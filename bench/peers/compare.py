"""Runs rows on contenders in rounds. Each run has a new server on new storage."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.peers.install import Home, Missing, find_or_install
from bench.peers.roster import Contender
from bench.peers.rows import ROWS
from bench.peers.servers import PeerError
from bench.peers.summary import Sample
from bench.peers.trial import Size, trial
from bench.report import Progress
from bench.servers import Lab


@dataclass(frozen=True)
class Plan:
    rows: Sequence[str]
    contenders: Sequence[Contender]
    rounds: int
    size: Size


def find_homes(
    contenders: Sequence[Contender], progress: Progress
) -> tuple[dict[str, Home], dict[str, str]]:
    """Peer → where it is installed, and peer → why it is missing."""
    homes: dict[str, Home] = {}
    missing: dict[str, str] = {}
    for peer in {each.peer.name: each.peer for each in contenders}.values():
        progress.show(f"looking for {peer.name}")
        try:
            homes[peer.name] = find_or_install(peer)
        except Missing as reason:
            missing[peer.name] = str(reason)
    return homes, missing


def compare(lab: Lab, plan: Plan, homes: Mapping[str, Home], progress: Progress) -> list[Sample]:
    """Run every row on every contender in each round. Each round begins with another contender."""
    present = [each for each in plan.contenders if each.peer.name in homes]
    samples: list[Sample] = []
    total = plan.rounds * len(plan.rows) * len(present)
    for number in range(plan.rounds):
        turn = number % max(1, len(present))
        for name in plan.rows:
            began = time.monotonic()
            for contender in present[turn:] + present[:turn]:
                progress.show(f"{len(samples) + 1}/{total}: {name}, {contender.name}")
                home = homes[contender.peer.name]
                samples.append(sample(lab, contender, home, name, number, plan.size))
            seconds = time.monotonic() - began
            progress.note(f"round {number + 1} of {plan.rounds}: {name} took {seconds:.0f} s")
    return samples


def sample(
    lab: Lab, contender: Contender, home: Home, name: str, number: int, size: Size
) -> Sample:
    if reason := contender.peer.lacks.get(name):
        return Sample(name, contender.name, number, None, reason)
    try:
        with trial(lab, contender, home, size) as running:
            return Sample(name, contender.name, number, ROWS[name].measure(running))
    except PeerError as error:
        return Sample(name, contender.name, number, None, f"failed: {error}")
