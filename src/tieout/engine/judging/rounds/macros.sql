-- The questions that rounds ask of contract, window and coverage, and the forms of keys.
-- Every argument that names a ledger or a column is a constant, so that DuckDB folds the question when it plans.
-- Source: taxonomy.md 1 (Coverage, Messages) and 2 (due).

CREATE MACRO is_declared(ledger) AS map_contains(getvariable('coverage'), ledger);
CREATE MACRO has_column(ledger, name) AS list_contains(getvariable('columns'), ledger || '.' || name);
CREATE MACRO is_by_id() AS getvariable('identity') = 'message_id';
CREATE MACRO is_by_position() AS getvariable('identity') = 'position';
CREATE MACRO is_by_content() AS getvariable('identity') = 'content';
CREATE MACRO is_session_scoped() AS getvariable('id_scope') = 'session';
CREATE MACRO fans_out() AS getvariable('multiplicity') = 'one_to_many';

-- What the window holds: a time, or a position where the window is ranges of offsets.
CREATE MACRO in_window(t) AS coalesce(t >= getvariable('window_start') AND t < getvariable('window_end'), false);
CREATE MACRO has_ranges() AS len(getvariable('ranges')) > 0;
CREATE MACRO in_ranges(a_topic, a_partition, an_offset) AS coalesce(
    len(list_filter(getvariable('ranges'), lambda r:
        r.topic = a_topic AND r."partition" = a_partition AND r."from" <= an_offset AND an_offset < r."to")) > 0,
    false);
CREATE MACRO holds(t, a_topic, a_partition, an_offset) AS CASE
    WHEN has_ranges() AND an_offset IS NOT NULL THEN in_ranges(a_topic, a_partition, an_offset)
    ELSE in_window(t) END;

-- How far a ledger's silence proves anything; false, never null.
CREATE MACRO is_told(ledger) AS coalesce(
    getvariable('coverage')[ledger].is_sound AND getvariable('coverage')[ledger].complete_until IS NOT NULL, false);
CREATE MACRO covered_from(ledger, t) AS is_told(ledger) AND CASE
    WHEN getvariable('coverage')[ledger].covers_from IS NULL THEN t IS NOT NULL
    ELSE coalesce(t >= getvariable('coverage')[ledger].covers_from, false) END;
CREATE MACRO covered_until(ledger, t) AS
    is_told(ledger) AND coalesce(t <= getvariable('coverage')[ledger].complete_until, false);
CREATE MACRO covered_between(ledger, first_at, last_at) AS
    covered_from(ledger, first_at) AND covered_until(ledger, last_at);
-- Every ledger whose silence makes a loss: the effects', and the declared ones of what was legally set aside.
CREATE MACRO is_accounted(until_at) AS
    covered_until(getvariable('effect_ledger'), until_at)
    AND (NOT is_declared('filtered') OR covered_until('filtered', until_at))
    AND (NOT is_declared('dead_letters') OR covered_until('dead_letters', until_at));
CREATE MACRO is_accounted_since(until_at, since_at) AS
    is_accounted(until_at)
    AND covered_from(getvariable('effect_ledger'), since_at)
    AND (NOT is_declared('filtered') OR covered_from('filtered', since_at))
    AND (NOT is_declared('dead_letters') OR covered_from('dead_letters', since_at));

-- Whose row it is: one that names no group is the judged one's.
CREATE MACRO is_ours(consumer_group) AS
    consumer_group IS NULL OR consumer_group = getvariable('judged_group');
CREATE MACRO is_ours_mirrored(consumer_group) AS
    consumer_group IS NULL OR consumer_group = getvariable('mirrored_group');

-- Kafka's clients report -1 where they know no offset (acks=0).
CREATE MACRO placed_offset(an_offset) AS CASE WHEN an_offset >= 0 THEN an_offset END;
CREATE MACRO never() AS TIMESTAMP '9999-12-31 00:00:00';
CREATE MACRO comes_before(seen_at, sent_at) AS coalesce(
    seen_at >= getvariable('earliest_plausible')
    AND seen_at < sent_at - (getvariable('clock_skew') + getvariable('coarsest_clock')), false);

-- JSON as Spark's to_json writes a struct: null fields are left out, times are UTC. A field is '"name":' || value.
CREATE MACRO json_field(name, value) AS '"' || name || '":' || to_json(value);
CREATE MACRO json_millis(name, t) AS '"' || name || '":"' || strftime(t, '%Y-%m-%dT%H:%M:%S.%gZ') || '"';
CREATE MACRO json_micros(name, t) AS '"' || name || '":"' || strftime(t, '%Y-%m-%dT%H:%M:%S.%fZ') || '"';
CREATE MACRO json_position(a_topic, a_partition, an_offset) AS
    '{' || concat_ws(',', json_field('topic', a_topic), json_field('partition', a_partition),
        json_field('offset', an_offset)) || '}';

-- Keys of messages: known by their position, or by an id that is used for nothing else.
CREATE MACRO position_key(a_topic, a_partition, an_offset) AS 'p:' || json_position(a_topic, a_partition, an_offset);
CREATE MACRO id_key(id) AS 'm:' || id;
