-- The log's data records: whether a reader of committed data receives them, and until when their transaction was open.
-- A producer has one transaction at a time, so its next control record in the partition ends it.
-- Needs: log_rows, log_bounds. Source: taxonomy.md 1 (Visible).
CREATE TABLE transaction_ends AS
WITH markers AS (
    SELECT topic, "partition", broker_producer_id, "offset", record_timestamp FROM log_rows
    WHERE is_control AND broker_producer_id IS NOT NULL AND record_timestamp IS NOT NULL)
SELECT log.topic, log."partition", log."offset", m.record_timestamp AS ended_at
FROM log_rows AS log ASOF JOIN markers AS m
    ON log.topic IS NOT DISTINCT FROM m.topic AND log."partition" IS NOT DISTINCT FROM m."partition"
    AND log.broker_producer_id = m.broker_producer_id AND log."offset" < m."offset"
WHERE log.transaction_state = 'committed' AND NOT log.is_control;

CREATE VIEW data_records AS
SELECT log.*,
    log.transaction_state IN ('none', 'committed')
        AND (b.first_unstable IS NULL OR log."offset" < b.first_unstable) AS is_visible,
    CASE WHEN log.transaction_state = 'open' THEN b.observed_at ELSE e.ended_at END AS open_until
FROM log_rows AS log
LEFT JOIN log_bounds AS b
    ON log.topic IS NOT DISTINCT FROM b.topic AND log."partition" IS NOT DISTINCT FROM b."partition"
LEFT JOIN transaction_ends AS e
    ON log.topic IS NOT DISTINCT FROM e.topic AND log."partition" IS NOT DISTINCT FROM e."partition"
    AND log."offset" = e."offset"
WHERE NOT log.is_control;
