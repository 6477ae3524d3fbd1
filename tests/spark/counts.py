"""What queries of `format("zq")` count, as JSON: run with any PySpark from 4.0 on.

    python counts.py URL

A DataFrame is asked in turn, in one plan twice, joined with itself and cached: Spark may plan its
scan once and use that for all of them, so no query may leave anything in it for the next. A stream
is started three times, and keeps the place of a server that it does not ask for a time. The last
are asked with filter push-down switched on, as another source of the session may need it.
"""

import json
import sys
from tempfile import TemporaryDirectory

import pyspark
from pyspark.sql import DataFrame, SparkSession

import zq.spark

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def counts(session: SparkSession, url: str) -> dict[str, int]:
    """The name of each query, and the rows that it has."""
    zq.spark.register(session)

    def load(**given: str) -> DataFrame:
        return session.read.format("zq").options(url=url, **given).load()

    history = load()
    dead, done = history.where("outcome = 'dead'"), history.where("outcome = 'completed'")
    found = {"dead": dead.count(), "all": history.count()}
    found["union"] = dead.union(done).count()
    found["union of reads"] = load(outcome="dead").union(load(type="t1")).count()
    found["self-join"] = dead.join(history.where("seq > 10"), "seq").count()
    found["range"] = load(after="10", until="30").where("seq > 20").count()
    kept = dead.cache()
    found["cached"] = kept.count()
    found["done beside cached"] = done.count()
    kept.unpersist()
    jobs = load(table="jobs", partitions="1")
    found["union of jobs"] = jobs.where("queue = 'mail'").union(jobs).count()

    with TemporaryDirectory() as checkpoint:
        for name, urls in streams(url).items():
            found[name] = streamed(session, urls, checkpoint)

    session.conf.set(PUSHDOWN, "true")
    try:
        history = load()
        found["switched on: dead"] = history.where("outcome = 'dead'").count()
        found["switched on: all"] = history.count()
    finally:
        session.conf.unset(PUSHDOWN)
    return found


def streams(url: str) -> dict[str, str]:
    """The starts of one stream, with the servers of each: that one under two addresses."""
    both = f"{url},{url.replace('127.0.0.1', 'localhost')}"
    return {"stream": both, "one server less": url, "both again": both}


def streamed(session: SparkSession, urls: str, checkpoint: str) -> int:
    """How many records a stream reads that is started, and started again, at a checkpoint."""
    counted: list[int] = []
    stream = session.readStream.format("zq").option("urls", urls).load().writeStream
    stream = stream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    query = stream.foreachBatch(lambda rows, _: counted.append(rows.count())).start()
    query.awaitTermination()
    return sum(counted)


if __name__ == "__main__":
    session = SparkSession.Builder().master("local[2]").getOrCreate()
    print(json.dumps({"version": pyspark.__version__, "counts": counts(session, sys.argv[1])}))
    session.stop()
