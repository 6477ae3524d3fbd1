-- Everything that zq stores. Names compare byte by byte, as they do in Python. Texts that SQL looks into
-- are json, which keeps them as they were sent.

CREATE TABLE meta (
    name   text COLLATE "C" PRIMARY KEY,
    value  text NOT NULL
);

CREATE TABLE jobs (
    id               bigint PRIMARY KEY,
    queue            text COLLATE "C" NOT NULL CHECK (queue <> ''),
    type             text NOT NULL CHECK (type <> ''),
    priority         integer NOT NULL CHECK (priority BETWEEN 0 AND 65535),
    status           smallint NOT NULL CHECK (status BETWEEN 0 AND 6),
    held             smallint NOT NULL DEFAULT 0 CHECK (held BETWEEN 0 AND 3),
    ready_at         bigint NOT NULL CHECK (ready_at >= 0),
    attempts         bigint NOT NULL DEFAULT 0,
    deliveries       bigint NOT NULL DEFAULT 0,
    holder           bigint,
    dequeued_at      bigint,
    lease_until      bigint,
    failed_at        bigint,
    finished_at      bigint,
    purge_at         bigint,
    due_at           bigint,
    ttl_ms           bigint,
    expires_at       bigint,
    unique_key       text COLLATE "C",
    unique_while     smallint CHECK (unique_while BETWEEN 0 AND 2),
    unique_in        smallint NOT NULL DEFAULT 0 CHECK (unique_in IN (0, 1)),
    owns_key         boolean NOT NULL DEFAULT false,
    key_lock         text COLLATE "C" GENERATED ALWAYS AS (
        CASE unique_in WHEN 1 THEN queue ELSE '' END || ',' || unique_key) STORED,
    group_id         text COLLATE "C" CHECK (group_id <> ''),
    claimant         text COLLATE "C",
    stalls           bigint NOT NULL DEFAULT 0 CHECK (stalls >= 0),
    forgiven         bigint NOT NULL DEFAULT 0,
    line             bigint,
    swept            bigint CHECK (swept IS NULL OR status = 5),
    payload_size     bigint NOT NULL,
    payload          text,
    checksum         bigint,
    result_size      bigint CHECK (result_size IS NULL OR status = 3),
    result           text,
    result_checksum  bigint,
    options          json CHECK (json_typeof(options) = 'object'),
    extras           json CHECK (json_typeof(extras) = 'object'),
    CHECK ((status = 2) = (holder IS NOT NULL)),
    CHECK (status <> 2 OR dequeued_at IS NOT NULL),
    CHECK ((deliveries > 0) = (dequeued_at IS NOT NULL)),
    CHECK (lease_until IS NULL OR status = 2),
    CHECK ((claimant IS NOT NULL) = (holder IS NOT DISTINCT FROM 0)),
    CHECK (claimant IS NULL OR lease_until IS NOT NULL),
    CHECK ((attempts > 0) = (failed_at IS NOT NULL)),
    CHECK (forgiven BETWEEN 0 AND attempts),
    CHECK ((status >= 3) = (finished_at IS NOT NULL)),
    CHECK ((status >= 3) = (purge_at IS NOT NULL)),
    CHECK ((unique_key IS NULL) = (unique_while IS NULL)),
    CHECK (NOT owns_key OR unique_key IS NOT NULL),
    CHECK (NOT owns_key OR status < 5),
    CHECK (held & 1 = 0 OR group_id IS NOT NULL),
    CHECK (held = 0 OR status < 2),
    CHECK ((result IS NOT NULL) = (coalesce(result_size, 513) <= 512)),
    CHECK ((payload IS NULL) = (payload_size > 512))
);
CREATE INDEX ready_by_priority ON jobs (priority, id) WHERE status = 1 AND held = 0;
CREATE INDEX ready_by_queue ON jobs (queue, priority, id) WHERE status = 1 AND held = 0;
CREATE INDEX scheduled_by_date ON jobs (ready_at, id) WHERE status = 0 AND due_at IS NULL;
CREATE INDEX scheduled_by_wait ON jobs (due_at, id) WHERE status = 0 AND due_at IS NOT NULL;
CREATE INDEX not_ready ON jobs (status, id) WHERE status <> 1;
CREATE INDEX unfinished_of_group ON jobs (queue, group_id, (held & 1), id)
    WHERE group_id IS NOT NULL AND status <= 2;
CREATE INDEX jobs_of_line ON jobs (line, status, held, id) WHERE line IS NOT NULL;
CREATE INDEX leases_by_deadline ON jobs (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX expiring ON jobs (expires_at) WHERE expires_at IS NOT NULL AND status <= 1;
CREATE INDEX purgeable ON jobs (purge_at) WHERE purge_at IS NOT NULL;
CREATE UNIQUE INDEX key_owner ON jobs (key_lock) WHERE owns_key;

CREATE TABLE payloads (
    job_id    bigint PRIMARY KEY,
    body      text NOT NULL,
    checksum  bigint
);

CREATE TABLE results (
    job_id    bigint PRIMARY KEY,
    body      text NOT NULL,
    checksum  bigint
);

CREATE TABLE errors (
    job_id       bigint NOT NULL,
    attempt      bigint NOT NULL CHECK (attempt > 0),
    message      text NOT NULL,
    error_type   text,
    backtrace    text,
    dequeued_at  bigint NOT NULL,
    failed_at    bigint NOT NULL,
    signature    text COLLATE "C",
    worker       text,
    checksum     bigint,
    PRIMARY KEY (job_id, attempt)
);
CREATE INDEX errors_by_signature ON errors (signature);

CREATE TABLE dedupe (
    queue     text COLLATE "C" NOT NULL,
    group_id  text COLLATE "C" NOT NULL,
    name      text COLLATE "C" NOT NULL,
    job_id    bigint NOT NULL,
    until     bigint NOT NULL,
    PRIMARY KEY (queue, group_id, name)
);
CREATE INDEX dedupe_by_time ON dedupe (until);

CREATE TABLE queue_settings (
    queue         text COLLATE "C" PRIMARY KEY,
    settings      json NOT NULL,
    checksum      bigint,
    paused_until  bigint GENERATED ALWAYS AS ((settings ->> 'paused_until')::bigint) STORED,
    aging_ms      bigint GENERATED ALWAYS AS ((settings ->> 'priority_aging_ms')::bigint) STORED
);
CREATE INDEX pauses_by_end ON queue_settings (paused_until) WHERE paused_until IS NOT NULL;

CREATE TABLE queue_counts (
    queue   text COLLATE "C" NOT NULL,
    status  smallint NOT NULL CHECK (status BETWEEN 0 AND 6),
    n       bigint NOT NULL CHECK (n >= 0),
    PRIMARY KEY (queue, status)
) WITH (fillfactor = 50);

CREATE TABLE queue_rates (
    queue  text COLLATE "C" PRIMARY KEY,
    level  float8 NOT NULL,
    at     bigint NOT NULL
);

CREATE TABLE lines (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue      text COLLATE "C" NOT NULL,
    fair_key   text COLLATE "C" NOT NULL,
    draws      text COLLATE "C" NOT NULL,
    priority   bigint NOT NULL,
    aging_ms   bigint NOT NULL DEFAULT 0,
    head       bigint,
    place      float8,
    shut_by    text COLLATE "C",
    shut_cost  bigint,
    UNIQUE (queue, fair_key, aging_ms, priority, draws)
);
CREATE INDEX open_lines ON lines (aging_ms, priority, head) WHERE head IS NOT NULL AND shut_by IS NULL;
CREATE INDEX open_lines_of_queue ON lines (queue, priority, head)
    WHERE head IS NOT NULL AND shut_by IS NULL;
CREATE INDEX shared_lines ON lines (queue, priority, place, head)
    WHERE fair_key <> '' AND head IS NOT NULL AND shut_by IS NULL;
CREATE INDEX shut_lines ON lines (shut_by, shut_cost, queue, priority, place) WHERE shut_by IS NOT NULL;
CREATE INDEX aged_lines ON lines (aging_ms, queue) WHERE aging_ms > 0;
CREATE INDEX heads_of_lines ON lines (queue, head) WHERE head > 0;

CREATE TABLE logs (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text COLLATE "C" NOT NULL UNIQUE CHECK (name <> ''),
    min_seq      bigint NOT NULL DEFAULT 1 CHECK (min_seq > 0),
    max_seq      bigint NOT NULL DEFAULT 0,
    bytes        bigint NOT NULL DEFAULT 0 CHECK (bytes >= 0),
    max_age_ms   bigint,
    max_records  bigint,
    max_bytes    bigint,
    trim_at      bigint,
    CHECK (min_seq <= max_seq + 1)
);
CREATE INDEX trimmable ON logs (trim_at) WHERE trim_at IS NOT NULL;

CREATE TABLE log_batches (
    log        bigint NOT NULL,
    last_seq   bigint NOT NULL,
    count      bigint NOT NULL CHECK (count > 0),
    at         bigint NOT NULL,
    steady_at  bigint,
    shared     json NOT NULL,
    body       json NOT NULL,
    checksum   bigint,
    PRIMARY KEY (log, last_seq)
);

CREATE TABLE budgets (
    key          text COLLATE "C" PRIMARY KEY CHECK (key <> ''),
    allocation   bigint NOT NULL CHECK (allocation BETWEEN 1 AND 1000000),
    duration_ms  bigint CHECK (duration_ms >= 1),
    burst        bigint CHECK (burst BETWEEN 1 AND 1000000),
    created_at   bigint NOT NULL,
    updated_at   bigint NOT NULL,
    in_use       bigint NOT NULL DEFAULT 0 CHECK (in_use >= 0),
    level        bigint NOT NULL DEFAULT 0,
    carry        bigint NOT NULL DEFAULT 0 CHECK (carry >= 0),
    settled_at   bigint NOT NULL DEFAULT 0,
    pays_at      bigint,
    maker        text,
    unfinished   bigint NOT NULL DEFAULT 0,
    waiting      bigint NOT NULL DEFAULT 0,
    costliest    bigint NOT NULL DEFAULT 0,
    held_until   bigint,
    CHECK (burst IS NULL OR duration_ms IS NOT NULL)
);
CREATE INDEX budgets_by_time ON budgets (pays_at) WHERE pays_at IS NOT NULL;

CREATE TABLE shares (
    queue       text COLLATE "C" NOT NULL,
    fair_key    text COLLATE "C" NOT NULL,
    weight      float8 NOT NULL,
    finish      float8 NOT NULL,
    mean        float8,
    owed        float8 NOT NULL,
    unfinished  bigint NOT NULL,
    waiting     bigint NOT NULL,
    in_flight   bigint NOT NULL,
    paid_until  float8,
    opens_at    bigint,
    PRIMARY KEY (queue, fair_key)
);
CREATE INDEX idle_shares ON shares (queue, finish) WHERE unfinished = 0;
CREATE INDEX shares_by_opening ON shares (opens_at) WHERE opens_at IS NOT NULL;

CREATE TABLE shared_queues (
    queue       text COLLATE "C" PRIMARY KEY,
    virtual     float8 NOT NULL,
    mean        float8 NOT NULL,
    unfinished  bigint NOT NULL
);

CREATE TABLE fair_limits (
    queue          text COLLATE "C" NOT NULL,
    fair_key       text COLLATE "C" NOT NULL,
    weight         float8,
    max_in_flight  bigint,
    rate           float8,
    PRIMARY KEY (queue, fair_key)
);

CREATE TABLE open_batches (
    job_id    bigint PRIMARY KEY,
    key       text COLLATE "C" NOT NULL UNIQUE,
    revision  bigint NOT NULL CHECK (revision >= 0)
);

CREATE TABLE cron_groups (
    name        text COLLATE "C" PRIMARY KEY CHECK (name <> ''),
    timezone    text,
    paused      integer NOT NULL CHECK (paused IN (0, 1)),
    paused_at   bigint,
    resumed_at  bigint
);

CREATE TABLE cron_entries (
    cron        text COLLATE "C" NOT NULL,
    name        text COLLATE "C" NOT NULL CHECK (name <> ''),
    expression  text NOT NULL,
    timezone    text,
    paused      integer NOT NULL CHECK (paused IN (0, 1)),
    paused_at   bigint,
    resumed_at  bigint,
    next_at     bigint,
    last_at     bigint,
    timed_at    bigint NOT NULL,
    queue       text COLLATE "C" NOT NULL CHECK (queue <> ''),
    job         json NOT NULL CHECK (json_typeof(job) = 'object'),
    checksum    bigint,
    PRIMARY KEY (cron, name)
);
CREATE INDEX cron_by_time ON cron_entries (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE error_groups (
    signature   text COLLATE "C" NOT NULL CHECK (signature <> ''),
    queue       text COLLATE "C" NOT NULL CHECK (queue <> ''),
    error_type  text,
    message     text NOT NULL,
    n           bigint NOT NULL CHECK (n > 0),
    first_seen  bigint NOT NULL,
    last_seen   bigint NOT NULL,
    sample      bigint NOT NULL,
    types       json NOT NULL DEFAULT '[]',
    PRIMARY KEY (signature, queue)
);

CREATE TABLE failure_counts (
    length     bigint NOT NULL CHECK (length > 0),
    at         bigint NOT NULL CHECK (at % length = 0),
    signature  text COLLATE "C" NOT NULL CHECK (signature <> ''),
    queue      text COLLATE "C" NOT NULL CHECK (queue <> ''),
    n          bigint NOT NULL CHECK (n > 0),
    PRIMARY KEY (length, at, signature, queue)
);

CREATE TABLE schemas (
    queue       text COLLATE "C" PRIMARY KEY CHECK (queue <> ''),
    body        text NOT NULL,
    version     bigint NOT NULL CHECK (version > 0),
    updated_at  bigint NOT NULL
);

CREATE TABLE sweeps (
    id          bigint PRIMARY KEY,
    outline     json NOT NULL,
    changed     bigint NOT NULL CHECK (changed > 0),
    passed      float8 NOT NULL CHECK (passed BETWEEN 0 AND 1),
    changed_at  bigint NOT NULL,
    taken_back  bigint NOT NULL DEFAULT 0 CHECK (taken_back BETWEEN 0 AND changed)
);

CREATE TABLE producers (
    name   text COLLATE "C" PRIMARY KEY,
    epoch  text NOT NULL,
    last   bigint NOT NULL CHECK (last >= 0),
    at     bigint NOT NULL,
    first  bigint NOT NULL CHECK (first BETWEEN 1 AND last + 1),
    key    bigint NOT NULL,
    step   bigint NOT NULL
);

CREATE TABLE producer_ends (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name   text COLLATE "C" NOT NULL,
    epoch  text COLLATE "C" NOT NULL,
    last   bigint NOT NULL CHECK (last >= 0),
    UNIQUE (name, epoch)
);
CREATE INDEX producer_ends_latest ON producer_ends (name, id);

CREATE TABLE trends (
    length     bigint NOT NULL CHECK (length > 0),
    queue      text COLLATE "C" NOT NULL,
    at         bigint NOT NULL CHECK (at % length = 0),
    enqueued   bigint NOT NULL,
    delivered  bigint NOT NULL,
    completed  bigint NOT NULL,
    failed     bigint NOT NULL,
    died       bigint NOT NULL,
    expired    bigint NOT NULL,
    wait       json NOT NULL,
    run        json NOT NULL,
    PRIMARY KEY (length, queue, at)
);
CREATE INDEX trends_by_time ON trends (length, at);

CREATE TABLE type_trends (
    length  bigint NOT NULL CHECK (length > 0),
    at      bigint NOT NULL CHECK (at % length = 0),
    queue   text COLLATE "C" NOT NULL,
    type    text COLLATE "C" NOT NULL,
    done    bigint NOT NULL,
    failed  bigint NOT NULL,
    run     json NOT NULL,
    PRIMARY KEY (length, at, queue, type)
);

CREATE TABLE lanes (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name      text COLLATE "C" NOT NULL UNIQUE,
    rule      json NOT NULL,
    epoch     text NOT NULL,
    next      bigint NOT NULL CHECK (next >= 1),
    heir      text,
    paused    boolean NOT NULL DEFAULT false,
    declared  boolean NOT NULL DEFAULT false
);

CREATE TABLE lane_batches (
    lane   bigint NOT NULL,
    first  bigint NOT NULL CHECK (first >= 1),
    keys   json NOT NULL,
    PRIMARY KEY (lane, first)
);

CREATE TABLE devices (
    name         text COLLATE "C" PRIMARY KEY,
    instance     text NOT NULL,
    version      text NOT NULL,
    every_ms     bigint NOT NULL,
    clock_ms     bigint NOT NULL,
    reported_at  bigint NOT NULL,
    since        bigint NOT NULL,
    jobs         bigint NOT NULL,
    bytes        bigint NOT NULL,
    oldest_ms    bigint,
    lanes        json NOT NULL
);

CREATE TABLE topics (
    id             bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY
                   CHECK (id BETWEEN 1 AND 4194303),
    name           text COLLATE "C" UNIQUE CHECK (name <> ''),
    config         json NOT NULL,
    head_seq       bigint NOT NULL DEFAULT 0 CHECK (head_seq BETWEEN 0 AND 2199023255551),
    count          bigint NOT NULL DEFAULT 0 CHECK (count >= 0),
    bytes          bigint NOT NULL DEFAULT 0 CHECK (bytes >= 0),
    cap_floor      bigint NOT NULL DEFAULT 0,
    ttl_floor      bigint NOT NULL DEFAULT 0,
    last_at        bigint,
    trim_at        bigint,
    dead_lettered  bigint NOT NULL DEFAULT 0 CHECK (dead_lettered >= 0)
);
CREATE INDEX topics_to_trim ON topics (trim_at) WHERE trim_at IS NOT NULL;

CREATE TABLE topic_records (
    key        bigint PRIMARY KEY,
    at         bigint NOT NULL,
    steady_at  bigint,
    size       bigint NOT NULL,
    node       text,
    tag        text COLLATE "C",
    meta       text,
    data       text NOT NULL,
    checksum   bigint
);
CREATE INDEX records_by_tag ON topic_records ((key >> 41), tag) WHERE tag IS NOT NULL;

CREATE TABLE topic_jobs (
    key   bigint PRIMARY KEY,
    job   bigint NOT NULL,
    node  text,
    tag   text COLLATE "C"
);
CREATE INDEX topic_jobs_by_job ON topic_jobs (job);
CREATE INDEX topic_jobs_by_tag ON topic_jobs ((key >> 41), tag) WHERE tag IS NOT NULL;

CREATE TABLE topic_writes (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic      bigint NOT NULL,
    key        text COLLATE "C" NOT NULL,
    first_seq  bigint NOT NULL,
    last_seq   bigint NOT NULL,
    until      bigint NOT NULL,
    UNIQUE (topic, key)
);
CREATE INDEX writes_by_time ON topic_writes (until);

CREATE TABLE topic_routers (
    name       text COLLATE "C" PRIMARY KEY CHECK (name <> ''),
    source     text COLLATE "C" NOT NULL CHECK (source <> dest),
    dest       text COLLATE "C" NOT NULL,
    config     json NOT NULL,
    forwarded  bigint NOT NULL DEFAULT 0 CHECK (forwarded >= 0)
);
CREATE INDEX routers_by_source ON topic_routers (source);
CREATE INDEX routers_by_dest ON topic_routers (dest);

CREATE TABLE users (
    id          text COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    name        text COLLATE "C" NOT NULL UNIQUE CHECK (name <> ''),
    hash        text NOT NULL,
    is_admin    integer NOT NULL CHECK (is_admin IN (0, 1)),
    created_at  bigint NOT NULL,
    updated_at  bigint NOT NULL
);

CREATE TABLE user_grants (
    id          text COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    "user"      text COLLATE "C" NOT NULL,
    action      text NOT NULL CHECK ((action = 'consume') = (group_id IS NOT NULL)),
    pattern     text COLLATE "C" NOT NULL CHECK (pattern <> ''),
    group_id    text COLLATE "C",
    created_at  bigint NOT NULL
);
CREATE INDEX grants_by_user ON user_grants ("user", created_at);
CREATE UNIQUE INDEX grants_by_group ON user_grants ("user", pattern, group_id);

-- What operators do: 90 days of it, 100,000 records or 64 MiB.
INSERT INTO logs (name) VALUES ('history');
INSERT INTO logs (name, max_age_ms, max_records, max_bytes) VALUES
    ('audit', 7776000000, 100000, 67108864);
