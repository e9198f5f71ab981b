-- The contents of a message that may break a rule, as bits (payload 1, key 2, header 4, timestamp 8): its rows show
-- several values, or a value besides one known to be null or missing from a file. `content_rows` are the contents per
-- side: sent, in the log, read or delivered, and, in a fan-out, the delivered parts.
-- Needs: sends, records, reads_of_messages, effects. Source: taxonomy.md 1 (Null contents) and 3 (CORRUPTED_*).
CREATE VIEW content_rows AS
SELECT message_key, 'sent' AS side, payload_hash, key_hash, header_hash, record_timestamp,
    null_contents AS nulls, lacking_contents AS lacking
FROM sends
UNION ALL
SELECT message_key, 'logged', payload_hash, key_hash, header_hash, record_timestamp,
    null_contents('log', payload_hash, key_hash, header_hash, record_timestamp, content, NULL),
    lacking_contents('log', payload_hash, key_hash, header_hash, record_timestamp, content)
FROM records WHERE transaction_state IN ('none', 'committed')
UNION ALL
SELECT message_key, 'output', payload_hash, key_hash, header_hash, record_timestamp,
    null_contents('read', payload_hash, key_hash, header_hash, record_timestamp, content, NULL),
    lacking_contents('read', payload_hash, key_hash, header_hash, record_timestamp, content)
FROM reads_of_messages WHERE effect_state IN ('ok', 'again')
UNION ALL
SELECT message_key, 'output', payload_hash, key_hash, header_hash, record_timestamp,
    null_contents(
        getvariable('effect_ledger'), payload_hash, key_hash, header_hash, record_timestamp, content, NULL),
    lacking_contents(getvariable('effect_ledger'), payload_hash, key_hash, header_hash, record_timestamp, content)
FROM effects WHERE effect_state = 'ok' AND (is_by_content() OR getvariable('effect_ledger') = 'delivered')
UNION ALL
SELECT
    message_key, 'part',
    CASE WHEN has_column('delivered', 'payload_hash') THEN payload_hash END,
    CASE WHEN has_column('delivered', 'key_hash') THEN key_hash END,
    CASE WHEN has_column('delivered', 'header_hash') THEN header_hash END,
    CASE WHEN has_column('delivered', 'record_timestamp') THEN record_timestamp END, 0, 0
FROM effects WHERE fans_out() AND effect_state = 'ok';

CREATE TABLE unlike_contents AS
SELECT message_key, bits
FROM (
    SELECT message_key,
        CASE WHEN payload <> last_payload THEN 1 ELSE 0 END | CASE WHEN key <> last_key THEN 2 ELSE 0 END
        | CASE WHEN header <> last_header THEN 4 ELSE 0 END | CASE WHEN stamp <> last_stamp THEN 8 ELSE 0 END
        | ((nulls | lacking) & (
            CASE WHEN payload IS NULL THEN 0 ELSE 1 END | CASE WHEN key IS NULL THEN 0 ELSE 2 END
            | CASE WHEN header IS NULL THEN 0 ELSE 4 END | CASE WHEN stamp IS NULL THEN 0 ELSE 8 END))
        | (nulls & lacking) AS bits
    FROM (
        SELECT message_key,
            min(payload) AS payload, max(payload) AS last_payload, min(key) AS key, max(key) AS last_key,
            min(header) AS header, max(header) AS last_header, min(stamp) AS stamp, max(stamp) AS last_stamp,
            bit_or(nulls) AS nulls, bit_or(lacking) AS lacking
        FROM (
            SELECT message_key, nulls, lacking,
                CASE WHEN is_compared('payload_hash') THEN payload_hash END AS payload,
                key_hash AS key,
                CASE WHEN is_compared('header_hash') THEN header_hash END AS header,
                CASE WHEN is_compared('record_timestamp') THEN record_timestamp END AS stamp
            FROM content_rows
            WHERE side <> 'part'
        )
        GROUP BY message_key
    )
)
WHERE bits > 0;
