-- A bucket's facts about its topics, which may have rows in other buckets, too: every bucket gets the parts of all, and
-- `topics` adds them up. A topic has several rows; facts of no single topic have topic null.
-- Needs: messages, sends, records, log_rows, log_bounds, unlike_contents, and evidence of produced, log and commits.
CREATE TABLE topic_parts AS
WITH message_facts AS (
    SELECT origin_topic AS topic,
        attempts > 0 AND acceptance <> 'failed' AS is_sent,
        attempts = 0 AND effect_rows > 0 AND NOT starts_with(message_key, 'b:') AS is_orphan,
        NOT is_by_content() AND asserted_count = 0 AND effect_rows = 0 AND written + aborted + open = 0 AS is_unplaced,
        CASE WHEN is_by_content() THEN NOT has_identity ELSE message_id IS NULL END AS is_nameless_send,
        CASE WHEN is_by_content() THEN starts_with(message_key, 'r:')
            ELSE message_id IS NULL OR is_by_position() END AS is_nameless_effect
    FROM messages
)
-- Bits: unnamed sends 1, unplaced sends 2, effects that nobody sent 4, nameless ones of these 8.
SELECT topic, bit_or(
    CASE WHEN is_sent AND is_nameless_send AND (is_unplaced OR is_by_content()) THEN 1 ELSE 0 END
    | CASE WHEN is_sent AND is_unplaced THEN 2 ELSE 0 END
    | CASE WHEN is_orphan THEN 4 ELSE 0 END
    | CASE WHEN is_orphan AND is_nameless_effect THEN 8 ELSE 0 END) AS bits,
    NULL::BIGINT AS log_start, NULL::BIGINT AS used_partitions, NULL::TIMESTAMP AS first_at, NULL::BIGINT AS undated,
    NULL::BIGINT AS begun_partitions, NULL::BOOLEAN AS has_nameless_records, NULL::BOOLEAN AS has_states,
    NULL::BOOLEAN AS has_markers, NULL::BOOLEAN AS has_legal_holes, NULL::BOOLEAN AS has_transactions,
    NULL::BOOLEAN AS has_accepted_transactions, NULL::BOOLEAN AS has_payloads, NULL::BOOLEAN AS is_individual,
    NULL::BOOLEAN AS is_individual_in_mirror, NULL::INTEGER AS differing, NULL::BOOLEAN AS has_unplaced_rows
FROM message_facts
GROUP BY topic
UNION ALL BY NAME
SELECT topic, max(coalesce(log_start, 0)) AS log_start, count(*) FILTER (log_end > 0) AS used_partitions,
    bool_or(has_states) AS has_states, bool_or(has_markers) AS has_markers,
    bool_or(contains(cleanup_policy, 'compact') OR is_sparse) AS has_legal_holes
FROM log_bounds
GROUP BY topic
UNION ALL BY NAME
SELECT topic, min(record_timestamp) AS first_at, count_if(record_timestamp IS NULL) AS undated,
    count_if("offset" = 0) AS begun_partitions, bool_or(message_id IS NULL) AS has_nameless_records
FROM records
GROUP BY topic
UNION ALL BY NAME
SELECT s.topic, true AS has_transactions, bool_or(m.acceptance = 'accepted') AS has_accepted_transactions
FROM sends AS s JOIN messages AS m USING (message_key)
WHERE s.transaction_id IS NOT NULL
GROUP BY s.topic
UNION ALL BY NAME
SELECT DISTINCT topic, true AS has_payloads FROM sends WHERE payload_hash IS NOT NULL
UNION ALL BY NAME
SELECT DISTINCT topic, true AS is_individual
FROM evidence_committed
WHERE is_individual AND is_ours(consumer_group) AND committed_offset IS NOT NULL
UNION ALL BY NAME
SELECT DISTINCT topic, true AS is_individual_in_mirror
FROM evidence_mirrored
WHERE is_individual AND is_ours_mirrored(consumer_group)
UNION ALL BY NAME
SELECT NULL AS topic, bit_or(bits)::INTEGER AS differing FROM unlike_contents
UNION ALL BY NAME
SELECT NULL AS topic, bool_or(placed_offset("offset") IS NULL) AS has_unplaced_rows FROM evidence_produced;
