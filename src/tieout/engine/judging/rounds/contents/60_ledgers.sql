-- The rows of every ledger with their final message keys, which no later round changes. `effect_round` counts the
-- effects of a message that has several: 1 for first ones, 2 for those of a second delivery. `reads_at_positions` have
-- the keys of the records at their positions, which by content are not those of the messages they are effects of; in
-- `reads_of_messages`, reads of what nobody sent have the keys of effects without a sender.
-- Needs: the keyed_ tables, early_messages, the keys by content. Source: taxonomy.md 1 (Messages) and 7, trap 14.
CREATE TABLE deliveries AS
WITH resolved AS (
    SELECT d.* REPLACE (
        CASE WHEN is_stray(d, e.sent_at) THEN stray_key(d.message_key)
            ELSE coalesce(k.message_key, d.message_key) END AS message_key,
        NOT is_stray(d, e.sent_at) AND coalesce(k.has_identity, d.has_identity) AS has_identity)
    FROM keyed_deliveries AS d
    LEFT JOIN early_messages AS e ON d.message_key = e.message_key AND getvariable('effect_ledger') = 'delivered'
    LEFT JOIN content_keys AS k ON d.rowid = k.line AND getvariable('effect_ledger') = 'delivered')
SELECT *, NULL::BIGINT AS effect_round FROM resolved WHERE NOT fans_out()
UNION ALL
SELECT *,
    CASE WHEN effect_state = 'ok' THEN (row_number() OVER (
        PARTITION BY message_key, effect_state, CASE WHEN getvariable('fan_out_count') IS NULL THEN effect_key END
        ORDER BY processed_at NULLS LAST, delivery_sequence NULLS FIRST, topic, "partition", "offset", effect_key,
            consumer_id, generation, payload_hash, leader_epoch) - 1) // coalesce(getvariable('fan_out_count'), 1) + 1
        END
FROM resolved
WHERE fans_out();

CREATE TABLE reads AS
SELECT d.* REPLACE (
    CASE WHEN is_stray(d, e.sent_at) THEN stray_key(d.message_key) ELSE coalesce(k.message_key, d.message_key) END
        AS message_key,
    NOT is_stray(d, e.sent_at) AND coalesce(k.has_identity, d.has_identity) AS has_identity)
FROM keyed_reads AS d
LEFT JOIN early_messages AS e ON d.message_key = e.message_key AND getvariable('effect_ledger') = 'read'
LEFT JOIN content_keys AS k ON d.rowid = k.line AND getvariable('effect_ledger') = 'read';

CREATE TABLE reads_with_keys_of_records AS SELECT * FROM keyed_reads WHERE is_by_content();

CREATE VIEW reads_at_positions AS
SELECT * FROM reads_with_keys_of_records
UNION ALL
SELECT * FROM reads WHERE NOT is_by_content();

-- Where their payload was sent elsewhere they stand twice: such an effect may be a copy.
CREATE TABLE unsent_reads AS
WITH unsent AS (SELECT * FROM reads_with_keys_of_records WHERE is_unsent(message_key, payload_hash))
SELECT * REPLACE (payload_key(payload_hash) AS message_key) FROM unsent
UNION ALL
SELECT * REPLACE (excess_key(payload_hash) AS message_key) FROM unsent SEMI JOIN content_sends USING (payload_hash);

CREATE VIEW reads_of_messages AS
SELECT * FROM reads_at_positions WHERE NOT (is_by_content() AND is_unsent(message_key, payload_hash))
UNION ALL
SELECT * FROM unsent_reads;

CREATE VIEW dead_letters AS
SELECT d.* REPLACE (coalesce(k.message_key, d.message_key) AS message_key)
FROM keyed_dead_letters AS d
LEFT JOIN (SELECT line, message_key FROM content_set_aside_keys WHERE stage % 2 = 1) AS k ON d.rowid = k.line;

CREATE VIEW filtered AS
SELECT d.* REPLACE (coalesce(k.message_key, d.message_key) AS message_key)
FROM keyed_filtered AS d
LEFT JOIN (SELECT line, message_key FROM content_set_aside_keys WHERE stage % 2 = 0) AS k ON d.rowid = k.line;

CREATE VIEW staged AS SELECT * FROM keyed_staged;

CREATE VIEW records AS SELECT * FROM keyed_records;

CREATE TABLE sends AS
SELECT s.*, m.message_key IS NOT NULL AS may_be_met_early
FROM keyed_sends AS s
LEFT JOIN met_early AS m USING (message_key);
