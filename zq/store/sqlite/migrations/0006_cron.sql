-- Schedules that enqueue jobs: groups, and their entries. Times are milliseconds since the epoch.
CREATE TABLE cron_groups (
    name        TEXT    PRIMARY KEY CHECK (name <> ''),
    timezone    TEXT,
    paused      INTEGER NOT NULL CHECK (paused IN (0, 1)),
    paused_at   INTEGER,
    resumed_at  INTEGER
) STRICT, WITHOUT ROWID;

-- queue: that of the job, for those who may see some queues only. job: the template (a JSON object).
-- next_at: when it fires next, computed at timed_at; NULL where its expression never comes again.
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
    job         TEXT    NOT NULL CHECK (iif(json_valid(job), json_type(job) = 'object', 0)),
    PRIMARY KEY (cron, name)
) STRICT, WITHOUT ROWID;

-- firing: the entry that is due first
CREATE INDEX cron_by_time ON cron_entries (next_at) WHERE next_at IS NOT NULL;
