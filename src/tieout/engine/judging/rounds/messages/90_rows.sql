-- What a message has several of, as rows: contents, readers and intended partitions.
-- `differing_contents` has only what a rule may find: of messages whose rows differ, or know a null, or lack a column.
-- Needs: messages, sends, records, reads_at_positions, effects. Source: taxonomy.md 3 (CORRUPTED_*).
CREATE VIEW content_rows AS
SELECT message_key, 'sent' AS side, payload_hash, key_hash, header_hash, record_timestamp FROM sends
UNION ALL
SELECT message_key, 'logged', payload_hash, key_hash, header_hash, record_timestamp
FROM records WHERE transaction_state IN ('none', 'committed')
UNION ALL
SELECT message_key, 'output', payload_hash, key_hash, header_hash, record_timestamp
FROM reads_at_positions WHERE effect_state IN ('ok', 'again')
UNION ALL
SELECT message_key, 'output', payload_hash, key_hash, header_hash, record_timestamp
FROM effects WHERE effect_state = 'ok' AND (is_by_content() OR getvariable('effect_ledger') = 'delivered')
UNION ALL
SELECT
    message_key, 'part',
    CASE WHEN has_column('delivered', 'payload_hash') THEN payload_hash END,
    CASE WHEN has_column('delivered', 'key_hash') THEN key_hash END,
    CASE WHEN has_column('delivered', 'header_hash') THEN header_hash END,
    CASE WHEN has_column('delivered', 'record_timestamp') THEN record_timestamp END
FROM effects WHERE fans_out() AND effect_state = 'ok';

CREATE VIEW content_values AS
SELECT message_key, side, 'payload_hash' AS name, payload_hash AS value, 1 AS bit FROM content_rows
WHERE payload_hash IS NOT NULL AND is_compared('payload_hash')
UNION ALL
SELECT message_key, side, 'key_hash', key_hash, 2 FROM content_rows WHERE key_hash IS NOT NULL
UNION ALL
SELECT message_key, side, 'header_hash', header_hash, 4 FROM content_rows
WHERE header_hash IS NOT NULL AND is_compared('header_hash')
UNION ALL
SELECT message_key, side, 'record_timestamp', CAST(record_timestamp AS VARCHAR), 8 FROM content_rows
WHERE record_timestamp IS NOT NULL AND is_compared('record_timestamp');

CREATE VIEW message_contents AS SELECT DISTINCT message_key, side, name, value FROM content_values;

CREATE TABLE differing_contents AS
SELECT DISTINCT v.message_key, v.side, v.name, v.value
FROM content_values AS v
JOIN (
    SELECT message_key, differing | sent_nulls | logged_nulls | output_nulls | sent_lacking | logged_lacking
        | output_lacking AS bits
    FROM messages
) AS m USING (message_key)
WHERE v.bit & m.bits > 0;

CREATE VIEW message_readers AS
SELECT DISTINCT message_key, consumer_id, generation
FROM effects
WHERE effect_state = 'ok' AND (has_column(getvariable('effect_ledger'), 'consumer_id')
    OR has_column(getvariable('effect_ledger'), 'generation'));

CREATE VIEW message_intentions AS
SELECT DISTINCT message_key, intended_partition FROM sends WHERE intended_partition IS NOT NULL;
