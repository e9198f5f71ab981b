-- The broken and overdue messages of this window, with the facts that decide their causes, and the cause that a
-- message's own row proves (`own_cause`). With individual acknowledgements a commit proves nothing about a run.
-- `number` identifies a break in this round and the next.
-- Needs: messages, fates, position_facts, individual_topics. Source: taxonomy.md 4.
CREATE TABLE broken_messages AS
SELECT
    row_number() OVER () AS number, m.message_key, m.topic, m."partition", m.first_offset,
    coalesce(m.first_offset, m.least_effect."offset") AS "offset",
    m.message_id, f.class, f.locus, f.flags, m.reader_count,
    m.first_attempt.producer_id AS producer_id, m.first_attempt."at" AS sent_at, m.first_acked.done_at AS acked_at,
    m.last_effect."at" AS last_effect_at, m.last_effect.consumer_id AS last_consumer,
    m.last_effect.generation AS last_generation,
    CASE WHEN m.asserted_count > 1 OR m.effect_position_count > 1 THEN NULL
        WHEN m.least_effect IS NULL OR m.least_effect IS NOT DISTINCT FROM m.least_asserted
            THEN list_filter([m.least_asserted], lambda place: place IS NOT NULL)
        WHEN m.least_asserted IS NULL THEN [m.least_effect] END AS positions,
    coalesce(p.is_superseded, false) AS is_superseded,
    CASE WHEN is_covered THEN p.cover.committed_offset END AS "commit",
    CASE WHEN is_covered THEN p.cover.committed_at END AS committed_at,
    CASE WHEN is_covered THEN p.cover.first_offset END AS commit_begins,
    CASE WHEN is_covered THEN p.cover.is_next END AS is_next,
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
            AND m.last_effect.generation < m.newest_generation THEN 'zombie after rebalance'
        WHEN f.class = 'LOST' AND p.went_unread THEN 'topic recreated'
        WHEN f.class = 'LOST' AND f.locus = 'sink' AND m.is_prepared THEN 'prepared transaction not committed'
    END AS own_cause
FROM messages AS m
JOIN fates AS f ON f.message_key = m.message_key
LEFT JOIN position_facts AS p ON p.message_key = m.message_key
LEFT JOIN individual_topics AS i ON m.topic = i.topic,
LATERAL (SELECT f.class = 'LOST' AND i.topic IS NULL AS is_covered)
WHERE f.is_judged_here AND is_break(f.class, f.flags);

-- Asserted and effect positions of those that have several, the first twenty in order.
CREATE TABLE ordered_positions AS
SELECT number, place, item
FROM (
    SELECT
        b.number, {'topic': p.topic, 'partition': p."partition", 'offset': p."offset"} AS item,
        row_number() OVER (PARTITION BY b.number
            ORDER BY p.topic NULLS FIRST, p."partition" NULLS FIRST, p."offset" NULLS FIRST) AS place
    FROM message_positions AS p JOIN broken_messages AS b ON b.message_key = p.message_key AND b.positions IS NULL
    WHERE p.is_asserted OR p.is_effect
)
WHERE place <= 20;

-- One row per number, with its items in a list by place, at most twenty. Lists do not spill to disk, so two items are
-- joined instead.
CREATE MACRO listed(ordered) AS TABLE
WITH longer AS (
    SELECT number FROM query_table(ordered) WHERE place = 3
)
SELECT a.number, CASE WHEN b.number IS NULL THEN [a.item] ELSE [a.item, b.item] END AS items
FROM query_table(ordered) AS a
LEFT JOIN query_table(ordered) AS b ON b.number = a.number AND b.place = 2
ANTI JOIN longer ON longer.number = a.number
WHERE a.place = 1
UNION ALL
SELECT o.number, list_select(list(o.item), list_grade_up(list(o.place)))
FROM query_table(ordered) AS o SEMI JOIN longer ON longer.number = o.number
GROUP BY o.number;
