-- Ids that alone do not identify a message, with the messages that they and their payloads name; ids scoped to a
-- session never do alone. A null `session` stands for any.
-- Needs: named_sends, ids_of_several_payloads. Source: taxonomy.md 1 (Messages).
CREATE VIEW sends_of_reused_ids AS
SELECT message_id, producer_session AS session, payload_hash, message_key FROM named_sends
WHERE is_by_id() AND message_id IS NOT NULL
    AND (is_session_scoped() OR message_id IN (SELECT message_id FROM ids_of_several_payloads));

CREATE TABLE reused_id_messages AS
SELECT message_id, session, min(message_key) AS first_key, max(message_key) AS last_key,
    min(payload_hash) AS first_payload, max(payload_hash) AS last_payload
FROM sends_of_reused_ids GROUP BY GROUPING SETS ((message_id), (message_id, session))
HAVING grouping(session) = 1 OR is_session_scoped() AND session IS NOT NULL;

CREATE TABLE reused_id_payloads AS
SELECT message_id, session, payload_hash, min(message_key) AS first_key, max(message_key) AS last_key
FROM sends_of_reused_ids WHERE payload_hash IS NOT NULL
GROUP BY GROUPING SETS ((message_id, payload_hash), (message_id, payload_hash, session))
HAVING grouping(session) = 1 OR is_session_scoped() AND session IS NOT NULL;
