-- What was filtered, dead-lettered or staged with its message's key.
-- Needs: unnamed_filtered, unnamed_dead_letters, unnamed_staged, output_owners, choices_of_outputs.
-- Source: taxonomy.md 1 (Messages, Effects).
CREATE TABLE keyed_filtered AS
SELECT * EXCLUDE (producer_session, message_key), coalesce(message_key, 'r:' || set_aside_digest(message_id, topic,
    topic_id, "partition", "offset", payload_hash, effect_key, "at", reason, transaction_state, effect_state)) AS message_key
FROM keyed_rows('unnamed_filtered', 'output_owners', 'choices_of_outputs');
CREATE TABLE keyed_dead_letters AS
SELECT * EXCLUDE (producer_session, message_key), coalesce(message_key, 'r:' || set_aside_digest(message_id, topic,
    topic_id, "partition", "offset", payload_hash, effect_key, "at", reason, transaction_state, effect_state)) AS message_key
FROM keyed_rows('unnamed_dead_letters', 'output_owners', 'choices_of_outputs');
CREATE TABLE keyed_staged AS
SELECT * EXCLUDE (producer_session, message_key), coalesce(message_key, 'r:' || set_aside_digest(message_id, topic,
    topic_id, "partition", "offset", payload_hash, effect_key, "at", reason, transaction_state, effect_state)) AS message_key
FROM keyed_rows('unnamed_staged', 'output_owners', 'choices_of_outputs');

-- The keys are known: who claims a position is asked no more.
DROP VIEW claims_with_reads;
DROP VIEW output_owners;
DROP TABLE owners;
DROP TABLE reowned;
DROP TABLE contested_claims;
DROP TABLE contested_outputs;
DROP TABLE choices_of_reads;
DROP TABLE choices_of_outputs;
DROP TABLE reowned_positions;
DROP TABLE read_claims;
