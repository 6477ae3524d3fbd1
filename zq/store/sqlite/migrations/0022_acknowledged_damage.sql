-- When an operator acknowledged what was set aside, in milliseconds. Until then /health names it.
ALTER TABLE quarantine ADD COLUMN acknowledged_at INTEGER;
