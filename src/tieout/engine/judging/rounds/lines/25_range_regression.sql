-- COMMIT_REGRESSION of ranges: one that begins below the end of one that begins no later. Without both times an
-- operator's reset may explain it or not.
-- Needs: commit_ranges. Source: taxonomy.md 3 and 8, item 7.
INSERT INTO non_message_breaks BY NAME
SELECT 'COMMIT_REGRESSION' AS class, 'commit' AS kind, 'offset store' AS locus, topic, "partition",
    first_offset AS "offset",
    subject_of(topic, "partition", json_field('first_offset', first_offset),
        json_field('committed_offset', committed_offset), json_millis('own_at', committed_at),
        json_field('metadata', metadata)) AS subject,
    [position_of(topic, "partition", first_offset)] AS positions,
    CASE WHEN is_annotated(earlier_at, later_at) THEN ['annotated'] ELSE [] END AS flags,
    commit_rows,
    clues(leader_epoch := leader_epoch, before_at := earlier_at, committed_at := later_at,
        generation_before := generation_before, generation := generation_after) AS clues,
    is_shown AND NOT (len(announced_resets()) > 0 AND earlier_at IS NULL) AS is_covered
FROM range_pairs
WHERE first_offset < before_end
    AND CASE WHEN at_time IS NOT NULL THEN holds(at_time, topic, "partition", first_offset)
        ELSE is_taken_since AND holds(getvariable('window_start'), topic, "partition", first_offset) END;
