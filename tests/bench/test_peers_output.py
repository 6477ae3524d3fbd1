"""What a comparison prints, writes and draws, from samples made here."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from bench.peers.cli import RESULTS
from bench.peers.plots import draw
from bench.peers.rows import ROWS, Figures, Metric
from bench.peers.summary import Sample, Spread, ratio, spread, trouble
from bench.peers.tables import (
    Run,
    brief,
    document,
    first_on_disk,
    row_table,
    summary,
    text,
    write_between,
)

RATE = Metric("rate", "rate", "jobs/s")
P50 = Metric("p50", "p50", "ms", higher_wins=False)
ZQ, FSYNC, DEFAULT = "zq-http", "litequeue/fsync", "litequeue/default"


def samples(row: str, contender: str, *figures: Figures | None) -> list[Sample]:
    return [
        Sample(row, contender, number, each, "" if each else "failed: it broke")
        for number, each in enumerate(figures)
    ]


def rates(row: str, contender: str, *values: float) -> list[Sample]:
    return samples(row, contender, *(Figures(100, value) for value in values))


def a_run(*found: list[Sample], rows: tuple[str, ...] = ("single-1",)) -> Run:
    facts = {"command": "python -m bench peers", "commit": "abc", "date": "today"}
    versions = {"zq-http": "1", "litequeue": "2"}
    missing = {"bullmq": "npm is not installed"}
    together = [sample for some in found for sample in some]
    return Run(facts, rows, [ZQ, FSYNC, DEFAULT, "bullmq/always"], versions, missing, together)


def test_a_spread_is_the_median_and_both_ends() -> None:
    found = rates("single-1", ZQ, 30.0, 10.0, 20.0) + rates("single-64", ZQ, 99.0)
    assert spread(found, "single-1", ZQ, "rate") == Spread(20.0, 10.0, 30.0)
    assert spread(found, "single-1", ZQ, "p50") is None
    assert spread(found, "single-1", FSYNC, "rate") is None


def test_ratios_are_taken_within_a_round() -> None:
    found = rates("single-1", ZQ, 10.0, 100.0, 30.0) + rates("single-1", FSYNC, 5.0, 10.0, 10.0)
    # 2, 10 and 3: of the medians it would be 3 as well, of the second and third round alone not.
    assert ratio(found, "single-1", FSYNC, ZQ, RATE) == 3.0
    found = rates("single-1", ZQ, 10.0, 100.0, 40.0) + rates("single-1", FSYNC, 10.0, 20.0, 5.0)
    assert ratio(found, "single-1", FSYNC, ZQ, RATE) == 5.0  # 4 of the medians


def test_where_less_is_better_the_ratio_turns_round() -> None:
    found = samples("reply", ZQ, Figures(1, 1.0, p50=2.0))
    found += samples("reply", FSYNC, Figures(1, 1.0, p50=8.0))
    assert ratio(found, "reply", FSYNC, ZQ, P50) == 4.0


def test_a_round_that_one_of_two_lacks_has_no_ratio() -> None:
    found = rates("single-1", ZQ, 10.0)
    found += samples("single-1", FSYNC, None, Figures(1, 5.0))
    assert ratio(found, "single-1", FSYNC, ZQ, RATE) is None
    assert trouble(found, "single-1", FSYNC) == "failed: it broke"
    assert trouble(found, "single-1", ZQ) == ""


def test_the_first_of_a_row_has_its_acknowledgements_on_disk() -> None:
    run = a_run(
        rates("single-1", ZQ, 10.0),
        rates("single-1", FSYNC, 20.0),
        rates("single-1", DEFAULT, 30.0),
    )
    assert first_on_disk(run, ROWS["single-1"]) == FSYNC
    assert f"First: {DEFAULT}. First with acknowledgements on disk: {FSYNC}." in document(run)
    lines = {cells[0]: cells[1:] for cells in summary(run).lines}
    assert lines == {ZQ: ["yes", "10"], FSYNC: ["yes", "**20**"], DEFAULT: ["no", "30"]}


def test_a_row_shows_the_best_first_beside_the_reference() -> None:
    run = a_run(rates("single-1", ZQ, 10.0, 12.0), rates("single-1", DEFAULT, 40.0, 48.0))
    table = row_table(run, ROWS["single-1"])
    assert [cells[:5] for cells in table.lines] == [
        [DEFAULT, "no", "44", "40-48", "0.25 times"],
        [ZQ, "yes", "11", "10-12", "1.00 times"],
    ]


def test_in_a_row_of_latencies_the_lowest_is_first() -> None:
    run = a_run(
        samples("reply", ZQ, Figures(1, 1.0, p50=1.0, p99=9.0)),
        samples("reply", FSYNC, Figures(1, 1.0, p50=0.5, p99=9.5)),
        rows=("reply",),
    )
    assert [cells[0] for cells in row_table(run, ROWS["reply"]).lines] == [FSYNC, ZQ]


def test_nobody_is_left_out_in_silence() -> None:
    run = a_run(rates("single-1", ZQ, 1.0), samples("single-1", FSYNC, None))
    for shown in (text(run), document(run)):
        assert "bullmq is missing: npm is not installed" in shown
        assert f"single-1, {FSYNC}: failed: it broke" in shown


def test_a_log_is_shortened_to_the_line_that_names_the_error() -> None:
    log = "failed: exit status 1:\n  at one\nValueError: no such thing\n\nNode.js v20\n"
    assert brief(log) == "failed: exit status 1: ValueError: no such thing"
    assert brief("no bulk call") == "no bulk call"


def test_the_document_says_what_every_contender_does() -> None:
    written = document(a_run(rates("single-1", ZQ, 1.0)), images="plots")
    assert "![single-1](plots/peers-single-1.png)" in written
    assert "- commit: abc" in written
    for word in ("synced (synchronous=FULL)", "not synced (NORMAL)", "pop and done"):
        assert word in written


def test_a_run_survives_json() -> None:
    run = a_run(rates("single-1", ZQ, 1.0), samples("single-1", FSYNC, None))
    again = Run.load(json.dumps(asdict(run)))
    assert text(again) == text(run)
    with pytest.raises(ValueError, match="--json"):
        Run.load("{}")


def test_only_what_lies_between_the_markers_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("before\n<!-- peers -->\nold\n<!-- /peers -->\nafter\n")
    for table in ("new\n", "newer\n"):
        write_between(path, "peers", table)
        expected = f"before\n<!-- peers -->\n{table}<!-- /peers -->\nafter\n"
        assert path.read_text() == expected


@pytest.mark.parametrize("content", ["no markers\n", "<!-- peers -->\nno end\n"])
def test_a_file_without_both_markers_stays_as_it_is(tmp_path: Path, content: str) -> None:
    path = tmp_path / "README.md"
    path.write_text(content)
    with pytest.raises(ValueError, match="has no <!-- peers -->"):
        write_between(path, "peers", "new")
    assert path.read_text() == content


def test_the_results_of_the_bench_have_the_markers() -> None:
    assert "<!-- peers -->\n" in RESULTS.read_text()
    assert "<!-- /peers -->" in RESULTS.read_text()


def test_a_picture_for_each_row_that_has_figures(tmp_path: Path) -> None:
    run = a_run(
        rates("single-1", ZQ, 5000.0, 6000.0),
        rates("single-1", DEFAULT, 40.0, 48.0),
        samples("reply", ZQ, Figures(1, 1.0, p50=1.0, p99=9.0)),
        samples("bulk", FSYNC, None),
        rows=("single-1", "reply", "bulk"),
    )
    drawn = draw(run, tmp_path / "plots")
    assert [path.name for path in drawn] == ["peers-single-1.png", "peers-reply.png"]
    for path in drawn:
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size > 5000
