-- Lanes: the numbered ways to other servers. rule: its queues and how they are sent (JSON). epoch, next:
-- the number of the next job. heir: the epochs that were about to follow. declared: the rule comes from the
-- start of the server.
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

-- The jobs that have numbers and have not arrived. first: the number of the first one. keys: their ids
-- (JSON), one number after the other. They are in flight, and the negative id of the lane is their holder.
CREATE TABLE lane_batches (
    lane   INTEGER NOT NULL,
    first  INTEGER NOT NULL CHECK (first >= 1),
    keys   TEXT    NOT NULL CHECK (json_valid(keys)),
    PRIMARY KEY (lane, first)
) STRICT, WITHOUT ROWID;
