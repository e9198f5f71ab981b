-- What removes a key's records from a compacted log, and since when: a committed record removes those before it (turn
-- 0), and so does an acknowledged tombstone that is gone. A tombstone is a keyed send without payload where others of
-- its topic have one; it is itself removed in the end, at an unknown time (turn 2). Also where polls of unknown outcome
-- may have passed.
-- Needs: records, sends, reads, log_bounds. Source: taxonomy.md 3 (COMPACTED).
CREATE TABLE compacted_partitions AS
SELECT topic, "partition" FROM log_bounds WHERE has_column('log', 'cleanup_policy') AND cleanup_policy LIKE '%compact%';

CREATE TABLE gone_tombstones AS
SELECT s.topic, s."partition", s.key_hash, s."offset", min(coalesce(s.completed_at, s.attempted_at, never())) AS record
FROM (
    SELECT s.*
    FROM sends AS s
    SEMI JOIN compacted_partitions AS c ON same_partition(s.topic, s."partition", c.topic, c."partition")
    WHERE s.outcome = 'acked' AND s."offset" IS NOT NULL AND s.key_hash IS NOT NULL AND s.null_contents & 1 > 0
        AND has_column('produced', 'payload_hash')
) AS s
SEMI JOIN (SELECT topic FROM topics WHERE has_payloads) AS t ON s.topic IS NOT DISTINCT FROM t.topic
ANTI JOIN records AS r
    ON same_partition(s.topic, s."partition", r.topic, r."partition") AND s."offset" = r."offset"
GROUP BY s.topic, s."partition", s.key_hash, s."offset";

CREATE TABLE superseding AS
SELECT r.topic, r."partition", r.key_hash, r."offset", coalesce(r.record_timestamp, never()) AS record, 0 AS turn
FROM records AS r
SEMI JOIN compacted_partitions AS c ON same_partition(r.topic, r."partition", c.topic, c."partition")
WHERE r.transaction_state IN ('none', 'committed') AND r.key_hash IS NOT NULL
UNION ALL
SELECT topic, "partition", key_hash, "offset", record, 0 FROM gone_tombstones
UNION ALL
SELECT topic, "partition", key_hash, "offset", never(), 2 FROM gone_tombstones;

CREATE TABLE doubtful_progress AS
SELECT r.topic, r."partition", least(r."offset", n.begins - 1) AS "offset", r.processed_at AS "at"
FROM reads AS r
LEFT JOIN newer_leaders AS n
    ON same_partition(r.topic, r."partition", n.topic, n."partition") AND r.leader_epoch = n.leader_epoch
SEMI JOIN compacted_partitions AS c ON same_partition(r.topic, r."partition", c.topic, c."partition")
WHERE r.effect_state = 'unknown' AND r."offset" IS NOT NULL;
