-- Positions that a message claims and that evidence shows to be another message's. With a log, those are reads, as far
-- as it is complete, where it holds another message. Without a log a position belongs to its latest named read, and
-- other ids are denied it; that one id, sent there by several messages, as in several sessions, does not make them one.
-- A position that nobody read belongs to the sender whose effect shows it, else to the one acknowledged last.
-- Needs: keyed_sends, keyed_records, keyed_reads, keyed_deliveries, owners. Source: interpretations.md 38 and 121.
CREATE TABLE overruled AS
WITH reads AS (
    SELECT message_key, topic, "partition", "offset", processed_at, shown_name(message_id, payload_hash) AS name
    FROM keyed_reads
    WHERE NOT is_by_position() AND has_column('read', 'topic') AND has_column('read', 'partition')
        AND "offset" IS NOT NULL AND NOT is_of_aborted AND NOT is_ambiguous
        AND shown_name(message_id, payload_hash) IS NOT NULL),
read_last AS (
    SELECT topic, "partition", "offset", max((coalesce(processed_at, never()), name, message_key)) AS turn
    FROM reads WHERE NOT is_declared('log') GROUP BY topic, "partition", "offset"),
owned AS (
    SELECT topic, "partition", "offset", turn[3] AS message_key, turn[2] AS name FROM read_last
    UNION ALL
    SELECT topic, "partition", "offset", message_key, named_id FROM keyed_records
    WHERE transaction_state <> 'aborted' AND named_id IS NOT NULL AND NOT is_by_position()),
claims AS (
    SELECT message_key, topic, "partition", "offset", name FROM reads
    WHERE NOT is_declared('log') OR covered_until('log', processed_at)
    UNION ALL
    SELECT message_key, topic, "partition", "offset", shown_name(message_id, payload_hash) FROM keyed_sends
    WHERE NOT is_declared('log') AND "offset" IS NOT NULL AND outcome <> 'failed'
    UNION ALL
    SELECT s.message_key, s.topic, s."partition", s."offset", shown_name(s.message_id, s.payload_hash)
    FROM keyed_sends AS s SEMI JOIN (FROM owners WHERE message_key <> last_key) AS o
        ON same_partition(s.topic, s."partition", o.topic, o."partition") AND s."offset" = o."offset"
    WHERE is_declared('log') AND s.outcome <> 'failed'
        AND covered_until('log', coalesce(s.completed_at, s.attempted_at))),
others AS (
    SELECT c.message_key, c.topic, c."partition", c."offset", c.name IS NOT DISTINCT FROM o.name AS is_of_one_name
    FROM claims AS c JOIN owned AS o
        ON same_partition(c.topic, c."partition", o.topic, o."partition") AND c."offset" = o."offset"
    WHERE c.message_key <> o.message_key),
of_several AS (
    SELECT s.topic, s."partition", s."offset"
    FROM keyed_sends AS s SEMI JOIN (FROM others WHERE is_of_one_name) AS o
        ON same_partition(s.topic, s."partition", o.topic, o."partition") AND s."offset" = o."offset"
    WHERE NOT is_declared('log') AND s.outcome <> 'failed'
    GROUP BY s.topic, s."partition", s."offset" HAVING min(s.message_key) <> max(s.message_key)),
claimed_by_several AS (
    SELECT o.topic, o."partition", o."offset" FROM owners AS o ANTI JOIN read_last AS r
        ON same_partition(o.topic, o."partition", r.topic, r."partition") AND o."offset" = r."offset"
    WHERE NOT is_declared('log') AND o.message_key <> o.last_key),
shown AS (
    SELECT DISTINCT d.message_key, d.topic, d."partition", d."offset"
    FROM (SELECT message_key, topic, "partition", "offset", effect_state FROM keyed_deliveries
        UNION ALL SELECT message_key, topic, "partition", "offset", effect_state FROM keyed_reads) AS d
    SEMI JOIN claimed_by_several AS c
        ON same_partition(d.topic, d."partition", c.topic, c."partition") AND d."offset" = c."offset"
    WHERE d.effect_state IN ('ok', 'again')),
unread AS (
    SELECT s.message_key, s.topic, s."partition", s."offset",
        max((h.message_key IS NOT NULL, s.outcome = 'acked', coalesce(s.completed_at, s.attempted_at, never()))) AS turn
    FROM keyed_sends AS s SEMI JOIN claimed_by_several AS c
        ON same_partition(s.topic, s."partition", c.topic, c."partition") AND s."offset" = c."offset"
    LEFT JOIN shown AS h ON s.message_key = h.message_key
        AND same_partition(s.topic, s."partition", h.topic, h."partition") AND s."offset" = h."offset"
    WHERE s.outcome <> 'failed'
    GROUP BY s.message_key, s.topic, s."partition", s."offset"
    QUALIFY row_number() OVER (PARTITION BY s.topic, s."partition", s."offset" ORDER BY turn DESC, s.message_key) > 1)
SELECT DISTINCT message_key, topic, "partition", "offset" FROM others WHERE NOT is_of_one_name
UNION
SELECT o.message_key, o.topic, o."partition", o."offset" FROM others AS o SEMI JOIN of_several AS s
    ON same_partition(o.topic, o."partition", s.topic, s."partition") AND o."offset" = s."offset"
WHERE o.is_of_one_name
UNION
SELECT message_key, topic, "partition", "offset" FROM unread;
