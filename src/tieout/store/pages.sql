-- Every statement behind the pages, by name; they only read. {after} and {order} are chosen from fixed texts in paging.py.

-- name: pipelines
-- Jumps from name to name in the index: a year of windows is a hundred thousand rows of twenty names.
WITH RECURSIVE known AS (
    (SELECT pipeline FROM tieout.run ORDER BY pipeline LIMIT 1)
    UNION ALL
    SELECT (SELECT run.pipeline FROM tieout.run WHERE run.pipeline > known.pipeline ORDER BY run.pipeline LIMIT 1)
    FROM known WHERE known.pipeline IS NOT NULL
)
SELECT pipeline FROM known WHERE pipeline IS NOT NULL

-- name: heads
SELECT latest.*, earliest.window_start AS first_start
FROM unnest(%(pipelines)s::text[]) AS asked (pipeline)
CROSS JOIN LATERAL (
    SELECT pipeline, consumer_group, guarantee, run_id, window_start, window_end, verdict, final_verdict, published_at,
           contract_digest, contract ->> 'description' AS description, contract ->> 'owner' AS owner,
           contract ->> 'schedule' AS schedule, contract ->> 'grace' AS grace,
           contract #>> '{active,from}' AS active_from, contract #>> '{active,until}' AS active_until
    FROM tieout.run WHERE run.pipeline = asked.pipeline AND is_current
    ORDER BY window_start DESC, published_at DESC LIMIT 1
) AS latest
CROSS JOIN LATERAL (
    SELECT window_start FROM tieout.run WHERE run.pipeline = asked.pipeline AND is_current
    ORDER BY window_start LIMIT 1
) AS earliest
ORDER BY pipeline

-- name: health
-- Of two current runs of one window, one under a group's old name, the later published one counts.
WITH judged AS (
    SELECT DISTINCT ON (pipeline, window_start, window_end) pipeline, window_start, window_end, verdict, final_verdict
    FROM tieout.run
    WHERE is_current AND pipeline = ANY(%(pipelines)s)
      AND window_start >= %(start)s::timestamptz - %(reach)s AND window_start < %(end)s AND window_end > %(start)s
    ORDER BY pipeline, window_start, window_end, published_at DESC
)
SELECT pipeline, bucket, verdict, final_verdict, count(*) AS windows, min(window_start) AS first_start,
       max(window_end) AS last_end
FROM judged
CROSS JOIN LATERAL generate_series(
    greatest(0, floor(extract(epoch FROM window_start - %(start)s::timestamptz) / %(step)s)::integer),
    least(%(buckets)s, ceil(extract(epoch FROM window_end - %(start)s::timestamptz) / %(step)s)::integer) - 1
) AS bucket
GROUP BY pipeline, bucket, verdict, final_verdict

-- name: gaps
-- A schedule's windows lie end to end, so a time that no current run covers is a window that nobody judged.
WITH expected AS (
    SELECT * FROM unnest(%(pipelines)s::text[], %(since)s::timestamptz[], %(until)s::timestamptz[])
        AS asked (pipeline, since, until)
), judged AS (
    SELECT expected.pipeline, since, until,
           coalesce(range_agg(tstzrange(window_start, window_end)) FILTER (WHERE run_id IS NOT NULL), '{}') AS ranges
    FROM expected
    LEFT JOIN tieout.run ON run.pipeline = expected.pipeline AND is_current AND window_start >= since - %(reach)s
        AND window_start < until AND window_end > since
    GROUP BY expected.pipeline, since, until
), gap AS (
    SELECT pipeline, unnest(tstzmultirange(tstzrange(since, until)) - ranges) AS period FROM judged
)
SELECT pipeline, bucket, min(lower(period)) AS since, max(upper(period)) AS until
FROM gap
CROSS JOIN LATERAL generate_series(
    floor(extract(epoch FROM lower(period) - %(start)s::timestamptz) / %(step)s)::integer,
    ceil(extract(epoch FROM upper(period) - %(start)s::timestamptz) / %(step)s)::integer - 1
) AS bucket
GROUP BY pipeline, bucket

-- name: history
WITH judged AS (
    SELECT DISTINCT ON (window_start, window_end) latency, sums,
           floor(extract(epoch FROM window_start - %(start)s::timestamptz) / %(step)s)::integer AS bucket
    FROM tieout.run
    WHERE pipeline = %(pipeline)s AND is_current AND window_start >= %(start)s AND window_start < %(end)s
    ORDER BY window_start, window_end, published_at DESC
)
SELECT bucket, count(*) AS windows, sum((sums ->> 'accepted')::bigint)::bigint AS accepted,
       sum((sums ->> 'lost')::bigint)::bigint AS lost, sum((sums ->> 'in_flight')::bigint)::bigint AS in_flight,
       sum((sums ->> 'first_effects')::bigint)::bigint AS first_effects,
       sum((sums ->> 'further_effects')::bigint)::bigint AS further_effects, sum((sums ->> 'late')::bigint)::bigint AS late,
       max((latency ->> 'p50_s')::double precision) AS p50, max((latency ->> 'p95_s')::double precision) AS p95,
       max((latency ->> 'p99_s')::double precision) AS p99
FROM judged
GROUP BY bucket ORDER BY bucket

-- name: offsets_history
-- Of the last window of each bucket only: a year's partitions are a hundred thousand rows, of which a plot shows these.
-- OFFSET 0 keeps the planner from reading all of them to join them.
WITH judged AS (
    SELECT run_id, window_start, published_at,
           floor(extract(epoch FROM window_start - %(start)s::timestamptz) / %(step)s)::integer AS bucket
    FROM tieout.run
    WHERE pipeline = %(pipeline)s AND is_current AND window_start >= %(start)s AND window_start < %(end)s
), latest AS (
    SELECT DISTINCT ON (bucket) run_id, bucket FROM judged ORDER BY bucket, window_start DESC, published_at DESC
)
SELECT topic, partition, bucket, (offsets ->> 'to')::bigint AS end_offset, (offsets ->> 'in_flight')::bigint AS in_flight
FROM latest CROSS JOIN LATERAL (
    SELECT topic, partition, offsets FROM tieout.statement_partition AS place
    WHERE place.run_id = latest.run_id AND offsets IS NOT NULL OFFSET 0
) AS places
ORDER BY topic, partition, bucket

-- name: windows
SELECT run_id, pipeline, consumer_group, window_start, window_end, guarantee, contract_digest, verdict, final_verdict,
       reasons, breaks_total, breaks_truncated, dag_id, dag_run_id, try_number, tieout_version, generated_at,
       published_at, checked_at, is_current
FROM tieout.run
WHERE pipeline = %(pipeline)s AND is_current
  AND (%(start)s::timestamptz IS NULL OR window_start >= %(start)s)
  AND (%(end)s::timestamptz IS NULL OR window_start < %(end)s)
  AND (%(verdict)s::text IS NULL
       OR %(verdict)s = coalesce(final_verdict, CASE verdict WHEN 'BROKEN' THEN verdict ELSE 'UNKNOWN' END))
  AND {after}
ORDER BY {order} LIMIT %(limit)s

-- name: runs_of_window
SELECT run_id, pipeline, consumer_group, window_start, window_end, guarantee, contract_digest, verdict, final_verdict,
       reasons, breaks_total, breaks_truncated, dag_id, dag_run_id, try_number, tieout_version, generated_at,
       published_at, checked_at, is_current
FROM tieout.run
WHERE pipeline = %(pipeline)s AND window_start = %(window_start)s AND window_end = %(window_end)s
ORDER BY is_current DESC, published_at DESC LIMIT %(limit)s

-- name: run
-- Without the incidents, of which a statement may list a hundred thousand: they are read by page.
SELECT run_id, pipeline, consumer_group, window_start, window_end, guarantee, contract_digest, verdict, final_verdict,
       reasons, breaks_total, breaks_truncated, dag_id, dag_run_id, try_number, tieout_version, generated_at,
       published_at, checked_at, is_current, statement - 'incidents' AS statement, contract
FROM tieout.run WHERE run_id = %(run_id)s

-- name: checks
SELECT rule, severity, status, observed, limit_text FROM tieout.check_result WHERE run_id = %(run_id)s ORDER BY place

-- name: pipeline_incidents
SELECT run.run_id, run.window_start, run.window_end, incident.incident_id, incident.class AS class_name, incident.locus,
       incident.cause, incident.topic, incident.partition, incident.first_position, incident.last_position,
       incident.breaks, incident.severity, life.state, life.resolution, life.accepted_until
FROM tieout.run JOIN tieout.incident USING (run_id)
LEFT JOIN tieout.life ON life.id = incident.incident_id AND life.kind = 'incident' AND life.pipeline = run.pipeline
    AND life.consumer_group = run.consumer_group
WHERE run.pipeline = %(pipeline)s AND is_current
  AND (%(start)s::timestamptz IS NULL OR run.window_start >= %(start)s)
  AND (%(end)s::timestamptz IS NULL OR run.window_start < %(end)s)
  AND (%(class_name)s::text IS NULL OR incident.class = %(class_name)s)
  AND (%(severity)s::text IS NULL OR incident.severity = %(severity)s)
  AND (%(locus)s::text IS NULL OR incident.locus = %(locus)s)
  AND (%(cause)s::text IS NULL OR incident.cause = %(cause)s)
  AND (%(topic)s::text IS NULL OR incident.topic = %(topic)s)
  AND (%(partition)s::integer IS NULL OR incident.partition = %(partition)s)
  AND (%(state)s::text IS NULL OR (life.state IS NOT DISTINCT FROM 'resolved') = (%(state)s = 'resolved'))
  AND {after}
ORDER BY {order} LIMIT %(limit)s

-- name: run_incidents
SELECT run.run_id, run.window_start, run.window_end, incident.incident_id, incident.class AS class_name, incident.locus,
       incident.cause, incident.topic, incident.partition, incident.first_position, incident.last_position,
       incident.breaks, incident.severity, life.state, life.resolution, life.accepted_until
FROM tieout.run JOIN tieout.incident USING (run_id)
LEFT JOIN tieout.life ON life.id = incident.incident_id AND life.kind = 'incident' AND life.pipeline = run.pipeline
    AND life.consumer_group = run.consumer_group
WHERE run.run_id = %(run_id)s
ORDER BY CASE incident.severity WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, incident.breaks DESC, incident.incident_id
LIMIT %(limit)s

-- name: incident
SELECT run.run_id, run.window_start, run.window_end, incident.incident_id, incident.class AS class_name, incident.locus,
       incident.cause, incident.topic, incident.partition, incident.first_position, incident.last_position,
       incident.breaks, incident.severity, life.state, life.resolution, life.accepted_until
FROM tieout.run JOIN tieout.incident USING (run_id)
LEFT JOIN tieout.life ON life.id = incident.incident_id AND life.kind = 'incident' AND life.pipeline = run.pipeline
    AND life.consumer_group = run.consumer_group
WHERE run.run_id = %(run_id)s AND incident.incident_id = %(incident_id)s

-- name: incident_history
-- Of one pipeline only: whoever may read it may not read another in which the same id stands.
SELECT at, 'statement' AS what, run_id, state, resolution, class AS class_name, severity, window_start, window_end,
       NULL AS who, NULL AS reason, NULL::timestamptz AS expires_at
FROM tieout.life_event
WHERE md5(id) = md5(%(incident_id)s) AND id = %(incident_id)s AND kind = 'incident' AND pipeline = %(pipeline)s
  AND consumer_group = %(group)s
UNION ALL
SELECT made_at, act, NULL, NULL, NULL, NULL, NULL, NULL, NULL, who, reason, expires_at
FROM tieout.act
WHERE md5(id) = md5(%(incident_id)s) AND id = %(incident_id)s AND kind = 'incident' AND pipeline = %(pipeline)s
  AND (consumer_group = %(group)s OR consumer_group IS NULL)
ORDER BY at

-- name: located_incidents
-- What can be drawn on a partition's line of the gravest and largest, which an index has in order.
WITH gravest AS (
    SELECT topic, partition, incident_id, class, severity, breaks, first_position, last_position
    FROM tieout.incident WHERE run_id = %(run_id)s
    ORDER BY CASE severity WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, breaks DESC, incident_id
    LIMIT %(limit)s + 1
)
SELECT topic, partition, incident_id, class AS class_name, severity, breaks,
       (first_position #>> '{}')::bigint AS first_offset, (last_position #>> '{}')::bigint AS last_offset,
       (SELECT count(*) FROM gravest) AS looked_at
FROM gravest WHERE jsonb_typeof(first_position) = 'number' AND jsonb_typeof(last_position) = 'number'

-- name: breaks
SELECT break_id, incident_id, class AS class_name, flags, message_id, producer_id, topic, partition, msg_offset,
       positions, locus, cause, admissible, rule, severity, evidence
FROM tieout.break
WHERE run_id = %(run_id)s
  AND (%(incident_id)s::text IS NULL OR incident_id = %(incident_id)s)
  AND (%(class_name)s::text IS NULL OR class = %(class_name)s)
  AND (%(severity)s::text IS NULL OR severity = %(severity)s)
  AND (%(topic)s::text IS NULL OR topic = %(topic)s)
  AND (%(partition)s::integer IS NULL OR partition = %(partition)s)
  AND (%(message_id)s::text IS NULL OR message_id = %(message_id)s)
  AND {after}
ORDER BY {order} LIMIT %(limit)s

-- name: traced
-- The index gives the breaks of every pipeline and run; the inner limit bounds how many of them are looked at.
WITH found AS (
    SELECT run.run_id, run.window_start, run.window_end, run.published_at, break.break_id
    FROM tieout.break JOIN tieout.run USING (run_id)
    WHERE tieout.break_handles(message_id, positions, evidence)
              && ARRAY(SELECT md5(handle)::uuid FROM unnest(%(handles)s::text[]) AS asked (handle))
      AND run.pipeline = %(pipeline)s AND is_current
    LIMIT %(bound)s
), shown AS (
    SELECT *, count(*) OVER () AS total FROM found ORDER BY window_start DESC, published_at DESC, break_id LIMIT %(limit)s
)
SELECT shown.total, shown.window_start, shown.window_end, run.run_id AS in_run, run.consumer_group,
       run.statement -> 'coverage' AS coverage, run.contract -> 'ledgers' AS ledgers,
       break_id, incident_id, class AS class_name, flags, message_id, producer_id, topic, partition, msg_offset,
       positions, locus, cause, admissible, rule, severity, evidence
FROM shown JOIN tieout.run USING (run_id) JOIN tieout.break USING (run_id, break_id)
ORDER BY shown.window_start DESC, shown.published_at DESC, break_id

-- name: judged_at
SELECT run_id, pipeline, consumer_group, window_start, window_end, guarantee, contract_digest, verdict, final_verdict,
       reasons, breaks_total, breaks_truncated, dag_id, dag_run_id, try_number, tieout_version, generated_at,
       published_at, checked_at, is_current
FROM tieout.run JOIN tieout.statement_partition AS place USING (run_id)
WHERE run.pipeline = %(pipeline)s AND is_current AND place.topic = %(topic)s AND place.partition = %(partition)s
  AND (place.offsets ->> 'from')::bigint <= %(offset)s AND (place.offsets ->> 'to')::bigint > %(offset)s
ORDER BY window_start DESC, published_at DESC LIMIT %(limit)s

-- name: incidents_at
SELECT run.run_id, run.window_start, run.window_end, incident.incident_id, incident.class AS class_name, incident.locus,
       incident.cause, incident.topic, incident.partition, incident.first_position, incident.last_position,
       incident.breaks, incident.severity, life.state, life.resolution, life.accepted_until
FROM tieout.run JOIN tieout.incident USING (run_id)
LEFT JOIN tieout.life ON life.id = incident.incident_id AND life.kind = 'incident' AND life.pipeline = run.pipeline
    AND life.consumer_group = run.consumer_group
WHERE run.run_id = ANY(%(runs)s::uuid[]) AND incident.topic = %(topic)s AND incident.partition = %(partition)s
  AND CASE WHEN jsonb_typeof(incident.first_position) = 'number' AND jsonb_typeof(incident.last_position) = 'number'
      THEN (incident.first_position #>> '{}')::bigint <= %(offset)s
          AND (incident.last_position #>> '{}')::bigint >= %(offset)s END
ORDER BY run.window_start DESC, incident.breaks DESC, incident.incident_id LIMIT %(limit)s
