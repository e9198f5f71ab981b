-- Which of its effects a message of a fan-out lacks, where they have keys: counts per message.
-- Needs: message_effect_keys. Source: taxonomy.md 7, trap 14.
CREATE TABLE effect_key_counts AS
SELECT message_key,
    count_if(is_sent) AS sent_keys,
    count_if(is_sent AND NOT is_effect) AS lacking_keys,
    count_if(is_sent AND NOT is_effect AND set_aside_rows = 0) AS unaccounted_keys,
    count_if(is_doubtful AND NOT is_effect) AS doubtful_lacking_keys,
    count_if(is_doubtful AND is_effect) AS doubtful_further_keys,
    count_if((set_aside_rows > 0 AND is_effect) OR set_aside_rows > 1) AS doubly_accounted_keys
FROM message_effect_keys
WHERE getvariable('has_effect_keys')
GROUP BY message_key;
