-- The checksum of a job covers its options from now on: of those that have some, the older ones have
-- none. The settings of a queue get one. NULL: the row is older.
UPDATE jobs SET checksum = NULL WHERE options IS NOT NULL;

ALTER TABLE queue_settings ADD COLUMN checksum INTEGER;
