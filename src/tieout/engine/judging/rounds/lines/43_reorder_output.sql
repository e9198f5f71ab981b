-- REORDER_OUTPUT: pairs of one key whose first effects are in another order than their records in the log. Keys with
-- messages in several partitions are left to 45.
-- Needs: messages_in_order, moved_keys. Source: taxonomy.md 3.
INSERT INTO reorders
WITH lined AS NOT MATERIALIZED (
    SELECT *, hash(topic, "partition", order_key) AS line FROM messages_in_order
),
-- Lines in which any time, or any number of one consumer, is lower than one at a lower offset.
falling AS (
    SELECT DISTINCT line
    FROM (
        SELECT line, at_time < lag(at_time) OVER upwards AND line = lag(line) OVER upwards AS is_falling
        FROM lined
        WINDOW upwards AS (ORDER BY line, first_offset, at_time DESC)
        UNION ALL
        SELECT line, delivery_sequence < lag(delivery_sequence) OVER by_number
            AND line = lag(line) OVER by_number AND reader = lag(reader) OVER by_number
        FROM (SELECT *, hash(consumer_id) AS reader FROM lined WHERE delivery_sequence IS NOT NULL)
        WINDOW by_number AS (ORDER BY line, reader, first_offset, delivery_sequence DESC)
    )
    WHERE is_falling
),
pairs AS (
    SELECT m.topic, m."partition", m.first_offset, m.at_time, m.delivery_sequence, m.consumer_id,
        lag(m.first_offset) OVER by_position AS lower_offset, lag(m.message_id) OVER by_position AS lower_id,
        lag(m.at_time) OVER by_position AS lower_at, lag(m.delivery_sequence) OVER by_position AS lower_sequence,
        lag(m.consumer_id) OVER by_position AS lower_consumer
    FROM lined AS m
    SEMI JOIN falling AS f ON m.line = f.line
    ANTI JOIN moved_keys AS k ON m.topic IS NOT DISTINCT FROM k.topic AND m.order_key = k.order_key
    WINDOW by_position AS (
        PARTITION BY m.topic, m."partition", m.order_key
        ORDER BY m.first_offset, m.message_id NULLS FIRST, m.message_key
    )
)
SELECT 'REORDER_OUTPUT', 'sink', topic, "partition", first_offset, "partition", lower_offset, lower_id, lower_at, NULL,
    covered_between(getvariable('effect_ledger'), lower_at, lower_at)
FROM pairs
WHERE lower_offset IS NOT NULL
    AND effect_is_before(at_time, delivery_sequence, consumer_id, lower_at, lower_sequence, lower_consumer)
    AND holds(lower_at, topic, "partition", lower_offset);
