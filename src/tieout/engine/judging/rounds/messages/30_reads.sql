-- What reads at its positions tell of a message: whether it was handed out, when, and what was seen of it.
-- Needs: reads_at_positions. Source: taxonomy.md 1 (Ledgers) and 3 (DIRTY_READ).
CREATE TABLE read_facts AS
SELECT
    message_key,
    count(*) FILTER (WHERE is_given AND is_placed) AS reads,
    count(*) FILTER (WHERE is_placed AND NOT is_of_aborted) AS placed_reads,
    bool_or(is_given OR is_placed) AS was_handed,
    bool_or(coalesce(lower(isolation) = 'read_committed', false)) AS is_read_committed,
    max(processed_at) FILTER (WHERE getvariable('is_queue')) AS last_read_at,
    bool_or(is_placed AND held_state IS NULL) AS is_elsewhere,
    min(opened_at(processed_at, open_until)) FILTER (WHERE (is_given OR is_placed) AND is_inside) AS opened_at_in,
    min(opened_at(processed_at, open_until)) FILTER (WHERE is_given OR is_placed) AS opened_at,
    min(processed_at) FILTER (WHERE is_given AND NOT is_placed AND is_inside) AS unplaced_at_in,
    min(processed_at) FILTER (WHERE is_given AND NOT is_placed) AS unplaced_at,
    min(processed_at) FILTER (WHERE transaction_id IS NOT NULL AND is_inside) AS own_at_in,
    min(processed_at) FILTER (WHERE transaction_id IS NOT NULL) AS own_at,
    min(message_id) AS read_id,
    bool_and(has_identity) AS has_identity,
    min(payload_hash) FILTER (WHERE is_by_content()) AS read_hash,
    bit_or(CASE WHEN identity IS NOT NULL THEN shown_marks('read', 256, processed_at) ELSE 0 END) AS marks,
    bit_or(null_contents('read', payload_hash, key_hash, header_hash, record_timestamp, content, NULL))
        FILTER (WHERE is_given) AS output_nulls,
    bit_or(lacking_contents('read', payload_hash, key_hash, header_hash, record_timestamp, content))
        FILTER (WHERE is_given) AS output_lacking,
    min(hash(payload_hash)) FILTER (WHERE is_given AND payload_hash IS NOT NULL AND is_compared('payload_hash'))
        AS least_payload,
    max(hash(payload_hash)) FILTER (WHERE is_given AND payload_hash IS NOT NULL AND is_compared('payload_hash'))
        AS greatest_payload,
    min(hash(key_hash)) FILTER (WHERE is_given AND key_hash IS NOT NULL) AS least_key,
    max(hash(key_hash)) FILTER (WHERE is_given AND key_hash IS NOT NULL) AS greatest_key,
    min(hash(header_hash)) FILTER (WHERE is_given AND header_hash IS NOT NULL AND is_compared('header_hash'))
        AS least_header,
    max(hash(header_hash)) FILTER (WHERE is_given AND header_hash IS NOT NULL AND is_compared('header_hash'))
        AS greatest_header,
    min(record_timestamp) FILTER (WHERE is_given AND is_compared('record_timestamp')) AS least_stamp,
    max(record_timestamp) FILTER (WHERE is_given AND is_compared('record_timestamp')) AS greatest_stamp
FROM (
    SELECT
        *,
        effect_state IN ('ok', 'again') AS is_given,
        "offset" IS NOT NULL AS is_placed,
        in_window(processed_at) AS is_inside,
        CASE WHEN is_by_content() THEN payload_hash ELSE message_id END AS identity
    FROM reads_at_positions
)
GROUP BY message_key;
