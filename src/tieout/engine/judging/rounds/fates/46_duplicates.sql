-- LOG_DUPLICATE, OUTPUT_DUPLICATE, REDELIVERY: one message more than once in the log, in the output, in the reads.
-- Needs: messages, message_positions. Source: taxonomy.md 3.
-- Positions that hold the message: visible ones, and asserted ones that the log does not cover; where two or more do.
CREATE TABLE copies_in_log AS
SELECT message_key, count(*) AS copies
FROM message_positions
WHERE is_declared('log') AND (is_visible OR (is_asserted AND is_uncovered))
GROUP BY message_key
HAVING count(*) > 1;

CREATE VIEW with_duplicates AS
WITH counted AS (
    SELECT m.*,
        CASE WHEN is_declared('log') THEN coalesce(c.copies, 0) ELSE m.own_count END AS copies,
        CASE WHEN fans_out() THEN m.effect_rounds ELSE m.effect_rows END AS effect_repeats
    FROM with_corruptions AS m
    LEFT JOIN copies_in_log AS c ON c.message_key = m.message_key
)
SELECT *,
    attempts > 0 AND effect_repeats >= 2 AS is_output_duplicate,
    -- The message has as many positions as effects: the duplicate came from the log.
    attempts > 0 AND effect_repeats >= 2 AND copies >= effect_repeats AS is_inherited,
    (is_declared('log') OR (has_column('produced', 'partition') AND has_column('produced', 'offset'))
        OR (has_column('read', 'partition') AND has_column('read', 'offset')))
        AND NOT is_by_position() AND attempts > 0 AND copies >= 2 AS is_log_duplicate,
    has_column('read', 'partition') AND has_column('read', 'offset') AND reads > read_position_count AS is_redelivery
FROM counted;
