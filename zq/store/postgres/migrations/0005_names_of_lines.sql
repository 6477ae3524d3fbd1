-- What jobs draw from budgets may be larger than a row of an index, so digests tell lines apart.

ALTER TABLE lines DROP CONSTRAINT lines_queue_fair_key_aging_ms_priority_draws_key;
CREATE UNIQUE INDEX lines_by_name ON lines
    (queue, fair_key, aging_ms, priority, hashtextextended(draws, 0), hashtextextended(draws, 1));
