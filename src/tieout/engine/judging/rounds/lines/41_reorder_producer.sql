-- REORDER_PRODUCER: pairs with ascending sequence and descending first position, per session and partition. The
-- sequence is that of the first attempt that did not fail. `is_plain_overlap`: the second was sent before the first was
-- acknowledged, both without a producer id.
-- Needs: messages, clean_sends. Source: taxonomy.md 3.
INSERT INTO reorders
WITH sent AS NOT MATERIALIZED (
    SELECT *, hash(producer_id, producer_session, topic, "partition", order_key) AS line
    FROM (
        SELECT message_key, message_id, topic, "partition", first_offset,
            CASE WHEN getvariable('ordering') = 'key' THEN order_key END AS order_key,
            coalesce(first_sent, first_attempt)."at" AS at_time,
            coalesce(first_sent, first_attempt)."sequence" AS number,
            coalesce(first_sent, first_attempt).producer_id AS producer_id,
            coalesce(first_sent, first_attempt).producer_session AS producer_session,
            first_acked.done_at AS done_at, has_plain_record AND NOT has_idempotent_record AS is_plain
        FROM messages
        WHERE acceptance = 'accepted' AND first_offset IS NOT NULL
            AND (getvariable('ordering') <> 'key' OR messages.order_key IS NOT NULL)
        UNION ALL
        SELECT NULL, message_id, topic, "partition", "offset",
            CASE WHEN getvariable('ordering') = 'key' THEN key_hash END, attempted_at, "sequence", producer_id,
            producer_session, coalesce(completed_at, attempted_at), coalesce(broker_producer_id < 0, false)
        FROM clean_sends
    )
    WHERE number IS NOT NULL
),
-- Lines in which any position is below one of a lower number; in others no pair can be. Two sessions of one hash only
-- look as if they were one here.
falling AS (
    SELECT DISTINCT line
    FROM (
        SELECT line, first_offset < lag(first_offset) OVER by_number AND line = lag(line) OVER by_number AS is_falling
        FROM sent
        WINDOW by_number AS (ORDER BY line, number, first_offset)
    )
    WHERE is_falling
),
pairs AS (
    SELECT topic, "partition", first_offset, message_id, at_time, number, is_plain,
        lag(number) OVER in_session AS earlier_number, lag(first_offset) OVER in_session AS earlier_offset,
        lag(done_at) OVER in_session AS earlier_done_at, lag(is_plain) OVER in_session AS earlier_is_plain
    FROM sent
    SEMI JOIN falling USING (line)
    WINDOW in_session AS (
        PARTITION BY producer_id, producer_session, topic, "partition", order_key
        ORDER BY number, first_offset, message_id NULLS FIRST, message_key
    )
)
SELECT 'REORDER_PRODUCER', 'producer → broker', topic, "partition", earlier_offset, "partition", first_offset,
    message_id, at_time, at_time < earlier_done_at AND is_plain AND earlier_is_plain,
    covered_between('produced', at_time, at_time)
FROM pairs
WHERE earlier_offset > first_offset AND earlier_number < number AND holds(at_time, topic, "partition", first_offset);
