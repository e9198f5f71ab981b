-- The contents (bits: payload 1, key 2, header 4, timestamp 8) of which a message's rows show more than one, compared
-- by their hashes. `content_rows` are what each side shows: what was sent, what the log holds, what was read or came
-- out, and, of a fan-out, the parts that came out.
-- Needs: sends, records, reads_at_positions, effects. Source: taxonomy.md 3 (CORRUPTED_*).
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

CREATE TABLE several_contents AS
SELECT message_key,
    CASE WHEN payload <> last_payload THEN 1 ELSE 0 END + CASE WHEN key <> last_key THEN 2 ELSE 0 END
    + CASE WHEN header <> last_header THEN 4 ELSE 0 END + CASE WHEN stamp <> last_stamp THEN 8 ELSE 0 END AS contents
FROM (
    SELECT message_key,
        min(payload) AS payload, max(payload) AS last_payload, min(key) AS key, max(key) AS last_key,
        min(header) AS header, max(header) AS last_header, min(stamp) AS stamp, max(stamp) AS last_stamp
    FROM (
        SELECT message_key,
            CASE WHEN is_compared('payload_hash') THEN known_hash(payload_hash) END AS payload,
            known_hash(key_hash) AS key,
            CASE WHEN is_compared('header_hash') THEN known_hash(header_hash) END AS header,
            CASE WHEN is_compared('record_timestamp') THEN record_timestamp END AS stamp
        FROM content_rows
        WHERE side <> 'part'
    )
    GROUP BY message_key
)
WHERE contents > 0;
