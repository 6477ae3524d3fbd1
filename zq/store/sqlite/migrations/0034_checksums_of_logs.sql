-- Of the shared fields and the records of a batch. NULL: the row is older than this column.
ALTER TABLE log_batches ADD COLUMN checksum INTEGER;
