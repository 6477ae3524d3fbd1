"""`zq pipeline` as users run it, in a process of its own."""

import asyncio
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from documents import SERVER, commands, words
from process.server import running

from spark.commands import configured, zq, zq_twice
from spark.fleet import history, write_segments
from spark.sessions import QUICK
from zq.spark.pipeline import tables
from zq.spark.pipeline.estimates import ACCURACY
from zq.spark.pipeline.tables import Table

ROOT = Path(__file__).parents[2]


def test_the_documents_tell_every_table_and_option() -> None:
    text = words("docs/pipeline.md")
    found = {each.name for each in vars(tables).values() if isinstance(each, Table)}

    assert {f"`{name}`" for name in found} <= set(re.findall("`[^`]*`", text))
    for option in (
        "--from",
        "--lake",
        "--streaming",
        "--every",
        "--target-wait",
        "--master",
        "--days",
        "--to",
        "--stats",
    ):
        assert option in text
    assert f"within {round(ACCURACY * 100)} %" in text


def test_segments_become_a_lake_and_the_lake_a_page(tmp_path: Path) -> None:
    quick = configured(tmp_path / "conf", QUICK)
    records = history("edge-1", 30, seed=1)
    write_segments(tmp_path / "in", records, 100)
    lake, page = tmp_path / "lake", tmp_path / "report.html"

    span = ("--from", "2026-01-05T06:00", "--to", "2026-01-06")
    ran = zq_twice(
        ("run", "--from", tmp_path / "in", "--lake", lake, "--target-wait", "1m"),
        ("report", "--lake", lake, "--out", page, "--title", "Mine", *span),
        SPARK_CONF_DIR=quick,
    )
    assert ran.returncode == 0, ran.stderr

    assert f"{len(records)} new records of 1 segments" in ran.stderr
    words = [line.split()[0] for line in ran.stderr.splitlines()]
    steps = ["bronze", "attempts", "jobs", "gold", "summary", "figures", "page"]
    assert words == steps, "and nothing of Java's"
    text = page.read_text(encoding="utf-8")
    assert "<title>Mine</title>" in text
    assert "5 January 2026, 06:" in text
    assert "under 1 min" in text
    assert str(page) in ran.stderr


@pytest.mark.long  # Spark starts twice, beside a server
async def test_the_commands_of_the_documents_read_a_server_and_a_directory(tmp_path: Path) -> None:
    places: dict[str, object] = {
        "/media/usb/history": tmp_path / "in",
        "/srv/lake": tmp_path / "lake",
    }
    write_segments(tmp_path / "in", history("edge-1", 30, seed=1), 100)
    quick = configured(tmp_path / "conf", QUICK)
    async with running(tmp_path / "data", "--history", "7d") as server:
        places |= {SERVER: f"http://127.0.0.1:{server.port}"}
        places |= {"report.html": tmp_path / "report.html"}
        for command in commands("lake and report"):
            for printed, here in places.items():
                command = command.replace(printed, str(here))
            assert command.startswith("zq pipeline ")
            arguments = shlex.split(command)[2:]
            ran = await asyncio.to_thread(zq, *arguments, SPARK_CONF_DIR=quick)
            assert ran.returncode == 0, ran.stderr
    assert "<title>" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.long  # Spark starts for it
async def test_a_server_without_a_history_is_told_in_a_line(tmp_path: Path) -> None:
    async with running(tmp_path / "data") as server:
        url = f"http://127.0.0.1:{server.port}"
        ran = await asyncio.to_thread(zq, "run", "--from", url, "--lake", tmp_path / "lake")
    told = ran.stderr.splitlines()[-1]
    assert told.endswith(f"{url} keeps no history: start the server with --history 7d")
    assert "SQLSTATE" not in told


@pytest.mark.parametrize(("path", "home"), [("/nowhere", ""), (None, "/no/java")])
def test_without_java_it_says_what_to_install(tmp_path: Path, path: str | None, home: str) -> None:
    variables = {"JAVA_HOME": home} if home else {}
    ran = zq("report", "--lake", tmp_path, "--out", tmp_path / "x", path=path, **variables)

    assert ran.returncode == 1
    assert "apt-get install openjdk-17-jre-headless" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_where_spark_does_not_start_it_shows_what_spark_says(tmp_path: Path) -> None:
    conf = configured(tmp_path / "conf", {"spark.jars.packages": "nonsense"})

    ran = zq("run", "--from", tmp_path, "--lake", tmp_path / "lake", SPARK_CONF_DIR=conf)

    assert ran.returncode == 1
    assert "The coordinate provided is: nonsense" in ran.stderr
    assert "Error: Spark did not start, for the reason that it gives above" in ran.stderr
    assert "PySparkRuntimeError" not in ran.stderr


def test_a_duration_that_is_none_is_refused_before_spark_starts(tmp_path: Path) -> None:
    ran = zq("run", "--from", tmp_path, "--lake", tmp_path, "--target-wait", "soon")

    assert ran.returncode == 2
    assert '"soon" is not a duration: write a number with its unit' in ran.stderr


def test_a_span_that_ends_before_it_begins_is_refused(tmp_path: Path) -> None:
    span = ("--from", "2026-01-06", "--to", "2026-01-05")

    ran = zq("report", "--lake", tmp_path, "--out", tmp_path / "x", *span)

    assert ran.returncode == 2
    assert "--from must be earlier than --to" in ran.stderr


def test_no_other_command_imports_spark_or_what_draws() -> None:
    """Only what `zq pipeline` itself runs may need the extra."""
    program = (
        "import sys, zq.cli, zq.cli.pipeline, zq.runtime\n"
        "heavy = {'pyspark', 'py4j', 'pyarrow', 'matplotlib', 'jinja2', 'numpy'}\n"
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}))"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.stdout == "[]\n", done.stderr


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'pyspark'\", name='pyspark')"
    )

    ran = zq("run", "--from", tmp_path, "--lake", tmp_path, PYTHONPATH=str(tmp_path))

    assert ran.returncode == 1
    assert ran.stderr == "Error: this takes the package pyspark: pip install 'zq-queue[spark]'\n"
