-- The rows that prove a break: those of its message, or those at its positions if it is not of a message; per ledger
-- the first twenty, oldest first, rows of one instant in the order of their columns. Most breaks have one row per
-- ledger: only the rows of the others (`several_…`) are sorted, as `ordered_…`.
-- Needs: named_breaks, numbered_non_message_breaks, proof_<ledger>. Source: contract.md (breaks.jsonl).
CREATE TABLE proven_positions AS
SELECT number, at_.topic, at_."partition", at_."offset"
FROM (SELECT number, unnest(positions) AS at_ FROM numbered_non_message_breaks)
WHERE at_."offset" IS NOT NULL;

CREATE MACRO proofs_in(ledger) AS TABLE
SELECT b.number, p.seen_at, p.proof
FROM query_table('proof_' || ledger) AS p JOIN named_breaks AS b ON b.message_key = p.message_key
UNION ALL
SELECT w.number, p.seen_at, p.proof
FROM query_table('proof_' || ledger) AS p JOIN proven_positions AS w ON w."offset" = p."offset"
    AND w.topic IS NOT DISTINCT FROM p.topic AND w."partition" IS NOT DISTINCT FROM p."partition";

CREATE MACRO with_several(ledger) AS TABLE
SELECT number FROM proofs_in(ledger) GROUP BY number HAVING count(*) > 1;

CREATE MACRO ordered_proofs(ledger) AS TABLE
SELECT number, place, item
FROM (
    SELECT
        p.number, p.proof AS item,
        row_number() OVER (PARTITION BY p.number ORDER BY p.seen_at NULLS LAST, p.proof) AS place
    FROM proofs_in(ledger) AS p SEMI JOIN query_table('several_' || ledger) AS s ON s.number = p.number
)
WHERE place <= 20;

CREATE TABLE several_produced AS FROM with_several('produced');
CREATE TABLE several_log AS FROM with_several('log');
CREATE TABLE several_read AS FROM with_several('read');
CREATE TABLE several_delivered AS FROM with_several('delivered');
CREATE TABLE several_filtered AS FROM with_several('filtered');
CREATE TABLE several_dead_letters AS FROM with_several('dead_letters');
CREATE TABLE several_staged AS FROM with_several('staged');
CREATE TABLE ordered_produced AS FROM ordered_proofs('produced');
CREATE TABLE ordered_log AS FROM ordered_proofs('log');
CREATE TABLE ordered_read AS FROM ordered_proofs('read');
CREATE TABLE ordered_delivered AS FROM ordered_proofs('delivered');
CREATE TABLE ordered_filtered AS FROM ordered_proofs('filtered');
CREATE TABLE ordered_dead_letters AS FROM ordered_proofs('dead_letters');
CREATE TABLE ordered_staged AS FROM ordered_proofs('staged');

-- One row per break: its rows of the ledger in a list.
CREATE MACRO listed_proofs(ledger) AS TABLE
SELECT p.number, [p.proof] AS proofs
FROM proofs_in(ledger) AS p ANTI JOIN query_table('several_' || ledger) AS s ON s.number = p.number
UNION ALL
FROM listed('ordered_' || ledger);
