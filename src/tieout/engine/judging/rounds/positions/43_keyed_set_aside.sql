-- What was filtered, dead-lettered or staged with its message's key.
-- Needs: unnamed_filtered, unnamed_dead_letters, unnamed_staged, output_owners, choices_of_outputs.
-- Source: taxonomy.md 1 (Messages, Effects).
CREATE TABLE keyed_filtered AS FROM keyed_set_aside('unnamed_filtered');
CREATE TABLE keyed_dead_letters AS FROM keyed_set_aside('unnamed_dead_letters');
CREATE TABLE keyed_staged AS FROM keyed_set_aside('unnamed_staged');

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
