-- All breaks with their ids. `break_id` depends only on the judged pipeline and the break's subject, so that it is
-- stable. An incident is the breaks of one run, class, locus, cause, partition and flags, and is named by their first
-- offset.
-- Needs: broken_messages, caused_messages, clocks_apart, numbered_non_message_breaks, caused_non_message_breaks.
-- Source: taxonomy.md 4 and 6.
CREATE TABLE named_breaks AS
WITH decided AS (
    SELECT
        number, place, incident_kind, run, "offset", begins_partition, cause AS first_cause,
        CASE WHEN cause IN ('commit before process', 'process before commit', 'retention overrun')
            AND (SELECT count(*) > 0 FROM clocks_apart) THEN 'unknown' ELSE cause END AS cause
    FROM caused_messages
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
    b.number, break_id('message', b.class, CASE WHEN starts_with(b.message_key, 'm:') AND b.message_id IS NOT NULL
        THEN b.message_id ELSE b.message_key END) AS break_id,
    n.incident_id, b.message_key, b.class, 'message' AS kind, b.flags, b.locus,
    b.message_id, b.producer_id, b.topic, b."partition", b."offset", coalesce(b.positions, o.items) AS positions,
    d.cause,
    open_causes(d.cause, d.first_cause, fitting_causes(
        b.class, b.locus, b.flags, b.reader_count >= 2, b.is_superseded, d.begins_partition)) AS admissible,
    true AS is_covered
FROM broken_messages AS b
JOIN decided AS d ON d.number = b.number
JOIN incidents AS n ON n.place = d.place AND n.incident_kind = d.incident_kind AND n.cause = d.cause
    AND n.run IS NOT DISTINCT FROM d.run
LEFT JOIN listed('ordered_positions') AS o ON o.number = b.number;

INSERT INTO named_breaks BY NAME
SELECT
    s.number, break_id(s.kind, s.class, s.subject) AS break_id,
    incident_id(s.class, s.locus, c.cause, s.topic, s."partition", s.subject, s.flags, min(s."offset") OVER (
        PARTITION BY s.subject, s.class, s.locus, c.cause, s.topic, s."partition", s.flags)) AS incident_id,
    s.class, s.kind, s.flags, s.locus, s.message_id, s.topic, s."partition", s."offset", s.positions, c.cause,
    open_causes(c.cause, c.cause, c.fitting) AS admissible, s.is_covered
FROM numbered_non_message_breaks AS s JOIN caused_non_message_breaks AS c ON c.number = s.number;
