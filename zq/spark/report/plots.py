"""The plots of the report, as SVG for the middle of an HTML page.

Matplotlib draws them. It is the best maintained of all plotting libraries, and its drawings need no
script: the page works in mail and print, its text can be selected, and two weeks take a megabyte
(the code of an interactive library alone takes one to four). Colours are names of the page's style
sheet, so one drawing serves light and dark. A tooltip shows the figures of a bucket.
"""

import html
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from math import isnan, nan
from typing import Any

import matplotlib
from matplotlib import dates as mdates
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator
from pyspark.sql import Row

from zq.spark.pipeline.tables import DAY_MS, HOUR_MS
from zq.spark.report.figures import ReportFigures
from zq.spark.report.scale import ReportSpan, count, duration, moment, percent

WIDTH = 11.0
UNKNOWN = "unknown from here"
HEAT_STEPS = 8
MOST_TICKS = 6
ROUND = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(seconds * 1_000 for seconds in (1, 2, 5, 10, 20, 30)),
    *(minutes * 60_000 for minutes in (1, 2, 5, 10, 20, 30)),
    *(hours * HOUR_MS for hours in (1, 2, 6, 12)),
    *(days * DAY_MS for days in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
)
"""Durations in milliseconds that are easy to read."""

# Matplotlib needs colours. Each of these stands for a variable of the page's style sheet.
INK, MUTED, GRID = "#010101", "#010102", "#010103"
SERIES = tuple(f"#0101{n:02x}" for n in range(0x10, 0x18))
DONE, WARN, BAD = "#010120", "#010121", "#010122"
PERCENTILE_COLOURS = {50: "#010128", 95: "#010129", 99: "#01012a"}
HEAT = tuple(f"#0101{n:02x}" for n in range(0x30, 0x30 + HEAT_STEPS))
VARIABLES = {
    INK: "--text",
    MUTED: "--muted",
    GRID: "--line",
    DONE: "--accent-fill",
    WARN: "--warn-mark",
    BAD: "--bad-fill",
    **{colour: f"--p{p}" for p, colour in PERCENTILE_COLOURS.items()},
    **{colour: f"--series-{n}" for n, colour in enumerate(SERIES)},
    **{colour: f"--heat-{n}" for n, colour in enumerate(HEAT)},
}

STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "zq",
    "font.family": "sans-serif",
    "font.size": 8.5,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "figure.facecolor": "none",
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "ytick.major.size": 0,
    "savefig.transparent": True,
}


class Plot:
    """One drawing under way, and the texts that its parts show under the pointer."""

    def __init__(self, height: float) -> None:
        self.figure = Figure(figsize=(WIDTH, height), layout="constrained")
        self.axes: Axes = self.figure.add_subplot()
        self._tips: list[str] = []

    def tip(self, artist: Any, text: str) -> None:
        artist.set_gid(f"tip-{len(self._tips)}")
        self._tips.append(text)

    def svg(self, title: str) -> str:
        drawn = io.StringIO()
        self.figure.savefig(drawn, format="svg", metadata={"Date": None})
        text = drawn.getvalue()
        text = text[text.index("<svg") :]
        opening = f'<svg role="img" aria-label="{html.escape(title)}" '
        text = re.sub(r'<svg .*?viewBox="([^"]*)"[^>]*>', rf'{opening}viewBox="\1">', text, count=1)
        # Hundredths of a point are enough. With all digits the page would be twice as large.
        text = re.sub(r"(\d\.\d\d)\d+", r"\1", text)
        text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
        text = re.sub(r"font: ([0-9.]+)px [^;\"]*", r"font-size: \1px", text)
        # Ids without a reference would occur once in each plot.
        text = re.sub(r' id="(?!tip-|[a-z][0-9a-f]{10})[^"]*"', "", text)
        text = re.sub(r'<g id="tip-(\d+)">', self._opening, text)
        return re.sub(r"#0101[0-9a-f]{2}", lambda found: f"var({VARIABLES[found[0]]})", text)

    def _opening(self, found: re.Match[str]) -> str:
        return f'<g class="tip"><title>{html.escape(self._tips[int(found[1])])}</title>'


@contextmanager
def style() -> Iterator[None]:
    """The look of the report's plots, for those that are drawn within the context."""
    with matplotlib.rc_context(STYLE):
        yield


def percentile_lines(figures: ReportFigures, measure: str) -> str:
    """50th, 95th and 99th percentile of waits or runs of all queues."""
    plot = Plot(2.9)
    names = {p: f"{measure}_p{p}_ms" for p in PERCENTILE_COLOURS}
    for p, name in names.items():
        values = {row["begin"]: _drawable(row[name]) for row in figures.buckets}
        _line(plot, figures.span, values, PERCENTILE_COLOURS[p], f"p{p}")
    drawn = [_drawable(row[name]) for row in figures.buckets for name in names.values()]
    _log_durations(plot, [value for value in drawn if value is not None])

    def tell(row: Row) -> str:
        return "\n".join(f"p{p}  {duration(row[name])}" for p, name in names.items())

    _over_time(plot, figures, figures.buckets, tell)
    _legend(plot)
    return plot.svg(f"Percentiles of {measure} times")


def backlog(figures: ReportFigures) -> str:
    """The most attempts that waited at once, by queue.

    A line is dashed where only a part of its queue's backlog is known, and ends where nothing is.
    From where none is known, the plot is hatched.
    """
    plot = Plot(2.9)
    span = figures.span
    for place, queue in enumerate(row["queue"] for row in figures.queues):
        known = figures.known_until.get(queue, span.since)
        begins = [begin for begin in range(span.since, span.until, span.size) if begin <= known]
        peaks: dict[int, float | None] = dict.fromkeys(begins, 0)
        mine = [row for row in figures.queue_buckets if row["queue"] == queue]
        peaks |= {row["begin"]: row["peak_backlog"] for row in mine if row["begin"] <= known}
        _line(plot, span, peaks, SERIES[place], queue)
        least = {begin: peaks[begin] for begin in begins[-1:]}
        least |= {row["begin"]: row["peak_backlog"] or None for row in mine if row["begin"] > known}
        if len(least) > 1:
            _line(plot, span, least, SERIES[place], "", dashed=True)
    _counted(plot)
    _hatch(plot, span, max(figures.known_until.values(), default=span.since))
    _over_time(plot, figures, figures.buckets, _waiting_by_queue(figures))
    _legend(plot)
    return plot.svg("Attempts waiting, by queue")


def workers(figures: ReportFigures) -> str:
    """Workers that were busy and workers that were needed, all queues together."""
    plot = Plot(2.6)
    needed: dict[int, float | None] = {}
    for row in figures.queue_buckets:
        needed[row["begin"]] = (needed.get(row["begin"]) or 0) + (row["workers_needed"] or 0)
    rows = [row for row in figures.buckets if row["begin"] in needed]
    _line(plot, figures.span, needed, SERIES[1], "needed", missing=0, step=True)
    busy = {row["begin"]: row["busy_workers"] for row in rows}
    _line(plot, figures.span, busy, SERIES[0], "busy", missing=0, fill=True)
    _counted(plot)

    def tell(row: Row) -> str:
        return f"{row['busy_workers']:.1f} busy\n{needed.get(row['begin'], 0)} needed"

    _over_time(plot, figures, rows, tell)
    _legend(plot)
    return plot.svg("Workers busy and needed")


def outcomes(figures: ReportFigures) -> str:
    """Attempts that finished in each bucket, by outcome."""
    plot = Plot(2.6)
    kinds = {
        "completed": (DONE, ("completed",)),
        "failed, will be retried": (WARN, ("failed", "stalled")),
        "dead": (BAD, ("dead",)),
        "cancelled or expired": (MUTED, ("cancelled", "expired")),
    }
    times = [moment(row["begin"] + figures.span.size // 2) for row in figures.buckets]
    width = timedelta(milliseconds=0.86 * figures.span.size)
    base = [0] * len(times)
    for label, (colour, names) in kinds.items():
        heights = [sum(row[name] for name in names) for row in figures.buckets]
        look: Any = {"width": width, "color": colour, "label": label, "linewidth": 0}
        plot.axes.bar(times, heights, bottom=base, **look)  # type: ignore[arg-type]
        base = [below + height for below, height in zip(base, heights, strict=True)]
    _counted(plot)

    def tell(row: Row) -> str:
        return "\n".join(
            f"{count(sum(row[name] for name in names))} {label}"
            for label, (_, names) in kinds.items()
        )

    _over_time(plot, figures, figures.buckets, tell)
    _legend(plot)
    return plot.svg("Attempts finished, by outcome")


def failures(figures: ReportFigures) -> str:
    """Failed and dead attempts by type, the most first."""
    plot = Plot(0.7 + 0.36 * len(figures.types))
    names = [f"{row['queue']} · {row['type']}" for row in figures.types]
    places = range(len(names))
    failed = [row["failed"] for row in figures.types]
    dead = [row["dead"] for row in figures.types]
    plot.axes.barh(places, failed, color=WARN, height=0.62, label="failed, retried", linewidth=0)
    plot.axes.barh(places, dead, left=failed, color=BAD, height=0.62, label="dead", linewidth=0)
    most = max(map(sum, zip(failed, dead, strict=True)))
    for place, row in enumerate(figures.types):
        lost = row["failed"] + row["dead"]
        rate = lost / (lost + row["completed"])
        text = f"{count(lost)}  ({percent(rate)})"
        plot.axes.text(lost + most * 0.008, place, text, va="center", color=MUTED, fontsize=8)
    plot.axes.set_yticks(places, names)
    plot.axes.tick_params(axis="y", labelcolor=INK)
    plot.axes.invert_yaxis()
    plot.axes.grid(visible=False)
    plot.axes.xaxis.set_visible(False)
    plot.axes.spines["bottom"].set_visible(False)
    plot.axes.set_xlim(0, most * 1.12)
    _legend(plot)
    return plot.svg("Failures by type")


def heat_map(
    figures: ReportFigures,
    value: Callable[[Row], float | None],
    scale: Callable[[float], float],
    show: Callable[[float], str],
    title: str,
) -> str:
    """Days by hours of the day. `scale` gives the place of a value in the ramp of colours, which
    goes from the lowest to the highest of all. `show` gives its text."""
    days = figures.span.days
    plot = Plot(0.55 + 0.30 * len(days))
    known = {row["begin"]: found for row in figures.hours if (found := value(row)) is not None}
    low, high = (scale(each(known.values(), default=1)) for each in (min, max))
    step = (high - low) / HEAT_STEPS or 1
    for line, day in enumerate(days):
        midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
        for hour in range(24):
            found = known.get(round(midnight.timestamp() * 1000) + hour * HOUR_MS)
            cell = Rectangle((hour + 0.04, line + 0.05), 0.92, 0.9, linewidth=0)
            cell.set_facecolor(
                GRID
                if found is None
                else HEAT[min(HEAT_STEPS - 1, int((scale(found) - low) / step))]
            )
            told = "nothing" if found is None else show(found)
            plot.tip(cell, f"{day:%a %d %b} {hour:02}:00\n{told}")
            plot.axes.add_patch(cell)
    plot.axes.set_xlim(0, 24)
    plot.axes.set_ylim(len(days), 0)
    plot.axes.set_yticks([n + 0.5 for n in range(len(days))], [f"{day:%a %d %b}" for day in days])
    plot.axes.set_xticks(
        [n + 0.5 for n in range(0, 24, 2)], [f"{n:02}:00" for n in range(0, 24, 2)]
    )
    plot.axes.tick_params(length=0)
    plot.axes.grid(visible=False)
    plot.axes.spines["bottom"].set_visible(False)
    return plot.svg(title)


def _line(
    plot: Plot,
    span: ReportSpan,
    values: Mapping[int, float | None],
    colour: str,
    label: str,
    *,
    missing: float = nan,
    step: bool = False,
    fill: bool = False,
    dashed: bool = False,
) -> None:
    """A line through the values of buckets, by their beginnings. It has a gap if a value is
    unknown, and a dot if a value stands alone. A bucket that is not in `values` has `missing`.
    """
    begins = range(span.since, span.until, span.size)
    times = [moment(begin + span.size // 2) for begin in begins]
    found = [values.get(begin, missing) for begin in begins]
    heights = [nan if value is None else value for value in found]
    shape = "steps-mid" if step else "default"
    beside = [nan, *heights, nan]
    alone = [n for n in range(len(heights)) if isnan(beside[n]) and isnan(beside[n + 2])]
    dashes = "--" if dashed else "-"
    plot.axes.plot(times, heights, dashes, color=colour, label=label, drawstyle=shape)  # type: ignore[arg-type]
    dots = [times[n] for n in alone], [heights[n] for n in alone]
    plot.axes.plot(*dots, "o", color=colour, markersize=4)  # type: ignore[arg-type]
    if fill:
        plot.axes.fill_between(times, heights, color=colour, alpha=0.18, linewidth=0)  # type: ignore[arg-type]


def _over_time(
    plot: Plot, figures: ReportFigures, rows: Iterable[Row], tell: Callable[[Row], str]
) -> None:
    """The axis of time, and over each bucket its text."""
    size = timedelta(milliseconds=figures.span.size)
    shown = "%a %d %b" if figures.span.size == DAY_MS else "%a %d %b, %H:%M UTC"
    for row in rows:
        begin = moment(row["begin"])
        area = plot.axes.axvspan(begin, begin + size, facecolor=INK, alpha=0, linewidth=0)  # type: ignore[arg-type]
        plot.tip(area, f"{begin:{shown}}\n{tell(row)}")
    plot.axes.set_xlim(figures.span.begin, figures.span.end)  # type: ignore[arg-type]
    locator = mdates.AutoDateLocator(minticks=4, maxticks=15)  # type: ignore[no-untyped-call]
    plot.axes.xaxis.set_major_locator(locator)
    formatter = mdates.ConciseDateFormatter(  # type: ignore[no-untyped-call]
        locator,
        formats=["%Y", "%b", "%a %d", "%H:%M", "%H:%M", "%S"],
        zero_formats=["", "%b", "%a %d", "%a %d", "%H:%M", "%H:%M"],
        show_offset=False,
    )
    plot.axes.xaxis.set_major_formatter(formatter)


def _hatch(plot: Plot, span: ReportSpan, known: int) -> None:
    """Mark what comes after the bucket in which a time lies as unknown."""
    since = span.since + ((known - span.since) // span.size + 1) * span.size
    if since < span.until:
        area = plot.axes.axvspan(
            moment(since),  # type: ignore[arg-type]
            span.end,  # type: ignore[arg-type]
            facecolor="none",
            edgecolor=MUTED,
            hatch="//",
            linewidth=0,
            alpha=0.4,
            label=UNKNOWN,
        )
        plot.tip(area, UNKNOWN)


def _waiting_by_queue(figures: ReportFigures) -> Callable[[Row], str]:
    told: dict[int, list[str]] = {}
    for row in figures.queue_buckets:
        peak, mean = count(row["peak_backlog"] or 0), count(row["backlog"])
        lines = told.setdefault(row["begin"], [])
        if row["begin"] <= figures.known_until.get(row["queue"], figures.span.since):
            lines.append(f"{row['queue']}: {peak} at most, {mean} on average")
        else:
            lines.append(f"{row['queue']}: at least {peak}" if row["peak_backlog"] else UNKNOWN)
    return lambda row: "\n".join(told.get(row["begin"], []))


def _counted(plot: Plot) -> None:
    plot.axes.set_ylim(0, max(plot.axes.get_ylim()[1], 1))
    plot.axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    plot.axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: count(value)))


def _legend(plot: Plot) -> None:
    handles, _ = plot.axes.get_legend_handles_labels()
    plot.figure.legend(
        loc="outside upper left", ncols=len(handles), handlelength=1.2, columnspacing=1.6
    )


def _log_durations(plot: Plot, values: Sequence[float]) -> None:
    """A log scale between round durations, so that at least two have labels."""
    low, high = min(values, default=1), max(values, default=1)
    first = max(n for n, tick in enumerate(ROUND) if tick <= low)
    last = next((n for n, tick in enumerate(ROUND) if tick > high), len(ROUND) - 1)
    ticks = ROUND[first : last + 1]
    step = -(-len(ticks) // MOST_TICKS)
    plot.axes.set_yscale("log")
    plot.axes.set_ylim(ticks[0], max(ticks[-1], high))
    plot.axes.yaxis.set_major_locator(FixedLocator(ticks[::step]))
    plot.axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: duration(value)))
    plot.axes.minorticks_off()


def _drawable(millis: float | None) -> float | None:
    """A log scale has no place for 0."""
    return None if millis is None else max(millis, 1.0)
