-- What operators do: 90 days of it, 100,000 records or 64 MiB.
INSERT INTO logs (name, max_age_ms, max_records, max_bytes)
VALUES ('audit', 7776000000, 100000, 67108864);
