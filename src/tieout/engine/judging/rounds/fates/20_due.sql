-- Facts of a message that precede its disposition: its deadline for an effect, whether that has passed in covered
-- evidence, and whether an effect may still come.
-- Needs: messages, position_facts, denied_facts and the tables above. Source: taxonomy.md 2 (due).
CREATE VIEW due_messages AS
SELECT
    m.message_key, m.message_id, m.topic, m."partition", m.first_offset, m.is_owned, m.is_in_ranges,
    m.attempts, m.acked, m.acceptance, m.has_identity, m.is_failed_but_written, m.is_misrouted, m.may_be_met_early,
    m.first_attempt, m.deadline, m.written, m.aborted, m.open, m.record_at, m.undated_records,
    m.is_from_record, m.from_record_at, m.is_from_aborted, m.open_seen_at,
    m.effect_rows, m.effect_rows_in, m.possible_effects, m.first_seen_at, m.effect_seen_at, m.first_effect_at,
    m.strays, m.reads, m.was_handed, m.is_dead_lettered, m.is_filtered, m.is_staged,
    m.set_aside_rows, m.open_set_aside_rows, m.aborted_set_aside_rows,
    m.effect_rounds, m.last_first_at, m.sent_keys,
    m.own_count, m.copy_count, m.effect_position_count, m.read_position_count,
    p.is_passed, p.was_jumped, p.went_unread, p.is_committed, p.is_expired, p.is_superseded, p.is_compacted,
    p.was_committed_first, coalesce(p.may_have_passed_first, false) AS may_have_passed_first,
    t.has_unnamed_sends, t.has_unplaced_sends, t.has_orphans, t.has_nameless_orphans,
    t.is_begun OR b.message_key IS NOT NULL AS has_first_record,
    c.is_copy IS NOT NULL AS may_be_copy,
    a.is_ambiguous_id IS NOT NULL AS shares_ambiguous_id,
    l.is_ambiguous_id IS NOT NULL AS shares_ambiguous_record,
    coalesce(k.doubtful_further_keys, 0) AS doubtful_further_keys,
    coalesce(k.doubly_accounted_keys, 0) AS doubly_accounted_keys,
    is_whole(m.effect_rows, m.lacking_keys, m.keyless, m.doubtful_keys) AS is_whole,
    is_in_doubt(m.effect_rows, m.possible_effects, m.keyless, m.doubtful_keys) AS is_in_doubt,
    NOT getvariable('has_effect_keys') OR m.keyless_set_aside_rows > 0 OR coalesce(k.unaccounted_keys, 0) = 0
        AS is_set_aside_whole,
    comes_before(m.first_effect_at, m.first_attempt."at") AND NOT m.is_roughly_dated AS is_early,
    m.asserted_count = 0 AND m.effect_rows = 0 AND m.written + m.aborted + m.open = 0 AS is_unplaced,
    -- A log that covers the message lacks it; a record aborted elsewhere is not the acknowledged one.
    is_declared('log') AND m.visible_count = 0 AND m.written = 0 AND m.open = 0 AND m.asserted_count > 0
        AND CASE WHEN m.own_count > 0 THEN coalesce(p.is_covered_by_log, false) ELSE true END
        AND coalesce(n.is_covered_by_log, m.own_count > 0) AS is_missing_in_log,
    -- A log with the id of each record covers the send and has no record of the message, whose position is unknown.
    is_unplaced AND m.reads = 0 AND is_by_id() AND is_declared('log') AND has_column('log', 'message_id')
        AND m.message_id IS NOT NULL AND g.has_log AND NOT g.has_nameless_records
        AND covered_between('log', m.first_attempt."at" - getvariable('clock_skew'),
            m.done_at + getvariable('clock_skew')) AS is_missing_by_id,
    m.first_attempt."at" - getvariable('clock_skew') AS began_at,
    covered_between('produced', m.first_attempt."at", m.first_attempt."at") AS is_send_covered,
    -- A record that a member of a share group acquired is locked for it, and may be delivered to another one later.
    CASE WHEN NOT getvariable('is_queue') THEN m.deadline
        ELSE greatest(m.deadline, p.acknowledged_at + getvariable('allowed_latency'),
            m.last_read_at + getvariable('redelivery') + getvariable('allowed_latency')) END AS due_at,
    is_send_covered AND is_accounted_since(due_at, began_at) AS is_old_enough,
    -- Evidence that would decide on a message without effect is missing; it is not that its time has not come.
    NOT is_send_covered OR NOT is_accounted_since(least(due_at, getvariable('horizon')), began_at) AS lacks_evidence,
    -- Nothing can still be on its way. In a queue that takes an acknowledgement of each, or a log that lacks it.
    CASE WHEN getvariable('is_queue')
        THEN is_declared('committed') AND ((m.own_count > 0 AND coalesce(p.is_passed, false)) OR is_missing_in_log
            OR is_missing_by_id)
        ELSE m.own_count = 0 OR coalesce(p.is_passed, false) OR coalesce(p.is_expired, false) OR is_missing_in_log
    END AS is_nowhere_left
FROM messages AS m
LEFT JOIN position_facts AS p ON p.message_key = m.message_key
LEFT JOIN denied_facts AS n ON n.message_key = m.message_key
LEFT JOIN topic_facts AS t ON t.topic IS NOT DISTINCT FROM m.origin_topic
LEFT JOIN effect_key_counts AS k ON k.message_key = m.message_key
LEFT JOIN (SELECT message_key, true AS is_copy FROM possible_copies) AS c ON c.message_key = m.message_key
LEFT JOIN (SELECT DISTINCT message_id, true AS is_ambiguous_id FROM messages WHERE is_ambiguous) AS a
    ON a.message_id = m.message_id
LEFT JOIN (
    SELECT DISTINCT message_id, true AS is_ambiguous_id FROM messages WHERE is_ambiguous_key(message_key) AND written > 0
) AS l ON l.message_id = m.message_id
LEFT JOIN topic_facts AS g ON g.topic = m.topic
LEFT JOIN begun_orphans AS b ON b.message_key = m.message_key;
