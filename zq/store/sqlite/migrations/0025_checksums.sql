-- Checksums: CRC-32, by zq.model.checksums. NULL: the row is older than this column.
-- Of a job's type, payload and what extras carry for its worker; of its result. Each without what is
-- stored apart.
ALTER TABLE jobs ADD COLUMN checksum INTEGER;
ALTER TABLE jobs ADD COLUMN result_checksum INTEGER;
ALTER TABLE payloads ADD COLUMN checksum INTEGER;
ALTER TABLE results ADD COLUMN checksum INTEGER;
-- of the message, the error type and the backtrace
ALTER TABLE errors ADD COLUMN checksum INTEGER;
-- of data and meta
ALTER TABLE topic_records ADD COLUMN checksum INTEGER;
-- of the column job
ALTER TABLE cron_entries ADD COLUMN checksum INTEGER;
