-- Whether a message was accepted: acknowledged, or of unknown outcome and proven by an effect, a record, a read, or
-- another write of its transaction. A message whose attempts all failed, but whose record exists, is of unknown outcome
-- and proven.
-- Needs: facts of sends, records, reads and effects. Source: taxonomy.md 1 (Messages).
CREATE TABLE written_failures AS
SELECT message_key
FROM (SELECT message_key FROM send_facts WHERE failed_there > 0 AND acked + unknown = 0)
SEMI JOIN (SELECT message_key FROM record_facts WHERE written > 0) USING (message_key);

-- The transactions that may have written a message; a doubtful one is proven by others only.
CREATE TABLE message_transactions AS
SELECT message_key, producer_id, producer_session, transaction_id, bool_or(is_doubtful) AS is_doubtful
FROM (
    SELECT message_key, producer_id, producer_session, transaction_id,
        outcome = 'unknown' AND NOT says_failed AS is_doubtful
    FROM sends WHERE transaction_id IS NOT NULL AND outcome <> 'failed'
    UNION ALL
    SELECT message_key, producer_id, producer_session, transaction_id, true
    FROM sends SEMI JOIN written_failures USING (message_key)
    WHERE transaction_id IS NOT NULL AND outcome = 'failed'
)
GROUP BY message_key, producer_id, producer_session, transaction_id;

CREATE TABLE transaction_counts AS
SELECT message_key, count(*) AS transaction_count FROM message_transactions GROUP BY message_key;

-- One write that is committed in the log, or that a read_committed reader received, proves all of its transaction.
CREATE TABLE proven_transactions AS
SELECT DISTINCT producer_id, producer_session, transaction_id
FROM message_transactions
SEMI JOIN (SELECT message_key FROM transaction_counts WHERE transaction_count = 1) USING (message_key)
SEMI JOIN (
    SELECT message_key FROM record_facts WHERE committed > 0
    UNION ALL
    SELECT message_key FROM read_facts WHERE is_read_committed
) USING (message_key);

CREATE TABLE proven_by_others AS
SELECT DISTINCT message_key
FROM message_transactions AS m
SEMI JOIN proven_transactions AS p
    ON m.producer_id IS NOT DISTINCT FROM p.producer_id
    AND m.producer_session IS NOT DISTINCT FROM p.producer_session
    AND m.transaction_id = p.transaction_id
WHERE m.is_doubtful;

-- One row per message that was sent; `sent_place` is the partition that its sends name.
CREATE TABLE acceptances AS
SELECT
    message_key,
    is_failed_but_written,
    is_proven,
    acceptance,
    coalesce(acked_place.place, CASE WHEN acceptance = 'accepted' THEN unknown_place.place END) AS sent_place
FROM (
    SELECT
        *,
        CASE WHEN acked > 0 THEN 'accepted'
            WHEN is_unknown AND is_proven THEN 'accepted'
            WHEN is_unknown THEN 'unproven'
            ELSE 'failed' END AS acceptance
    FROM (
        SELECT
            s.message_key,
            s.acked,
            s.acked_place,
            s.unknown_place,
            w.message_key IS NOT NULL AS is_failed_but_written,
            CASE WHEN w.message_key IS NOT NULL THEN s.failed_there ELSE s.unknown END > 0 AS is_unknown,
            coalesce(e.effect_rows > 0, false) OR coalesce(r.written > 0, false)
                OR coalesce(d.placed_reads > 0 AND t.message_key IS NULL, false)
                OR coalesce(d.is_read_committed, false) OR p.message_key IS NOT NULL AS is_proven
        FROM send_facts AS s
        LEFT JOIN record_facts AS r USING (message_key)
        LEFT JOIN read_facts AS d USING (message_key)
        LEFT JOIN effect_facts AS e USING (message_key)
        LEFT JOIN written_failures AS w USING (message_key)
        LEFT JOIN transaction_counts AS t USING (message_key)
        LEFT JOIN proven_by_others AS p USING (message_key)
    )
);
