"""The output of a run while it works."""

from pathlib import Path
from threading import Event, Thread

from pyspark.sql import SparkSession

from zq.spark.pipeline.progress import RunProgress


def test_a_step_tells_how_many_of_its_tasks_are_done(spark: SparkSession, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    half_done = Event()
    said: list[str] = []

    def live(line: str) -> None:
        if "[==========" in line and "3 of 6 tasks" in line:
            half_done.set()

    def work(number: int) -> int:
        import time

        while number >= 3 and not gate.exists():
            time.sleep(0.02)
        return number

    def open_gate() -> None:
        half_done.wait(300)
        gate.touch()

    opener = Thread(target=open_gate)
    opener.start()
    with RunProgress(said.append, live).step("count", spark.sparkContext) as step:
        numbers = spark.sparkContext.parallelize(range(6), 6)
        step.result = f"{numbers.map(work).sum()} in all"
    opener.join()

    assert half_done.is_set()
    assert said[0].startswith("count")
    assert said[0].endswith("15 in all")
