-- LOG_TRUNCATION: an acknowledged position that a covering log lacks, neither expired nor compacted. Compaction removes
-- a record that a later record supersedes, or a tombstone at its own position (turn 2).
-- Needs: doubtful_positions, log_bounds, superseding. Source: taxonomy.md 3; interpretations.md for what a log covers.
INSERT INTO non_message_breaks BY NAME
WITH absent AS (
    SELECT s.topic, s."partition", s."offset", s.message_id, s.key_hash, s.attempted_at AS sent_at,
        coalesce(s.completed_at, s.attempted_at) AS done_at
    FROM sends AS s
    SEMI JOIN (SELECT * FROM doubtful_positions WHERE is_absent) AS d
        ON same_position(s.topic, s."partition", s."offset", d.topic, d."partition", d."offset")
    WHERE s.outcome = 'acked'
),
covered AS (
    SELECT a.*, coalesce(contains(b.cleanup_policy, 'compact'), false) AS is_compacting
    FROM absent AS a
    JOIN log_bounds AS b ON same_partition(a.topic, a."partition", b.topic, b."partition")
    WHERE log_covers(a."offset", a.done_at, b.log_start, b.log_end, b.observed_at)
        AND holds(a.sent_at, a.topic, a."partition", a."offset")
),
superseded AS (
    SELECT topic, "partition", key_hash, max("offset" + CASE WHEN turn = 2 THEN 1 ELSE 0 END) AS below
    FROM superseding
    GROUP BY topic, "partition", key_hash
)
SELECT 'LOG_TRUNCATION' AS class, 'position' AS kind, 'broker' AS locus, c.topic, c."partition", c."offset",
    c.message_id,
    subject_of(c.topic, c."partition", json_field('offset', c."offset"), json_field('message_id', c.message_id))
        AS subject,
    [position_of(c.topic, c."partition", c."offset")] AS positions,
    clues(sent_at := c.sent_at, acked_at := c.done_at) AS clues,
    covered_between('produced', c.sent_at, c.sent_at) AS is_covered
FROM covered AS c
LEFT JOIN superseded AS s
    ON same_partition(c.topic, c."partition", s.topic, s."partition") AND c.key_hash = s.key_hash
WHERE NOT (c.is_compacting AND coalesce(c."offset" < s.below, false));
