-- REORDER_OUTPUT between partitions: neighbours of a key of which the one sent later certainly had its first effect
-- first. Neighbours have no message between them that is known to be sent after the one and before the other. In each
-- partition a message has one candidate, the last sent before it. Needs moved_messages and sent_before. Source:
-- interpretations.md, 61 and 100.
INSERT INTO reorders
WITH elsewhere AS (
    SELECT b.key_number, b.by_effect, m.by_effect AS before
    FROM (
        SELECT key_number, by_effect, max(found) AS found
        FROM sent_before
        WHERE look IN ('by_time', 'by_number')
        GROUP BY key_number, by_effect, target
    ) AS b
    JOIN moved_messages AS m ON b.key_number = m.key_number AND b.found = m.by_offset
),
in_log AS (
    SELECT key_number, by_effect, first_offset, lag(by_effect) OVER upwards AS before,
        lag(first_offset) OVER upwards AS before_offset
    FROM moved_messages
    WINDOW upwards AS (PARTITION BY key_number, place ORDER BY first_offset, message_id NULLS FIRST, by_effect)
),
candidates AS (
    SELECT c.key_number, c.by_effect, c.before, m."partition", m.first_offset, m.session, m.number, m.sent_at,
        m.completed_at
    FROM (
        SELECT key_number, by_effect, before FROM elsewhere
        UNION ALL
        SELECT key_number, by_effect, before FROM in_log WHERE before_offset < first_offset
    ) AS c
    JOIN moved_messages AS m ON c.key_number = m.key_number AND c.before = m.by_effect
),
falling AS (
    SELECT c.*, one.topic, one."partition" AS earlier_partition, one.first_offset AS earlier_offset,
        other.message_id, other.at_time
    FROM candidates AS c
    JOIN moved_messages AS one ON c.key_number = one.key_number AND c.by_effect = one.by_effect
    JOIN moved_messages AS other ON c.key_number = other.key_number AND c.before = other.by_effect
    WHERE effect_is_before(one.at_time, one.delivery_sequence, one.consumer_id,
            other.at_time, other.delivery_sequence, other.consumer_id)
        AND holds(other.at_time, other.topic, other."partition", other.first_offset)
),
between_them AS (
    SELECT DISTINCT f.key_number, f.by_effect, f.before
    FROM falling AS f
    JOIN candidates AS c ON f.key_number = c.key_number AND f.by_effect = c.by_effect
    WHERE was_sent_before(f."partition", f.first_offset, f.session, f.number, f.completed_at,
        c."partition", c.first_offset, c.session, c.number, c.sent_at)
)
SELECT 'REORDER_OUTPUT', 'sink', topic, earlier_partition, earlier_offset, "partition", first_offset, message_id,
    at_time, NULL, covered_between(getvariable('effect_ledger'), at_time, at_time)
FROM falling
ANTI JOIN between_them USING (key_number, by_effect, before);
