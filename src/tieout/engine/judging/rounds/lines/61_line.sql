-- All messages of the partitions that have breaks, ranked by their first positions. A run is a sequence of neighbours
-- with the same class, locus, own cause, flags and covering commit; its first offset names it, so that it keeps its
-- name when older evidence is gone. Breaks without a position are not ranked.
-- Needs: messages, broken_messages. Source: taxonomy.md 4 (incidents).
CREATE TABLE broken_places AS
SELECT row_number() OVER () AS place, topic, "partition"
FROM (SELECT DISTINCT topic, "partition" FROM broken_messages);

-- `kind` is of one own cause, `incident_kind` of any.
CREATE TABLE broken_kinds AS
SELECT
    row_number() OVER () AS kind, dense_rank() OVER (ORDER BY class, locus, flags) AS incident_kind,
    class, locus, flags, own_cause
FROM (SELECT DISTINCT class, locus, flags, own_cause FROM broken_messages);

CREATE TABLE broken_alike AS
SELECT
    b.number, b.message_key, b.first_offset, b."offset", b.last_effect_at, b."commit",
    p.place, k.kind, k.incident_kind
FROM broken_messages AS b
JOIN broken_places AS p ON p.topic IS NOT DISTINCT FROM b.topic AND p."partition" IS NOT DISTINCT FROM b."partition"
JOIN broken_kinds AS k ON k.class = b.class AND k.flags = b.flags
    AND k.locus IS NOT DISTINCT FROM b.locus AND k.own_cause IS NOT DISTINCT FROM b.own_cause;

CREATE TABLE line AS
SELECT
    p.place, b.number, m.first_offset, b.kind, b.incident_kind, b."commit", b.last_effect_at,
    coalesce(m.effect_rows > 0, false) AS has_reader,
    m.first_effect.consumer_id AS consumer_id, m.first_effect.generation AS generation,
    row_number() OVER upwards AS rank,
    count_if(m.effect_rows > 0) OVER (upwards ROWS UNBOUNDED PRECEDING) AS readers_so_far,
    lag(m.first_offset) OVER upwards AS previous_offset,
    lag(m.first_effect_at) OVER upwards AS previous_effect_at,
    lead(m.first_offset) OVER upwards AS next_offset,
    b.kind IS DISTINCT FROM lag(b.kind) OVER upwards OR b."commit" IS DISTINCT FROM lag(b."commit") OVER upwards
        AS begins
FROM messages AS m
JOIN broken_places AS p ON p.topic IS NOT DISTINCT FROM m.topic AND p."partition" IS NOT DISTINCT FROM m."partition"
LEFT JOIN broken_alike AS b ON b.message_key = m.message_key
WHERE m.first_offset IS NOT NULL
WINDOW upwards AS (PARTITION BY p.place ORDER BY m.first_offset, m.message_key);
