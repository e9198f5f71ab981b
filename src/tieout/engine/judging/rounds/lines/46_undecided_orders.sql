-- How many messages of the window may be out of the order of their key, by topic and by what is missing. `unnumbered`:
-- one of its session in another partition was sent no later by their clock, and one of the two has no sequence.
-- `uncompleted`: one of another session began before, and its completion is unknown. `close`: the order of the sends is
-- known, that of the first effects is not.
-- Needs: moved_messages, sent_before. Source: interpretations.md, 90.
CREATE TABLE undecided_order_parts AS
WITH compared AS (
    SELECT b.look, b.key_number, b.by_effect, one.session <> own.session AS is_of_another,
        NOT effect_is_before(one.at_time, one.delivery_sequence, one.consumer_id,
            own.at_time, own.delivery_sequence, own.consumer_id) AS is_open,
        -- Of those sent before it only the last to take effect is compared; one before that may be of its own moment.
        own.is_met_elsewhere OR NOT effect_is_before(own.at_time, own.delivery_sequence, own.consumer_id,
            one.at_time, one.delivery_sequence, one.consumer_id) AS is_close
    FROM sent_before AS b
    JOIN moved_messages AS own ON b.key_number = own.key_number AND b.by_effect = own.by_effect
    JOIN moved_messages AS one ON b.key_number = one.key_number AND b.found = one.by_effect
    WHERE own.is_owned
),
reasons AS (
    SELECT key_number, by_effect,
        CASE
            WHEN bool_or(look IN ('unordered', 'unnumbered')) THEN 'unnumbered'
            WHEN bool_or(look = 'unsure' AND is_of_another) THEN 'uncompleted'
            WHEN bool_or(is_close AND (look = 'numbered' OR (look = 'completed' AND is_of_another))) THEN 'close'
        END AS reason
    FROM compared
    WHERE is_open
    GROUP BY key_number, by_effect
)
SELECT m.topic, count_if(r.reason = 'unnumbered') AS unnumbered, count_if(r.reason = 'uncompleted') AS uncompleted,
    count_if(r.reason = 'close') AS close,
    first({'partition': m."partition", 'offset': m.first_offset, 'message_id': m.message_id}
        ORDER BY m."partition" NULLS FIRST, m.first_offset, m.message_id NULLS FIRST) AS example
FROM reasons AS r
JOIN moved_messages AS m USING (key_number, by_effect)
WHERE r.reason IS NOT NULL
GROUP BY m.topic;
