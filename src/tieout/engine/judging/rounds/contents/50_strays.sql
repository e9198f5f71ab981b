-- Messages with an effect before their first send, by more than clocks may differ, at a time that `produced` does not
-- cover. The effect may be of a send that no ledger shows, so it is a stray: it belongs to no message for certain.
-- Needs: keyed_sends, keyed_deliveries, keyed_reads; by content no effect comes before its send. Source: taxonomy.md 8.
CREATE TABLE early_messages AS
WITH seen AS (
    SELECT message_key, effect_state, processed_at FROM keyed_deliveries
    WHERE getvariable('effect_ledger') = 'delivered' AND NOT is_by_content()
    UNION ALL
    SELECT message_key, effect_state, processed_at FROM keyed_reads
    WHERE getvariable('effect_ledger') = 'read' AND NOT is_by_content()),
first_seen AS (
    SELECT message_key, min(processed_at) AS seen_at
    FROM seen
    WHERE effect_state = 'ok' AND NOT covered_between('produced', processed_at, processed_at)
    GROUP BY message_key
    HAVING seen_at IS NOT NULL),
sent AS (
    SELECT message_key, min(attempted_at) AS sent_at,
        bool_or(attempted_at IS NULL OR coalesce(is_approximate, false)) AS is_rough
    FROM keyed_sends
    SEMI JOIN first_seen USING (message_key)
    GROUP BY message_key)
SELECT message_key, s.sent_at
FROM sent AS s
JOIN first_seen AS a USING (message_key)
WHERE comes_before(a.seen_at, s.sent_at) AND NOT s.is_rough;
