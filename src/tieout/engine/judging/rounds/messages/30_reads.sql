-- Per message, facts of the reads at its positions: whether and when it was delivered to the reader, and its contents.
-- Needs: reads_of_messages. Source: taxonomy.md 1 (Ledgers) and 3 (DIRTY_READ).
CREATE TABLE several_reads AS SELECT message_key FROM reads_of_messages GROUP BY message_key HAVING count(*) > 1;

CREATE VIEW read_shares AS
SELECT
    message_key,
    (is_given AND is_placed)::BIGINT AS reads,
    (is_placed AND NOT is_of_aborted)::BIGINT AS placed_reads,
    is_given OR is_placed AS was_handed,
    coalesce(lower(isolation) = 'read_committed', false) AS is_read_committed,
    CASE WHEN getvariable('is_queue') THEN processed_at END AS last_read_at,
    is_placed AND held_state IS NULL AS is_elsewhere,
    CASE WHEN (is_given OR is_placed) AND is_inside THEN opened_at(processed_at, open_until) END AS opened_at_in,
    CASE WHEN is_given OR is_placed THEN opened_at(processed_at, open_until) END AS opened_at,
    CASE WHEN is_given AND NOT is_placed AND is_inside THEN processed_at END AS unplaced_at_in,
    CASE WHEN is_given AND NOT is_placed THEN processed_at END AS unplaced_at,
    CASE WHEN transaction_id IS NOT NULL AND is_inside THEN processed_at END AS own_at_in,
    CASE WHEN transaction_id IS NOT NULL THEN processed_at END AS own_at,
    message_id AS read_id,
    topic AS read_topic,
    has_identity,
    CASE WHEN is_by_content() THEN payload_hash END AS read_hash,
    CASE WHEN met_by(topic, message_id, payload_hash) IS NOT NULL
        THEN shown_marks('read', 256, processed_at) ELSE 0 END AS marks,
    CASE WHEN is_given THEN
        null_contents('read', payload_hash, key_hash, header_hash, record_timestamp, content, NULL) END AS output_nulls,
    CASE WHEN is_given THEN
        lacking_contents('read', payload_hash, key_hash, header_hash, record_timestamp, content) END AS output_lacking
FROM (
    SELECT
        *,
        effect_state IN ('ok', 'again') AS is_given,
        "offset" IS NOT NULL AS is_placed,
        in_window(processed_at) AS is_inside
    FROM reads_of_messages
);

CREATE TABLE facts_of_several_reads AS
SELECT
    message_key,
    sum(reads)::BIGINT AS reads,
    sum(placed_reads)::BIGINT AS placed_reads,
    bool_or(was_handed) AS was_handed,
    bool_or(is_read_committed) AS is_read_committed,
    max(last_read_at) AS last_read_at,
    bool_or(is_elsewhere) AS is_elsewhere,
    min(opened_at_in) AS opened_at_in,
    min(opened_at) AS opened_at,
    min(unplaced_at_in) AS unplaced_at_in,
    min(unplaced_at) AS unplaced_at,
    min(own_at_in) AS own_at_in,
    min(own_at) AS own_at,
    min(read_id) AS read_id,
    min(read_topic) AS read_topic,
    bool_and(has_identity) AS has_identity,
    min(read_hash) AS read_hash,
    bit_or(marks) AS marks,
    bit_or(output_nulls) AS output_nulls,
    bit_or(output_lacking) AS output_lacking
FROM read_shares SEMI JOIN several_reads USING (message_key)
GROUP BY message_key;

CREATE VIEW read_facts AS
SELECT * FROM read_shares ANTI JOIN several_reads USING (message_key)
UNION ALL BY NAME
SELECT * FROM facts_of_several_reads;
