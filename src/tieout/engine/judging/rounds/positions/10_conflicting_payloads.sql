-- Positions at which several payloads were sent: by position each payload is a message of its own, and by id each that
-- was sent without one. `earliest` was sent first. `held` is the payload assumed for a row without one: what the log
-- holds, else the latest send that did not fail.
-- Needs: evidence_produced, log_rows. Source: interpretations.md 9 and 81.
CREATE TABLE conflicting_payloads AS
WITH sends AS (
    SELECT topic, "partition", "offset", payload_hash FROM evidence_produced
    WHERE "offset" >= 0 AND payload_hash IS NOT NULL AND (is_by_position() OR is_by_id() AND message_id IS NULL)),
repeated AS (
    SELECT topic, "partition", "offset" FROM sends GROUP BY topic, "partition", "offset" HAVING count(*) > 1)
SELECT DISTINCT s.* FROM sends AS s SEMI JOIN repeated AS r
    ON same_partition(s.topic, s."partition", r.topic, r."partition") AND s."offset" = r."offset"
WINDOW position AS (PARTITION BY s.topic, s."partition", s."offset")
QUALIFY min(payload_hash) OVER position <> max(payload_hash) OVER position;

CREATE TABLE conflicting_positions AS
WITH sends AS (
    SELECT p.topic, p."partition", p."offset", p.payload_hash, claimed_outcome(outcome) AS claimed,
        coalesce(attempted_at, never()) AS began_at, coalesce(completed_at, began_at) AS done_at
    FROM evidence_produced AS p SEMI JOIN conflicting_payloads AS c
        ON same_partition(p.topic, p."partition", c.topic, c."partition") AND p."offset" = c."offset"
    WHERE p.payload_hash IS NOT NULL AND (is_by_position() OR p.message_id IS NULL)),
sent AS (
    SELECT topic, "partition", "offset", (min((began_at, payload_hash)))[2] AS earliest,
        (max((claimed = 'acked', done_at, payload_hash)) FILTER (claimed <> 'failed'))[3] AS latest
    FROM sends GROUP BY topic, "partition", "offset"),
logged AS (
    SELECT c.* FROM conflicting_payloads AS c JOIN log_rows AS log
        ON same_partition(c.topic, c."partition", log.topic, log."partition") AND c."offset" = log."offset"
        AND c.payload_hash = log.payload_hash
    WHERE NOT log.is_control)
SELECT s.topic, s."partition", s."offset", earliest, coalesce(l.payload_hash, latest, earliest) AS held
FROM sent AS s LEFT JOIN logged AS l
    ON same_partition(s.topic, s."partition", l.topic, l."partition") AND s."offset" = l."offset";
