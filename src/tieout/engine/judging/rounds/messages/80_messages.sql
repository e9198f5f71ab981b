-- One row per message key with every fact that later rules need; keys that nobody sent are among them. `differing` are
-- the contents (bits: payload 1, key 2, header 4, timestamp 8) that may break a rule.
-- Needs: the facts of sends, records, reads, effects and what was set aside; acceptances; position_counts;
-- unlike_contents. Source: taxonomy.md 1 (Messages), 2 (windows of offsets) and 5 (where a message counts).
CREATE TABLE own_transaction_reads AS
SELECT DISTINCT r.message_key
FROM (SELECT message_key, transaction_id FROM reads_of_messages WHERE transaction_id IS NOT NULL) AS r
SEMI JOIN (SELECT message_key, transaction_id FROM sends WHERE transaction_id IS NOT NULL) AS s
    USING (message_key, transaction_id);

-- Effects before the only known send may be of an earlier one. By content their message is unknown.
CREATE TABLE stray_counts AS
SELECT message_key[3:] AS message_key, effect_rows AS strays, first_effect_at AS first_stray_at
FROM effect_facts
WHERE NOT is_by_content() AND starts_with(message_key, 'b:');

CREATE TABLE messages AS
WITH joined_facts AS (
    SELECT
        message_key,
        coalesce(s.attempts, 0) AS attempts,
        coalesce(s.attempts_in, 0) AS attempts_in,
        coalesce(s.acked, 0) AS acked,
        coalesce(s.acked_in, 0) AS acked_in,
        coalesce(CASE WHEN a.is_failed_but_written THEN s.failed - s.failed_there ELSE s.failed END, 0) AS failed,
        coalesce(CASE WHEN a.is_failed_but_written THEN s.failed_in - s.failed_there_in ELSE s.failed_in END, 0)
            AS failed_in,
        coalesce(CASE WHEN a.is_failed_but_written THEN s.failed_there ELSE s.unknown END, 0) AS unknown,
        coalesce(CASE WHEN a.is_failed_but_written THEN s.failed_there_in ELSE s.unknown_in END, 0) AS unknown_in,
        coalesce(s.sent_id, least(r.record_id, d.read_id, e.effect_id, f.set_aside_id)) AS message_id,
        coalesce(s.has_identity, true) AND coalesce(r.has_identity, true) AND coalesce(d.has_identity, true)
            AND coalesce(e.has_identity, true) AND coalesce(f.has_identity, true) AS has_identity,
        s.first_attempt,
        s.first_sent,
        s.first_undated,
        coalesce(s.is_roughly_dated, false) AS is_roughly_dated,
        s.last_attempt_at,
        s.first_acked,
        CASE WHEN a.is_failed_but_written THEN s.last_failed_there ELSE s.last_unknown END AS last_unknown,
        coalesce(s.is_contradicted, false) AS is_contradicted,
        coalesce(s.marks, 0) | coalesce(r.marks, 0) | coalesce(d.marks, 0) | coalesce(e.marks, 0) AS shown_marks,
        s.first_intended.intended_partition AS intended_partition,
        coalesce(s.is_misrouted, false) AS is_misrouted,
        s.completed_at,
        CASE WHEN is_by_content() THEN
            least(s.sent_hash, r.record_hash, d.read_hash, e.effect_hash, f.set_aside_hash) END AS shown_hash,
        coalesce(s.may_be_met_early, false) AS may_be_met_early,
        s.order_key,
        s.last_key,
        coalesce(r.written, 0) AS written,
        coalesce(r.committed, 0) AS committed,
        coalesce(r.aborted, 0) AS aborted,
        coalesce(r.open, 0) AS open,
        CASE WHEN is_declared('log') THEN coalesce(r.has_idempotent_record, CASE WHEN
            coalesce(s.attempts, d.reads, e.effect_rows, f.set_aside_rows) IS NOT NULL THEN false END) END
            AS has_idempotent_record,
        CASE WHEN is_declared('log') THEN coalesce(r.has_plain_record, CASE WHEN
            coalesce(s.attempts, d.reads, e.effect_rows, f.set_aside_rows) IS NOT NULL THEN false END) END
            AS has_plain_record,
        coalesce(r.is_log_append, false) AS is_log_append,
        r.record_at,
        coalesce(r.undated_records, 0) AS undated_records,
        coalesce(e.effect_rows, 0) AS effect_rows,
        coalesce(e.effect_rows_in, 0) AS effect_rows_in,
        coalesce(e.possible_effects, 0) AS possible_effects,
        coalesce(e.effect_at_in, e.possible_at_in, e.possible_at) AS first_seen_at,
        coalesce(e.effect_at_in, e.first_effect_at) AS effect_seen_at,
        coalesce(e.is_ambiguous, false) OR coalesce(f.is_ambiguous, false) AS is_ambiguous,
        e.first_effect_at,
        e.last_effect,
        e.first_effect,
        coalesce(e.reader_count, 0) AS reader_count,
        e.newest_generation,
        is_declared('log') AND coalesce(e.is_from_record, false) AS is_from_record,
        CASE WHEN is_declared('log') THEN e.from_record_at END AS from_record_at,
        is_declared('log') AND coalesce(e.is_from_written, false) AS is_from_written,
        is_declared('log') AND coalesce(e.is_from_aborted, false) AS is_from_aborted,
        CASE WHEN fans_out() THEN coalesce(e.first_rows, 0) ELSE 0 END AS first_rows,
        CASE WHEN fans_out() THEN coalesce(e.first_rows_in, 0) ELSE 0 END AS first_rows_in,
        CASE WHEN fans_out() THEN coalesce(e.effect_rounds, 0) ELSE 0 END AS effect_rounds,
        CASE WHEN fans_out() THEN e.last_first_at END AS last_first_at,
        CASE WHEN fans_out() THEN coalesce(e.keyless, 0) ELSE 0 END AS keyless,
        coalesce(k.sent_keys, 0) AS sent_keys,
        coalesce(k.expected_keys, 0) AS expected_keys,
        coalesce(k.lacking_keys, 0) AS lacking_keys,
        coalesce(k.doubtful_keys, 0) AS doubtful_keys,
        coalesce(d.reads, 0) AS reads,
        coalesce(d.placed_reads, 0) AS placed_reads,
        coalesce(d.was_handed, false) AS was_handed,
        CASE WHEN is_declared('read') THEN coalesce(d.is_read_committed, false) END AS is_read_committed,
        d.last_read_at,
        CASE WHEN is_declared('log') THEN {
            'at_in': e.opened_at_in, 'at': e.opened_at, 'unplaced_in': e.unplaced_at_in, 'unplaced': e.unplaced_at} END
            AS effect_open,
        CASE WHEN is_declared('log') THEN {
            'at_in': d.opened_at_in, 'at': d.opened_at, 'unplaced_in': d.unplaced_at_in, 'unplaced': d.unplaced_at} END
            AS read_open,
        CASE WHEN w.message_key IS NOT NULL THEN d.own_at_in END AS own_at_in,
        CASE WHEN w.message_key IS NOT NULL THEN d.own_at END AS own_at,
        CASE WHEN (coalesce(r.written, 0) = 0 OR r.records = 1)
            AND NOT coalesce(s.is_elsewhere, false) AND NOT coalesce(d.is_elsewhere, false)
            THEN r.open_until END AS open_until,
        CASE WHEN is_declared('filtered') THEN coalesce(f.is_filtered, false) END AS is_filtered,
        CASE WHEN is_declared('dead_letters') THEN coalesce(f.is_dead_lettered, false) END AS is_dead_lettered,
        CASE WHEN is_declared('staged') THEN coalesce(f.is_staged, false) END AS is_staged,
        CASE WHEN is_declared('staged') THEN coalesce(f.is_prepared, false) END AS is_prepared,
        coalesce(f.set_aside_rows, 0) AS set_aside_rows,
        coalesce(f.open_set_aside_rows, 0) AS open_set_aside_rows,
        coalesce(f.aborted_set_aside_rows, 0) AS aborted_set_aside_rows,
        coalesce(f.keyless_set_aside_rows, 0) AS keyless_set_aside_rows,
        coalesce(s.sent_nulls, 0) AS sent_nulls,
        coalesce(s.sent_lacking, 0) AS sent_lacking,
        coalesce(r.logged_nulls, 0) AS logged_nulls,
        coalesce(r.logged_lacking, 0) AS logged_lacking,
        coalesce(d.output_nulls, 0) | coalesce(e.output_nulls, 0) AS output_nulls,
        coalesce(d.output_lacking, 0) | coalesce(e.output_lacking, 0) AS output_lacking,
        CASE WHEN fans_out() THEN coalesce(d.output_nulls, 0) ELSE 0 END AS read_nulls,
        coalesce(c.bits, 0) AS differing,
        coalesce(t.transaction_count, 0) AS transaction_count,
        coalesce(a.is_failed_but_written, false) AS is_failed_but_written,
        coalesce(a.is_proven, e.effect_rows > 0 OR coalesce(r.written > 0, false) OR coalesce(d.placed_reads > 0, false)
            OR coalesce(d.is_read_committed, false), false) AS is_proven,
        a.acceptance,
        a.sent_place,
        s.attempt_place.place AS attempt_place,
        e.effect_place.place AS effect_place,
        coalesce(e.effect_topic, d.read_topic) AS shown_topic,
        e.effect_partition,
        r.record_topic,
        coalesce(p.asserted_count, 0) AS asserted_count,
        coalesce(p.own_count, 0) AS own_count,
        coalesce(p.visible_count, 0) AS visible_count,
        coalesce(p.effect_position_count, 0) AS effect_position_count,
        coalesce(p.read_position_count, 0) AS read_position_count,
        coalesce(p.copy_count, 0) AS copy_count,
        CASE WHEN p.own_count > 0 THEN p.least_own ELSE p.least_asserted END AS first_choice,
        CASE WHEN p.own_count > 0 THEN p.own_offset ELSE p.asserted_offset END AS offset_at_home,
        p.least_asserted,
        p.least_effect,
        coalesce(b.strays, 0) AS strays,
        b.first_stray_at
    FROM send_facts AS s
    FULL JOIN record_facts AS r USING (message_key)
    FULL JOIN read_facts AS d USING (message_key)
    FULL JOIN effect_facts AS e USING (message_key)
    FULL JOIN set_aside_facts AS f USING (message_key)
    LEFT JOIN acceptances AS a USING (message_key)
    LEFT JOIN position_counts AS p USING (message_key)
    LEFT JOIN transaction_counts AS t USING (message_key)
    LEFT JOIN effect_key_facts AS k USING (message_key)
    LEFT JOIN unlike_contents AS c USING (message_key)
    LEFT JOIN stray_counts AS b USING (message_key)
    LEFT JOIN own_transaction_reads AS w USING (message_key)
)
SELECT
    * EXCLUDE (
        effect_open, read_open, own_at_in, own_at, open_until, sent_place, attempt_place, effect_place, shown_topic,
        effect_partition, record_topic, first_choice, offset_at_home, home, answer, is_dated_inside
    )
    REPLACE (
        CASE WHEN is_in_ranges IS NULL THEN attempts_in WHEN is_in_ranges THEN attempts ELSE 0 END AS attempts_in,
        CASE WHEN is_in_ranges IS NULL THEN acked_in WHEN is_in_ranges THEN acked ELSE 0 END AS acked_in,
        CASE WHEN is_in_ranges IS NULL THEN failed_in WHEN is_in_ranges THEN failed ELSE 0 END AS failed_in,
        CASE WHEN is_in_ranges IS NULL THEN unknown_in WHEN is_in_ranges THEN unknown ELSE 0 END AS unknown_in,
        CASE WHEN is_in_ranges IS NULL THEN effect_rows_in WHEN is_in_ranges THEN effect_rows ELSE 0 END
            AS effect_rows_in,
        CASE WHEN is_in_ranges IS NULL THEN first_rows_in WHEN is_in_ranges THEN first_rows ELSE 0 END
            AS first_rows_in
    ),
    CASE WHEN is_in_ranges IS NULL THEN is_dated_inside ELSE is_in_ranges AND attempts > 0 END AS is_owned
FROM (
    SELECT
        *,
        CASE WHEN NOT has_ranges() THEN NULL
            WHEN first_offset IS NOT NULL THEN in_ranges(topic, "partition", first_offset)
            WHEN least_effect IS NOT NULL
            THEN in_ranges(least_effect.topic, least_effect."partition", least_effect."offset") END AS is_in_ranges
    FROM (
        SELECT
            *,
            in_window(first_attempt."at") AS is_dated_inside,
            coalesce(
                least(effect_open.at_in, read_open.at_in),
                opened_at(least(effect_open.unplaced_in, read_open.unplaced_in), open_until), own_at_in,
                least(effect_open."at", read_open."at"),
                opened_at(least(effect_open.unplaced, read_open.unplaced), open_until), own_at) AS open_seen_at,
            least(effect_open."at", read_open."at",
                opened_at(least(effect_open.unplaced, read_open.unplaced), open_until), own_at) AS first_open_at,
            coalesce(effect_open.at_in, effect_open."at", opened_at(effect_open.unplaced, open_until))
                AS open_effect_at,
            coalesce(read_open.at_in, own_at_in, read_open."at", own_at,
                opened_at(read_open.unplaced, open_until)) AS open_read_at,
            coalesce(answer."at", first_attempt."at") AS sent_at,
            answer.done_at AS done_at,
            answer.done_at + getvariable('allowed_latency') AS deadline,
            coalesce(home.topic, attempt_place.topic, record_topic, shown_topic) AS topic,
            -- A record that nobody sent may lie in a mirror, too; its topic is the one in the log.
            coalesce(CASE WHEN attempts = 0 THEN record_topic END, topic) AS origin_topic,
            coalesce(home."partition", intended_partition, attempt_place."partition",
                CASE WHEN attempts = 0 THEN effect_partition END) AS "partition",
            CASE WHEN sent_place IS NULL THEN first_choice."offset" ELSE offset_at_home END AS first_offset
        FROM (
            SELECT
                *,
                coalesce(first_acked, last_unknown) AS answer,
                coalesce(sent_place, CASE WHEN first_choice IS NOT NULL THEN
                    {'topic': first_choice.topic, 'partition': first_choice."partition"} END, effect_place)
                    AS home
            FROM joined_facts
        )
    )
);
