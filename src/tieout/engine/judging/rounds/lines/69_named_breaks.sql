-- All breaks with their ids. `break_id` asks for the judged pipeline and the break's subject alone, so that it lasts;
-- an incident is the breaks of one run, class, locus, cause, partition and flags, named with their first offset.
-- Needs: broken_messages, caused_messages, clocks_apart, numbered_standing, caused_standing.
-- Source: taxonomy.md 4 and 6.
CREATE TABLE named_breaks AS
WITH causes AS (
    SELECT
        * EXCLUDE (cause), cause AS told,
        cause IN ('commit before process', 'process before commit', 'retention overrun')
            AND (SELECT count(*) > 0 FROM clocks_apart) AS is_doubted
    FROM caused_messages
), decided AS (
    SELECT *, CASE WHEN is_doubted THEN 'unknown' ELSE told END AS cause FROM causes
), starts AS (
    SELECT place, incident_kind, run, cause, min("offset") AS first_offset
    FROM decided GROUP BY place, incident_kind, run, cause
), kinds AS (
    SELECT DISTINCT incident_kind, class, locus, flags FROM broken_kinds
), incidents AS (
    SELECT
        s.place, s.incident_kind, s.run, s.cause,
        incident_id(k.class, k.locus, s.cause, p.topic, p."partition", s.run, k.flags, s.first_offset) AS incident_id
    FROM starts AS s
    JOIN kinds AS k ON k.incident_kind = s.incident_kind
    JOIN broken_places AS p ON p.place = s.place
)
SELECT
    break_id('message', b.class, CASE WHEN starts_with(b.message_key, 'm:') AND b.message_id IS NOT NULL
        THEN b.message_id ELSE b.message_key END) AS break_id,
    n.incident_id, b.message_key, CAST(NULL AS BIGINT) AS number, b.class, 'message' AS kind, b.flags, b.locus,
    b.message_id, b.producer_id, b.topic, b."partition", d."offset", coalesce(o.positions, []) AS positions, d.cause,
    CASE
        WHEN d.is_doubted THEN [d.told] || list_filter(d.fitting, lambda fits: fits <> d.told)
        WHEN d.cause = 'unknown' THEN d.fitting
        ELSE [d.cause]
    END AS admissible,
    true AS is_covered
FROM broken_messages AS b
JOIN decided AS d ON d.message_key = b.message_key
JOIN incidents AS n ON n.place = d.place AND n.incident_kind = d.incident_kind AND n.cause = d.cause
    AND n.run IS NOT DISTINCT FROM d.run
LEFT JOIN positions_of_broken AS o ON o.message_key = b.message_key;

INSERT INTO named_breaks BY NAME
SELECT
    break_id(s.kind, s.class, s.subject) AS break_id,
    incident_id(s.class, s.locus, c.cause, s.topic, s."partition", s.subject, s.flags, min(s."offset") OVER (
        PARTITION BY s.subject, s.class, s.locus, c.cause, s.topic, s."partition", s.flags)) AS incident_id,
    s.number, s.class, s.kind, s.flags, s.locus, s.message_id, s.topic, s."partition", s."offset", s.positions, c.cause,
    CASE WHEN c.cause = 'unknown' THEN c.fitting ELSE [c.cause] END AS admissible, s.is_covered
FROM numbered_standing AS s JOIN caused_standing AS c ON c.number = s.number;
