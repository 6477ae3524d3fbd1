-- Lines of jobs that age have steady times in their priorities from now on. Each is shifted by as many
-- steps as steady time is ahead of the wall; by way of negative numbers, so that none meets another.
UPDATE lines SET priority = -priority - (SELECT value ->> 0 FROM meta WHERE name = 'clock') / aging_ms
WHERE aging_ms > 0 AND EXISTS (
    SELECT 1 FROM meta WHERE name = 'clock' AND json_valid(value) AND value ->> 0 <> 0);
UPDATE lines SET priority = -priority WHERE aging_ms > 0 AND priority < 0;
