-- Messages of keys that lie in several partitions, each with the decisive one of those known to be sent before it. No
-- log orders two partitions; the sequence of a session does, and so does a send that was completed before another
-- began.
-- Needs: messages, messages_in_order, moved_keys. Source: interpretations.md, 61 and 100.
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
SELECT *, row_number() OVER (PARTITION BY key_number ORDER BY first_offset, by_effect) AS by_offset,
    lag(by_effect) OVER in_log AS below, lag(first_offset) OVER in_log < first_offset AS has_below,
    -- Whether an effect in another partition may be of the same moment: of one instant, or by two consumers' clocks.
    min(place) OVER at_once <> max(place) OVER at_once OR (min(place) OVER nearby <> max(place) OVER nearby
        AND min(coalesce(consumer_id, '')) OVER nearby <> max(coalesce(consumer_id, '')) OVER nearby) AS is_met_elsewhere
FROM by_effect
WINDOW in_log AS (PARTITION BY key_number, place ORDER BY first_offset, message_id NULLS FIRST, by_effect),
    at_once AS (PARTITION BY key_number, at_time),
    nearby AS (PARTITION BY key_number ORDER BY at_time
        RANGE BETWEEN getvariable('clock_skew') PRECEDING AND getvariable('clock_skew') FOLLOWING);

-- Messages as turns in sequences of times or numbers, of milliseconds or producer sequences. A turn queries earlier turns
-- (`by_effect`) or is a target: then `mark` packs its rank with what sets it apart. The five queries are those of 46.
CREATE VIEW own_turns AS
SELECT key_number, by_effect, place, session, number, epoch_us(sent_at) AS sent_at,
    epoch_us(completed_at + getvariable('clock_skew')) AS completed_at,
    epoch_us(sent_at + getvariable('clock_skew')) AS begun_at, completed_at IS NULL AS is_open,
    packed_mark(by_offset, 0) AS mark_by_offset, packed_mark(by_offset, session) AS mark_of_session,
    packed_mark(by_effect, place) AS mark_of_place
FROM moved_messages;

CREATE TABLE turns AS
WITH open_keys AS (SELECT DISTINCT key_number FROM own_turns WHERE is_open),
unnumbered_sessions AS (SELECT DISTINCT key_number, session FROM own_turns WHERE number IS NULL)
SELECT 'completed' AS look, key_number, 0::BIGINT AS line, 0::BIGINT AS target, sent_at AS turn_at, 0 AS turn,
    NULL::BIGINT AS mark, place AS apart, by_effect
FROM own_turns
UNION ALL SELECT 'completed', key_number, 0, 0, completed_at, 1, mark_of_place, NULL, NULL FROM own_turns
UNION ALL SELECT 'unsure', key_number, 0, 0, sent_at, 0, NULL, place, by_effect
    FROM own_turns SEMI JOIN open_keys USING (key_number)
UNION ALL SELECT 'unsure', key_number, 0, 0, begun_at, 1, mark_of_place, NULL, NULL FROM own_turns WHERE is_open
UNION ALL SELECT 'numbered', key_number, session, 0, number, 0, NULL, place, by_effect FROM own_turns
UNION ALL SELECT 'numbered', key_number, session, 0, number, 1, mark_of_place, NULL, NULL FROM own_turns
UNION ALL SELECT 'unnumbered', key_number, session, 0, sent_at, 1, NULL, place, by_effect
    FROM own_turns SEMI JOIN unnumbered_sessions USING (key_number, session) WHERE number IS NOT NULL
UNION ALL SELECT 'unnumbered', key_number, session, 0, sent_at, 0, mark_of_place, NULL, NULL
    FROM own_turns WHERE number IS NULL
UNION ALL SELECT 'unordered', key_number, session, 0, sent_at, 1, NULL, place, by_effect
    FROM own_turns WHERE number IS NULL
UNION ALL SELECT 'unordered', key_number, session, 0, sent_at, 0, mark_of_place, NULL, NULL
    FROM own_turns SEMI JOIN unnumbered_sessions USING (key_number, session);

-- For each querying turn, the greatest earlier target that is apart from it: the greatest of all, or the greatest that is
-- apart from that one. Of two targets that are apart, the lesser is a candidate for the second.
CREATE VIEW greatest_before AS
WITH so_far AS (
    SELECT *, max(mark) OVER (
        PARTITION BY look, key_number, line, target ORDER BY turn_at, turn
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS best
    FROM turns
    WHERE turn_at IS NOT NULL
),
second_so_far AS (
    SELECT *, max(CASE WHEN mark_apart(mark) <> mark_apart(best) THEN least(mark, best) END) OVER (
        PARTITION BY look, key_number, line, target ORDER BY turn_at, turn
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS second
    FROM so_far
)
SELECT look, key_number, by_effect, target, mark_rank(CASE WHEN mark_apart(best) <> apart THEN best ELSE second END)
    AS found
FROM second_so_far
WHERE by_effect IS NOT NULL AND CASE WHEN mark_apart(best) <> apart THEN best ELSE second END IS NOT NULL;

CREATE TABLE sent_before AS FROM greatest_before;
