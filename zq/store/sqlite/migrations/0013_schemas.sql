-- Schemas of payloads, by queue. body: Avro, as it was sent. version: counts the schemas that the queue
-- has had since it had none.
CREATE TABLE schemas (
    queue       TEXT    PRIMARY KEY CHECK (queue <> ''),
    body        TEXT    NOT NULL,
    version     INTEGER NOT NULL CHECK (version > 0),
    updated_at  INTEGER NOT NULL
) STRICT;
