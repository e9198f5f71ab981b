-- Per message, facts of its data records in the log: how many of each transaction state, their times and contents.
-- Needs: records. Source: taxonomy.md 1 (Visible) and 3 (PHANTOM).
CREATE TABLE several_records AS SELECT message_key FROM records GROUP BY message_key HAVING count(*) > 1;

CREATE VIEW record_shares AS
SELECT
    message_key,
    has_identity,
    1::BIGINT AS records,
    is_written::BIGINT AS written,
    (transaction_state = 'committed')::BIGINT AS committed,
    (transaction_state = 'aborted')::BIGINT AS aborted,
    (transaction_state = 'open')::BIGINT AS open,
    broker_producer_id >= 0 AS has_idempotent_record,
    broker_producer_id < 0 AS has_plain_record,
    is_written AND coalesce(lower(timestamp_type) LIKE '%append%', false) AS is_log_append,
    record_timestamp AS record_at,
    (record_timestamp IS NULL)::BIGINT AS undated_records,
    topic AS record_topic,
    open_until,
    message_id AS record_id,
    CASE WHEN is_by_content() THEN payload_hash END AS record_hash,
    CASE WHEN met_by(topic, message_id, payload_hash) IS NOT NULL
        THEN shown_marks('log', 4, record_timestamp) ELSE 0 END AS marks,
    CASE WHEN is_written THEN
        null_contents('log', payload_hash, key_hash, header_hash, record_timestamp, content, NULL) END AS logged_nulls,
    CASE WHEN is_written THEN
        lacking_contents('log', payload_hash, key_hash, header_hash, record_timestamp, content) END AS logged_lacking
FROM (SELECT *, transaction_state IN ('none', 'committed') AS is_written FROM records);

CREATE TABLE facts_of_several_records AS
SELECT
    message_key,
    bool_and(has_identity) AS has_identity,
    count(*) AS records,
    sum(written)::BIGINT AS written,
    sum(committed)::BIGINT AS committed,
    sum(aborted)::BIGINT AS aborted,
    sum(open)::BIGINT AS open,
    bool_or(has_idempotent_record) AS has_idempotent_record,
    bool_or(has_plain_record) AS has_plain_record,
    bool_or(is_log_append) AS is_log_append,
    min(record_at) AS record_at,
    sum(undated_records)::BIGINT AS undated_records,
    min(record_topic) AS record_topic,
    max(open_until) AS open_until,
    min(record_id) AS record_id,
    min(record_hash) AS record_hash,
    bit_or(marks) AS marks,
    bit_or(logged_nulls) AS logged_nulls,
    bit_or(logged_lacking) AS logged_lacking
FROM record_shares SEMI JOIN several_records USING (message_key)
GROUP BY message_key;

CREATE VIEW record_facts AS
SELECT * FROM record_shares ANTI JOIN several_records USING (message_key)
UNION ALL BY NAME
SELECT * FROM facts_of_several_records;
