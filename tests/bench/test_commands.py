"""The bench's commands, as their user gives them."""

from __future__ import annotations

import io
import json
import re
import subprocess
from contextlib import redirect_stderr, redirect_stdout

import pytest
from rooms import needs

from bench.__main__ import arguments, run
from bench.baseline_disk import KINDS, Kind
from bench.beside import COMPANIONS, run_beside
from bench.load import in_own_process
from bench.publish import HAVE_ROUNDS, HAVE_SECONDS, SECTIONS, publish
from bench.servers import lab

BRIEF = "0.2"
"""Seconds of each load. It goes on until something has come back."""

BRIEFER = "0.05"
"""Seconds of loads before which jobs are stored: more than a server hands out within them."""


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    """Run it in this process, whose servers are forked. They cost less than those of another."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run([*words])
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def test_a_server_beside_itself_has_a_line_for_each_and_one_ratio() -> None:
    shown = bench(
        "--servers", "baseline,baseline", "--rows", "single-8", "--rounds", "1", "--seconds", BRIEF
    )
    assert not shown.returncode, shown.stderr
    header, first, second = shown.stdout.strip().splitlines()[-3:]
    assert "baseline / it" in header
    assert len(second.split()) == len(first.split()) + len(["again", "ratio", "low-high", "by CPU"])


def test_servers_run_in_turns_and_have_an_error_over_rounds() -> None:
    words = ("--servers", "baseline,baseline", "--rows", "take-50", "--seconds", BRIEF)
    shown = bench("turns", *words, "--rounds", "2", "--turns", "1")
    assert not shown.returncode, shown.stderr
    header, *lines = (re.split("  +", line) for line in shown.stdout.strip().splitlines()[-3:])
    assert header == ["row", "server", "CPU µs/job", "baseline / it, by CPU", "±"]
    (_, first, _), (_, second, _, ratio, error) = lines
    assert (first, second) == ("baseline", "baseline again")
    assert float(ratio) > 0 <= float(error)


@pytest.mark.parametrize("kind", KINDS)
def test_the_baseline_ticks_where_it_is_told_to(kind: Kind) -> None:
    words = ["--servers", "baseline", "--rows", "single-1", "--rounds", "1", "--seconds", BRIEF]
    shown = bench(*words, "--baseline", kind, "--json")
    assert not shown.returncode, shown.stderr
    (sample,) = json.loads(shown.stdout)["results"]
    assert sample["result"]["measures"][0]["jobs"] > 0


def test_a_path_that_is_missing_is_asked_for() -> None:
    words = ["--servers", "zizq", "--rows", "single-1", "--rounds", "1"]
    shown = bench(*words)
    assert shown.returncode == 1
    assert "--zizq" in shown.stderr


@pytest.mark.parametrize("companion", COMPANIONS)
def test_a_lone_caller_is_answered_beside_others(companion: str) -> None:
    with lab() as place, place.server("baseline") as target:
        waits, rate = in_own_process(run_beside, target, companion, 3, float(BRIEF))
    assert waits
    assert (rate > 0) is (companion != "alone")


def test_claims_are_measured_beside_jobs_that_wait_for_a_budget() -> None:
    shown = bench("lines", "--waiting", "500", "--jobs", "10", "--ticks", "3", "--json")
    assert not shown.returncode, shown.stderr
    (cost,) = json.loads(shown.stdout)["results"]
    assert cost["waiting"] == 500
    assert cost["alone"] > 0 < cost["beside"]


def test_devices_are_measured_beside_the_flood_of_one() -> None:
    shown = bench("fleet", "--seconds", BRIEF, "--rounds", "1", "--json")
    assert not shown.returncode, shown.stderr
    calm, floods, _ = json.loads(shown.stdout)["results"]
    assert calm["requests"] == floods["requests"] == round(199 * float(BRIEF))
    assert calm["flood"] == 0 < floods["flood"]


def test_servers_that_share_a_database_are_measured_in_sum() -> None:
    # Processor time is counted in ticks of a hundredth of a second.
    words = ("--rows", "single", "--counts", "0,2", "--rounds", "1", "--seconds", "0.5")
    shown = bench("several", *words, "--json")
    assert not shown.returncode, shown.stderr
    found = json.loads(shown.stdout)["results"]
    assert [each["servers"] for each in found] == [0, 2]
    assert all(each["rate"] > 0 < each["server_cpu"] for each in found)


def test_a_lane_is_measured_from_the_first_job_to_the_last() -> None:
    shown = bench("lane", "--jobs", "500", "--batches", "100", "--json")
    assert not shown.returncode, shown.stderr
    (found,) = json.loads(shown.stdout)["results"]
    assert found["jobs"] == 500 and found["rate"] > 0 < found["bytes"]


def test_others_are_measured_beside_the_flood_of_a_tenant() -> None:
    shown = bench("flood", "--jobs", "1000", "--seconds", BRIEF, "--json")
    assert not shown.returncode, shown.stderr
    found = json.loads(shown.stdout)["results"]
    assert [each["case"] for each in found] == ["no fair keys", "fair keys", "no flood"]
    assert all(each["jobs"] == round(100 * float(BRIEF)) and each["p50"] > 0 for each in found)


def test_cron_entries_are_all_installed_before_they_are_measured() -> None:
    shown = bench("entries", "--entries", "50", "--rounds", "1", "--seconds", BRIEFER, "--json")
    assert not shown.returncode, shown.stderr
    ((without, beside),) = json.loads(shown.stdout)["results"]
    assert (without["entries"], beside["entries"]) == (0, 50)
    assert beside["rate"] > 0


def test_every_section_that_is_published_is_a_command_with_its_options() -> None:
    ran: list[list[str]] = []

    def note(words: list[str]) -> int:
        arguments().parse_args(words)
        ran.append(words)
        return len(ran) == 2

    assert publish(note, ["--before", "."], rounds=2, seconds=1) == 1
    assert len(ran) == len(SECTIONS)
    for words in ran:
        assert ("--rounds" in words) is (words[0] in HAVE_ROUNDS)
        assert ("--seconds" in words) is (words[0] in HAVE_SECONDS)


@needs("doors.topics")
def test_a_topic_is_read_by_its_size() -> None:
    shown = bench("topics", "--records", "1k,2k", "--seconds", BRIEF, "--json")
    assert not shown.returncode, shown.stderr
    found = json.loads(shown.stdout)["results"]
    assert [each["row"] for each in found] == [1_000, 2_000]
    assert all(each["measure"]["jobs"] > 0 for each in found)


def test_messages_are_consumed_beside_native_claims() -> None:
    shown = bench("messages", "--rounds", "1", "--seconds", BRIEFER, "--json")
    assert not shown.returncode, shown.stderr
    found = json.loads(shown.stdout)["results"]
    assert [each["row"] for each in found] == ["dequeue", "record", "claim"]
    assert all(each["measure"]["jobs"] > 0 for each in found)


@pytest.mark.long
def test_rows_of_an_outbox_are_moved_beside_both_halves_of_the_work() -> None:
    shown = bench("outbox", "--rounds", "1", "--rows", "100", "--jobs", "2", "--json")
    assert not shown.returncode, shown.stderr
    found = {each["row"]: each for each in json.loads(shown.stdout)["results"]}
    assert all(found[row]["rate"] > 0 for row in ("bulk", "rows", "relay"))
    assert all(0 < found[row]["p50_ms"] <= found[row]["p99_ms"] for row in ("commit", "sqlite"))
