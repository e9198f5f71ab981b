-- The log's records, control records included, one row per position. Of several records at a position the one of the
-- highest leader epoch counts, and of equal epochs the greatest row.
-- Needs: evidence_log. Source: taxonomy.md 7, trap 8.
CREATE TABLE doubled_log_rows AS
WITH doubled AS (
    SELECT topic, "partition", "offset" FROM evidence_log WHERE "offset" IS NOT NULL
    GROUP BY topic, "partition", "offset" HAVING count(*) > 1)
SELECT log.* REPLACE (
        coalesce(lower(transaction_state), 'none') AS transaction_state, coalesce(is_control, false) AS is_control)
FROM evidence_log AS log JOIN doubled AS d
    ON log.topic IS NOT DISTINCT FROM d.topic AND log."partition" IS NOT DISTINCT FROM d."partition"
    AND log."offset" = d."offset"
QUALIFY row_number() OVER (
    PARTITION BY log.topic, log."partition", log."offset"
    ORDER BY coalesce(leader_epoch, -1) DESC, topic_id DESC NULLS LAST, leader_epoch DESC NULLS LAST,
        broker_producer_id DESC NULLS LAST, producer_epoch DESC NULLS LAST, broker_sequence DESC NULLS LAST,
        timestamp_type DESC NULLS LAST, coalesce(lower(transaction_state), 'none') DESC,
        coalesce(is_control, false) DESC, message_id DESC NULLS LAST, key_hash DESC NULLS LAST,
        payload_hash DESC NULLS LAST, header_hash DESC NULLS LAST, record_timestamp DESC NULLS LAST,
        content DESC NULLS LAST, log_start_offset DESC NULLS LAST, last_stable_offset DESC NULLS LAST,
        end_offset DESC NULLS LAST, observed_at DESC NULLS LAST, cleanup_policy DESC NULLS LAST) = 1;

CREATE VIEW log_rows AS
SELECT log.* REPLACE (
        coalesce(lower(transaction_state), 'none') AS transaction_state, coalesce(is_control, false) AS is_control)
FROM evidence_log AS log ANTI JOIN doubled_log_rows AS d
    ON log.topic IS NOT DISTINCT FROM d.topic AND log."partition" IS NOT DISTINCT FROM d."partition"
    AND log."offset" = d."offset"
WHERE log."offset" IS NOT NULL
UNION ALL
SELECT * FROM doubled_log_rows;
