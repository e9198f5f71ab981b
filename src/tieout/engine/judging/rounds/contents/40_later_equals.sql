-- Rows by content without a free attempt that may be of an equal attempt made after them, as clocks differ or keep
-- whole seconds. Of such effects as many belong to no message for certain as attempts wait. Of the attempts, as many as
-- there are such rows, the earliest first, may have an effect already.
-- Needs: content_effect_keys, content_set_aside_keys. Source: interpretations.md 65 to 69.
CREATE TABLE content_waiting AS
WITH unserved AS (
    SELECT payload_hash FROM content_effect_keys WHERE is_unserved
    UNION ALL
    SELECT payload_hash FROM content_set_aside_keys WHERE is_unserved)
SELECT s.message_key, s.payload_hash,
    row_number() OVER (
        PARTITION BY payload_hash
        ORDER BY attempted_at NULLS LAST, topic NULLS LAST, "partition" NULLS LAST, "offset" NULLS LAST,
            sequence NULLS LAST, message_key) AS turn
FROM content_sends AS s
SEMI JOIN unserved USING (payload_hash)
ANTI JOIN content_effect_pairs AS e ON s.rowid = e.attempt
ANTI JOIN (SELECT attempt FROM content_pairs WHERE stage IN (3, 4)) AS p ON s.rowid = p.attempt
ANTI JOIN (SELECT attempt FROM content_accounted WHERE stage IN (3, 4)) AS a ON s.rowid = a.attempt
WHERE s.best_outcome <> 'failed';

INSERT INTO met_early
WITH unserved AS (
    SELECT payload_hash, count(*) AS lines
    FROM (
        SELECT payload_hash FROM content_effect_keys WHERE is_unserved
        UNION ALL
        SELECT payload_hash FROM content_set_aside_keys WHERE is_unserved)
    GROUP BY payload_hash)
SELECT w.message_key
FROM content_waiting AS w
JOIN unserved AS u USING (payload_hash)
WHERE w.turn <= u.lines;

CREATE TABLE content_open_effects AS
WITH waiting AS (SELECT payload_hash, count(*) AS attempts FROM content_waiting GROUP BY payload_hash),
unserved AS (
    SELECT k.line, k.payload_hash, k.message_key, k.has_identity, w.attempts
    FROM content_effect_keys AS k
    JOIN waiting AS w USING (payload_hash)
    WHERE k.is_unserved),
turned AS (
    SELECT u.line, u.payload_hash, u.attempts,
        row_number() OVER (
            PARTITION BY u.payload_hash
            ORDER BY e.processed_at NULLS LAST, e.delivery_sequence NULLS FIRST,
                effect_digest(e, u.message_key, u.has_identity, true)) AS turn
    FROM unserved AS u
    JOIN content_effects AS e USING (line))
SELECT line, payload_hash FROM turned WHERE turn <= attempts;

INSERT INTO content_keys
SELECT k.line,
    CASE WHEN o.line IS NULL THEN k.message_key ELSE excess_key(o.payload_hash) END,
    k.has_identity AND o.line IS NULL
FROM content_effect_keys AS k
LEFT JOIN content_open_effects AS o USING (line);
