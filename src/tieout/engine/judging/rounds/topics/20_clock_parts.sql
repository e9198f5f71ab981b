-- The greatest distance by which effects lie before their sends, their reads and the broker's timestamps of their
-- records, where it is more than clocks may differ. Findings that compare two of these clocks are then undecided.
-- `clean_clocks` has it for clean messages.
-- Needs: messages, effects, reads, records, clean_clocks. Source: taxonomy.md 8, 12.
CREATE TABLE clock_parts AS
WITH seen AS (
    SELECT message_key, min(processed_at) AS seen_at
    FROM effects
    WHERE effect_state = 'ok' AND processed_at >= getvariable('earliest_plausible')
        AND (getvariable('effect_ledger') <> 'read' AND is_declared('read') OR has_column('log', 'timestamp_type'))
    GROUP BY message_key
), read AS (
    SELECT message_key, min(processed_at) AS since
    FROM reads
    WHERE getvariable('effect_ledger') <> 'read' AND effect_state IN ('ok', 'again')
    GROUP BY message_key
), stamped AS (
    SELECT message_key, min(record_timestamp) AS since
    FROM records
    WHERE has_column('log', 'timestamp_type') AND contains(lower(timestamp_type), 'append')
    GROUP BY message_key
)
SELECT 1 AS place, max(epoch_us(first_attempt."at") - epoch_us(least(first_stray_at,
    CASE WHEN comes_before(first_effect_at, first_attempt."at") AND NOT is_roughly_dated
        THEN first_effect_at END))) AS micros
FROM messages
UNION ALL
SELECT 2, max(epoch_us(r.since) - epoch_us(e.seen_at))
FROM seen AS e JOIN read AS r ON r.message_key = e.message_key AND comes_before(e.seen_at, r.since)
UNION ALL
SELECT 3, max(epoch_us(s.since) - epoch_us(e.seen_at))
FROM seen AS e JOIN stamped AS s ON s.message_key = e.message_key AND comes_before(e.seen_at, s.since)
UNION ALL
SELECT 3, micros FROM clean_clocks;
