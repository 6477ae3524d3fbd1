-- Topics of the type queue: their records are the jobs of the queue of the same name.
-- key: the topic's id, and 41 bits of the number that the job has there. A number stays that of its
-- job, and rows may outlive their jobs for a while.
CREATE TABLE topic_jobs (
    key   INTEGER PRIMARY KEY,
    job   INTEGER NOT NULL,
    node  TEXT,
    tag   TEXT
) STRICT;

-- the number of a job
CREATE INDEX topic_jobs_by_job ON topic_jobs (job);

-- jobs of a topic by their tags
CREATE INDEX topic_jobs_by_tag ON topic_jobs (key >> 41, tag) WHERE tag IS NOT NULL;

-- dead_lettered: how many jobs of a queue have gone to its dead-letter topic.
ALTER TABLE topics ADD COLUMN dead_lettered INTEGER NOT NULL DEFAULT 0 CHECK (dead_lettered >= 0);
