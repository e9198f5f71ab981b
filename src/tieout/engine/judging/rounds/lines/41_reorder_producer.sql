-- REORDER_PRODUCER: pairs whose sequence rises and whose first position falls, per session and partition. The sequence is
-- that of the first attempt that did not fail. `is_plain_overlap`: the second was sent before the first was acknowledged,
-- both without a producer id. Needs messages. Source: taxonomy.md 3.
INSERT INTO reorders
WITH sent AS (
    SELECT m.message_key, m.message_id, m.topic, m."partition", m.first_offset,
        CASE WHEN getvariable('ordering') = 'key' THEN m.order_key END AS order_key,
        coalesce(m.first_sent, m.first_attempt) AS sent,
        m.first_acked.done_at AS done_at, m.has_plain_record AND NOT m.has_idempotent_record AS is_plain
    FROM messages AS m
    WHERE m.acceptance = 'accepted' AND m.first_offset IS NOT NULL
        AND (getvariable('ordering') <> 'key' OR m.order_key IS NOT NULL)
),
pairs AS (
    SELECT topic, "partition", first_offset, message_id, sent."at" AS at_time, sent."sequence" AS number, is_plain,
        lag(sent."sequence") OVER in_session AS earlier_number, lag(first_offset) OVER in_session AS earlier_offset,
        lag(done_at) OVER in_session AS earlier_done_at, lag(is_plain) OVER in_session AS earlier_is_plain
    FROM sent
    WHERE sent."sequence" IS NOT NULL
    WINDOW in_session AS (
        PARTITION BY sent.producer_id, sent.producer_session, topic, "partition", order_key
        ORDER BY sent."sequence", first_offset, message_id NULLS FIRST, message_key
    )
)
SELECT 'REORDER_PRODUCER', 'producer → broker', topic, "partition", earlier_offset, "partition", first_offset,
    message_id, at_time, at_time < earlier_done_at AND is_plain AND earlier_is_plain,
    covered_between('produced', at_time, at_time)
FROM pairs
WHERE earlier_offset > first_offset AND earlier_number < number AND holds(at_time, topic, "partition", first_offset);
