-- The own positions of accepted and unproven messages without an effect; by content, of all such messages.
-- Needs: message_positions, messages. Source: taxonomy.md 2 (due).
CREATE TABLE checked_positions AS
SELECT
    p.message_key,
    p.topic,
    p."partition",
    p."offset",
    p.is_visible OR NOT is_declared('log') AS is_visible,
    p.is_uncovered,
    CASE WHEN NOT m.is_roughly_dated THEN m.first_attempt."at" END AS sent_at,
    m.done_at,
    m.last_key AS key_hash,
    m.visible_count + m.written + m.open AS held_count
FROM message_positions AS p
JOIN messages AS m USING (message_key)
WHERE p.is_own AND m.acceptance IN ('accepted', 'unproven') AND (is_by_content()
    OR NOT is_whole(m.effect_rows, m.lacking_keys, m.keyless, m.doubtful_keys));
