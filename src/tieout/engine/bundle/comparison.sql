-- Compares the result of the evidence (found) with statement.json and breaks.parquet (stated), one row per number.
-- Needs the tables that the rounds hand out, and breaks.
CREATE TABLE statement AS SELECT json AS doc FROM read_json_objects('statement.json');

CREATE MACRO stated_numbers(path) AS TABLE
SELECT n.key AS subject, n.value::VARCHAR AS stated
FROM statement AS s, json_each(s.doc, path) AS n
WHERE n.type IN ('UBIGINT', 'BIGINT');

CREATE TABLE stated_partitions AS
SELECT concat(p.value->>'$.topic', '-', p.value->>'$.partition') AS place, p.value AS doc
FROM statement AS s, json_each(s.doc, '$.partitions') AS p;

-- Numbers: what a statement leaves out is zero.
CREATE TABLE stated AS
SELECT 'class' AS part, subject, stated FROM stated_numbers('$.classes')
UNION ALL SELECT 'flag', subject, stated FROM stated_numbers('$.flags')
UNION ALL SELECT 'undecided', subject, stated FROM stated_numbers('$.undecided')
UNION ALL
SELECT 'partition', concat(p.place, ' ', n.key), n.value::VARCHAR
FROM stated_partitions AS p, json_each(p.doc) AS n
WHERE n.key NOT IN ('topic', 'partition', 'offsets', 'unexplained')
UNION ALL
SELECT 'offsets', concat(p.place, ' ', n.key), n.value::VARCHAR
FROM stated_partitions AS p, json_each(p.doc, '$.offsets') AS n
WHERE p.doc->>'$.offsets' IS NOT NULL
UNION ALL
SELECT 'latency', n.key, CASE WHEN n.key IN ('count', 'sample') THEN n.value::VARCHAR
    ELSE round(n.value::DOUBLE * 1000000)::BIGINT::VARCHAR END
FROM statement AS s, json_each(s.doc, '$.latency') AS n
WHERE n.type <> 'NULL'
UNION ALL
SELECT 'incident', i.value->>'$.incident_id', concat_ws(' ', i.value->>'$.class', i.value->>'$.locus',
    i.value->>'$.cause', i.value->>'$.topic', i.value->>'$.partition', i.value->>'$.first_position',
    i.value->>'$.last_position', i.value->>'$.breaks')
FROM statement AS s, json_each(s.doc, '$.incidents') AS i
UNION ALL SELECT 'total', 'breaks', s.doc->>'$.breaks_total' FROM statement AS s
UNION ALL SELECT 'total', 'rows of breaks.parquet', s.doc->>'$.breaks_total' FROM statement AS s
UNION ALL
SELECT 'break', break_id, concat_ws(' ', class, array_to_string(list_sort(flags), '+'), message_id, topic,
    "partition", "offset", locus, cause, incident_id)
FROM 'breaks.parquet';

CREATE TABLE found AS
SELECT 'class' AS part, class AS subject, sum(count)::BIGINT::VARCHAR AS found FROM tally GROUP BY class
UNION ALL
SELECT 'flag', held, sum(count)::BIGINT::VARCHAR
FROM (SELECT unnest(held) AS held, count FROM tally)
WHERE held NOT IN ('DELIVERED', 'RECOVERED', 'NOT_SENT')
GROUP BY held
UNION ALL
SELECT 'undecided', 'REORDER_OUTPUT', sum(unnumbered + uncompleted + "close")::BIGINT::VARCHAR FROM undecided_orders
UNION ALL
SELECT 'undecided', CASE WHEN is_by_position() THEN 'LOG_IDENTITY_CONFLICT' ELSE 'LOST' END, sum(names)::BIGINT::VARCHAR
FROM given_twice
UNION ALL
SELECT 'partition', concat(topic, '-', "partition", ' ', name), count::VARCHAR
FROM (UNPIVOT partition_counts ON COLUMNS(* EXCLUDE (topic, "partition")) INTO NAME name VALUE count)
UNION ALL
SELECT 'offsets', concat(topic, '-', "partition", ' ', name), count::VARCHAR
FROM (UNPIVOT (SELECT * FROM balance WHERE is_declared('log'))
    ON COLUMNS(* EXCLUDE (topic, "partition")) INTO NAME name VALUE count)
UNION ALL
SELECT 'latency', name, value::VARCHAR
FROM (UNPIVOT (
    SELECT count::HUGEINT AS count, sample::HUGEINT AS sample, p50::HUGEINT AS p50_s, p95::HUGEINT AS p95_s,
        p99::HUGEINT AS p99_s, "max"::HUGEINT AS max_s,
        sign(micros)::HUGEINT * ((2 * abs(micros)::HUGEINT + count) // (2 * count::HUGEINT)) AS mean_s
    FROM latency) ON COLUMNS(*) INTO NAME name VALUE value)
UNION ALL
SELECT 'incident', incident_id, concat_ws(' ', class, locus, cause, topic, "partition", first_position,
    last_position, breaks)
FROM incidents
UNION ALL SELECT 'total', 'breaks', breaks::VARCHAR FROM breaks_total
UNION ALL SELECT 'total', 'rows of breaks.parquet', count(*)::VARCHAR FROM 'breaks.parquet'
UNION ALL
SELECT 'break', break_id, concat_ws(' ', class, array_to_string(list_sort(flags), '+'), message_id, topic,
    "partition", "offset", locus, cause, incident_id)
FROM proven_breaks;

CREATE TABLE compared AS
SELECT part, subject, s.stated, f.found,
    coalesce(s.stated, '0') IS NOT DISTINCT FROM coalesce(f.found, '0') AS is_same
FROM stated AS s FULL JOIN found AS f USING (part, subject);

SELECT subject AS class, stated, found FROM compared WHERE part = 'class' ORDER BY subject;

SELECT subject AS break_id, coalesce(found, stated) AS "break", is_same
FROM compared
WHERE part = 'break'
ORDER BY is_same, "break", subject;

SELECT part, subject, stated, found FROM compared WHERE NOT is_same ORDER BY part, subject LIMIT 1000;

SELECT coalesce(part, 'everything') AS part, count(*) AS compared, count(*) FILTER (is_same) AS same,
    count(*) FILTER (NOT is_same) AS different
FROM compared
GROUP BY ROLLUP (part)
ORDER BY compared.part NULLS LAST;
