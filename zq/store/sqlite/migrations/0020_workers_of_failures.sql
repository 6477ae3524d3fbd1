-- Who had the job: the claimant, or the worker of the stream. Workers without a name, and records from
-- before, have none.
ALTER TABLE errors ADD COLUMN worker TEXT;
