-- The runs: their ends, their neighbours, who read those, and the committed offset at the time when their messages were
-- processed again, unless acknowledgements are individual.
-- Needs: line, commits, individual_topics. Source: taxonomy.md 4 (commit before process, process before commit).
CREATE TABLE broken_in_run AS
SELECT
    number, place, kind, incident_kind, "commit", first_offset AS "offset", last_effect_at, rank,
    previous_offset, previous_effect_at, next_offset,
    readers_so_far - CAST(has_reader AS INTEGER) AS readers_before, readers_so_far,
    max(CASE WHEN begins THEN first_offset END) OVER (PARTITION BY place ORDER BY rank ROWS UNBOUNDED PRECEDING) AS run
FROM line WHERE kind IS NOT NULL
UNION ALL
SELECT
    number, place, kind, incident_kind, "commit", "offset", last_effect_at, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL
FROM broken_alike WHERE first_offset IS NULL;

CREATE TABLE runs AS
WITH found AS (
    SELECT
        place, run, kind, "commit",
        min("offset") AS run_first, max("offset") AS run_last,
        min(readers_before) AS readers_before, max(readers_so_far) AS readers_so_far,
        arg_min_null(previous_offset, rank) AS run_previous, arg_max_null(next_offset, rank) AS run_next,
        arg_min_null(previous_effect_at, rank) AS before_processed_at, min(last_effect_at) AS restarted_at
    FROM broken_in_run
    GROUP BY place, run, kind, "commit"
), readers AS (
    SELECT place, readers_so_far AS reader, consumer_id, generation FROM line WHERE has_reader
), commit_steps AS (
    -- Commits of one instant have no order: the last of them is the furthest.
    SELECT
        p.place, c.committed_at, max(c.committed_offset) AS restart_offset,
        max(max(c.committed_offset)) OVER (PARTITION BY p.place ORDER BY c.committed_at) AS reached_offset
    FROM commits AS c
    JOIN broken_places AS p ON p.topic IS NOT DISTINCT FROM c.topic AND p."partition" IS NOT DISTINCT FROM c."partition"
    ANTI JOIN individual_topics AS i ON c.topic = i.topic
    WHERE c.committed_at IS NOT NULL
    GROUP BY p.place, c.committed_at
)
SELECT
    f.*,
    b.reader IS NOT NULL AS has_reader_before, b.consumer_id AS consumer_before, b.generation AS generation_before,
    a.reader IS NOT NULL AS has_reader_after, a.consumer_id AS consumer_after, a.generation AS generation_after,
    s.restart_offset, s.reached_offset
FROM found AS f
LEFT JOIN readers AS b ON b.place = f.place AND b.reader = f.readers_before
LEFT JOIN readers AS a ON a.place = f.place AND a.reader = f.readers_so_far + 1
ASOF LEFT JOIN commit_steps AS s ON s.place = f.place AND s.committed_at <= f.restarted_at;
