-- Rows of consumers and what was set aside, each with the key of its message.

-- Consumer rows with their message's key, null where only the row's digest says it: by position unless the ids differ,
-- else by id and payload. Rows that could be of several messages share a key per id, and have no identity.
CREATE MACRO keyed_rows(rows, owners, choices) AS TABLE
    SELECT * EXCLUDE (by_name, owner, owner_name, is_nameless, is_unsure, held_state, held_until, held_at, owner_fits),
        -- A record that nobody is known to have sent says less about a row than the row's own id does.
        CASE WHEN owner_fits AND NOT (is_unsure AND by_name IS NOT NULL) THEN owner
            WHEN by_name IS NOT NULL THEN by_name
            WHEN is_ambiguous THEN ambiguous_key(message_id)
            -- Not the key of the position: a failed send that names it has that, and does not claim the position.
            WHEN "offset" IS NOT NULL THEN 'u:' || position_key(topic, "partition", "offset") END AS message_key,
        NOT is_ambiguous AND (owner_fits OR by_name IS NOT NULL OR (message_id IS NULL AND "offset" IS NOT NULL))
            AS has_identity,
        CASE WHEN owner_fits THEN held_state END AS held_state,
        CASE WHEN owner_fits THEN held_until END AS open_until,
        CASE WHEN owner_fits THEN held_at END AS held_at,
        coalesce(held_state = 'aborted', false) AS is_of_aborted
    FROM (
        SELECT *,
            is_nameless OR coalesce(is_ambiguous_key(owner), false) AS is_unsure,
            is_by_id() AND CASE WHEN message_id IS NULL THEN coalesce(is_ambiguous_key(owner), false)
                ELSE by_name IS NULL AND (owner IS NULL OR is_unsure) END AS is_ambiguous,
            owner IS NOT NULL AND (message_id IS NULL OR NOT is_ambiguous) AND (NOT is_by_position() OR owner = by_name)
                AS owner_fits
        FROM with_names(rows, owners, choices));
CREATE MACRO keyed_set_aside(rows) AS TABLE
    SELECT * EXCLUDE (producer_session, message_key), coalesce(message_key, 'r:' || set_aside_digest(message_id, topic,
        topic_id, "partition", "offset", payload_hash, effect_key, "at", reason, transaction_state, effect_state)) AS message_key
    FROM keyed_rows(rows, 'output_owners', 'choices_of_outputs');
