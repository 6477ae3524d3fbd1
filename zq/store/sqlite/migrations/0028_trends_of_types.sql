-- How jobs of each type of a queue ended, in lengths of five minutes, an hour and a day. at: when it begins.
-- The queue '*' with the type '*' stands for those that found no room. run: how many times there were by
-- parts of powers of two, four for each power, in milliseconds.
CREATE TABLE type_trends (
    length  INTEGER NOT NULL CHECK (length > 0),
    at      INTEGER NOT NULL CHECK (at % length = 0),
    queue   TEXT    NOT NULL,
    type    TEXT    NOT NULL,
    done    INTEGER NOT NULL,
    failed  INTEGER NOT NULL,
    run     TEXT    NOT NULL,
    PRIMARY KEY (length, at, queue, type)
) STRICT, WITHOUT ROWID;
