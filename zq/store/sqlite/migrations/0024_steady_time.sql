-- Durations run on steady time: see SteadyClock in zq/model/clock.py. Its mark is the row 'clock' of
-- meta: [ahead, steady, boot, elapsed_ms] (JSON). Until there is one, steady time is the wall time, so
-- all columns of older versions are right on both. These are steady times: expires_at, purge_at and
-- lease_until of jobs, until of dedupe and topic_writes, trim_at of logs and topics, settled_at and
-- pays_at of budgets, at of queue_rates. All others are dates, by the wall clock.

-- due_at: the steady time at which a scheduled job becomes ready that waits for a duration, such as a
-- back-off. ready_at is then only the date that was expected. A scheduled job without it waits for the
-- date ready_at. Of a cancelled job that was ready, it is the steady time of that.
-- ttl_ms: how long a job that waits for a date may wait from then on. Its expires_at is not known before.
ALTER TABLE jobs ADD COLUMN due_at INTEGER;
ALTER TABLE jobs ADD COLUMN ttl_ms INTEGER;

-- promotion: scheduled jobs whose date has come, and those whose wait is over
CREATE INDEX scheduled_by_date ON jobs (ready_at, id) WHERE status = 0 AND due_at IS NULL;
CREATE INDEX scheduled_by_wait ON jobs (due_at, id) WHERE status = 0 AND due_at IS NOT NULL;

-- The steady time of a record, from which its age counts; NULL where that is `at`.
ALTER TABLE log_batches ADD COLUMN steady_at INTEGER;
ALTER TABLE topic_records ADD COLUMN steady_at INTEGER;
