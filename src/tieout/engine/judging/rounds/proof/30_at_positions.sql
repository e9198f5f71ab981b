-- Per ledger and break that stands by itself the rows at its positions, oldest first, at most twenty.
-- Needs: numbered_standing, proof_<ledger>. Source: contract.md (breaks.jsonl).
CREATE TABLE proven_positions AS
SELECT number, at_.topic, at_."partition", at_."offset"
FROM (SELECT number, unnest(positions) AS at_ FROM numbered_standing)
WHERE at_."offset" IS NOT NULL;

CREATE MACRO proofs_at_positions(proofs) AS TABLE
SELECT number, list(proof ORDER BY place) AS proofs
FROM (
    SELECT w.number, p.proof, row_number() OVER (PARTITION BY w.number ORDER BY p.seen_at NULLS LAST, p.proof) AS place
    FROM proven_positions AS w
    JOIN query_table(proofs) AS p ON p."offset" = w."offset"
        AND p.topic IS NOT DISTINCT FROM w.topic AND p."partition" IS NOT DISTINCT FROM w."partition"
)
WHERE place <= 20
GROUP BY number;
