-- TORN_TRANSACTION: a transaction with a delivered and a lost record, in the window of its earliest lost one.
-- Needs: messages, message_transactions, fates. Source: taxonomy.md 3.
INSERT INTO non_message_breaks BY NAME
WITH members AS (
    SELECT t.producer_id, t.producer_session, t.transaction_id, f.disposition, m.first_attempt."at" AS at_time,
        m.topic, m."partition", m.first_offset
    FROM message_transactions AS t
    JOIN (SELECT message_key, disposition FROM fates WHERE disposition IN ('delivered', 'lost')) AS f USING (message_key)
    JOIN messages AS m USING (message_key)
),
torn AS (
    SELECT producer_id, producer_session, transaction_id
    FROM members
    GROUP BY producer_id, producer_session, transaction_id
    HAVING bool_or(disposition = 'delivered') AND bool_or(disposition = 'lost')
),
lost AS (
    SELECT l.*
    FROM members AS l
    SEMI JOIN torn AS t
        ON l.transaction_id = t.transaction_id AND l.producer_id IS NOT DISTINCT FROM t.producer_id
        AND l.producer_session IS NOT DISTINCT FROM t.producer_session
    WHERE l.disposition = 'lost'
    QUALIFY row_number() OVER (
        PARTITION BY l.producer_id, l.producer_session, l.transaction_id
        ORDER BY l.at_time NULLS FIRST, l.topic NULLS FIRST, l."partition" NULLS FIRST, l.first_offset NULLS FIRST
    ) = 1
)
SELECT 'TORN_TRANSACTION' AS class, 'transaction' AS kind, 'unknown' AS locus, topic, "partition",
    first_offset AS "offset",
    '{' || concat_ws(',', json_field('producer_id', producer_id), json_field('producer_session', producer_session),
        json_field('transaction_id', transaction_id)) || '}' AS subject,
    [position_of(topic, "partition", first_offset)] AS positions
FROM lost
WHERE holds(at_time, topic, "partition", first_offset);
