-- Budgets: what jobs draw tokens from. duration_ms: NULL where the tokens of a job come back when it
-- is no longer in flight. in_use: what the jobs in flight have drawn. Of a budget that fills up with
-- time: level tokens and carry / duration_ms of another at the time settled_at. pays_at: when a job
-- that waits for it can be paid, where that is known.
CREATE TABLE budgets (
    key          TEXT    PRIMARY KEY CHECK (key <> ''),
    allocation   INTEGER NOT NULL CHECK (allocation BETWEEN 1 AND 1000000),
    duration_ms  INTEGER CHECK (duration_ms >= 1),
    burst        INTEGER CHECK (burst BETWEEN 1 AND 1000000),
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    in_use       INTEGER NOT NULL DEFAULT 0 CHECK (in_use >= 0),
    level        INTEGER NOT NULL DEFAULT 0 CHECK (level >= 0),
    carry        INTEGER NOT NULL DEFAULT 0 CHECK (carry >= 0),
    settled_at   INTEGER NOT NULL DEFAULT 0,
    pays_at      INTEGER,
    CHECK (burst IS NULL OR duration_ms IS NOT NULL)
) STRICT, WITHOUT ROWID;

-- budgets by the time at which they can pay
CREATE INDEX budgets_by_time ON budgets (pays_at) WHERE pays_at IS NOT NULL;

-- Lines: the unfinished jobs of a queue that draw the same from the same budgets, and how many of
-- them are ready. draws: [[key, cost], …] (JSON), as it stands in the options of the jobs.
CREATE TABLE lines (
    id          INTEGER PRIMARY KEY,
    queue       TEXT    NOT NULL,
    draws       TEXT    NOT NULL,
    unfinished  INTEGER NOT NULL CHECK (unfinished >= 0),
    waiting     INTEGER NOT NULL CHECK (waiting >= 0),
    UNIQUE (queue, draws)
) STRICT;

-- The ready jobs of each line in dispatch order, but for those that wait behind the head of their
-- group. Bit 2 of their `held` keeps them out of the indexes that claims read.
CREATE TABLE parked (
    job_id    INTEGER PRIMARY KEY,
    line      INTEGER NOT NULL,
    priority  INTEGER NOT NULL
) STRICT;

-- claim: the next jobs of a line
CREATE INDEX parked_by_line ON parked (line, priority, job_id);
