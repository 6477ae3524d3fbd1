-- Jobs that others write in their own transactions, each in the form of POST /jobs. A tick takes them in and
-- deletes them. `error` tells why one cannot become a job.

CREATE TABLE inbox (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document  text NOT NULL,
    created   timestamptz NOT NULL DEFAULT now(),
    error     text
);
CREATE INDEX refused_in_inbox ON inbox (id) WHERE error IS NOT NULL;

-- A notification holds a lock of the whole database until its transaction is on the disk, so one at a time is
-- enough: the server looks again shortly after it has found something, and each second.
CREATE FUNCTION tell_of_inbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_try_advisory_xact_lock(31345, 1000) THEN
        PERFORM pg_notify('zq_inbox', '');
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER tell_of_inbox AFTER INSERT OR UPDATE OF error ON inbox
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_inbox();

-- SELECT zq.enqueue('mail', 'welcome', '{"to": 7}', '{"priority": 10}'): whoever may insert may call it.
CREATE FUNCTION enqueue(queue text, type text, payload json, options json DEFAULT '{}') RETURNS void
LANGUAGE sql AS $$
    INSERT INTO zq.inbox (document) VALUES (
        '{"queue":' || to_json(queue) || ',"type":' || to_json(type) || ',"payload":' || payload
        || CASE WHEN json_typeof(options) = 'object' AND options::text !~ '^\s*\{\s*\}\s*$'
            THEN ',' || regexp_replace(options::text, '^\s*\{', '') ELSE '}' END)
$$;
