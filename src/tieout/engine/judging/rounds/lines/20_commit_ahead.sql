-- COMMIT_AHEAD of records in flight: one break per commit that covers any; of a lost record it is a flag. A message at
-- several positions is covered by a commit at each of them.
-- Needs: fates, covers, messages. Source: taxonomy.md 3.
INSERT INTO non_message_breaks BY NAME
WITH covered AS (
    SELECT c.topic, c."partition", c.committed_at, c.committed_offset, c.first_offset, c."offset",
        min(m.message_id) AS message_id
    FROM covers AS c
    SEMI JOIN (SELECT message_key FROM fates WHERE is_committed_ahead AND disposition = 'in_flight') AS f
        USING (message_key)
    JOIN messages AS m USING (message_key)
    WHERE is_accounted(c.committed_at + getvariable('allowed_latency'))
    GROUP BY ALL
),
numbered AS (
    SELECT *, row_number() OVER (
        PARTITION BY topic, "partition", committed_at, committed_offset, first_offset ORDER BY "offset"
    ) AS place
    FROM covered
    QUALIFY place <= 20
),
commits_ahead AS (
    SELECT topic, "partition", committed_at, committed_offset, first_offset,
        min("offset") AS lowest,
        max(message_id) FILTER (place = 1) AS message_id,
        list(position_of(topic, "partition", "offset") ORDER BY "offset") AS positions
    FROM numbered
    GROUP BY topic, "partition", committed_at, committed_offset, first_offset
)
SELECT 'COMMIT_AHEAD' AS class, 'commit' AS kind, 'offset store' AS locus, topic, "partition", lowest AS "offset",
    message_id, positions,
    subject_of(topic, "partition", json_millis('committed_at', committed_at),
        json_field('committed_offset', committed_offset), json_field('first_offset', first_offset)) AS subject,
    [commit_row(topic, "partition", first_offset, committed_offset, committed_at, NULL)] AS commit_rows,
    clues(committed_at := committed_at) AS clues,
    covered_between('committed', committed_at, committed_at) AS is_covered
FROM commits_ahead
WHERE holds(committed_at, topic, "partition", lowest);
