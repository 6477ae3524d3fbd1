"""Query plans: the index of each query, and that no hot query grows with the backlog."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from zq.model.commands import Claim, Fail, SetQueue, Succeed
from zq.model.filters import EVERYTHING, Filter, ValueRange, is_counted
from zq.model.job import JobSettings, Retention
from zq.model.lifecycle import Status
from zq.model.outcome import Completion, Ending
from zq.model.reach import EVERYWHERE, reach_of
from zq.model.settings import NO_SETTINGS, QueueSettings
from zq.model.settling import Failure
from zq.model.unique import Scope
from zq.store.sqlite import lookups, waits
from zq.store.sqlite.queries import load

from ..rig import FOREVER, NOW, Ticker, new_job

QUEUES = tuple(f"q{number:02}" for number in range(30))
HOUR_MS = 3_600_000
SCHEDULED, READY, IN_FLIGHT, COMPLETED, DEAD, CANCELLED, EXPIRED = Status

BY_ID = "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)"
HEAD_BY_ID = BY_ID.replace("jobs", "head")
CLAIM_ANY = "SCAN jobs USING INDEX ready_by_priority"
CLAIM_BEHIND = {
    "SEARCH jobs USING INDEX ready_by_priority (priority=? AND id>?)",
    "SEARCH jobs USING INDEX ready_by_priority (priority>?)",
}
SORTED = "USE TEMP B-TREE FOR ORDER BY"
CLAIM_QUEUE = "SEARCH jobs USING INDEX ready_by_queue (queue=?)"
LOG_BY_NAME = "SEARCH logs USING INDEX sqlite_autoindex_logs_1 (name=?)"
BATCHES_OF_LOG = "SEARCH log_batches USING INDEX sqlite_autoindex_log_batches_1 (log=?)"
BATCHES_BEHIND = BATCHES_OF_LOG.replace("(log=?)", "(log=? AND last_seq>?)")
BATCHES_UP_TO = BATCHES_OF_LOG.replace("(log=?)", "(log=? AND last_seq<?)")
OF_GROUP = "SEARCH jobs USING INDEX unfinished_of_group (queue=? AND group_id=? AND <expr>=?)"
FIRST_EXPIRING = "SEARCH jobs USING INDEX expiring (expires_at>?)"
GROUPED = "USE TEMP B-TREE FOR GROUP BY"
IN_FLIGHT_ROWS = "SEARCH jobs USING INDEX not_ready (status=?)"
FIRST_SCHEDULED = "SCAN jobs USING INDEX scheduled_by_time"
FIRST_CRON = "SEARCH cron_entries USING COVERING INDEX cron_by_time (next_at>?)"
CRONS_OF_GROUP = "SEARCH cron_entries USING PRIMARY KEY (cron=?)"
ONE_CRON = "SEARCH cron_entries USING PRIMARY KEY (cron=? AND name=?)"
CRON_GROUP = "SEARCH cron_groups USING PRIMARY KEY (name=?)"
HOME_OF_CRON = CRON_GROUP.replace("cron_groups", "g")
TOPIC_BY_ID = "SEARCH topics USING INTEGER PRIMARY KEY (rowid=?)"
ROUTER = "SEARCH topic_routers USING PRIMARY KEY (name=?)"
ROUTERS_OF_SOURCE = "SEARCH topic_routers USING INDEX routers_by_source (source=?)"
ROUTERS_OF_DEST = "SEARCH topic_routers USING INDEX routers_by_dest (dest=?)"
NUMBER = "SEARCH topic_jobs USING INTEGER PRIMARY KEY (rowid=?)"
JOBS_OF_TOPIC = "SEARCH t USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"
NUMBERS = JOBS_OF_TOPIC.replace("SEARCH t ", "SEARCH topic_jobs ")
JOB_IN_TOPIC = "SEARCH topic_jobs USING INDEX topic_jobs_by_job (job=?)"
RECORDS_OF_TOPIC = "SEARCH topic_records USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"

# Query of tick.sql, upkeep.sql or log.sql → how it finds its rows. A new query needs a line here.
FINDS: dict[str, set[str]] = {
    "read_held": {BY_ID},
    "read_briefs": {BY_ID},
    "read_jobs": {BY_ID},
    "look_behind": {BY_ID.replace("rowid=?", "rowid>? AND rowid<?"), "SCAN some"},
    "read_payloads": {"SEARCH payloads USING INTEGER PRIMARY KEY (rowid=?)"},
    "read_stale": {BY_ID},
    "read_current": {BY_ID},
    "read_all_in_flight": {"SEARCH jobs USING COVERING INDEX not_ready (status=?)"},
    "delete_jobs": {BY_ID},
    "delete_payloads": {"SEARCH payloads USING INTEGER PRIMARY KEY (rowid=?)"},
    "delete_results": {"SEARCH results USING INTEGER PRIMARY KEY (rowid=?)"},
    "delete_errors": {"SEARCH errors USING PRIMARY KEY (job_id=?)"},
    "complete": {BY_ID},
    "complete_with_results": {BY_ID},
    "fail": {BY_ID},
    "note_last_failures": {BY_ID},
    "bury": {BY_ID},
    "revive": {BY_ID},
    "restore_all_locks": {BY_ID},
    "expire": {BY_ID},
    "read_lapsed": {"SEARCH jobs USING INDEX expiring (expires_at>? AND expires_at<?)"},
    "give_back": {BY_ID},
    "release": {BY_ID},
    "extend": {BY_ID},
    "read_overdue": {
        "SEARCH jobs USING COVERING INDEX leases_by_deadline (lease_until>? AND lease_until<?)"
    },
    "stall": {BY_ID},
    "read_lost": {BY_ID},
    "resume": {BY_ID},
    "count_stalls": {BY_ID},
    "take_on_terms": {BY_ID},
    "restore_locks": {BY_ID},
    "change": {BY_ID},
    "cancel": {BY_ID},
    "cancel_by_force": {BY_ID},
    "retain": {BY_ID},
    "replace_payloads": {BY_ID},
    "replace_extras": {BY_ID},
    "restore_moved_locks": {BY_ID},
    "read_owners": {"SEARCH jobs USING INDEX key_owner (key_lock=?)"},
    "release_locks": {BY_ID},
    "read_due": {"SEARCH jobs USING INDEX scheduled_by_time (ready_at<?)"},
    "read_due_briefs": {"SEARCH jobs USING INDEX scheduled_by_time (ready_at<?)"},
    "promote": {BY_ID},
    "shut_groups": {OF_GROUP, BY_ID},
    "open_groups": {OF_GROUP, BY_ID},
    "deadlines": {
        "SEARCH jobs USING COVERING INDEX leases_by_deadline (lease_until>?)",
        FIRST_EXPIRING,
        FIRST_SCHEDULED,
        "SEARCH jobs USING COVERING INDEX purgeable (purge_at>?)",
        "SCAN dedupe USING COVERING INDEX dedupe_by_time",
        "SEARCH logs USING COVERING INDEX trimmable (trim_at>?)",
        "SEARCH budgets USING COVERING INDEX budgets_by_time (pays_at>?)",
        "SCAN topic_writes USING COVERING INDEX writes_by_time",
        "SEARCH topics USING COVERING INDEX topics_to_trim (trim_at>?)",
        "SEARCH queue_settings USING INDEX pauses_by_end (paused_until>?)",
    },
    "read_ended_pauses": {
        "SEARCH queue_settings USING INDEX pauses_by_end (paused_until>? AND paused_until<?)"
    },
    "read_names": {"SEARCH dedupe USING PRIMARY KEY (queue=? AND group_id=? AND name=?)"},
    "write_names": set(),
    "forget_names": {
        "SEARCH dedupe USING PRIMARY KEY (queue=? AND group_id=? AND name=?)",
        "SEARCH dedupe USING COVERING INDEX dedupe_by_time (until<?)",
    },
    "read_purgeable": {"SEARCH jobs USING COVERING INDEX purgeable (purge_at>? AND purge_at<?)"},
    "claim_any": {CLAIM_ANY, BY_ID},
    "claim_behind": {*CLAIM_BEHIND, BY_ID},
    "read_spots": CLAIM_BEHIND,
    "first_heads": {HEAD_BY_ID, CLAIM_QUEUE, SORTED},
    "heads_before": {HEAD_BY_ID, CLAIM_QUEUE},
    "claim_arm": {CLAIM_QUEUE},
    "claim_bounded_arm": {CLAIM_QUEUE},
    "ready_queues": {
        "SCAN found",
        "SEARCH jobs USING INDEX ready_by_queue (queue>?)",
    },
    "take": {BY_ID},
    "count": {"SEARCH c USING PRIMARY KEY (queue=? AND status=?) LEFT-JOIN"},
    "count_down": {"SEARCH queue_counts USING PRIMARY KEY (queue=? AND status=?)"},
    "count_up": set(),
    "clear_jobs": set(),
    "clear_payloads": set(),
    "clear_results": set(),
    "clear_errors": set(),
    "clear_names": set(),
    "clear_counts": set(),
    "count_all": {"SCAN queue_counts"},
    "raise_high_water": {"SEARCH meta USING PRIMARY KEY (name=?)"},
    "write_note": set(),
    "put_schema": set(),
    "drop_schema": {"SEARCH schemas USING INDEX sqlite_autoindex_schemas_1 (queue=?)"},
    "look for cron schemas": {"SCAN schemas USING INDEX sqlite_autoindex_schemas_1"},
    "look for cron note": {"SEARCH meta USING PRIMARY KEY (name=?)"},
    "touch": {"SEARCH meta USING PRIMARY KEY (name=?)"},
    "read_left_in_flight": {
        "SEARCH jobs USING INDEX not_ready (status=?)",
        "SEARCH s USING PRIMARY KEY (queue=?) LEFT-JOIN",
        "SEARCH topics USING INDEX sqlite_autoindex_topics_1 (name=?) LEFT-JOIN",
    },
    "give_back_all": {BY_ID},
    "groups_of": {BY_ID},
    "count_claimed": {"SCAN queue_counts"},
    "forget_empty_queues": {"SCAN queue_counts"},
    "read_settings": {"SCAN queue_settings"},
    "set_queue": set(),
    "clear_settings": set(),
    "unset_queue": {"SEARCH queue_settings USING PRIMARY KEY (queue=?)"},
    "read_depths": {"SEARCH queue_counts USING PRIMARY KEY (queue=? AND status<?)"},
    "read_in_flight": {"SEARCH queue_counts USING PRIMARY KEY (queue=? AND status=?)"},
    "read_meta": {"SCAN meta"},
    "write_meta": set(),
    "rewrite_meta": set(),
    "read_all_held": {"SEARCH jobs USING INDEX not_ready (status=?)"},
    "highest_key": {"SEARCH jobs"},
    "actions": set(),
    "append": {LOG_BY_NAME, BY_ID},
    "extend_log": {LOG_BY_NAME},
    "attempts": {BY_ID},
    "failures": {BY_ID},
    "to_be_trimmed": {"SEARCH logs USING INDEX trimmable (trim_at<?)"},
    "extent": {LOG_BY_NAME},
    "oldest": {BATCHES_OF_LOG},
    "trim": {BATCHES_UP_TO},
    "note_trim": {"SEARCH logs USING INTEGER PRIMARY KEY (rowid=?)", BATCHES_BEHIND},
    "set_bounds": {LOG_BY_NAME, BATCHES_OF_LOG},
    "batches": {BATCHES_BEHIND},
    "read_hosts": {"SEARCH open_batches USING INDEX host_of_batch (key=?)"},
    "read_host_jobs": {"SEARCH open_batches USING COVERING INDEX host_of_batch (key=?)", BY_ID},
    "clear_batches": set(),
    "close_batches": {"SEARCH open_batches USING INTEGER PRIMARY KEY (rowid=?)"},
    "next": {BATCHES_BEHIND},
    "read_budgets": {"SCAN budgets"},
    "read_lines": {"SCAN lines"},
    "count_templates": {"SCAN cron_entries"},
    "write_budgets": set(),
    "delete_budgets": {"SEARCH budgets USING PRIMARY KEY (key=?)"},
    "write_lines": set(),
    "delete_lines": {"SEARCH lines USING INTEGER PRIMARY KEY (rowid=?)"},
    "hold_for_budgets": {BY_ID},
    "free_of_budgets": {BY_ID},
    "line_up": {BY_ID},
    "step_out": {"SEARCH parked USING INTEGER PRIMARY KEY (rowid=?)"},
    "in_flight_of": {"SEARCH queue_counts USING PRIMARY KEY (queue=? AND status=?)"},
    "head_of_group": {OF_GROUP},
    "is_shut": {BY_ID},
    "groups": {
        *(BY_ID, OF_GROUP, "SCAN names"),
        "SEARCH jobs USING INDEX unfinished_of_group (queue=? AND group_id>?)",
    },
    "budget": {"SEARCH budgets USING PRIMARY KEY (key=?)"},
    "more_urgent": {CLAIM_QUEUE.replace(")", " AND priority<?)")},
    "older": {CLAIM_QUEUE.replace(")", " AND priority=? AND id<?)")},
    "known_error_groups": {"SEARCH error_groups USING PRIMARY KEY (signature=? AND queue=?)"},
    "count_error_groups": {"SCAN error_groups"},
    "forget_error_groups": {"SCAN error_groups"},
    "write_error_groups": set(),
    "clear_error_groups": set(),
    "error_groups": {"SCAN error_groups"},
    "read_trends": {"SEARCH trends USING PRIMARY KEY (length=? AND queue=? AND at=?)"},
    "count_trends": {"SEARCH trends USING COVERING INDEX trends_by_time (length=? AND at=?)"},
    "write_trends": set(),
    "forget_trends": {
        "SEARCH trends USING COVERING INDEX trends_by_time (length=? AND at=?)",
        "SEARCH trends USING COVERING INDEX trends_by_time (length=? AND at<?)",
    },
    "clear_trends": set(),
    "clear_schemas": set(),
    "note_slice": set(),
    "forget_sweeps": {"SEARCH sweeps USING INTEGER PRIMARY KEY (rowid<?)"},
    "end_sweep": {"SEARCH sweeps USING INTEGER PRIMARY KEY (rowid=?)"},
    "note_undone": {"SEARCH sweeps USING INTEGER PRIMARY KEY (rowid=?)"},
    "clear_sweeps": set(),
    "sweeps": {"SEARCH sweeps USING INTEGER PRIMARY KEY (rowid<?)"},
    "last_sweep": {"SEARCH sweeps"},
    "undo": {BY_ID},
    "trends": {"SEARCH trends USING PRIMARY KEY (length=? AND queue=? AND at>?)"},
    "running_long": {IN_FLIGHT_ROWS, "USE TEMP B-TREE FOR ORDER BY"},
    "leases": {"SEARCH jobs USING INDEX leases_by_deadline (lease_until>?)"},
    "first_in_line": {
        "SEARCH parked USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH parked USING COVERING INDEX parked_by_line (line=? AND priority<?)",
    },
    "line_arm": {"SEARCH parked USING COVERING INDEX parked_by_line (line=?)"},
    "rebind": {BY_ID},
    "clear_lines": set(),
    "clear_parked": set(),
    "clear_budgets": set(),
    "forget_in_use": {"SCAN budgets"},
    "read_in_use": {IN_FLIGHT_ROWS, GROUPED},
    "return_in_use": {
        *(IN_FLIGHT_ROWS, GROUPED, "SCAN drawn"),
        "SEARCH budgets USING PRIMARY KEY (key=?)",
    },
    "hold_returned": {BY_ID},
    "count_returned": {
        *(BY_ID, GROUPED, "SCAN d"),
        "SEARCH lines USING INDEX sqlite_autoindex_lines_1 (queue=? AND draws=?)",
    },
    "line_up_returned": {
        BY_ID,
        "SEARCH lines USING COVERING INDEX sqlite_autoindex_lines_1 (queue=? AND draws=?)",
    },
    # These two run where rows were set aside, for they could not be read.
    "count_lines": {"SCAN jobs", GROUPED},
    "forget_lost": {"SCAN parked"},
    "next_firing": {FIRST_CRON},
    "write_cron_group": set(),
    "write_crons": set(),
    "delete_other_crons": {CRONS_OF_GROUP},
    "delete_cron": {ONE_CRON},
    "delete_crons_of": {CRONS_OF_GROUP},
    "delete_cron_groups": {CRON_GROUP},
    "clear_crons": set(),
    "clear_cron_groups": set(),
    "read_guarded": {HOME_OF_CRON, ONE_CRON.replace("cron_entries", "e")},
    "move_crons": {ONE_CRON},
    "look for cron group_names": {"SCAN cron_groups"},
    "look for cron group": {CRON_GROUP},
    "look for cron entries": {CRONS_OF_GROUP},
    "look for cron entry": {ONE_CRON},
    "look for cron size": {CRONS_OF_GROUP},
    "look for cron queues": {
        "SCAN g",
        "SEARCH e USING PRIMARY KEY (cron=?) LEFT-JOIN",
        "USE TEMP B-TREE FOR DISTINCT",
    },
    "look for cron count": {"SCAN cron_entries"},
    "look for cron due": {
        HOME_OF_CRON,
        "SEARCH e USING INDEX cron_by_time (next_at>? AND next_at<?)",
    },
    "look for cron timed_ahead": {
        HOME_OF_CRON,
        "SEARCH e USING PRIMARY KEY ((cron,name)>(?,?))",
    },
    "read_topics": {
        RECORDS_OF_TOPIC,
        "SEARCH topics USING INDEX sqlite_autoindex_topics_1 (name=?)",
    },
    "topics_to_trim": {
        RECORDS_OF_TOPIC,
        "SEARCH topics USING COVERING INDEX topics_to_trim (trim_at<?)",
        TOPIC_BY_ID,
    },
    "count_topics": {"SCAN topics USING COVERING INDEX sqlite_autoindex_topics_1"},
    "highest_topic": {"SEARCH topics"},
    "create_topic": set(),
    "free_topic_id": {"SEARCH t USING INTEGER PRIMARY KEY (rowid<?)", TOPIC_BY_ID},
    "create_topic_at": set(),
    "write_topics": {TOPIC_BY_ID},
    "configure_topic": {TOPIC_BY_ID},
    "drop_topic": {TOPIC_BY_ID},
    "forget_topic": {TOPIC_BY_ID},
    "oldest_records": {RECORDS_OF_TOPIC},
    "trim_records": {RECORDS_OF_TOPIC},
    "first_record": {RECORDS_OF_TOPIC},
    "records_before": {RECORDS_OF_TOPIC},
    "records_tagged": {"SEARCH topic_records USING INDEX records_by_tag (<expr>=? AND tag>?)"},
    "delete_records": {"SEARCH topic_records USING INTEGER PRIMARY KEY (rowid=?)"},
    "read_writes": {
        "SEARCH topic_writes USING INDEX sqlite_autoindex_topic_writes_1 (topic=? AND key=?)"
    },
    "note_writes": set(),
    "forget_writes": {
        "SEARCH topic_writes USING COVERING INDEX writes_by_time (until<?)",
        "SEARCH topic_writes USING INTEGER PRIMARY KEY (rowid=?)",
    },
    "forget_writes_of": {
        "SEARCH topic_writes USING COVERING INDEX sqlite_autoindex_topic_writes_1 (topic=?)",
        "SEARCH topic_writes USING INTEGER PRIMARY KEY (rowid=?)",
    },
    "clear_topics": set(),
    "clear_topic_records": set(),
    "clear_topic_writes": set(),
    "number_jobs": set(),
    "read_numbers": {"SEARCH topic_jobs USING COVERING INDEX topic_jobs_by_job (job=?)"},
    "forget_numbers": {JOB_IN_TOPIC},
    "forget_ended": {BY_ID, JOB_IN_TOPIC.replace("USING", "USING COVERING")},
    "forget_gone": {BY_ID, NUMBER, JOBS_OF_TOPIC},
    "oldest_waiting": {BY_ID, JOBS_OF_TOPIC},
    "has_jobs": {BY_ID, JOBS_OF_TOPIC},
    "forget_numbers_of": {NUMBER, NUMBERS},
    "clear_topic_jobs": set(),
    "look for record standing": {"SEARCH queue_counts USING PRIMARY KEY (queue=?)"},
    "look for record first_job": {BY_ID, "SCAN t", NUMBERS},
    "look for record examined": {NUMBERS},
    "look for record jobs_page": {
        BY_ID,
        "SCAN t",
        NUMBERS,
        "SEARCH payloads USING INTEGER PRIMARY KEY (rowid=?)",
    },
    "look for record held": {BY_ID, NUMBER.replace("topic_jobs", "t")},
    "look for record labels": {JOB_IN_TOPIC},
    "look for record numbered": {BY_ID, JOBS_OF_TOPIC},
    "look for record tagged": {
        BY_ID,
        "SEARCH t USING INDEX topic_jobs_by_tag (<expr>=? AND tag>?)",
    },
    "routers_behind": {ROUTERS_OF_SOURCE, "SCAN behind"},
    "routers_around": {ROUTERS_OF_SOURCE, ROUTERS_OF_DEST, "SCAN around"},
    "routers_named": {ROUTER},
    "count_routers": {"SCAN topic_routers USING COVERING INDEX routers_by_dest"},
    "write_router": set(),
    "count_forwarded": {ROUTER},
    "delete_router": {ROUTER},
    "delete_routers_of": {ROUTERS_OF_SOURCE, ROUTERS_OF_DEST},
    "clear_topic_routers": set(),
    "look for router router": {ROUTER},
    "look for router count_routers": {"SCAN topic_routers USING COVERING INDEX routers_by_dest"},
    "look for router routers_page": {
        "SEARCH topic_routers USING PRIMARY KEY (name>?)",
    },
    "look for topic topic": {
        RECORDS_OF_TOPIC,
        "SEARCH topics USING INDEX sqlite_autoindex_topics_1 (name=?)",
    },
    "look for topic count_topics": {
        "SEARCH topics USING COVERING INDEX sqlite_autoindex_topics_1 (name>?)"
    },
    "look for topic topics_page": {
        RECORDS_OF_TOPIC,
        "SEARCH topics USING INDEX sqlite_autoindex_topics_1 (name>?)",
    },
    "look for topic record_from": {RECORDS_OF_TOPIC},
    "look for topic examined": {RECORDS_OF_TOPIC},
    "look for topic extent": {RECORDS_OF_TOPIC},
    "look for topic fitting": {
        "SEARCH (subquery-3)",
        RECORDS_OF_TOPIC,
        "USE TEMP B-TREE FOR ORDER BY",
    },
    "look for topic records": {RECORDS_OF_TOPIC},
}
# Its arms are filled in when it runs; what becomes of it is traced below.
COMPOSED = {"claim_merged"}

# Partial index → a query that it is there for.
SERVES = {
    "ready_by_priority": "claim_any",
    "ready_by_queue": "claim_arm",
    "scheduled_by_time": "read_due",
    "purgeable": "read_purgeable",
    "not_ready": "read_left_in_flight",
    "key_owner": "read_owners",
    "trimmable": "to_be_trimmed",
    "leases_by_deadline": "read_overdue",
    "expiring": "read_lapsed",
    "unfinished_of_group": "open_groups",
    "budgets_by_time": "deadlines",
    "cron_by_time": "next_firing",
    "topics_to_trim": "topics_to_trim",
    "pauses_by_end": "read_ended_pauses",
    "records_by_tag": "records_tagged",
    "topic_jobs_by_tag": "look for record tagged",
}


AWAITED: set[str] = set()
"""Indexes for what the engine is going to do."""


def fill(ticker: Ticker, jobs: int) -> None:
    """Jobs of every kind: a quarter scheduled, some in flight, completed, dead, some unique."""
    kept = JobSettings(retention=Retention(completed_ms=HOUR_MS))
    ticker.run(
        ticker.enqueue(
            new_job(
                queue=QUEUES[index % len(QUEUES)],
                priority=index % 3,
                ready_at=NOW + HOUR_MS + index if index % 4 == 0 else None,
                options=kept if index % 2 else None,
                unique_key=f"key {index}" if index % 5 == 0 else None,
                unique_while=Scope.EXISTS if index % 5 == 0 else None,
            )
            for index in range(jobs)
        )
    )
    taken = ticker.take(40)
    ticker.run(Succeed(taken[:15]), *(Fail(k, Failure("m", kill=True)) for k in taken[15:30]))


@pytest.fixture(scope="module")
def ticker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ticker]:
    ticker = Ticker(tmp_path_factory.mktemp("plans") / "zq.db")
    fill(ticker, 3_000)
    yield ticker
    ticker.close()


def named_queries() -> dict[str, str]:
    found = load("tick.sql") | load("upkeep.sql") | load("settings.sql") | load("log.sql")
    found |= load("batches.sql")
    found |= load("budgets.sql")
    found |= load("cron.sql")
    found |= load("waits.sql")
    found |= load("failures.sql")
    found |= load("trends.sql")
    found |= load("sweeps.sql")
    found |= load("topics.sql")
    found |= load("routers.sql")
    of_topics = load("topic_lookups.sql")
    found |= {
        f"look for topic {name}": sql.replace("OTHERS", of_topics["others"])
        for name, sql in of_topics.items()
        if name != "others"
    }
    of_queues = load("topic_job_lookups.sql")
    found |= {
        f"look for record {name}": sql.replace("OTHERS", of_queues["others"])
        for name, sql in of_queues.items()
        if name != "others"
    }
    found |= {f"look for router {name}": sql for name, sql in load("router_lookups.sql").items()}
    for name in ("leases", "running_long"):
        found[name] = found[name].replace("CONDITIONS", "true")
    found |= {f"look for cron {name}": sql for name, sql in load("cron_lookups.sql").items()}
    found["append"] = found["append"].replace("SOURCE", found["attempts"])
    return {name: sql.replace("NAMES", ":one, :other") for name, sql in found.items()}


def plan(connection: sqlite3.Connection, sql: str) -> list[str]:
    """The lines of a query's plan that say how a table is visited or rows are sorted."""
    parameters = dict.fromkeys(re.findall(r":([a-z_0-9]+)", sql))
    lines = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]
    kinds = ("SCAN ", "SEARCH ", "USE TEMP B-TREE")
    ours = [line for line in lines if line.startswith(kinds) and "VIRTUAL TABLE" not in line]
    return [line for line in ours if not line.startswith(("SCAN (", "SCAN CONSTANT ROW"))]


def plans_of(ticker: Ticker, run: Callable[[], object]) -> list[list[str]]:
    """The plans of the SELECTs over jobs that a function really runs."""
    statements: list[str] = []
    ticker.connection.set_trace_callback(statements.append)
    try:
        run()
    finally:
        ticker.connection.set_trace_callback(None)
    reading = ("SELECT", "WITH")
    selects = [sql for sql in statements if sql.startswith(reading) and "FROM jobs" in sql]
    assert selects, "nothing was read"
    return [plan(ticker.connection, sql) for sql in dict.fromkeys(selects)]


@pytest.mark.parametrize("name", FINDS)
def test_a_named_query_finds_its_rows_by_the_index_made_for_it(ticker: Ticker, name: str) -> None:
    assert set(plan(ticker.connection, named_queries()[name])) == FINDS[name]


def test_the_plan_of_every_query_is_known() -> None:
    assert set(named_queries()) == FINDS.keys() | COMPOSED


def test_no_named_query_sorts_or_visits_all_jobs() -> None:
    # The heads of queues are sorted: there are as many as queues, however many jobs wait.
    # Of cron, each queue is told of once.
    heads = {"first_heads", "look for cron queues"}
    # So are jobs in flight or given back at a start, and what is left after damage.
    heads |= {"read_in_use", "return_in_use", "count_returned", "count_lines"}
    # A bounded number of jobs in flight is sorted by how long they run.
    heads |= {"running_long"}
    # The records of one page are added up in their order.
    heads |= {"look for topic fitting"}
    lines = {line for name, lines in FINDS.items() if name not in heads for line in lines}
    in_order_up_to_a_limit = {CLAIM_ANY, FIRST_SCHEDULED}
    for line in lines - in_order_up_to_a_limit:
        assert "TEMP B-TREE" not in line
        assert not line.startswith("SCAN jobs")


def test_every_partial_index_serves_a_query(ticker: Ticker) -> None:
    sql = "SELECT name FROM sqlite_master WHERE type = 'index' AND sql LIKE '%WHERE%'"
    assert {name for (name,) in ticker.connection.execute(sql)} == set(SERVES) | AWAITED
    for index, query in SERVES.items():
        lines = plan(ticker.connection, named_queries()[query])
        assert any(f"INDEX {index}" in line for line in lines), (index, lines)


@pytest.mark.parametrize("count", [1, 3, 30, 499])
def test_a_claim_merges_the_heads_of_its_queues_without_sorting(ticker: Ticker, count: int) -> None:
    queues = tuple(f"q{number:02}" for number in range(count))
    claim = Claim(queues, [(1, 0)])
    assert plans_of(ticker, lambda: ticker.run(claims=[claim])) == [[CLAIM_QUEUE] * count + [BY_ID]]


def test_a_claim_through_gates_from_named_queues_visits_the_open_ones_alone(ticker: Ticker) -> None:
    for name in QUEUES[5:]:
        ticker.run(SetQueue(name, QueueSettings(paused=True)))
    for name in QUEUES[3:5]:
        ticker.run(SetQueue(name, QueueSettings(concurrency=10_000)))
    lines = plans_of(ticker, lambda: ticker.run(claims=[Claim(QUEUES, [(1, 0)])]))
    for name in QUEUES[3:]:
        ticker.run(SetQueue(name, NO_SETTINGS))
    (merge,) = [part for part in lines if CLAIM_QUEUE in part]
    assert merge.count(CLAIM_QUEUE) == 5
    # What a bound lets through is sorted again, and that is little.
    assert set(merge) <= {CLAIM_QUEUE, BY_ID, SORTED}


def test_a_claim_of_more_queues_than_one_statement_merges_takes_several(ticker: Ticker) -> None:
    queues = tuple(f"q{number:02}" for number in range(700))
    lines = plans_of(ticker, lambda: ticker.run(claims=[Claim(queues, [(1, 0)])]))
    assert [set(part) for part in lines] == [{CLAIM_QUEUE, BY_ID}, {CLAIM_QUEUE, BY_ID}]
    assert sum(part.count(CLAIM_QUEUE) for part in lines) == 700


@pytest.mark.parametrize("count", [1, 3, 700])
def test_the_owners_of_unique_keys_are_found_by_their_keys(ticker: Ticker, count: int) -> None:
    unique = {"unique_while": Scope.EXISTS}
    enqueue = ticker.enqueue(new_job(unique_key=f"key {i * 5}", **unique) for i in range(count))
    for lines in plans_of(ticker, lambda: ticker.run(enqueue)):
        assert lines == ["SEARCH jobs USING INDEX key_owner (key_lock=?)"]


def test_a_job_is_looked_up_by_the_key_that_it_owns(ticker: Ticker) -> None:
    (lines,) = plans_of(
        ticker, lambda: lookups.get_owner(ticker.connection, "key 5", EVERYWHERE, NOW)
    )
    assert lines == ["SEARCH jobs USING INDEX key_owner (key_lock=?)"]


def test_a_result_is_found_by_the_id_of_its_job(ticker: Ticker) -> None:
    (key,) = ticker.take(1)
    told = Completion(f'"{"x" * 600}"', 602, Retention(completed_ms=HOUR_MS))
    ticker.run(Succeed([key], said={key: told}))
    statements: list[str] = []
    ticker.connection.set_trace_callback(statements.append)
    found = lookups.get_ending(ticker.connection, key, EVERYWHERE, NOW)
    ticker.connection.set_trace_callback(None)
    assert found == Ending(COMPLETED, told.result)
    selects = [sql for sql in statements if sql.startswith("SELECT")]
    job, body = [plan(ticker.connection, sql) for sql in selects]
    assert job == ["SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)"]
    assert body == ["SEARCH results USING INTEGER PRIMARY KEY (rowid=?)"]


# Filter → how a listing in id order finds its jobs; `<` stands for `>` when descending.
LISTINGS = [
    (EVERYTHING, "SEARCH jobs USING INTEGER PRIMARY KEY (rowid>?)"),
    (Filter(statuses=(READY,)), "SEARCH jobs USING INTEGER PRIMARY KEY (rowid>?)"),
    (Filter(queues=("q01",)), "SEARCH jobs USING INTEGER PRIMARY KEY (rowid>?)"),
    (Filter(types=("t",)), "SEARCH jobs USING INTEGER PRIMARY KEY (rowid>?)"),
    (Filter(keys=(16, 32)), BY_ID),
    (Filter(keys=(16, 32), statuses=(READY,)), BY_ID),
    *(
        (filter, "SEARCH jobs USING INDEX not_ready (status=? AND id>?)")
        for status in (SCHEDULED, IN_FLIGHT, COMPLETED, DEAD, CANCELLED, EXPIRED)
        for filter in (
            Filter(statuses=(status,)),
            Filter(statuses=(status,), queues=("q01", "q02"), types=("t",)),
            Filter(statuses=(status,), priority=ValueRange(1, 5), ready_at=ValueRange(0, 9)),
        )
    ),
]


@pytest.mark.parametrize(("filter", "expected"), LISTINGS)
@pytest.mark.parametrize("descending", [False, True])
def test_a_listing_walks_in_id_order_without_sorting(
    ticker: Ticker, filter: Filter, expected: str, descending: bool
) -> None:
    def read() -> None:
        lookups.list_jobs(ticker.connection, filter, 0, descending, 50, NOW)

    assert plans_of(ticker, read) == [[expected.replace(">", "<") if descending else expected]]


@pytest.mark.parametrize("status", [SCHEDULED, IN_FLIGHT, COMPLETED, DEAD])
def test_a_sweep_by_status_finds_its_next_slice_by_the_index(
    ticker: Ticker, status: Status
) -> None:
    filter = Filter(statuses=(status,))
    (lines,) = plans_of(
        ticker, lambda: lookups.list_keys(ticker.connection, filter, 0, FOREVER, 1000)
    )
    assert lines == ["SEARCH jobs USING COVERING INDEX not_ready (status=? AND id>? AND id<?)"]


def test_finished_jobs_are_listed_and_counted_by_the_index(ticker: Ticker) -> None:
    filter = Filter(statuses=(COMPLETED, DEAD), priority=ValueRange(0, 9))
    (lines,) = plans_of(ticker, lambda: lookups.count_jobs(ticker.connection, filter, NOW))
    assert lines == ["SEARCH jobs USING INDEX not_ready (status=?)"]
    (lines,) = plans_of(
        ticker, lambda: lookups.list_jobs(ticker.connection, filter, 0, False, 50, NOW)
    )
    assert "SEARCH jobs USING INDEX not_ready (status=? AND id>?)" in lines


def test_ready_jobs_of_one_queue_are_found_by_their_queue(ticker: Ticker) -> None:
    filter = Filter(statuses=(READY,), queues=("q01",))
    (lines,) = plans_of(
        ticker, lambda: lookups.list_jobs(ticker.connection, filter, 0, False, 50, NOW)
    )
    held = "SEARCH jobs USING INDEX unfinished_of_group (queue=? AND group_id>?)"
    assert {CLAIM_QUEUE, held} <= set(lines)


def test_counting_by_queue_and_status_visits_no_job_but_the_expired(ticker: Ticker) -> None:
    assert is_counted(Filter(statuses=(READY,), queues=("q01",)))
    (lines,) = plans_of(ticker, lambda: lookups.visible_counts(ticker.connection, NOW))
    purgeable = "SEARCH jobs USING INDEX purgeable (purge_at>? AND purge_at<?)"
    assert [line for line in lines if " jobs " in line] == [purgeable]


def test_the_counts_of_some_queues_are_found_by_their_names(ticker: Ticker) -> None:
    found = plan(ticker.connection, lookups.QUERIES["counts_of"])
    assert "SEARCH queue_counts USING PRIMARY KEY (queue=?)" in found


def test_the_oldest_ready_jobs_are_found_by_the_index(ticker: Ticker) -> None:
    ticker.store(1, queue="q01", priority=9)
    heads, lines = plans_of(ticker, lambda: lookups.oldest_ready(ticker.connection, QUEUES[:3]))
    assert {line for line in heads if "jobs" in line or "head" in line} == {
        "SEARCH head USING INTEGER PRIMARY KEY (rowid=?)",
        CLAIM_QUEUE,
    }
    assert {line for line in lines if " jobs " in line} == {
        CLAIM_QUEUE,
        "SEARCH jobs USING INDEX ready_by_queue (queue=? AND priority>?)",
        "SEARCH jobs USING INDEX ready_by_queue (queue=? AND priority=?)",
    }


def steps(connection: sqlite3.Connection, run: Callable[[], object]) -> int:
    """Instructions of SQLite's virtual machine: its work, whatever the machine's mood."""
    count = 0

    def note() -> None:
        nonlocal count
        count += 1

    connection.set_progress_handler(note, 1)
    try:
        run()
    finally:
        connection.set_progress_handler(None, 1)
    return count


HOT: dict[str, Callable[[Ticker], object]] = {
    "claim from all queues": lambda t: t.run(claims=[Claim(None, [(1, 5)])]),
    "claim from 3 queues": lambda t: t.run(claims=[Claim(QUEUES[:3], [(1, 5)])]),
    "claim by a prefix": lambda t: t.run(claims=[Claim(None, [(1, 5)], reach_of(["q0"]))]),
    "claim from 30 queues": lambda t: t.run(claims=[Claim(QUEUES, [(1, 5)])]),
    "look for what is due": lambda t: t.run(promote=True, purge=True),
    "enqueue a unique job": lambda t: t.store(1, unique_key="new", unique_while=Scope.QUEUED),
    "say why a job waits": lambda t: waits.waiting_job(
        t.connection, t.store(1, queue="of one job")[0], EVERYWHERE, NOW
    ),
    "count by queue": lambda t: lookups.visible_counts(t.connection, NOW),
    "list a page": lambda t: lookups.list_jobs(t.connection, EVERYTHING, 0, False, 5, NOW),
    "list dead jobs": lambda t: lookups.list_jobs(
        t.connection, Filter(statuses=(DEAD,)), 0, False, 5, NOW
    ),
}


@pytest.fixture(scope="module")
def small_and_large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ticker, Ticker]]:
    folder = tmp_path_factory.mktemp("steps")
    small, large = Ticker(folder / "small.db"), Ticker(folder / "large.db")
    fill(small, 600)
    fill(large, 9_000)
    yield small, large
    small.close()
    large.close()


@pytest.mark.parametrize("name", HOT)
def test_the_work_of_a_hot_query_does_not_grow_with_the_backlog(
    small_and_large: tuple[Ticker, Ticker], name: str
) -> None:
    few, many = (steps(t.connection, partial(HOT[name], t)) for t in small_and_large)
    assert 0 < many < few * 1.2, (few, many)
