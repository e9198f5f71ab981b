-- LOG_DUPLICATE, OUTPUT_DUPLICATE, REDELIVERY: one message more than once in the log, in the output, in the reads.
-- Needs: messages. Source: taxonomy.md 3.
CREATE VIEW with_duplicates AS
SELECT *,
    -- Positions that hold the message: visible ones, and asserted ones that the log does not cover.
    CASE WHEN is_declared('log') THEN copy_count ELSE own_count END AS copies,
    CASE WHEN fans_out() THEN effect_rounds ELSE effect_rows END AS effect_repeats,
    attempts > 0 AND effect_repeats >= 2 AS is_output_duplicate,
    -- The message has as many positions as effects: the duplicate came from the log.
    is_output_duplicate AND copies >= effect_repeats AS is_inherited,
    (is_declared('log') OR (has_column('produced', 'partition') AND has_column('produced', 'offset'))
        OR (has_column('read', 'partition') AND has_column('read', 'offset')))
        AND NOT is_by_position() AND attempts > 0 AND copies >= 2 AS is_log_duplicate,
    has_column('read', 'partition') AND has_column('read', 'offset') AND reads > read_position_count AS is_redelivery
FROM with_corruptions;
