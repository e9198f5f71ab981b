-- How often each primary class occurs with each set of flags, by topic, and which of them their ledgers do not confirm.
-- Effects must lie in the coverage of their ledger, of an open transaction the first effect or read, and the attempts
-- that a changed message is compared with in theirs; loss carries its own proof. What was seen before it was sent, by
-- another clock, was not seen for certain while its transaction was open. Few rows, however many messages.
-- Source: taxonomy.md 3 (`unconfirmed`) and 5.
CREATE TABLE tally_parts AS
WITH judged AS (
    SELECT m.topic, f.class, list_distinct([f.class] || f.flags) AS held,
        m.effect_rows = 0 OR CASE
            WHEN f.class IS NOT DISTINCT FROM 'PHANTOM_UNKNOWN'
                THEN covered_between(getvariable('effect_ledger'), m.first_seen_at, m.first_seen_at)
            ELSE covered_between(getvariable('effect_ledger'), m.first_effect_at, m.last_effect."at")
        END AS do_effects_hold,
        covered_between('produced', m.first_attempt."at", m.last_attempt_at) AS do_attempts_hold,
        covered_between(getvariable('effect_ledger'), m.open_effect_at, m.open_effect_at)
            OR covered_between('read', m.open_read_at, m.open_read_at) AS is_seen_open,
        comes_before(m.first_open_at, m.first_attempt."at") AND NOT m.is_roughly_dated AS is_seen_early,
        covered_between('produced',
            least(m.first_attempt."at", m.first_effect_at),
            greatest(m.last_attempt_at, m.last_effect."at" + getvariable('clock_skew')))
        AND CASE
            WHEN NOT is_declared('log') THEN NOT m.is_contradicted
            ELSE m.aborted > 0
                OR (covered_between('log', m.first_attempt."at", m.last_attempt_at) AND NOT m.is_from_written)
        END AS have_all_failed
    FROM messages AS m
    JOIN fates AS f USING (message_key)
    WHERE f.is_judged_here
),
unconfirmed AS (
    SELECT topic, class, held,
        list_filter(held, lambda name:
            (NOT do_effects_hold AND name NOT IN ('LOST', 'PHANTOM_UNCOMMITTED'))
            OR (NOT do_attempts_hold AND name IN (
                'CORRUPTED_VALUE', 'CORRUPTED_KEY', 'CORRUPTED_HEADER', 'CORRUPTED_TIMESTAMP', 'MISROUTED'))
            OR (name = 'PHANTOM_ABORTED' AND class = 'PHANTOM_ABORTED' AND NOT have_all_failed)
            OR (name = 'PHANTOM_UNCOMMITTED' AND (is_seen_early OR NOT is_seen_open))
            OR (name IN ('PHANTOM_ABORTED', 'PHANTOM_UNCOMMITTED')
                AND is_declared('log') AND NOT getvariable('coverage')['log'].is_sound)) AS doubtful
    FROM judged
)
SELECT topic, false AS is_non_message, true AS is_covered, class, held, doubtful, count(*) AS count
FROM unconfirmed
GROUP BY ALL
UNION ALL
SELECT topic, false, true, 'DELIVERED', ['DELIVERED'], []::VARCHAR[], sum(sent)::BIGINT
FROM clean_counts
GROUP BY topic
HAVING sum(sent) > 0
UNION ALL
SELECT topic, true, is_covered, class, list_distinct([class] || flags), []::VARCHAR[], count(*)
FROM named_breaks
WHERE kind <> 'message'
GROUP BY ALL;
