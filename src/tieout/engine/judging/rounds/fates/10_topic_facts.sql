-- Per topic, the sends without identity or position, and the effects that nobody sent, which may be of the same
-- messages. While a topic has both, neither proves a loss or a phantom. What holds of an unknown topic holds of every
-- topic where sends may lack positions.
-- Needs: topics, messages, sends, effects. Source: taxonomy.md 3 and 8.
CREATE TABLE topic_facts AS
WITH everywhere AS (
    SELECT bit_or(bits) AS of_any, coalesce(bit_or(bits) FILTER (topic IS NULL), 0) AS of_unknown,
        is_by_content() OR coalesce(bool_or(has_unplaced_rows), false) AS may_be_any
    FROM topics
),
spread AS (
    SELECT *, bits | CASE
        WHEN NOT may_be_any THEN 0
        WHEN topic IS NULL THEN of_any
        ELSE of_unknown END AS spread_bits
    FROM topics, everywhere
)
SELECT topic,
    spread_bits & 1 <> 0 AS has_unnamed_sends,
    spread_bits & 2 <> 0 AS has_unplaced_sends,
    spread_bits & 4 <> 0 AS has_orphans,
    spread_bits & 8 <> 0 AS has_nameless_orphans,
    -- The first record of a topic is known where the log begins with it in every partition, and all of it is dated: a
    -- compacted log begins at 0, too, and lacks what came first.
    coalesce(topic IS NOT NULL AND log_start = 0 AND undated = 0 AND begun_partitions = used_partitions
        AND covered_from('produced', first_at - getvariable('clock_skew')), false) AS is_begun,
    used_partitions IS NOT NULL AS has_log,
    has_nameless_records
FROM spread;

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
