-- Per message, facts of its effects: how many, the first and the last one, their origin and contents. Most messages
-- have one effect and take their facts from that row; only the others are aggregated.
-- Needs: deliveries, or reads where those are the effects. Source: taxonomy.md 1 (Effects).
CREATE VIEW effects AS
SELECT
    message_key, message_id, topic, "partition", "offset", leader_epoch, effect_key, consumer_id, generation,
    delivery_sequence, processed_at, key_hash, payload_hash, header_hash, record_timestamp, content, effect_state,
    has_identity, held_state, held_at, open_until, is_ambiguous, effect_round
FROM deliveries WHERE getvariable('effect_ledger') = 'delivered'
UNION ALL
SELECT
    message_key, message_id, topic, "partition", "offset", leader_epoch, effect_key, consumer_id, generation,
    delivery_sequence, processed_at, key_hash, payload_hash, header_hash, record_timestamp, content, effect_state,
    has_identity, held_state, held_at, open_until, is_ambiguous, NULL::BIGINT
FROM reads WHERE getvariable('effect_ledger') = 'read';

CREATE TABLE several_effects AS SELECT message_key FROM effects GROUP BY message_key HAVING count(*) > 1;

CREATE VIEW effect_shares AS
SELECT
    message_key,
    message_id AS effect_id,
    has_identity,
    is_effect::BIGINT AS effect_rows,
    (is_effect AND is_inside)::BIGINT AS effect_rows_in,
    (NOT is_effect AND is_possible)::BIGINT AS possible_effects,
    CASE WHEN is_effect AND is_inside THEN processed_at END AS effect_at_in,
    CASE WHEN is_effect THEN processed_at END AS first_effect_at,
    CASE WHEN is_possible AND is_inside THEN processed_at END AS possible_at_in,
    CASE WHEN is_possible THEN processed_at END AS possible_at,
    is_ambiguous AND is_possible AS is_ambiguous,
    CASE WHEN is_effect AND processed_at IS NOT NULL THEN
        {'at': processed_at, 'generation': generation, 'consumer_id': consumer_id} END AS last_effect,
    CASE WHEN is_effect AND processed_at IS NOT NULL THEN
        {'at': processed_at, 'delivery_sequence': delivery_sequence, 'consumer_id': consumer_id,
            'generation': generation, 'topic': topic, 'partition': "partition", 'offset': "offset"} END
        AS first_effect,
    CASE WHEN is_possible AND topic IS NOT NULL AND "partition" IS NOT NULL THEN
        {'is_uncertain': NOT is_effect, 'at': processed_at,
            'place': {'topic': topic, 'partition': "partition"}} END AS effect_place,
    topic AS effect_topic,
    CASE WHEN is_possible THEN "partition" END AS effect_partition,
    is_effect AND held_state IS NOT NULL AS is_from_record,
    CASE WHEN is_effect THEN held_at END AS from_record_at,
    is_effect AND coalesce(held_state IN ('none', 'committed'), false) AS is_from_written,
    is_effect AND coalesce(held_state = 'aborted', false) AS is_from_aborted,
    CASE WHEN is_effect AND is_inside THEN opened_at(processed_at, open_until) END AS opened_at_in,
    CASE WHEN is_effect THEN opened_at(processed_at, open_until) END AS opened_at,
    CASE WHEN is_effect AND is_inside AND is_from_nowhere THEN processed_at END AS unplaced_at_in,
    CASE WHEN is_effect AND is_from_nowhere THEN processed_at END AS unplaced_at,
    (is_effect AND is_first)::BIGINT AS first_rows,
    (is_effect AND is_first AND is_inside)::BIGINT AS first_rows_in,
    effect_round AS effect_rounds,
    CASE WHEN is_effect AND is_first THEN processed_at END AS last_first_at,
    (fans_out() AND NOT is_effect AND is_possible AND effect_key IS NULL)::BIGINT AS keyless,
    (is_effect AND names_readers)::BIGINT AS reader_count,
    consumer_id,
    generation,
    CASE WHEN is_effect AND names_readers THEN generation END AS newest_generation,
    CASE WHEN is_by_content() THEN payload_hash END AS effect_hash,
    CASE WHEN met_by(topic, message_id, payload_hash) IS NOT NULL
        THEN shown_marks(getvariable('effect_ledger'),
            CASE getvariable('effect_ledger') WHEN 'delivered' THEN 32 ELSE 256 END, processed_at)
        ELSE 0 END AS marks,
    CASE WHEN is_part THEN null_contents(
        getvariable('effect_ledger'), payload_hash, key_hash, header_hash, record_timestamp, content, NULL) END
        AS output_nulls,
    CASE WHEN is_part THEN lacking_contents(
        getvariable('effect_ledger'), payload_hash, key_hash, header_hash, record_timestamp, content) END
        AS output_lacking
FROM (
    SELECT
        *,
        effect_state = 'ok' AS is_effect,
        effect_state IN ('ok', 'unknown') AS is_possible,
        effect_state = 'ok' AND (is_by_content() OR getvariable('effect_ledger') = 'delivered') AS is_part,
        coalesce(effect_round = 1, false) AS is_first,
        in_window(processed_at) AS is_inside,
        has_column(getvariable('effect_ledger'), 'consumer_id')
            OR has_column(getvariable('effect_ledger'), 'generation') AS names_readers,
        "offset" IS NULL OR is_marker AS is_from_nowhere
    FROM (
        SELECT e.*, m."offset" IS NOT NULL AS is_marker
        FROM effects AS e LEFT JOIN marker_positions AS m
            ON same_partition(e.topic, e."partition", m.topic, m."partition") AND e."offset" = m."offset"
    )
);

CREATE TABLE facts_of_several_effects AS
SELECT
    message_key,
    min(effect_id) AS effect_id,
    bool_and(has_identity) AS has_identity,
    sum(effect_rows)::BIGINT AS effect_rows,
    sum(effect_rows_in)::BIGINT AS effect_rows_in,
    sum(possible_effects)::BIGINT AS possible_effects,
    min(effect_at_in) AS effect_at_in,
    min(first_effect_at) AS first_effect_at,
    min(possible_at_in) AS possible_at_in,
    min(possible_at) AS possible_at,
    bool_or(is_ambiguous) AS is_ambiguous,
    arg_max(last_effect, create_sort_key(
        last_effect."at", 'ASC NULLS FIRST', last_effect.generation, 'ASC NULLS FIRST',
        last_effect.consumer_id, 'ASC NULLS FIRST')) FILTER (WHERE last_effect IS NOT NULL) AS last_effect,
    arg_min(first_effect, create_sort_key(
        first_effect."at", 'ASC NULLS FIRST', first_effect.delivery_sequence, 'ASC NULLS FIRST',
        first_effect.consumer_id, 'ASC NULLS FIRST', first_effect.generation, 'ASC NULLS FIRST',
        first_effect.topic, 'ASC NULLS FIRST', first_effect."partition", 'ASC NULLS FIRST',
        first_effect."offset", 'ASC NULLS FIRST')) FILTER (WHERE first_effect IS NOT NULL) AS first_effect,
    arg_min(effect_place, create_sort_key(
        effect_place.is_uncertain, 'ASC NULLS FIRST', effect_place."at", 'ASC NULLS FIRST',
        effect_place.place.topic, 'ASC NULLS FIRST', effect_place.place."partition", 'ASC NULLS FIRST'))
        FILTER (WHERE effect_place IS NOT NULL) AS effect_place,
    min(effect_topic) AS effect_topic,
    min(effect_partition) AS effect_partition,
    bool_or(is_from_record) AS is_from_record,
    min(from_record_at) AS from_record_at,
    bool_or(is_from_written) AS is_from_written,
    bool_or(is_from_aborted) AS is_from_aborted,
    min(opened_at_in) AS opened_at_in,
    min(opened_at) AS opened_at,
    min(unplaced_at_in) AS unplaced_at_in,
    min(unplaced_at) AS unplaced_at,
    sum(first_rows)::BIGINT AS first_rows,
    sum(first_rows_in)::BIGINT AS first_rows_in,
    max(effect_rounds) AS effect_rounds,
    max(last_first_at) AS last_first_at,
    sum(keyless)::BIGINT AS keyless,
    count(DISTINCT {'consumer_id': consumer_id, 'generation': generation})
        FILTER (WHERE reader_count > 0) AS reader_count,
    max(newest_generation) AS newest_generation,
    min(effect_hash) AS effect_hash,
    bit_or(marks) AS marks,
    bit_or(output_nulls) AS output_nulls,
    bit_or(output_lacking) AS output_lacking
FROM effect_shares SEMI JOIN several_effects USING (message_key)
GROUP BY message_key;

CREATE VIEW effect_facts AS
SELECT * EXCLUDE (consumer_id, generation) FROM effect_shares ANTI JOIN several_effects USING (message_key)
UNION ALL BY NAME
SELECT * FROM facts_of_several_effects;
