-- COMMIT_OUT_OF_RANGE: a partition whose latest commit lies outside log bounds observed at or after it. A commit
-- without a time is dated by when its table was taken, compared with a start observed no later, and its break is one of
-- every window that begins before. Individual acknowledgements are all valid at once: the furthest counts, and those
-- below the start expired with it. In a sparse partition only a stated end is a position.
-- Needs: commits, individual_topics, log_bounds. Source: taxonomy.md 3 and 8, item 7.
INSERT INTO non_message_breaks BY NAME
WITH latest AS (
    SELECT topic, "partition", coalesce(committed_at, taken_at) AS stood_at, committed_at, committed_offset,
        leader_epoch, is_individual AND first_offset IS NOT NULL AS is_one_of_many
    FROM commits
    WHERE coalesce(committed_at, taken_at) IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY topic, "partition", is_one_of_many
        ORDER BY CASE WHEN is_one_of_many THEN committed_offset END DESC, stood_at DESC,
            committed_at DESC NULLS LAST, committed_offset DESC, leader_epoch DESC NULLS LAST
    ) = 1
),
furthest AS (
    SELECT * FROM latest
    QUALIFY row_number() OVER (PARTITION BY topic, "partition" ORDER BY committed_offset DESC, is_one_of_many) = 1
),
bounded AS (
    SELECT l.*, b.observed_at,
        coalesce(l.committed_offset > CASE WHEN b.is_sparse THEN b.stated_end ELSE b.log_end END, false) AS is_above,
        i.topic IS NULL AND coalesce(l.committed_offset < b.stated_start, false) AS is_below
    FROM furthest AS l
    JOIN log_bounds AS b ON same_partition(l.topic, l."partition", b.topic, b."partition")
    LEFT JOIN individual_topics AS i ON l.topic = i.topic
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
