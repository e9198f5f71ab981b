-- The table of pairs whose order differs between two neighbouring ledgers, which files 41 to 45 fill: `earlier` and
-- `later` are in the order of the second ledger. Only a message's first position and first effect count, so a retry or
-- a redelivery is no reorder.
-- Needs: messages, clean_effects. Source: taxonomy.md 3; Jepsen's nonmonotonic sends and polls.
CREATE TABLE reorders (
    class VARCHAR, locus VARCHAR, topic VARCHAR, earlier_partition INTEGER, earlier_offset BIGINT,
    later_partition INTEGER, later_offset BIGINT, message_id VARCHAR, at_time TIMESTAMP, is_plain_overlap BOOLEAN,
    is_shown BOOLEAN
);

-- Messages whose first effect has a place in the order of their key: they have a position, one key and a time.
CREATE VIEW messages_in_order AS
SELECT m.message_key, m.message_id, m.topic, m."partition", m.first_offset, m.is_owned, m.order_key,
    m.first_effect."at" AS at_time, m.first_effect.delivery_sequence AS delivery_sequence,
    m.first_effect.consumer_id AS consumer_id
FROM messages AS m
WHERE m.acceptance = 'accepted' AND m.first_offset IS NOT NULL AND m.first_effect."at" IS NOT NULL
    AND m.order_key = m.last_key AND NOT is_by_content()
UNION ALL
SELECT NULL, message_id, topic, "partition", "offset", false, key_hash, processed_at, delivery_sequence, consumer_id
FROM clean_effects;

-- Keys that lie in several partitions of their topic, of which no log orders them; none unless keys are in order there.
CREATE TABLE moved_keys AS
SELECT topic, order_key
FROM messages_in_order
WHERE orders_keys()
GROUP BY topic, order_key
HAVING min("partition") <> max("partition");
