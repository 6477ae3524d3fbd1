-- Indexes in the order in which rows are asked for: the latest failures of a cause, and all scheduled jobs by
-- their dates, with those that wait for a duration. A plus sign keeps an index to statements that have one.

DROP INDEX errors_by_signature;
CREATE INDEX errors_by_signature ON errors (signature, (+job_id));
DROP INDEX scheduled_by_date;
CREATE INDEX scheduled_by_date ON jobs ((+ready_at), id) WHERE status = 0 AND due_at IS NULL;
CREATE INDEX scheduled_by_time ON jobs (ready_at, id) WHERE status = 0;
DROP INDEX open_lines;
CREATE INDEX open_lines ON lines (aging_ms, priority, head) WHERE +head IS NOT NULL AND shut_by IS NULL;
