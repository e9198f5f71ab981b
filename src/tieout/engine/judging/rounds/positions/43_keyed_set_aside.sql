-- What was filtered, dead-lettered or staged with its message's key.
-- Needs: unnamed_filtered, unnamed_dead_letters, unnamed_staged, output_owners, choices_of_outputs.
-- Source: taxonomy.md 1 (Messages, Effects).
CREATE TABLE keyed_filtered AS FROM keyed_set_aside('unnamed_filtered');
CREATE TABLE keyed_dead_letters AS FROM keyed_set_aside('unnamed_dead_letters');
CREATE TABLE keyed_staged AS FROM keyed_set_aside('unnamed_staged');
