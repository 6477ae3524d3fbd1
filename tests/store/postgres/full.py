"""A data directory with rows in every table."""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

from store.rig import Ticker, new_job
from zq.model.commands import Fail, SetQueue, Succeed
from zq.model.job import DedupeRule, Extras, JobSettings, Retention
from zq.model.log import Bounds, HistoryOptions
from zq.model.settings import QueueSettings
from zq.model.settling import Completion, Failure
from zq.model.unique import Scope

FAIR = msgspec.convert({"fair_key": "acme"}, JobSettings)

ROWS = """
INSERT INTO quarantine VALUES ('jobs', '7', 1, 'damaged', x'00ff27', NULL);
INSERT INTO queue_rates VALUES ('q', 0.1, 5);
INSERT INTO cron_groups VALUES ('night', 'Europe/Berlin', 1, 3, NULL);
INSERT INTO cron_entries VALUES
    ('night', 'bill', '0 3 * * *', NULL, 0, NULL, NULL, 9, 8, 7, 'q', '{"type":"t"}', 4);
INSERT INTO open_batches VALUES (77, 'b' || char(0) || 'k', 2);
INSERT INTO error_groups VALUES ('sig', 'q', NULL, 'boom', 1, 2, 3, 4, '["t"]');
INSERT INTO failure_counts VALUES (60000, 120000, 'sig', 'q', 3);
INSERT INTO topics (name, config, head_seq) VALUES ('news', '{"type":"log"}', 5), (NULL, '{}', 0);
INSERT INTO topic_records VALUES (2199023255552, 1, 3, 'n', 'tag', NULL, '"é"', NULL, 9);
INSERT INTO topic_jobs VALUES (2199023255553, 12, NULL, 'tag');
INSERT INTO topic_writes (topic, key, first_seq, last_seq, until) VALUES (1, 'w', 1, 2, 3);
INSERT INTO topic_routers VALUES ('r', 'news', 'q', '{}', 6);
INSERT INTO schemas VALUES ('q', '{"type":"object"}', 1, 2);
INSERT INTO users VALUES ('u', 'ann', 'hash', 1, 2, 3);
INSERT INTO user_grants VALUES ('g', 'u', 'consume', '*', 'grp', 4);
INSERT INTO trends VALUES (60000, 'q', 60000, 1, 2, 3, 4, 5, 6, '[1]', '[2]');
INSERT INTO type_trends VALUES (60000, 60000, 'q', 't', 1, 2, '[3]');
INSERT INTO sweeps VALUES (5, '{"verb":"cancel"}', 3, 0.25, 9, 1);
INSERT INTO producers VALUES ('d1', 'e', 7, 8, 1, 2, 3);
INSERT INTO producer_ends (name, epoch, last) VALUES ('d1', 'old', 4);
INSERT INTO budgets (key, allocation, created_at, updated_at) VALUES ('crm', 2, 3, 4);
INSERT INTO shares VALUES ('q', 'acme', 1.5, 0.1, 1e300, -2.0, 1, 1, 0, NULL, NULL);
INSERT INTO shared_queues VALUES ('q', 0.30000000000000004, 1.0, 1);
INSERT INTO fair_limits VALUES ('q', 'acme', NULL, 3, 0.5);
INSERT INTO lanes (id, name, rule, epoch, next) VALUES
    (9, 'up', '{"queues":["far"],"url":"http://127.0.0.1:9"}', 'e', 4);
INSERT INTO lane_batches VALUES (9, 1, '[1,2]');
INSERT INTO devices VALUES ('d', 'i', '1', 1, 2, 3, 4, 5, 6, NULL, '[]');
INSERT INTO meta VALUES ('note:devices', '["d"]');
"""


def fill(directory: Path, jobs: int = 300) -> None:
    """Make a directory with rows in all tables, and texts that a store alters."""
    directory.mkdir()
    history = HistoryOptions("lab", Bounds(None, None, None))
    with closing(Ticker(directory / "zq.db", history=history)) as ticker:
        ticker.run(SetQueue("aged", QueueSettings(priority_aging_ms=1000)))
        ticker.store(jobs)
        ticker.store(3, payload=f'"{"ü" * 20_000}"')
        ticker.store(3, queue="aged", options=FAIR)
        odd = "a\0b\uffffc"
        ticker.run(
            ticker.enqueue([new_job(unique_key=odd, unique_while=Scope.EXISTS, group="g")]),
            ticker.enqueue([new_job(unique_key="\uffff", unique_while=Scope.EXISTS)]),
            ticker.enqueue([new_job(dedupe=DedupeRule("n"), extras=Extras(meta='{"m":"\uffff"}'))]),
            ticker.enqueue([new_job(ready_at=ticker.now + 10**9)]),
        )
        keys = ticker.take(20)
        large = f'"{"r" * 2_000}"'
        kept = Retention(completed_ms=10**6)
        told = [Completion(text, len(text), kept) for text in ("{}", large)]
        ticker.run(Succeed(keys[:2], said=dict(zip(keys, told, strict=False))))
        ticker.run(*(Fail(key, Failure(odd, "KeyError", None)) for key in keys[6:10]))
        ticker.connection.executescript(ROWS)
    empty = [name for name, count in counts(directory).items() if not count]
    assert not empty


def counts(directory: Path) -> dict[str, int]:
    """How many rows each table has."""
    with closing(sqlite3.connect(directory / "zq.db")) as connection:
        found = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        ).fetchall()
        return {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for (name,) in found
        }
