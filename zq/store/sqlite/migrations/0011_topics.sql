-- Topics: logs that programs append to and read by cursors. The table logs holds records by the
-- batch, which is cheaper, and cannot tell one record from another; here each is a row, for readers
-- pass over some, and anybody may delete some.
-- name: NULL once the topic is deleted, until its records are cleared away. head_seq: the number of
-- the last record. cap_floor, ttl_floor: one more than the last record that was lost to a cap, to
-- its age. last_at: the time of the last record. trim_at: when the oldest one is to go.
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
) STRICT;

-- topics of which something is to be cleared away
CREATE INDEX topics_to_trim ON topics (trim_at) WHERE trim_at IS NOT NULL;

-- key: the topic's id, and 41 bits of the record's number in it. data and meta are JSON texts, and
-- size their bytes and those of node and tag.
CREATE TABLE topic_records (
    key   INTEGER PRIMARY KEY,
    at    INTEGER NOT NULL,
    size  INTEGER NOT NULL,
    node  TEXT,
    tag   TEXT,
    meta  TEXT,
    data  TEXT NOT NULL
) STRICT;

-- records of a topic by their tags
CREATE INDEX records_by_tag ON topic_records (key >> 41, tag) WHERE tag IS NOT NULL;

-- Writes that are recognised when they come again, until a time.
CREATE TABLE topic_writes (
    id         INTEGER PRIMARY KEY,
    topic      INTEGER NOT NULL,
    key        TEXT    NOT NULL,
    first_seq  INTEGER NOT NULL,
    last_seq   INTEGER NOT NULL,
    until      INTEGER NOT NULL,
    UNIQUE (topic, key)
) STRICT;

-- writes by the time until which they are recognised
CREATE INDEX writes_by_time ON topic_writes (until);
