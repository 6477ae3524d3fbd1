"""What a well-behaved client notices while another one attacks."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import proc
from bench.attacks import bodies, floods, readers, sessions, stored
from bench.attacks.site import PATIENCE, POLITE, Attack, Outcome, Site, site_of
from bench.report import Progress, Table, number
from bench.servers import REPOSITORY, Lab, ServerError

BEFORE = 4.0
"""Seconds for which the well-behaved client is alone, or more until it has enough answers."""

WARM_UP = 1.0

LEAST = 2.0
"""An attack is repeated until so many seconds have passed. Its p99 needs some requests."""

LOOK_EVERY = 0.02

REQUESTS = 50
"""Fewer answers before an attack are no measurement."""

CATALOGUE: Mapping[str, Sequence[Attack]] = {
    "bodies": bodies.ATTACKS,
    "floods": floods.ATTACKS,
    "readers": readers.ATTACKS,
    "stored": stored.ATTACKS,
    "sessions": sessions.ATTACKS,
}
"""All attacks, by the file that has them."""


@dataclass(frozen=True)
class Waited:
    """One request of the well-behaved client, in seconds of the monotonic clock."""

    began: float
    ended: float
    answered: bool

    @property
    def seconds(self) -> float:
        """How long the answer took."""
        return self.ended - self.began


@dataclass(frozen=True)
class Found:
    """What an attack did. Waits are in milliseconds, memory in MiB.

    While the `longest` wait lasted, the server's event loop `ran` for so long, and was `queued` for
    so long, since others had the processors. For the rest it waited for the disk or for news.
    `ratio` is the p99 of the waits during the attack by that before. `memory` is the peak above
    what the server held before. `bodies` is that of the first time, before the store has kept pages
    of the others, as a multiple of the body that was sent, if there was a large one.
    """

    server: str
    attack: str
    answer: str
    longest: float
    ran: float
    queued: float
    p99_before: float
    ratio: float
    unanswered: int
    memory: float
    bodies: float | None


class Watch:
    """Looks at the memory and the event loop of a server, in a thread, from its start to its end.

    The kernel knows for how long the loop's thread had a processor, and for how long it waited for
    one.
    """

    def __init__(self, pid: int) -> None:
        self.before = self.peak = proc.rss_mb(pid)
        self._pid = pid
        self._over = threading.Event()
        self._looks: list[tuple[float, float, float]] = []
        """Moments, and what the thread has run and waited until then, in seconds."""
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    @property
    def more(self) -> float:
        """The peak of memory so far above what the server held before, in MiB."""
        return max(self.peak - self.before, 0.0)

    def end(self) -> None:
        """Look no more."""
        self._over.set()
        self._thread.join()

    def loop_times(self, began: float, ended: float) -> tuple[float, float]:
        """For how long the loop ran and waited for a processor within a span, in seconds.

        The span is as wide as the looks around it.
        """
        first = max((look for look in self._looks if look[0] <= began), default=self._looks[0])
        last = min((look for look in self._looks if look[0] >= ended), default=self._looks[-1])
        return last[1] - first[1], last[2] - first[2]

    def _watch(self) -> None:
        while True:
            self.peak = max(self.peak, proc.rss_mb(self._pid))
            self._looks.append((time.monotonic(), *proc.main_thread_times(self._pid)))
            if self._over.wait(LOOK_EVERY):
                break


@contextmanager
def polite_client(site: Site, notes: Path) -> Iterator[None]:
    """A well-behaved client in a process of its own. It writes its waits to the file `notes`."""
    secret = site.secrets.get(POLITE)
    command = [sys.executable, "-m", "bench.attacks.polite", str(site.port)]
    with notes.open("wb") as file:
        client = subprocess.Popen([*command, *([secret] if secret else [])], stdout=file)
    try:
        yield
    finally:
        client.kill()
        client.wait()


def waits_in(notes: Path) -> list[Waited]:
    """The requests that a well-behaved client has finished so far."""
    lines = notes.read_text().split("\n")[:-1]
    fields = (line.split() for line in lines)
    return [
        Waited(float(began), float(ended), answered == "1") for began, ended, answered in fields
    ]


def wait_for_answers(notes: Path) -> None:
    """Wait while the well-behaved client is alone, until it has enough answers to compare with."""
    began = time.monotonic()
    while (waited := time.monotonic() - began) < PATIENCE:
        if waited >= BEFORE and len(warm(waits_in(notes))) >= REQUESTS:
            break
        time.sleep(LOOK_EVERY)


def warm(waits: Sequence[Waited]) -> list[Waited]:
    """Those after the warm-up."""
    return [each for each in waits if each.began > waits[0].began + WARM_UP]


def suffered(attack: Attack, size: int, site: Site, notes: Path, server: str) -> Found:
    """Run an attack on a server and tell what the well-behaved client and the memory showed."""
    with polite_client(site, notes):
        wait_for_answers(notes)
        watch = Watch(site.pid)
        began = time.monotonic()
        outcome = attack.run(site, size)
        once = watch.more
        while time.monotonic() - began < LEAST or waits_in(notes)[-1].began < began:
            outcome = attack.run(site, size)
        ended = time.monotonic()
        while (waits := waits_in(notes)) and waits[-1].began < ended:
            time.sleep(LOOK_EVERY)
        watch.end()
    return verdict(attack, outcome, waits, (began, ended), watch, once, server)


def verdict(
    attack: Attack,
    outcome: Outcome,
    waits: Sequence[Waited],
    span: tuple[float, float],
    watch: Watch,
    once: float,
    server: str,
) -> Found:
    """Compare the waits within a span of time with those before it.

    `once` is what the server held more after the first attack, in MiB.
    """
    began, ended = span
    before = [each.seconds for each in warm(waits) if each.ended < began]
    during = [each for each in waits if each.began < ended and each.ended > began]
    if len(before) < REQUESTS or not during:
        raise ServerError(f"{attack.name}: {len(before)} answers before it are no measurement")
    p99 = p99_of(before)
    longest = max(during, key=lambda each: each.seconds)
    ran, queued = watch.loop_times(longest.began, longest.ended)
    return Found(
        server,
        attack.name,
        outcome.answer,
        longest.seconds * 1e3,
        ran * 1e3,
        queued * 1e3,
        p99 * 1e3,
        p99_of([each.seconds for each in during]) / p99,
        sum(not each.answered for each in during),
        watch.more,
        once / (outcome.sent / 2**20) if outcome.sent else None,
    )


def p99_of(values: Sequence[float]) -> float:
    """The value that 99 of 100 do not exceed. Of a few values it is the largest."""
    return sorted(values)[int(len(values) * 0.99)]


def attacks(lab: Lab, chosen: Sequence[Attack], scale: float, progress: Progress) -> list[Found]:
    """Run attacks one after the other, each on a server of its own; and on an earlier zq too."""
    servers = {"zq": REPOSITORY, **({"before": lab.before} if lab.before else {})}
    found = []
    for number_, attack in enumerate(chosen, 1):
        for server, checkout in servers.items():
            progress.show(f"{number_}/{len(chosen)} {server}: {attack.name}")
            size = max(int(attack.size * scale), 1)
            with site_of(attack, lab.directory, checkout.resolve()) as site:
                notes = lab.directory / "waits"
                found.append(suffered(attack, size, site, notes, server))
    progress.clear()
    return found


def attacks_table(found: Sequence[Found]) -> Table:
    """A line for each attack on each server."""
    header = ["attack", "server", "answer", "longest wait ms", "loop ran", "queued"]
    return Table(
        [*header, "p99 before ms", "ratio", "unanswered", "memory MiB", "of the body"],
        [
            [
                *(each.attack, each.server, each.answer, number(each.longest)),
                *(number(each.ran), number(each.queued)),
                *(number(each.p99_before, 1), number(each.ratio, 1), number(each.unanswered)),
                number(each.memory),
                "" if each.bodies is None else number(each.bodies, 1),
            ]
            for each in found
        ],
    )


def attacks_named(text: str) -> list[Attack]:
    """The attacks of a comma list of files, or those whose names begin so. Raises ValueError."""
    found: list[Attack] = []
    for word in text.split(","):
        named = CATALOGUE.get(word) or [
            each for each in all_attacks() if each.name.startswith(word)
        ]
        if not named:
            raise ValueError(f"no attack is called {word!r}: choose of {', '.join(CATALOGUE)}")
        found += named
    return found


def all_attacks() -> list[Attack]:
    """Every attack, in the order of the files."""
    return [attack for attacks in CATALOGUE.values() for attack in attacks]
