-- The offsets of each topic partition that the window judges: from the first record that the log's clock stamps in the
-- window to the first one stamped behind it, or the ranges of offsets that the window names. A topic `lacks_markers`
-- that has transactions, by its records or accepted sends, but no control record was read.
-- Needs: the log's rows and bounds, topics. Source: taxonomy.md 5, last item; interpretations.md, 43.
CREATE TABLE judged_offsets AS
WITH stamped AS (
    SELECT topic, "partition",
        min("offset") FILTER (record_timestamp >= getvariable('window_start')) AS first_in,
        max("offset") FILTER (in_window(record_timestamp)) AS last_in,
        min("offset") FILTER (record_timestamp >= getvariable('window_end')) AS first_after
    FROM log_rows
    GROUP BY topic, "partition"
),
bounds AS (
    SELECT b.topic, b."partition", b.log_start, b.stated_start, b.log_end, b.cleanup_policy, b.is_sparse,
        NOT t.has_markers AND (t.has_states OR t.has_accepted_transactions AND b.topic IS NOT NULL) AS lacks_markers
    FROM log_bounds AS b JOIN topics AS t ON b.topic IS NOT DISTINCT FROM t.topic
),
named AS (SELECT unnest(getvariable('ranges'), recursive := true) WHERE is_declared('log'))
SELECT b.*,
    coalesce(s.first_in, b.log_end) AS "from",
    coalesce(s.first_after, b.log_end) AS "to",
    s.last_in
FROM bounds AS b
LEFT JOIN stamped AS s
    ON b.topic IS NOT DISTINCT FROM s.topic AND b."partition" IS NOT DISTINCT FROM s."partition"
WHERE NOT has_ranges()
UNION ALL BY NAME
SELECT r.*, b.log_start, b.cleanup_policy, b.lacks_markers, b.is_sparse
FROM named AS r
LEFT JOIN bounds AS b ON r.topic = b.topic AND r."partition" = b."partition"
WHERE has_ranges();

-- The judged ranges, extended by where the log may lack a record of the window: in front, from the record before, or from
-- the log's start; behind, where the last record stamped in the window lies beyond the range, up to the record after
-- that. Source: interpretations.md, 134.
CREATE TABLE judged_ranges AS
WITH around AS (
    SELECT j.topic, j."partition",
        max(l."offset") FILTER (l."offset" < j."from") AS before,
        min(l."offset") FILTER (l."offset" > j.last_in) AS behind
    FROM judged_offsets AS j
    JOIN log_rows AS l
        ON j.topic IS NOT DISTINCT FROM l.topic AND j."partition" IS NOT DISTINCT FROM l."partition"
    GROUP BY j.topic, j."partition"
)
SELECT j.*,
    CASE
        WHEN has_ranges() THEN j."from"
        WHEN n.before IS NOT NULL THEN n.before + 1
        WHEN is_from_beginning('log') THEN least(j.stated_start, j."from")
        ELSE j."from"
    END AS near_from,
    CASE WHEN j.last_in >= j."to" THEN coalesce(n.behind, j.log_end) ELSE j."to" END AS near_to
FROM judged_offsets AS j
LEFT JOIN around AS n
    ON j.topic IS NOT DISTINCT FROM n.topic AND j."partition" IS NOT DISTINCT FROM n."partition";

-- What the log shows of the partitions that a window of offsets names.
CREATE TABLE range_bounds AS
SELECT b.topic, b."partition", b.log_start, b.log_end
FROM log_bounds AS b
WHERE has_ranges() AND EXISTS (
    SELECT 1 FROM (SELECT unnest(getvariable('ranges'), recursive := true)) AS r
    WHERE r.topic = b.topic AND r."partition" = b."partition");
