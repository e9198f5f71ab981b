-- Names that two sends were acknowledged under, one of which ended before the other began, by topic. By position: a log
-- assigns a position once, so it was recreated or lost the first record. By id: the two carry different payloads, and
-- no session tells whether it is one message, sent again. Rows with the name may be of either send.
-- Needs: sends. Source: taxonomy.md 1 (Messages) and 7, trap 8; interpretations.md, 9.
CREATE TABLE given_twice_parts AS
SELECT topic, count(*) AS names,
    first({'partition': "partition", 'offset': "offset", 'message_id': message_id}
        ORDER BY "partition" NULLS FIRST, "offset" NULLS FIRST, message_id) AS example
FROM (
    SELECT min(topic) AS topic, min("partition") AS "partition", min("offset") AS "offset", min(message_id) AS message_id
    FROM sends
    WHERE outcome = 'acked' AND attempted_at IS NOT NULL AND NOT coalesce(is_approximate, false)
        AND CASE WHEN is_by_position() THEN "offset" IS NOT NULL
            ELSE is_by_id() AND message_id IS NOT NULL AND NOT is_session_scoped()
                AND NOT has_column('produced', 'producer_session') AND NOT has_column('produced', 'producer_id') END
    GROUP BY message_key
    HAVING bool_or(holds(attempted_at, topic, "partition", "offset"))
        AND comes_before(min(coalesce(completed_at, attempted_at)), max(attempted_at))
        AND (is_by_position() OR min(payload_hash) <> max(payload_hash))
)
GROUP BY topic;
