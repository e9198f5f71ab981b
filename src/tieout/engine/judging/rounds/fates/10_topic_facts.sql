-- What of a topic's sends and effects may be one and the same: sends that show no identity or no position, and effects
-- that nobody sent. While a topic has both, neither proves a loss nor a phantom. What holds of an unknown topic holds
-- of every one where sends may lack positions.
-- Needs: messages, log_bounds, records, sends, effects. Source: taxonomy.md 3 and 8.
CREATE TABLE topic_facts AS
WITH told AS (
    SELECT origin_topic AS topic,
        attempts > 0 AND acceptance <> 'failed' AS is_sent,
        attempts = 0 AND effect_rows > 0 AND NOT starts_with(message_key, 'b:') AS is_orphan,
        NOT is_by_content() AND asserted_count = 0 AND effect_rows = 0 AND written + aborted + open = 0 AS is_unplaced,
        CASE WHEN is_by_content() THEN NOT has_identity ELSE message_id IS NULL END AS is_nameless_send,
        CASE WHEN is_by_content() THEN starts_with(message_key, 'r:')
            ELSE message_id IS NULL OR is_by_position() END AS is_nameless_effect
    FROM messages
),
by_topic AS (
    SELECT topic, bit_or(
        CASE WHEN is_sent AND is_nameless_send AND (is_unplaced OR is_by_content()) THEN 1 ELSE 0 END
        | CASE WHEN is_sent AND is_unplaced THEN 2 ELSE 0 END
        | CASE WHEN is_orphan THEN 4 ELSE 0 END
        | CASE WHEN is_orphan AND is_nameless_effect THEN 8 ELSE 0 END) AS bits
    FROM told
    GROUP BY topic
),
everywhere AS (
    SELECT bit_or(bits) AS of_any, coalesce(bit_or(bits) FILTER (topic IS NULL), 0) AS of_unknown,
        is_by_content() OR EXISTS (FROM evidence_produced WHERE placed_offset("offset") IS NULL) AS may_be_any
    FROM by_topic
),
spread AS (
    SELECT topic, bits | CASE
        WHEN NOT may_be_any THEN 0
        WHEN topic IS NULL THEN of_any
        ELSE of_unknown END AS bits
    FROM by_topic, everywhere
),
-- The first record of a topic is known where the log begins with it in every partition, and all of it is dated: a
-- compacted log begins at 0, too, and lacks what came first.
whole AS (
    SELECT topic, max(coalesce(log_start, 0)) = 0 AS is_whole, count(*) FILTER (log_end > 0) AS used
    FROM log_bounds
    GROUP BY topic
),
stamped AS (
    SELECT topic, min(record_timestamp) AS first_at, count(*) = count(record_timestamp) AS is_dated,
        count(*) FILTER ("offset" = 0) AS begun
    FROM records
    GROUP BY topic
),
begun AS (
    SELECT topic
    FROM whole AS w JOIN stamped AS s USING (topic)
    WHERE w.is_whole AND s.is_dated AND s.begun = w.used
        AND covered_from('produced', s.first_at - getvariable('clock_skew'))
)
SELECT s.topic,
    s.bits & 1 <> 0 AS has_unnamed_sends,
    s.bits & 2 <> 0 AS has_unplaced_sends,
    s.bits & 4 <> 0 AS has_orphans,
    s.bits & 8 <> 0 AS has_nameless_orphans,
    b.topic IS NOT NULL AS is_begun
FROM spread AS s LEFT JOIN begun AS b ON b.topic = s.topic;

-- What nobody sent, and whose effects are all known to come from partitions of which produced covers the first record:
-- an attempt at offset 0 is it.
CREATE TABLE begun_orphans AS
WITH begun_partitions AS (
    SELECT topic, "partition", true AS is_begun
    FROM sends
    WHERE "offset" = 0
    GROUP BY topic, "partition"
    HAVING covered_from('produced', min(attempted_at) - getvariable('clock_skew'))
)
SELECT e.message_key
FROM effects AS e
SEMI JOIN (SELECT message_key FROM messages WHERE attempts = 0 AND effect_rows > 0) AS m USING (message_key)
LEFT JOIN begun_partitions AS b ON same_partition(e.topic, e."partition", b.topic, b."partition")
WHERE e.effect_state = 'ok'
GROUP BY e.message_key
HAVING count(*) = count(b.is_begun) AND count(*) = count(e."offset");
