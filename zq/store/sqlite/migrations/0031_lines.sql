-- Lines become rows that claims find by an index, and a job's own row says in which line it waits.
-- Before, every claim looked at all lines, and a table beside the jobs listed those in lines.

DROP TABLE parked;
DROP TABLE lines;

-- Lines: the jobs of a queue that wait, and that nothing tells apart but their ids. fair_key: '=' and
-- the key by which they share the queue, or ''. draws: [[key, cost], …] (JSON), as it stands in the
-- options of the jobs, or ''. head: the lowest of their ids that a claim may take. place: where the
-- line stands among others of its priority; NULL if it has no head. shut_by: who cannot pay shut_cost
-- for one of its jobs, such as a budget; NULL if it is open to claims. So a line is in one index: that
-- of open lines, or that of the lines that wait for the same.
CREATE TABLE lines (
    id         INTEGER PRIMARY KEY,
    queue      TEXT    NOT NULL,
    fair_key   TEXT    NOT NULL,
    draws      TEXT    NOT NULL,
    priority   INTEGER NOT NULL,
    head       INTEGER,
    place      REAL,
    shut_by    TEXT,
    shut_cost  INTEGER,
    UNIQUE (queue, fair_key, priority, draws)
) STRICT;

-- claim over all queues: the next open lines
CREATE INDEX open_lines ON lines (priority, head) WHERE head IS NOT NULL AND shut_by IS NULL;
-- claim from named queues: the next open lines of each
CREATE INDEX open_lines_of_queue ON lines (queue, priority, head)
    WHERE head IS NOT NULL AND shut_by IS NULL;
-- tokens that have come: the next lines that wait for them
CREATE INDEX shut_lines ON lines (shut_by, shut_cost, queue, priority, place) WHERE shut_by IS NOT NULL;

-- The line of a job that waits, scheduled or ready. Bit 2 of its `held` is set as long.
ALTER TABLE jobs ADD COLUMN line INTEGER;

-- claim: the next jobs of a line
CREATE INDEX jobs_of_line ON jobs (line, status, held, id) WHERE line IS NOT NULL;

INSERT INTO lines (queue, fair_key, draws, priority)
SELECT DISTINCT queue, '', options -> '$.budgets', priority
FROM jobs WHERE status <= 1 AND held & 2 = 2;

UPDATE jobs SET line = (
    SELECT id FROM lines WHERE lines.queue = jobs.queue AND fair_key = ''
        AND lines.priority = jobs.priority AND draws = options -> '$.budgets')
WHERE status <= 1 AND held & 2 = 2;

UPDATE lines SET head = (
    SELECT jobs.id FROM jobs WHERE line = lines.id AND status = 1 AND held = 2 ORDER BY jobs.id LIMIT 1);
UPDATE lines SET place = head;

-- How many unfinished jobs draw from a budget, how many of them are ready, and the most that one of
-- those draws or drew which came since there was none.
ALTER TABLE budgets ADD COLUMN unfinished INTEGER NOT NULL DEFAULT 0;
ALTER TABLE budgets ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0;
ALTER TABLE budgets ADD COLUMN costliest INTEGER NOT NULL DEFAULT 0;

UPDATE budgets SET unfinished = d.unfinished, waiting = d.waiting, costliest = d.costliest
FROM (
    SELECT d.value ->> 0 AS name, count(*) AS unfinished, sum(status = 1) AS waiting,
        max(d.value ->> 1) AS costliest
    FROM jobs, json_each(options -> '$.budgets') AS d
    WHERE status <= 2 GROUP BY 1) AS d
WHERE key = d.name;
