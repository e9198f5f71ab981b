-- The incidents with the most breaks, and how many breaks there are.
-- Needs named_breaks. Source: taxonomy.md 4 (incidents).
CREATE TABLE incidents AS
SELECT incident_id, class, locus, cause, topic, "partition",
    min("offset") AS first_position, max("offset") AS last_position, count(*) AS breaks,
    list_contains(flags, 'PHANTOM_ABORTED') AS is_aborted_effect
FROM named_breaks
GROUP BY incident_id, class, locus, cause, topic, "partition", list_contains(flags, 'PHANTOM_ABORTED')
ORDER BY breaks DESC, incident_id
LIMIT 10000;

CREATE TABLE breaks_total AS SELECT count(*) AS breaks FROM named_breaks;
