-- COMMIT_REGRESSION: a commit below its predecessor, flagged `annotated` where an operator's reset lies between them.
-- Commits of one instant have no order, so the lowest of each instant counts. Commits with a first offset are compared
-- in 25.
-- Needs: commits. Source: taxonomy.md 3.
INSERT INTO non_message_breaks BY NAME
WITH instants AS (
    SELECT topic, "partition", committed_at, min(committed_offset) AS low,
        CASE WHEN min(generation) = max(generation) THEN max(generation) END AS generation
    FROM commits
    WHERE committed_at IS NOT NULL AND first_offset IS NULL
    GROUP BY topic, "partition", committed_at
),
pairs AS (
    SELECT *, lag(low) OVER by_time AS before, lag(committed_at) OVER by_time AS before_at,
        lag(generation) OVER by_time AS generation_before
    FROM instants
    WINDOW by_time AS (PARTITION BY topic, "partition" ORDER BY committed_at)
)
SELECT 'COMMIT_REGRESSION' AS class, 'commit' AS kind, 'offset store' AS locus, topic, "partition", low AS "offset",
    subject_of(topic, "partition", json_millis('committed_at', committed_at), json_field('low', low)) AS subject,
    [position_of(topic, "partition", low)] AS positions,
    CASE WHEN is_annotated(before_at, committed_at) THEN ['annotated'] ELSE [] END AS flags,
    [commit_row(topic, "partition", NULL, before, before_at, NULL),
        commit_row(topic, "partition", NULL, low, committed_at, NULL)] AS commit_rows,
    clues(before_at := before_at, committed_at := committed_at, generation_before := generation_before,
        generation := generation) AS clues,
    covered_between('committed', before_at, committed_at) AS is_covered
FROM pairs
WHERE low < before AND holds(committed_at, topic, "partition", low);
