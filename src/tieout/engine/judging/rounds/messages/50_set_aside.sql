-- Per message, what legally set it aside and what was staged of it. Per effect key of a fan-out, whether the effect was
-- sent, came, or was set aside.
-- Needs: filtered, dead_letters, staged, sends, effects. Source: taxonomy.md 1 (Ledgers), 7, trap 14, and 8, 3 and 8.
CREATE VIEW set_aside_rows AS
SELECT 'filtered' AS kind, message_key, message_id, payload_hash, effect_key, "at", effect_state, has_identity, is_ambiguous,
    false AS is_prepared
FROM filtered
UNION ALL
SELECT 'dead_letters', message_key, message_id, payload_hash, effect_key, "at", effect_state, has_identity, is_ambiguous,
    false
FROM dead_letters
UNION ALL
SELECT 'staged', message_key, message_id, payload_hash, effect_key, "at", effect_state, has_identity, is_ambiguous,
    coalesce(starts_with(reason, 'prepared in checkpoint'), false)
        AND NOT coalesce(lower(transaction_state) = 'committed', false)
FROM staged;

-- A row before its message's sends may be another message's, like an effect there: it may set the message aside.
CREATE VIEW set_aside AS
SELECT r.* REPLACE (
    CASE WHEN effect_state = 'ok' AND NOT is_by_content() AND NOT s.is_roughly_dated
        AND comes_before(r."at", s.first_attempt."at") THEN 'unknown' ELSE effect_state END AS effect_state)
FROM set_aside_rows AS r
LEFT JOIN send_facts AS s USING (message_key);

CREATE TABLE set_aside_facts AS
SELECT
    message_key,
    min(message_id) AS set_aside_id,
    bool_and(has_identity) AS has_identity,
    min(payload_hash) FILTER (WHERE is_by_content()) AS set_aside_hash,
    bool_or(kind = 'filtered' AND effect_state = 'ok') AS is_filtered,
    bool_or(kind = 'dead_letters' AND effect_state = 'ok') AS is_dead_lettered,
    bool_or(kind = 'staged') AS is_staged,
    bool_or(is_prepared) AS is_prepared,
    count(*) FILTER (WHERE kind <> 'staged' AND effect_state = 'ok') AS set_aside_rows,
    count(*) FILTER (WHERE kind <> 'staged' AND effect_state = 'unknown') AS open_set_aside_rows,
    count(*) FILTER (WHERE kind <> 'staged' AND effect_state = 'none') AS aborted_set_aside_rows,
    count(*) FILTER (WHERE kind <> 'staged' AND effect_state = 'ok' AND effect_key IS NULL) AS keyless_set_aside_rows,
    bool_or(is_ambiguous AND kind <> 'staged' AND effect_state <> 'none') AS is_ambiguous
FROM set_aside
GROUP BY message_key;

CREATE TABLE message_effect_keys AS
SELECT
    message_key,
    effect_key,
    bool_or(is_sent) AS is_sent,
    bool_or(is_effect) AS is_effect,
    bool_or(is_doubtful) AS is_doubtful,
    sum(set_aside_rows)::BIGINT AS set_aside_rows
FROM (
    SELECT message_key, effect_key, true AS is_sent, false AS is_effect, false AS is_doubtful, 0 AS set_aside_rows
    FROM sends WHERE fans_out() AND effect_key IS NOT NULL
    UNION ALL
    SELECT message_key, effect_key, false, effect_state = 'ok', effect_state = 'unknown', 0
    FROM effects WHERE fans_out() AND effect_key IS NOT NULL AND effect_state IN ('ok', 'unknown')
    UNION ALL
    SELECT message_key, effect_key, false, false, false, 1
    FROM set_aside
    WHERE getvariable('has_effect_keys') AND effect_key IS NOT NULL AND kind <> 'staged' AND effect_state = 'ok'
)
GROUP BY message_key, effect_key;

CREATE TABLE effect_key_facts AS
SELECT
    message_key,
    count(*) FILTER (WHERE is_sent) AS sent_keys,
    count(*) FILTER (WHERE is_sent OR is_effect) AS expected_keys,
    count(*) FILTER (WHERE is_sent AND NOT is_effect) AS lacking_keys,
    count(*) FILTER (WHERE is_doubtful AND NOT is_effect) AS doubtful_keys
FROM message_effect_keys
GROUP BY message_key;
