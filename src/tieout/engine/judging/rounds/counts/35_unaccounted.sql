-- Per topic partition, what the log shows against a ledger: records of the window that nobody sent (`unsent`), offsets
-- without a record in or next to what the window judges (`unshown`), if some message's place, and offsets that count as
-- transaction markers because none was read (`supposed`). In a plain log every offset is a record's: not in a compacted
-- or sparse one, nor below its start. What the log lost is a loss.
-- Needs: offset_states, judged_ranges, balance. Source: interpretations.md, 43, 133 and 134.
CREATE TABLE unaccounted AS
WITH counted AS (
    SELECT topic, "partition",
        sum(positions) FILTER (is_unsent AND CASE
            WHEN is_judged THEN state = 'unattempted'
            ELSE is_in_window AND NOT has_ranges() END) AS unsent,
        sum(positions) FILTER (NOT is_present AND is_judged AND NOT is_below_start AND state <> 'lost') AS named,
        sum(positions) FILTER (
            is_near AND NOT is_judged AND NOT is_below_start AND (is_present OR state = 'lost')) AS stated_near
    FROM offset_states
    GROUP BY topic, "partition"
),
measured AS (
    SELECT r.*, c.* EXCLUDE (topic, "partition"),
        greatest(r."from" - greatest(r.near_from, r.log_start), 0)
        + greatest(r.near_to - greatest(r."to", r.log_start), 0) AS near,
        coalesce(r.is_sparse OR contains(r.cleanup_policy, 'compact'), false) AS has_holes,
        coalesce(r.lacks_markers, false) AS lacks_any_marker
    FROM judged_ranges AS r
    LEFT JOIN counted AS c
        ON r.topic IS NOT DISTINCT FROM c.topic AND r."partition" IS NOT DISTINCT FROM c."partition"
)
SELECT m.topic, m."partition",
    coalesce(m.unsent, 0)::BIGINT AS unsent,
    CASE
        WHEN m.has_holes THEN 0
        ELSE coalesce(m.named, 0)
            + CASE WHEN m.lacks_any_marker THEN 0 ELSE coalesce(m.near - coalesce(m.stated_near, 0), 0) END
    END::BIGINT AS unshown,
    CASE WHEN m.lacks_any_marker AND NOT m.has_holes THEN b.control ELSE 0 END::BIGINT AS supposed
FROM measured AS m
JOIN balance AS b
    ON m.topic IS NOT DISTINCT FROM b.topic AND m."partition" IS NOT DISTINCT FROM b."partition";
