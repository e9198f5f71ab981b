-- Ids that were sent with more than one payload: alone, they do not identify a message.
-- Needs: evidence_produced. Source: taxonomy.md 1 (Messages).
CREATE TABLE ids_of_several_payloads AS
WITH repeated AS (
    SELECT message_id FROM evidence_produced
    WHERE is_by_id() AND NOT is_session_scoped() AND message_id IS NOT NULL AND payload_hash IS NOT NULL
    GROUP BY message_id HAVING count(*) > 1)
SELECT message_id FROM evidence_produced SEMI JOIN repeated USING (message_id)
GROUP BY message_id HAVING min(payload_hash) <> max(payload_hash);
