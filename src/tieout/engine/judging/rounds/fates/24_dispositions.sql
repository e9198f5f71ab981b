-- What became of each accepted message: the first disposition that holds; null of all others.
-- Needs: due_messages, equals_elsewhere, covers. Source: taxonomy.md 3 (dispositions, in their order).
CREATE VIEW disposed AS
WITH equals AS (
    SELECT d.* EXCLUDE (may_have_passed_first),
        coalesce(d.may_have_passed_first, false) AS may_have_passed_first,
        coalesce(e.may_be_unseen, false) AS may_be_unseen,
        coalesce(e.may_be_elsewhere, false) AS may_be_elsewhere,
        d.is_old_enough AND d.is_nowhere_left AND e.message_key IS NULL AS is_due
    FROM due_messages AS d
    LEFT JOIN equals_elsewhere AS e ON e.message_key = d.message_key
),
told AS (
    SELECT *,
        CASE
            WHEN acceptance IS DISTINCT FROM 'accepted' THEN NULL
            WHEN is_early THEN 'unverifiable'
            WHEN is_whole THEN 'delivered'
            WHEN is_dead_lettered AND is_set_aside_whole THEN 'dead_lettered'
            WHEN is_filtered AND is_set_aside_whole THEN 'filtered'
            WHEN is_in_doubt OR lacks_evidence THEN 'unverifiable'
            -- An effect or a record that is tied to nobody could be this message's.
            WHEN may_be_unseen OR shares_ambiguous_id OR strays > 0
                OR (NOT has_identity AND has_orphans)
                OR ((is_by_content() OR is_unplaced) AND has_nameless_orphans) THEN 'unverifiable'
            -- An open transaction would set the message aside if it were committed.
            WHEN open_set_aside_rows > 0 THEN CASE WHEN is_due THEN 'unverifiable' ELSE 'in_flight' END
            WHEN is_compacted AND may_have_passed_first THEN 'unverifiable'
            WHEN is_compacted THEN 'compacted'
            WHEN is_due AND may_be_met_early THEN 'unverifiable'
            WHEN is_due THEN 'lost'
            ELSE 'in_flight'
        END AS disposition
    FROM equals
)
SELECT t.*,
    -- A commit covered a record without effect, and the evidence is complete beyond what it may take.
    coalesce(is_declared('committed') AND disposition IN ('lost', 'in_flight') AND effect_rows = 0
        AND open_set_aside_rows = 0 AND NOT may_be_elsewhere AND c.message_key IS NOT NULL, false) AS is_committed_ahead
FROM told AS t
LEFT JOIN (
    SELECT DISTINCT message_key FROM covers WHERE is_accounted(committed_at + getvariable('allowed_latency'))
) AS c ON c.message_key = t.message_key;
