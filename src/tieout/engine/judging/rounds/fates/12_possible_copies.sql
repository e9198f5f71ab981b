-- Effects without an id that carry a payload sent to their topic: a client's internal retry writes a second record, and
-- only one of the two is acknowledged.
-- Needs: messages, message_contents, sends, clean_contents. Source: taxonomy.md 7, trap 5.
CREATE TABLE possible_copies AS
WITH nameless AS (
    SELECT message_key, topic
    FROM messages
    WHERE NOT is_by_content() AND attempts = 0 AND effect_rows > 0 AND (message_id IS NULL OR is_by_position())
),
shown AS (
    SELECT n.message_key, n.topic, c.value
    FROM message_contents AS c JOIN nameless AS n USING (message_key)
    WHERE c.side IN ('output', 'logged') AND c.name = 'payload_hash'
),
sent AS (
    SELECT DISTINCT m.topic, s.payload_hash AS value
    FROM (FROM sends SEMI JOIN shown ON shown.value = sends.payload_hash) AS s JOIN messages AS m USING (message_key)
    UNION ALL
    FROM clean_contents
)
SELECT DISTINCT s.message_key
FROM shown AS s SEMI JOIN sent ON sent.value = s.value AND sent.topic IS NOT DISTINCT FROM s.topic;
