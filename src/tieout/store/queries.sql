-- Every statement that the store sends, by name, but those of life.sql; %(name)s are parameters. Lines that start with -- are not sent.

-- name: session
-- A client that is gone is noticed while its statement runs, so that it does not keep its locks.
SELECT set_config('TimeZone', 'UTC', false),
       set_config('statement_timeout', %(statement_timeout)s, false),
       set_config('lock_timeout', %(lock_timeout)s, false),
       set_config('idle_in_transaction_session_timeout', %(idle_timeout)s, false),
       set_config('client_connection_check_interval', '2s', false)

-- name: lock
SELECT pg_advisory_xact_lock(%(key)s)

-- name: set_lock_timeout
SELECT set_config('lock_timeout', %(lock_timeout)s, true)

-- name: what_exists
SELECT current_setting('server_version_num')::integer AS server_version,
       to_regnamespace('tieout') IS NOT NULL AS has_schema,
       to_regclass('tieout.schema_migration') IS NOT NULL AS has_migration_table

-- name: create_schema
CREATE SCHEMA tieout

-- name: create_migration_table
CREATE TABLE tieout.schema_migration (
    version integer PRIMARY KEY CHECK (version > 0),
    name text NOT NULL,
    digest text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE tieout.schema_migration IS 'Which migrations this database has, and of which content.'

-- name: applied_migrations
SELECT version, name, digest FROM tieout.schema_migration ORDER BY version

-- name: record_migration
INSERT INTO tieout.schema_migration (version, name, digest) VALUES (%(version)s, %(name)s, %(digest)s)

-- name: same_statement
-- When a statement was generated is the only thing that may differ between two publications of one run.
SELECT is_current FROM tieout.run
WHERE run_id = %(run_id)s AND statement - 'generated_at' = %(statement)s::jsonb - 'generated_at'

-- name: current_of_window
SELECT run_id, generated_at, statement -> 'coverage' AS coverage FROM tieout.run
WHERE pipeline = %(pipeline)s AND consumer_group = %(consumer_group)s
  AND window_start = %(window_start)s AND window_end = %(window_end)s
  AND is_current AND run_id <> %(run_id)s
FOR UPDATE

-- name: write_run
INSERT INTO tieout.run (
    run_id, pipeline, consumer_group, window_start, window_end, guarantee, contract_digest, contract, verdict, reasons,
    statement, breaks_total, breaks_truncated, dag_id, dag_run_id, try_number, tieout_version, generated_at
) VALUES (
    %(run_id)s, %(pipeline)s, %(consumer_group)s, %(window_start)s, %(window_end)s, %(guarantee)s, %(contract_digest)s,
    %(contract)s, %(verdict)s, %(reasons)s, %(statement)s, %(breaks_total)s, %(breaks_truncated)s, %(dag_id)s,
    %(dag_run_id)s, %(try_number)s, %(tieout_version)s, %(generated_at)s
)
ON CONFLICT (run_id) DO UPDATE SET (
    pipeline, consumer_group, window_start, window_end, guarantee, contract_digest, contract, verdict, final_verdict,
    reasons, statement, breaks_total, breaks_truncated, dag_id, dag_run_id, try_number, tieout_version, generated_at,
    published_at, checked_at, is_current
) = (
    excluded.pipeline, excluded.consumer_group, excluded.window_start, excluded.window_end, excluded.guarantee,
    excluded.contract_digest, excluded.contract, excluded.verdict, NULL, excluded.reasons, excluded.statement,
    excluded.breaks_total, excluded.breaks_truncated, excluded.dag_id, excluded.dag_run_id, excluded.try_number,
    excluded.tieout_version, excluded.generated_at, now(), NULL, false
)

-- name: clear_run
DELETE FROM tieout.statement_partition WHERE run_id = %(run_id)s;
DELETE FROM tieout.statement_count WHERE run_id = %(run_id)s;
DELETE FROM tieout.incident WHERE run_id = %(run_id)s;
DELETE FROM tieout.break WHERE run_id = %(run_id)s;
DELETE FROM tieout.check_result WHERE run_id = %(run_id)s

-- name: write_partitions
INSERT INTO tieout.statement_partition (
    run_id, topic, partition, attempts, acked_attempts, failed_attempts, unknown_attempts, messages, resends, accepted,
    unproven, failed, delivered, filtered, dead_lettered, compacted, lost, in_flight, unverifiable, effects,
    first_effects, further_effects, phantom_effects, unverifiable_effects, unexplained, offsets
) VALUES %s

-- name: write_counts
INSERT INTO tieout.statement_count (run_id, kind, name, count) VALUES %s

-- name: write_breaks
INSERT INTO tieout.break (
    run_id, break_id, incident_id, class, flags, message_id, producer_id, topic, partition, msg_offset, positions, locus,
    cause, admissible, rule, severity, evidence, last_attempt_at
) VALUES %s

-- name: write_incidents
INSERT INTO tieout.incident (
    run_id, incident_id, class, locus, cause, topic, partition, first_position, last_position, breaks, severity,
    message_ids, earlier_ids
) VALUES %s

-- name: mark_truncated
UPDATE tieout.run SET breaks_truncated = true WHERE run_id = %(run_id)s

-- name: make_current
UPDATE tieout.run SET is_current = false
WHERE pipeline = %(pipeline)s AND consumer_group = %(consumer_group)s
  AND window_start = %(window_start)s AND window_end = %(window_end)s AND is_current AND run_id <> %(run_id)s;
UPDATE tieout.run SET is_current = true WHERE run_id = %(run_id)s

-- name: run
SELECT run_id, pipeline, consumer_group, window_start, window_end, guarantee, contract_digest, verdict, final_verdict,
       reasons, breaks_total, breaks_truncated, dag_id, dag_run_id, try_number, tieout_version, generated_at,
       published_at, checked_at, is_current, statement, contract
FROM tieout.run WHERE run_id = %(run_id)s

-- name: current_run
-- A pipeline whose group was renamed has one current run per group: return the one published later.
SELECT run_id, pipeline, consumer_group, window_start, window_end, guarantee, contract_digest, verdict, final_verdict,
       reasons, breaks_total, breaks_truncated, dag_id, dag_run_id, try_number, tieout_version, generated_at,
       published_at, checked_at, is_current, statement, contract
FROM tieout.run
WHERE pipeline = %(pipeline)s AND window_start = %(window_start)s AND window_end = %(window_end)s AND is_current
ORDER BY published_at DESC LIMIT 1

-- name: runs_of
SELECT run_id, pipeline, consumer_group, window_start, window_end, guarantee, contract_digest, verdict, final_verdict,
       reasons, breaks_total, breaks_truncated, dag_id, dag_run_id, try_number, tieout_version, generated_at,
       published_at, checked_at, is_current
FROM tieout.run WHERE pipeline = %(pipeline)s
ORDER BY window_start DESC, published_at DESC, run_id LIMIT %(limit)s

-- name: statements_between
-- The parts of each statement that a period report shows, with at most 100 incidents.
SELECT pipeline, window_start, verdict, final_verdict, contract -> 'active' AS active,
       (statement - 'incidents' - 'not_judged' - 'checks') || jsonb_build_object(
           'incidents', jsonb_path_query_array(statement, '$.incidents[0 to 99]'),
           'incidents_found', jsonb_array_length(statement -> 'incidents')
       ) AS statement
FROM tieout.run
WHERE is_current AND window_start < %(end)s AND window_end > %(start)s
  AND (%(pipeline)s::text IS NULL OR pipeline = %(pipeline)s)
ORDER BY pipeline, consumer_group, window_start

-- name: incidents
SELECT incident_id, class AS class_name, locus, cause, topic, partition, first_position, last_position, breaks, severity
FROM tieout.incident WHERE run_id = %(run_id)s
ORDER BY CASE severity WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, breaks DESC, incident_id
LIMIT %(limit)s

-- name: breaks
SELECT break_id, incident_id, class AS class_name, flags, message_id, producer_id, topic, partition, msg_offset,
       positions, locus, cause, admissible, rule, severity, evidence
FROM tieout.break WHERE run_id = %(run_id)s
ORDER BY CASE severity WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, class, topic, partition, msg_offset,
         break_id
LIMIT %(limit)s

-- name: checks
SELECT rule, severity, status, observed, limit_text FROM tieout.check_result
WHERE run_id = %(run_id)s ORDER BY place

-- name: clear_checks
DELETE FROM tieout.check_result WHERE run_id = %(run_id)s

-- name: finish_run
UPDATE tieout.run SET final_verdict = %(final_verdict)s, checked_at = now() WHERE run_id = %(run_id)s

-- name: write_checks
INSERT INTO tieout.check_result (
    run_id, place, rule, severity, status, observed, limit_text, suite, suite_digest, gx_version, checked_at
) VALUES %s

-- name: enqueue_alert
-- A closing alert goes only to receivers that got, or may have got, an opening alert of its thread.
INSERT INTO tieout.alert (
    dedup_key, pipeline, window_start, window_end, run_id, kind, severity, route_to, connection, thread, is_closing,
    payload
)
SELECT %(dedup_key)s, %(pipeline)s, %(window_start)s, %(window_end)s, %(run_id)s, %(kind)s, %(severity)s, %(route_to)s,
       %(connection)s, %(thread)s, %(is_closing)s, %(payload)s
WHERE NOT %(is_closing)s OR EXISTS (
    SELECT FROM tieout.alert a
    WHERE md5(a.thread) = md5(%(thread)s) AND a.thread = %(thread)s AND a.route_to = %(route_to)s
      AND a.connection = %(connection)s AND NOT a.is_closing AND a.attempts > 0
)
ON CONFLICT (dedup_key) DO NOTHING

-- name: supersede_alerts
UPDATE tieout.alert a SET status = 'superseded'
WHERE md5(a.thread) = md5(%(thread)s) AND a.thread = %(thread)s AND a.route_to = %(route_to)s
  AND a.connection = %(connection)s AND a.status = 'pending' AND a.dedup_key <> %(dedup_key)s

-- name: bury_alerts
-- An alert whose every worker died while it was sending is given up too: it may be what kills them.
UPDATE tieout.alert
SET status = 'dead', leased_until = NULL, last_error = coalesce(last_error || '; then ', '') || 'the sender died'
WHERE alert_id IN (
    SELECT alert_id FROM tieout.alert
    WHERE status = 'sending' AND leased_until <= clock_timestamp() AND attempts >= %(max_attempts)s
    FOR UPDATE SKIP LOCKED
)

-- name: claim_alerts
-- At most one worker holds an alert at a time: rows that another is claiming are passed over. So are silenced ones.
UPDATE tieout.alert
SET status = 'sending', attempts = attempts + 1, leased_until = clock_timestamp() + %(lease)s
WHERE alert_id IN (
    SELECT alert_id FROM tieout.alert
    WHERE status IN ('pending', 'sending') AND coalesce(leased_until, next_attempt_at) <= clock_timestamp()
      AND (%(pipeline)s::text IS NULL OR pipeline = %(pipeline)s)
      AND NOT EXISTS (
          SELECT FROM (
              SELECT DISTINCT ON (a.pipeline, a.id) a.id, a.expires_at FROM tieout.act a
              WHERE a.act = 'silence' AND a.pipeline = alert.pipeline ORDER BY a.pipeline, a.id, a.act_id DESC
          ) silence
          WHERE silence.expires_at > clock_timestamp() AND (
              silence.id IS NULL OR silence.id = alert.thread OR EXISTS (
                  SELECT FROM tieout.life l
                  WHERE l.id = silence.id AND l.kind = 'incident' AND l.origin_id = alert.thread
              )
          )
      )
    ORDER BY coalesce(leased_until, next_attempt_at), alert_id
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
RETURNING alert_id, attempts, dedup_key, pipeline, window_start, window_end, run_id, kind, severity, route_to,
          connection, thread, is_closing, payload, created_at

-- name: mark_sent
-- From any claim: a worker that outlived its lease has sent the alert all the same.
UPDATE tieout.alert
SET status = 'sent', sent_at = clock_timestamp(), leased_until = NULL, last_error = NULL
WHERE alert_id = %(alert_id)s AND status <> 'sent'

-- name: mark_failed
-- Only for the claim that failed: a later one is not disturbed.
UPDATE tieout.alert
SET status = CASE WHEN %(is_final)s THEN 'dead' ELSE 'pending' END, leased_until = NULL, last_error = %(error)s,
    next_attempt_at = clock_timestamp() + %(backoff)s
WHERE alert_id = %(alert_id)s AND status = 'sending' AND attempts = %(attempt)s

-- name: pending_alerts
SELECT count(*) AS pending FROM tieout.alert
WHERE status IN ('pending', 'sending') AND (%(pipeline)s::text IS NULL OR pipeline = %(pipeline)s)

-- name: judged_windows
SELECT run_id, consumer_group AS "group", window_start, window_end, contract_digest, published_at,
       final_verdict IS NOT NULL AS is_checked,
       EXISTS (
           SELECT FROM tieout.run AS later
           WHERE later.pipeline = run.pipeline AND later.consumer_group = run.consumer_group
             AND later.window_start = run.window_start AND later.window_end = run.window_end
             AND later.generated_at > run.generated_at
       ) AS has_later_run
FROM tieout.run
WHERE pipeline = %(pipeline)s AND is_current AND window_end > %(since)s
ORDER BY window_start, window_end, consumer_group

-- name: audited_since
-- The first window that the timetable had judged, or that was reported as missing; null where there is none. A window
-- that a person requested by its bounds may lie anywhere, and says nothing about the windows after it.
SELECT least(
    (SELECT min(window_start) FROM tieout.run
     WHERE pipeline = %(pipeline)s AND is_current AND dag_run_id ~ '^(scheduled|backfill)__'),
    (SELECT min(window_start) FROM tieout.alert WHERE pipeline = %(pipeline)s AND kind = 'window_gap')
) AS since

-- name: contract_versions
SELECT DISTINCT ON (contract_digest) contract_digest, contract
FROM tieout.run WHERE pipeline = %(pipeline)s AND is_current ORDER BY contract_digest

-- name: last_contracts
SELECT DISTINCT ON (pipeline) pipeline, contract, window_end
FROM tieout.run WHERE is_current ORDER BY pipeline, window_start DESC, published_at DESC

-- name: open_gap_alerts
SELECT alert_id, dedup_key, pipeline, window_start, window_end, run_id, kind, severity, route_to, connection, thread,
       is_closing, payload
FROM tieout.alert AS opened
WHERE pipeline = %(pipeline)s AND kind = 'window_gap'
  AND NOT EXISTS (SELECT FROM tieout.alert AS closed WHERE closed.dedup_key = opened.dedup_key || '|closed')
ORDER BY alert_id

-- name: update_gap_alert
-- A sent alert is not sent again; a waiting one is sent as it is now. The span never shrinks: a half-closed gap is still
-- the gap that was reported.
UPDATE tieout.alert
SET payload = %(payload)s, window_start = least(window_start, %(window_start)s),
    window_end = greatest(window_end, %(window_end)s)
WHERE alert_id = %(alert_id)s

-- name: count_alerts_like
SELECT count(*) AS alerts FROM tieout.alert WHERE starts_with(dedup_key, %(prefix)s) AND kind = 'window_gap'

-- name: delete_superseded_runs
-- Only runs that are not current in their window; their rows in other tables are deleted with them.
DELETE FROM tieout.run WHERE run_id IN (
    SELECT run_id FROM tieout.run
    WHERE NOT is_current AND published_at < %(before)s
    ORDER BY published_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)

-- name: delete_expired_breaks
-- The run, its statement, its incidents and its checks stay.
DELETE FROM tieout.break WHERE (run_id, break_id) IN (
    SELECT run_id, break_id FROM tieout.break JOIN tieout.run USING (run_id)
    WHERE window_end < %(before)s LIMIT %(limit)s FOR UPDATE OF break SKIP LOCKED
)

-- name: write_replay
INSERT INTO tieout.replay (
    plan_id, run_id, pipeline, consumer_group, incident_id, target, digest, approved_by, dag_run_id
) VALUES (
    %(plan_id)s, %(run_id)s, %(pipeline)s, %(group)s, %(incident_id)s, %(target)s, %(digest)s, %(approved_by)s,
    %(dag_run_id)s
)
ON CONFLICT (plan_id) DO NOTHING

-- name: write_replay_items
INSERT INTO tieout.replay_item (idempotence_key, plan_id, break_id, kind, message_id) VALUES %s
ON CONFLICT (idempotence_key) DO NOTHING
RETURNING idempotence_key

-- name: replayed_breaks
SELECT DISTINCT break_id FROM tieout.replay_item WHERE break_id = ANY (%(break_ids)s)

-- name: replayed
SELECT idempotence_key, plan_id, executed_at FROM tieout.replay_item JOIN tieout.replay USING (plan_id)
WHERE idempotence_key = ANY (%(keys)s)
