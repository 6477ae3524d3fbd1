-- What the database knows of itself: its identity, the constant tail of its ids, the highest key
-- that may have been minted.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- Status: 0 scheduled, 1 ready, 2 in flight, 3 completed, 4 dead. The CHECKs refuse impossible rows.
CREATE TABLE jobs (
    id            INTEGER PRIMARY KEY,
    queue         TEXT    NOT NULL CHECK (queue <> ''),
    type          TEXT    NOT NULL CHECK (type <> ''),
    priority      INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 65535),
    status        INTEGER NOT NULL CHECK (status BETWEEN 0 AND 4),
    ready_at      INTEGER NOT NULL CHECK (ready_at >= 0),
    attempts      INTEGER NOT NULL DEFAULT 0,
    deliveries    INTEGER NOT NULL DEFAULT 0,
    holder        INTEGER,
    dequeued_at   INTEGER,
    failed_at     INTEGER,
    completed_at  INTEGER,
    purge_at      INTEGER,
    options       TEXT,
    unique_key    TEXT,
    unique_while  INTEGER CHECK (unique_while BETWEEN 0 AND 2),
    owns_key      INTEGER NOT NULL DEFAULT 0 CHECK (owns_key IN (0, 1)),
    payload_size  INTEGER NOT NULL,
    payload       TEXT,
    CHECK ((status = 2) = (holder IS NOT NULL)),
    CHECK (status <> 2 OR dequeued_at IS NOT NULL),
    CHECK ((deliveries > 0) = (dequeued_at IS NOT NULL)),
    CHECK ((attempts > 0) = (failed_at IS NOT NULL)),
    CHECK ((status = 3) = (completed_at IS NOT NULL)),
    CHECK ((status IN (3, 4)) = (purge_at IS NOT NULL)),
    CHECK ((unique_key IS NULL) = (unique_while IS NULL)),
    CHECK (owns_key = 0 OR unique_key IS NOT NULL),
    CHECK ((payload IS NULL) = (payload_size > 512))
) STRICT;

-- claim over all queues: the next jobs in dispatch order
CREATE INDEX ready_by_priority ON jobs (priority, id) WHERE status = 1;
-- claim from named queues: the next jobs of each
CREATE INDEX ready_by_queue ON jobs (queue, priority, id) WHERE status = 1;
-- promotion: scheduled jobs that are due
CREATE INDEX scheduled_by_time ON jobs (ready_at, id) WHERE status = 0;
-- purge: finished jobs whose retention is over
CREATE INDEX purgeable ON jobs (purge_at) WHERE purge_at IS NOT NULL;
-- listing and counting by status: everything but the backlog
CREATE INDEX not_ready ON jobs (status, id) WHERE status <> 1;
-- unique keys: the one job that owns each; looked up on enqueue, and the last word on a restored lock
CREATE UNIQUE INDEX key_owner ON jobs (unique_key) WHERE owns_key = 1;

-- Payloads over 512 bytes. No foreign key: jobs are deleted in bulk and whether a job has a row here
-- (payload_size) or in errors (attempts) is known from its own row, where SQLite would look up each.
CREATE TABLE payloads (
    job_id  INTEGER PRIMARY KEY,
    body    TEXT NOT NULL
) STRICT;

CREATE TABLE errors (
    job_id       INTEGER NOT NULL,
    attempt      INTEGER NOT NULL CHECK (attempt > 0),
    message      TEXT    NOT NULL,
    error_type   TEXT,
    backtrace    TEXT,
    dequeued_at  INTEGER NOT NULL,
    failed_at    INTEGER NOT NULL,
    PRIMARY KEY (job_id, attempt)
) STRICT, WITHOUT ROWID;

-- How many jobs each queue has in each status, kept by the transactions that move them.
CREATE TABLE queue_counts (
    queue   TEXT    NOT NULL,
    status  INTEGER NOT NULL,
    n       INTEGER NOT NULL CHECK (n >= 0),
    PRIMARY KEY (queue, status)
) STRICT, WITHOUT ROWID;
