-- Unique keys among those of a queue. key_lock: what a key is told from others by. The name of a queue
-- is not empty and holds no comma.
ALTER TABLE jobs ADD COLUMN unique_in INTEGER NOT NULL DEFAULT 0 CHECK (unique_in IN (0, 1));

ALTER TABLE jobs ADD COLUMN key_lock TEXT
    AS (iif(unique_in = 1, queue, '') || ',' || unique_key) VIRTUAL;

-- unique keys: the one job that owns each; looked up on enqueue and by key, and the last word on a
-- restored lock
DROP INDEX key_owner;

CREATE UNIQUE INDEX key_owner ON jobs (key_lock) WHERE owns_key = 1;
