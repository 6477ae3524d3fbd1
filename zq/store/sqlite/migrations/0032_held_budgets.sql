-- Budgets that are held, and budgets of which jobs have used more than there was.
--
-- held_until: a budget pays nothing before this steady time. level: below zero where jobs have used more
-- tokens than they had drawn.
CREATE TABLE new_budgets (
    key          TEXT    PRIMARY KEY CHECK (key <> ''),
    allocation   INTEGER NOT NULL CHECK (allocation BETWEEN 1 AND 1000000),
    duration_ms  INTEGER CHECK (duration_ms >= 1),
    burst        INTEGER CHECK (burst BETWEEN 1 AND 1000000),
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    in_use       INTEGER NOT NULL DEFAULT 0 CHECK (in_use >= 0),
    level        INTEGER NOT NULL DEFAULT 0,
    carry        INTEGER NOT NULL DEFAULT 0 CHECK (carry >= 0),
    settled_at   INTEGER NOT NULL DEFAULT 0,
    pays_at      INTEGER,
    maker        TEXT,
    unfinished   INTEGER NOT NULL DEFAULT 0,
    waiting      INTEGER NOT NULL DEFAULT 0,
    costliest    INTEGER NOT NULL DEFAULT 0,
    held_until   INTEGER,
    CHECK (burst IS NULL OR duration_ms IS NOT NULL)
) STRICT, WITHOUT ROWID;

INSERT INTO new_budgets SELECT *, NULL FROM budgets;
DROP TABLE budgets;
ALTER TABLE new_budgets RENAME TO budgets;

-- budgets by the time at which they can pay
CREATE INDEX budgets_by_time ON budgets (pays_at) WHERE pays_at IS NOT NULL;
