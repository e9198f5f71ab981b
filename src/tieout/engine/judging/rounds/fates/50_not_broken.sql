-- Messages that are no break, or not yet one: arrived (late, recovered, delivered), legally set aside (dead-lettered,
-- filtered, compacted), in flight, never sent, or unverifiable.
-- Source: taxonomy.md 3.
CREATE VIEW with_outcomes AS
SELECT *,
    coalesce(acceptance IN ('failed', 'unproven') AND effect_rows = 0, false) AS is_unaccepted_without_effect,
    coalesce(is_dead_lettered, false) AS has_dead_letter,
    coalesce(is_filtered, false) AS has_filter,
    is_unaccepted_without_effect AND (has_dead_letter OR has_filter) AS is_set_aside,
    shares_ambiguous_id OR shares_ambiguous_record OR strays > 0 AS may_own,
    possible_effects > 0 AND effect_rows = 0 AS may_have_effect,
    -- An unproven message can still arrive: not due, or not absent everywhere. A dead letter of a transaction that was
    -- aborted, or is open, sets nothing aside; but somebody had the message.
    coalesce(acceptance = 'unproven', false) AND NOT is_set_aside AND (NOT is_due OR open > 0 OR was_handed
        OR coalesce(is_staged, false) OR aborted_set_aside_rows + open_set_aside_rows > 0) AS is_pending,
    -- Evidence that would decide on a message that was not accepted is missing or ambiguous.
    NOT is_set_aside AND CASE acceptance
        WHEN 'unproven' THEN may_own OR may_have_effect OR lacks_evidence OR (open_set_aside_rows > 0 AND is_due)
        WHEN 'failed' THEN may_have_effect OR (may_own AND effect_rows = 0)
        ELSE false END AS is_undecided,
    coalesce(acceptance = 'accepted' AND CASE WHEN fans_out() THEN last_first_at ELSE first_effect_at END > deadline,
        false) AS is_late,
    coalesce(disposition = 'in_flight', false) OR (is_pending AND NOT is_undecided) AS is_in_flight,
    is_declared('dead_letters')
        AND (coalesce(disposition = 'dead_lettered', false) OR (has_dead_letter AND is_unaccepted_without_effect))
        AS is_of_dead_letter,
    is_declared('filtered') AND (coalesce(disposition = 'filtered', false)
        OR (has_filter AND NOT has_dead_letter AND is_unaccepted_without_effect)) AS is_of_filter,
    is_declared('log') AND coalesce(disposition = 'compacted', false) AS is_taken_by_compaction,
    coalesce(disposition = 'unverifiable', false) OR is_undecided OR (is_orphan AND NOT is_phantom_unknown)
        OR is_content_open AS is_unverifiable,
    NOT is_set_aside AND NOT is_undecided AND CASE acceptance
        WHEN 'unproven' THEN NOT is_pending
        WHEN 'failed' THEN effect_rows = 0 AND possible_effects = 0
        ELSE false END AS is_not_sent
FROM with_misroutings;
