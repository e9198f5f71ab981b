-- The disposition of each accepted message: the first one that holds; null for all other messages.
-- Needs: due_messages, equals_elsewhere, covers. Source: taxonomy.md 3 (dispositions, in their order).
CREATE VIEW disposed AS
SELECT d.*,
    coalesce(e.may_be_elsewhere, false) AS may_be_elsewhere,
    d.is_old_enough AND d.is_nowhere_left AND e.message_key IS NULL AS is_due,
    CASE
        WHEN d.acceptance IS DISTINCT FROM 'accepted' THEN NULL
        WHEN d.is_early THEN 'unverifiable'
        WHEN d.is_whole THEN 'delivered'
        WHEN d.is_dead_lettered AND d.is_set_aside_whole THEN 'dead_lettered'
        WHEN d.is_filtered AND d.is_set_aside_whole THEN 'filtered'
        WHEN d.is_in_doubt OR d.lacks_evidence THEN 'unverifiable'
        -- An effect or a record that belongs to no message for certain could be this one's.
        WHEN e.may_be_unseen OR d.shares_ambiguous_id OR d.strays > 0
            OR (NOT d.has_identity AND d.has_orphans)
            OR ((is_by_content() OR d.is_unplaced) AND d.has_nameless_orphans) THEN 'unverifiable'
        -- An open transaction would set the message aside if it were committed.
        WHEN d.open_set_aside_rows > 0 THEN CASE WHEN is_due THEN 'unverifiable' ELSE 'in_flight' END
        WHEN d.is_compacted AND d.may_have_passed_first THEN 'unverifiable'
        WHEN d.is_compacted THEN 'compacted'
        WHEN is_due AND d.may_be_met_early THEN 'unverifiable'
        WHEN is_due THEN 'lost'
        ELSE 'in_flight'
    END AS disposition,
    -- A commit covered a record without effect, and the evidence is complete beyond what it may take.
    coalesce(is_declared('committed') AND disposition IN ('lost', 'in_flight') AND d.effect_rows = 0
        AND d.open_set_aside_rows = 0 AND NOT coalesce(e.may_be_elsewhere, false) AND c.message_key IS NOT NULL,
        false) AS is_committed_ahead
FROM due_messages AS d
LEFT JOIN equals_elsewhere AS e ON e.message_key = d.message_key
LEFT JOIN (
    SELECT DISTINCT message_key FROM covers WHERE is_accounted(committed_at + getvariable('allowed_latency'))
) AS c ON c.message_key = d.message_key;
