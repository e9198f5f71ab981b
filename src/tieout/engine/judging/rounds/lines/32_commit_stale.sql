-- COMMIT_STALE: output that continued for longer than allowed after a commit without another commit; after the last
-- commit of a partition, until `committed` ends.
-- Needs: commits, progress. Source: taxonomy.md 3; interpretations.md, 58.
INSERT INTO non_message_breaks BY NAME
WITH instants AS (
    SELECT topic, "partition", committed_at, max(committed_offset) AS latest,
        max(CASE WHEN first_offset IS NOT NULL THEN committed_offset END) AS furthest
    FROM commits
    WHERE committed_at IS NOT NULL AND has_known_coverage('committed') AND NOT getvariable('is_queue')
    GROUP BY topic, "partition", committed_at
),
stretches AS (
    SELECT topic, "partition", committed_at,
        greatest(latest, max(furthest) OVER by_time) AS stood,
        coalesce(lead(committed_at) OVER by_time, getvariable('coverage')['committed'].complete_until) AS following
    FROM instants
    WINDOW by_time AS (PARTITION BY topic, "partition" ORDER BY committed_at)
),
too_long AS (
    SELECT * FROM stretches WHERE following > committed_at + getvariable('allowed_latency')
),
firsts AS (
    SELECT p.topic, p."partition", s.committed_at, p."at" AS at_time, p."offset"
    FROM (SELECT topic, "partition", "at", "offset" FROM progress WHERE "by" = 'effect' AND "at" IS NOT NULL) AS p
    ASOF JOIN too_long AS s
        ON same_partition(p.topic, p."partition", s.topic, s."partition") AND p."at" >= s.committed_at
    WHERE p."offset" >= s.stood AND s.following > p."at" + getvariable('allowed_latency')
    QUALIFY row_number() OVER (
        PARTITION BY p.topic, p."partition", s.committed_at ORDER BY p."at", p."offset"
    ) = 1
)
SELECT 'COMMIT_STALE' AS class, 'commit' AS kind, 'offset store' AS locus, topic, "partition", "offset",
    [position_of(topic, "partition", "offset")] AS positions,
    '{' || concat_ws(',', json_positions([position_of(topic, "partition", "offset")]), json_millis('at', at_time)) || '}'
        AS subject
FROM firsts
WHERE holds(at_time, topic, "partition", "offset");
