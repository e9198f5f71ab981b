-- The positions of messages, one row per message and position: which of them sends, records and reads assert, and which
-- are own, visible, seen by effects, read, or not covered by the log; one assertion is enough for coverage. Also the
-- least position per message. A read asserts no position of a control record.
-- Needs: sends, records, reads_of_messages, effects, log_bounds, marker_positions, overruled. Source: taxonomy.md 1
-- (Messages, Visible); interpretations.md 14 and 31.
CREATE VIEW position_marks AS
SELECT s.message_key, s.topic, s."partition", s."offset",
    CASE WHEN is_declared('log') AND NOT log_covers(s."offset", coalesce(s.completed_at, s.attempted_at),
        b.log_start, b.log_end, b.observed_at) THEN 1 + 16 ELSE 1 + 32 END AS marks
FROM sends AS s
LEFT JOIN log_bounds AS b ON s.topic IS NOT DISTINCT FROM b.topic AND s."partition" IS NOT DISTINCT FROM b."partition"
WHERE s."offset" IS NOT NULL AND s.outcome <> 'failed'
UNION ALL
SELECT message_key, topic, "partition", "offset",
    CASE WHEN transaction_state IN ('none', 'committed') THEN 1 ELSE 0 END + CASE WHEN is_visible THEN 2 ELSE 0 END
FROM records
WHERE transaction_state IN ('none', 'committed') OR is_visible
UNION ALL
SELECT r.message_key, r.topic, r."partition", r."offset",
    CASE WHEN r.is_of_aborted OR m."offset" IS NOT NULL THEN 0
        WHEN is_declared('log') AND NOT log_covers(r."offset", r.processed_at,
            b.log_start, b.log_end, b.observed_at) THEN 1 + 16
        ELSE 1 + 32 END + CASE WHEN r.effect_state IN ('ok', 'again') THEN 8 ELSE 0 END
FROM reads_of_messages AS r
LEFT JOIN log_bounds AS b ON r.topic IS NOT DISTINCT FROM b.topic AND r."partition" IS NOT DISTINCT FROM b."partition"
LEFT JOIN marker_positions AS m ON same_position(r.topic, r."partition", r."offset", m.topic, m."partition", m."offset")
WHERE r."offset" IS NOT NULL AND (NOT r.is_of_aborted OR r.effect_state IN ('ok', 'again'))
UNION ALL
SELECT message_key, topic, "partition", "offset", 4
FROM effects
WHERE "offset" IS NOT NULL AND effect_state = 'ok';

-- A position that only unproven `unknown` sends assert has what the log shows of it.
CREATE TABLE message_positions AS
SELECT
    p.message_key,
    p.topic,
    p."partition",
    p."offset",
    p.is_asserted,
    p.is_asserted AND o.message_key IS NULL AS is_own,
    p.is_visible,
    p.is_effect,
    p.is_read,
    p.is_uncovered
FROM (
    SELECT
        g.message_key, topic, "partition", "offset",
        CASE WHEN u.message_key IS NULL THEN marks & 1 ELSE marks & 2 END > 0 AS is_asserted,
        marks & 2 > 0 AS is_visible,
        marks & 4 > 0 AS is_effect,
        marks & 8 > 0 AS is_read,
        marks & (16 + 32) = 16 AS is_uncovered
    FROM (
        SELECT message_key, topic, "partition", "offset", bit_or(marks) AS marks
        FROM position_marks
        GROUP BY message_key, topic, "partition", "offset"
    ) AS g
    LEFT JOIN (SELECT message_key FROM acceptances WHERE acceptance = 'unproven') AS u USING (message_key)
) AS p
LEFT JOIN (SELECT DISTINCT message_key, topic, "partition", "offset" FROM overruled) AS o
    ON p.message_key = o.message_key AND p.topic IS NOT DISTINCT FROM o.topic
    AND p."partition" IS NOT DISTINCT FROM o."partition" AND p."offset" = o."offset";

CREATE TABLE several_positions AS SELECT message_key FROM message_positions GROUP BY message_key HAVING count(*) > 1;

CREATE VIEW position_shares AS
SELECT
    p.message_key,
    p.is_asserted::BIGINT AS asserted_count,
    p.is_own::BIGINT AS own_count,
    p.is_visible::BIGINT AS visible_count,
    p.is_effect::BIGINT AS effect_position_count,
    p.is_read::BIGINT AS read_position_count,
    (p.is_visible OR p.is_asserted AND p.is_uncovered)::BIGINT AS copy_count,
    CASE WHEN p.is_own THEN place END AS least_own,
    CASE WHEN p.is_asserted THEN place END AS least_asserted,
    CASE WHEN p.is_effect THEN place END AS least_effect,
    CASE WHEN p.is_own AND is_at_home THEN "offset" END AS own_offset,
    CASE WHEN p.is_asserted AND is_at_home THEN "offset" END AS asserted_offset
FROM (
    SELECT m.*, {'topic': m.topic, 'partition': m."partition", 'offset': m."offset"} AS place,
        a.sent_place.topic IS NOT DISTINCT FROM m.topic
            AND a.sent_place."partition" IS NOT DISTINCT FROM m."partition" AS is_at_home
    FROM message_positions AS m LEFT JOIN acceptances AS a USING (message_key)
) AS p;

CREATE TABLE counts_of_several_positions AS
SELECT
    message_key,
    sum(asserted_count)::BIGINT AS asserted_count,
    sum(own_count)::BIGINT AS own_count,
    sum(visible_count)::BIGINT AS visible_count,
    sum(effect_position_count)::BIGINT AS effect_position_count,
    sum(read_position_count)::BIGINT AS read_position_count,
    sum(copy_count)::BIGINT AS copy_count,
    least_position(least_own) AS least_own,
    least_position(least_asserted) AS least_asserted,
    least_position(least_effect) AS least_effect,
    min(own_offset) AS own_offset,
    min(asserted_offset) AS asserted_offset
FROM position_shares SEMI JOIN several_positions USING (message_key)
GROUP BY message_key;

CREATE VIEW position_counts AS
SELECT * FROM position_shares ANTI JOIN several_positions USING (message_key)
UNION ALL BY NAME
SELECT * FROM counts_of_several_positions;
