-- What was left of the rates of queues after their last delivery: deliveries that may be made at the
-- time `at`, in milliseconds. After a restart the rate goes on from there.
CREATE TABLE queue_rates (
    queue  TEXT    PRIMARY KEY,
    level  REAL    NOT NULL,
    at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
