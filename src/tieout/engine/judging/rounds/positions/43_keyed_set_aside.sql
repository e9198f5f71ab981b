-- What was filtered, dead-lettered or staged with its message's key, and `effect_state`: a row counts only where a reader
-- of committed data sees it.
-- Needs: evidence_filtered, evidence_dead_letters, evidence_staged, output_owners, contested_outputs.
-- Source: taxonomy.md 1 (Messages, Effects).
CREATE VIEW unnamed_filtered AS
SELECT *, set_aside_state(transaction_state) AS effect_state, NULL::VARCHAR AS producer_session FROM evidence_filtered;
CREATE TABLE keyed_filtered AS
SELECT * EXCLUDE (producer_session, message_key), coalesce(message_key, 'r:' || set_aside_digest(message_id, topic,
    topic_id, "partition", "offset", payload_hash, effect_key, "at", reason, transaction_state, effect_state)) AS message_key
FROM keyed_rows('unnamed_filtered', 'output_owners', 'contested_outputs');
CREATE VIEW unnamed_dead_letters AS
SELECT *, set_aside_state(transaction_state) AS effect_state, NULL::VARCHAR AS producer_session FROM evidence_dead_letters;
CREATE TABLE keyed_dead_letters AS
SELECT * EXCLUDE (producer_session, message_key), coalesce(message_key, 'r:' || set_aside_digest(message_id, topic,
    topic_id, "partition", "offset", payload_hash, effect_key, "at", reason, transaction_state, effect_state)) AS message_key
FROM keyed_rows('unnamed_dead_letters', 'output_owners', 'contested_outputs');
CREATE VIEW unnamed_staged AS
SELECT *, set_aside_state(transaction_state) AS effect_state, NULL::VARCHAR AS producer_session FROM evidence_staged;
CREATE TABLE keyed_staged AS
SELECT * EXCLUDE (producer_session, message_key), coalesce(message_key, 'r:' || set_aside_digest(message_id, topic,
    topic_id, "partition", "offset", payload_hash, effect_key, "at", reason, transaction_state, effect_state)) AS message_key
FROM keyed_rows('unnamed_staged', 'output_owners', 'contested_outputs');

-- The keys are known: who claims a position is asked no more.
DROP VIEW claims_with_reads;
DROP VIEW output_owners;
DROP TABLE owners;
DROP TABLE reowned;
DROP TABLE contested_claims;
DROP TABLE contested_outputs;
DROP TABLE reowned_positions;
DROP TABLE read_claims;
