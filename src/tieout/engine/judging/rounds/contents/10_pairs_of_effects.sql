-- By content equal payloads cannot be told apart: in the order of time each effect takes the earliest attempt of its
-- payload made before it that is still free, certain effects first, acknowledged attempts before unknown and failed ones.
-- Needs: content_sends, and keyed_deliveries or keyed_reads. Source: taxonomy.md 1 (Messages).
CREATE VIEW content_effects AS
SELECT rowid AS line, *, NULL::VARCHAR AS poll_id, NULL::VARCHAR AS isolation
FROM keyed_deliveries
WHERE is_by_content() AND getvariable('effect_ledger') = 'delivered'
UNION ALL BY NAME
SELECT rowid AS line, *
FROM keyed_reads
WHERE is_by_content() AND getvariable('effect_ledger') = 'read';

-- What takes attempts, in stages: each takes what the stages before it left.
CREATE TABLE content_takers AS
WITH takers AS (
    SELECT CASE effect_state WHEN 'ok' THEN 1 ELSE 2 END AS stage, line, payload_hash,
        processed_at + getvariable('clock_skew') AS moment, topic, "partition", "offset", delivery_sequence AS number
    FROM content_effects
    WHERE payload_hash IS NOT NULL AND effect_state IN ('ok', 'unknown')),
-- A digest costs more than all the rest of a row, so it is made of those alone that nothing else tells apart.
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
    SEMI JOIN ties USING (line))
SELECT t.*, d.tie
FROM takers AS t
LEFT JOIN digests AS d USING (line);

-- Attempts, which have no stage, and takers of equal payloads in one order of time. Attempts of one moment come first,
-- undated rows last.
CREATE TABLE content_lines AS
SELECT payload_hash, stage, line, standing,
    row_number() OVER (
        PARTITION BY payload_hash
        ORDER BY moment NULLS LAST, stage IS NOT NULL, topic NULLS LAST, "partition" NULLS LAST, "offset" NULLS LAST,
            number NULLS LAST, tie NULLS LAST) AS place
FROM (
    SELECT NULL::INTEGER AS stage, rowid AS line, payload_hash, attempted_at AS moment, topic, "partition", "offset",
        sequence AS number, message_key AS tie, standing
    FROM content_sends
    SEMI JOIN content_takers USING (payload_hash)
    UNION ALL BY NAME
    SELECT stage, line, payload_hash, moment, topic, "partition", "offset", number, tie
    FROM content_takers);

CREATE TABLE content_pairs (stage INTEGER, line BIGINT, attempt BIGINT);
-- Attempts that rows without payload account for, by their position, from the next stage on.
CREATE TABLE content_accounted (stage INTEGER, attempt BIGINT);

-- The lines of a stage take attempts of one outcome. With `spare` the attempts so far less the lines so far, a line
-- finds one unless it sets a new low below zero. One sort per payload, however many equals there are.
CREATE MACRO pairs_of(a_stage, an_outcome) AS TABLE
WITH waiting AS (
    SELECT payload_hash, place, line
    FROM content_lines
    ANTI JOIN content_pairs USING (stage, line)
    WHERE stage = a_stage),
free AS (
    SELECT l.payload_hash, l.place, l.line AS attempt
    FROM content_lines AS l
    SEMI JOIN waiting USING (payload_hash)
    ANTI JOIN content_pairs AS p ON l.line = p.attempt
    ANTI JOIN (SELECT attempt FROM content_accounted WHERE stage < a_stage) AS a ON l.line = a.attempt
    WHERE l.stage IS NULL AND l.standing = an_outcome),
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
SELECT a_stage AS stage, l.line, o.attempt
FROM lowest AS l
JOIN lowest AS o ON l.payload_hash = o.payload_hash AND l.lines + l.low = o.attempts AND o.attempt IS NOT NULL
WHERE l.line IS NOT NULL AND l.attempts - l.lines >= l.low;

INSERT INTO content_pairs FROM pairs_of(1, 'acked');
INSERT INTO content_pairs FROM pairs_of(1, 'unknown');
INSERT INTO content_pairs FROM pairs_of(1, 'failed');
INSERT INTO content_pairs FROM pairs_of(2, 'acked');
INSERT INTO content_pairs FROM pairs_of(2, 'unknown');
INSERT INTO content_pairs FROM pairs_of(2, 'failed');
