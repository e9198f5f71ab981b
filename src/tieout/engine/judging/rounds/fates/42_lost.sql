-- LOST: accepted, due, without effect, and nothing else accounts for it; a lost write in Jepsen's terms. The locus is
-- the first that holds. A staged message was delivered to the sink; without a record in the log only the two sides of
-- the acknowledgement are distinguished; the broker did not lose what it compacted as configured.
-- Source: taxonomy.md 3 and 4.
CREATE VIEW with_losses AS
SELECT *,
    coalesce(disposition = 'lost', false) AS is_lost,
    CASE
        WHEN effect_rows > 0 THEN 'consumer or sink' -- part of a fan-out arrived, so the message was readable
        WHEN (is_missing_in_log AND NOT coalesce(is_superseded, false)) OR went_unread THEN 'broker'
        WHEN is_declared('staged') AND is_staged THEN 'sink'
        WHEN is_superseded AND was_committed_first THEN 'consumer'
        WHEN written > 0 AND is_committed THEN 'consumer'
        WHEN written > 0 AND NOT was_handed AND was_jumped THEN 'broker → consumer'
        WHEN written > 0 THEN 'unknown'
        ELSE 'after the acknowledgement'
    END AS lost_locus
FROM with_phantoms;
