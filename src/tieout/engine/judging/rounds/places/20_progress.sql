-- Every proof that the group passed a position, with its time: an effect, a read or a commit; and how far the group
-- came. An effect without a position counts at the first position of its message, unless it may be another message's,
-- or its message was written in several partitions. Where reads are the effects, a repeated read is no effect.
-- Needs: effects, reads, held_commits, messages, several_positions, message_positions, clean_progress, clean_steps.
-- Source: taxonomy.md 2 (frontier).
CREATE TABLE unplaced_progress AS
SELECT m.topic, m."partition", m.first_offset AS "offset", e.processed_at AS "at", e.effect_state
FROM effects AS e
JOIN messages AS m USING (message_key)
ANTI JOIN (
    SELECT message_key
    FROM message_positions SEMI JOIN several_positions USING (message_key)
    GROUP BY message_key
    HAVING count(DISTINCT (topic, "partition")) > 1
) AS s ON e.message_key = s.message_key
WHERE e."offset" IS NULL AND e.effect_state IN ('ok', 'again') AND m.first_offset IS NOT NULL
    AND NOT is_ambiguous_key(e.message_key);

-- Effects and reads at positions. The log as it is now has what lies below the first record of a newer leader (`begins`).
CREATE VIEW in_hand AS
SELECT e.topic, e."partition", e."offset", n.begins, e.processed_at AS "at",
    CASE e.effect_state WHEN 'again' THEN 'read' ELSE 'effect' END AS "by"
FROM effects AS e
LEFT JOIN newer_leaders AS n
    ON same_partition(e.topic, e."partition", n.topic, n."partition") AND e.leader_epoch = n.leader_epoch
WHERE e."offset" IS NOT NULL AND e.effect_state IN ('ok', 'again')
UNION ALL
SELECT topic, "partition", "offset", NULL, "at", CASE effect_state WHEN 'again' THEN 'read' ELSE 'effect' END
FROM unplaced_progress
UNION ALL
SELECT r.topic, r."partition", r."offset", n.begins, r.processed_at, 'read'
FROM reads AS r
LEFT JOIN newer_leaders AS n
    ON same_partition(r.topic, r."partition", n.topic, n."partition") AND r.leader_epoch = n.leader_epoch
WHERE getvariable('effect_ledger') <> 'read' AND r."offset" IS NOT NULL AND r.effect_state IN ('ok', 'again');

CREATE VIEW shown_progress AS
SELECT topic, "partition", least("offset", begins - 1) AS "offset", "at", "by" FROM in_hand
UNION ALL
SELECT topic, "partition", committed_offset - 1, committed_at, 'commit' FROM held_commits;

CREATE VIEW progress AS
FROM shown_progress
UNION ALL
FROM clean_progress
UNION ALL
SELECT topic, "partition", max("offset"), NULL, 'effect' FROM clean_steps GROUP BY topic, "partition";

-- The steps that move the consumer position, with a time that dates the sends passed; undated steps may be recent.
CREATE VIEW steps AS
SELECT topic, "partition", "offset", "by",
    CASE WHEN "at" >= getvariable('earliest_plausible') THEN "at" ELSE never() END AS "at"
FROM (FROM shown_progress UNION ALL SELECT topic, "partition", "offset", "at", 'effect' FROM clean_steps);

-- Per partition the last position that the group passed, and how far its commits ever came (exclusive), each with the
-- last time at which it was seen there.
CREATE TABLE consumer_positions AS
SELECT topic, "partition", passed."offset" AS passed, passed."at" AS passed_at,
    committed."offset" + 1 AS committed, committed."at" AS committed_at
FROM (
    SELECT topic, "partition", max({'offset': "offset", 'at': "at"}) AS passed,
        max({'offset': "offset", 'at': "at"}) FILTER (WHERE "by" = 'commit') AS committed
    FROM steps
    GROUP BY topic, "partition"
);
