-- PHANTOM_UNKNOWN, _ABORTED, _UNCOMMITTED: effects of messages that were never sent, were aborted, or were not yet
-- committed.
-- Needs: the messages with their dispositions. Source: taxonomy.md 3 and 4.
CREATE VIEW with_phantoms AS
SELECT *,
    written + aborted + open > 0 OR is_from_record AS is_recorded,
    attempts = 0 AND (effect_rows > 0 OR possible_effects > 0) AS is_orphan,
    coalesce(acceptance = 'failed' AND effect_rows > 0, false) AS is_aborted_effect,
    has_identity AND NOT has_unnamed_sends
        AND NOT ((message_id IS NULL OR is_by_position()) AND has_unplaced_sends) AS is_named,
    is_named AND is_origin_covered(coalesce(from_record_at, record_at), is_recorded, first_seen_at, has_first_record)
        AS is_record_origin_covered,
    -- An effect that does not say from which of the records it comes may be of any that shows no time.
    is_orphan AND effect_rows_in > 0 AND is_named AND NOT may_be_copy AND is_origin_covered(
        coalesce(from_record_at, CASE WHEN undated_records = 0 THEN record_at END),
        is_recorded, first_seen_at, has_first_record) AS is_phantom_unknown,
    CASE
        WHEN is_recorded THEN 'producer'
        WHEN is_declared('log') AND getvariable('coverage')['log'].is_sound
            AND (effect_position_count > 0 OR has_column('log', 'message_id')) THEN 'sink'
        ELSE 'unknown'
    END AS phantom_unknown_locus,
    (has_column('log', 'transaction_state') AND has_column('log', 'observed_at')
        OR has_column('log', 'broker_producer_id') OR has_column('read', 'transaction_id'))
        AND open_seen_at IS NOT NULL AND attempts > 0 AS is_phantom_uncommitted
FROM disposed;
