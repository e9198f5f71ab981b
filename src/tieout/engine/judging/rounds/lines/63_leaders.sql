-- What the leaders of a partition prove about a break: its position lay in the tail that a new leader did not have, or
-- the acknowledgement was of an earlier topic with the same name. A leader's epoch increases while a topic lives
-- (KIP-101), and begins at 0 with every topic.
-- Needs: log_rows, broken_messages, non_message_breaks. Source: taxonomy.md 4.
CREATE TABLE numbered_non_message_breaks AS
SELECT row_number() OVER () + (SELECT count(*) FROM broken_messages) AS number, * FROM non_message_breaks;

CREATE TABLE leaders AS
WITH each AS (
    SELECT
        topic, "partition", leader_epoch, min("offset") AS first, max("offset") AS last,
        min(record_timestamp) AS began_at, max(record_timestamp) AS ended_at
    FROM log_rows WHERE leader_epoch IS NOT NULL
    GROUP BY topic, "partition", leader_epoch
)
SELECT
    *, max(last) OVER earlier AS last_before, min(began_at) OVER earlier AS began_before_at,
    leader_epoch = max(leader_epoch) OVER (PARTITION BY topic, "partition") AS is_newest
FROM each
WINDOW earlier AS (PARTITION BY topic, "partition" ORDER BY leader_epoch
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING);

CREATE TABLE proven_by_leaders AS
WITH breaks_at_broker AS (
    SELECT number, topic, "partition", "offset", sent_at, acked_at
    FROM broken_messages WHERE class = 'LOST' AND locus = 'broker'
    UNION ALL
    SELECT number, topic, "partition", "offset", clues.sent_at, clues.acked_at
    FROM numbered_non_message_breaks WHERE class IN ('LOG_TRUNCATION', 'LOG_IDENTITY_CONFLICT')
), holding AS (
    -- The oldest leader whose records reach the position or beyond it, else the newest there is.
    SELECT
        a.*, coalesce(h.first, n.first) AS first, coalesce(h.began_at, CASE WHEN h.first IS NULL THEN n.began_at END)
            AS began_at,
        CASE WHEN h.first IS NULL THEN n.began_before_at ELSE h.began_before_at END AS began_before_at
    FROM breaks_at_broker AS a
    ASOF LEFT JOIN (SELECT * FROM leaders WHERE last_before IS NULL OR last > last_before) AS h
        ON h.topic IS NOT DISTINCT FROM a.topic AND h."partition" IS NOT DISTINCT FROM a."partition"
        AND h.last >= a."offset"
    LEFT JOIN leaders AS n ON n.topic IS NOT DISTINCT FROM a.topic
        AND n."partition" IS NOT DISTINCT FROM a."partition" AND n.is_newest
)
SELECT
    h.number,
    coalesce(h.first <= h."offset" AND h.began_before_at <= h.sent_at + getvariable('clock_skew')
        AND h.sent_at <= h.began_at + getvariable('clock_skew'), false) AS is_after_election,
    coalesce(z.began_at > h.acked_at + getvariable('clock_skew'), false) AS was_before_topic
FROM holding AS h
LEFT JOIN leaders AS z ON z.topic IS NOT DISTINCT FROM h.topic AND z."partition" IS NOT DISTINCT FROM h."partition"
    AND z.leader_epoch = 0 AND z.first = 0;
