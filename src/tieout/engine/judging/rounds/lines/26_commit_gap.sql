-- COMMIT_GAP: a hole between two ranges with something in it that no commit covers: the visible records of a log that
-- covers the hole, or else records, accepted sends and reads. Where none of these is known it is the whole hole, unless
-- the topic has transactions, which leave markers, is compacted or sparse.
-- Needs: range_pairs, records, log_rows, log_bounds, accepted_sends, placed_reads, set_aside_positions. Source:
-- taxonomy.md 3 and 8, item 7.
CREATE TABLE commit_holes AS
WITH reached AS (
    SELECT topic, "partition", max(committed_offset) AS reached
    FROM commits
    WHERE first_offset IS NULL
    GROUP BY topic, "partition"
),
holes AS (
    SELECT r.*, greatest(r.before_end, a.reached) AS hole_from, r.first_offset AS hole_to
    FROM range_pairs AS r
    LEFT JOIN reached AS a ON same_partition(r.topic, r."partition", a.topic, a."partition")
    ANTI JOIN individual_topics AS i ON r.topic = i.topic
    WHERE NOT getvariable('is_queue') AND r.first_offset > r.before_end
)
SELECT h.*, coalesce(t.has_legal_holes, false) AS may_be_empty,
    has_known_coverage('log') AND coalesce(b.log_start <= h.hole_from AND h.hole_to <= b.log_end, false) AS is_logged
FROM holes AS h
LEFT JOIN topics AS t ON h.topic = t.topic
LEFT JOIN log_bounds AS b ON same_partition(h.topic, h."partition", b.topic, b."partition")
WHERE h.hole_from < h.hole_to;

INSERT INTO non_message_breaks BY NAME
WITH spans AS (
    SELECT topic, "partition", min(hole_from) AS lowest, max(hole_to) AS highest
    FROM commit_holes
    GROUP BY topic, "partition"
),
named AS (
    SELECT topic, "partition", "offset", 'claimed' AS kind FROM accepted_sends
    UNION ALL
    SELECT topic, "partition", "offset", 'claimed' FROM placed_reads
    UNION ALL
    SELECT topic, "partition", "offset", 'visible' FROM records WHERE is_visible
    UNION ALL
    SELECT topic, "partition", "offset", 'aside' FROM set_aside_positions
),
near AS (
    SELECT n.topic, n."partition", n."offset", bool_or(n.kind = 'claimed') AS is_claimed,
        bool_or(n.kind = 'visible') AS is_visible, bool_or(n.kind = 'aside') AS is_aside
    FROM named AS n
    JOIN spans AS s ON same_partition(n.topic, n."partition", s.topic, s."partition")
        AND n."offset" >= s.lowest AND n."offset" < s.highest
    GROUP BY n.topic, n."partition", n."offset"
),
lying AS (
    SELECT h.topic, h."partition", h.hole_from, n."offset", n.is_aside,
        NOT n.is_aside AND (n.is_visible OR (n.is_claimed AND NOT h.is_logged)) AS is_owed
    FROM near AS n
    ASOF JOIN commit_holes AS h
        ON same_partition(n.topic, n."partition", h.topic, h."partition") AND n."offset" >= h.hole_from
    WHERE n."offset" < h.hole_to
),
numbered AS (
    SELECT *, row_number() OVER (PARTITION BY topic, "partition", hole_from, is_owed ORDER BY "offset") AS place
    FROM lying
),
known AS (
    SELECT topic, "partition", hole_from, count_if(is_aside) AS aside,
        list("offset" ORDER BY "offset") FILTER (is_owed AND place <= 20) AS owed
    FROM numbered
    GROUP BY topic, "partition", hole_from
),
gaps AS (
    SELECT h.*, coalesce(k.owed, range(h.hole_from, least(h.hole_to, h.hole_from + 20))) AS offsets
    FROM commit_holes AS h
    LEFT JOIN known AS k
        ON same_partition(h.topic, h."partition", k.topic, k."partition") AND h.hole_from = k.hole_from
    WHERE k.owed IS NOT NULL
        OR (NOT h.is_logged AND NOT h.may_be_empty AND coalesce(k.aside, 0) < h.hole_to - h.hole_from)
)
SELECT 'COMMIT_GAP' AS class, 'commit' AS kind, 'offset store' AS locus, topic, "partition", offsets[1] AS "offset",
    subject_of(topic, "partition", json_field('hole_from', hole_from), json_field('hole_to', hole_to)) AS subject,
    list_transform(offsets, lambda o: position_of(topic, "partition", o)) AS positions,
    commit_rows,
    clues(leader_epoch := leader_epoch, before_at := earlier_at, committed_at := later_at,
        generation_before := generation_before, generation := generation_after) AS clues,
    is_shown AS is_covered
FROM gaps
WHERE CASE WHEN at_time IS NOT NULL THEN holds(at_time, topic, "partition", offsets[1])
    ELSE is_taken_since AND holds(getvariable('window_start'), topic, "partition", offsets[1]) END;
