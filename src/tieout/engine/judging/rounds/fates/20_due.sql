-- What is known of a message before its disposition: how long it may be without effect, whether that time has passed in
-- covered evidence, and whether anything can still be on its way. Needs: messages, position_facts, and the tables above.
-- Source: taxonomy.md 2 (due).
CREATE VIEW due_messages AS
WITH joined AS (
    SELECT m.*, p.* EXCLUDE (message_key), t.* EXCLUDE (topic, is_begun),
        coalesce(k.unaccounted_keys, 0) AS unaccounted_keys,
        coalesce(k.doubtful_further_keys, 0) AS doubtful_further_keys,
        coalesce(k.doubly_accounted_keys, 0) AS doubly_accounted_keys,
        t.is_begun OR b.is_covered IS NOT NULL AS has_first_record,
        c.is_copy IS NOT NULL AS may_be_copy,
        a.is_ambiguous_id IS NOT NULL AS shares_ambiguous_id
    FROM messages AS m
    LEFT JOIN position_facts AS p ON p.message_key = m.message_key
    LEFT JOIN topic_facts AS t ON t.topic IS NOT DISTINCT FROM m.topic
    LEFT JOIN effect_key_counts AS k ON k.message_key = m.message_key
    LEFT JOIN (SELECT message_key, true AS is_copy FROM possible_copies) AS c ON c.message_key = m.message_key
    LEFT JOIN (SELECT DISTINCT message_id, true AS is_ambiguous_id FROM messages WHERE is_ambiguous) AS a
        ON a.message_id = m.message_id
    LEFT JOIN (SELECT topic, "partition", true AS is_covered FROM begun_partitions) AS b
        ON b.topic IS NOT DISTINCT FROM m.topic AND b."partition" IS NOT DISTINCT FROM m."partition"
),
timed AS (
    SELECT *,
        first_attempt."at" - getvariable('clock_skew') AS began_at,
        covered_between('produced', first_attempt."at", first_attempt."at") AS is_send_covered,
        -- A record that a member of a share group was given is locked for it, and may be given to another one later.
        CASE WHEN NOT getvariable('is_queue') THEN deadline
            ELSE greatest(deadline, acknowledged_at + getvariable('allowed_latency'),
                last_read_at + getvariable('redelivery') + getvariable('allowed_latency')) END AS due_at,
        -- A log that covers the message lacks it; what was aborted elsewhere is not what was acked.
        is_declared('log') AND visible_count = 0 AND written = 0 AND open = 0 AND asserted_count > 0
            AND coalesce(is_covered_by_log, false) AS is_missing_in_log,
        is_whole(effect_rows, lacking_keys, keyless, doubtful_keys) AS is_whole,
        is_in_doubt(effect_rows, possible_effects, keyless, doubtful_keys) AS is_in_doubt,
        NOT getvariable('has_effect_keys') OR keyless_set_aside_rows > 0 OR unaccounted_keys = 0 AS is_set_aside_whole,
        comes_before(first_effect_at, first_attempt."at") AND NOT is_roughly_dated AS is_early,
        asserted_count = 0 AND effect_rows = 0 AND written + aborted + open = 0 AS is_unplaced
    FROM joined
)
SELECT *,
    is_send_covered AND is_accounted_since(due_at, began_at) AS is_old_enough,
    -- What would decide on a message without effect is missing, rather than its time not having come.
    NOT is_send_covered OR NOT is_accounted_since(least(due_at, getvariable('horizon')), began_at) AS lacks_evidence,
    -- Nothing can still be on its way. In a queue that takes an acknowledgement of each, or a log that lacks it.
    CASE WHEN getvariable('is_queue')
        THEN is_declared('committed') AND ((own_count > 0 AND coalesce(is_passed, false)) OR is_missing_in_log)
        ELSE own_count = 0 OR coalesce(is_passed, false) OR coalesce(is_expired, false) OR is_missing_in_log
    END AS is_nowhere_left
FROM timed;
