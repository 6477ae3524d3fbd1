-- Lines of jobs that age have steady times in their priorities from now on. Each is shifted by as many
-- steps as steady time is ahead of the wall; by way of negative numbers, so that none meets another.
UPDATE lines SET priority = -priority - (clock.value::json ->> 0)::bigint / aging_ms
FROM meta AS clock WHERE clock.name = 'clock' AND aging_ms > 0;
UPDATE lines SET priority = -priority WHERE aging_ms > 0 AND priority < 0;
