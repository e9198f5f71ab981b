-- The keys of effects by content: that of the attempt they are paired with. An effect without a pair is a further
-- effect of the latest attempt before it where nobody else can have sent it. Otherwise, like one without payload, it
-- belongs to no message for certain.
-- Needs: content_pairs, content_effect_pairs, content_lines. Source: taxonomy.md 1 (Messages), interpretations.md 65 to
-- 69.
CREATE TABLE nameless_topics AS
SELECT DISTINCT topic FROM content_sends WHERE payload_hash IS NULL AND best_outcome <> 'failed';

CREATE TABLE content_effect_keys AS
WITH taken AS (
    SELECT p.line, s.message_key
    FROM (SELECT line, attempt FROM content_pairs UNION ALL SELECT line, attempt FROM content_effect_pairs) AS p
    JOIN content_sends AS s ON s.rowid = p.attempt),
unpaired AS (SELECT * FROM content_lines ANTI JOIN content_pairs USING (line) WHERE stage IS NOT NULL),
latest AS (
    SELECT u.line, u.payload_hash, u.stage, s.message_key
    FROM unpaired AS u
    ASOF LEFT JOIN (SELECT payload_hash, place, line FROM content_lines WHERE stage IS NULL) AS a
        ON u.payload_hash = a.payload_hash AND u.place > a.place
    LEFT JOIN content_sends AS s ON s.rowid = a.line),
weighed AS (
    SELECT l.*,
        l.message_key IS NOT NULL
        AND shows_all_sends(
            e.processed_at - getvariable('look_back'), e.processed_at + getvariable('clock_skew'))
        AND NOT EXISTS (FROM nameless_topics WHERE topic IS NULL)
        AND NOT coalesce(e.topic IN (SELECT topic FROM nameless_topics), EXISTS (FROM nameless_topics)) AS is_copy
    FROM latest AS l
    JOIN content_effects AS e USING (line))
SELECT line, NULL::VARCHAR AS payload_hash, message_key, true AS has_identity, false AS is_unserved
FROM taken
UNION ALL
SELECT line, payload_hash,
    CASE WHEN is_copy THEN message_key WHEN message_key IS NULL THEN payload_key(payload_hash)
        ELSE excess_key(payload_hash) END,
    is_copy OR message_key IS NULL,
    stage = 1
FROM weighed
UNION ALL
SELECT line, NULL, 'r:' || effect_digest(e, message_key, has_identity, NULL), false, false
FROM content_effects AS e
WHERE payload_hash IS NULL AND effect_state IN ('ok', 'unknown');
