"""The plan of each named query: the index by which it finds its rows."""

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
FIRST_SCHEDULED = "SCAN jobs USING INDEX scheduled_by_date"
FIRST_WAITING = "SEARCH jobs USING INDEX scheduled_by_wait (due_at>?)"
WAITED = "SEARCH jobs USING INDEX scheduled_by_wait (due_at<?)"
FIRST_CRON = "SEARCH cron_entries USING COVERING INDEX cron_by_time (next_at>?)"
CRONS_OF_GROUP = "SEARCH cron_entries USING PRIMARY KEY (cron=?)"
ONE_CRON = "SEARCH cron_entries USING PRIMARY KEY (cron=? AND name=?)"
CRON_GROUP = "SEARCH cron_groups USING PRIMARY KEY (name=?)"
HOME_OF_CRON = CRON_GROUP.replace("cron_groups", "g")

SHARE = "SEARCH shares USING PRIMARY KEY (queue=? AND fair_key=?)"
SHARES = "SEARCH shares USING PRIMARY KEY (queue=?)"
SHARED_QUEUE = "SEARCH shared_queues USING PRIMARY KEY (queue=?)"

LANE_BY_NAME = "SEARCH lanes USING INDEX sqlite_autoindex_lanes_1 (name=?)"
LANE_BY_ID = "SEARCH lanes USING INTEGER PRIMARY KEY (rowid=?)"
LANE_BATCHES = "SEARCH lane_batches USING PRIMARY KEY (lane=? AND first<?)"

DEVICE = "SEARCH devices USING PRIMARY KEY (name=?)"
PRODUCER_ENDS = (
    "SEARCH producer_ends USING INDEX sqlite_autoindex_producer_ends_1 (name=? AND epoch=?)"
)
PRODUCER = "SEARCH producers USING PRIMARY KEY (name=?)"

BY_NAME_OF_LINE = (
    "SEARCH lines USING COVERING INDEX sqlite_autoindex_lines_1"
    " (queue=? AND fair_key=? AND aging_ms=? AND priority=? AND draws=?)"
)
AGING = "SEARCH s USING PRIMARY KEY (queue=?)"
"""How the queue of a job ages."""

# Query by name → how it finds its rows. A new query needs a line here.
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
    "forgive_stall": {BY_ID},
    "take_on_terms": {BY_ID},
    "restore_locks": {BY_ID},
    "change": {BY_ID},
    "cancel": {BY_ID},
    "cancel_by_force": {BY_ID},
    "retain": {BY_ID},
    "replace_payloads": {BY_ID},
    "replace_extras": {BY_ID},
    "narrow_locks": {BY_ID},
    "restore_moved_locks": {BY_ID},
    "read_owners": {"SEARCH jobs USING INDEX key_owner (key_lock=?)"},
    "release_locks": {BY_ID},
    "read_due": {BY_ID, "SEARCH jobs USING INDEX scheduled_by_date (ready_at<?)", SORTED},
    "read_due_briefs": {BY_ID, "SEARCH jobs USING INDEX scheduled_by_date (ready_at<?)", SORTED},
    "read_waited": {BY_ID, WAITED, SORTED},
    "read_waited_briefs": {BY_ID, WAITED, SORTED},
    "note_clock": set(),
    "note_residents": set(),
    "promote": {BY_ID},
    "shut_groups": {OF_GROUP, BY_ID},
    "open_groups": {OF_GROUP, BY_ID},
    "deadlines": {
        "SEARCH jobs USING COVERING INDEX leases_by_deadline (lease_until>?)",
        FIRST_EXPIRING,
        FIRST_SCHEDULED,
        FIRST_WAITING,
        "SEARCH jobs USING COVERING INDEX purgeable (purge_at>?)",
        "SCAN dedupe USING COVERING INDEX dedupe_by_time",
        "SEARCH logs USING COVERING INDEX trimmable (trim_at>?)",
        "SEARCH budgets USING COVERING INDEX budgets_by_time (pays_at>?)",
        "SCAN topic_writes USING COVERING INDEX writes_by_time",
        "SEARCH topics USING COVERING INDEX topics_to_trim (trim_at>?)",
        "SEARCH queue_settings USING INDEX pauses_by_end (paused_until>?)",
        "SEARCH shares USING COVERING INDEX shares_by_opening (opens_at>?)",
    },
    "read_ended_pauses": {
        "SEARCH queue_settings USING INDEX pauses_by_end (paused_until>? AND paused_until<?)"
    },
    "read_names": {"SEARCH dedupe USING PRIMARY KEY (queue=? AND group_id=? AND name=?)"},
    "write_names": set(),
    "share_names": {"SEARCH dedupe USING PRIMARY KEY (queue=?)"},
    "forget_names": {
        "SEARCH dedupe USING PRIMARY KEY (queue=? AND group_id=? AND name=?)",
        "SEARCH dedupe USING COVERING INDEX dedupe_by_time (until<?)",
    },
    "read_purgeable": {"SEARCH jobs USING COVERING INDEX purgeable (purge_at>? AND purge_at<?)"},
    "claim_any": {CLAIM_ANY, BY_ID},
    "claim_behind": {*CLAIM_BEHIND, BY_ID},
    "read_spots": CLAIM_BEHIND,
    "claim_span": {
        "SCAN heads",
        CLAIM_QUEUE,
        CLAIM_QUEUE.replace("queue=?", "queue=? AND priority>?"),
        CLAIM_QUEUE.replace("queue=?", "queue=? AND priority=? AND id>? AND id<?"),
        BY_ID,
        BY_ID.replace("jobs", "chosen"),
        SORTED,
    },
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
    "acknowledge_damage": {"SCAN quarantine"},
    "put_schema": set(),
    "read_schemas_of": {"SEARCH schemas USING INDEX sqlite_autoindex_schemas_1 (queue=?)"},
    "drop_schema": {"SEARCH schemas USING INDEX sqlite_autoindex_schemas_1 (queue=?)"},
    "look for schemas": {"SCAN schemas USING INDEX sqlite_autoindex_schemas_1"},
    "look for note": {"SEARCH meta USING PRIMARY KEY (name=?)"},
    "touch": {"SEARCH meta USING PRIMARY KEY (name=?)"},
    "read_left_in_flight": {
        "SEARCH jobs USING INDEX not_ready (status=?)",
        "SEARCH s USING PRIMARY KEY (queue=?) LEFT-JOIN",
        "SEARCH topics USING INDEX sqlite_autoindex_topics_1 (name=?) LEFT-JOIN",
    },
    "read_begun": {IN_FLIGHT_ROWS, SORTED},
    "give_back_all": {BY_ID},
    "groups_of": {BY_ID},
    "count_claimed": {"SCAN queue_counts", IN_FLIGHT_ROWS},
    "forget_empty_queues": {"SCAN queue_counts"},
    "read_settings": {"SCAN queue_settings"},
    "set_queue": set(),
    "clear_settings": set(),
    "unset_queue": {"SEARCH queue_settings USING PRIMARY KEY (queue=?)"},
    "read_depths": {"SEARCH queue_counts USING PRIMARY KEY (queue=? AND status<?)"},
    "read_in_flight": {"SEARCH queue_counts USING PRIMARY KEY (queue=? AND status=?)"},
    "read_rates": {"SEARCH queue_rates USING PRIMARY KEY (queue=?)"},
    "write_rates": set(),
    "forget_rate": {"SEARCH queue_rates USING PRIMARY KEY (queue=?)"},
    "clear_rates": set(),
    "read_meta": {"SCAN meta"},
    "write_meta": set(),
    "rewrite_meta": set(),
    "read_all_held": {"SEARCH jobs USING INDEX not_ready (status=?)"},
    "highest_key": {"SEARCH jobs"},
    "append_actions": {LOG_BY_NAME},
    "append": {LOG_BY_NAME},
    "extend_log": {LOG_BY_NAME},
    "append_attempts": {LOG_BY_NAME, BY_ID},
    "append_failures": {LOG_BY_NAME, BY_ID},
    "append_forwarded": {LOG_BY_NAME},
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
    "count_templates": {"SCAN cron_entries"},
    "delete_budgets": {"SEARCH budgets USING PRIMARY KEY (key=?)"},
    "due_budgets": {
        "SEARCH budgets USING COVERING INDEX budgets_by_time (pays_at>? AND pays_at<?)"
    },
    "next_pay": {"SEARCH budgets USING COVERING INDEX budgets_by_time (pays_at>?)"},
    "count_draws": {"SCAN jobs", "USE TEMP B-TREE FOR GROUP BY"},
    "count_costly": {
        *("SCAN j", "SCAN l", "SCAN lines USING COVERING INDEX sqlite_autoindex_lines_1"),
        "SEARCH jobs USING COVERING INDEX jobs_of_line (line=?)",
        "SEARCH jobs USING COVERING INDEX not_ready (status=?)",
        "SEARCH jobs USING INDEX not_ready (status=?)",
    },
    "note_lost_budgets": {"SCAN jobs", "USE TEMP B-TREE FOR DISTINCT"},
    "make_lost_budgets": {"SCAN jobs", "USE TEMP B-TREE FOR GROUP BY"},
    "forget_draws": {"SCAN budgets"},
    "return_draws": {
        *("SCAN drawn", "SCAN jobs", "USE TEMP B-TREE FOR GROUP BY"),
        "SEARCH budgets USING PRIMARY KEY (key=?)",
    },
    "forget_in_use": {"SCAN budgets", "SEARCH lines USING COVERING INDEX shut_lines (shut_by=?)"},
    "count_returned": {
        "SCAN d",
        "SEARCH budgets USING PRIMARY KEY (key=?)",
        "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)",
        "USE TEMP B-TREE FOR GROUP BY",
    },
    "lines_of_queue": {
        "SEARCH jobs USING COVERING INDEX jobs_of_line (line=? AND status=? AND held=?)",
        "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH lines USING INDEX sqlite_autoindex_lines_1 (queue=?)",
    },
    "lines_of_all": {
        "SCAN lines",
        "SEARCH jobs USING COVERING INDEX jobs_of_line (line=? AND status=? AND held=?)",
        "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)",
    },
    "more_urgent_lines": {
        "SEARCH lines USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH lines USING INDEX open_lines_of_queue (queue=? AND priority<?)",
        "SEARCH jobs USING COVERING INDEX jobs_of_line (line=? AND status=? AND held=?)",
    },
    "first_in_line": {
        "SEARCH jobs USING COVERING INDEX jobs_of_line (line=? AND status=? AND held=? AND id<?)",
        "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)",
    },
    "name_lines": {
        "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)",
        "USE TEMP B-TREE FOR DISTINCT",
        AGING,
    },
    "enter_lines": {
        "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)",
        BY_NAME_OF_LINE,
        AGING,
    },
    "leave_lines": {"SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)", AGING},
    "aged_lines": {"SEARCH lines USING COVERING INDEX aged_lines (aging_ms>?)"},
    "misplaced": {
        "SEARCH jobs USING COVERING INDEX jobs_of_line (line=?)",
        "SEARCH jobs USING INDEX ready_by_queue (queue=?)",
        "SEARCH lines USING COVERING INDEX aged_lines (aging_ms=? AND queue=?)",
        "SEARCH lines USING COVERING INDEX sqlite_autoindex_lines_1"
        " (queue=? AND fair_key=? AND aging_ms=?)",
        "SEARCH lines USING INDEX shared_lines (queue=? AND priority<?)",
    },
    "name_new_lines": set(),
    "lines_of_names": {
        BY_NAME_OF_LINE,
        "USE TEMP B-TREE FOR ORDER BY",
    },
    "lines_of_jobs": {
        "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)",
        "USE TEMP B-TREE FOR json_group_array(DISTINCT)",
    },
    "torn_lines": {"SCAN lines", "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)"},
    "place_lines": {
        "SCAN p",
        "SEARCH lines USING INDEX sqlite_autoindex_lines_1 (queue=? AND fair_key=?)",
        "SEARCH jobs USING COVERING INDEX jobs_of_line (line=? AND status=? AND held=?)",
    },
    "move_lines": {
        "SCAN p",
        "SEARCH lines USING COVERING INDEX sqlite_autoindex_lines_1 (queue=? AND fair_key=?)",
    },
    "jobs_in_lines": {
        "SEARCH jobs USING COVERING INDEX jobs_of_line (line=? AND status=? AND held=? AND id>?)",
    },
    "read_lined": {BY_ID},
    "refresh_lines": {
        "SEARCH jobs USING COVERING INDEX jobs_of_line (line=? AND status=? AND held=?)",
        "SEARCH key USING INDEX sqlite_autoindex_lines_1 (queue=? AND fair_key=?)",
        "SEARCH lines USING INTEGER PRIMARY KEY (rowid=?)",
    },
    "forget_lines": {
        "SEARCH jobs USING COVERING INDEX jobs_of_line (line=?)",
        "SEARCH lines USING INTEGER PRIMARY KEY (rowid=?)",
    },
    "open_lines": {
        "SCAN lines",
        "SEARCH lines USING INDEX open_lines (aging_ms=?)",
        "SEARCH jobs USING COVERING INDEX jobs_of_line (line=? AND status=? AND held=? AND id>?)",
    },
    "aging_arm": {"SEARCH lines USING INDEX open_lines (aging_ms=?)"},
    "line_arm": {"SEARCH lines USING INDEX open_lines_of_queue (queue=?)"},
    "line_queues": {"SCAN found", "SEARCH lines USING INDEX open_lines_of_queue (queue>?)"},
    "first_line_queues": {
        "SEARCH lines USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH lines USING INDEX open_lines_of_queue (queue=?)",
        "USE TEMP B-TREE FOR ORDER BY",
    },
    "shared_lines": {
        "SEARCH lines USING INDEX shared_lines (queue=? AND priority=?)",
        "SCAN lines",
        "SEARCH jobs USING COVERING INDEX jobs_of_line (line=? AND status=? AND held=? AND id>?)",
    },
    "jobs_in_line": {
        "SEARCH jobs USING COVERING INDEX jobs_of_line (line=? AND status=? AND held=? AND id>?)"
    },
    "shut_lines": {"SEARCH lines USING INTEGER PRIMARY KEY (rowid=?)"},
    "first_shut": {
        "SEARCH lines USING COVERING INDEX shut_lines (shut_by=?)",
        "SEARCH lines USING INTEGER PRIMARY KEY (rowid=?)",
    },
    "next_shut": {
        "SEARCH lines USING COVERING INDEX shut_lines (shut_by=? AND shut_cost=? AND queue>?)",
        "SEARCH lines USING COVERING INDEX shut_lines (shut_by=? AND shut_cost>?)",
    },
    "open_shut": {
        "SEARCH lines USING COVERING INDEX shut_lines (shut_by=? AND shut_cost=? AND queue=?)",
        "SEARCH lines USING INTEGER PRIMARY KEY (rowid=?)",
    },
    "in_flight_of": {"SEARCH queue_counts USING PRIMARY KEY (queue=? AND status=?)"},
    "canceller_of": {"SEARCH sweeps USING INTEGER PRIMARY KEY (rowid=?)", BY_ID},
    "head_of_group": {OF_GROUP},
    "may_go": {CLAIM_QUEUE, "SEARCH lines USING INDEX open_lines_of_queue (queue=?)"},
    "behind": {"SEARCH jobs USING INDEX unfinished_of_group (queue=? AND group_id>?)"},
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
    "write_failure_counts": set(),
    "forget_failure_counts": {
        "SEARCH failure_counts USING PRIMARY KEY (length=? AND at=?)",
        "SEARCH failure_counts USING PRIMARY KEY (length=? AND at<?)",
    },
    "clear_failure_counts": set(),
    "failures_since": {
        "SEARCH failure_counts USING PRIMARY KEY (length=? AND at>?)",
        "SEARCH error_groups USING PRIMARY KEY (signature=? AND queue=?)",
        "USE TEMP B-TREE FOR GROUP BY",
    },
    "dead_of_cause": {
        "SEARCH errors USING COVERING INDEX errors_by_signature (signature=?)",
        f"{BY_ID} LEFT-JOIN",
    },
    "read_trends": {"SEARCH trends USING PRIMARY KEY (length=? AND queue=? AND at=?)"},
    "count_trends": {"SEARCH trends USING COVERING INDEX trends_by_time (length=? AND at=?)"},
    "write_trends": set(),
    "forget_trends": {
        "SEARCH trends USING COVERING INDEX trends_by_time (length=? AND at=?)",
        "SEARCH trends USING COVERING INDEX trends_by_time (length=? AND at<?)",
    },
    "clear_trends": set(),
    "read_type_trends": {
        "SEARCH t USING PRIMARY KEY (length=? AND at=? AND queue=? AND type=?)",
    },
    "count_type_trends": {"SEARCH type_trends USING PRIMARY KEY (length=? AND at=?)"},
    "write_type_trends": set(),
    "forget_type_trends": {
        "SEARCH type_trends USING PRIMARY KEY (length=? AND at=?)",
        "SEARCH type_trends USING PRIMARY KEY (length=? AND at<?)",
    },
    "clear_type_trends": set(),
    "type_trends": {
        *("SCAN c", "SCAN chosen", "SCAN t", "USE TEMP B-TREE FOR GROUP BY"),
        "SEARCH type_trends USING PRIMARY KEY (length=? AND at>?)",
        "SEARCH parts USING AUTOMATIC COVERING INDEX (queue=? AND type=? AND step=?) LEFT-JOIN",
    },
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
    "scheduled_beside": {"SEARCH jobs USING INDEX scheduled_by_date (ready_at=? AND id>?)"},
    "scheduled_beyond": {"SEARCH jobs USING INDEX scheduled_by_date (ready_at>?)"},
    "waiting_beside": {"SEARCH jobs USING INDEX scheduled_by_wait (due_at=? AND id>?)"},
    "waiting_beyond": {"SEARCH jobs USING INDEX scheduled_by_wait (due_at>?)"},
    "due_between": {
        "SEARCH jobs USING INDEX scheduled_by_date (ready_at>? AND ready_at<?)",
        "SEARCH cron_entries USING COVERING INDEX cron_by_time (next_at>? AND next_at<?)",
        "SEARCH queue_settings USING INDEX pauses_by_end (paused_until>? AND paused_until<?)",
    },
    "leases": {"SEARCH jobs USING INDEX leases_by_deadline (lease_until>?)"},
    "rebind": {BY_ID},
    "clear_lines": set(),
    "clear_budgets": set(),
    "return_in_use": {
        *(IN_FLIGHT_ROWS, GROUPED, "SCAN drawn"),
        "SEARCH budgets USING PRIMARY KEY (key=?)",
    },
    # These two run where rows were set aside, for they could not be read.
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
    "look for cron states": {CRONS_OF_GROUP},
    "look for cron entry": {ONE_CRON},
    "look for cron size": {CRONS_OF_GROUP},
    "look for cron queues": {
        "SCAN g",
        "SEARCH e USING PRIMARY KEY (cron=?) LEFT-JOIN",
        "USE TEMP B-TREE FOR DISTINCT",
    },
    "look for cron count": {"SCAN cron_entries"},
    "look for cron tally": {"SCAN cron_entries"},
    "look for cron due": {
        HOME_OF_CRON,
        "SEARCH e USING INDEX cron_by_time (next_at>? AND next_at<?)",
    },
    "look for cron schedules": {
        HOME_OF_CRON,
        "SEARCH e USING PRIMARY KEY ((cron,name)>(?,?))",
    },
    "look for cron timed_ahead": {
        HOME_OF_CRON,
        "SEARCH e USING PRIMARY KEY ((cron,name)>(?,?))",
    },
    "read_producers": {PRODUCER},
    "count_producers": {"SCAN producers"},
    "write_producers": set(),
    "delete_producer": {PRODUCER},
    "read_ends": {PRODUCER_ENDS},
    "write_ends": set(),
    "drop_ends": {
        "SEARCH producer_ends USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH older USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH producer_ends USING COVERING INDEX producer_ends_latest (name=?)",
    },
    "delete_ends": {"SEARCH producer_ends USING INDEX producer_ends_latest (name=?)"},
    "producer": {PRODUCER},
    "producers": {"SEARCH producers USING PRIMARY KEY (name>?)"},
    "read_devices": {DEVICE},
    "read_addressees": {DEVICE, LANE_BY_NAME.replace("USING", "USING COVERING")},
    "count_devices": {"SCAN devices"},
    "write_devices": set(),
    "delete_device": {DEVICE},
    "has_shares": {"SCAN shares"},
    "read_shares": {
        f"SEARCH {table} USING PRIMARY KEY (queue=? AND fair_key=?) LEFT-JOIN" for table in "sl"
    },
    "read_shared_queues": {SHARED_QUEUE},
    "write_shared_queues": set(),
    "open_keys": {"SEARCH lines USING INDEX shut_lines (shut_by=?)"},
    "open_every_key": {"SEARCH lines USING INDEX shut_lines (shut_by>? AND shut_by<?)"},
    "read_opening": {
        "SEARCH shares USING COVERING INDEX shares_by_opening (opens_at>? AND opens_at<?)"
    },
    "pass_shares": {SHARE, "SEARCH s USING INDEX idle_shares (queue=? AND finish<?)"},
    "has_shut_keys": {"SEARCH lines USING COVERING INDEX shut_lines (shut_by>? AND shut_by<?)"},
    "open_keys_of_queue": {
        "SEARCH lines USING COVERING INDEX shut_lines (shut_by>? AND shut_by<?)",
        "SEARCH lines USING INTEGER PRIMARY KEY (rowid=?)",
    },
    "last_finish": {"SEARCH shares USING INDEX idle_shares (queue=?)"},
    "ended_queues": {"SCAN shared_queues"},
    "end_shared_queues": {SHARED_QUEUE, SHARES},
    "put_fair_limit": set(),
    "lanes": {"SCAN lanes USING INDEX sqlite_autoindex_lanes_1"},
    "leaving": {"SCAN lanes"},
    "lane": {LANE_BY_NAME},
    "put_lane": set(),
    "pause_lane": {LANE_BY_NAME},
    "drop_lane": {LANE_BY_ID},
    "note_next": {LANE_BY_ID},
    "name_heirs": {LANE_BY_ID},
    "begin_epoch": {LANE_BY_ID},
    "batches_of_lane": {LANE_BATCHES},
    "put_batch": set(),
    "drop_batches": {LANE_BATCHES},
    "read_followers": {BY_ID, BY_ID.replace("jobs", "follower"), OF_GROUP},
    "lane_depths": {"SEARCH queue_counts USING PRIMARY KEY (queue>?)"},
    "lane_bytes": {"SEARCH jobs USING INTEGER PRIMARY KEY (rowid>?)", "SCAN seen"},
    "oldest_of_lane": {"SEARCH jobs USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
    "drop_fair_limit": {SHARE.replace("shares", "fair_limits")},
    "clear_shares": set(),
    "clear_shared_queues": set(),
    "clear_fair_limits": set(),
    "make_lost_shares": {
        *("SCAN jobs", "USE TEMP B-TREE FOR DISTINCT"),
        SHARED_QUEUE.replace("shared_queues", "q"),
    },
    "make_lost_shared_queues": {"SCAN shares"},
    "count_shares": {
        "SCAN shares",
        "SCAN jobs",
        GROUPED,
        "SCAN c",
        SHARE,
    },
    "count_shared_queues": {"SCAN shared_queues", SHARES},
    "return_shares": {
        BY_ID,
        "USE TEMP B-TREE FOR GROUP BY",
        "SCAN c",
        SHARE,
        SHARE.replace("shares", "l"),
        SHARED_QUEUE.replace("shared_queues", "q"),
    },
    "place_returned": {BY_ID.replace("jobs", "lines"), BY_ID, SHARES},
    "turn_of": {
        SHARE.replace("shares", "s"),
        SHARE.replace("shares", "l") + " LEFT-JOIN",
        SHARE,
        SHARES,
        "SCAN o",
        SHARE.replace("shares", "ol") + " LEFT-JOIN",
    },
    "backlog: counts": {"SEARCH queue_counts USING PRIMARY KEY (queue=? AND status=?)"},
    "backlog: kinds": {
        "SEARCH jobs USING INDEX unfinished_of_group (queue=? AND group_id>?)",
        "SEARCH lines USING COVERING INDEX sqlite_autoindex_lines_1 (queue=?)",
    },
    "backlog: free": {CLAIM_QUEUE},
    "backlog: lines": {
        "SEARCH lines USING INDEX sqlite_autoindex_lines_1 (queue=?)",
        "SCAN lines",
        SORTED,
        SHARE.replace("shares", "s") + " LEFT-JOIN",
        SHARE.replace("shares", "l") + " LEFT-JOIN",
    },
    "backlog: in_line": {
        "SEARCH jobs USING COVERING INDEX jobs_of_line (line=? AND status=? AND held=?)"
    },
    "backlog: budgets": {"SEARCH budgets USING PRIMARY KEY (key=?)"},
}
