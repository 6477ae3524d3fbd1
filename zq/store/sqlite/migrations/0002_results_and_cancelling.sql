-- Results of completed jobs, and jobs that were cancelled. SQLite cannot change the CHECKs of a table,
-- so it is made anew. Status: 0 scheduled, 1 ready, 2 in flight, 3 completed, 4 dead, 5 cancelled;
-- 6, expired, is kept for jobs that were never delivered in time.
ALTER TABLE jobs RENAME TO jobs_before;

CREATE TABLE jobs (
    id            INTEGER PRIMARY KEY,
    queue         TEXT    NOT NULL CHECK (queue <> ''),
    type          TEXT    NOT NULL CHECK (type <> ''),
    priority      INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 65535),
    status        INTEGER NOT NULL CHECK (status BETWEEN 0 AND 6),
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
    cancelled_at  INTEGER,
    result_size   INTEGER,
    result        TEXT,
    payload_size  INTEGER NOT NULL,
    payload       TEXT,
    CHECK ((status = 2) = (holder IS NOT NULL)),
    CHECK (status <> 2 OR dequeued_at IS NOT NULL),
    CHECK ((deliveries > 0) = (dequeued_at IS NOT NULL)),
    CHECK ((attempts > 0) = (failed_at IS NOT NULL)),
    CHECK ((status = 3) = (completed_at IS NOT NULL)),
    CHECK ((status = 5) = (cancelled_at IS NOT NULL)),
    CHECK ((status >= 3) = (purge_at IS NOT NULL)),
    CHECK ((unique_key IS NULL) = (unique_while IS NULL)),
    CHECK (owns_key = 0 OR unique_key IS NOT NULL),
    CHECK (owns_key = 0 OR status < 5),
    CHECK (result_size IS NULL OR status = 3),
    CHECK ((result IS NOT NULL) = (ifnull(result_size, 513) <= 512)),
    CHECK ((payload IS NULL) = (payload_size > 512))
) STRICT;

INSERT INTO jobs (
    id, queue, type, priority, status, ready_at, attempts, deliveries, holder, dequeued_at,
    failed_at, completed_at, purge_at, options, unique_key, unique_while, owns_key, payload_size,
    payload)
SELECT
    id, queue, type, priority, status, ready_at, attempts, deliveries, holder, dequeued_at,
    failed_at, completed_at, purge_at, options, unique_key, unique_while, owns_key, payload_size,
    payload
FROM jobs_before ORDER BY id;

-- Its indexes go with it.
DROP TABLE jobs_before;

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
-- unique keys: the one job that owns each; looked up on enqueue and by key, and the last word on a
-- restored lock
CREATE UNIQUE INDEX key_owner ON jobs (unique_key) WHERE owns_key = 1;

-- Results over 512 bytes, as payloads have it; result_size tells whether a job has a row here.
CREATE TABLE results (
    job_id  INTEGER PRIMARY KEY,
    body    TEXT NOT NULL
) STRICT;
