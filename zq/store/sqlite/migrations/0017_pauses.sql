-- Pauses that end by themselves.
CREATE INDEX pauses_by_end ON queue_settings (settings ->> 'paused_until')
WHERE settings ->> 'paused_until' IS NOT NULL;
