-- The judged group's reads with their message's key. `effect_state` is `again` where reads are the effects and the
-- message was read before, at its position or without one.
-- Needs: unnamed_reads, owners, ambiguous_claims. Source: taxonomy.md 1 (Messages, Effects).
CREATE TABLE choices_of_reads AS FROM choices_among('unnamed_reads', 'ambiguous_claims');
CREATE TABLE keyed_reads AS
SELECT * REPLACE (coalesce(message_key, 'r:' || consumer_digest(r, r.isolation, r.poll_id)) AS message_key)
FROM keyed_rows('unnamed_reads', 'owners', 'choices_of_reads') AS r;

CREATE TABLE repeated_reads AS
WITH placed AS (
    SELECT topic, "partition", "offset" FROM keyed_reads
    WHERE getvariable('effect_ledger') = 'read' AND "offset" IS NOT NULL
    GROUP BY topic, "partition", "offset" HAVING count(*) > 1),
unplaced AS (
    SELECT message_key FROM keyed_reads
    WHERE getvariable('effect_ledger') = 'read' AND "offset" IS NULL AND message_id IS NOT NULL AND is_by_id()
    GROUP BY message_key HAVING count(*) > 1),
reads AS (
    SELECT r.rowid AS row_id, r.*, CASE WHEN is_by_content()
        THEN coalesce(payload_hash, max(payload_hash) OVER (PARTITION BY r.topic, r."partition", r."offset"))
        ELSE message_key END AS read_before
    FROM keyed_reads AS r SEMI JOIN placed AS p
        ON same_partition(r.topic, r."partition", p.topic, p."partition") AND r."offset" = p."offset"
    UNION ALL BY NAME
    SELECT r.rowid AS row_id, r.* REPLACE (NULL AS topic, NULL AS "partition"), message_key AS read_before
    FROM keyed_reads AS r SEMI JOIN unplaced AS u ON r.message_key = u.message_key
    WHERE r."offset" IS NULL)
SELECT row_id FROM reads WHERE effect_state = 'ok'
QUALIFY row_number() OVER (PARTITION BY topic, "partition", "offset", read_before ORDER BY
    processed_at NULLS LAST, delivery_sequence NULLS FIRST, consumer_id NULLS FIRST, generation NULLS FIRST,
    message_id NULLS FIRST, payload_hash NULLS FIRST, transaction_id NULLS FIRST, transaction_state NULLS FIRST,
    poll_id NULLS FIRST, isolation NULLS FIRST, outcome NULLS FIRST, key_hash NULLS FIRST, header_hash NULLS FIRST,
    record_timestamp NULLS FIRST, content NULLS FIRST, leader_epoch NULLS FIRST, effect_key NULLS FIRST,
    consumer_group NULLS FIRST, producer_session NULLS FIRST, topic_id NULLS FIRST) > 1;
UPDATE keyed_reads SET effect_state = 'again' FROM repeated_reads WHERE keyed_reads.rowid = row_id;
