-- Positions that messages claim and that are shown to be another's. With a log they are those of reads up to which it is
-- complete, where it holds another message; without one a position is its latest named read's.
-- Needs: keyed_sends, keyed_records, keyed_reads. Source: interpretations.md 121.
CREATE TABLE overruled AS
WITH reads AS (
    SELECT message_key, topic, "partition", "offset", processed_at, shown_name(message_id, payload_hash) AS name
    FROM keyed_reads
    WHERE NOT is_by_position() AND has_column('read', 'topic') AND has_column('read', 'partition')
        AND "offset" IS NOT NULL AND NOT is_of_aborted AND NOT is_ambiguous
        AND shown_name(message_id, payload_hash) IS NOT NULL),
read_last AS (
    SELECT topic, "partition", "offset", (max((coalesce(processed_at, never()), name, message_key)))[3] AS message_key
    FROM reads WHERE NOT is_declared('log') GROUP BY topic, "partition", "offset"),
owned AS (
    SELECT *, NULL::VARCHAR AS name FROM read_last
    UNION ALL
    SELECT topic, "partition", "offset", message_key, shown_name(message_id, payload_hash) FROM keyed_records
    WHERE transaction_state <> 'aborted' AND shown_name(message_id, payload_hash) IS NOT NULL
        AND is_declared('read') AND NOT is_by_position()),
claims AS (
    SELECT message_key, topic, "partition", "offset", name FROM reads
    WHERE NOT is_declared('log') OR covered_until('log', processed_at)
    UNION ALL
    SELECT message_key, topic, "partition", "offset", shown_name(message_id, payload_hash) FROM keyed_sends
    WHERE NOT is_declared('log') AND "offset" IS NOT NULL AND outcome <> 'failed')
SELECT DISTINCT c.message_key, c.topic, c."partition", c."offset" FROM claims AS c JOIN owned AS o
    ON same_partition(c.topic, c."partition", o.topic, o."partition") AND c."offset" = o."offset"
WHERE c.message_key <> o.message_key AND c.name IS DISTINCT FROM o.name;
