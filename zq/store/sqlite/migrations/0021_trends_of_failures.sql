-- How often a cause has come in one hour, and in the hour before it. hour: its number since 1970.
ALTER TABLE error_groups ADD COLUMN hour INTEGER NOT NULL DEFAULT 0;
ALTER TABLE error_groups ADD COLUMN in_hour INTEGER NOT NULL DEFAULT 0;
ALTER TABLE error_groups ADD COLUMN in_hour_before INTEGER NOT NULL DEFAULT 0;
