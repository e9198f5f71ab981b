-- The first commit that covers a position: one without a first offset covers all below its own, one with it covers a
-- range. Of the first kind only commits count that moved the group beyond all earlier ones.
-- Needs: checked_positions, held_commits. Source: taxonomy.md 3 (COMMIT_AHEAD) and 8, 7; interpretations.md, 141 to
-- 145.
CREATE TABLE advances AS
SELECT topic, "partition", committed_offset, committed_at, taken_at
FROM (
    SELECT topic, "partition", committed_offset, committed_at, taken_at,
        max(committed_offset) OVER (
            PARTITION BY topic, "partition" ORDER BY committed_at NULLS LAST, taken_at NULLS LAST, committed_offset
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS highest
    FROM held_commits
    WHERE first_offset IS NULL
)
WHERE highest IS NULL OR committed_offset > highest;

-- A range is next if it begins where the ranges before it end; an individual acknowledgement is next to none. Its level
-- is the least power of two that is as long as it is, and it lies in one or two cells of that level: positions find the
-- ranges that may hold them by equality.
CREATE TABLE range_cells AS
SELECT topic, "partition", first_offset, committed_offset, committed_at, taken_at, is_next, level,
    unnest(list_distinct([first_offset >> level, (committed_offset - 1) >> level])) AS cell
FROM (
    SELECT *,
        NOT is_individual AND coalesce(before = first_offset, true) AS is_next,
        length(bin(committed_offset - first_offset - 1))::INTEGER AS level
    FROM (
        SELECT topic, "partition", first_offset, committed_offset, committed_at, taken_at, is_individual,
            max(committed_offset) OVER (
                PARTITION BY topic, "partition", is_individual
                ORDER BY first_offset, committed_offset, committed_at NULLS FIRST, metadata NULLS FIRST,
                    generation NULLS FIRST, leader_epoch NULLS FIRST
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
        FROM (
            SELECT topic, "partition", first_offset, committed_offset, committed_at, generation, leader_epoch, metadata,
                is_individual, min(taken_at) AS taken_at
            FROM held_commits
            WHERE first_offset < committed_offset AND topic IS NOT NULL AND "partition" IS NOT NULL
            GROUP BY ALL
        )
    )
);

CREATE TABLE range_covers AS
SELECT topic, "partition", "offset", sent_at, first.*
FROM (
    SELECT p.topic, p."partition", p."offset", p.sent_at,
        arg_min(
            {'committed_at': r.committed_at, 'taken_at': r.taken_at, 'committed_offset': r.committed_offset,
                'first_offset': r.first_offset, 'is_next': r.is_next},
            create_sort_key(r.committed_at, 'ASC NULLS LAST', r.committed_offset, 'ASC NULLS FIRST',
                r.first_offset, 'ASC NULLS FIRST', r.is_next, 'ASC NULLS FIRST')) AS first
    FROM (
        SELECT a.topic, a."partition", a."offset", a.sent_at, l.level
        FROM (SELECT DISTINCT topic, "partition", "offset", sent_at FROM checked_positions) AS a
        JOIN (SELECT DISTINCT topic, "partition", level FROM range_cells) AS l
            ON a.topic = l.topic AND a."partition" = l."partition"
    ) AS p
    JOIN range_cells AS r
        ON p.topic = r.topic AND p."partition" = r."partition" AND p.level = r.level
        AND p."offset" >> p.level = r.cell
    WHERE r.first_offset <= p."offset" AND p."offset" < r.committed_offset
        AND NOT comes_before(r.committed_at, p.sent_at)
    GROUP BY p.topic, p."partition", p."offset", p.sent_at
);

-- The first commit without a first offset that covers a position, and where that is older than the message, the one that
-- reached furthest since.
CREATE TABLE first_covers AS
SELECT a.message_key, a.topic, a."partition", a."offset", a.sent_at, a.is_visible, c.committed_at, c.taken_at,
    c.committed_offset, comes_before(c.committed_at, a.sent_at) AS is_older
FROM checked_positions AS a
ASOF LEFT JOIN advances AS c
    ON a.topic IS NOT DISTINCT FROM c.topic AND a."partition" IS NOT DISTINCT FROM c."partition"
    AND a."offset" < c.committed_offset;

CREATE TABLE commits_of_all AS
SELECT c.topic, c."partition", c.committed_offset, c.committed_at, coalesce(c.committed_at, never()) AS "at",
    min(c.taken_at) AS taken_at
FROM held_commits AS c
SEMI JOIN (SELECT topic, "partition" FROM first_covers WHERE is_older) AS o
    ON same_partition(c.topic, c."partition", o.topic, o."partition")
WHERE c.first_offset IS NULL
GROUP BY ALL;

CREATE TABLE commits_since AS
SELECT y.topic, y."partition", y.sent_at, c.committed_offset, c.committed_at, c.taken_at
FROM (
    SELECT s.topic, s."partition", s.sent_at, s.since, c.furthest
    FROM (
        SELECT DISTINCT topic, "partition", sent_at,
            sent_at - (getvariable('clock_skew') + getvariable('coarsest_clock')) AS since
        FROM first_covers WHERE is_older
    ) AS s
    ASOF JOIN (
        SELECT topic, "partition", "at", max(max(committed_offset)) OVER (
            PARTITION BY topic, "partition" ORDER BY "at" DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS furthest
        FROM commits_of_all
        GROUP BY topic, "partition", "at"
    ) AS c
        ON s.topic IS NOT DISTINCT FROM c.topic AND s."partition" IS NOT DISTINCT FROM c."partition"
        AND s.since <= c."at"
) AS y
ASOF JOIN commits_of_all AS c
    ON y.topic IS NOT DISTINCT FROM c.topic AND y."partition" IS NOT DISTINCT FROM c."partition"
    AND y.furthest = c.committed_offset AND y.since <= c."at";

CREATE TABLE position_covers AS
SELECT p.message_key, p.topic, p."partition", p."offset",
    CASE WHEN is_range THEN r.committed_at ELSE p.committed_at END AS committed_at,
    CASE WHEN is_range THEN r.taken_at ELSE p.taken_at END AS taken_at,
    CASE WHEN is_range THEN r.committed_offset ELSE p.committed_offset END AS committed_offset,
    CASE WHEN is_range THEN r.first_offset END AS first_offset,
    CASE WHEN is_range THEN r.is_next END AS is_next,
    p.is_visible
FROM (
    SELECT message_key, topic, "partition", "offset", sent_at, is_visible, committed_at, taken_at, committed_offset
    FROM first_covers WHERE NOT is_older
    UNION ALL
    SELECT f.message_key, f.topic, f."partition", f."offset", f.sent_at, f.is_visible, c.committed_at, c.taken_at,
        c.committed_offset
    FROM first_covers AS f
    LEFT JOIN commits_since AS c
        ON same_partition(f.topic, f."partition", c.topic, c."partition") AND f.sent_at = c.sent_at
        AND f."offset" < c.committed_offset
    WHERE f.is_older
) AS p
LEFT JOIN (
    SELECT *, true AS is_there FROM range_covers
) AS r ON p.topic = r.topic AND p."partition" = r."partition" AND p."offset" = r."offset"
    AND p.sent_at IS NOT DISTINCT FROM r.sent_at,
LATERAL (SELECT coalesce(r.is_there AND (p.committed_offset IS NULL OR (
    r.committed_at IS NOT NULL AND (p.committed_at IS NULL OR r.committed_at < p.committed_at))), false) AS is_range)
WHERE p.committed_offset IS NOT NULL OR r.is_there;

CREATE VIEW covers AS
SELECT message_key, committed_at, committed_offset, topic, "partition", "offset", first_offset, is_next
FROM position_covers WHERE is_visible;
