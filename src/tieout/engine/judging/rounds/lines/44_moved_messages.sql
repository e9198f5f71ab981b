-- Messages of keys that lie in several partitions, and of those known to be sent before each the last or greatest one.
-- No log orders two partitions: the sequence of a session does, and that one send was completed before another began.
-- Needs messages, messages_in_order and moved_keys. Source: interpretations.md, 61 and 100.
CREATE TABLE moved_messages AS
WITH keys AS (
    SELECT *, row_number() OVER (ORDER BY topic, order_key) AS key_number FROM moved_keys
),
sent AS (
    SELECT k.key_number, o.*, m.completed_at, coalesce(m.first_sent, m.first_undated, m.first_attempt) AS sent
    FROM messages_in_order AS o
    JOIN keys AS k ON o.topic IS NOT DISTINCT FROM k.topic AND o.order_key = k.order_key
    JOIN messages AS m ON o.message_key = m.message_key
),
by_effect AS (
    SELECT key_number, message_id, topic, "partition", first_offset, is_owned, at_time, delivery_sequence, consumer_id,
        sent."sequence" AS number, sent."at" AS sent_at, completed_at,
        dense_rank() OVER (PARTITION BY key_number ORDER BY "partition") AS place,
        dense_rank() OVER (PARTITION BY key_number ORDER BY sent.producer_id, sent.producer_session) AS session,
        row_number() OVER (
            PARTITION BY key_number
            ORDER BY at_time, "partition" NULLS FIRST, first_offset, message_id NULLS FIRST,
                delivery_sequence NULLS FIRST, consumer_id NULLS FIRST, sent.producer_id NULLS FIRST,
                sent.producer_session NULLS FIRST, number NULLS FIRST, sent_at NULLS FIRST,
                completed_at NULLS FIRST, message_key
        ) AS by_effect
    FROM sent
)
SELECT *, row_number() OVER (PARTITION BY key_number ORDER BY first_offset, by_effect) AS by_offset
FROM by_effect;

-- For each message and `look` the greatest of the others that are behind it in a line, and apart from it. Lines are by
-- time or by number; `mark` is the message's rank and what sets it apart, packed, and only the others have one.
CREATE TABLE sent_before AS
WITH own AS (
    SELECT key_number, by_effect, place, session, number, is_owned, epoch_us(sent_at) AS sent_at,
        epoch_us(completed_at + getvariable('clock_skew')) AS completed_at,
        epoch_us(sent_at + getvariable('clock_skew')) AS begun_at, completed_at IS NULL AS is_open,
        packed_mark(by_offset, 0) AS mark_by_offset, packed_mark(by_offset, session) AS mark_of_session,
        packed_mark(by_effect, place) AS mark_of_place
    FROM moved_messages
),
places AS (
    SELECT DISTINCT key_number, place AS target FROM moved_messages WHERE "partition" IS NOT NULL
),
aimed AS (
    SELECT o.*, p.target
    FROM own AS o
    JOIN places AS p ON o.key_number = p.key_number AND o.place <> p.target
    SEMI JOIN places AS q ON o.key_number = q.key_number AND o.place = q.target
),
turns(look, key_number, line, target, turn_at, turn, mark, apart, by_effect) AS (
    SELECT 'by_time', key_number, 0, target, sent_at, 0, NULL, session, by_effect FROM aimed
    UNION ALL SELECT 'by_time', key_number, 0, place, completed_at, 1, mark_of_session, NULL, NULL FROM own
    UNION ALL SELECT 'by_number', key_number, session, target, number, 0, NULL, -1, by_effect FROM aimed
    UNION ALL SELECT 'by_number', key_number, session, place, number, 1, mark_by_offset, NULL, NULL FROM own
    UNION ALL SELECT 'numbered', key_number, session, 0, number, 0, NULL, place, by_effect FROM own WHERE is_owned
    UNION ALL SELECT 'numbered', key_number, session, 0, number, 1, mark_of_place, NULL, NULL FROM own
    UNION ALL SELECT 'unordered', key_number, session, 0, sent_at, 1, NULL, place, by_effect
        FROM own WHERE is_owned AND number IS NULL
    UNION ALL SELECT 'unordered', key_number, session, 0, sent_at, 0, mark_of_place, NULL, NULL FROM own
    UNION ALL SELECT 'unnumbered', key_number, session, 0, sent_at, 1, NULL, place, by_effect
        FROM own WHERE is_owned AND number IS NOT NULL
    UNION ALL SELECT 'unnumbered', key_number, session, 0, sent_at, 0, mark_of_place, NULL, NULL
        FROM own WHERE number IS NULL
    UNION ALL SELECT 'completed', key_number, 0, 0, sent_at, 0, NULL, place, by_effect FROM own WHERE is_owned
    UNION ALL SELECT 'completed', key_number, 0, 0, completed_at, 1, mark_of_place, NULL, NULL FROM own
    UNION ALL SELECT 'unsure', key_number, 0, 0, sent_at, 0, NULL, place, by_effect FROM own WHERE is_owned
    UNION ALL SELECT 'unsure', key_number, 0, 0, begun_at, 1, mark_of_place, NULL, NULL FROM own WHERE is_open
),
greatest_so_far AS (
    SELECT *, max(mark) OVER so_far AS best
    FROM turns
    WHERE turn_at IS NOT NULL
    WINDOW so_far AS (
        PARTITION BY look, key_number, line, target ORDER BY turn_at, turn
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
-- The greatest that is apart from the best: whenever two that are apart meet, the lesser of them is one.
second_so_far AS (
    SELECT *,
        max(CASE WHEN mark_apart(mark) <> mark_apart(best) THEN least(mark, best) END) OVER (
            PARTITION BY look, key_number, line, target ORDER BY turn_at, turn
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS second
    FROM greatest_so_far
)
SELECT look, key_number, by_effect, target, mark_rank(CASE WHEN mark_apart(best) <> apart THEN best ELSE second END) AS found
FROM second_so_far
WHERE by_effect IS NOT NULL AND CASE WHEN mark_apart(best) <> apart THEN best ELSE second END IS NOT NULL;
