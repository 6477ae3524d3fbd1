-- A tick leaves its number here, in its own transaction. If the answer of a COMMIT is lost, this says
-- what has become of it. Rows are only added, so that a long reader does not make them dear.

CREATE TABLE ticks (
    start bigint NOT NULL, -- of the server, counted in meta
    no    bigint NOT NULL,
    PRIMARY KEY (start, no)
);
