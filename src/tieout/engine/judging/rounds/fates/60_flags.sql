-- The flags of a message: what holds of it besides its class.
-- Needs: the classes above. Source: taxonomy.md 3 (flags).
CREATE VIEW with_flags AS
SELECT *,
    is_in_flight AND is_old_enough AND acceptance = 'accepted' AS is_overdue,
    -- An uncertain row may be one effect too many.
    attempts > 0 AND ((strays > 0 AND effect_rows > 0) OR CASE
        WHEN NOT fans_out() THEN possible_effects > 0 AND effect_rows > 0
        WHEN getvariable('fan_out_count') IS NOT NULL
            THEN possible_effects > 0 AND effect_rows >= getvariable('fan_out_count')
        ELSE doubtful_further_keys > 0 END) AS is_possible_duplicate,
    -- One effect is there and set aside as well, or was set aside twice.
    attempts > 0 AND CASE
        WHEN NOT fans_out() THEN set_aside_rows > 1 OR (set_aside_rows > 0 AND effect_rows > 0)
        WHEN getvariable('fan_out_count') IS NOT NULL THEN set_aside_rows > 0
            AND least(effect_rows, getvariable('fan_out_count')) + set_aside_rows > getvariable('fan_out_count')
        ELSE doubly_accounted_keys > 0 OR (set_aside_rows > 0 AND sent_keys > 0 AND is_whole) END AS is_accounted_twice
FROM with_outcomes;
