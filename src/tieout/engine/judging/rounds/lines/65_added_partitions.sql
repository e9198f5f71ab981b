-- Partitions that were added to a topic while the group read it: the group was first assigned them in a later
-- generation than its first, and had not begun there. A consumer that begins at the latest offset skips what they hold
-- by then.
-- Needs: assigned with generation, kind, assigned_at, partitions, covering the window. Source: taxonomy.md 4.
CREATE TABLE added_partitions AS
WITH given AS (
    SELECT a.place.topic AS topic, a.place."partition" AS "partition", a.generation, a.assigned_at
    FROM (
        SELECT unnest(partitions) AS place, generation, assigned_at
        FROM evidence_assigned
        WHERE is_ours(consumer_group) AND lower(kind) = 'assign' AND generation IS NOT NULL
            AND has_column('assigned', 'generation') AND has_column('assigned', 'kind')
            AND has_column('assigned', 'assigned_at') AND has_column('assigned', 'partitions')
            AND covered_between('assigned', getvariable('window_start'), getvariable('window_end'))
    ) AS a
), of_partition AS (
    SELECT topic, "partition", min(generation) AS generation, min(assigned_at) AS given_at
    FROM given GROUP BY topic, "partition"
), of_topic AS (
    SELECT topic, min(generation) AS generation, min(assigned_at) AS group_began_at FROM given GROUP BY topic
), later AS (
    SELECT p.topic, p."partition", p.given_at, t.group_began_at
    FROM of_partition AS p JOIN of_topic AS t ON t.topic IS NOT DISTINCT FROM p.topic
    WHERE p.generation > t.generation
), begun AS (
    SELECT topic, "partition", min("at") AS first_at, bool_or("at" IS NULL) AS is_undated
    FROM progress GROUP BY topic, "partition"
)
SELECT l.topic, l."partition", l.given_at, l.group_began_at
FROM later AS l
LEFT JOIN begun AS b ON b.topic IS NOT DISTINCT FROM l.topic AND b."partition" IS NOT DISTINCT FROM l."partition"
WHERE NOT coalesce(b.is_undated OR b.first_at < l.given_at, false);
