-- Facts of which a message has several, as rows: contents, readers and intended partitions. `differing_contents` has
-- only what may break a rule; `message_contents` and `message_readers` read all rows at each use.
-- Needs: messages, unlike_contents, content_rows, sends, effects. Source: taxonomy.md 3 (CORRUPTED_*).
CREATE TABLE differing_contents AS
SELECT DISTINCT message_key, side, one.name AS name, one.value AS value
FROM (
    SELECT r.message_key, r.side, u.bits,
        unnest(contents_of(r.payload_hash, r.key_hash, r.header_hash, r.record_timestamp)) AS one
    FROM content_rows AS r
    JOIN unlike_contents AS u USING (message_key)
)
WHERE one.value IS NOT NULL AND one.bit & bits > 0;

CREATE VIEW message_contents AS
SELECT DISTINCT message_key, side, one.name AS name, one.value AS value
FROM (
    SELECT message_key, side, unnest(contents_of(payload_hash, key_hash, header_hash, record_timestamp)) AS one
    FROM content_rows
)
WHERE one.value IS NOT NULL;

CREATE VIEW message_readers AS
SELECT DISTINCT message_key, consumer_id, generation
FROM effects
WHERE effect_state = 'ok' AND (has_column(getvariable('effect_ledger'), 'consumer_id')
    OR has_column(getvariable('effect_ledger'), 'generation'));

CREATE VIEW message_intentions AS
SELECT DISTINCT message_key, intended_partition FROM sends WHERE intended_partition IS NOT NULL;
