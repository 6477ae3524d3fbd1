-- Rows that could not be read, set aside so that the rest goes on. key: the primary key in the table
-- that the row was in; row: the statement that would put it back (SQL text, in which a damaged text
-- is as it was). What lies beside a job stays where it is.
CREATE TABLE quarantine (
    source  TEXT    NOT NULL CHECK (source <> ''),
    key     TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    reason  TEXT    NOT NULL,
    row     BLOB    NOT NULL,
    PRIMARY KEY (source, key)
) STRICT, WITHOUT ROWID;

-- Jobs whose JSON is none come there, for the new CHECKs refuse them.
INSERT INTO quarantine (source, key, at, reason, row)
SELECT 'jobs', id, unixepoch() * 1000, 'options or extras are no JSON object', CAST(
    'INSERT INTO jobs (id, queue, type, priority, status, held, ready_at, attempts, deliveries, holder, '
    || 'dequeued_at, lease_until, failed_at, finished_at, purge_at, options, unique_key, '
    || 'unique_while, owns_key, group_id, expires_at, claimant, stalls, forgiven, '
    || 'extras, result_size, result, payload_size, payload) VALUES (' || literals || ')' AS BLOB)
FROM (
    SELECT id,
        quote(id) || ', ' || quote(queue) || ', ' || quote(type) || ', ' || quote(priority)
        || ', ' || quote(status) || ', ' || quote(held) || ', ' || quote(ready_at)
        || ', ' || quote(attempts) || ', ' || quote(deliveries) || ', ' || quote(holder)
        || ', ' || quote(dequeued_at) || ', ' || quote(lease_until) || ', ' || quote(failed_at)
        || ', ' || quote(finished_at) || ', ' || quote(purge_at) || ', ' || quote(options)
        || ', ' || quote(unique_key) || ', ' || quote(unique_while) || ', ' || quote(owns_key)
        || ', ' || quote(group_id) || ', ' || quote(expires_at) || ', ' || quote(claimant)
        || ', ' || quote(stalls) || ', ' || quote(forgiven) || ', ' || quote(extras)
        || ', ' || quote(result_size) || ', ' || quote(result) || ', ' || quote(payload_size)
        || ', ' || quote(payload) AS literals
    FROM jobs
    WHERE NOT iif(json_valid(options), json_type(options) = 'object', options IS NULL)
        OR NOT iif(json_valid(extras), json_type(extras) = 'object', extras IS NULL));

UPDATE queue_counts SET n = n - (
    SELECT count(*) FROM jobs
    WHERE jobs.queue = queue_counts.queue AND jobs.status = queue_counts.status
        AND id IN (SELECT CAST(key AS INTEGER) FROM quarantine))
WHERE EXISTS (SELECT 1 FROM quarantine);

DELETE FROM jobs WHERE id IN (SELECT CAST(key AS INTEGER) FROM quarantine);

-- SQLite cannot change the CHECKs of a table, so it is made anew: options and extras are JSON objects.
ALTER TABLE jobs RENAME TO jobs_before;

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
    payload       TEXT,
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

INSERT INTO jobs (
    id, queue, type, priority, status, held, ready_at, attempts, deliveries, holder, dequeued_at,
    lease_until, failed_at, finished_at, purge_at, options, unique_key, unique_while, owns_key,
    group_id, expires_at, claimant, stalls, forgiven, extras, result_size, result, payload_size,
    payload)
SELECT
    id, queue, type, priority, status, held, ready_at, attempts, deliveries, holder, dequeued_at,
    lease_until, failed_at, finished_at, purge_at, options, unique_key, unique_while, owns_key,
    group_id, expires_at, claimant, stalls, forgiven, extras, result_size, result, payload_size,
    payload
FROM jobs_before ORDER BY id;

-- Its indexes go with it.
DROP TABLE jobs_before;

-- claim over all queues: the next jobs in dispatch order
CREATE INDEX ready_by_priority ON jobs (priority, id) WHERE status = 1 AND held = 0;
-- claim from named queues: the next jobs of each
CREATE INDEX ready_by_queue ON jobs (queue, priority, id) WHERE status = 1 AND held = 0;
-- promotion: scheduled jobs that are due
CREATE INDEX scheduled_by_time ON jobs (ready_at, id) WHERE status = 0;
-- purge: finished jobs whose retention is over
CREATE INDEX purgeable ON jobs (purge_at) WHERE purge_at IS NOT NULL;
-- listing and counting by status: everything but the backlog
CREATE INDEX not_ready ON jobs (status, id) WHERE status <> 1;
-- unique keys: the one job that owns each; looked up on enqueue and by key, and the last word on a
-- restored lock
CREATE UNIQUE INDEX key_owner ON jobs (unique_key) WHERE owns_key = 1;
-- groups: the open jobs of each, and the lowest of the others
CREATE INDEX unfinished_of_group ON jobs (queue, group_id, held & 1, id)
    WHERE group_id IS NOT NULL AND status <= 2;
-- leases whose deadline is over
CREATE INDEX leases_by_deadline ON jobs (lease_until) WHERE lease_until IS NOT NULL;
-- jobs that nobody took in time
CREATE INDEX expiring ON jobs (expires_at) WHERE expires_at IS NOT NULL AND status <= 1;

-- The same for the counts: a status that is none could not be read.
ALTER TABLE queue_counts RENAME TO counts_before;

CREATE TABLE queue_counts (
    queue   TEXT    NOT NULL,
    status  INTEGER NOT NULL CHECK (status BETWEEN 0 AND 6),
    n       INTEGER NOT NULL CHECK (n >= 0),
    PRIMARY KEY (queue, status)
) STRICT, WITHOUT ROWID;

INSERT INTO queue_counts (queue, status, n) SELECT queue, status, n FROM counts_before;

DROP TABLE counts_before;
