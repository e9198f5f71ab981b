-- Per ledger and broken message the rows that prove its break, oldest first, at most twenty; those of one instant are
-- in the order of their columns. Most messages have one row in a ledger: only the others are sorted.
-- Needs: named_breaks, proof_<ledger>. Source: contract.md (breaks.jsonl).
CREATE MACRO first_proofs(proofs) AS TABLE
WITH named AS (
    SELECT p.message_key, p.seen_at, p.proof
    FROM query_table(proofs) AS p SEMI JOIN named_breaks AS b ON b.message_key = p.message_key
), several AS (
    SELECT message_key FROM named GROUP BY message_key HAVING count(*) > 1
), ordered AS (
    SELECT message_key, proof, row_number() OVER (PARTITION BY message_key ORDER BY seen_at NULLS LAST, proof) AS place
    FROM named SEMI JOIN several ON several.message_key = named.message_key
)
SELECT message_key, [proof] AS proofs
FROM named ANTI JOIN several ON several.message_key = named.message_key
UNION ALL
SELECT message_key, list(proof ORDER BY place) FROM ordered WHERE place <= 20 GROUP BY message_key;

CREATE TABLE proofs_produced AS FROM first_proofs(proof_produced);
CREATE TABLE proofs_log AS FROM first_proofs(proof_log);
CREATE TABLE proofs_read AS FROM first_proofs(proof_read);
CREATE TABLE proofs_delivered AS FROM first_proofs(proof_delivered);
CREATE TABLE proofs_filtered AS FROM first_proofs(proof_filtered);
CREATE TABLE proofs_dead_letters AS FROM first_proofs(proof_dead_letters);
CREATE TABLE proofs_staged AS FROM first_proofs(proof_staged);
