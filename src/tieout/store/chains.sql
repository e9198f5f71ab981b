-- Incidents over a chain of contracts, by name; docs/how-to/follow-a-chain.md. They only read.

-- name: hop
-- A pipeline as the contract of its latest window has it.
SELECT contract #>> '{after,pipeline}' AS before, contract #>> '{after,id}' AS id,
       coalesce(contract ->> 'identity', 'message_id') AS identity, coalesce(contract ->> 'id_scope', 'global') AS id_scope,
       coalesce(contract #>> '{multiplicity,kind}', 'one_to_one') AS multiplicity
FROM tieout.run WHERE pipeline = %(pipeline)s AND is_current
ORDER BY window_start DESC, published_at DESC LIMIT 1

-- name: hop_names
SELECT asked.pipeline, latest.before
FROM unnest(%(pipelines)s::text[]) AS asked (pipeline)
CROSS JOIN LATERAL (
    SELECT contract #>> '{after,pipeline}' AS before
    FROM tieout.run WHERE run.pipeline = asked.pipeline AND is_current
    ORDER BY window_start DESC, published_at DESC LIMIT 1
) latest

-- name: found_here
SELECT r.run_id, r.window_start, r.window_end, r.contract ->> 'look_back' AS look_back, i.incident_id, i.class,
       cardinality(i.message_ids) AS known, cardinality(coalesce(i.earlier_ids, i.message_ids)) AS compared
FROM tieout.run r JOIN tieout.incident i USING (run_id)
WHERE r.run_id = ANY(%(runs)s::uuid[]) AND i.class = ANY(%(classes)s::text[])
ORDER BY r.window_start, r.run_id, i.incident_id

-- name: runs_before
-- The runs of earlier hops that count for each of some runs. A hop's run counts where it is current, or was its window's
-- latest when the run asked about was made: what a hop has repaired meanwhile, later hops tell of only once they are
-- judged again.
SELECT here.run_id AS here_run_id, hop.depth, r.run_id
FROM unnest(%(runs)s::uuid[], %(since)s::timestamptz[]) AS asked (run_id, since)
JOIN tieout.run here ON here.run_id = asked.run_id
CROSS JOIN unnest(%(hops)s::text[]) WITH ORDINALITY AS hop (pipeline, depth)
JOIN tieout.run r ON r.pipeline = hop.pipeline AND r.window_start < here.window_end AND r.window_end > asked.since
WHERE r.is_current OR (r.generated_at <= here.generated_at AND NOT EXISTS (
    SELECT FROM tieout.run later
    WHERE later.pipeline = r.pipeline AND later.consumer_group = r.consumer_group
      AND later.window_start = r.window_start AND later.window_end = r.window_end
      AND later.generated_at > r.generated_at AND later.generated_at <= here.generated_at
))

-- name: judged_before
-- Of each run and hop: whether the hop's windows cover the run's, what they lost, what else they put out that was not
-- sent so, and which classes the windows of the run's time do not judge. Of no other is the statement read: it is large.
SELECT here.run_id, hop.depth,
       coalesce(range_agg(tstzrange(r.window_start, r.window_end)) FILTER (WHERE r.run_id IS NOT NULL), '{}')
           @> tstzrange(here.window_start, here.window_end) AS is_judged,
       coalesce(sum(found.lost), 0) AS lost, coalesce(sum(found.unnamed), 0) AS unnamed,
       coalesce(sum(found.carried), 0) AS carried,
       coalesce(jsonb_path_query_array(
           jsonb_agg(r.statement -> 'not_judged')
               FILTER (WHERE r.window_start < here.window_end AND r.window_end > here.window_start),
           '$[*][*].class'
       ), '[]') AS not_judged
FROM tieout.run here
CROSS JOIN unnest(%(hops)s::text[]) WITH ORDINALITY AS hop (pipeline, depth)
LEFT JOIN unnest(%(here)s::uuid[], %(depths)s::bigint[], %(before)s::uuid[]) AS counting (here_run_id, depth, run_id)
    ON counting.here_run_id = here.run_id AND counting.depth = hop.depth
LEFT JOIN tieout.run r ON r.run_id = counting.run_id
LEFT JOIN LATERAL (
    SELECT count(*) FILTER (WHERE i.class = 'LOST') AS lost,
           count(*) FILTER (WHERE i.class = 'LOST' AND i.message_ids IS NULL) AS unnamed,
           count(*) FILTER (WHERE i.class = ANY(%(carried)s::text[])) AS carried
    FROM tieout.incident i WHERE i.run_id = r.run_id
) found ON true
WHERE here.run_id = ANY(%(runs)s::uuid[])
GROUP BY here.run_id, here.window_start, here.window_end, hop.depth
ORDER BY here.run_id, hop.depth

-- name: found_before
-- Each message at the earliest hop that has it; has_alerts if the incident of any hop has alerts of its own. A loss
-- passes through hops that never knew of the message; an output has to be the same at each hop in between (`rank`).
WITH here AS MATERIALIZED (
    SELECT run_id, incident_id, class = 'LOST' AS is_lost, unnest(coalesce(earlier_ids, message_ids)) AS id
    FROM tieout.incident WHERE run_id = ANY(%(runs)s::uuid[]) AND class = ANY(%(classes)s::text[])
), before AS MATERIALIZED (
    SELECT counting.here_run_id, counting.depth, r.pipeline, r.run_id, r.window_start, r.window_end, i.incident_id,
           i.severity = 'critical' AND jsonb_array_length(coalesce(r.contract -> 'alerts', '[]')) > 0 AS has_alerts,
           unnest(i.message_ids) AS id
    FROM unnest(%(here)s::uuid[], %(depths)s::bigint[], %(before)s::uuid[]) AS counting (here_run_id, depth, run_id)
    JOIN tieout.run r ON r.run_id = counting.run_id
    JOIN tieout.incident i ON i.run_id = r.run_id AND i.class = ANY(%(classes)s::text[])
), same AS (
    SELECT here.run_id AS here_run_id, here.incident_id AS here_incident_id, here.id, here.is_lost, before.depth,
           before.pipeline, before.run_id, before.window_start, before.window_end, before.incident_id, before.has_alerts,
           dense_rank() OVER (PARTITION BY here.run_id, here.incident_id, here.id ORDER BY before.depth) AS rank
    FROM here JOIN before ON before.here_run_id = here.run_id AND before.id = here.id
), earliest AS (
    SELECT DISTINCT ON (here_run_id, here_incident_id, id)
           here_run_id, here_incident_id, depth, pipeline, run_id, window_start, window_end, incident_id,
           bool_or(has_alerts) OVER (PARTITION BY here_run_id, here_incident_id, id) AS has_alerts
    FROM same WHERE is_lost OR rank = depth
    ORDER BY here_run_id, here_incident_id, id, depth DESC, window_start, incident_id
)
SELECT here_run_id, here_incident_id, pipeline, run_id, window_start, window_end, incident_id, count(*) AS messages,
       bool_and(has_alerts) AS has_alerts
FROM earliest
GROUP BY here_run_id, here_incident_id, depth, pipeline, run_id, window_start, window_end, incident_id
ORDER BY here_run_id, here_incident_id, depth DESC, window_start, incident_id

-- name: is_judged
SELECT coalesce(range_agg(tstzrange(window_start, window_end)), '{}') @> tstzrange(%(start)s, %(end)s) AS is_judged
FROM tieout.run
WHERE pipeline = %(pipeline)s AND is_current AND checked_at IS NOT NULL
  AND window_start < %(end)s AND window_end > %(start)s

-- name: hop_windows
SELECT pipeline, run_id, window_start, window_end, verdict, final_verdict, broken.messages AS broken
FROM tieout.run
CROSS JOIN LATERAL (
    SELECT coalesce(sum(i.breaks), 0)::bigint AS messages
    FROM tieout.incident i WHERE i.run_id = run.run_id AND i.class = ANY(%(classes)s::text[])
) broken
WHERE is_current AND pipeline = ANY(%(pipelines)s) AND window_start < %(end)s AND window_end > %(start)s
ORDER BY pipeline, window_start, published_at LIMIT %(limit)s
