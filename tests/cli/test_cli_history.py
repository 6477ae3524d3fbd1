"""`zq history export`: complete segments, a correct manifest, and only new records."""

import asyncio
import gzip
import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from conformance.client import JSON, Client
from conformance.keyed import secret, write_keys
from conformance.site import Site
from conformance.streams import PATIENCE_S, pause

from zq.cli.group import main
from zq.features.history.client import DRAFT, Directory

DAY_MS = 86_400_000

pytestmark = pytest.mark.settings(history=7 * DAY_MS, device="edge-7")


class Ran(NamedTuple):
    code: int
    output: str
    errors: str


async def export(site: Site, out: Path, *words: str, **env: str) -> Ran:
    """Run the command against the test's server, which lives in this thread."""
    args = ["history", "export", "--out", str(out), "--url", site.url, *words]
    result = await asyncio.to_thread(CliRunner().invoke, main, args, env=env)
    return Ran(result.exit_code, result.stdout, result.stderr)


async def finish(site: Site, count: int) -> None:
    async with Client(site, JSON) as client:
        ids = await client.enqueue_many(count)
        stream = await client.take(prefetch=count)
        await stream.jobs(count)
        await client.succeed(*ids)
        await stream.close()
        # Its timers would look at a connection that is gone when the clock moves.
        async with asyncio.timeout(PATIENCE_S):
            while len(site.server.engine.streams):
                await pause()


def manifest(out: Path) -> Any:
    return json.loads((out / "manifest.json").read_bytes())


def records(file: Path) -> list[Any]:
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]


def exported(out: Path) -> list[int]:
    """The numbers of all records in the listed segments, checked against the manifest."""
    listed = manifest(out)
    found: list[int] = []
    for segment in listed["segments"]:
        file = out / segment["file"]
        seqs = [record["seq"] for record in records(file)]
        assert file.name == f"{listed['epoch']}-{seqs[0]:020}-{seqs[-1]:020}.ndjson.gz"
        assert seqs == list(range(segment["first_seq"], segment["last_seq"] + 1))
        assert segment["count"] == len(seqs)
        assert segment["bytes"] == file.stat().st_size
        assert segment["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
        found += seqs
    return found


def files(out: Path) -> set[str]:
    return {file.name for file in out.iterdir()}


async def test_records_go_into_segments_that_the_manifest_lists(site: Site, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    await finish(site, 5)
    ran = await export(site, out, "--segment-records", "2")
    assert ran == (0, "5 new records in 3 segments\n", f"server: {site.url}\n")
    assert exported(out) == [1, 2, 3, 4, 5]
    listed = manifest(out)
    assert (listed["format"], listed["device"]) == (1, "edge-7")
    assert [segment["count"] for segment in listed["segments"]] == [2, 2, 1]
    assert files(out) == {"manifest.json", *(each["file"] for each in listed["segments"])}
    async with Client(site, JSON) as client:
        served = (await client.get("/history")).doc["records"]
    assert [r for s in listed["segments"] for r in records(out / s["file"])] == served


async def test_again_it_adds_only_what_is_new(site: Site, tmp_path: Path) -> None:
    out = tmp_path / "out"
    await finish(site, 2)
    await export(site, out)
    before = files(out)
    assert (await export(site, out)).output == "0 new records in 0 segments\n"
    assert files(out) == before
    await finish(site, 3)
    ran = await export(site, out, "--json")
    (new,) = files(out) - before
    assert json.loads(ran.output) == {"records": 3, "segments": [new], "lost": []}
    assert exported(out) == [1, 2, 3, 4, 5]


async def test_an_empty_history_is_exported_as_nothing(site: Site, tmp_path: Path) -> None:
    assert (await export(site, tmp_path)).output == "0 new records in 0 segments\n"
    assert files(tmp_path) == {"data"}


@pytest.mark.parametrize(
    ("hours", "expected"), [(0, [1, 2, 3, 4]), (1, [1, 2, 3, 4]), (2, [3, 4]), (3, [4]), (4, [])]
)
async def test_an_empty_directory_begins_at_a_moment(
    site: Site, tmp_path: Path, hours: int, expected: list[int]
) -> None:
    out = tmp_path / "out"
    for count in (2, 1, 1):
        site.clock.advance(3_600_000)
        await finish(site, count)
    # The site's clock begins at 2025-06-15T15:06:40 UTC.
    ran = await export(site, out, "--since", f"2025-06-15T{15 + hours}:06:40")
    assert ran.code == 0, ran
    assert (exported(out) if expected else []) == expected


async def test_a_moment_is_found_beside_records_that_are_gone(site: Site, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for count in (2, 1, 1):
        site.clock.advance(3_600_000)
        await finish(site, count)
    # As where a batch was unreadable, and was set aside.
    site.run_sql("DELETE FROM log_batches WHERE last_seq = 3")
    ran = await export(site, out, "--since", "2025-06-15T17:06:40")
    assert ran.code == 0, ran
    assert exported(out) == [4]


async def test_so_long_ago_is_a_moment_too(site: Site, tmp_path: Path) -> None:
    await finish(site, 1)
    assert (await export(site, tmp_path / "a", "--since", "10s")).output.startswith("0 new")
    assert (await export(site, tmp_path / "b", "--since", "3650d")).output.startswith("1 new")
    assert (await export(site, tmp_path / "c", "--since", "soon")).code == 2


async def test_what_was_too_late_is_named_and_the_rest_goes_on(site: Site, tmp_path: Path) -> None:
    out = tmp_path / "out"
    await finish(site, 1)
    await export(site, out)
    await finish(site, 2)
    site.clock.advance(6 * DAY_MS)
    await finish(site, 2)
    site.clock.advance(DAY_MS)
    async with Client(site, JSON) as client:
        while (await client.get("/history")).doc["min_seq"] == 1:
            await pause()
    ran = await export(site, out)
    assert ran.output == "2 new records in 1 segment\n"
    assert "the retention of records 2 to 3 ended" in ran.errors
    assert [s["first_seq"] for s in manifest(out)["segments"]] == [1, 4]


# After a cut at any step


async def test_a_segment_that_was_cut_off_is_written_again(site: Site, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / DRAFT).write_bytes(b"half a segm")
    await finish(site, 2)
    assert (await export(site, out)).code == 0
    assert exported(out) == [1, 2]
    assert DRAFT not in files(out)


@pytest.mark.parametrize("listed", [0, 1])
async def test_segments_that_were_not_listed_yet_are(
    site: Site, tmp_path: Path, listed: int
) -> None:
    out = tmp_path / "out"
    await finish(site, 5)
    await export(site, out, "--segment-records", "2")
    whole, before = manifest(out), files(out)
    if listed:
        cut = whole | {"segments": whole["segments"][:listed]}
        (out / "manifest.json").write_text(json.dumps(cut))
    else:
        (out / "manifest.json").unlink()
    assert (await export(site, out)).output == "0 new records in 0 segments\n"
    assert manifest(out) == whole
    assert files(out) == before


# What cannot be


async def test_a_directory_of_another_database_is_left_alone(site: Site, tmp_path: Path) -> None:
    out = tmp_path / "out"
    await finish(site, 1)
    await export(site, out)
    before = manifest(out)
    await site.stop()
    site.root = tmp_path / "other"
    await site.start()
    await finish(site, 1)
    ran = await export(site, out)
    assert ran.code == 1
    assert "the history of another database" in ran.errors
    assert manifest(out) == before


async def test_two_exports_do_not_write_into_one_directory(site: Site, tmp_path: Path) -> None:
    with Directory(tmp_path / "out"):
        ran = await export(site, tmp_path / "out")
    assert (ran.code, "another export" in ran.errors) == (1, True)


@pytest.mark.parametrize("text", ["", "{}", '{"epoch": "e", "device": "d", "format": 2}'])
async def test_a_manifest_that_is_none_is_left_alone(site: Site, tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    ran = await export(site, tmp_path)
    assert (ran.code, "manifest.json" in ran.errors) == (1, True)
    assert (tmp_path / "manifest.json").read_text() == text


async def test_a_server_that_is_away_is_named(tmp_path: Path) -> None:
    away = ["history", "export", "--out", str(tmp_path / "o"), "--url", "http://127.0.0.1:9"]
    result = await asyncio.to_thread(CliRunner().invoke, main, away)
    assert result.exit_code == 1
    assert "no zq server answers at http://127.0.0.1:9" in result.stderr


@pytest.mark.settings(history=0)
async def test_a_server_without_a_history_says_so(site: Site, tmp_path: Path) -> None:
    ran = await export(site, tmp_path)
    assert (ran.code, "start it with --history 7d" in ran.errors) == (0, True)


async def test_the_key_comes_from_the_environment(tmp_path: Path) -> None:
    settings = {"keys": write_keys(tmp_path / "keys"), "history": DAY_MS}
    site = Site(tmp_path / "data", settings)
    await site.start()
    refused = await export(site, tmp_path / "a")
    assert (refused.code, secret("only-history") in refused.errors) == (1, False)
    assert (await export(site, tmp_path / "a", ZQ_TOKEN=secret("only-read"))).code == 1
    assert (await export(site, tmp_path / "a", ZQ_TOKEN=secret("only-history"))).code == 0
    await site.stop()
