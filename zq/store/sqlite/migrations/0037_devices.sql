-- Devices that forward their jobs to this server, as they last reported. instance: names a start of the device;
-- clock_ms: how far its clock is ahead; since: when this start was first heard of; jobs, bytes, oldest_ms: what
-- all its lanes had not sent, and the age of the oldest of these jobs; lanes: each of them, a JSON list.
CREATE TABLE devices (
    name         TEXT    PRIMARY KEY,
    instance     TEXT    NOT NULL,
    version      TEXT    NOT NULL,
    every_ms     INTEGER NOT NULL,
    clock_ms     INTEGER NOT NULL,
    reported_at  INTEGER NOT NULL,
    since        INTEGER NOT NULL,
    jobs         INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    oldest_ms    INTEGER,
    lanes        TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
