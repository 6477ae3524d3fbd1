-- The ends of earlier epochs of producers, the latest ones of each.
CREATE TABLE producer_ends (
    id     INTEGER PRIMARY KEY,
    name   TEXT    NOT NULL,
    epoch  TEXT    NOT NULL,
    last   INTEGER NOT NULL CHECK (last >= 0),
    UNIQUE (name, epoch)
) STRICT;
CREATE INDEX producer_ends_latest ON producer_ends (name, id);
