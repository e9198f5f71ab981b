-- The messages of a reused id: sessions with a common payload sent one message, and a session without payload sent the
-- earliest. `content` is the least payload of the session's message. Ids that turn out to be of one message are left
-- out.
-- Needs: ids_of_several_payloads. Source: interpretations.md 7.
CREATE TABLE sessions_of_reused_ids AS
SELECT message_id, producer_id, producer_session, coalesce(min(attempted_at), never()) AS began_at,
    min(payload_hash) AS least_payload
FROM evidence_produced SEMI JOIN ids_of_several_payloads USING (message_id)
GROUP BY message_id, producer_id, producer_session;

CREATE TABLE payloads_of_reused_ids AS
SELECT DISTINCT message_id, producer_id, producer_session, payload_hash
FROM evidence_produced SEMI JOIN ids_of_several_payloads USING (message_id)
WHERE payload_hash IS NOT NULL;

-- Each payload takes the least payload that it reaches through sessions, step by step, until nothing changes.
CREATE TABLE messages_of_reused_ids AS
WITH RECURSIVE reached (message_id, payload_hash, content) USING KEY (message_id, payload_hash) AS (
    SELECT DISTINCT message_id, payload_hash, payload_hash FROM payloads_of_reused_ids
    UNION
    SELECT p.message_id, p.payload_hash, min(s.content)
    FROM (
        SELECT p.message_id, p.producer_id, p.producer_session, min(r.content) AS content
        FROM reached AS r JOIN payloads_of_reused_ids AS p USING (message_id, payload_hash)
        GROUP BY p.message_id, p.producer_id, p.producer_session) AS s
    JOIN payloads_of_reused_ids AS p
        ON p.message_id = s.message_id AND p.producer_id IS NOT DISTINCT FROM s.producer_id
        AND p.producer_session IS NOT DISTINCT FROM s.producer_session
    JOIN recurring.reached AS known ON known.message_id = p.message_id AND known.payload_hash = p.payload_hash
    WHERE s.content < known.content
    GROUP BY p.message_id, p.payload_hash)
SELECT message_id, payload_hash, content FROM reached;

CREATE TABLE contents_of_reused_ids AS
WITH several AS (
    SELECT message_id FROM messages_of_reused_ids GROUP BY message_id HAVING min(content) <> max(content)),
earliest AS (
    SELECT message_id, least_payload FROM sessions_of_reused_ids WHERE least_payload IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY message_id ORDER BY began_at, least_payload) = 1)
SELECT s.message_id, s.producer_id, s.producer_session, m.content
FROM sessions_of_reused_ids AS s SEMI JOIN several USING (message_id)
JOIN earliest AS e ON e.message_id = s.message_id
JOIN messages_of_reused_ids AS m
    ON m.message_id = s.message_id AND m.payload_hash = coalesce(s.least_payload, e.least_payload);
