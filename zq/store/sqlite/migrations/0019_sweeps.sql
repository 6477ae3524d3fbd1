-- Changes by filter that have changed jobs, the last 10,000 of them. outline: what was asked for, by whom
-- and when (JSON). passed: the part of all ids that it has passed; 1 if it came to its end. taken_back:
-- how many of the jobs that it cancelled wait again.
CREATE TABLE sweeps (
    id          INTEGER PRIMARY KEY,
    outline     TEXT    NOT NULL,
    changed     INTEGER NOT NULL CHECK (changed > 0),
    passed      REAL    NOT NULL CHECK (passed BETWEEN 0 AND 1),
    changed_at  INTEGER NOT NULL,
    taken_back  INTEGER NOT NULL DEFAULT 0 CHECK (taken_back BETWEEN 0 AND changed)
) STRICT;

-- swept: the sweep that has cancelled a job.
ALTER TABLE jobs ADD COLUMN swept INTEGER CHECK (swept IS NULL OR status = 5);
