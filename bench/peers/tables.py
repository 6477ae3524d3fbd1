"""The tables of a comparison: the summary, one for each row, and the settings of contenders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.peers.roster import Contender, named
from bench.peers.rows import ROWS, Figures, Metric, Row
from bench.peers.summary import Sample, ratio, spread, trouble
from bench.report import Table, number

NONE = "-"
LONGEST_REASON = 160


@dataclass(frozen=True)
class Run:
    """Everything that a comparison found, and the facts that belong beside it.

    The first contender that took part is the reference. `versions` and `missing` are by peer.
    """

    facts: Mapping[str, str]
    rows: Sequence[str]
    contenders: Sequence[str]
    versions: Mapping[str, str]
    missing: Mapping[str, str]
    samples: Sequence[Sample]

    @classmethod
    def load(cls, text: str) -> Run:
        """Read the output of `--json`. Raises ValueError for any other text."""
        try:
            plain = json.loads(text)
            return cls(**{**plain, "samples": [load_sample(each) for each in plain["samples"]]})
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"this is not what --json printed: {error}") from error

    @property
    def present(self) -> list[Contender]:
        return [each for each in named(self.contenders) if each.peer.name in self.versions]

    @property
    def reference(self) -> str:
        return self.present[0].name if self.present else ""


def load_sample(plain: dict[str, Any]) -> Sample:
    figures = plain["figures"]
    return Sample(**{**plain, "figures": Figures(**figures) if figures else None})


def figure(value: float | None, unit: str) -> str:
    if value is None:
        return NONE
    if unit == "ms":
        return number(value, 2 if value < 100 else 0)
    return number(value, 0 if value >= 10 else 1)


def ranked(run: Run, row: Row, metric: Metric) -> list[tuple[Contender, float]]:
    """The contenders that have this figure, the best first."""
    found = [
        (contender, measured.median)
        for contender in run.present
        if (measured := spread(run.samples, row.name, contender.name, metric.figure))
    ]
    return sorted(found, key=lambda pair: pair[1], reverse=metric.higher_wins)


def summary(run: Run) -> Table:
    """Medians, a line a contender. The best one whose acknowledgement means on disk is bold.

    If a row has two figures, the first is shown.
    """
    rows = [ROWS[name] for name in run.rows]
    best = {row.name: first_on_disk(run, row) for row in rows}
    lines = []
    for contender in run.present:
        cells = []
        for row in rows:
            metric = row.metrics[0]
            measured = spread(run.samples, row.name, contender.name, metric.figure)
            cell = figure(measured.median if measured else None, metric.unit)
            cells.append(f"**{cell}**" if contender.name == best[row.name] else cell)
        lines.append([contender.name, yes(contender.mode.durable), *cells])
    titles = [f"{row.name}, {row.metrics[0].unit}" for row in rows]
    return Table(["contender", "on disk", *titles], lines)


def first_on_disk(run: Run, row: Row) -> str | None:
    """The first contender of a row among those whose acknowledgement means on disk."""
    order = ranked(run, row, row.metrics[0])
    return next((contender.name for contender, _ in order if contender.mode.durable), None)


def winners(run: Run, row: Row) -> str:
    """The first contender of a row, overall and among those that acknowledge from disk."""
    order = ranked(run, row, row.metrics[0])
    if not order:
        return "Nobody has a figure."
    on_disk = first_on_disk(run, row) or "none"
    return f"First: {order[0][0].name}. First with acknowledgements on disk: {on_disk}."


def yes(durable: bool) -> str:
    return "yes" if durable else "no"


def row_table(run: Run, row: Row) -> Table:
    """The contenders of one row, the best first, with spread, CPU and memory."""
    order = [contender for contender, _ in ranked(run, row, row.metrics[0])]
    lines = [[each.name, yes(each.mode.durable), *cells(run, row, each)] for each in order]
    header = ["contender", "on disk"]
    for metric in row.metrics:
        header += [f"{metric.title}, {metric.unit}", "low-high"]
    header += [f"{run.reference} is", "jobs", "CPU s server", "CPU s clients"]
    return Table([*header, "server MB", "worker MB"], lines)


def cells(run: Run, row: Row, contender: Contender) -> list[str]:
    found = []
    for metric in row.metrics:
        measured = spread(run.samples, row.name, contender.name, metric.figure)
        if measured is None:
            found += [NONE, NONE]
        else:
            found.append(figure(measured.median, metric.unit))
            low, high = figure(measured.low, metric.unit), figure(measured.high, metric.unit)
            found.append(f"{low}-{high}")
    times = ratio(run.samples, row.name, contender.name, run.reference, row.metrics[0])
    found.append(f"{times:.2f} times" if times is not None else NONE)
    for name, digits in (
        ("jobs", 0),
        ("server_cpu", 2),
        ("client_cpu", 2),
        ("server_rss", 0),
        ("client_rss", 0),
    ):
        measured = spread(run.samples, row.name, contender.name, name)
        found.append(number(measured.median, digits) if measured else NONE)
    return found


def reasons(run: Run) -> list[str]:
    """Why figures are missing: first for whole peers, then for rows."""
    found = [f"{peer} is missing: {reason}" for peer, reason in run.missing.items()]
    for name in run.rows:
        grouped: dict[str, list[str]] = {}
        for contender in run.present:
            if reason := trouble(run.samples, name, contender.name):
                grouped.setdefault(brief(reason), []).append(contender.name)
        found += [f"{name}, {', '.join(who)}: {reason}" for reason, who in grouped.items()]
    return found


def brief(reason: str) -> str:
    """One line of the end of a log: the line that names an error, if there is one."""
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    named_error = [line for line in lines[1:] if "error" in line.lower()]
    return " ".join([lines[0], *named_error[-1:]])[:LONGEST_REASON]


def fairness(run: Run) -> Table:
    """Versions, settings, and what an acknowledgement of each contender means."""
    lines = []
    for contender in run.present:
        peer = contender.peer
        version = run.versions[peer.name]
        acknowledged = contender.mode.acknowledged
        lines.append([contender.name, version, peer.client, peer.worker_note, acknowledged])
    return Table(["contender", "version", "client", "worker", "an acknowledged job is"], lines)


def text(run: Run) -> str:
    about = "\n".join(f"{name}: {value}" for name, value in run.facts.items())
    tables = [f"{ROWS[name].title}\n{row_table(run, ROWS[name]).text()}" for name in run.rows]
    return "\n\n".join([about, *tables, "\n".join(reasons(run))]).rstrip()


def document(run: Run, images: str = "") -> str:
    """The report as Markdown. `images` is the directory of the plots, relative to it, if any."""
    parts = ["\n".join(f"- {name}: {value}" for name, value in run.facts.items())]
    parts.append(summary(run).markdown())
    if found := reasons(run):
        parts.append("No figure:\n\n" + "\n".join(f"- {reason}" for reason in found))
    for name in run.rows:
        parts.append(f"#### {ROWS[name].title[0].upper()}{ROWS[name].title[1:]}")
        parts.append(winners(run, ROWS[name]))
        if images:
            parts.append(f"![{name}]({images}/peers-{name}.png)")
        parts.append(row_table(run, ROWS[name]).markdown())
    parts += ["#### Who does what", fairness(run).markdown()]
    return "\n\n".join(parts) + "\n"


def write_between(path: Path, name: str, text: str) -> None:
    """Replace the text between `<!-- name -->` and `<!-- /name -->`; ValueError without both."""
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, begun, rest = path.read_text().partition(begin)
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        raise ValueError(f"{path} has no {begin.strip()} … {end}")
    path.write_text(f"{before}{begin}{text.rstrip()}\n{end}{after}")
