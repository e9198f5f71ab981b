-- The broken and overdue messages of this window, with what their causes need to know, and the cause that a message's
-- own row proves (`own_cause`). `number` names a break in this round and the next. Needs: messages, fates, position_facts, message_readers. Source: taxonomy.md 4.
CREATE TABLE broken_messages AS
WITH newest_readers AS (
    SELECT r.message_key, max(r.generation) AS generation
    FROM message_readers AS r SEMI JOIN fates AS f ON r.message_key = f.message_key AND f.class = 'OUTPUT_DUPLICATE'
    GROUP BY r.message_key
)
SELECT
    row_number() OVER () AS number, m.message_key, m.topic, m."partition", m.first_offset, m.message_id, f.class, f.locus, f.flags, m.reader_count,
    m.first_attempt.producer_id AS producer_id, m.first_attempt."at" AS sent_at, m.first_acked.done_at AS acked_at,
    m.last_effect."at" AS last_effect_at, m.last_effect.consumer_id AS last_consumer,
    m.last_effect.generation AS last_generation,
    coalesce(p.is_superseded, false) AS is_superseded,
    CASE WHEN f.class = 'LOST' THEN p.cover.committed_offset END AS "commit",
    CASE WHEN f.class = 'LOST' THEN p.cover.committed_at END AS committed_at,
    CASE WHEN f.class = 'LOST' THEN p.cover.first_offset END AS commit_begins,
    CASE WHEN f.class = 'LOST' THEN p.cover.is_next END AS is_next,
    CASE
        WHEN is_doubled_in_log(f.class, f.flags) AND m.attempts = 1
            AND m.has_plain_record AND NOT m.has_idempotent_record THEN 'retry without idempotence'
        WHEN is_doubled_in_log(f.class, f.flags)
            AND m.acked + CASE WHEN m.has_idempotent_record AND NOT m.has_plain_record THEN m.unknown ELSE 0 END
                >= greatest(m.visible_count, 2) THEN 'producer restart or application resend'
        WHEN m.is_from_aborted AND (f.class = 'PHANTOM_ABORTED' OR f.class = 'OUTPUT_DUPLICATE'
            AND NOT is_doubled_in_log(f.class, f.flags) AND m.effect_position_count = m.effect_rows)
            THEN 'aborted transaction read'
        WHEN f.class = 'OUTPUT_DUPLICATE' AND NOT is_doubled_in_log(f.class, f.flags)
            AND m.last_effect.generation < n.generation THEN 'zombie after rebalance'
        WHEN f.class = 'LOST' AND p.went_unread THEN 'topic recreated'
        WHEN f.class = 'LOST' AND f.locus = 'sink' AND m.is_prepared THEN 'prepared transaction not committed'
    END AS own_cause
FROM messages AS m
JOIN fates AS f ON f.message_key = m.message_key
LEFT JOIN position_facts AS p ON p.message_key = m.message_key
LEFT JOIN newest_readers AS n ON n.message_key = m.message_key
WHERE f.is_judged_here AND is_break(f.class, f.flags);

-- Their asserted and effect positions, the first twenty in order, and the offset of the first effect position.
CREATE TABLE positions_of_broken AS
WITH each AS (
    SELECT b.number, p.topic, p."partition", p."offset", p.is_effect
    FROM message_positions AS p JOIN broken_messages AS b ON b.message_key = p.message_key
    WHERE p.is_asserted OR p.is_effect
), counted AS (
    SELECT
        number, count(*) AS position_count, min(topic) AS topic, min("partition") AS "partition",
        min("offset") AS "offset", bool_or(is_effect) AS is_effect
    FROM each GROUP BY number
), ordered AS (
    SELECT
        each.*, row_number() OVER in_order AS place,
        row_number() OVER (PARTITION BY number, is_effect
            ORDER BY topic NULLS FIRST, "partition" NULLS FIRST, "offset" NULLS FIRST) AS effect_place
    FROM each SEMI JOIN counted ON counted.number = each.number AND counted.position_count > 1
    WINDOW in_order AS (PARTITION BY number
        ORDER BY topic NULLS FIRST, "partition" NULLS FIRST, "offset" NULLS FIRST)
)
SELECT
    number, [{'topic': topic, 'partition': "partition", 'offset': "offset"}] AS positions,
    CASE WHEN is_effect THEN "offset" END AS effect_offset
FROM counted WHERE position_count = 1
UNION ALL
SELECT
    number,
    list({'topic': topic, 'partition': "partition", 'offset': "offset"} ORDER BY place) FILTER (WHERE place <= 20),
    min("offset") FILTER (WHERE is_effect AND effect_place = 1)
FROM ordered WHERE place <= 20 OR (is_effect AND effect_place = 1)
GROUP BY number;
