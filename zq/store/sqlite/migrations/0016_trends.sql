-- What happened in queues, in lengths of a minute and of an hour. at: when it begins. The queue '*' stands
-- for those that found no room, and '' for all queues together: neither is the name of a queue. wait, run:
-- how many times there were by their powers of two, in milliseconds.
CREATE TABLE trends (
    length     INTEGER NOT NULL CHECK (length > 0),
    queue      TEXT    NOT NULL,
    at         INTEGER NOT NULL CHECK (at % length = 0),
    enqueued   INTEGER NOT NULL,
    delivered  INTEGER NOT NULL,
    completed  INTEGER NOT NULL,
    failed     INTEGER NOT NULL,
    died       INTEGER NOT NULL,
    expired    INTEGER NOT NULL,
    wait       TEXT    NOT NULL,
    run        TEXT    NOT NULL,
    PRIMARY KEY (length, queue, at)
) STRICT, WITHOUT ROWID;

-- the oldest ones, and those of one time
CREATE INDEX trends_by_time ON trends (length, at);
