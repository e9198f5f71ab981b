-- REORDER_OUTPUT between partitions: neighbours of a key of which the one sent later certainly had its first effect
-- first. Neighbours have no message between them that is known to be sent after the one and before the other. In each
-- partition a message has one candidate, the last sent before it.
-- Needs: moved_messages, sent_before, turns. Source: interpretations.md, 61 and 100.
CREATE TABLE overtaking AS
SELECT key_number, by_effect
FROM sent_before
WHERE look IN ('completed', 'numbered') AND found > by_effect
UNION
SELECT key_number, by_effect
FROM moved_messages
WHERE (has_below AND below > by_effect)
    OR (SELECT bool_or(delivery_sequence IS NOT NULL) FROM moved_messages);

CREATE OR REPLACE TABLE turns AS
WITH places AS (
    SELECT DISTINCT key_number, place AS target FROM moved_messages WHERE "partition" IS NOT NULL
),
aimed AS (
    SELECT o.*, p.target
    FROM own_turns AS o
    SEMI JOIN overtaking USING (key_number, by_effect)
    SEMI JOIN places AS q ON o.key_number = q.key_number AND o.place = q.target
    JOIN places AS p ON o.key_number = p.key_number AND o.place <> p.target
),
others AS (
    SELECT * FROM own_turns SEMI JOIN overtaking USING (key_number)
)
SELECT 'by_time' AS look, key_number, 0::BIGINT AS line, target, sent_at AS turn_at, 0 AS turn, NULL::BIGINT AS mark,
    session AS apart, by_effect
FROM aimed
UNION ALL SELECT 'by_time', key_number, 0, place, completed_at, 1, mark_of_session, NULL, NULL FROM others
UNION ALL SELECT 'by_number', key_number, session, target, number, 0, NULL, -1, by_effect FROM aimed
UNION ALL SELECT 'by_number', key_number, session, place, number, 1, mark_by_offset, NULL, NULL FROM others;

INSERT INTO reorders
WITH elsewhere AS (
    SELECT b.key_number, b.by_effect, m.by_effect AS before
    FROM (SELECT key_number, by_effect, max(found) AS found FROM greatest_before GROUP BY key_number, by_effect, target) AS b
    JOIN moved_messages AS m ON b.key_number = m.key_number AND b.found = m.by_offset
),
candidates AS (
    SELECT c.key_number, c.by_effect, c.before, m."partition", m.first_offset, m.session, m.number, m.sent_at,
        m.completed_at
    FROM (
        SELECT key_number, by_effect, before FROM elsewhere
        UNION ALL
        SELECT key_number, by_effect, below FROM moved_messages SEMI JOIN overtaking USING (key_number, by_effect)
        WHERE has_below
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
