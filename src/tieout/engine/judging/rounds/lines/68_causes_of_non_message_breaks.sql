-- Causes of breaks that are not of a message, from their clues, the log's leaders, and assignments between two commits.
-- Needs: numbered_non_message_breaks, leaders, assigned. Source: taxonomy.md 4.
CREATE TABLE caused_non_message_breaks AS
WITH moves AS (
    SELECT a.place.topic AS topic, a.place."partition" AS "partition", a.kind, a.assigned_at
    FROM (
        SELECT unnest(partitions) AS place, lower(kind) AS kind, assigned_at
        FROM evidence_assigned
        WHERE is_ours(consumer_group) AND lower(kind) IN ('seek', 'reset') AND assigned_at IS NOT NULL
    ) AS a
), regressions AS (
    SELECT number, topic, "partition", clues.before_at AS before_at, clues.committed_at AS committed_at
    FROM numbered_non_message_breaks
    WHERE class = 'COMMIT_REGRESSION'
        AND has_column('assigned', 'kind') AND getvariable('coverage')['assigned'].is_sound
), moved AS (
    -- The last move up to the later commit lies between the two, or none does.
    SELECT
        r.number, coalesce(s.assigned_at >= r.before_at, false) AS was_reset,
        covered_until('assigned', r.committed_at) AND NOT coalesce(m.assigned_at >= r.before_at, false) AS has_stayed
    FROM regressions AS r
    ASOF LEFT JOIN moves AS m ON m.topic IS NOT DISTINCT FROM r.topic
        AND m."partition" IS NOT DISTINCT FROM r."partition" AND m.assigned_at <= r.committed_at
    ASOF LEFT JOIN (SELECT * FROM moves WHERE kind = 'reset') AS s ON s.topic IS NOT DISTINCT FROM r.topic
        AND s."partition" IS NOT DISTINCT FROM r."partition" AND s.assigned_at <= r.committed_at
), cut_off AS (
    SELECT
        s.number, bool_or(l.leader_epoch > s.clues.leader_epoch) AS is_of_older_leader,
        bool_or(l.leader_epoch < s.clues.leader_epoch
            AND l.ended_at > s.clues.committed_at + getvariable('clock_skew')) AS is_of_former_topic
    FROM numbered_non_message_breaks AS s
    JOIN leaders AS l ON l.topic IS NOT DISTINCT FROM s.topic AND l."partition" IS NOT DISTINCT FROM s."partition"
    WHERE s.class = 'COMMIT_OUT_OF_RANGE' AND s.clues.is_beyond_end
    GROUP BY s.number
)
SELECT
    s.number,
    CASE
        WHEN l.is_after_election THEN 'leader failover or unclean election'
        WHEN s.clues.is_plain_overlap THEN 'several requests in flight without idempotence'
        WHEN s.class = 'COMMIT_REGRESSION' AND (list_contains(s.flags, 'annotated') OR m.was_reset)
            THEN 'offset reset to earliest or latest'
        WHEN s.class = 'COMMIT_REGRESSION' AND s.clues.generation < s.clues.generation_before
            THEN 'zombie after rebalance'
        WHEN s.class = 'COMMIT_REGRESSION' AND s.clues.generation = s.clues.generation_before AND m.has_stayed
            THEN 'parallel commits out of order'
        WHEN c.is_of_older_leader THEN 'commit after truncation'
        WHEN l.was_before_topic OR c.is_of_former_topic THEN 'topic recreated'
        ELSE 'unknown'
    END AS cause,
    CASE
        WHEN s.class IN ('LOG_TRUNCATION', 'LOG_IDENTITY_CONFLICT')
            THEN ['leader failover or unclean election', 'topic recreated']
        WHEN s.class = 'REORDER_PRODUCER' THEN ['several requests in flight without idempotence']
        WHEN s.class = 'COMMIT_REGRESSION' THEN ['parallel commits out of order', 'offset reset to earliest or latest',
            'zombie after rebalance']
        WHEN s.class = 'COMMIT_OUT_OF_RANGE' AND s.clues.is_beyond_end
            THEN ['commit after truncation', 'topic recreated']
        WHEN s.class = 'COMMIT_OUT_OF_RANGE' THEN ['retention overrun']
        WHEN s.class = 'COMMIT_AHEAD' THEN ['commit before process']
        ELSE []
    END AS fitting
FROM numbered_non_message_breaks AS s
LEFT JOIN proven_by_leaders AS l ON l.number = s.number
LEFT JOIN moved AS m ON m.number = s.number
LEFT JOIN cut_off AS c ON c.number = s.number;
