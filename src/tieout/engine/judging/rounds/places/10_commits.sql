-- The group's commits, each once, and up to which offset each still counts: what a reader of a former leader passed
-- beyond the first record of a newer leader was truncated, and is not what the log holds now.
-- Needs: committed, log_rows, log_bounds. Source: taxonomy.md 2 (frontier); KIP-320.
CREATE TABLE commits AS
SELECT DISTINCT topic, "partition", first_offset, committed_offset, committed_at, taken_at, generation, leader_epoch,
    consumer_group, metadata, coalesce(is_individual, false) AS is_individual
FROM evidence_committed
WHERE is_ours(consumer_group) AND committed_offset IS NOT NULL;

-- Where each leader's records begin; empty where the log shows only the first leader.
CREATE TABLE leader_epochs AS
SELECT topic, "partition", leader_epoch, min("offset") AS first
FROM log_rows
WHERE leader_epoch IS NOT NULL AND EXISTS (FROM log_bounds WHERE has_epochs)
    AND (has_column('committed', 'leader_epoch') OR has_column('read', 'leader_epoch')
        OR has_column('delivered', 'leader_epoch'))
GROUP BY topic, "partition", leader_epoch;

-- For each epoch that the group names: where the records of newer leaders begin.
CREATE TABLE newer_leaders AS
SELECT n.topic, n."partition", n.leader_epoch, min(e.first) AS begins
FROM (
    SELECT topic, "partition", leader_epoch FROM commits WHERE leader_epoch IS NOT NULL
    UNION
    SELECT topic, "partition", leader_epoch FROM deliveries
    WHERE leader_epoch IS NOT NULL AND EXISTS (FROM leader_epochs)
    UNION
    SELECT topic, "partition", leader_epoch FROM reads
    WHERE leader_epoch IS NOT NULL AND EXISTS (FROM leader_epochs)
) AS n
JOIN leader_epochs AS e
    ON same_partition(n.topic, n."partition", e.topic, e."partition") AND n.leader_epoch < e.leader_epoch
GROUP BY n.topic, n."partition", n.leader_epoch;

CREATE TABLE held_commits AS
SELECT c.* REPLACE (least(c.committed_offset, n.begins) AS committed_offset)
FROM commits AS c
LEFT JOIN newer_leaders AS n
    ON same_partition(c.topic, c."partition", n.topic, n."partition") AND c.leader_epoch = n.leader_epoch;
