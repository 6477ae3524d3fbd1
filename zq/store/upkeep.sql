-- What happens outside the tick: at start-up and while idle.

-- name: read_left_in_flight
-- Jobs that streams held when the server stopped; no stream outlives it.
SELECT json_group_array(id) FROM jobs WHERE status = {in_flight} AND status <> {ready}

-- name: give_back_all
UPDATE jobs SET status = {ready}, holder = NULL WHERE id IN {keys} AND status = {in_flight}

-- name: groups_of
SELECT json_group_array(json_array(queue, group_id))
FROM jobs WHERE id IN {keys} AND group_id IS NOT NULL

-- name: count_given_back
INSERT INTO queue_counts (queue, status, n)
SELECT f.queue, {ready}, f.n + ifnull(r.n, 0)
FROM queue_counts AS f
LEFT JOIN queue_counts AS r ON r.queue = f.queue AND r.status = {ready}
WHERE f.status = {in_flight}
ON CONFLICT (queue, status) DO UPDATE SET n = excluded.n

-- name: count_none_in_flight
DELETE FROM queue_counts WHERE status = {in_flight}

-- name: forget_empty_queues
DELETE FROM queue_counts WHERE n = 0

-- name: read_meta
SELECT name, value FROM meta

-- name: write_meta
INSERT INTO meta (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING

-- name: highest_key
SELECT ifnull(max(id), 0) FROM jobs
