-- Messages that are younger than what passed their positions: a recreated topic or a truncated log assigns its
-- positions again. For each such send, how far the group came since.
-- Needs: checked_positions, consumer_positions, steps. Source: taxonomy.md 7, 8; interpretations.md, 26.
CREATE TABLE younger_sends AS
SELECT DISTINCT a.topic, a."partition", a.sent_at,
    a.sent_at - (getvariable('clock_skew') + getvariable('coarsest_clock')) AS since
FROM checked_positions AS a
JOIN consumer_positions AS c ON same_partition(a.topic, a."partition", c.topic, c."partition")
WHERE (a."offset" <= c.passed AND comes_before(c.passed_at, a.sent_at))
    OR (a."offset" < c.committed AND comes_before(c.committed_at, a.sent_at));

CREATE TABLE positions_since AS
SELECT y.topic, y."partition", y.sent_at, s.passed, s.committed
FROM younger_sends AS y
ASOF LEFT JOIN (
    SELECT topic, "partition", "at", max("offset") OVER since AS passed, max(committed) OVER since AS committed
    FROM (
        SELECT p.topic, p."partition", p."at", max(p."offset") AS "offset",
            max(p."offset" + 1) FILTER (WHERE p."by" = 'commit') AS committed
        FROM steps AS p
        SEMI JOIN younger_sends AS y ON same_partition(p.topic, p."partition", y.topic, y."partition")
        GROUP BY p.topic, p."partition", p."at"
    )
    WINDOW since AS (
        PARTITION BY topic, "partition" ORDER BY "at" DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
) AS s
    ON y.topic IS NOT DISTINCT FROM s.topic AND y."partition" IS NOT DISTINCT FROM s."partition" AND y.since <= s."at";
