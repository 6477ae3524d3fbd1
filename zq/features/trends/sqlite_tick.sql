-- What happened in queues and to types, minute by minute and in longer times.

-- name: read_trends
-- Those of some queues that begin at one time.
SELECT json_group_array(json_array(queue, json_array(
    enqueued, delivered, completed, failed, died, expired, json(wait), json(run))))
FROM json_each(:queues) CROSS JOIN trends
ON length = :length AND queue = value AND at = :at

-- name: count_trends
-- Of queues that have a name.
SELECT count(*) FROM trends WHERE length = :length AND at = :at AND queue NOT IN ('', '*')

-- name: write_trends
-- :rows lists [queue, the fields of a trend].
INSERT INTO trends (
    length, queue, at, enqueued, delivered, completed, failed, died, expired, wait, run)
SELECT :length, value ->> 0, :at, value -> 1 ->> 0, value -> 1 ->> 1, value -> 1 ->> 2,
    value -> 1 ->> 3, value -> 1 ->> 4, value -> 1 ->> 5, value -> 1 -> 6, value -> 1 -> 7
FROM json_each(:rows) WHERE true
ON CONFLICT (length, queue, at) DO UPDATE SET
    enqueued = excluded.enqueued, delivered = excluded.delivered, completed = excluded.completed,
    failed = excluded.failed, died = excluded.died, expired = excluded.expired,
    wait = excluded.wait, run = excluded.run

-- name: forget_trends
-- Those of the oldest time before :before.
DELETE FROM trends INDEXED BY trends_by_time WHERE length = :length AND at = (
    SELECT min(at) FROM trends WHERE length = :length AND at < :before)

-- name: read_type_trends
-- Those of some types that begin at one time. :names lists [queue, type].
SELECT json_group_array(json_array(queue, t.type, json_array(done, failed, json(run))))
FROM json_each(:names) CROSS JOIN type_trends AS t
ON length = :length AND at = :at AND queue = value ->> 0 AND t.type = value ->> 1

-- name: write_type_trends
-- :rows lists [queue, type, the fields of a trend].
INSERT INTO type_trends (length, at, queue, type, done, failed, run)
SELECT :length, :at, value ->> 0, value ->> 1, value -> 2 ->> 0, value -> 2 ->> 1, value -> 2 -> 2
FROM json_each(:rows) WHERE true
ON CONFLICT (length, at, queue, type) DO UPDATE SET
    done = excluded.done, failed = excluded.failed, run = excluded.run
