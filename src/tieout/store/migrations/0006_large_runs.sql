-- The first piece of a list costs the same in a run of a million breaks as in one of ten.

CREATE INDEX break_class_idx ON tieout.break (run_id, class, break_id);

CREATE INDEX incident_gravest_idx ON tieout.incident (
    run_id, (CASE severity WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END), breaks DESC, incident_id
);

CREATE FUNCTION tieout.statement_sums(statement jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
    SELECT jsonb_build_object(
        'accepted', coalesce(sum((told ->> 'accepted')::bigint), 0),
        'lost', coalesce(sum((told ->> 'lost')::bigint), 0),
        'in_flight', coalesce(sum((told ->> 'in_flight')::bigint), 0),
        'first_effects', coalesce(sum((told ->> 'first_effects')::bigint), 0),
        'further_effects', coalesce(sum((told ->> 'further_effects')::bigint), 0),
        'late', coalesce(greatest(
            (statement #>> '{classes,LATE}')::bigint, (statement #>> '{flags,LATE}')::bigint
        ), 0) + coalesce(greatest(
            (statement #>> '{classes,OVERDUE}')::bigint, (statement #>> '{flags,OVERDUE}')::bigint
        ), 0)
    )
    FROM jsonb_path_query(statement, '$.partitions[*]') AS told
);
COMMENT ON FUNCTION tieout.statement_sums IS 'What plots show of a statement: sums over its partitions, and what came late.';

ALTER TABLE tieout.run ADD COLUMN sums jsonb GENERATED ALWAYS AS (tieout.statement_sums(statement)) STORED;
COMMENT ON COLUMN tieout.run.sums IS 'The statement''s sums, so that a year of them is read without its hundred thousand partitions.';
