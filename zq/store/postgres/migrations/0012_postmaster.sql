-- Whoever starts after an outage of PostgreSQL waits for the servers that it has cut off: they connect again.

-- When the PostgreSQL was started to which the server is connected; null if the server has stopped.
ALTER TABLE servers ADD COLUMN postmaster timestamptz DEFAULT pg_postmaster_start_time();
