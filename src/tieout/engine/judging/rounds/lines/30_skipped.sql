-- SKIPPED: two consecutive reads of a consumer that jumped a record while the partition stayed assigned. A log shows
-- which records are visible; without a log, accepted sends and other reads assert them. A record was not jumped that
-- the same consumer read, whatever came of that, or that was set aside.
-- Needs: reads_at_positions, records, accepted_sends, placed_reads, set_aside_positions, evidence_assigned. Source:
-- taxonomy.md 3; Jepsen's poll-skip.
CREATE TABLE jumps AS
WITH ordered AS (
    SELECT consumer_id, generation, topic, "partition", "offset", processed_at AS read_at,
        lead("offset") OVER in_time AS next_offset, lead(processed_at) OVER in_time AS next_at
    FROM reads_at_positions
    WHERE is_declared('assigned') AND NOT getvariable('is_queue') AND effect_state IN ('ok', 'again')
        AND "offset" IS NOT NULL AND consumer_id IS NOT NULL AND generation IS NOT NULL AND processed_at IS NOT NULL
    WINDOW in_time AS (
        PARTITION BY consumer_id, generation, topic, "partition"
        ORDER BY processed_at, coalesce(delivery_sequence, 0), "offset"
    )
)
SELECT * FROM ordered WHERE next_offset > "offset" + 1;

INSERT INTO non_message_breaks BY NAME
WITH jumpers AS (
    SELECT consumer_id, topic, "partition", min("offset") AS lowest, max(next_offset) AS highest
    FROM jumps
    GROUP BY consumer_id, topic, "partition"
),
there AS (
    SELECT topic, "partition", "offset" FROM records WHERE is_visible
    UNION ALL
    SELECT topic, "partition", "offset" FROM accepted_sends WHERE NOT is_declared('log')
    UNION ALL
    SELECT topic, "partition", "offset" FROM placed_reads WHERE NOT is_declared('log')
),
passed AS (
    SELECT DISTINCT j.consumer_id, t.topic, t."partition", t."offset"
    FROM there AS t
    JOIN jumpers AS j ON same_partition(t.topic, t."partition", j.topic, j."partition")
        AND t."offset" > j.lowest AND t."offset" < j.highest
),
unread AS (
    SELECT p.*
    FROM passed AS p
    ANTI JOIN reads_at_positions AS r ON p.consumer_id = r.consumer_id
        AND same_position(p.topic, p."partition", p."offset", r.topic, r."partition", r."offset")
    ANTI JOIN set_aside_positions AS a
        ON same_position(p.topic, p."partition", p."offset", a.topic, a."partition", a."offset")
),
jumped AS (
    SELECT j.consumer_id, j.generation, j.topic, j."partition", j.read_at, j.next_at, u."offset" AS jumped
    FROM jumps AS j
    ASOF JOIN unread AS u ON j.consumer_id = u.consumer_id
        AND same_partition(j.topic, j."partition", u.topic, u."partition") AND j."offset" < u."offset"
    WHERE u."offset" < j.next_offset AND holds(j.next_at, j.topic, j."partition", u."offset")
),
changes AS (
    SELECT DISTINCT consumer_id, assigned_at FROM evidence_assigned WHERE is_ours(consumer_group)
),
followed AS (
    SELECT j.*, c.assigned_at AS changed_at
    FROM jumped AS j
    ANTI JOIN (SELECT consumer_id FROM changes WHERE assigned_at IS NULL) AS u USING (consumer_id)
    ASOF LEFT JOIN (SELECT * FROM changes WHERE assigned_at IS NOT NULL) AS c
        ON j.consumer_id = c.consumer_id AND j.read_at <= c.assigned_at
)
SELECT 'SKIPPED' AS class, 'order' AS kind, 'broker → consumer' AS locus, topic, "partition", jumped AS "offset",
    [position_of(topic, "partition", jumped)] AS positions,
    '{' || concat_ws(',', json_positions([position_of(topic, "partition", jumped)]),
        json_field('consumer_id', consumer_id), json_field('generation', generation), json_millis('next_at', next_at))
        || '}' AS subject,
    clues(generation := generation) AS clues
FROM followed
WHERE coalesce(changed_at > next_at, true);
