-- Pairs rows of dead_letters and filtered by content with the attempts that effects left free, in this order: committed
-- rows, rows of an open transaction, aborted rows. A row without an attempt accounts for nothing.
-- Needs: content_pairs, keyed_dead_letters, keyed_filtered. Source: taxonomy.md 1 (Messages), interpretations.md 65 to
-- 69.
CREATE VIEW content_set_aside AS
SELECT 3 + aside_rank(effect_state) AS stage, rowid AS line, * FROM keyed_dead_letters WHERE is_by_content()
UNION ALL BY NAME
SELECT 4 + aside_rank(effect_state) AS stage, rowid AS line, * FROM keyed_filtered WHERE is_by_content();

INSERT INTO content_effect_pairs SELECT line, attempt FROM content_pairs;
TRUNCATE content_pairs;
TRUNCATE content_lines;

INSERT INTO content_accounted
SELECT a.stage, s.rowid
FROM content_sends AS s
JOIN (SELECT DISTINCT stage, message_key FROM content_set_aside WHERE payload_hash IS NULL) AS a USING (message_key);

INSERT INTO content_lines
WITH takers AS (SELECT * FROM content_set_aside WHERE payload_hash IS NOT NULL),
tied AS (
    SELECT stage, payload_hash, "at", topic, "partition", "offset" FROM takers GROUP BY ALL HAVING count(*) > 1),
digests AS (
    SELECT t.stage, t.line, keyed_set_aside_digest(t) AS tie
    FROM takers AS t
    SEMI JOIN tied AS e
        ON t.stage = e.stage AND t.payload_hash = e.payload_hash AND t."at" IS NOT DISTINCT FROM e."at"
        AND t.topic IS NOT DISTINCT FROM e.topic AND t."partition" IS NOT DISTINCT FROM e."partition"
        AND t."offset" IS NOT DISTINCT FROM e."offset"),
lines AS (
    SELECT NULL::INTEGER AS stage, rowid AS line, payload_hash, attempted_at AS moment, topic, "partition", "offset",
        sequence AS number, message_key AS tie, best_outcome
    FROM content_sends
    SEMI JOIN takers USING (payload_hash)
    ANTI JOIN content_effect_pairs AS p ON content_sends.rowid = p.attempt
    UNION ALL BY NAME
    SELECT t.stage, t.line, t.payload_hash, t."at" AS moment, t.topic, t."partition", t."offset", d.tie
    FROM takers AS t
    LEFT JOIN digests AS d USING (stage, line))
SELECT payload_hash, stage, line, best_outcome,
    row_number() OVER (
        PARTITION BY payload_hash
        ORDER BY moment NULLS LAST, stage IS NOT NULL, topic NULLS LAST, "partition" NULLS LAST, "offset" NULLS LAST,
            number NULLS LAST, tie NULLS LAST) AS place
FROM lines;

EXECUTE take_attempts(stage := 3, outcome := 'acked');
EXECUTE take_attempts(stage := 3, outcome := 'unknown');
EXECUTE take_attempts(stage := 3, outcome := 'failed');
EXECUTE take_attempts(stage := 4, outcome := 'acked');
EXECUTE take_attempts(stage := 4, outcome := 'unknown');
EXECUTE take_attempts(stage := 4, outcome := 'failed');
EXECUTE take_attempts(stage := 5, outcome := 'acked');
EXECUTE take_attempts(stage := 5, outcome := 'unknown');
EXECUTE take_attempts(stage := 5, outcome := 'failed');
EXECUTE take_attempts(stage := 6, outcome := 'acked');
EXECUTE take_attempts(stage := 6, outcome := 'unknown');
EXECUTE take_attempts(stage := 6, outcome := 'failed');
EXECUTE take_attempts(stage := 7, outcome := 'acked');
EXECUTE take_attempts(stage := 7, outcome := 'unknown');
EXECUTE take_attempts(stage := 7, outcome := 'failed');
EXECUTE take_attempts(stage := 8, outcome := 'acked');
EXECUTE take_attempts(stage := 8, outcome := 'unknown');
EXECUTE take_attempts(stage := 8, outcome := 'failed');

INSERT INTO content_set_aside_keys
SELECT a.stage, a.line, a.payload_hash, coalesce(s.message_key, excess_key(a.payload_hash)) AS message_key,
    s.message_key IS NULL AND a.stage IN (3, 4) AS is_unserved
FROM content_set_aside AS a
LEFT JOIN content_pairs AS p USING (stage, line)
LEFT JOIN content_sends AS s ON s.rowid = p.attempt
WHERE a.payload_hash IS NOT NULL;
