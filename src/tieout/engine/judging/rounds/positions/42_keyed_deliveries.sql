-- The judged group's output with its message's key.
-- Needs: unnamed_deliveries, output_owners, choices_of_outputs. Source: taxonomy.md 1 (Messages, Effects).
CREATE TABLE keyed_deliveries AS
SELECT * REPLACE (coalesce(message_key, 'r:' || consumer_digest(r, NULL, NULL)) AS message_key)
FROM keyed_rows('unnamed_deliveries', 'output_owners', 'choices_of_outputs') AS r;
