-- REORDER_OUTPUT: pairs of one key whose first effects stand in another order than the log's. Keys that lie in several
-- partitions, where any may, are left to 45. Needs messages_in_order and moved_keys. Source: taxonomy.md 3.
INSERT INTO reorders
WITH pairs AS (
    SELECT m.topic, m."partition", m.first_offset, m.at_time, m.delivery_sequence, m.consumer_id,
        lag(m.first_offset) OVER by_position AS lower_offset, lag(m.message_id) OVER by_position AS lower_id,
        lag(m.at_time) OVER by_position AS lower_at, lag(m.delivery_sequence) OVER by_position AS lower_sequence,
        lag(m.consumer_id) OVER by_position AS lower_consumer
    FROM messages_in_order AS m
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
