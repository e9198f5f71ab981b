-- What a message has several of, as rows: contents, readers and intended partitions.
-- `differing_contents` has only what a rule may find: of messages whose rows differ, or know a null, or lack a column.
-- Needs: messages, sends, records, reads_at_positions, effects. Source: taxonomy.md 3 (CORRUPTED_*).
CREATE VIEW message_contents AS SELECT DISTINCT message_key, side, name, value FROM content_values;

CREATE TABLE differing_contents AS
SELECT DISTINCT v.message_key, v.side, v.name, v.value
FROM content_values AS v
JOIN (
    SELECT message_key, differing | sent_nulls | logged_nulls | output_nulls | sent_lacking | logged_lacking
        | output_lacking AS bits
    FROM messages
) AS m USING (message_key)
WHERE v.bit & m.bits > 0;

CREATE VIEW message_readers AS
SELECT DISTINCT message_key, consumer_id, generation
FROM effects
WHERE effect_state = 'ok' AND (has_column(getvariable('effect_ledger'), 'consumer_id')
    OR has_column(getvariable('effect_ledger'), 'generation'));

CREATE VIEW message_intentions AS
SELECT DISTINCT message_key, intended_partition FROM sends WHERE intended_partition IS NOT NULL;
