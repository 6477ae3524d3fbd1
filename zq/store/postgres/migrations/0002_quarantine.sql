-- Rows that another store has set aside as unreadable. They are kept as they were; nothing is set aside here.

CREATE TABLE quarantine (
    source           text COLLATE "C" NOT NULL,
    key              text COLLATE "C" NOT NULL,
    at               bigint NOT NULL,
    reason           text NOT NULL,
    "row"            bytea NOT NULL,
    acknowledged_at  bigint,
    PRIMARY KEY (source, key)
);
