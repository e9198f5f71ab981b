-- Clocks of two hosts that stand apart: an effect lies before its send, its read or the broker's own stamp by more than
-- clocks may differ. Causes that hold times of the consumer against times of the broker are then open. Asked only where
-- there is such a cause. Needs: caused_messages, messages, deliveries, reads, records, clean_clocks. Source: taxonomy.md 8, 12.
CREATE TABLE comparing AS
SELECT 1 AS one FROM caused_messages
WHERE cause IN ('commit before process', 'process before commit', 'retention overrun') LIMIT 1;

CREATE TABLE clocks_apart AS
WITH effects AS (
    SELECT message_key, min(processed_at) AS seen_at
    FROM (
        SELECT message_key, processed_at, effect_state FROM comparing CROSS JOIN deliveries
        WHERE getvariable('effect_ledger') = 'delivered'
        UNION ALL
        SELECT message_key, processed_at, effect_state FROM comparing CROSS JOIN reads
        WHERE getvariable('effect_ledger') = 'read'
    )
    WHERE effect_state = 'ok' AND processed_at >= getvariable('earliest_plausible')
    GROUP BY message_key
), read AS (
    SELECT message_key, min(processed_at) AS since
    FROM comparing CROSS JOIN reads
    WHERE getvariable('effect_ledger') <> 'read' AND effect_state IN ('ok', 'again')
    GROUP BY message_key
), stamped AS (
    SELECT message_key, min(record_timestamp) AS since
    FROM comparing CROSS JOIN records
    WHERE has_column('log', 'timestamp_type') AND contains(lower(timestamp_type), 'append')
    GROUP BY message_key
), apart AS (
    SELECT 1 AS place, 'their sends' AS what, max(epoch_us(first_attempt."at") - epoch_us(least(first_stray_at,
        CASE WHEN comes_before(first_effect_at, first_attempt."at") AND NOT is_roughly_dated
            THEN first_effect_at END))) AS micros
    FROM comparing CROSS JOIN messages
    UNION ALL
    SELECT 2, 'their reads', max(epoch_us(r.since) - epoch_us(e.seen_at))
    FROM effects AS e JOIN read AS r ON r.message_key = e.message_key AND comes_before(e.seen_at, r.since)
    UNION ALL
    SELECT 3, 'the broker''s own times of their records', max(epoch_us(s.since) - epoch_us(e.seen_at))
    FROM effects AS e JOIN stamped AS s ON s.message_key = e.message_key AND comes_before(e.seen_at, s.since)
    UNION ALL
    SELECT 3, 'the broker''s own times of their records', micros FROM comparing CROSS JOIN clean_clocks
)
SELECT place, 'effects lie before ' || what || ' by up to ' || in_words(CAST(round_even(micros / 1e6, 0) AS BIGINT))
    AS shown
FROM (SELECT place, what, max(micros) AS micros FROM apart GROUP BY place, what)
WHERE micros IS NOT NULL;

-- What the statement says of causes that are left open.
CREATE TABLE cause_limits AS
SELECT
    'causes that compare the consumer''s clock with the broker''s are left open: '
    || string_agg(shown, '; ' ORDER BY place) || ', where clock_skew allows '
    || in_words(CAST(round_even(epoch(getvariable('clock_skew')), 0) AS BIGINT)) AS sentence
FROM clocks_apart HAVING count(*) > 0;
