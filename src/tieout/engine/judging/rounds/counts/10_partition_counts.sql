-- One row per topic partition: what was sent, its dispositions and its effects, over all messages that touch the
-- window. A message counts at its first position; effects in the window count there, too. A clean message was sent,
-- acknowledged and delivered once.
-- Needs: messages, fates, clean_counts. Source: taxonomy.md 5, whose identities these counts obey.
CREATE TABLE partition_count_parts AS
WITH effect_keys AS (
    SELECT message_key,
        count_if(is_sent OR is_effect) AS named_keys,
        count_if(is_sent AND NOT is_effect) AS lacking_keys
    FROM message_effect_keys
    GROUP BY message_key
),
touching AS (
    SELECT m.*, f.disposition, f.class, f.flags,
        coalesce(m.acceptance = 'accepted', false) AS is_accepted,
        coalesce(m.acceptance = 'failed' OR f.class = 'PHANTOM_UNKNOWN', false) AS is_phantom,
        coalesce(k.named_keys, 0) AS named_keys,
        coalesce(k.lacking_keys, 0) AS lacking_keys
    FROM messages AS m
    JOIN fates AS f USING (message_key)
    LEFT JOIN effect_keys AS k USING (message_key)
    WHERE m.is_owned OR m.attempts_in > 0 OR m.effect_rows_in > 0
),
counted AS (
    SELECT *,
        CASE
            WHEN NOT is_accepted THEN 0
            WHEN fans_out() THEN first_rows_in
            ELSE (effect_rows > 0 AND holds_message(is_in_ranges, first_effect_at))::BIGINT
        END AS first_effects,
        CASE
            WHEN getvariable('fan_out_count') IS NOT NULL THEN getvariable('fan_out_count')
            ELSE greatest(named_keys, 1)
        END AS expected_effects,
        CASE
            WHEN getvariable('fan_out_count') IS NOT NULL THEN greatest(getvariable('fan_out_count') - effect_rows, 0)
            WHEN lacking_keys = 0 AND effect_rows = 0 THEN 1
            ELSE lacking_keys
        END AS missing_effects,
        is_owned AND is_accepted AND fans_out() AS has_several
    FROM touching
)
SELECT topic, "partition",
    coalesce(sum(attempts_in), 0)::BIGINT AS attempts,
    coalesce(sum(acked_in), 0)::BIGINT AS acked_attempts,
    coalesce(sum(failed_in), 0)::BIGINT AS failed_attempts,
    coalesce(sum(unknown_in), 0)::BIGINT AS unknown_attempts,
    count(*) FILTER (is_owned)::BIGINT AS messages,
    coalesce(sum(attempts_in - is_owned::BIGINT), 0)::BIGINT AS resends,
    count(*) FILTER (is_owned AND acceptance = 'accepted')::BIGINT AS accepted,
    count(*) FILTER (is_owned AND acceptance = 'unproven')::BIGINT AS unproven,
    count(*) FILTER (is_owned AND acceptance = 'failed')::BIGINT AS failed,
    count(*) FILTER (is_owned AND disposition = 'delivered')::BIGINT AS delivered,
    count(*) FILTER (is_owned AND disposition = 'filtered')::BIGINT AS filtered,
    count(*) FILTER (is_owned AND disposition = 'dead_lettered')::BIGINT AS dead_lettered,
    count(*) FILTER (is_owned AND disposition = 'compacted')::BIGINT AS compacted,
    count(*) FILTER (is_owned AND disposition = 'lost')::BIGINT AS lost,
    count(*) FILTER (is_owned AND disposition = 'in_flight')::BIGINT AS in_flight,
    count(*) FILTER (is_owned AND disposition = 'unverifiable')::BIGINT AS unverifiable,
    coalesce(sum(effect_rows_in), 0)::BIGINT AS effects,
    coalesce(sum(first_effects), 0)::BIGINT AS first_effects,
    coalesce(sum(CASE WHEN is_accepted THEN effect_rows_in ELSE 0 END - first_effects), 0)::BIGINT AS further_effects,
    coalesce(sum(CASE WHEN is_phantom THEN effect_rows_in ELSE 0 END), 0)::BIGINT AS phantom_effects,
    coalesce(sum(CASE WHEN is_accepted THEN 0 ELSE effect_rows_in END
        - CASE WHEN is_phantom THEN effect_rows_in ELSE 0 END), 0)::BIGINT AS unverifiable_effects,
    coalesce(sum(possible_effects + strays)
        FILTER (is_owned AND list_contains(flags, 'POSSIBLE_DUPLICATE')), 0)::BIGINT AS possible_effects,
    coalesce(sum(expected_effects) FILTER (has_several), 0)::BIGINT AS expected_effects,
    coalesce(sum(first_rows) FILTER (has_several), 0)::BIGINT AS met_effects,
    coalesce(sum(missing_effects) FILTER (has_several), 0)::BIGINT AS missing_effects
FROM counted
GROUP BY topic, "partition"
UNION ALL BY NAME
SELECT topic, "partition", sent AS attempts, sent AS acked_attempts, sent AS messages, sent AS accepted,
    sent AS delivered, seen AS effects, seen AS first_effects
FROM clean_counts
WHERE sent > 0 OR seen > 0;
