-- Expired losses by retention overrun: the log's start passed the position before the group reached it, although the
-- group was on its way. The observation's time dates the start; any progress shows how far the group was.
-- Needs: broken_messages, progress, log with log_start_offset and observed_at. Source: taxonomy.md 4.
CREATE TABLE overrun AS
WITH expired AS (
    SELECT a.number, a.place, coalesce(a."offset", -9223372036854775807) AS "offset"
    FROM broken_alike AS a JOIN broken_kinds AS k ON k.kind = a.kind
    WHERE k.class = 'LOST' AND list_contains(k.flags, 'EXPIRED')
), places AS (
    SELECT * FROM broken_places SEMI JOIN expired ON expired.place = broken_places.place
), starts AS (
    SELECT
        p.place, e.log_start_offset - 1 AS last,
        min(min(e.observed_at)) OVER (PARTITION BY p.place ORDER BY e.log_start_offset DESC) AS gone_at
    FROM evidence_log AS e
    JOIN places AS p ON p.topic IS NOT DISTINCT FROM e.topic AND p."partition" IS NOT DISTINCT FROM e."partition"
    WHERE e.log_start_offset IS NOT NULL AND e.observed_at IS NOT NULL
    GROUP BY p.place, e.log_start_offset
), moves AS (
    SELECT p.place, r."offset", r."at"
    FROM progress AS r
    JOIN places AS p ON p.topic IS NOT DISTINCT FROM r.topic AND p."partition" IS NOT DISTINCT FROM r."partition"
    WHERE r."at" IS NOT NULL
), passed AS (
    SELECT place, "offset", min(min("at")) OVER (PARTITION BY place ORDER BY "offset" DESC) AS passed_at
    FROM moves GROUP BY place, "offset"
), begun AS (
    SELECT place, min("at") AS begun_at FROM moves GROUP BY place
)
SELECT e.number
FROM expired AS e
ASOF JOIN starts AS s ON s.place = e.place AND s.last >= e."offset"
ASOF LEFT JOIN passed AS p ON p.place = e.place AND p."offset" >= e."offset"
JOIN begun AS b ON b.place = e.place
WHERE (p.passed_at IS NULL OR p.passed_at > s.gone_at) AND b.begun_at <= s.gone_at;
