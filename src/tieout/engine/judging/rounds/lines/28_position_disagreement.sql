-- POSITION_DISAGREEMENT: `committed` and `mirrored` have different positions of a partition, flagged `ahead` where the
-- mirrored one is higher, `behind` where it has been lower for longer than messages may take. A ledger without a row
-- has the partition's first position. Topics with individual acknowledgements, which are no positions, are not judged.
-- Needs: commits, messages, log_bounds. Source: taxonomy.md 3 and 8, item 7.
CREATE TABLE kept_positions AS
SELECT 'committed' AS ledger, topic, "partition", committed_offset, committed_at, first_offset, metadata, taken_at
FROM commits
WHERE topic IS NOT NULL AND "partition" IS NOT NULL AND is_present('committed') AND is_present('mirrored')
UNION
SELECT 'mirrored', topic, "partition", committed_offset, committed_at, first_offset, metadata, taken_at
FROM evidence_mirrored
WHERE topic IS NOT NULL AND "partition" IS NOT NULL AND committed_offset IS NOT NULL
    AND is_ours_mirrored(consumer_group) AND is_present('committed') AND is_present('mirrored');

INSERT INTO non_message_breaks BY NAME
WITH latest AS (
    SELECT *
    FROM kept_positions AS k
    ANTI JOIN individual_topics AS i ON k.topic = i.topic
    ANTI JOIN (FROM topics WHERE is_individual_in_mirror) AS m ON k.topic = m.topic
    QUALIFY row_number() OVER (
        PARTITION BY ledger, topic, "partition"
        ORDER BY coalesce(committed_at, taken_at) DESC NULLS LAST, committed_offset DESC,
            committed_at DESC NULLS LAST, first_offset DESC NULLS LAST, metadata DESC NULLS LAST,
            taken_at DESC NULLS LAST
    ) = 1
),
lowest AS (
    SELECT topic, "partition", min(first_offset) AS lowest
    FROM (
        SELECT topic, "partition", first_offset FROM messages WHERE acceptance = 'accepted'
        UNION ALL
        SELECT topic, "partition", first_offset FROM commits
    )
    GROUP BY topic, "partition"
),
places AS (
    SELECT topic, "partition",
        max(committed_offset) FILTER (ledger = 'committed') AS own_offset,
        max(committed_at) FILTER (ledger = 'committed') AS own_at,
        list(commit_row(topic, "partition", first_offset, committed_offset, committed_at, metadata))
            FILTER (ledger = 'committed') AS commit_rows,
        max(committed_offset) FILTER (ledger = 'mirrored') AS mirrored_offset,
        max(committed_at) FILTER (ledger = 'mirrored') AS mirrored_at,
        max(taken_at) FILTER (ledger = 'mirrored') AS mirrored_taken_at,
        list(commit_row(topic, "partition", first_offset, committed_offset, committed_at, metadata))
            FILTER (ledger = 'mirrored') AS mirrored_rows
    FROM latest
    GROUP BY topic, "partition"
),
apart AS (
    SELECT p.*, coalesce(own_offset, b.log_start, l.lowest) AS restart,
        coalesce(mirrored_offset, b.log_start, l.lowest, CASE WHEN own_offset IS NOT NULL THEN 0 END) AS kept,
        CASE WHEN kept > restart THEN 'ahead' ELSE 'behind' END AS flag,
        least(kept, restart) AS lower
    FROM places AS p
    LEFT JOIN lowest AS l ON p.topic = l.topic AND p."partition" = l."partition"
    LEFT JOIN log_bounds AS b ON p.topic = b.topic AND p."partition" = b."partition"
    WHERE kept <> restart
),
firsts AS (
    SELECT a.topic, a."partition", min(k.committed_at) AS dated, min(k.taken_at) AS taken
    FROM apart AS a
    JOIN kept_positions AS k
        ON a.topic = k.topic AND a."partition" = k."partition" AND k.committed_offset > a.lower
        AND k.ledger = CASE a.flag WHEN 'ahead' THEN 'mirrored' ELSE 'committed' END
    GROUP BY a.topic, a."partition"
),
since AS (
    SELECT a.*, f.dated, f.taken,
        CASE WHEN f.dated IS NULL THEN f.taken
            ELSE greatest(f.dated, CASE a.flag WHEN 'ahead' THEN a.own_at ELSE a.mirrored_at END) END AS since,
        CASE WHEN a.mirrored_rows IS NOT NULL AND a.mirrored_at IS NULL THEN a.mirrored_taken_at
            ELSE getvariable('coverage')['mirrored'].complete_until END AS shown_until
    FROM apart AS a
    LEFT JOIN firsts AS f ON a.topic = f.topic AND a."partition" = f."partition"
)
SELECT 'POSITION_DISAGREEMENT' AS class, 'commit' AS kind, 'offset store' AS locus, topic, "partition",
    lower AS "offset", [flag] AS flags, commit_rows, mirrored_rows,
    subject_of(topic, "partition", json_field('flag', flag), json_millis('since', since)) AS subject,
    [position_of(topic, "partition", lower)] AS positions,
    CASE WHEN since IS NULL THEN has_known_coverage('committed') AND has_known_coverage('mirrored')
        WHEN flag = 'ahead' THEN covered_between('mirrored', since, since)
            AND covered_between('committed', since, since + getvariable('clock_skew'))
        ELSE covered_between('committed', since, since)
            AND covered_between('mirrored', since, since + getvariable('allowed_latency')) END AS is_covered
FROM since
WHERE CASE WHEN dated IS NOT NULL THEN holds(since, topic, "partition", lower)
        ELSE coalesce(taken >= getvariable('window_start'), true)
            AND holds(getvariable('window_start'), topic, "partition", lower) END
    AND (flag = 'ahead' OR coalesce(shown_until > since + getvariable('allowed_latency'), false));
