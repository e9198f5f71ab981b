-- The checked positions that compaction removed, since when, and whether the group had passed them by then. What the
-- group of a log had in hand was still there, whenever that was. It is undecided where acknowledgements are individual,
-- or where the group had come that far before the message was sent, in an earlier topic of the name.
-- Needs: checked_positions, superseding, progress, in_hand, doubtful_progress, log_bounds. Source: taxonomy.md 3
-- (COMPACTED).
CREATE TABLE log_positions AS
SELECT p.message_key, p.topic, p."partition", p."offset", p.sent_at, p.key_hash, p.held_count,
    coalesce(p."offset" < b.stated_start, false) AND has_known_coverage('log') AS is_expired,
    NOT p.is_uncovered
        AND log_covers(p."offset", p.done_at, b.log_start, b.log_end, b.observed_at) AS is_covered
FROM checked_positions AS p
JOIN log_bounds AS b ON same_partition(p.topic, p."partition", b.topic, b."partition");

CREATE TABLE superseded_positions AS
SELECT p.message_key, p.topic, p."partition", p."offset", p.sent_at, s.record AS superseded_at
FROM (
    SELECT l.*, l."offset" * 4 + 1 AS place
    FROM log_positions AS l
    SEMI JOIN compacted_partitions AS c ON same_partition(l.topic, l."partition", c.topic, c."partition")
    WHERE l.is_covered AND l.held_count = 0 AND l.key_hash IS NOT NULL
) AS p
ASOF JOIN (SELECT topic, "partition", key_hash, record, "offset" * 4 + turn AS place FROM superseding) AS s
    ON p.topic IS NOT DISTINCT FROM s.topic AND p."partition" IS NOT DISTINCT FROM s."partition"
    AND p.key_hash = s.key_hash AND p.place < s.place;

-- The earliest time at which anything shows the group at or beyond a position; of a queue only acknowledgements count.
CREATE TABLE passings AS
SELECT topic, "partition", "offset",
    min(first_at) OVER beyond AS passed_at,
    min(first_commit_at) OVER beyond AS committed_at,
    min(first_doubt_at) OVER beyond AS doubted_at
FROM (
    SELECT p.topic, p."partition", p."offset",
        min("at") FILTER (WHERE "by" <> 'doubt') AS first_at,
        min("at") FILTER (WHERE "by" = 'commit') AS first_commit_at,
        min("at") FILTER (WHERE "by" = 'doubt') AS first_doubt_at
    FROM (
        SELECT * FROM progress WHERE "by" = 'commit' OR NOT getvariable('is_queue')
        UNION ALL
        SELECT *, 'doubt' FROM doubtful_progress
    ) AS p
    SEMI JOIN superseded_positions AS s ON same_partition(p.topic, p."partition", s.topic, s."partition")
    GROUP BY p.topic, p."partition", p."offset"
)
WINDOW beyond AS (
    PARTITION BY topic, "partition" ORDER BY "offset" DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);

CREATE TABLE compacted_positions AS
WITH seen AS (
    SELECT topic, "partition", "offset", max(coalesce("at", never())) AS "at"
    FROM in_hand
    WHERE NOT coalesce("offset" >= begins, false) AND NOT getvariable('is_queue')
    GROUP BY topic, "partition", "offset"
)
SELECT s.message_key, s.topic, s."partition", s."offset",
    i.topic IS NOT NULL
        OR NOT ((h."at" IS NOT NULL AND NOT comes_before(h."at", s.sent_at))
            OR coalesce(p.passed_at <= s.superseded_at AND NOT was_passed_before, false)) AS is_compacted,
    coalesce(p.committed_at <= s.superseded_at AND s.superseded_at < never(), false) AS was_committed_first,
    i.topic IS NOT NULL OR was_passed_before OR coalesce(p.doubted_at <= s.superseded_at, false)
        AS may_have_passed_first
FROM superseded_positions AS s
LEFT JOIN individual_topics AS i ON s.topic = i.topic
LEFT JOIN seen AS h ON same_position(s.topic, s."partition", s."offset", h.topic, h."partition", h."offset")
ASOF LEFT JOIN passings AS p
    ON s.topic IS NOT DISTINCT FROM p.topic AND s."partition" IS NOT DISTINCT FROM p."partition"
    AND s."offset" <= p."offset",
LATERAL (SELECT comes_before(p.passed_at, s.sent_at) AS was_passed_before);
