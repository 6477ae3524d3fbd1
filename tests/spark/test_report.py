"""The report as a browser shows it, against gold."""

import re
import subprocess
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import headless
import pytest
from PIL import Image
from pyspark.sql import Row, SparkSession

from spark.conftest import AHEAD, Golden
from spark.expected import facts, hour_of, most_waiting, percentile, run_of, wait_of
from spark.fleet import HOUR, MONDAY, write_segments
from zq.features.history.model import AttemptOutcome, HistoryRecord
from zq.spark.errors import NoHistory
from zq.spark.pipeline import open_lake, run
from zq.spark.pipeline.estimates import ACCURACY
from zq.spark.pipeline.lake import Lake
from zq.spark.pipeline.progress import RunProgress
from zq.spark.pipeline.tables import MINUTE_MS as MINUTE
from zq.spark.report import plots
from zq.spark.report.figures import ReportFigures, ReportRequest, gather
from zq.spark.report.page import render, tokens
from zq.spark.report.scale import ReportSpan
from zq.spark.report.waiting import WaitingNow, WaitingQueue


def browser(*arguments: str, page: Path) -> str:
    """What headless Chromium says of a page, without a network to fetch anything from."""
    done = subprocess.run(
        [
            *(headless.browser(), "--headless", *headless.FLAGS, "--hide-scrollbars"),
            *("--host-resolver-rules=MAP * ~NOTFOUND", *arguments, page.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Cells(HTMLParser):
    """`data-value` by (id of the table, `data-key` of the row, `data-name`), and what is read."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.values: dict[tuple[str, str, str], str] = {}
        self.texts: dict[tuple[str, str, str], str] = {}
        self.tags: Counter[str] = Counter()
        self._table = self._row = ""
        self._cell: tuple[str, str, str] | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags[tag] += 1
        self._table = given.get("id", self._table) if tag in ("table", "div") else self._table
        self._row = given.get("data-key", "" if tag == "div" else self._row)
        self._cell = None
        if "data-name" in given:
            self._cell = (self._table, self._row, given["data-name"])
            self.values[self._cell] = given["data-value"]

    def handle_data(self, data: str) -> None:
        if self._cell:
            self.texts[self._cell] = self.texts.get(self._cell, "") + data


@pytest.fixture(scope="module")
def golden_figures(golden: Golden) -> ReportFigures:
    return gather(golden.lake)


@pytest.fixture(scope="module")
def shown(golden: Golden) -> list[HistoryRecord]:
    """What the page is about: all but the event of the clock that is far ahead."""
    return [record for record in golden.records if record.finished_at < AHEAD]


@pytest.fixture(scope="module")
def page(golden_figures: ReportFigures, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render(golden_figures, "Fleet & friends"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def cells(page: Path) -> Cells:
    return Cells(browser("--dump-dom", page=page))


def test_the_totals_on_the_page_are_those_of_the_events(
    shown: list[HistoryRecord], cells: Cells
) -> None:
    outcomes = Counter(record.outcome.value for record in shown)
    lost = outcomes["failed"] + outcomes["dead"]
    waits = [wait for each in shown if (wait := wait_of(each)) is not None]
    runs = [took for each in shown if (took := run_of(each)) is not None]
    totals = {name: float(cells.values["total", "", name]) for name in ("attempts", "dead")}

    assert totals == {"attempts": 1_000, "dead": outcomes["dead"]}
    assert cells.texts["total", "", "attempts"].strip() == "1,000"
    rate = float(cells.values["total", "", "failure_rate"])
    assert rate == pytest.approx(lost / (lost + outcomes["completed"]))
    for name, exact in (
        ("wait_p50_ms", percentile(waits, 50)),
        ("wait_p95_ms", percentile(waits, 95)),
        ("run_p95_ms", percentile(runs, 95)),
    ):
        assert float(cells.values["total", "", name]) == pytest.approx(exact, rel=ACCURACY + 1e-9)


@pytest.mark.parametrize("queue", ["mail", "video"])
def test_a_queues_row_is_that_of_its_events(
    shown: list[HistoryRecord], cells: Cells, queue: str
) -> None:
    mine = [record for record in shown if record.queue == queue]
    waits = [wait for each in mine if (wait := wait_of(each)) is not None]
    row = {
        name: float(value)
        for (table, key, name), value in cells.values.items()
        if (table, key) == ("queues", queue)
    }

    assert row["attempts"] == len(mine)
    assert row["peak_backlog"] == most_waiting(mine, MONDAY - 72 * HOUR, MONDAY + 99 * HOUR)
    assert row["wait_p99_ms"] == pytest.approx(percentile(waits, 99), rel=ACCURACY + 1e-9)
    assert row["peak_workers"] == 1


def test_errors_and_devices_are_counted(shown: list[HistoryRecord], cells: Cells) -> None:
    errors = Counter((record.queue, record.type) for record in shown if record.error_type)
    devices = Counter(record.device for record in shown)
    told: Counter[tuple[str, ...]] = Counter()
    for (table, key, name), value in cells.values.items():
        if table == "errors" and name == "count":
            told[tuple(key.split()[1:])] += int(value)

    assert told == errors
    assert {
        key: int(value)
        for (table, key, name), value in cells.values.items()
        if (table, name) == ("devices", "attempts")
    } == devices


def test_the_page_needs_nothing_else(page: Path, cells: Cells) -> None:
    text = page.read_text(encoding="utf-8")

    assert not re.findall(r"(?:src|href)=\"(?!#)[^\"]*\"|@import|url\((?!#)", text)
    assert cells.tags["script"] == cells.tags["link"] == 0
    assert cells.tags["svg"] == 8
    assert "Fleet &amp; friends" in text


def test_a_hover_tells_the_figures_of_an_hour(shown: list[HistoryRecord], page: Path) -> None:
    told = re.findall(r"<title>([^<]*)</title>", page.read_text(encoding="utf-8"))
    sums: Counter[int] = Counter()
    for (hour, _, _), each in facts(shown).items():
        sums[hour] += each["attempts"]

    monday = sums[MONDAY]
    assert f"Mon 05 Jan 00:00\n{monday} attempts" in told


def test_a_heat_map_tells_what_its_colours_stand_for(
    shown: list[HistoryRecord], page: Path
) -> None:
    finished = Counter(hour_of(record.finished_at) for record in shown)
    text = page.read_text(encoding="utf-8")
    low, high = re.findall(r'<p class="ramp">([^<]*)<i.*</i>([^<]*)</p>', text)[0]

    assert (low, high) == (
        f"{min(finished.values())} attempts",
        f"{max(finished.values())} attempts",
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_is_drawn_in_light_and_dark(page: Path, tmp_path: Path, theme: str) -> None:
    shot = tmp_path / "shot.png"
    dark = ["--blink-settings=preferredColorScheme=0"] if theme == "dark" else []
    browser(*dark, f"--screenshot={shot}", "--window-size=1240,4000", page=page)

    with Image.open(shot) as image:
        drawn = image.convert("RGB")
        colours = {colour for _, colour in drawn.getcolors(2**24) or []}
        corner = drawn.getpixel((2, 2))
    page_colour, line = {
        "light": ((0xF5, 0xF6, 0xF8), (0x1F, 0x55, 0xC4)),
        "dark": ((0x0F, 0x12, 0x16), (0x8D, 0xB6, 0xFF)),
    }[theme]
    assert all(f"#{bytes(each).hex()}" in tokens() for each in (page_colour, line))
    assert corner == page_colour
    assert line in colours, "the line of the 95th percentile has its colour"


def test_a_clock_far_ahead_does_not_decide_which_days_are_shown(
    golden_figures: ReportFigures, page: Path
) -> None:
    assert len(golden_figures.span.days) < 14
    assert golden_figures.outside == 1
    assert ">1 attempts of other times" in page.read_text(encoding="utf-8")


# Spans

NOON = MONDAY + 12 * HOUR


LAST = NOON + 8 * MINUTE


@pytest.fixture(scope="module")
def burst() -> list[HistoryRecord]:
    """Ten minutes: 60 jobs at once, which take a worker three and a half; beside, one every 5 s for
    eight minutes, the last of which takes two more; and ten queues that end one job at once, and
    no other."""
    mail = [("mail", NOON, NOON + 3_500 * n, NOON + 3_500 * (n + 1)) for n in range(60)]
    video = [("video", at, at + 30, at + 90 + at % 7) for at in range(NOON, LAST, 5_000)]
    late = ("video", video[-1][1], LAST, LAST + 2 * MINUTE - 1)
    stuck = [(f"stuck-{n}", NOON, NOON, NOON + 3_500) for n in range(10)]
    return [
        HistoryRecord(
            seq=seq,
            epoch="EPOCH",
            device="lab",
            job_id=f"{seq}",
            queue=queue,
            type="t",
            attempt=1,
            outcome=AttemptOutcome.COMPLETED,
            enqueued_at=ready,
            ready_at=ready,
            dequeued_at=dequeued,
            finished_at=finished,
            error_type=None,
            error_message=None,
            worker="w",
            payload_bytes=1,
            priority=1,
        )
        for seq, (queue, ready, dequeued, finished) in enumerate([*mail, *video, late, *stuck], 1)
    ]


@pytest.fixture(scope="module")
def minutes(
    spark: SparkSession, burst: list[HistoryRecord], tmp_path_factory: pytest.TempPathFactory
) -> Lake:
    folder = tmp_path_factory.mktemp("minutes")
    write_segments(folder / "in", burst, 5_000)
    run(spark, [str(folder / "in")], str(folder / "lake"), RunProgress(print))
    return open_lake(spark, str(folder / "lake"))


@pytest.fixture(scope="module")
def ten_minutes(minutes: Lake) -> ReportFigures:
    return gather(minutes)


def test_ten_minutes_have_a_point_a_minute_and_a_peak_is_the_most_at_once(
    ten_minutes: ReportFigures, burst: list[HistoryRecord]
) -> None:
    figures = ten_minutes

    assert figures.span == ReportSpan(NOON, NOON + 10 * MINUTE, MINUTE)
    sums = facts(burst, MINUTE)
    assert [(row["begin"], row["attempts"]) for row in figures.buckets] == [
        (begin, sum(each["attempts"] for (at, _, _), each in sums.items() if at == begin))
        for begin in range(NOON, NOON + 10 * MINUTE, MINUTE)
    ]
    for row in figures.queue_buckets:
        begin, mine = row["begin"], [each for each in burst if each.queue == row["queue"]]
        assert row["peak_backlog"] == most_waiting(mine, begin, begin + MINUTE)
        assert row["backlog"] == pytest.approx(
            sums[begin, row["queue"], "t"]["waiting_ms"] / MINUTE
        )
    peaks = {row["queue"]: row["peak_backlog"] for row in figures.queues}
    # The first of the sixty does not wait.
    assert (peaks["mail"], peaks["video"]) == (59, 2)


def test_a_span_that_is_asked_for_has_what_ended_in_it_and_what_waited(
    minutes: Lake, burst: list[HistoryRecord]
) -> None:
    since, until = NOON + 2 * MINUTE, NOON + 3 * MINUTE

    figures = gather(minutes, ReportRequest(since=since, until=until))

    inside = [each for each in burst if since <= each.finished_at < until]
    mail = [each for each in burst if each.queue == "mail"]
    assert figures.span == ReportSpan(since, until, MINUTE)
    assert figures.total["attempts"] == len(inside)
    assert figures.outside == len(burst) - len(inside)
    assert [row["attempts"] for row in figures.devices] == [len(inside)]
    peaks = {row["queue"]: row["peak_backlog"] for row in figures.queues}
    assert peaks["mail"] == most_waiting(mail, since, until) == 25
    text = render(figures, "Jobs")
    assert "5 January 2026, 12:02 to 12:03 UTC" in text
    assert "the most at once in each minute" in text
    # All of them were ready at once, so more may wait that have not ended.
    assert "mail: at least 25" in text


def test_work_that_has_not_ended_is_never_shown_as_drained(ten_minutes: ReportFigures) -> None:
    """A queue whose jobs wait still has no history of them, so 0 would be a claim."""
    figures = ten_minutes
    text = render(figures, "Jobs")

    stuck = {f"stuck-{n}" for n in range(10)}
    assert figures.known_until == {
        "video": LAST - 5_000,
        "mail": NOON,
        **dict.fromkeys(stuck, NOON),
    }
    with plots.style():
        drawing = plots.backlog(figures)
    assert f"<title>{plots.UNKNOWN}</title>" in drawing  # the hatched end of the plot
    assert "url(#" in drawing
    shown = {row["queue"] for row in figures.queues} | set(figures.other_queues)
    assert shown == {"mail", "video"} | stuck
    assert all(queue in text for queue in shown)
    assert "--stats URL" in text
    told = WaitingNow(LAST, ["http://edge:7890"], [WaitingQueue("never-ended", 1_200, 0, 3)])
    text = render(figures, "Jobs", told)
    assert "as http://edge:7890 said at 05 Jan 12:08 UTC" in text
    assert ('data-key="never-ended"' in text, ">1,200<" in text) == (True, True)
    # The lines of the stuck queues have a point where they are known, and none at 0 after it.
    titles = re.findall(r"<title>(.*?)</title>", drawing, re.DOTALL)
    assert len([title for title in titles if "stuck" in title]) == 1


def test_a_span_without_history_says_where_there_is_some(minutes: Lake) -> None:
    with pytest.raises(NoHistory, match=r"from 2026-01-05 13:00 to .* UTC: it has some from 2026"):
        gather(minutes, ReportRequest(since=NOON + HOUR))


@pytest.mark.parametrize(
    ("length", "attempts", "size"),
    [
        (10 * MINUTE, 10, MINUTE),
        (6 * HOUR, 10_000, MINUTE),
        (6 * HOUR, 100, 15 * MINUTE),
        (48 * HOUR, 3_000, HOUR),
        (14 * 24 * HOUR, 1_000_000, HOUR),
        (14 * 24 * HOUR, 1_500, 6 * HOUR),
        (366 * 24 * HOUR, 1_000_000, 24 * HOUR),
    ],
)
def test_buckets_follow_the_span_and_what_fills_it(length: int, attempts: int, size: int) -> None:
    span = ReportSpan.fitted(NOON + 1, NOON + length, attempts)

    assert span.size == size
    assert span.since <= NOON < NOON + length <= span.until
    assert span.since % size == span.until % size == 0


# Details of the drawing


def test_a_bar_of_failures_is_not_full_where_hardly_any_fail(
    ten_minutes: ReportFigures,
) -> None:
    rated = {"failure_rate": 1 / 4_000}
    queues = [Row(**row.asDict() | rated) for row in ten_minutes.queues]

    text = render(replace(ten_minutes, queues=queues), "Jobs")

    assert "0.03 %" in text
    widths = [float(width) for width in re.findall(r'<i style="width: ([0-9.]+)%', text)]
    assert len(widths) == len(queues)
    assert max(widths) == 0.5


def drawn(figures: ReportFigures) -> str:
    with plots.style():
        return plots.percentile_lines(figures, "wait")


def of_one(row: Row, span: ReportSpan) -> ReportFigures:
    names_of_none = ("queues", "other_queues", "queue_buckets", "types", "devices", "errors")
    nothing: dict[str, Any] = {name: [] for name in names_of_none} | {"known_until": {}}
    return ReportFigures(
        span=span, target_ms=1, outside=0, total=row, buckets=[row], hours=[row], **nothing
    )


def test_an_hour_that_stands_alone_is_a_dot() -> None:
    names = [f"wait_p{p}_ms" for p in (50, 95, 99)]
    row = Row(begin=MONDAY + 5 * HOUR, **dict.fromkeys(names, 7.0))

    text = drawn(of_one(row, ReportSpan(MONDAY, MONDAY + 24 * HOUR, HOUR)))

    dots = re.findall(r"<use [^>]*style=\"fill: var\(--p\d\d\)", text)
    assert len(dots) == 3
    assert "Mon 05 Jan, 05:00 UTC\np50  7 ms" in text


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ((410.0, 420.0, 430.0), {"200 ms", "500 ms"}),
        ((3.0, 70_000.0, 7_200_000.0), {"2 ms", "50 ms", "1 h"}),
    ],
)
def test_a_scale_of_durations_has_labels_however_close_they_are(
    values: tuple[float, ...], labels: set[str]
) -> None:
    named = {f"wait_p{p}_ms": value for p, value in zip((50, 95, 99), values, strict=True)}
    row = Row(begin=NOON, **named)

    text = drawn(of_one(row, ReportSpan(NOON, NOON + HOUR, HOUR)))

    found = re.findall(r">([0-9.]+ (?:ms|s|min|h|d))</text>", text)
    assert labels <= set(found)
    assert 2 <= len(found) <= plots.MOST_TICKS


def test_an_empty_lake_has_no_report(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NoHistory, match="has no history: bring some in by zq pipeline run"):
        gather(open_lake(spark, str(tmp_path / "lake")))
