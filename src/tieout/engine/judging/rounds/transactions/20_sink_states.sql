-- The state of each sink transaction according to the judged group's output; only where its source states transactions.
-- Needs: evidence_delivered, evidence_read. Source: taxonomy.md 1 (Effects).
CREATE TABLE delivered_transactions AS
SELECT transaction_id, stated_state(coalesce(lower(transaction_state), 'none')) AS state
FROM evidence_delivered
WHERE transaction_id IS NOT NULL AND is_ours(consumer_group) AND has_column('delivered', 'transaction_state')
GROUP BY transaction_id;

CREATE TABLE read_transactions AS
SELECT transaction_id, stated_state(coalesce(lower(transaction_state), 'none')) AS state
FROM evidence_read
WHERE transaction_id IS NOT NULL AND is_ours(consumer_group) AND has_column('read', 'transaction_state')
GROUP BY transaction_id;
