-- Statements that read alike in both stores.

-- name: clear_jobs
DELETE FROM jobs

-- name: clear_payloads
DELETE FROM payloads

-- name: clear_results
DELETE FROM results

-- name: clear_errors
DELETE FROM errors

-- name: clear_names
DELETE FROM dedupe

-- name: clear_counts
DELETE FROM queue_counts

-- name: note_clock
INSERT INTO meta (name, value) VALUES ('clock', :mark)
ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: note_residents
INSERT INTO meta (name, value) VALUES ('residents', :residents)
ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: write_note
INSERT INTO meta (name, value) VALUES ('note:' || :note, :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
