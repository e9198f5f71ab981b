-- By content, messages without effect whose effect an equal message may have. An effect is paired with the earliest
-- attempt; that one may be older than the ledger of effects, which then need not show its own (unseen), or lie where
-- the group has not been (elsewhere). Of the equals without effect, that many, the earliest, may be the ones that
-- arrived.
-- Source: taxonomy.md 1.
CREATE TABLE equals_elsewhere AS
WITH accepted AS (
    SELECT message_key, topic, "partition", first_offset, first_attempt, s.payload_hash,
        effect_rows > 0 AS has_effect, is_old_enough AND is_nowhere_left AS is_left, is_nowhere_left,
        covered_from(getvariable('effect_ledger'), began_at) AS is_shown
    FROM due_messages AS d
    JOIN (SELECT message_key, payload_hash FROM sends WHERE is_by_content()) AS s USING (message_key)
    WHERE d.acceptance = 'accepted' AND s.payload_hash IS NOT NULL
),
arrived AS (
    SELECT payload_hash,
        count_if(NOT is_shown) AS older,
        count_if(is_shown AND NOT is_nowhere_left) AS ahead
    FROM accepted
    WHERE has_effect
    GROUP BY payload_hash
    HAVING older + ahead > 0
),
turned AS (
    SELECT l.message_key, a.older, a.ahead,
        row_number() OVER (
            PARTITION BY l.payload_hash
            ORDER BY l.first_attempt."at" NULLS LAST, l.topic NULLS LAST, l."partition" NULLS LAST,
                l.first_offset NULLS LAST, l.first_attempt.sequence NULLS LAST, l.message_key) AS turn
    FROM accepted AS l JOIN arrived AS a USING (payload_hash)
    WHERE l.is_left AND NOT l.has_effect
)
SELECT message_key, turn <= older AS may_be_unseen, turn > older AS may_be_elsewhere
FROM turned
WHERE turn <= older + ahead;
