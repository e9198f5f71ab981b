-- The canonical rows of each ledger that may prove a break, with their message, position and time.
-- Needs: the rows of all ledgers after contents. Source: contract.md (breaks.jsonl).
CREATE VIEW proof_produced AS
SELECT message_key, topic, "partition", "offset", attempted_at AS seen_at, struct_pack(
    producer_id, producer_session, sequence, transaction_id, transaction_state, message_id, effect_key, topic,
    topic_id, "partition", "offset", leader_epoch, intended_partition, key_hash, payload_hash, header_hash,
    record_timestamp, content, attempted_at, completed_at, is_approximate, outcome
) AS proof
FROM sends;

CREATE VIEW proof_log AS
SELECT message_key, topic, "partition", "offset", record_timestamp AS seen_at, struct_pack(
    topic, topic_id, "partition", "offset", leader_epoch, broker_producer_id, producer_epoch, broker_sequence,
    timestamp_type, transaction_state, is_control, message_id, key_hash, payload_hash, header_hash,
    record_timestamp, content, log_start_offset, last_stable_offset, end_offset, observed_at, cleanup_policy
) AS proof
FROM records;

-- By content, a read where nobody sent also proves breaks of its payload; breaks of its position have it already.
CREATE VIEW proof_read AS
SELECT message_key, topic, "partition", CASE WHEN is_placed THEN "offset" END AS "offset", processed_at AS seen_at,
    struct_pack(
    message_id, producer_session, topic, topic_id, "partition", "offset", leader_epoch, effect_key,
    consumer_group, consumer_id, generation, delivery_sequence, processed_at, key_hash, payload_hash,
    header_hash, record_timestamp, content, outcome, transaction_id, transaction_state, poll_id, isolation
) AS proof
FROM (
    SELECT *, true AS is_placed FROM reads
    UNION ALL BY NAME
    SELECT *, false AS is_placed FROM unsent_reads WHERE getvariable('effect_ledger') <> 'read'
);

CREATE VIEW proof_delivered AS
SELECT message_key, topic, "partition", "offset", processed_at AS seen_at, struct_pack(
    message_id, producer_session, topic, topic_id, "partition", "offset", leader_epoch, effect_key,
    consumer_group, consumer_id, generation, delivery_sequence, processed_at, key_hash, payload_hash,
    header_hash, record_timestamp, content, outcome, transaction_id, transaction_state
) AS proof
FROM deliveries;

CREATE MACRO proof_of_set_aside(rows) AS TABLE
SELECT message_key, topic, "partition", "offset", "at" AS seen_at, struct_pack(
    message_id, topic, topic_id, "partition", "offset", payload_hash, effect_key, "at", reason,
    transaction_state
) AS proof
FROM query_table(rows);
CREATE VIEW proof_filtered AS FROM proof_of_set_aside('filtered');
CREATE VIEW proof_dead_letters AS FROM proof_of_set_aside('dead_letters');
CREATE VIEW proof_staged AS FROM proof_of_set_aside('staged');
