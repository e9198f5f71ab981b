-- Names of messages without effect, and of rows that nobody sent: a name on each side with the same form may be one
-- message, written in two ways. Of each side those whose forms have the least hashes stand for the others.
-- Needs: messages, fates. Source: taxonomy.md 8, 2; interpretations.md, 91.
CREATE TABLE spelling_parts AS
WITH named AS (
    SELECT m.topic,
        shown_name(m.message_id, m.shown_hash) AS name,
        m.attempts > 0 AS is_sent,
        f.is_judged_here AND coalesce(
            CASE WHEN is_sent THEN f.disposition = 'lost' ELSE f.class = 'PHANTOM_UNKNOWN' END, false) AS is_broken
    FROM messages AS m
    JOIN fates AS f USING (message_key)
    WHERE NOT is_by_position() AND name IS NOT NULL AND CASE
        WHEN is_sent THEN m.effect_rows + m.set_aside_rows = 0 AND m.acceptance <> 'failed'
        ELSE m.effect_rows + m.possible_effects + m.set_aside_rows > 0 END
)
(SELECT *, form_of(name) AS form, hash(form) AS place FROM named WHERE is_sent ORDER BY place, topic, name LIMIT most_compared())
UNION ALL
(SELECT *, form_of(name) AS form, hash(form) AS place FROM named WHERE NOT is_sent ORDER BY place, topic, name LIMIT most_compared());
