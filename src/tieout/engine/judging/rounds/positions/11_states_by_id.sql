-- Per id that was sent without a position, the best state of its records at positions that no send names.
-- Needs: evidence_produced, log_rows.
CREATE TABLE states_by_id AS
WITH unplaced AS (
    SELECT DISTINCT message_id FROM evidence_produced
    WHERE is_by_id() AND message_id IS NOT NULL AND placed_offset("offset") IS NULL),
records AS (
    SELECT topic, "partition", "offset", message_id, transaction_state FROM log_rows SEMI JOIN unplaced USING (message_id)
    WHERE NOT is_control),
named AS (
    SELECT DISTINCT p.topic, p."partition", p."offset" FROM evidence_produced AS p SEMI JOIN records AS r
        ON same_partition(p.topic, p."partition", r.topic, r."partition") AND p."offset" = r."offset")
SELECT message_id, arg_min(transaction_state, state_rank(transaction_state)) AS state
FROM records AS r ANTI JOIN named AS n
    ON same_partition(r.topic, r."partition", n.topic, n."partition") AND r."offset" = n."offset"
GROUP BY message_id;
