-- The offset balance: every offset of a judged range in exactly one state, and the unexplained ones. In a sparse
-- partition only the positions of records and messages count. A record has the disposition of its message where it is
-- the message's first, otherwise it is a duplicate; an offset that the log lacks has the disposition of the message
-- that asserts it.
-- Source: taxonomy.md 5, last item, and section 7, traps 1 and 2.
CREATE TABLE offset_states AS
WITH states AS (
    SELECT m.message_key, m.topic, m."partition", m.first_offset, m.attempts > 0 AS is_attempted,
        CASE
            WHEN m.attempts > 0 THEN coalesce(f.disposition, 'in_flight')
            WHEN f.is_record_origin_covered THEN 'unattempted'
            ELSE 'unverifiable'
        END AS state
    FROM messages AS m
    JOIN fates AS f USING (message_key)
),
present AS (
    SELECT topic, "partition", "offset", record_timestamp, 'control' AS state, true AS is_present, false AS is_unsent
    FROM log_rows WHERE is_control
    UNION ALL
    SELECT r.topic, r."partition", r."offset", r.record_timestamp,
        CASE
            WHEN r.transaction_state IN ('aborted', 'open') THEN r.transaction_state
            WHEN s.is_attempted AND NOT (
                r.topic IS NOT DISTINCT FROM s.topic
                AND r."partition" IS NOT DISTINCT FROM s."partition"
                AND r."offset" IS NOT DISTINCT FROM s.first_offset) THEN 'duplicate'
            ELSE coalesce(s.state, 'unverifiable')
        END,
        true,
        NOT coalesce(s.is_attempted, false) AND coalesce(r.transaction_state NOT IN ('aborted', 'open'), true)
    FROM records AS r
    LEFT JOIN states AS s USING (message_key)
),
asserted AS (
    SELECT p.topic, p."partition", p."offset", min(f.disposition) AS state
    FROM message_positions AS p
    JOIN fates AS f USING (message_key)
    WHERE p.is_asserted AND f.disposition IS NOT NULL
    GROUP BY p.topic, p."partition", p."offset"
),
absent AS (
    SELECT a.topic, a."partition", a."offset", NULL::TIMESTAMP AS record_timestamp, a.state, false AS is_present,
        false AS is_unsent
    FROM asserted AS a
    WHERE NOT EXISTS (
        SELECT 1 FROM log_rows AS l
        WHERE l.topic IS NOT DISTINCT FROM a.topic
            AND l."partition" IS NOT DISTINCT FROM a."partition"
            AND l."offset" = a."offset")
),
every AS (FROM present UNION ALL FROM absent)
SELECT e.topic, e."partition", e.state, e.is_present, e.is_unsent,
    coalesce(e."offset" < r.log_start, false) AS is_below_start,
    e."offset" >= r."from" AND e."offset" < r."to" AS is_judged,
    e."offset" >= r.near_from AND e."offset" < r.near_to AS is_near,
    in_window(e.record_timestamp) AS is_in_window,
    count(*) AS positions
FROM every AS e
JOIN judged_ranges AS r
    ON e.topic IS NOT DISTINCT FROM r.topic AND e."partition" IS NOT DISTINCT FROM r."partition"
GROUP BY ALL
UNION ALL
SELECT topic, "partition", 'delivered', true, false, is_below_start, is_judged, true, false, positions FROM clean_positions;

CREATE TABLE balance AS
WITH stated AS (
    SELECT topic, "partition",
        sum(positions)::BIGINT AS stated,
        sum(positions) FILTER (is_below_start)::BIGINT AS stated_below_start,
        sum(positions) FILTER (state = 'delivered')::BIGINT AS delivered,
        sum(positions) FILTER (state = 'filtered')::BIGINT AS filtered,
        sum(positions) FILTER (state = 'dead_lettered')::BIGINT AS dead_lettered,
        sum(positions) FILTER (state = 'lost')::BIGINT AS lost,
        sum(positions) FILTER (state = 'in_flight')::BIGINT AS in_flight,
        sum(positions) FILTER (state = 'unverifiable')::BIGINT AS unverifiable,
        sum(positions) FILTER (state = 'unattempted')::BIGINT AS unattempted,
        sum(positions) FILTER (state = 'duplicate')::BIGINT AS duplicate,
        sum(positions) FILTER (state = 'aborted')::BIGINT AS aborted,
        sum(positions) FILTER (state = 'open')::BIGINT AS open,
        sum(positions) FILTER (state = 'control')::BIGINT AS control,
        sum(positions) FILTER (state = 'expired')::BIGINT AS expired,
        sum(positions) FILTER (state = 'compacted')::BIGINT AS compacted
    FROM offset_states
    WHERE is_judged
    GROUP BY topic, "partition"
),
measured AS (
    SELECT r.*, s.* EXCLUDE (topic, "partition"),
        CASE WHEN r.is_sparse THEN 0 ELSE greatest(
            greatest(least(r."to", coalesce(r.log_start, r."from")) - r."from", 0)
            - coalesce(s.stated_below_start, 0), 0) END AS gone,
        coalesce(r.is_sparse, false) AS is_sparse,
        coalesce(contains(r.cleanup_policy, 'compact'), false) AS is_compacted,
        coalesce(r.lacks_markers, false) AS lacks_any_marker
    FROM judged_ranges AS r
    LEFT JOIN stated AS s
        ON r.topic IS NOT DISTINCT FROM s.topic AND r."partition" IS NOT DISTINCT FROM s."partition"
),
with_remainder AS (
    SELECT *, CASE WHEN is_sparse THEN 0 ELSE "to" - "from" - coalesce(stated, 0) - gone END AS remainder FROM measured
)
SELECT topic, "partition", "from", "to", is_sparse,
    coalesce(delivered, 0) AS delivered,
    coalesce(filtered, 0) AS filtered,
    coalesce(dead_lettered, 0) AS dead_lettered,
    coalesce(lost, 0) AS lost,
    coalesce(in_flight, 0) AS in_flight,
    coalesce(unverifiable, 0) AS unverifiable,
    coalesce(unattempted, 0) AS unattempted,
    coalesce(duplicate, 0) AS duplicate,
    coalesce(aborted, 0) AS aborted,
    coalesce(open, 0) AS open,
    coalesce(expired, 0) + gone AS expired,
    coalesce(compacted, 0) + CASE WHEN is_compacted THEN remainder ELSE 0 END AS compacted,
    coalesce(control, 0) + CASE WHEN NOT is_compacted AND lacks_any_marker THEN remainder ELSE 0 END AS control,
    CASE WHEN is_compacted OR lacks_any_marker THEN 0 ELSE remainder END AS unexplained
FROM with_remainder;
