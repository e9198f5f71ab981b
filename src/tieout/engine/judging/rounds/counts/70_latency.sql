-- How long the delivered messages of the window took from acknowledgement to first effect. Where clean messages are
-- represented by a sample, the others are sampled at the same rate, and the maximum is unknown.
-- Needs: messages, fates, clean_counts, clean_latencies. Source: contract.md (`latency`).
CREATE TABLE latency_parts AS
WITH remaining AS (
    SELECT m.message_key, epoch_us(m.first_effect_at) - epoch_us(m.done_at) AS micros
    FROM messages AS m
    JOIN fates AS f USING (message_key)
    WHERE m.is_owned AND f.disposition = 'delivered'
)
SELECT micros, micros AS longest, 1::BIGINT AS messages,
    CASE WHEN md5_number_lower(message_key) % getvariable('latency_share') = 0 THEN micros END AS sampled_micros
FROM remaining
WHERE micros IS NOT NULL
UNION ALL BY NAME
SELECT micros, longest, took AS sampled_micros FROM clean_latencies
UNION ALL BY NAME
SELECT sent AS messages FROM clean_counts;
