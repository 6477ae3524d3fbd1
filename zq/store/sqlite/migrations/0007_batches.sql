-- Batches that are open: the one job that hosts each, which others fold into for as long as it is
-- ready, and how many commands have done so. The rule of a batch lies with its host, in extras.
CREATE TABLE open_batches (
    job_id    INTEGER PRIMARY KEY,
    key       TEXT    NOT NULL,
    revision  INTEGER NOT NULL CHECK (revision >= 0)
) STRICT;

-- the host of a key: looked up on enqueue, and the last word on there being one
CREATE UNIQUE INDEX host_of_batch ON open_batches (key);
