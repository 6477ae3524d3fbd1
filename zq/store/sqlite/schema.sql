CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE payloads (
    job_id  INTEGER PRIMARY KEY,
    body    TEXT NOT NULL
, checksum INTEGER) STRICT;
CREATE TABLE errors (
    job_id       INTEGER NOT NULL,
    attempt      INTEGER NOT NULL CHECK (attempt > 0),
    message      TEXT    NOT NULL,
    error_type   TEXT,
    backtrace    TEXT,
    dequeued_at  INTEGER NOT NULL,
    failed_at    INTEGER NOT NULL, signature TEXT, worker TEXT, checksum INTEGER,
    PRIMARY KEY (job_id, attempt)
) STRICT, WITHOUT ROWID;
CREATE TABLE results (
    job_id  INTEGER PRIMARY KEY,
    body    TEXT NOT NULL
, checksum INTEGER) STRICT;
CREATE TABLE queue_settings (
    queue     TEXT PRIMARY KEY,
    settings  TEXT NOT NULL
, paused_until INTEGER GENERATED ALWAYS AS (
    CASE
        WHEN NOT json_valid(settings) THEN NULL
        WHEN json_type(settings, '$.paused_until') = 'integer' THEN settings ->> 'paused_until'
    END) VIRTUAL, checksum INTEGER, aging_ms INTEGER GENERATED ALWAYS AS (
    CASE
        WHEN NOT json_valid(settings) THEN NULL
        WHEN json_type(settings, '$.priority_aging_ms') = 'integer'
            THEN settings ->> 'priority_aging_ms'
    END) VIRTUAL) STRICT, WITHOUT ROWID;
CREATE TABLE dedupe (
    queue      TEXT    NOT NULL,
    group_id   TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    job_id     INTEGER NOT NULL,
    until      INTEGER NOT NULL,
    PRIMARY KEY (queue, group_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX dedupe_by_time ON dedupe (until);
CREATE TABLE logs (
    id           INTEGER PRIMARY KEY,
    name         TEXT    NOT NULL UNIQUE CHECK (name <> ''),
    min_seq      INTEGER NOT NULL DEFAULT 1 CHECK (min_seq > 0),
    max_seq      INTEGER NOT NULL DEFAULT 0,
    bytes        INTEGER NOT NULL DEFAULT 0 CHECK (bytes >= 0),
    max_age_ms   INTEGER,
    max_records  INTEGER,
    max_bytes    INTEGER,
    trim_at      INTEGER,
    CHECK (min_seq <= max_seq + 1)
) STRICT;
CREATE INDEX trimmable ON logs (trim_at) WHERE trim_at IS NOT NULL;
CREATE TABLE log_batches (
    log       INTEGER NOT NULL,
    last_seq  INTEGER NOT NULL,
    count     INTEGER NOT NULL CHECK (count > 0),
    at        INTEGER NOT NULL,
    shared    TEXT    NOT NULL,
    body      BLOB    NOT NULL, steady_at INTEGER, checksum INTEGER,
    PRIMARY KEY (log, last_seq)
) STRICT;
CREATE TABLE quarantine (
    source  TEXT    NOT NULL CHECK (source <> ''),
    key     TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    reason  TEXT    NOT NULL,
    row     BLOB    NOT NULL, acknowledged_at INTEGER,
    PRIMARY KEY (source, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE jobs (
    id            INTEGER PRIMARY KEY,
    queue         TEXT    NOT NULL CHECK (queue <> ''),
    type          TEXT    NOT NULL CHECK (type <> ''),
    priority      INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 65535),
    status        INTEGER NOT NULL CHECK (status BETWEEN 0 AND 6),
    held          INTEGER NOT NULL DEFAULT 0 CHECK (held BETWEEN 0 AND 3),
    ready_at      INTEGER NOT NULL CHECK (ready_at >= 0),
    attempts      INTEGER NOT NULL DEFAULT 0,
    deliveries    INTEGER NOT NULL DEFAULT 0,
    holder        INTEGER,
    dequeued_at   INTEGER,
    lease_until   INTEGER,
    failed_at     INTEGER,
    finished_at   INTEGER,
    purge_at      INTEGER,
    options       TEXT,
    unique_key    TEXT,
    unique_while  INTEGER CHECK (unique_while BETWEEN 0 AND 2),
    owns_key      INTEGER NOT NULL DEFAULT 0 CHECK (owns_key IN (0, 1)),
    group_id      TEXT    CHECK (group_id <> ''),
    expires_at    INTEGER,
    claimant      TEXT,
    stalls        INTEGER NOT NULL DEFAULT 0 CHECK (stalls >= 0),
    forgiven      INTEGER NOT NULL DEFAULT 0,
    extras        TEXT,
    result_size   INTEGER,
    result        TEXT,
    payload_size  INTEGER NOT NULL,
    payload       TEXT, unique_in INTEGER NOT NULL DEFAULT 0 CHECK (unique_in IN (0, 1)), key_lock TEXT
    AS (iif(unique_in = 1, queue, '') || ',' || unique_key) VIRTUAL, swept INTEGER CHECK (swept IS NULL OR status = 5), due_at INTEGER, ttl_ms INTEGER, checksum INTEGER, result_checksum INTEGER, line INTEGER,
    CHECK ((status = 2) = (holder IS NOT NULL)),
    CHECK (status <> 2 OR dequeued_at IS NOT NULL),
    CHECK ((deliveries > 0) = (dequeued_at IS NOT NULL)),
    CHECK (lease_until IS NULL OR status = 2),
    CHECK ((claimant IS NOT NULL) = (holder IS 0)),
    CHECK (claimant IS NULL OR lease_until IS NOT NULL),
    CHECK ((attempts > 0) = (failed_at IS NOT NULL)),
    CHECK (forgiven BETWEEN 0 AND attempts),
    CHECK ((status >= 3) = (finished_at IS NOT NULL)),
    CHECK ((status >= 3) = (purge_at IS NOT NULL)),
    CHECK ((unique_key IS NULL) = (unique_while IS NULL)),
    CHECK (owns_key = 0 OR unique_key IS NOT NULL),
    CHECK (owns_key = 0 OR status < 5),
    CHECK (held & 1 = 0 OR group_id IS NOT NULL),
    CHECK (held = 0 OR status < 2),
    CHECK (iif(json_valid(options), json_type(options) = 'object', options IS NULL)),
    CHECK (iif(json_valid(extras), json_type(extras) = 'object', extras IS NULL)),
    CHECK (result_size IS NULL OR status = 3),
    CHECK ((result IS NOT NULL) = (ifnull(result_size, 513) <= 512)),
    CHECK ((payload IS NULL) = (payload_size > 512))
) STRICT;
CREATE INDEX ready_by_priority ON jobs (priority, id) WHERE status = 1 AND held = 0;
CREATE INDEX ready_by_queue ON jobs (queue, priority, id) WHERE status = 1 AND held = 0;
CREATE INDEX scheduled_by_time ON jobs (ready_at, id) WHERE status = 0;
CREATE INDEX purgeable ON jobs (purge_at) WHERE purge_at IS NOT NULL;
CREATE INDEX not_ready ON jobs (status, id) WHERE status <> 1;
CREATE INDEX unfinished_of_group ON jobs (queue, group_id, held & 1, id)
    WHERE group_id IS NOT NULL AND status <= 2;
CREATE INDEX leases_by_deadline ON jobs (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX expiring ON jobs (expires_at) WHERE expires_at IS NOT NULL AND status <= 1;
CREATE TABLE queue_counts (
    queue   TEXT    NOT NULL,
    status  INTEGER NOT NULL CHECK (status BETWEEN 0 AND 6),
    n       INTEGER NOT NULL CHECK (n >= 0),
    PRIMARY KEY (queue, status)
) STRICT, WITHOUT ROWID;
CREATE TABLE cron_groups (
    name        TEXT    PRIMARY KEY CHECK (name <> ''),
    timezone    TEXT,
    paused      INTEGER NOT NULL CHECK (paused IN (0, 1)),
    paused_at   INTEGER,
    resumed_at  INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE cron_entries (
    cron        TEXT    NOT NULL,
    name        TEXT    NOT NULL CHECK (name <> ''),
    expression  TEXT    NOT NULL,
    timezone    TEXT,
    paused      INTEGER NOT NULL CHECK (paused IN (0, 1)),
    paused_at   INTEGER,
    resumed_at  INTEGER,
    next_at     INTEGER,
    last_at     INTEGER,
    timed_at    INTEGER NOT NULL,
    queue       TEXT    NOT NULL CHECK (queue <> ''),
    job         TEXT    NOT NULL CHECK (iif(json_valid(job), json_type(job) = 'object', 0)), checksum INTEGER,
    PRIMARY KEY (cron, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX cron_by_time ON cron_entries (next_at) WHERE next_at IS NOT NULL;
CREATE TABLE open_batches (
    job_id    INTEGER PRIMARY KEY,
    key       TEXT    NOT NULL,
    revision  INTEGER NOT NULL CHECK (revision >= 0)
) STRICT;
CREATE UNIQUE INDEX host_of_batch ON open_batches (key);
CREATE UNIQUE INDEX key_owner ON jobs (key_lock) WHERE owns_key = 1;
CREATE INDEX errors_by_signature ON errors (signature);
CREATE TABLE error_groups (
    signature   TEXT    NOT NULL CHECK (signature <> ''),
    queue       TEXT    NOT NULL CHECK (queue <> ''),
    error_type  TEXT,
    message     TEXT    NOT NULL,
    n           INTEGER NOT NULL CHECK (n > 0),
    first_seen  INTEGER NOT NULL,
    last_seen   INTEGER NOT NULL,
    sample      INTEGER NOT NULL, types TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (signature, queue)
) STRICT, WITHOUT ROWID;
CREATE TABLE topics (
    id         INTEGER PRIMARY KEY CHECK (id BETWEEN 1 AND 4194303),
    name       TEXT    UNIQUE CHECK (name <> ''),
    config     TEXT    NOT NULL,
    head_seq   INTEGER NOT NULL DEFAULT 0 CHECK (head_seq BETWEEN 0 AND 2199023255551),
    count      INTEGER NOT NULL DEFAULT 0 CHECK (count >= 0),
    bytes      INTEGER NOT NULL DEFAULT 0 CHECK (bytes >= 0),
    cap_floor  INTEGER NOT NULL DEFAULT 0,
    ttl_floor  INTEGER NOT NULL DEFAULT 0,
    last_at    INTEGER,
    trim_at    INTEGER
, dead_lettered INTEGER NOT NULL DEFAULT 0 CHECK (dead_lettered >= 0)) STRICT;
CREATE INDEX topics_to_trim ON topics (trim_at) WHERE trim_at IS NOT NULL;
CREATE TABLE topic_records (
    key   INTEGER PRIMARY KEY,
    at    INTEGER NOT NULL,
    size  INTEGER NOT NULL,
    node  TEXT,
    tag   TEXT,
    meta  TEXT,
    data  TEXT NOT NULL
, steady_at INTEGER, checksum INTEGER) STRICT;
CREATE INDEX records_by_tag ON topic_records (key >> 41, tag) WHERE tag IS NOT NULL;
CREATE TABLE topic_writes (
    id         INTEGER PRIMARY KEY,
    topic      INTEGER NOT NULL,
    key        TEXT    NOT NULL,
    first_seq  INTEGER NOT NULL,
    last_seq   INTEGER NOT NULL,
    until      INTEGER NOT NULL,
    UNIQUE (topic, key)
) STRICT;
CREATE INDEX writes_by_time ON topic_writes (until);
CREATE TABLE topic_routers (
    name       TEXT    PRIMARY KEY CHECK (name <> ''),
    source     TEXT    NOT NULL CHECK (source <> dest),
    dest       TEXT    NOT NULL,
    config     TEXT    NOT NULL,
    forwarded  INTEGER NOT NULL DEFAULT 0 CHECK (forwarded >= 0)
) STRICT, WITHOUT ROWID;
CREATE INDEX routers_by_source ON topic_routers (source);
CREATE INDEX routers_by_dest ON topic_routers (dest);
CREATE TABLE schemas (
    queue       TEXT    PRIMARY KEY CHECK (queue <> ''),
    body        TEXT    NOT NULL,
    version     INTEGER NOT NULL CHECK (version > 0),
    updated_at  INTEGER NOT NULL
) STRICT;
CREATE TABLE users (
    id          TEXT    PRIMARY KEY CHECK (id <> ''),
    name        TEXT    NOT NULL UNIQUE CHECK (name <> ''),
    hash        TEXT    NOT NULL,
    is_admin    INTEGER NOT NULL CHECK (is_admin IN (0, 1)),
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE user_grants (
    id          TEXT    PRIMARY KEY CHECK (id <> ''),
    user        TEXT    NOT NULL,
    action      TEXT    NOT NULL CHECK ((action = 'consume') = (group_id IS NOT NULL)),
    pattern     TEXT    NOT NULL CHECK (pattern <> ''),
    group_id    TEXT,
    created_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX grants_by_user ON user_grants (user, created_at);
CREATE UNIQUE INDEX grants_by_group ON user_grants (user, pattern, group_id);
CREATE TABLE topic_jobs (
    key   INTEGER PRIMARY KEY,
    job   INTEGER NOT NULL,
    node  TEXT,
    tag   TEXT
) STRICT;
CREATE INDEX topic_jobs_by_job ON topic_jobs (job);
CREATE INDEX topic_jobs_by_tag ON topic_jobs (key >> 41, tag) WHERE tag IS NOT NULL;
CREATE TABLE trends (
    length     INTEGER NOT NULL CHECK (length > 0),
    queue      TEXT    NOT NULL,
    at         INTEGER NOT NULL CHECK (at % length = 0),
    enqueued   INTEGER NOT NULL,
    delivered  INTEGER NOT NULL,
    completed  INTEGER NOT NULL,
    failed     INTEGER NOT NULL,
    died       INTEGER NOT NULL,
    expired    INTEGER NOT NULL,
    wait       TEXT    NOT NULL,
    run        TEXT    NOT NULL,
    PRIMARY KEY (length, queue, at)
) STRICT, WITHOUT ROWID;
CREATE INDEX trends_by_time ON trends (length, at);
CREATE INDEX pauses_by_end ON queue_settings (paused_until) WHERE paused_until IS NOT NULL;
CREATE TABLE sweeps (
    id          INTEGER PRIMARY KEY,
    outline     TEXT    NOT NULL,
    changed     INTEGER NOT NULL CHECK (changed > 0),
    passed      REAL    NOT NULL CHECK (passed BETWEEN 0 AND 1),
    changed_at  INTEGER NOT NULL,
    taken_back  INTEGER NOT NULL DEFAULT 0 CHECK (taken_back BETWEEN 0 AND changed)
) STRICT;
CREATE TABLE queue_rates (
    queue  TEXT    PRIMARY KEY,
    level  REAL    NOT NULL,
    at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX scheduled_by_date ON jobs (ready_at, id) WHERE status = 0 AND due_at IS NULL;
CREATE INDEX scheduled_by_wait ON jobs (due_at, id) WHERE status = 0 AND due_at IS NOT NULL;
CREATE TABLE failure_counts (
    length     INTEGER NOT NULL CHECK (length > 0),
    at         INTEGER NOT NULL CHECK (at % length = 0),
    signature  TEXT    NOT NULL CHECK (signature <> ''),
    queue      TEXT    NOT NULL CHECK (queue <> ''),
    n          INTEGER NOT NULL CHECK (n > 0),
    PRIMARY KEY (length, at, signature, queue)
) STRICT, WITHOUT ROWID;
CREATE TABLE type_trends (
    length  INTEGER NOT NULL CHECK (length > 0),
    at      INTEGER NOT NULL CHECK (at % length = 0),
    queue   TEXT    NOT NULL,
    type    TEXT    NOT NULL,
    done    INTEGER NOT NULL,
    failed  INTEGER NOT NULL,
    run     TEXT    NOT NULL,
    PRIMARY KEY (length, at, queue, type)
) STRICT, WITHOUT ROWID;
CREATE TABLE producers (
    name   TEXT    PRIMARY KEY,
    epoch  TEXT    NOT NULL,
    last   INTEGER NOT NULL CHECK (last >= 0),
    at     INTEGER NOT NULL,
    first  INTEGER NOT NULL CHECK (first BETWEEN 1 AND last + 1),
    key    INTEGER NOT NULL,
    step   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_of_line ON jobs (line, status, held, id) WHERE line IS NOT NULL;
CREATE TABLE "budgets" (
    key          TEXT    PRIMARY KEY CHECK (key <> ''),
    allocation   INTEGER NOT NULL CHECK (allocation BETWEEN 1 AND 1000000),
    duration_ms  INTEGER CHECK (duration_ms >= 1),
    burst        INTEGER CHECK (burst BETWEEN 1 AND 1000000),
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    in_use       INTEGER NOT NULL DEFAULT 0 CHECK (in_use >= 0),
    level        INTEGER NOT NULL DEFAULT 0,
    carry        INTEGER NOT NULL DEFAULT 0 CHECK (carry >= 0),
    settled_at   INTEGER NOT NULL DEFAULT 0,
    pays_at      INTEGER,
    maker        TEXT,
    unfinished   INTEGER NOT NULL DEFAULT 0,
    waiting      INTEGER NOT NULL DEFAULT 0,
    costliest    INTEGER NOT NULL DEFAULT 0,
    held_until   INTEGER,
    CHECK (burst IS NULL OR duration_ms IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX budgets_by_time ON budgets (pays_at) WHERE pays_at IS NOT NULL;
CREATE TABLE shares (
    queue       TEXT    NOT NULL,
    fair_key    TEXT    NOT NULL,
    weight      REAL    NOT NULL,
    finish      REAL    NOT NULL,
    mean        REAL,
    owed        REAL    NOT NULL,
    unfinished  INTEGER NOT NULL,
    waiting     INTEGER NOT NULL,
    in_flight   INTEGER NOT NULL,
    paid_until  REAL,
    opens_at    INTEGER,
    PRIMARY KEY (queue, fair_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idle_shares ON shares (queue, finish) WHERE unfinished = 0;
CREATE INDEX shares_by_opening ON shares (opens_at) WHERE opens_at IS NOT NULL;
CREATE TABLE shared_queues (
    queue       TEXT    PRIMARY KEY,
    virtual     REAL    NOT NULL,
    mean        REAL    NOT NULL,
    unfinished  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE fair_limits (
    queue          TEXT    NOT NULL,
    fair_key       TEXT    NOT NULL,
    weight         REAL,
    max_in_flight  INTEGER,
    rate           REAL,
    PRIMARY KEY (queue, fair_key)
) STRICT, WITHOUT ROWID;
CREATE TABLE lanes (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    name      TEXT    NOT NULL UNIQUE,
    rule      TEXT    NOT NULL CHECK (json_valid(rule)),
    epoch     TEXT    NOT NULL,
    next      INTEGER NOT NULL CHECK (next >= 1),
    heir      TEXT,
    paused    INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    declared  INTEGER NOT NULL DEFAULT 0 CHECK (declared IN (0, 1))
) STRICT;
CREATE TABLE lane_batches (
    lane   INTEGER NOT NULL,
    first  INTEGER NOT NULL CHECK (first >= 1),
    keys   TEXT    NOT NULL CHECK (json_valid(keys)),
    PRIMARY KEY (lane, first)
) STRICT, WITHOUT ROWID;
CREATE TABLE devices (
    name         TEXT    PRIMARY KEY,
    instance     TEXT    NOT NULL,
    version      TEXT    NOT NULL,
    every_ms     INTEGER NOT NULL,
    clock_ms     INTEGER NOT NULL,
    reported_at  INTEGER NOT NULL,
    since        INTEGER NOT NULL,
    jobs         INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    oldest_ms    INTEGER,
    lanes        TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE "lines" (
    id         INTEGER PRIMARY KEY,
    queue      TEXT    NOT NULL,
    fair_key   TEXT    NOT NULL,
    draws      TEXT    NOT NULL,
    priority   INTEGER NOT NULL,
    aging_ms   INTEGER NOT NULL DEFAULT 0,
    head       INTEGER,
    place      REAL,
    shut_by    TEXT,
    shut_cost  INTEGER,
    UNIQUE (queue, fair_key, aging_ms, priority, draws)
) STRICT;
CREATE INDEX open_lines ON lines (aging_ms, priority, head) WHERE head IS NOT NULL AND shut_by IS NULL;
CREATE INDEX open_lines_of_queue ON lines (queue, priority, head)
    WHERE head IS NOT NULL AND shut_by IS NULL;
CREATE INDEX shared_lines ON lines (queue, priority, place, head)
    WHERE fair_key <> '' AND head IS NOT NULL AND shut_by IS NULL;
CREATE INDEX shut_lines ON lines (shut_by, shut_cost, queue, priority, place) WHERE shut_by IS NOT NULL;
CREATE INDEX aged_lines ON lines (aging_ms, queue) WHERE aging_ms > 0;
CREATE INDEX heads_of_lines ON lines (queue, head) WHERE head > 0;
CREATE TABLE producer_ends (
    id     INTEGER PRIMARY KEY,
    name   TEXT    NOT NULL,
    epoch  TEXT    NOT NULL,
    last   INTEGER NOT NULL CHECK (last >= 0),
    UNIQUE (name, epoch)
) STRICT;
CREATE INDEX producer_ends_latest ON producer_ends (name, id);
INSERT INTO "logs" VALUES(1,'history',1,0,0,NULL,NULL,NULL,NULL);
INSERT INTO "logs" VALUES(2,'audit',1,0,0,7776000000,100000,67108864,NULL);
