-- Priorities that age: jobs of a queue with this setting wait in lines.

-- The setting, in milliseconds. Settings that no program of ours wrote may be no JSON at all.
ALTER TABLE queue_settings ADD COLUMN aging_ms INTEGER GENERATED ALWAYS AS (
    CASE
        WHEN NOT json_valid(settings) THEN NULL
        WHEN json_type(settings, '$.priority_aging_ms') = 'integer'
            THEN settings ->> 'priority_aging_ms'
    END) VIRTUAL;

-- As before, and aging_ms: the time in which a job of the line gains a step of priority; 0 if it
-- gains none. The priority of a line that ages grows with the time at which its jobs became ready,
-- and is higher than any that does not age.
CREATE TABLE aging_lines (
    id         INTEGER PRIMARY KEY,
    queue      TEXT    NOT NULL,
    fair_key   TEXT    NOT NULL,
    draws      TEXT    NOT NULL,
    priority   INTEGER NOT NULL,
    aging_ms   INTEGER NOT NULL DEFAULT 0,
    head       INTEGER,
    place      REAL,
    shut_by    TEXT,
    shut_cost  INTEGER,
    UNIQUE (queue, fair_key, aging_ms, priority, draws)
) STRICT;

INSERT INTO aging_lines (id, queue, fair_key, draws, priority, head, place, shut_by, shut_cost)
SELECT id, queue, fair_key, draws, priority, head, place, shut_by, shut_cost FROM lines;
DROP TABLE lines;
ALTER TABLE aging_lines RENAME TO lines;

-- claim over all queues: the next open lines of those that age alike
CREATE INDEX open_lines ON lines (aging_ms, priority, head) WHERE head IS NOT NULL AND shut_by IS NULL;
-- claim from named queues: the next open lines of each
CREATE INDEX open_lines_of_queue ON lines (queue, priority, head)
    WHERE head IS NOT NULL AND shut_by IS NULL;
-- claim: the next keys of a queue
CREATE INDEX shared_lines ON lines (queue, priority, place, head)
    WHERE fair_key <> '' AND head IS NOT NULL AND shut_by IS NULL;
-- tokens that have come: the next lines that wait for them
CREATE INDEX shut_lines ON lines (shut_by, shut_cost, queue, priority, place) WHERE shut_by IS NOT NULL;
-- a queue that ages in another way: its lines
CREATE INDEX aged_lines ON lines (aging_ms, queue) WHERE aging_ms > 0;
-- for readers: the first jobs in the lines of a queue. By its condition, claims never choose it.
CREATE INDEX heads_of_lines ON lines (queue, head) WHERE head > 0;
