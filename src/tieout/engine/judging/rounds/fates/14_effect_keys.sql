-- In a fan-out with effect keys: which effects of a message were set aside, came twice, or may have.
-- Needs: message_effect_keys. Source: taxonomy.md 7, trap 14.
CREATE TABLE effect_key_counts AS
SELECT message_key,
    count_if(is_sent AND NOT is_effect AND set_aside_rows = 0) AS unaccounted_keys,
    count_if(is_doubtful AND is_effect) AS doubtful_further_keys,
    count_if((set_aside_rows > 0 AND is_effect) OR set_aside_rows > 1) AS doubly_accounted_keys
FROM message_effect_keys
WHERE getvariable('has_effect_keys')
GROUP BY message_key;
