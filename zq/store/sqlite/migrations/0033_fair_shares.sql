-- Fair shares: queues are shared between the keys of their jobs.

-- The keys of a queue that have unfinished jobs, or are ahead of their share. finish: the tag at
-- which the next job of the key begins, in milliseconds of a worker's time; mean: the smoothed running
-- time of its jobs, NULL before the first has ended; owed: what its jobs in flight are charged with;
-- paid_until: up to when its deliveries have used up its rate, in steady time; opens_at: when its lines
-- are open again that its rate has shut.
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

-- keys without jobs that the queue's time has passed
CREATE INDEX idle_shares ON shares (queue, finish) WHERE unfinished = 0;

-- the next key that is open again
CREATE INDEX shares_by_opening ON shares (opens_at) WHERE opens_at IS NOT NULL;

-- The virtual time of a queue with keys: the start tag of its last delivery; the smoothed running time
-- of its jobs; how many of these are unfinished.
CREATE TABLE shared_queues (
    queue       TEXT    PRIMARY KEY,
    virtual     REAL    NOT NULL,
    mean        REAL    NOT NULL,
    unfinished  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What is set for single keys, also for those without jobs.
CREATE TABLE fair_limits (
    queue          TEXT    NOT NULL,
    fair_key       TEXT    NOT NULL,
    weight         REAL,
    max_in_flight  INTEGER,
    rate           REAL,
    PRIMARY KEY (queue, fair_key)
) STRICT, WITHOUT ROWID;

-- claim: the next keys of a queue
CREATE INDEX shared_lines ON lines (queue, priority, place, head)
    WHERE fair_key <> '' AND head IS NOT NULL AND shut_by IS NULL;
