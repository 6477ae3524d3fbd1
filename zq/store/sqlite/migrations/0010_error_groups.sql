-- Failures by their causes. signature: names the group of a failure, and begins with the number of the
-- rule that has computed it. Records from before have none.
ALTER TABLE errors ADD COLUMN signature TEXT;

-- jobs by the group of a failure
CREATE INDEX errors_by_signature ON errors (signature);

-- How often each group has failed in each queue. message: a failure's message without what differs from
-- one to the next. sample: the job that has failed last. What found no room any more is counted under the
-- signature 'other' and the queue '*', which is no name of a queue.
CREATE TABLE error_groups (
    signature   TEXT    NOT NULL CHECK (signature <> ''),
    queue       TEXT    NOT NULL CHECK (queue <> ''),
    error_type  TEXT,
    message     TEXT    NOT NULL,
    n           INTEGER NOT NULL CHECK (n > 0),
    first_seen  INTEGER NOT NULL,
    last_seen   INTEGER NOT NULL,
    sample      INTEGER NOT NULL,
    PRIMARY KEY (signature, queue)
) STRICT, WITHOUT ROWID;
