-- Users of the doors that know some. hash: what argon2 makes of the password, with its parameters.
CREATE TABLE users (
    id          TEXT    PRIMARY KEY CHECK (id <> ''),
    name        TEXT    NOT NULL UNIQUE CHECK (name <> ''),
    hash        TEXT    NOT NULL,
    is_admin    INTEGER NOT NULL CHECK (is_admin IN (0, 1)),
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What users may do on the topics of a pattern. group_id: the consumer group of a grant to consume.
CREATE TABLE user_grants (
    id          TEXT    PRIMARY KEY CHECK (id <> ''),
    user        TEXT    NOT NULL,
    action      TEXT    NOT NULL CHECK ((action = 'consume') = (group_id IS NOT NULL)),
    pattern     TEXT    NOT NULL CHECK (pattern <> ''),
    group_id    TEXT,
    created_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- grants of a user; each to consume for a group is there once
CREATE INDEX grants_by_user ON user_grants (user, created_at);
CREATE UNIQUE INDEX grants_by_group ON user_grants (user, pattern, group_id);
