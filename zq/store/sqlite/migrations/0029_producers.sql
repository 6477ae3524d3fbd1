-- Producers: the last number that each has stored, in its epoch. first, key, step: the number and the key of
-- the first job of its latest request, and how far apart the keys of that request are.
CREATE TABLE producers (
    name   TEXT    PRIMARY KEY,
    epoch  TEXT    NOT NULL,
    last   INTEGER NOT NULL CHECK (last >= 0),
    at     INTEGER NOT NULL,
    first  INTEGER NOT NULL CHECK (first BETWEEN 1 AND last + 1),
    key    INTEGER NOT NULL,
    step   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
