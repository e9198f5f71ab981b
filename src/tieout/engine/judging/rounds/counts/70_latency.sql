-- How long the delivered messages of the window took from acknowledgement to first effect; one row. Where clean messages
-- are told by a sample, as many of the others are drawn, and nobody knows the longest.
-- Needs messages, fates, clean_counts and clean_latencies. Source: contract.md (`latency`).
CREATE TABLE latency AS
WITH remaining AS (
    SELECT m.message_key, epoch_us(m.first_effect_at) - epoch_us(m.done_at) AS micros
    FROM messages AS m
    JOIN fates AS f USING (message_key)
    WHERE m.is_owned AND f.disposition = 'delivered'
),
every AS (
    SELECT micros, micros AS longest, 1 AS messages,
        CASE WHEN md5_number_lower(message_key) % getvariable('latency_share') = 0 THEN micros END AS took
    FROM remaining
    WHERE micros IS NOT NULL
    UNION ALL BY NAME
    SELECT micros, longest, took FROM clean_latencies
    UNION ALL BY NAME
    SELECT sent AS messages FROM clean_counts
)
SELECT coalesce(sum(messages), 0)::BIGINT AS count, sum(micros)::DECIMAL(38, 0) AS micros,
    quantile_disc(took, 0.5) AS p50, quantile_disc(took, 0.95) AS p95, quantile_disc(took, 0.99) AS p99,
    CASE WHEN NOT EXISTS (FROM clean_latencies WHERE took IS NOT NULL AND longest IS NULL) THEN max(longest) END AS max,
    CASE WHEN getvariable('latency_share') > 1 THEN count(took) END AS sample
FROM every;
