-- Facts of each topic that raise suspicions about the evidence: whether ids of a ledger occur among the sends at all,
-- how effects lie to their sends by the clock, which contents differ, how many messages are lost, and how many rows of
-- effects and of what was set aside show neither id nor position: each may be a lost message's.
-- Needs: messages, fates, effects, filtered, dead_letters; the bits of shown_marks are those of messages/. Source:
-- taxonomy.md 8, 2 and 12; interpretations.md, 20.
CREATE VIEW outcomes AS
SELECT topic, "partition", "offset", message_id, payload_hash, processed_at AS "at", effect_state FROM effects
UNION ALL
SELECT topic, "partition", "offset", message_id, payload_hash, "at", effect_state FROM filtered
UNION ALL
SELECT topic, "partition", "offset", message_id, payload_hash, "at", effect_state FROM dead_letters;

CREATE TABLE topic_suspicion_parts AS
WITH shown AS (
    SELECT m.topic, m.shown_marks AS marks,
        met_by(m.topic, m.message_id, m.shown_hash) AS named,
        m.shown_marks & 1 <> 0 OR regexp_matches(m.message_key, '^[abe]:') AS was_sent,
        [f.class] || f.flags AS held,
        CASE WHEN m.attempts > 0 AND NOT m.is_roughly_dated
            THEN epoch_us(m.first_effect_at) - epoch_us(m.first_attempt."at") END AS after,
        m.attempts > 0 AND m.first_effect_at IS NOT NULL AND NOT m.is_roughly_dated AS is_dated,
        NOT has_ranges() AND NOT m.is_owned AND is_dated AND in_window(m.first_effect_at)
            AND comes_before(m.first_effect_at, m.first_attempt."at") AS is_early_here,
        m.may_be_met_early,
        CASE f.disposition WHEN 'lost' THEN f.is_judged_here WHEN 'in_flight' THEN f.is_committed_ahead END AS is_lost
    FROM messages AS m
    JOIN fates AS f USING (message_key)
)
SELECT topic,
    bool_or(was_sent AND marks & 4 <> 0) AS log_meets,
    bool_or(marks & 2 <> 0) AS log_sent,
    bool_or(marks & 8 <> 0) AS log_shown,
    min(named) FILTER (marks & 2 <> 0) AS log_of_send,
    min(named) FILTER (marks & 8 <> 0) AS log_of_row,
    bool_or(was_sent AND marks & 32 <> 0) AS delivered_meets,
    bool_or(marks & 16 <> 0) AS delivered_sent,
    bool_or(marks & 64 <> 0) AS delivered_shown,
    min(named) FILTER (marks & 16 <> 0) AS delivered_of_send,
    min(named) FILTER (marks & 64 <> 0) AS delivered_of_row,
    bool_or(was_sent AND marks & 256 <> 0) AS read_meets,
    bool_or(marks & 128 <> 0) AS read_sent,
    bool_or(marks & 512 <> 0) AS read_shown,
    min(named) FILTER (marks & 128 <> 0) AS read_of_send,
    min(named) FILTER (marks & 512 <> 0) AS read_of_row,
    count_if(is_dated) AS followed,
    min(after) AS least_after,
    count_if(may_be_met_early) AS met_early,
    count_if(is_early_here) AS early_here,
    count_if(is_lost) AS lost,
    0 AS nameless,
    coalesce(bool_or(list_contains(held, 'CORRUPTED_VALUE')), false) AS "CORRUPTED_VALUE",
    coalesce(bool_or(list_contains(held, 'CORRUPTED_KEY')), false) AS "CORRUPTED_KEY",
    coalesce(bool_or(list_contains(held, 'CORRUPTED_HEADER')), false) AS "CORRUPTED_HEADER"
FROM shown
GROUP BY topic
UNION ALL BY NAME
SELECT topic, count(*) AS nameless
FROM outcomes
WHERE effect_state IN ('ok', 'unknown') AND ("partition" IS NULL OR "offset" IS NULL)
    AND (is_by_position() OR shown_name(message_id, payload_hash) IS NULL)
    AND (has_ranges() OR NOT comes_before("at", getvariable('window_start')))
GROUP BY topic;

-- By how much effects lie before their sends.
CREATE TABLE early_parts AS
SELECT topic, epoch_us(first_attempt."at") - epoch_us(least(
    CASE WHEN comes_before(first_effect_at, first_attempt."at") AND NOT is_roughly_dated THEN first_effect_at END,
    first_stray_at)) AS early_by
FROM messages
WHERE early_by IS NOT NULL;
