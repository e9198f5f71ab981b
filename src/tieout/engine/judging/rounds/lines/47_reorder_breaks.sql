-- The reorders as breaks, at the message of each pair that comes later in the second ledger.
-- Needs: reorders. Source: taxonomy.md 3.
INSERT INTO non_message_breaks BY NAME
WITH placed AS (
    SELECT *, [position_of(topic, earlier_partition, earlier_offset), position_of(topic, later_partition, later_offset)]
        AS positions
    FROM reorders
)
SELECT class, 'order' AS kind, '{' || json_positions(positions) || '}' AS subject, message_id, locus, topic,
    later_partition AS "partition", later_offset AS "offset", positions, clues(is_plain_overlap := is_plain_overlap) AS clues,
    is_shown AS is_covered
FROM placed;
