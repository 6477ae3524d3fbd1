-- What happened in queues and to types, minute by minute and in longer times.

-- name: read_trends
-- Those of some queues that begin at one time.
SELECT found.* FROM unnest(:queues::text[]) AS asked CROSS JOIN LATERAL (
    SELECT queue,
        json_build_array(enqueued, delivered, completed, failed, died, expired, wait, run)
    FROM trends
    WHERE length = :length AND (queue, at) >= (asked, :at) AND (queue, at) <= (asked, :at)
    OFFSET 0) AS found

-- name: count_trends
-- Of queues that have a name.
SELECT count(*) FROM (
    SELECT queue FROM trends WHERE length = :length AND at BETWEEN :at AND :at ORDER BY at) AS each
WHERE queue NOT IN ('', '*')

-- name: write_trends
-- :rows lists [queue, the fields of a trend].
INSERT INTO trends (
    length, queue, at, enqueued, delivered, completed, failed, died, expired, wait, run)
SELECT :length, name, :at, (t ->> 0)::bigint, (t ->> 1)::bigint, (t ->> 2)::bigint,
    (t ->> 3)::bigint, (t ->> 4)::bigint, (t ->> 5)::bigint, t -> 6, t -> 7
FROM unnest(:rows.0::text[], :rows.1::json[]) AS r (name, t)
ON CONFLICT (length, queue, at) DO UPDATE SET
    enqueued = excluded.enqueued, delivered = excluded.delivered, completed = excluded.completed,
    failed = excluded.failed, died = excluded.died, expired = excluded.expired,
    wait = excluded.wait, run = excluded.run

-- name: forget_trends
-- Those of the oldest time before :before.
DELETE FROM trends WHERE length = :length AND at = (
    SELECT min(at) FROM trends WHERE length = :length AND at < :before)

-- name: read_type_trends
-- Those of some types that begin at one time. :names lists [queue, type].
SELECT t.queue, t.type, json_build_array(done, failed, run)
FROM unnest(:names.0::text[], :names.1::text[]) AS n (q, kind)
JOIN type_trends AS t ON length = :length AND at = :at AND t.queue = q AND t.type = kind

-- name: write_type_trends
-- :rows lists [queue, type, the fields of a trend].
INSERT INTO type_trends (length, at, queue, type, done, failed, run)
SELECT :length, :at, q, kind, (t ->> 0)::bigint, (t ->> 1)::bigint, t -> 2
FROM unnest(:rows.0::text[], :rows.1::text[], :rows.2::json[]) AS r (q, kind, t)
ON CONFLICT (length, at, queue, type) DO UPDATE SET
    done = excluded.done, failed = excluded.failed, run = excluded.run
