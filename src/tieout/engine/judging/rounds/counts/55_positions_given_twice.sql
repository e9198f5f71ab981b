-- Positions that a broker acknowledged to two sends, of which one was over before the other began, by topic. A log gives
-- a position once: it began anew, or lost what it held there, and what rows show of the position may be either's.
-- Only where messages are known by their positions; ids tell two messages at one position apart.
-- Needs: sends. Source: taxonomy.md 7, trap 8, and interpretations.md, 9.
CREATE TABLE given_twice_parts AS
SELECT topic, count(*) AS positions,
    first({'partition': "partition", 'offset': "offset"} ORDER BY "partition", "offset") AS example
FROM (
    SELECT topic, "partition", "offset"
    FROM sends
    WHERE is_by_position() AND outcome = 'acked' AND "offset" IS NOT NULL AND attempted_at IS NOT NULL
        AND NOT coalesce(is_approximate, false)
    GROUP BY message_key, topic, "partition", "offset"
    HAVING bool_or(holds(attempted_at, topic, "partition", "offset"))
        AND comes_before(min(coalesce(completed_at, attempted_at)), max(attempted_at))
)
GROUP BY topic;
