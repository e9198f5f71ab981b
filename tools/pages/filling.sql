-- A year of hourly windows of several pipelines and a run of a million breaks; filling.py fills in what is in braces.

CREATE TEMP TABLE judged AS
SELECT ('00000000-0000-0000-' || lpad(to_hex(p), 4, '0') || '-' || lpad(to_hex(h), 12, '0'))::uuid AS run_id, p, h,
       'pipeline_' || lpad(p::text, 2, '0') AS pipeline, '{now}'::timestamptz - (h + 1) * interval '1 hour' AS start,
       CASE WHEN h % 50 = 7 THEN 'BROKEN' WHEN h % 400 = 3 THEN 'UNKNOWN' WHEN h = 0 THEN 'PENDING' ELSE 'KEPT' END AS verdict
FROM generate_series(0, {pipelines} - 1) AS p, generate_series(0, {windows} - 1) AS h
WHERE h % 1000 <> 500;

INSERT INTO judged VALUES ('{million}', 0, -1, 'pipeline_00', '{now}'::timestamptz, 'BROKEN');

-- The large run judges as many offsets of each partition as it has breaks, after those of the windows before it.
INSERT INTO tieout.statement_partition
SELECT run_id, 'payments', n, sent, sent, 0, 0, sent, 0, sent, 0, 0, arrived, 0, 0, 0, lost, sent - arrived - lost, 0,
       arrived, arrived, 0, 0, 0, 0,
       jsonb_build_object('from', (8760 - h) * 1000, 'to', (8760 - h) * 1000 + sent, 'control', 0, 'aborted', 0, 'open', 0,
           'unattempted', 0, 'unverifiable', 0, 'duplicate', 0, 'delivered', arrived, 'dead_lettered', 0, 'filtered', 0,
           'compacted', 0, 'lost', lost, 'in_flight', sent - arrived - lost, 'expired', 0)
FROM judged, generate_series(0, 11) AS n,
     LATERAL (SELECT CASE h WHEN -1 THEN {breaks} ELSE 1000 END AS sent,
                     CASE WHEN h = -1 THEN {breaks} / 12 WHEN verdict = 'BROKEN' THEN 2 ELSE 0 END AS lost) AS l,
     LATERAL (SELECT CASE h WHEN -1 THEN sent - lost ELSE 998 END AS arrived) AS m;

INSERT INTO tieout.run (run_id, pipeline, consumer_group, window_start, window_end, guarantee, contract_digest, contract,
    verdict, final_verdict, reasons, statement, breaks_total, breaks_truncated, dag_id, dag_run_id, try_number,
    tieout_version, generated_at, published_at, checked_at, is_current)
SELECT run_id, pipeline, 'settlement', start, start + interval '1 hour', 'exactly_once', md5(pipeline),
       jsonb_build_object('pipeline', pipeline, 'schedule', '0 * * * *', 'grace', '15m', 'guarantee', 'exactly_once'),
       verdict, verdict, CASE verdict WHEN 'KEPT' THEN '[]' ELSE '["24 messages lost"]' END::jsonb,
       jsonb_build_object('partitions', parts, 'latency', jsonb_build_object('p50_s', 0.2 + random(), 'p95_s', 1 + random(),
           'p99_s', 2 + random()), 'coverage', jsonb_build_object('produced', coverage, 'log', coverage, 'delivered', coverage),
           'classes', jsonb_build_object('LOST', 24, 'LATE', greatest(h, 0) % 7), 'flags', '{{}}'::jsonb,
           'budgets', '{{}}'::jsonb, 'checks', '[]'::jsonb, 'not_judged', '[]'::jsonb, 'incidents', CASE h WHEN -1 THEN (
               SELECT jsonb_agg(jsonb_build_object('incident_id', 'incident-' || i, 'class', 'LOST', 'topic', 'payments',
                   'first_position', {first} + i * 20, 'last_position', {first} + i * 20 + 19, 'breaks', 20))
               FROM generate_series(0, {breaks} / 20 - 1) AS i) ELSE '[]'::jsonb END),
       CASE h WHEN -1 THEN {breaks} ELSE 24 END, false, pipeline, 'scheduled__' || h, 1, '0.1.0',
       start + interval '2 hours', start + interval '2 hours', start + interval '2 hours', true
FROM judged JOIN LATERAL (
    SELECT jsonb_agg(to_jsonb(s) - 'run_id' ORDER BY partition) AS parts FROM tieout.statement_partition AS s
    WHERE s.run_id = judged.run_id
) AS p ON true, LATERAL (
    SELECT jsonb_build_object('covers', true, 'complete_until', start + interval '90 minutes', 'rows', 12000, 'unparsed', 0,
        'notes', '[]'::jsonb, 'digests', (SELECT jsonb_agg(md5(i::text || h)) FROM generate_series(1, 12) AS i)) AS coverage
) AS c;

INSERT INTO tieout.statement_count SELECT run_id, 'class', 'LATE', h % 7 FROM judged WHERE h >= 0;
INSERT INTO tieout.statement_count SELECT run_id, 'class', 'DELIVERED', 11976 FROM judged;

INSERT INTO tieout.incident
SELECT run_id, 'incident-' || i, CASE i % 3 WHEN 0 THEN 'LOST' ELSE 'COMMIT_AHEAD' END, 'consumer', 'commit before process',
       'payments', i, to_jsonb(i * 10), to_jsonb(i * 10 + 7), 8, 'critical'
FROM judged, generate_series(0, 2) AS i WHERE verdict = 'BROKEN' AND h >= 0;
INSERT INTO tieout.incident
SELECT '{million}', 'incident-' || i, 'LOST', 'consumer', 'commit before process', 'payments', i % 12, to_jsonb({first} + i * 20),
       to_jsonb({first} + i * 20 + 19), 20, 'critical'
FROM generate_series(0, {breaks} / 20 - 1) AS i;
INSERT INTO tieout.break
SELECT '{million}', lpad(to_hex(i), 32, '0'), 'incident-' || i / 20, CASE i % 5 WHEN 0 THEN 'LATE' ELSE 'LOST' END, '[]',
       'message-' || i, 'p1', 'payments', i / 20 % 12, {first} + i,
       jsonb_build_array(jsonb_build_object('topic', 'payments', 'partition', i / 20 % 12, 'offset', {first} + i)),
       'consumer', 'commit before process', NULL, 'lost', 'critical',
       jsonb_build_object('produced', jsonb_build_array(jsonb_build_object('message_id', 'message-' || i, 'outcome', 'acked',
           'attempted_at', '{now}', 'completed_at', '{now}', 'payload_hash', md5(i::text), 'key_hash', md5('key-' || i % 5000),
           'topic', 'payments', 'partition', i / 20 % 12, 'offset', {first} + i)))
FROM generate_series(0, {breaks} - 1) AS i;

INSERT INTO tieout.life (pipeline, consumer_group, kind, id, class, severity, topic, partition, first_position,
    last_position, breaks, origin_id, first_run_id, first_seen_at, first_window_start, first_window_end, run_id, seen_at,
    window_start, window_end)
SELECT pipeline, consumer_group, 'incident', incident_id, class, severity, topic, partition, first_position, last_position,
       breaks, incident_id, run_id, generated_at, window_start, window_end, run_id, generated_at, window_start, window_end
FROM tieout.incident JOIN tieout.run USING (run_id)
ON CONFLICT DO NOTHING;
