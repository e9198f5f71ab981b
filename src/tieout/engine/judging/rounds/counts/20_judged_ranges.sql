-- The offsets that the window judges of each topic partition: those appended in it by the log's clock, from the first
-- one stamped in it to the first one stamped behind it. A window that is ranges of offsets says them itself.
-- Needs the log's rows and bounds. Source: taxonomy.md 5, last item.
CREATE TABLE judged_ranges AS
WITH stamped AS (
    SELECT topic, "partition",
        min("offset") FILTER (record_timestamp >= getvariable('window_start')) AS first_in,
        min("offset") FILTER (record_timestamp >= getvariable('window_end')) AS first_after
    FROM log_rows
    GROUP BY topic, "partition"
),
named AS (SELECT unnest(getvariable('ranges'), recursive := true) WHERE is_declared('log'))
SELECT b.topic, b."partition",
    coalesce(s.first_in, b.log_end) AS "from",
    coalesce(s.first_after, b.log_end) AS "to",
    b.log_start, b.cleanup_policy, b.lacks_markers, b.is_sparse
FROM log_bounds AS b
LEFT JOIN stamped AS s
    ON b.topic IS NOT DISTINCT FROM s.topic AND b."partition" IS NOT DISTINCT FROM s."partition"
WHERE NOT has_ranges()
UNION ALL
SELECT r.topic, r."partition", r."from", r."to", b.log_start, b.cleanup_policy, b.lacks_markers, b.is_sparse
FROM named AS r
LEFT JOIN log_bounds AS b ON r.topic = b.topic AND r."partition" = b."partition"
WHERE has_ranges();

-- What the log shows of the partitions that a window of offsets names.
CREATE TABLE range_bounds AS
SELECT b.topic, b."partition", b.log_start, b.log_end
FROM log_bounds AS b
WHERE has_ranges() AND EXISTS (
    SELECT 1 FROM (SELECT unnest(getvariable('ranges'), recursive := true)) AS r
    WHERE r.topic = b.topic AND r."partition" = b."partition");
