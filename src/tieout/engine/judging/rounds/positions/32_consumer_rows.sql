-- The judged group's reads, output and set-aside rows, with `effect_state`: ok, unknown, none. A set-aside row counts
-- like an output: only where a reader of committed data sees it.
-- Needs: evidence_read, evidence_delivered, evidence_filtered, evidence_dead_letters, evidence_staged, transactions.
-- Source: taxonomy.md 1 (Effects).
CREATE VIEW unnamed_reads AS
SELECT r.* REPLACE (placed_offset(r."offset") AS "offset"),
    output_state('read', r.outcome, r.transaction_state, t.state, r.effect_key) AS effect_state
FROM evidence_read AS r LEFT JOIN read_transactions AS t ON r.transaction_id = t.transaction_id
WHERE is_ours(r.consumer_group);

CREATE VIEW unnamed_deliveries AS
SELECT r.* REPLACE (placed_offset(r."offset") AS "offset"),
    output_state('delivered', r.outcome, r.transaction_state, t.state, r.effect_key) AS effect_state
FROM evidence_delivered AS r LEFT JOIN delivered_transactions AS t ON r.transaction_id = t.transaction_id
WHERE is_ours(r.consumer_group);

CREATE VIEW unnamed_filtered AS
SELECT *, set_aside_state(transaction_state) AS effect_state, NULL::VARCHAR AS producer_session FROM evidence_filtered
WHERE is_ours(consumer_group);
CREATE VIEW unnamed_dead_letters AS
SELECT *, set_aside_state(transaction_state) AS effect_state, NULL::VARCHAR AS producer_session FROM evidence_dead_letters
WHERE is_ours(consumer_group);
CREATE VIEW unnamed_staged AS
SELECT *, set_aside_state(transaction_state) AS effect_state, NULL::VARCHAR AS producer_session FROM evidence_staged
WHERE is_ours(consumer_group);

CREATE VIEW unnamed_outputs AS
SELECT topic, "partition", "offset", message_id, producer_session, payload_hash FROM unnamed_deliveries
UNION ALL SELECT topic, "partition", "offset", message_id, producer_session, payload_hash FROM unnamed_filtered
UNION ALL SELECT topic, "partition", "offset", message_id, producer_session, payload_hash FROM unnamed_dead_letters
UNION ALL SELECT topic, "partition", "offset", message_id, producer_session, payload_hash FROM unnamed_staged;
