-- Append-only logs. The history of jobs is one.
-- Its records have numbers without gaps: min_seq is that of the oldest one that is kept, or of the
-- next to come where none is. trim_at: when the oldest ones are past their age.
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

-- logs whose oldest records are past their age
CREATE INDEX trimmable ON logs (trim_at) WHERE trim_at IS NOT NULL;

-- Records lie together as they were written together: a row a tick costs half of a row a record, and
-- a tenth where retention removes them. shared: what they have in common (a JSON object); body: an
-- array of the records (JSON text).
CREATE TABLE log_batches (
    log       INTEGER NOT NULL,
    last_seq  INTEGER NOT NULL,
    count     INTEGER NOT NULL CHECK (count > 0),
    at        INTEGER NOT NULL,
    shared    TEXT    NOT NULL,
    body      BLOB    NOT NULL,
    PRIMARY KEY (log, last_seq)
) STRICT;

INSERT INTO logs (name) VALUES ('history');
