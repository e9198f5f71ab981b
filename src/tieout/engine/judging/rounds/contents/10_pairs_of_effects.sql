-- Pairs effects with attempts by content, where equal payloads cannot be distinguished. In the order of time, each
-- effect takes the earliest free attempt of its payload made before it: certain effects first, acknowledged attempts
-- before unknown and failed ones.
-- Needs: content_sends, and keyed_deliveries or keyed_reads. Source: taxonomy.md 1 (Messages).
CREATE VIEW content_effects AS
SELECT rowid AS line, *, NULL::VARCHAR AS poll_id, NULL::VARCHAR AS isolation
FROM keyed_deliveries
WHERE is_by_content() AND getvariable('effect_ledger') = 'delivered'
UNION ALL BY NAME
SELECT rowid AS line, *
FROM keyed_reads
WHERE is_by_content() AND getvariable('effect_ledger') = 'read';

-- The rows that are paired with attempts, in stages: each stage pairs with attempts that the stages before left free.
CREATE TABLE content_takers AS
SELECT CASE effect_state WHEN 'ok' THEN 1 ELSE 2 END AS stage, line, payload_hash,
    processed_at + getvariable('clock_skew') AS moment, topic, "partition", "offset", delivery_sequence AS number
FROM content_effects
WHERE payload_hash IS NOT NULL AND effect_state IN ('ok', 'unknown');

-- Payloads with one attempt and one effect after it: the usual case.
CREATE TABLE content_effect_pairs AS
WITH attempts AS (
    SELECT payload_hash, min(rowid) AS attempt, min(attempted_at) AS attempted_at
    FROM content_sends
    WHERE payload_hash IS NOT NULL
    GROUP BY payload_hash
    HAVING count(*) = 1),
takers AS (
    SELECT payload_hash, min(line) AS line, min(moment) AS moment
    FROM content_takers
    GROUP BY payload_hash
    HAVING count(*) = 1)
SELECT t.line, a.attempt
FROM takers AS t
JOIN attempts AS a USING (payload_hash)
WHERE t.moment IS NULL OR a.attempted_at <= t.moment;

-- The others: attempts, which have no stage, and takers in one order of time. Attempts of one moment come first, undated
-- rows last. A digest costs more than the rest of a row, so only takers that are otherwise equal have one.
CREATE TABLE content_lines AS
WITH takers AS (SELECT * FROM content_takers ANTI JOIN content_effect_pairs USING (line)),
tied AS (
    SELECT payload_hash, moment, topic, "partition", "offset", number
    FROM takers
    GROUP BY ALL
    HAVING count(*) > 1),
ties AS (
    SELECT t.line
    FROM takers AS t
    SEMI JOIN tied AS e
        ON t.payload_hash = e.payload_hash AND t.moment IS NOT DISTINCT FROM e.moment
        AND t.topic IS NOT DISTINCT FROM e.topic AND t."partition" IS NOT DISTINCT FROM e."partition"
        AND t."offset" IS NOT DISTINCT FROM e."offset" AND t.number IS NOT DISTINCT FROM e.number),
digests AS (
    SELECT e.line, effect_digest(e, e.message_key, e.has_identity, NULL) AS tie
    FROM content_effects AS e
    SEMI JOIN ties USING (line)),
lines AS (
    SELECT NULL::INTEGER AS stage, rowid AS line, payload_hash, attempted_at AS moment, topic, "partition", "offset",
        sequence AS number, message_key AS tie, best_outcome
    FROM content_sends
    SEMI JOIN takers USING (payload_hash)
    UNION ALL BY NAME
    SELECT t.stage, t.line, t.payload_hash, t.moment, t.topic, t."partition", t."offset", t.number, d.tie
    FROM takers AS t
    LEFT JOIN digests AS d USING (line))
SELECT payload_hash, stage, line, best_outcome,
    row_number() OVER (
        PARTITION BY payload_hash
        ORDER BY moment NULLS LAST, stage IS NOT NULL, topic NULLS LAST, "partition" NULLS LAST, "offset" NULLS LAST,
            number NULLS LAST, tie NULLS LAST) AS place
FROM lines;

CREATE TABLE content_pairs (stage INTEGER, line BIGINT, attempt BIGINT);
-- Attempts that rows without payload account for, by their position, from the next stage on.
CREATE TABLE content_accounted (stage INTEGER, attempt BIGINT);

-- The lines of a stage take attempts of one outcome. With the attempts so far less the lines so far, a line finds one
-- unless it sets a new low below zero. One sort per payload, however many equals there are.
PREPARE take_attempts AS
INSERT INTO content_pairs
WITH waiting AS (
    SELECT payload_hash, place, line
    FROM content_lines
    ANTI JOIN content_pairs USING (stage, line)
    WHERE stage = $stage),
free AS (
    SELECT l.payload_hash, l.place, l.line AS attempt
    FROM content_lines AS l
    SEMI JOIN waiting USING (payload_hash)
    ANTI JOIN content_pairs AS p ON l.line = p.attempt
    ANTI JOIN (SELECT attempt FROM content_accounted WHERE stage < $stage) AS a ON l.line = a.attempt
    WHERE l.stage IS NULL AND l.best_outcome = $outcome),
walked AS (
    SELECT *, count(attempt) OVER so_far AS attempts, count(line) OVER so_far AS lines
    FROM (
        SELECT payload_hash, place, NULL::BIGINT AS line, attempt FROM free
        UNION ALL
        SELECT payload_hash, place, line, NULL FROM waiting SEMI JOIN free USING (payload_hash))
    WINDOW so_far AS (PARTITION BY payload_hash ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)),
lowest AS (
    SELECT *, least(coalesce(min(attempts - lines) FILTER (line IS NOT NULL) OVER before, 0), 0) AS low
    FROM walked
    WINDOW before AS (PARTITION BY payload_hash ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
SELECT $stage, l.line, o.attempt
FROM lowest AS l
JOIN lowest AS o ON l.payload_hash = o.payload_hash AND l.lines + l.low = o.attempts AND o.attempt IS NOT NULL
WHERE l.line IS NOT NULL AND l.attempts - l.lines >= l.low;

EXECUTE take_attempts(stage := 1, outcome := 'acked');
EXECUTE take_attempts(stage := 1, outcome := 'unknown');
EXECUTE take_attempts(stage := 1, outcome := 'failed');
EXECUTE take_attempts(stage := 2, outcome := 'acked');
EXECUTE take_attempts(stage := 2, outcome := 'unknown');
EXECUTE take_attempts(stage := 2, outcome := 'failed');
