-- Finding breaks by what people know of a message: its id, its key's hash, a position.

CREATE FUNCTION tieout.break_handles(message_id text, positions jsonb, evidence jsonb) RETURNS uuid[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY(
    SELECT DISTINCT md5(handle)::uuid
    FROM (
        SELECT jsonb_path_query(evidence, '$.*[*]')
        UNION ALL SELECT jsonb_path_query(positions, '$[*]')
        UNION ALL SELECT jsonb_build_object('message_id', message_id)
    ) AS shown (told)
    CROSS JOIN LATERAL (VALUES
        ('message_id ' || (told ->> 'message_id')),
        ('key ' || (told ->> 'key_hash')),
        ('position ' || (told ->> 'topic') || '/' || (told ->> 'partition') || '/' || (told ->> 'offset'))
    ) AS handles (handle)
    WHERE handle IS NOT NULL
);
COMMENT ON FUNCTION tieout.break_handles IS
    'What a break can be asked for by, as digests: ids are of any length, an index entry is not.';

CREATE INDEX break_handles_idx ON tieout.break USING gin (tieout.break_handles(message_id, positions, evidence));
