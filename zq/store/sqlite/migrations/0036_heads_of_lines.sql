-- For readers: the first jobs in the lines of a queue. By its condition, claims never choose it.
CREATE INDEX heads_of_lines ON lines (queue, head) WHERE head > 0;
