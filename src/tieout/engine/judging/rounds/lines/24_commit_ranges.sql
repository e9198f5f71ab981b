-- The commits with a first offset, except individual ones, in the order of their beginnings, each with the preceding
-- one that ends last (`before_*`); of several of these the latest.
-- Needs: commits. Source: taxonomy.md 8, item 7.
CREATE TABLE commit_ranges AS
WITH once AS (
    SELECT topic, "partition", first_offset, committed_offset, committed_at, generation, leader_epoch, metadata,
        max(taken_at) AS taken_at
    FROM commits
    WHERE topic IS NOT NULL AND "partition" IS NOT NULL AND first_offset < committed_offset
        AND NOT is_individual
    GROUP BY ALL
),
ranked AS (
    SELECT *,
        row_number() OVER (
            PARTITION BY topic, "partition"
            ORDER BY committed_offset, committed_at NULLS FIRST, first_offset, taken_at NULLS FIRST,
                generation NULLS FIRST, metadata NULLS FIRST, leader_epoch NULLS FIRST
        ) AS by_end
    FROM once
),
ordered AS (
    SELECT *,
        max(by_end) OVER (
            PARTITION BY topic, "partition"
            ORDER BY first_offset, committed_offset, committed_at NULLS FIRST, metadata NULLS FIRST,
                generation NULLS FIRST, leader_epoch NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS last_end
    FROM ranked
)
SELECT o.topic, o."partition", o.first_offset, o.committed_offset, o.committed_at, o.generation, o.leader_epoch,
    o.metadata, o.taken_at, b.committed_offset AS before_end, b.committed_at AS before_committed_at,
    b.first_offset AS before_first, b.taken_at AS before_taken_at, b.generation AS before_generation,
    b.metadata AS before_metadata
FROM ordered AS o
LEFT JOIN ranked AS b
    ON o.topic = b.topic AND o."partition" = b."partition" AND o.last_end = b.by_end;

-- What a break of two ranges is made of: it is of the window of the later one. Ranges without times are what their table
-- shows: of every window that begins before that was taken. `earlier_at` and `later_at` are known where both are.
CREATE VIEW range_pairs AS
WITH dated AS (
    SELECT *, committed_at IS NOT NULL AND before_committed_at IS NOT NULL AS is_dated,
        greatest(committed_at, before_committed_at) AS at_time,
        coalesce(greatest(taken_at, before_taken_at) >= getvariable('window_start'), true) AS is_taken_since,
        committed_at > before_committed_at
            OR (committed_at = before_committed_at
                AND coalesce(generation >= before_generation, before_generation IS NULL)) AS is_in_order
    FROM commit_ranges
)
SELECT topic, "partition", first_offset, committed_offset, committed_at, metadata, before_end, leader_epoch, at_time,
    is_taken_since,
    CASE WHEN is_dated THEN least(committed_at, before_committed_at) END AS earlier_at,
    CASE WHEN is_dated THEN at_time END AS later_at,
    CASE WHEN is_dated THEN CASE WHEN is_in_order THEN before_generation ELSE generation END END AS generation_before,
    CASE WHEN is_dated THEN CASE WHEN is_in_order THEN generation ELSE before_generation END END AS generation_after,
    CASE WHEN is_dated
        THEN covered_between('committed', least(committed_at, before_committed_at), at_time)
        ELSE has_known_coverage('committed') END AS is_shown,
    [commit_row(topic, "partition", before_first, before_end, before_committed_at, before_metadata),
        commit_row(topic, "partition", first_offset, committed_offset, committed_at, metadata)] AS commit_rows
FROM dated;
