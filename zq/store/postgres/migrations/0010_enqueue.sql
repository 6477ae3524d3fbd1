-- A payload is JSON in any of PostgreSQL's types. Of these, text is the one that a literal without a type becomes.

CREATE OR REPLACE FUNCTION enqueue(queue text, type text, payload json, options json DEFAULT '{}') RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF queue IS NULL OR type IS NULL OR json_typeof(options) <> 'object' THEN
        RAISE EXCEPTION 'zq.enqueue takes a queue, a type, a payload, and a JSON object of options'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO zq.inbox (document) VALUES (
        '{"queue":' || to_json(queue) || ',"type":' || to_json(type) || ',"payload":' || coalesce(payload, 'null')
        || CASE WHEN options::text !~ '^\s*\{\s*\}\s*$'
            THEN ',' || regexp_replace(options::text, '^\s*\{', '') ELSE '}' END);
END $$;

CREATE FUNCTION enqueue(queue text, type text, payload jsonb, options jsonb DEFAULT '{}') RETURNS void
LANGUAGE sql AS $$ SELECT zq.enqueue(queue, type, payload::json, options::json) $$;

CREATE FUNCTION enqueue(queue text, type text, payload text, options text DEFAULT '{}') RETURNS void
LANGUAGE sql AS $$ SELECT zq.enqueue(queue, type, payload::json, options::json) $$;
