"""One picture a row: bars with the median, whiskers from the slowest to the fastest round."""

from __future__ import annotations

from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import StrMethodFormatter

from bench.peers.roster import Contender
from bench.peers.rows import ROWS, Metric, Row
from bench.peers.summary import spread
from bench.peers.tables import Run, figure, ranked

OURS, ON_DISK, IN_MEMORY = "#d1495b", "#30638e", "#a9c5d8"
MEANINGS = {
    OURS: "zq, acknowledged on disk",
    ON_DISK: "acknowledged on disk",
    IN_MEMORY: "acknowledged before it is on disk",
}
INK, FAINT = "#222222", "#666666"
BAR_INCHES = 0.32
WIDTH_INCHES = 9.0
ROOM_FOR_LABELS = {"linear": 1.15, "log": 2.5}
LOG_ABOVE = 25.0  # a linear axis hides a bar that is this many times shorter


def draw(run: Run, directory: Path) -> list[Path]:
    """Write a PNG for each row that has figures."""
    directory.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name in run.rows:
        if ranked(run, ROWS[name], ROWS[name].metrics[0]):
            path = directory / f"peers-{name}.png"
            picture(run, ROWS[name]).savefig(path, dpi=110, metadata={"Software": None})
            drawn.append(path)
    return drawn


def picture(run: Run, row: Row) -> Figure:
    bars = len(ranked(run, row, row.metrics[0]))
    with matplotlib.rc_context({"font.size": 9, "text.color": INK}):
        height = 1.5 + BAR_INCHES * bars
        drawing = Figure((WIDTH_INCHES, height), layout="constrained")
        panels = drawing.subplots(1, len(row.metrics), squeeze=False)[0]
        for axes, metric in zip(panels, row.metrics, strict=True):
            panel(axes, run, row, metric)
        title = row.title[0].upper() + row.title[1:]
        drawing.suptitle(title, fontsize=12, fontweight="bold", x=0.01, ha="left")
        drawing.legend(
            handles=[Patch(color=color, label=text) for color, text in MEANINGS.items()],
            loc="outside lower left",
            ncols=3,
            frameon=False,
        )
        about = f"{run.facts['commit']}, {run.facts['date']}"
        drawing.text(0.99, 0.01, about, ha="right", va="bottom", fontsize=7, color=FAINT)
    return drawing


def panel(axes: Axes, run: Run, row: Row, metric: Metric) -> None:
    """Bars of one figure, the best on top."""
    order = ranked(run, row, metric)
    best = max((value for _, value in order), default=1.0)
    for place, (contender, median) in enumerate(order):
        measured = spread(run.samples, row.name, contender.name, metric.figure)
        if measured:
            whiskers = [[median - measured.low], [measured.high - median]]
            axes.barh(
                place,
                median,
                color=color(contender),
                height=0.72,
                xerr=whiskers,
                error_kw={"ecolor": FAINT, "elinewidth": 0.9, "capsize": 2},
            )
            end = max(measured.high, median)
            label = f" {figure(median, metric.unit)}"
            axes.text(end, place, label, va="center", fontsize=8)
    least = min((value for _, value in order if value > 0), default=best)
    if best > LOG_ABOVE * least:
        axes.set_xscale("log")
        axes.set_xlim(left=least / 3)
    axes.set_yticks(range(len(order)), [contender.name for contender, _ in order])
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    axes.set_xlim(right=axes.get_xlim()[1] * ROOM_FOR_LABELS[axes.get_xscale()])
    wins = "higher" if metric.higher_wins else "lower"
    axes.set_xlabel(f"{metric.title}, {metric.unit} ({wins} is better)", color=FAINT)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def color(contender: Contender) -> str:
    if contender.peer.runtime == "ours":
        return OURS
    return ON_DISK if contender.mode.durable else IN_MEMORY
