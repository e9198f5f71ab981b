-- How long the delivered messages of the window took from acknowledgement to first effect; one row.
-- Needs messages and fates. Source: contract.md (`latency`).
CREATE TABLE latency AS
WITH taken AS (
    SELECT epoch_us(m.first_effect_at) - epoch_us(m.done_at) AS micros
    FROM messages AS m
    JOIN fates AS f USING (message_key)
    WHERE m.is_owned AND f.disposition = 'delivered'
)
SELECT count(micros) AS count, sum(micros) AS micros,
    quantile_disc(micros, 0.5) AS p50, quantile_disc(micros, 0.95) AS p95, quantile_disc(micros, 0.99) AS p99,
    max(micros) AS max
FROM taken;
