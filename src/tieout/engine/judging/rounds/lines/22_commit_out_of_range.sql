-- COMMIT_OUT_OF_RANGE: a partition whose latest commit lies outside log bounds that were observed no earlier. A commit
-- without a time stood when its table was taken, and lay below a start that was observed no later; its break is one of
-- every window that begins before. Needs commits and log_bounds. Source: taxonomy.md 3.
INSERT INTO standing_breaks BY NAME
WITH latest AS (
    SELECT topic, "partition", coalesce(committed_at, taken_at) AS stood_at, committed_at, committed_offset, leader_epoch
    FROM commits
    WHERE coalesce(committed_at, taken_at) IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY topic, "partition"
        ORDER BY stood_at DESC, committed_at DESC NULLS LAST, committed_offset DESC, leader_epoch DESC NULLS LAST
    ) = 1
),
bounded AS (
    SELECT l.*, b.observed_at, l.committed_offset > b.log_end AS is_above,
        coalesce(l.committed_offset < b.stated_start, false) AS is_below
    FROM latest AS l
    JOIN log_bounds AS b ON same_partition(l.topic, l."partition", b.topic, b."partition")
)
SELECT 'COMMIT_OUT_OF_RANGE' AS class, 'commit' AS kind, 'offset store' AS locus, topic, "partition",
    committed_offset AS "offset",
    subject_of(topic, "partition", json_field('offset', committed_offset)) AS subject,
    [position_of(topic, "partition", committed_offset)] AS positions,
    [commit_row(topic, "partition", NULL, committed_offset, committed_at, NULL)] AS commit_rows,
    clues(committed_at := committed_at, leader_epoch := leader_epoch, is_beyond_end := is_above) AS clues
FROM bounded
WHERE CASE
    WHEN committed_at IS NOT NULL
        THEN (is_above OR is_below) AND observed_at >= committed_at AND in_window(committed_at)
    ELSE ((is_above AND observed_at >= stood_at) OR (is_below AND observed_at <= stood_at))
        AND stood_at >= getvariable('window_start') END;
