"""Claims do not read over the rows of jobs that have gone, however long these stay."""

from pathlib import Path

from store.on_postgres import PostgresTicker, database_at
from zq.model.commands import Succeed
from zq.store.postgres.connection import SESSION, connect
from zq.store.postgres.floors import Floors

READ = "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE indexrelname LIKE 'ready_by%'"


def test_a_claim_reads_few_rows_beside_a_snapshot_that_stays(tmp_path: Path) -> None:
    ticker = PostgresTicker(tmp_path / "zq.db")
    with connect(database_at(tmp_path / "zq.db"), SESSION) as reader, reader.transaction():
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM jobs")
        for _ in range(100):
            ticker.store(20)
            ticker.run(Succeed(ticker.take(20)))
        ticker.connection.execute("SELECT pg_stat_force_next_flush()")
        # Each claim from the first job on would read over all that have gone: 100,000 rows.
        assert ticker.value(READ) < 20_000
    ticker.close()


def test_places_fall_with_jobs_that_come_before_them() -> None:
    floors = Floors()
    floors.begin()
    assert floors.of(None) == (-(2**31), 0)
    floors.found(None, (5, 10))
    floors.committed()
    floors.begin()
    assert floors.of(None) == (5, 10)
    floors.came([(6, 1), (5, 11)])
    assert floors.of(None) == (5, 10)
    floors.came([(5, 9)])
    assert floors.of(None) == (5, 9)
    # The transaction was undone.
    floors.begin()
    assert floors.of(None) == (-(2**31), 0)
