-- REORDER_CONSUMER: pairs with ascending position and descending first delivery, per consumer, generation and
-- partition, and per key where only keys are in order. Rows are the group's reads, or its output where no reads are
-- known. The first delivery of a position is the one with the least `delivery_sequence` where all have one, else the
-- earliest. Queues, which deliver to many readers at once, are not judged.
-- Needs: reads, deliveries, messages, clean_handed. Source: taxonomy.md 3.
CREATE VIEW handed AS
SELECT message_key, message_id, topic, "partition", "offset", consumer_id, generation, processed_at, delivery_sequence
FROM reads
WHERE getvariable('reader_ledger') = 'read' AND effect_state IN ('ok', 'again') AND NOT getvariable('is_queue')
UNION ALL
SELECT message_key, message_id, topic, "partition", "offset", consumer_id, generation, processed_at, delivery_sequence
FROM deliveries
WHERE getvariable('reader_ledger') = 'delivered' AND effect_state IN ('ok', 'again') AND NOT getvariable('is_queue');

CREATE VIEW handed_in_order AS
SELECT h.message_id, h.topic, h."partition", h."offset", h.consumer_id, h.generation, h.processed_at,
    h.delivery_sequence, k.order_key,
    hash(h.topic, h."partition", h.consumer_id, h.generation, k.order_key) AS line
FROM handed AS h
LEFT JOIN (SELECT message_key, order_key FROM messages WHERE getvariable('ordering') = 'key') AS k USING (message_key)
WHERE (getvariable('ordering') <> 'key' OR k.order_key IS NOT NULL)
    AND h."offset" IS NOT NULL AND h.processed_at IS NOT NULL AND h.consumer_id IS NOT NULL AND h.generation IS NOT NULL
UNION ALL
SELECT message_id, topic, "partition", "offset", consumer_id, generation, processed_at, delivery_sequence,
    CASE WHEN getvariable('ordering') = 'key' THEN key_hash END AS order_key,
    hash(topic, "partition", consumer_id, generation, order_key)
FROM clean_handed;

-- Lines in which any time, or any number, is lower than one at a lower offset; in others no pair can be.
CREATE TABLE falling_readers AS
SELECT DISTINCT line
FROM (
    SELECT line, processed_at < lag(processed_at) OVER upwards AND line = lag(line) OVER upwards AS is_falling
    FROM handed_in_order
    WINDOW upwards AS (ORDER BY line, "offset", processed_at)
    UNION ALL
    SELECT line, delivery_sequence < lag(delivery_sequence) OVER by_number AND line = lag(line) OVER by_number
    FROM handed_in_order
    WHERE delivery_sequence IS NOT NULL
    WINDOW by_number AS (ORDER BY line, "offset", delivery_sequence)
)
WHERE is_falling;

CREATE TABLE first_handed AS
WITH counted AS (
    SELECT topic, "partition", "offset", consumer_id, generation, order_key, count(*) AS rows_there,
        count(*) = count(delivery_sequence) AS has_turns, min(processed_at) AS processed_at,
        min(delivery_sequence) AS delivery_sequence
    FROM handed_in_order
    SEMI JOIN falling_readers USING (line)
    GROUP BY topic, "partition", "offset", consumer_id, generation, order_key
),
first_of_repeated AS (
    SELECT h.topic, h."partition", h."offset", h.consumer_id, h.generation, h.order_key, h.processed_at,
        h.delivery_sequence
    FROM handed_in_order AS h
    JOIN (SELECT * FROM counted WHERE rows_there > 1) AS c
        ON same_position(h.topic, h."partition", h."offset", c.topic, c."partition", c."offset")
        AND h.consumer_id = c.consumer_id AND h.generation = c.generation
        AND h.order_key IS NOT DISTINCT FROM c.order_key
    QUALIFY row_number() OVER (
        PARTITION BY h.topic, h."partition", h."offset", h.consumer_id, h.generation, h.order_key
        ORDER BY CASE WHEN c.has_turns THEN h.delivery_sequence END, h.processed_at, h.delivery_sequence NULLS FIRST
    ) = 1
)
SELECT topic, "partition", "offset", consumer_id, generation, order_key, processed_at, delivery_sequence
FROM counted
WHERE rows_there = 1
UNION ALL
SELECT * FROM first_of_repeated;

INSERT INTO reorders
WITH pairs AS (
    SELECT topic, "partition", consumer_id, generation, order_key, "offset", processed_at, delivery_sequence,
        lag("offset") OVER by_position AS lower_offset, lag(processed_at) OVER by_position AS lower_at,
        lag(delivery_sequence) OVER by_position AS lower_sequence
    FROM first_handed
    WINDOW by_position AS (
        PARTITION BY topic, "partition", consumer_id, generation, order_key ORDER BY "offset"
    )
),
falling AS (
    SELECT *
    FROM pairs
    WHERE came_before(processed_at, delivery_sequence, lower_at, lower_sequence)
        AND holds(lower_at, topic, "partition", lower_offset)
)
SELECT 'REORDER_CONSUMER', 'consumer', f.topic, f."partition", f."offset", f."partition", f.lower_offset,
    CASE WHEN count(*) = count(h.message_id) THEN min(h.message_id) END, f.lower_at, NULL,
    covered_between(getvariable('reader_ledger'), f.lower_at, f.lower_at)
FROM falling AS f
JOIN handed_in_order AS h
    ON same_position(f.topic, f."partition", f.lower_offset, h.topic, h."partition", h."offset")
    AND f.consumer_id = h.consumer_id AND f.generation = h.generation
    AND f.order_key IS NOT DISTINCT FROM h.order_key AND f.lower_at = h.processed_at
    AND f.lower_sequence IS NOT DISTINCT FROM h.delivery_sequence
GROUP BY f.topic, f."partition", f."offset", f.consumer_id, f.generation, f.order_key, f.lower_offset, f.lower_at;
