"""The page: figures and plots in one HTML file that needs no other."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from pyspark.sql import Row

from zq.spark.pipeline.estimates import ACCURACY, PERCENTILES
from zq.spark.pipeline.tables import DAY_MS
from zq.spark.report import plots
from zq.spark.report.figures import ReportFigures
from zq.spark.report.queries import MOST_DEVICES
from zq.spark.report.scale import SIZES, ReportSpan, count, duration, moment, percent
from zq.spark.report.waiting import WaitingNow

BAD_RATE = 0.05
"""A figure with at least this failure rate is marked. A smaller rate does not fill its bar."""


@dataclass(frozen=True)
class Tile:
    """One figure in large print: `value` is exact, and `text` is for the reader."""

    name: str
    label: str
    value: float | None
    text: str
    bad: bool = False


def render(figures: ReportFigures, title: str, waiting: WaitingNow | None = None) -> str:
    """The whole page. `waiting` is what the servers have said, if they were asked."""
    rated = [*figures.queues, *figures.devices]
    environment = Environment(
        loader=PackageLoader("zq.spark.report", ""), autoescape=True, undefined=StrictUndefined
    )
    environment.filters |= {"percent": percent, "moment": _moment}
    environment.globals |= {"count": count, "duration": duration}
    return environment.get_template("page.html.j2").render(
        title=title,
        tokens=tokens(),
        subtitle=_subtitle(figures.span),
        tiles=_tiles(figures),
        figures=figures,
        waiting=waiting,
        bucket=figures.span.bucket,
        worst_time=SIZES[figures.span.grain],
        plots=_plots(figures),
        heats=_heats(figures) if figures.hours else None,
        heat_steps=plots.HEAT_STEPS,
        target=duration(figures.target_ms),
        accuracy=percent(ACCURACY),
        percentile_names=[f"{kind}_p{p}_ms" for kind in ("wait", "run") for p in PERCENTILES],
        full_share=max([BAD_RATE, *(row["failure_rate"] or 0 for row in rated)]),
        device_limit=MOST_DEVICES if len(figures.devices) == MOST_DEVICES else None,
    )


def tokens() -> str:
    """The colours, sizes and spaces of the operators' page: the first rule of its style sheet."""
    sheet = resources.files("zq.operators.page") / "static" / "style.css"
    found = re.search(
        r"^:root \{.*?^\}", sheet.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert found is not None, "the style sheet of the page begins with its tokens"
    return found[0]


@dataclass(frozen=True)
class Heat:
    """A heat map, and the meaning of its lightest and its strongest colour."""

    svg: str
    low: str
    high: str


def _heats(figures: ReportFigures) -> dict[str, Heat]:
    with plots.style():
        return {
            "attempts": _heat(
                figures,
                lambda row: row["attempts"] or None,
                float,
                lambda value: f"{count(value)} attempts",
                "Attempts by day and hour",
            ),
            "wait": _heat(
                figures,
                lambda row: row["wait_p95_ms"],
                lambda wait: math.log(max(wait, 1)),
                lambda value: f"p95 wait {duration(value)}",
                "95th percentile of waits by day and hour",
            ),
        }


def _heat(
    figures: ReportFigures,
    value: Callable[[Row], float | None],
    scale: Callable[[float], float],
    show: Callable[[float], str],
    title: str,
) -> Heat:
    svg = plots.heat_map(figures, value, scale, show, title)
    values = [found for row in figures.hours if (found := value(row)) is not None]
    low, high = (show(each(values, default=0)) for each in (min, max))
    return Heat(svg, low, high)


def _plots(figures: ReportFigures) -> dict[str, str]:
    with plots.style():
        return {
            "wait": plots.percentile_lines(figures, "wait"),
            "run": plots.percentile_lines(figures, "run"),
            "backlog": plots.backlog(figures),
            "workers": plots.workers(figures),
            "outcomes": plots.outcomes(figures),
            "failures": plots.failures(figures) if figures.types else "",
        }


def _tiles(figures: ReportFigures) -> list[Tile]:
    total = figures.total
    rate = total["failure_rate"]
    return [
        Tile("attempts", "Attempts", total["attempts"], count(total["attempts"])),
        Tile("failure_rate", "Failure rate", rate, percent(rate), bad=(rate or 0) >= BAD_RATE),
        Tile("dead", "Dead jobs", total["dead"], count(total["dead"])),
        *(
            Tile(name, label, total[name], duration(total[name]))
            for name, label in (
                ("wait_p50_ms", "Median wait"),
                ("wait_p95_ms", "p95 wait"),
                ("run_p95_ms", "p95 run"),
            )
        ),
    ]


def _subtitle(span: ReportSpan) -> str:
    first, last = span.days[0], span.days[-1]
    shown = _day(first)
    if first != last:
        shown += f" to {_day(last)}, {len(span.days)} days"
    elif span.until - span.since < DAY_MS:
        shown += f", {span.begin:%H:%M} to {span.end:%H:%M} UTC"
    return f"{shown}, as the devices' own histories tell"


def _day(day: date) -> str:
    return f"{day.day} {day:%B %Y}"


def _moment(millis: int) -> str:
    return f"{moment(millis):%d %b %H:%M}"
