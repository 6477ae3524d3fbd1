-- How often each cause has come in each queue, in lengths of a minute and of an hour. at: when it begins.
CREATE TABLE failure_counts (
    length     INTEGER NOT NULL CHECK (length > 0),
    at         INTEGER NOT NULL CHECK (at % length = 0),
    signature  TEXT    NOT NULL CHECK (signature <> ''),
    queue      TEXT    NOT NULL CHECK (queue <> ''),
    n          INTEGER NOT NULL CHECK (n > 0),
    PRIMARY KEY (length, at, signature, queue)
) STRICT, WITHOUT ROWID;

ALTER TABLE error_groups DROP COLUMN hour;
ALTER TABLE error_groups DROP COLUMN in_hour;
ALTER TABLE error_groups DROP COLUMN in_hour_before;

-- types: a JSON array of types of jobs that have failed so, not all of them if there are many.
ALTER TABLE error_groups ADD COLUMN types TEXT NOT NULL DEFAULT '[]';
