-- How each ledger writes the hashes that a class compares: lengths, cases, alphabets and one example, by topic.
-- Computed only where the contents of some message differ.
-- Source: taxonomy.md 8, 2.
CREATE TABLE hash_form_parts AS
WITH hashes_to_compare AS (
    SELECT bit_or(differing) & 1 > 0 AS of_value, bit_or(differing) & 2 > 0 AS of_key,
        bit_or(differing) & 4 > 0 AS of_header
    FROM topics
),
rows_of AS (
    SELECT 'produced' AS ledger, topic, payload_hash, key_hash, header_hash FROM sends
    UNION ALL SELECT 'log', topic, payload_hash, key_hash, header_hash FROM records
    UNION ALL SELECT 'delivered', topic, payload_hash, key_hash, header_hash FROM deliveries
    UNION ALL SELECT 'read', topic, payload_hash, key_hash, header_hash FROM reads
),
shown AS (
    SELECT 'CORRUPTED_VALUE' AS name, ledger, topic, payload_hash AS value FROM rows_of, hashes_to_compare WHERE of_value
    UNION ALL
    SELECT 'CORRUPTED_KEY', ledger, topic, key_hash FROM rows_of, hashes_to_compare WHERE of_key
    UNION ALL
    SELECT 'CORRUPTED_HEADER', ledger, topic, header_hash FROM rows_of, hashes_to_compare WHERE of_header
)
SELECT name, ledger, topic,
    list(DISTINCT length(value)) AS lengths,
    bool_or(value <> upper(value)) AS has_lower,
    bool_or(value <> lower(value)) AS has_upper,
    bool_or(regexp_matches(value, '^[0-9A-Fa-f]+$')) AS has_hex,
    bool_or(NOT regexp_matches(value, '^[0-9A-Fa-f]+$')) AS has_other,
    bool_or(regexp_matches(value, '[+/]')) AS has_plus,
    bool_or(regexp_matches(value, '[-_]')) AS has_minus,
    min(value) AS example
FROM shown
WHERE value IS NOT NULL
GROUP BY name, ledger, topic;

-- The topics, of the send and of the row, in which one payload hash stands on both sides: by content, where a row is not
-- always of a message that has its payload.
CREATE TABLE common_hashes AS
WITH sent AS (
    SELECT DISTINCT topic, payload_hash FROM sends WHERE is_by_content() AND payload_hash IS NOT NULL
),
shown AS (
    SELECT DISTINCT 'log' AS ledger, topic, payload_hash FROM records WHERE is_by_content()
    UNION ALL SELECT DISTINCT 'delivered', topic, payload_hash FROM deliveries WHERE is_by_content()
    UNION ALL SELECT DISTINCT 'read', topic, payload_hash FROM reads WHERE is_by_content()
)
SELECT DISTINCT shown.ledger, sent.topic AS sent_topic, shown.topic AS shown_topic
FROM sent
JOIN shown USING (payload_hash);
