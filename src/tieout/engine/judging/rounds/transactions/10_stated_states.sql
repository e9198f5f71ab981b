-- The state of each producer's transaction according to `produced`: one row that ended it decides for all of them, else
-- it is open. Where the ledger states no transactions, rows that disagree leave theirs open, and null means that
-- outcomes hold.
-- Needs: evidence_produced. Source: taxonomy.md 1 (Outcomes).
CREATE TABLE transaction_states AS
SELECT producer_id, producer_session, transaction_id,
    CASE
        WHEN has_column('produced', 'transaction_state') THEN stated_state(lower(transaction_state))
        WHEN min(claimed_outcome(outcome)) <> max(claimed_outcome(outcome)) THEN 'open'
    END AS state
FROM evidence_produced
WHERE transaction_id IS NOT NULL
GROUP BY producer_id, producer_session, transaction_id;
