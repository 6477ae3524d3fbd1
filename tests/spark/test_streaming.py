"""Segments that go through the pipeline as they arrive."""

import shlex
from contextlib import ExitStack
from pathlib import Path
from time import monotonic

import msgspec
import pytest
from documents import SERVER, code
from pyspark.sql import SparkSession
from store.rig import NOW

from spark.fleet import history, write_segments
from spark.served import Served, past, served
from spark.test_crash import check
from zq.features.history.model import HistoryRecord
from zq.spark.errors import NoHistory
from zq.spark.pipeline import PipelineOptions, open_lake, run, watch
from zq.spark.pipeline.progress import RunProgress
from zq.spark.pipeline.steps import FOLLOWS


def test_a_stream_takes_what_arrives_and_what_it_is_given_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    said: list[str] = []
    usb, net, path = tmp_path / "usb", tmp_path / "net", str(tmp_path / "lake")
    one, two = history("edge-1", 30, seed=1), history("edge-2", 30, seed=2)
    write_segments(usb, one[10:], 20)
    net.mkdir()
    run(spark, [str(usb)], path, RunProgress(said.append))
    folders = [str(usb), str(net)]

    [query] = watch(spark, folders, path, RunProgress(said.append), PipelineOptions(), 200)
    query.processAllAvailable()
    write_segments(net / "edge-2", two, 100)
    query.processAllAvailable()
    query.stop()
    # While it was down more came, some of it twice.
    write_segments(usb, one[:15], 100)
    [again] = watch(spark, folders, path, RunProgress(said.append), PipelineOptions(), 200)
    again.processAllAvailable()
    again.stop()

    check(open_lake(spark, path), [*one, *two])
    batches = [line.partition(" s  ")[2] for line in said if "batch" in line]
    assert batches == [
        "0 new records of batch 0 of segments",
        f"{len(two)} new records of batch 1 of segments",
        "10 new records of batch 2 of segments",
    ]
    # Nothing follows a batch without new records.
    whole = ["bronze", *FOLLOWS]
    assert [line.split()[0] for line in said] == [*whole, "bronze", *whole, *whole]


def test_a_folder_that_is_not_there_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NoHistory, match="nowhere does not exist"):
        watch(
            spark,
            [str(tmp_path / "nowhere")],
            str(tmp_path / "lake"),
            RunProgress(print),
            PipelineOptions(),
            200,
        )


def test_a_hub_has_the_sums_of_its_devices_and_its_exports_meet_them_in_one_lake(
    spark: SparkSession, tmp_path: Path
) -> None:
    said: list[str] = []
    names = ("edge-1", "edge-2")
    past(tmp_path / "edge-1", 4, 10, "edge-1")
    # Databases of tests have one identity: at other times their jobs have other ids.
    past(tmp_path / "edge-2", 6, 10, "edge-2", NOW + 5_000_000)
    with ExitStack() as running:
        hub = running.enter_context(served(tmp_path / "hub", device="hub"))
        devices = [
            running.enter_context(served(tmp_path / name, device=name, forward=f"out*={hub.url}"))
            for name in names
        ]
        ends = monotonic() + 60
        while len(hub.call("GET", "/history")["records"]) < 100:
            assert monotonic() < ends
            for device in devices:
                # What waits for more to be sent with goes at once.
                device.call("POST", "/forward/out/resume", {})
        words = shlex.split(code("fleet: report of the fleet").replace(SERVER, hub.url))
        assert words[:3] == ["zq", "pipeline", "run"] and words[-2] == "--lake"
        lake = str(tmp_path / words[-1])
        origins = [words[4], "http://127.0.0.1:1"]
        run(spark, origins, lake, RunProgress(said.append))
        at_devices = [record for device in devices for record in _records(device)]
        at_hub = _records(hub)
        hub.cancel(3)
        exported = _records(hub)
        write_segments(tmp_path / "usb", exported, 60)
        run(spark, [str(tmp_path / "usb"), *origins], lake, RunProgress(said.append))

    # All that the sums follow from is equal: the numbers are those of the database that is read.
    assert sorted(map(_of_the_job, at_hub)) == sorted(map(_of_the_job, at_devices))
    assert {record.device for record in at_hub} == set(names)
    check(open_lake(spark, lake), exported)
    told = [line.partition(" s  ")[2] for line in said if line.startswith("bronze")]
    assert told == [
        "100 new records of batch 0 of servers",
        "3 new records of 2 segments",
        "0 new records of batch 1 of servers",
    ]


def _records(server: Served) -> list[HistoryRecord]:
    found = server.call("GET", "/history?after=0")["records"]
    return [msgspec.convert(row, HistoryRecord) for row in found]


def _of_the_job(record: HistoryRecord) -> str:
    return str(msgspec.structs.replace(record, epoch="", seq=0))
