-- Pauses that end by themselves. Settings that no program of ours wrote may be no JSON at all.
ALTER TABLE queue_settings ADD COLUMN paused_until INTEGER GENERATED ALWAYS AS (
    CASE
        WHEN NOT json_valid(settings) THEN NULL
        WHEN json_type(settings, '$.paused_until') = 'integer' THEN settings ->> 'paused_until'
    END) VIRTUAL;

CREATE INDEX pauses_by_end ON queue_settings (paused_until) WHERE paused_until IS NOT NULL;
