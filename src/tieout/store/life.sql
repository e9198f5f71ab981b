-- The life of breaks and incidents, by name; docs/explanation/life-of-a-break.md says what each step is for.

-- name: followed
-- Ids whose absence from a window's statement is significant, whatever their state.
SELECT id FROM tieout.life
WHERE pipeline = %(pipeline)s AND consumer_group = %(consumer_group)s AND kind = 'break'
  AND window_start < %(window_end)s AND window_end > %(window_start)s

-- name: lock_now
SELECT pg_advisory_lock_shared(%(key)s)

-- name: unlock_now
SELECT pg_advisory_unlock_shared(%(key)s)

-- name: note_breaks_read
UPDATE tieout.run SET breaks_read = %(breaks_read)s WHERE run_id = %(run_id)s

-- name: joins_as_written
-- The planner knows nothing yet of rows written in the same transaction, so the statements' own order of joins holds.
SELECT set_config('join_collapse_limit', '1', true), set_config('from_collapse_limit', '1', true)

-- name: life_follow_breaks
INSERT INTO tieout.life (
    pipeline, consumer_group, kind, id, class, severity, locus, cause, topic, partition, incident_id, message_id,
    msg_offset, outcome, first_run_id, first_seen_at, first_window_start, first_window_end, run_id, seen_at,
    window_start, window_end, accepted_until, accepted_class
)
SELECT r.pipeline, r.consumer_group, 'break', b.break_id, b.class, b.severity, b.locus, b.cause, b.topic, b.partition,
       b.incident_id, b.message_id, b.msg_offset, b.settled, r.run_id, r.generated_at, r.window_start, r.window_end,
       r.run_id, r.generated_at, r.window_start, r.window_end, i.accepted_until, i.accepted_class
FROM tieout.break b
JOIN tieout.run r ON r.run_id = b.run_id
LEFT JOIN tieout.life i ON i.pipeline = r.pipeline AND i.consumer_group = r.consumer_group AND i.kind = 'incident'
                       AND i.id = b.incident_id
WHERE b.run_id = %(run_id)s
ON CONFLICT DO NOTHING

-- name: life_follow_incidents
-- An incident continues the earlier incident that had one of its breaks.
WITH before AS MATERIALIZED (
    SELECT DISTINCT ON (b.incident_id) b.incident_id, earlier.origin_id
    FROM tieout.break b
    JOIN tieout.life f ON f.pipeline = %(pipeline)s AND f.consumer_group = %(consumer_group)s AND f.kind = 'break'
                      AND f.id = b.break_id
    JOIN tieout.life earlier ON earlier.pipeline = %(pipeline)s AND earlier.consumer_group = %(consumer_group)s
                            AND earlier.kind = 'incident' AND earlier.id = f.incident_id
    WHERE b.run_id = %(run_id)s AND f.incident_id <> b.incident_id AND f.seen_at < %(generated_at)s
    ORDER BY b.incident_id, earlier.first_seen_at, earlier.id
)
INSERT INTO tieout.life (
    pipeline, consumer_group, kind, id, class, severity, locus, cause, topic, partition, first_position, last_position,
    breaks, origin_id, first_run_id, first_seen_at, first_window_start, first_window_end, run_id, seen_at,
    window_start, window_end, is_news
)
SELECT r.pipeline, r.consumer_group, 'incident', i.incident_id, i.class, coalesce(i.severity, 'info'), i.locus, i.cause,
       i.topic, i.partition, i.first_position, i.last_position, i.breaks, coalesce(before.origin_id, i.incident_id),
       r.run_id, r.generated_at, r.window_start, r.window_end, r.run_id, r.generated_at, r.window_start, r.window_end,
       true
FROM tieout.incident i
JOIN tieout.run r ON r.run_id = i.run_id
LEFT JOIN before ON before.incident_id = i.incident_id
WHERE i.run_id = %(run_id)s
ON CONFLICT DO NOTHING

-- name: life_first
-- Windows may be published in any order: the first statement is the one generated first.
UPDATE tieout.life l
SET first_run_id = r.run_id, first_seen_at = r.generated_at, first_window_start = r.window_start,
    first_window_end = r.window_end
FROM tieout.run r, LATERAL (
    SELECT 'break' AS kind, b.break_id AS id FROM tieout.break b WHERE b.run_id = r.run_id
    UNION ALL SELECT 'incident', i.incident_id FROM tieout.incident i WHERE i.run_id = r.run_id
) seen
WHERE r.run_id = %(run_id)s AND l.pipeline = r.pipeline AND l.consumer_group = r.consumer_group
  AND l.kind = seen.kind AND l.id = seen.id AND l.first_seen_at > r.generated_at

-- name: life_see_breaks
-- A break is replayed if its message arrived, and was sent or read again by an announced act since the break was first seen.
UPDATE tieout.life l
SET class = b.class, severity = b.severity, locus = b.locus, cause = b.cause, topic = b.topic, partition = b.partition,
    incident_id = b.incident_id, message_id = b.message_id, msg_offset = b.msg_offset, run_id = r.run_id,
    seen_at = r.generated_at, window_start = r.window_start, window_end = r.window_end, is_absent = false,
    outcome = CASE
        WHEN b.settled IS NOT NULL AND l.first_run_id <> r.run_id AND (
            b.last_attempt_at > l.first_seen_at
            OR EXISTS (
                SELECT FROM unnest(%(replays)s::timestamptz[]) AS replayed (at)
                WHERE replayed.at BETWEEN l.first_seen_at AND r.generated_at
            )
            OR EXISTS (
                SELECT FROM tieout.replay_item i JOIN tieout.replay p USING (plan_id)
                WHERE i.break_id = l.id AND p.executed_at BETWEEN l.first_seen_at AND r.generated_at
            )
        ) THEN 'replayed'
        ELSE b.settled
    END
FROM tieout.break b JOIN tieout.run r ON r.run_id = b.run_id
WHERE b.run_id = %(run_id)s AND l.pipeline = r.pipeline AND l.consumer_group = r.consumer_group AND l.kind = 'break'
  AND l.id = b.break_id AND l.seen_at <= r.generated_at
  AND (l.run_id, l.class, l.severity, l.incident_id) IS DISTINCT FROM (r.run_id, b.class, b.severity, b.incident_id)

-- name: life_see_incidents
-- Its size is news where it passes a power of two: an incident is reported again when it doubles, not when it grows by 1.
UPDATE tieout.life l
SET class = i.class, severity = coalesce(i.severity, 'info'), locus = i.locus, cause = i.cause, topic = i.topic,
    partition = i.partition, first_position = i.first_position, last_position = i.last_position, breaks = i.breaks,
    run_id = r.run_id, seen_at = r.generated_at, window_start = r.window_start, window_end = r.window_end,
    is_absent = false, outcome = NULL,
    is_news = l.is_news OR floor(log(2, greatest(i.breaks, 1))) <> floor(log(2, greatest(l.breaks, 1)))
FROM tieout.incident i JOIN tieout.run r ON r.run_id = i.run_id
WHERE i.run_id = %(run_id)s AND l.pipeline = r.pipeline AND l.consumer_group = r.consumer_group
  AND l.kind = 'incident' AND l.id = i.incident_id AND l.seen_at <= r.generated_at

-- name: life_drop
-- A run that is published again with another statement keeps only what that statement has.
UPDATE tieout.life l SET is_absent = true, outcome = 'explained'
WHERE l.pipeline = %(pipeline)s AND l.consumer_group = %(consumer_group)s AND l.run_id = %(run_id)s AND NOT l.is_absent
  AND CASE l.kind
        WHEN 'break' THEN NOT EXISTS (SELECT FROM tieout.break b WHERE b.run_id = l.run_id AND b.break_id = l.id)
        ELSE NOT EXISTS (SELECT FROM tieout.incident i WHERE i.run_id = l.run_id AND i.incident_id = l.id)
      END

-- name: life_miss
-- A break is absent if later statements about its whole window, with at least its coverage, do not have it. If not all
-- breaks of such a statement are stored, this holds only for the breaks that were looked for in it.
WITH sighted AS MATERIALIZED (
    SELECT DISTINCT l.run_id, l.seen_at, l.window_start, l.window_end FROM tieout.life l
    WHERE l.pipeline = %(pipeline)s AND l.consumer_group = %(consumer_group)s AND NOT l.is_absent
      AND l.window_start < %(window_end)s AND l.window_end > %(window_start)s
), superseded AS MATERIALIZED (
    SELECT s.run_id, bool_and(NOT r.breaks_truncated) AS is_stored_whole,
           bool_and(r.breaks_read >= r.breaks_total) AS is_read_whole, min(r.published_at) AS published_at,
           bool_and(r.breaks_total <= (
               SELECT coalesce(sum(i.breaks), 0) FROM tieout.incident i WHERE i.run_id = r.run_id
           )) AS has_all_incidents,
           bool_or(effects.now > effects.before) AS has_more_effects
    FROM sighted s
    LEFT JOIN tieout.run sr ON sr.run_id = s.run_id
    JOIN tieout.run r ON r.pipeline = %(pipeline)s AND r.consumer_group = %(consumer_group)s AND r.is_current
                     AND r.run_id <> s.run_id AND r.window_start < s.window_end AND r.window_end > s.window_start
                     AND (r.generated_at > s.seen_at
                          OR (r.window_start = s.window_start AND r.window_end = s.window_end))
    CROSS JOIN LATERAL (
        SELECT sum(coalesce(rows.now, 0)) AS now, sum(coalesce(rows.before, rows.now, 0)) AS before
        FROM unnest(ARRAY['delivered', 'read']) AS ledger, LATERAL (
            SELECT (r.statement #>> ARRAY['coverage', ledger, 'rows'])::numeric AS now,
                   (sr.statement #>> ARRAY['coverage', ledger, 'rows'])::numeric AS before
        ) rows
    ) effects
    WHERE NOT EXISTS (
        SELECT FROM jsonb_each(sr.statement -> 'coverage') AS ledger
        WHERE (ledger.value ->> 'covers')::boolean
          AND NOT coalesce((r.statement #>> ARRAY['coverage', ledger.key, 'covers'])::boolean, false)
    )
    GROUP BY s.run_id, s.window_start, s.window_end
    HAVING range_agg(tstzrange(r.window_start, r.window_end)) @> tstzrange(s.window_start, s.window_end)
)
UPDATE tieout.life l
SET is_absent = true, outcome = CASE
    WHEN EXISTS (
        SELECT FROM tieout.replay_item i JOIN tieout.replay p USING (plan_id)
        WHERE i.break_id = l.id AND p.executed_at >= l.seen_at
    ) THEN 'replayed'
    WHEN s.has_more_effects THEN 'backfilled'
    ELSE 'explained'
END
FROM superseded s
WHERE l.pipeline = %(pipeline)s AND l.consumer_group = %(consumer_group)s AND NOT l.is_absent AND l.run_id = s.run_id
  AND CASE l.kind
        WHEN 'break' THEN s.is_stored_whole OR (s.is_read_whole AND l.followed_since < s.published_at)
        ELSE s.has_all_incidents
      END

-- name: life_settle_incidents
-- An incident has the outcome of most of its followed breaks. While one of them has none, it is open or continued.
WITH members AS MATERIALIZED (
    SELECT i.id, count(*) FILTER (WHERE l.outcome IS NULL) AS open,
           mode() WITHIN GROUP (ORDER BY l.outcome) AS outcome
    FROM tieout.life i
    JOIN tieout.break b ON b.run_id = i.run_id AND b.incident_id = i.id
    JOIN tieout.life l ON l.pipeline = i.pipeline AND l.consumer_group = i.consumer_group AND l.kind = 'break'
                      AND l.id = b.break_id
    WHERE i.pipeline = %(pipeline)s AND i.consumer_group = %(consumer_group)s AND i.kind = 'incident'
      AND i.window_start < %(window_end)s AND i.window_end > %(window_start)s
    GROUP BY i.id
)
UPDATE tieout.life i
SET outcome = CASE WHEN m.open = 0 THEN m.outcome WHEN i.is_absent THEN 'continued' END
FROM members m
WHERE i.pipeline = %(pipeline)s AND i.consumer_group = %(consumer_group)s AND i.kind = 'incident' AND i.id = m.id
  AND i.outcome IS DISTINCT FROM CASE WHEN m.open = 0 THEN m.outcome WHEN i.is_absent THEN 'continued' END

-- name: life_advance
-- The state follows from the evidence, or else from an acceptance that is still valid.
UPDATE tieout.life l
SET (state, reopenings, resolution, resolved_at, is_news) = (
    SELECT CASE
               WHEN due.resolution IS NOT NULL THEN 'resolved'
               WHEN l.state = 'resolved' OR l.reopenings > 0 THEN 'reopened'
               ELSE 'open'
           END,
           l.reopenings + (due.resolution IS NULL AND l.state = 'resolved')::integer,
           due.resolution,
           CASE WHEN due.resolution IS NOT NULL THEN %(at)s::timestamptz END,
           l.is_news OR l.kind = 'incident'
    FROM (SELECT coalesce(l.outcome, CASE WHEN l.accepted_until > %(now)s AND l.accepted_class = l.class
                                          THEN 'accepted' END)) AS due (resolution)
)
WHERE l.pipeline = %(pipeline)s AND l.consumer_group = %(consumer_group)s
  AND l.window_start < %(window_end)s AND l.window_end > %(window_start)s
  AND l.resolution IS DISTINCT FROM coalesce(
      l.outcome, CASE WHEN l.accepted_until > %(now)s AND l.accepted_class = l.class THEN 'accepted' END
  )

-- name: life_record
INSERT INTO tieout.life_event (
    pipeline, consumer_group, kind, id, at, run_id, state, resolution, class, severity, window_start, window_end
)
SELECT l.pipeline, l.consumer_group, l.kind, l.id, %(at)s, %(run_id)s, l.state, l.resolution, l.class, l.severity,
       l.window_start, l.window_end
FROM tieout.life l
LEFT JOIN LATERAL (
    SELECT e.state, e.resolution, e.class, e.severity FROM tieout.life_event e
    WHERE md5(e.id) = md5(l.id) AND e.id = l.id AND e.pipeline = l.pipeline AND e.consumer_group = l.consumer_group
      AND e.kind = l.kind
    ORDER BY e.event_id DESC LIMIT 1
) last ON true
WHERE l.pipeline = %(pipeline)s AND l.consumer_group = %(consumer_group)s
  AND l.window_start < %(window_end)s AND l.window_end > %(window_start)s
  AND (last.state, last.resolution, last.class, last.severity) IS DISTINCT FROM
      (l.state, l.resolution, l.class, l.severity)
ORDER BY l.kind, l.id

-- name: expired_acceptances
SELECT pipeline, consumer_group, min(window_start) AS window_start, max(window_end) AS window_end
FROM tieout.life
WHERE resolution = 'accepted' AND accepted_until <= %(now)s
  AND (%(pipeline)s::text IS NULL OR pipeline = %(pipeline)s)
GROUP BY pipeline, consumer_group

-- name: open_lives
-- Age: how many windows were judged that begin after the break's own.
WITH page AS (
    SELECT * FROM tieout.life l
    WHERE l.pipeline = %(pipeline)s AND l.kind = %(kind)s AND l.state <> 'resolved'
      AND (%(after)s::text IS NULL OR (l.window_start, l.id) > (
          SELECT a.window_start, a.id FROM tieout.life a
          WHERE a.pipeline = %(pipeline)s AND a.kind = %(kind)s AND a.id = %(after)s
          LIMIT 1
      ))
    ORDER BY l.window_start, l.id LIMIT %(limit)s
), aged AS (
    SELECT DISTINCT ON (p.consumer_group, p.window_end) p.consumer_group, p.window_end, later.windows
    FROM page p CROSS JOIN LATERAL (
        SELECT count(*) AS windows FROM tieout.run r
        WHERE r.pipeline = %(pipeline)s AND r.consumer_group = p.consumer_group AND r.is_current
          AND r.window_start >= p.window_end
    ) later
)
SELECT page.*, aged.windows AS age_in_windows FROM page JOIN aged USING (consumer_group, window_end)
ORDER BY page.window_start, page.id

-- name: open_hops
-- The latest 1,000 incidents of contracts with a hop before; older ones are not counted.
SELECT l.run_id, l.id FROM tieout.life l JOIN tieout.run r USING (run_id)
WHERE l.pipeline = %(pipeline)s AND l.kind = 'incident' AND l.state <> 'resolved'
  AND l.class = ANY(%(classes)s::text[]) AND r.contract -> 'after' IS NOT NULL
ORDER BY l.window_start DESC, l.id LIMIT 1000

-- name: lives
SELECT l.*, (
    SELECT count(*) FROM tieout.run r
    WHERE r.pipeline = l.pipeline AND r.consumer_group = l.consumer_group AND r.is_current
      AND r.window_start >= l.window_end AND r.window_end <= coalesce(l.resolved_at, 'infinity')
) AS age_in_windows
FROM tieout.life l WHERE l.id = %(id)s AND l.kind = %(kind)s
ORDER BY l.pipeline, l.consumer_group

-- name: life_history
-- Changes of a break, and acts on it and its incidents. At equal times acts come first: their names sort before s.
WITH incidents AS (
    SELECT DISTINCT b.incident_id FROM tieout.break b WHERE b.break_id = %(id)s AND b.incident_id IS NOT NULL
    UNION SELECT l.incident_id FROM tieout.life l
    WHERE l.id = %(id)s AND l.incident_id IS NOT NULL
)
SELECT e.at, 'statement' AS what, e.run_id, e.state, e.resolution, e.class AS class_name, e.severity, e.window_start,
       e.window_end, NULL AS who, NULL AS reason, NULL::timestamptz AS expires_at, e.event_id AS place
FROM tieout.life_event e WHERE md5(e.id) = md5(%(id)s) AND e.id = %(id)s
UNION ALL
SELECT a.made_at, a.act, NULL, NULL, NULL, NULL, NULL, NULL, NULL, a.who, a.reason, a.expires_at, a.act_id
FROM tieout.act a
WHERE a.id = %(id)s OR (a.kind = 'incident' AND a.id IN (SELECT incident_id FROM incidents))
ORDER BY at, what, place

-- name: earlier_windows
-- Open: a message is in flight, lost or unverifiable, so later evidence may change its class.
SELECT r.run_id, r.window_start, r.window_end, r.generated_at, r.contract_digest, r.checked_at IS NOT NULL AS is_checked,
       r.statement -> 'coverage' AS coverage, r.statement -> 'message_rows' AS message_rows,
       r.verdict IN ('PENDING', 'UNKNOWN') OR EXISTS (
           SELECT FROM tieout.statement_count c
           WHERE c.run_id = r.run_id AND c.count > 0 AND c.name = ANY(%(open_classes)s)
       ) OR EXISTS (
           SELECT FROM tieout.statement_partition p WHERE p.run_id = r.run_id AND p.in_flight + p.lost + p.unverifiable > 0
       ) AS is_open
FROM tieout.run r
WHERE r.pipeline = %(pipeline)s AND r.consumer_group = %(consumer_group)s AND r.is_current
  AND r.window_end <= %(before)s AND r.window_end > %(since)s
ORDER BY r.generated_at, r.window_start

-- name: accept_lives
UPDATE tieout.life SET accepted_until = %(expires_at)s, accepted_class = class
WHERE pipeline = %(pipeline)s AND consumer_group = %(consumer_group)s AND outcome IS NULL
  AND ((kind = %(kind)s AND id = ANY(%(ids)s))
       OR (kind = 'break' AND %(kind)s = 'incident' AND incident_id = ANY(%(ids)s)))
RETURNING kind, id, window_start, window_end

-- name: reopen_lives
UPDATE tieout.life SET accepted_until = NULL, accepted_class = NULL
WHERE pipeline = %(pipeline)s AND consumer_group = %(consumer_group)s AND accepted_until IS NOT NULL
  AND ((kind = %(kind)s AND id = ANY(%(ids)s))
       OR (kind = 'break' AND %(kind)s = 'incident' AND incident_id = ANY(%(ids)s)))
RETURNING kind, id, window_start, window_end

-- name: known_lives
SELECT id, state, resolution FROM tieout.life
WHERE pipeline = %(pipeline)s AND consumer_group = %(consumer_group)s AND kind = %(kind)s AND id = ANY(%(ids)s)

-- name: write_acts
INSERT INTO tieout.act (pipeline, consumer_group, act, kind, id, who, reason, expires_at) VALUES %s

-- name: silences
-- The latest act on a pipeline, or on one of its incidents, is valid.
SELECT * FROM (
    SELECT DISTINCT ON (a.pipeline, a.id) a.pipeline, a.id AS incident_id, a.who, a.reason, a.made_at, a.expires_at
    FROM tieout.act a WHERE a.act = 'silence' AND (%(pipeline)s::text IS NULL OR a.pipeline = %(pipeline)s)
    ORDER BY a.pipeline, a.id, a.act_id DESC
) latest WHERE expires_at > clock_timestamp()
ORDER BY pipeline, incident_id NULLS FIRST

-- name: has_pipeline
SELECT EXISTS (SELECT FROM tieout.run WHERE pipeline = %(pipeline)s) AS is_known

-- name: incident_news
SELECT l.*, NULL::bigint AS age_in_windows FROM tieout.life l
WHERE l.pipeline = %(pipeline)s AND l.is_news AND l.kind = 'incident' AND l.id <> ALL(%(held)s)
ORDER BY CASE l.severity WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, l.breaks DESC, l.id
LIMIT %(limit)s

-- name: mark_alerted
-- Only if unchanged since it was read: later changes are still news.
UPDATE tieout.life SET is_news = false
WHERE pipeline = %(pipeline)s AND consumer_group = %(consumer_group)s AND kind = 'incident' AND id = %(id)s
  AND (state, reopenings, class, breaks) = (%(state)s, %(reopenings)s, %(class)s, %(breaks)s)
  AND resolution IS NOT DISTINCT FROM %(resolution)s

-- name: pipelines
SELECT DISTINCT pipeline FROM tieout.run ORDER BY pipeline

-- name: pipeline_summaries
SELECT p.pipeline, current.consumer_group, current.window_start, current.window_end, current.verdict,
       current.final_verdict, current.generated_at,
       (SELECT count(*) FROM tieout.life l
        WHERE l.pipeline = p.pipeline AND l.kind = 'break' AND l.state <> 'resolved') AS open_breaks,
       (SELECT count(*) FROM tieout.life l
        WHERE l.pipeline = p.pipeline AND l.kind = 'incident' AND l.state <> 'resolved') AS open_incidents,
       (SELECT min(l.window_start) FROM tieout.life l
        WHERE l.pipeline = p.pipeline AND l.kind = 'break' AND l.state <> 'resolved') AS oldest_open,
       (SELECT count(*) FROM tieout.life l
        WHERE l.pipeline = p.pipeline AND l.kind = 'break' AND l.resolution = 'accepted') AS accepted_breaks,
       (SELECT count(*) FROM tieout.run r WHERE r.pipeline = p.pipeline AND r.is_current
          AND coalesce(r.final_verdict, r.verdict) = 'PENDING') AS pending_windows
FROM (SELECT DISTINCT pipeline FROM tieout.run
      WHERE %(pipeline)s::text IS NULL OR pipeline = %(pipeline)s) p
CROSS JOIN LATERAL (
    SELECT r.consumer_group, r.window_start, r.window_end, r.verdict, r.final_verdict, r.generated_at
    FROM tieout.run r WHERE r.pipeline = p.pipeline AND r.is_current
    ORDER BY r.window_start DESC, r.published_at DESC LIMIT 1
) current
ORDER BY p.pipeline
