-- What operators have set for queues, and what gates ask of the kept counts.

-- name: read_settings
SELECT json_group_array(json_array(queue, json(settings))) FROM queue_settings

-- name: set_queue
INSERT INTO queue_settings (queue, settings) VALUES (?, ?)
ON CONFLICT (queue) DO UPDATE SET settings = excluded.settings

-- name: unset_queue
DELETE FROM queue_settings WHERE queue = ?
