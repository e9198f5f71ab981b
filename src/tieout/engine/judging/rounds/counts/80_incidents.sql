-- The incidents with the most breaks, and the number of breaks. Incidents without a partition are all kept, because
-- they may be in several buckets.
-- Needs: named_breaks. Source: taxonomy.md 4 (incidents).
CREATE TABLE incident_parts AS
SELECT incident_id, class, locus, cause, topic, "partition",
    min("offset") AS first_position, max("offset") AS last_position, count(*) AS breaks,
    list_contains(flags, 'PHANTOM_ABORTED') AS is_aborted_effect
FROM named_breaks
GROUP BY incident_id, class, locus, cause, topic, "partition", list_contains(flags, 'PHANTOM_ABORTED')
QUALIFY row_number() OVER (ORDER BY breaks DESC, incident_id) <= 10000 OR topic IS NULL OR "partition" IS NULL;

CREATE TABLE breaks_total_parts AS SELECT count(*) AS breaks FROM named_breaks;
