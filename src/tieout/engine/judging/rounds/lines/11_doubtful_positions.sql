-- Positions that several messages may claim (`has_conflict`), or where a send was acknowledged and the log has no row
-- (`is_absent`). One pass over all sends, records and reads; the next files read only its result.
-- Needs: accepted_sends, placed_reads, records, log_rows. Source: taxonomy.md 3.
CREATE VIEW claims_of_positions AS
SELECT topic, "partition", "offset", message_key, shown_name(message_id, payload_hash) AS name, payload_hash, attempted_at,
    CASE WHEN outcome = 'acked' THEN coalesce(completed_at, attempted_at) END AS answered_at,
    NULL::TIMESTAMP AS read_at, outcome = 'acked' AS is_acked, false AS is_logged, true AS is_sent
FROM accepted_sends
UNION ALL
SELECT topic, "partition", "offset", CASE WHEN is_claim THEN message_key END, CASE WHEN is_claim THEN name END,
    NULL, NULL, NULL, NULL, false, true, false
FROM (
    SELECT *, shown_name(message_id, payload_hash) AS name,
        transaction_state <> 'aborted' AND shown_name(message_id, payload_hash) IS NOT NULL AS is_claim
    FROM records
)
UNION ALL
SELECT topic, "partition", "offset", NULL, shown_name(message_id, payload_hash), NULL, NULL, NULL, processed_at, false, false,
    false
FROM placed_reads
WHERE shown_name(message_id, payload_hash) IS NOT NULL;

-- `shows`: 1 acknowledged, 2 in the log. The payloads of several sends are not compared here: several sends always conflict.
CREATE TABLE doubtful_positions AS
WITH claims AS (
    SELECT topic, "partition", "offset", message_key,
        CASE WHEN NOT is_by_position() THEN name END AS name, is_sent,
        is_acked::UTINYINT + 2 * is_logged::UTINYINT AS shows
    FROM claims_of_positions
    UNION ALL
    SELECT topic, "partition", "offset", NULL, NULL, false, 2 FROM log_rows WHERE is_control
),
compared AS (
    SELECT topic, "partition", "offset",
        coalesce(min(message_key) <> max(message_key), false) OR coalesce(min(name) <> max(name), false)
            OR count_if(is_sent) > 1 AS has_conflict,
        is_declared('log') AND bit_or(shows) = 1 AS is_absent
    FROM claims
    GROUP BY topic, "partition", "offset"
)
SELECT * FROM compared WHERE has_conflict OR is_absent;
