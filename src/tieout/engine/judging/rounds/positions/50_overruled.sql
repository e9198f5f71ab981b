-- Positions that messages claim and that are shown to be another's. With a log they are those of reads up to which it is
-- complete, where it holds another message; without one a position is its latest named read's, and another id is denied
-- it: one id that several messages sent there, as in several sessions, does not make them one.
-- Needs: keyed_sends, keyed_records, keyed_reads. Source: interpretations.md 121.
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
    WHERE transaction_state <> 'aborted' AND named_id IS NOT NULL AND is_declared('read') AND NOT is_by_position()),
claims AS (
    SELECT message_key, topic, "partition", "offset", name FROM reads
    WHERE NOT is_declared('log') OR covered_until('log', processed_at)
    UNION ALL
    SELECT message_key, topic, "partition", "offset", shown_name(message_id, payload_hash) FROM keyed_sends
    WHERE NOT is_declared('log') AND "offset" IS NOT NULL AND outcome <> 'failed'),
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
    GROUP BY s.topic, s."partition", s."offset" HAVING min(s.message_key) <> max(s.message_key))
SELECT DISTINCT message_key, topic, "partition", "offset" FROM others WHERE NOT is_of_one_name
UNION
SELECT o.message_key, o.topic, o."partition", o."offset" FROM others AS o SEMI JOIN of_several AS s
    ON same_partition(o.topic, o."partition", s.topic, s."partition") AND o."offset" = s."offset"
WHERE o.is_of_one_name;
