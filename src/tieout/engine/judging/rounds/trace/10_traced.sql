-- The messages that a trace asks for, by an id, a position or hashes of a key: the disposition of each, its rows in
-- every ledger, and its breaks. Run only for a trace, after all other rounds.
-- Needs: the rows of all ledgers after contents, message_positions, fates, breaks. Source: docs/reference/trace.md.
CREATE VIEW tied_rows AS
SELECT 'produced' AS ledger, message_key, message_id, topic, "partition", "offset", key_hash FROM sends
UNION ALL SELECT 'log', message_key, message_id, topic, "partition", "offset", key_hash FROM records
UNION ALL SELECT 'read', message_key, message_id, topic, "partition", "offset", key_hash FROM reads
UNION ALL SELECT 'delivered', message_key, message_id, topic, "partition", "offset", key_hash FROM deliveries
UNION ALL SELECT 'filtered', message_key, message_id, topic, "partition", "offset", NULL FROM filtered
UNION ALL SELECT 'dead_letters', message_key, message_id, topic, "partition", "offset", NULL FROM dead_letters
UNION ALL SELECT 'staged', message_key, message_id, topic, "partition", "offset", NULL FROM staged;

CREATE TABLE tied_messages AS
SELECT m.*, f.* EXCLUDE (message_key)
FROM messages AS m
JOIN fates AS f USING (message_key)
SEMI JOIN (
    SELECT message_key FROM tied_rows
    WHERE CASE getvariable('requested_by')
        WHEN 'position' THEN topic = getvariable('requested_position').topic
            AND "partition" = getvariable('requested_position')."partition"
            AND "offset" = getvariable('requested_position')."offset"
        WHEN 'key' THEN list_contains(getvariable('requested_digests'), key_hash)
        ELSE message_id = getvariable('requested_id') END) AS t USING (message_key);

CREATE TABLE traced_total AS SELECT count(*) AS messages FROM tied_messages;

CREATE TABLE traced_messages AS
WITH first AS (
    SELECT * FROM tied_messages
    ORDER BY first_attempt."at" NULLS LAST, first_seen_at NULLS FIRST, message_key
    LIMIT 20
),
placed AS (
    SELECT p.message_key, {'topic': p.topic, 'partition': p."partition", 'offset': p."offset"} AS place,
        row_number() OVER (PARTITION BY p.message_key ORDER BY p.topic, p."partition", p."offset") AS turn
    FROM message_positions AS p SEMI JOIN first USING (message_key)
    WHERE p.is_asserted OR p.is_visible OR p.is_effect OR p.is_read
)
SELECT m.message_key AS key, m.message_id, class, flags, locus, disposition, acceptance, is_judged_here, is_due,
    deadline, first_attempt,
    (SELECT list(place ORDER BY turn) FROM placed AS p WHERE p.message_key = m.message_key AND turn <= 200) AS positions
FROM first AS m
ORDER BY m.first_attempt."at" NULLS LAST, m.first_seen_at NULLS FIRST, m.message_key;

-- At most fifty rows of a ledger, and how many there are.
CREATE MACRO traced_in(name) AS TABLE
SELECT message_key AS key, name AS ledger, total, turn, proof FROM (
    SELECT message_key, proof, count(*) OVER (PARTITION BY message_key) AS total,
        row_number() OVER (
            PARTITION BY message_key
            ORDER BY seen_at NULLS LAST, topic NULLS FIRST, "partition" NULLS FIRST, "offset" NULLS FIRST, proof) AS turn
    FROM query_table('proof_' || name) AS p
    SEMI JOIN traced_messages AS m ON m.key = p.message_key)
WHERE turn <= 50;
CREATE TABLE traced_produced AS FROM traced_in('produced') ORDER BY key, turn;
CREATE TABLE traced_log AS FROM traced_in('log') ORDER BY key, turn;
CREATE TABLE traced_read AS FROM traced_in('read') ORDER BY key, turn;
CREATE TABLE traced_delivered AS FROM traced_in('delivered') ORDER BY key, turn;
CREATE TABLE traced_filtered AS FROM traced_in('filtered') ORDER BY key, turn;
CREATE TABLE traced_dead_letters AS FROM traced_in('dead_letters') ORDER BY key, turn;
CREATE TABLE traced_staged AS FROM traced_in('staged') ORDER BY key, turn;

CREATE TABLE traced_breaks AS
SELECT break_id, incident_id, class, flags, message_key AS key, positions, locus, cause, admissible, rule
FROM proven_breaks AS b
WHERE CASE WHEN message_key IS NOT NULL THEN message_key IN (SELECT key FROM traced_messages)
    ELSE EXISTS (
        SELECT 1 FROM traced_messages AS m, unnest(m.positions) AS t(own), unnest(b.positions) AS u(its)
        WHERE own = its)
        OR (getvariable('requested_position') IS NOT NULL AND list_contains(b.positions, getvariable('requested_position')))
    END
ORDER BY class, break_id
LIMIT 50;
