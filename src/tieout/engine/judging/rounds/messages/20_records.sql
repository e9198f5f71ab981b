-- What the log's data records tell of a message: how many of each transaction state, when, and what they hold.
-- Needs: records. Source: taxonomy.md 1 (Visible) and 3 (PHANTOM).
CREATE TABLE record_facts AS
SELECT
    message_key,
    count(*) AS records,
    count(*) FILTER (WHERE is_written) AS written,
    count(*) FILTER (WHERE transaction_state = 'committed') AS committed,
    count(*) FILTER (WHERE transaction_state = 'aborted') AS aborted,
    count(*) FILTER (WHERE transaction_state = 'open') AS open,
    bool_or(broker_producer_id >= 0) AS has_idempotent_record,
    bool_or(broker_producer_id < 0) AS has_plain_record,
    bool_or(is_written AND coalesce(lower(timestamp_type) LIKE '%append%', false)) AS is_log_append,
    min(record_timestamp) AS record_at,
    count(*) FILTER (WHERE record_timestamp IS NULL) AS undated_records,
    min(topic) AS record_topic,
    max(open_until) AS open_until,
    min(message_id) AS record_id,
    min(payload_hash) FILTER (WHERE is_by_content()) AS record_hash,
    bit_or(CASE WHEN identity IS NOT NULL THEN shown_marks('log', 4, record_timestamp) ELSE 0 END) AS marks,
    bit_or(null_contents('log', payload_hash, key_hash, header_hash, record_timestamp, content, NULL))
        FILTER (WHERE is_written) AS logged_nulls,
    bit_or(lacking_contents('log', payload_hash, key_hash, header_hash, record_timestamp, content))
        FILTER (WHERE is_written) AS logged_lacking,
    min(hash(payload_hash)) FILTER (WHERE is_written AND payload_hash IS NOT NULL AND is_compared('payload_hash'))
        AS least_payload,
    max(hash(payload_hash)) FILTER (WHERE is_written AND payload_hash IS NOT NULL AND is_compared('payload_hash'))
        AS greatest_payload,
    min(hash(key_hash)) FILTER (WHERE is_written AND key_hash IS NOT NULL) AS least_key,
    max(hash(key_hash)) FILTER (WHERE is_written AND key_hash IS NOT NULL) AS greatest_key,
    min(hash(header_hash)) FILTER (WHERE is_written AND header_hash IS NOT NULL AND is_compared('header_hash'))
        AS least_header,
    max(hash(header_hash)) FILTER (WHERE is_written AND header_hash IS NOT NULL AND is_compared('header_hash'))
        AS greatest_header,
    min(record_timestamp) FILTER (WHERE is_written AND is_compared('record_timestamp')) AS least_stamp,
    max(record_timestamp) FILTER (WHERE is_written AND is_compared('record_timestamp')) AS greatest_stamp
FROM (
    SELECT
        *,
        transaction_state IN ('none', 'committed') AS is_written,
        CASE WHEN is_by_content() THEN payload_hash ELSE message_id END AS identity
    FROM records
)
GROUP BY message_key;
