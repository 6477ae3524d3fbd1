-- Routers copy what is appended to the topic source to the topic dest. config: what they copy, as JSON.
-- forwarded: how many copies there were.
CREATE TABLE topic_routers (
    name       TEXT    PRIMARY KEY CHECK (name <> ''),
    source     TEXT    NOT NULL CHECK (source <> dest),
    dest       TEXT    NOT NULL,
    config     TEXT    NOT NULL,
    forwarded  INTEGER NOT NULL DEFAULT 0 CHECK (forwarded >= 0)
) STRICT, WITHOUT ROWID;

-- routers of a topic
CREATE INDEX routers_by_source ON topic_routers (source);
CREATE INDEX routers_by_dest ON topic_routers (dest);
