"""How the statements of topics find their rows, for the test of all plans."""

from store.sqlite.plans import BY_ID

from zq.store.sqlite.queries import load

TOPIC_BY_ID = "SEARCH topics USING INTEGER PRIMARY KEY (rowid=?)"
ROUTER = "SEARCH topic_routers USING PRIMARY KEY (name=?)"
ROUTERS_OF_SOURCE = "SEARCH topic_routers USING INDEX routers_by_source (source=?)"
ROUTERS_OF_DEST = "SEARCH topic_routers USING INDEX routers_by_dest (dest=?)"
NUMBER = "SEARCH topic_jobs USING INTEGER PRIMARY KEY (rowid=?)"
JOBS_OF_TOPIC = "SEARCH t USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"
NUMBERS = JOBS_OF_TOPIC.replace("SEARCH t ", "SEARCH topic_jobs ")
JOB_IN_TOPIC = "SEARCH topic_jobs USING INDEX topic_jobs_by_job (job=?)"
RECORDS_OF_TOPIC = "SEARCH topic_records USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"

FINDS: dict[str, set[str]] = {
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
    "create_topic": {"SEARCH topics", "SEARCH topic_records", "SEARCH topic_jobs"},
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
    "note_expired_numbers": {
        JOB_IN_TOPIC.replace("USING", "USING COVERING"),
        "USE TEMP B-TREE FOR GROUP BY",
        "SCAN gone",
        TOPIC_BY_ID,
    },
    "read_numbers": {"SEARCH topic_jobs USING COVERING INDEX topic_jobs_by_job (job=?)"},
    "forget_numbers": {JOB_IN_TOPIC},
    "forget_ended": {BY_ID, JOB_IN_TOPIC.replace("USING", "USING COVERING")},
    "forget_gone": {BY_ID, NUMBER, JOBS_OF_TOPIC},
    "oldest_waiting": {BY_ID, JOBS_OF_TOPIC},
    "has_jobs": {BY_ID, JOBS_OF_TOPIC},
    "forget_numbers_of": {NUMBER, NUMBERS},
    "clear_topic_jobs": set(),
    "look for topic standing": {"SEARCH queue_counts USING PRIMARY KEY (queue=?)"},
    "look for topic first_job": {BY_ID, "SCAN t", NUMBERS},
    "look for topic jobs_examined": {NUMBERS},
    "look for topic jobs_page": {
        BY_ID,
        "SCAN t",
        NUMBERS,
        "SEARCH payloads USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
    },
    "look for topic held": {BY_ID, NUMBER.replace("topic_jobs", "t")},
    "look for topic labels": {JOB_IN_TOPIC},
    "look for topic numbered": {BY_ID, JOBS_OF_TOPIC},
    "look for topic tagged": {
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
    "look for topic router": {ROUTER},
    "look for topic count_routers": {"SCAN topic_routers USING COVERING INDEX routers_by_dest"},
    "look for topic routers_page": {
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
        "SEARCH summed",
        RECORDS_OF_TOPIC,
        "USE TEMP B-TREE FOR ORDER BY",
    },
    "look for topic records": {RECORDS_OF_TOPIC},
}

SORTS = {"look for topic fitting", "note_expired_numbers"}
"""What sorts a bounded number of rows: the records of one page, and expired jobs by topic."""


def named() -> dict[str, str]:
    """The statements that readers run, by the names that they have here."""
    read = load("zq.doors.topics.sqlite_reads")
    found: dict[str, str] = {}
    for name, sql in read.items():
        others = "jobs_others" if name == "jobs_page" else "others"
        if name not in ("others", "jobs_others"):
            found[f"look for topic {name}"] = sql.replace("OTHERS", read[others])
    return found
