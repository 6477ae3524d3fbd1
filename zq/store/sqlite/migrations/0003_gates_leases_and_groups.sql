-- Leases with deadlines, FIFO groups, jobs that expire, dead-letter queues, metadata, settings of
-- queues. SQLite cannot change the CHECKs of a table, so it is made anew. Status: 0 scheduled,
-- 1 ready, 2 in flight, 3 completed, 4 dead, 5 cancelled, 6 expired.
ALTER TABLE jobs RENAME TO jobs_before;

-- holder: the stream that has the job while it is in flight; 0 where a claimant has it, who is named
-- beside. lease_until: the deadline of the lease, where it has one.
-- held: the gates that the job waits behind, 1 for that of its group. A held job stays ready for
-- every reader, but is in none of the indexes that claims read.
-- forgiven: how many of the attempts no longer count, for the job was revived after them.
-- extras: what came with the job for its worker, and how it came to where it is (JSON).
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
    CHECK (result_size IS NULL OR status = 3),
    CHECK ((result IS NOT NULL) = (ifnull(result_size, 513) <= 512)),
    CHECK ((payload IS NULL) = (payload_size > 512))
) STRICT;

INSERT INTO jobs (
    id, queue, type, priority, status, ready_at, attempts, deliveries, holder, dequeued_at,
    failed_at, finished_at, purge_at, options, unique_key, unique_while, owns_key, result_size,
    result, payload_size, payload)
SELECT
    id, queue, type, priority, status, ready_at, attempts, deliveries, holder, dequeued_at,
    failed_at, CASE status WHEN 3 THEN completed_at WHEN 4 THEN failed_at ELSE cancelled_at END,
    purge_at, options, unique_key, unique_while, owns_key, result_size, result, payload_size, payload
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

-- What operators have set for a queue (JSON); queues without a row have nothing set.
CREATE TABLE queue_settings (
    queue     TEXT PRIMARY KEY,
    settings  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Names by which equal jobs are recognised for a while, whatever becomes of the first of them.
-- group_id is '' outside of groups.
CREATE TABLE dedupe (
    queue      TEXT    NOT NULL,
    group_id   TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    job_id     INTEGER NOT NULL,
    until      INTEGER NOT NULL,
    PRIMARY KEY (queue, group_id, name)
) STRICT, WITHOUT ROWID;

-- forgetting the names whose time is over
CREATE INDEX dedupe_by_time ON dedupe (until);
