-- Which of two rows came first, and the first and the last of several.

-- A time later than all others, and whether a sight is certainly earlier than the send.
CREATE MACRO never() AS TIMESTAMP '9999-12-31 00:00:00';
CREATE MACRO comes_before(seen_at, sent_at) AS coalesce(
    seen_at >= getvariable('earliest_plausible')
    AND seen_at < sent_at - (getvariable('clock_skew') + getvariable('coarsest_clock')), false);

-- Of two rows of one consumer, and of two effects: whether the first certainly came before; ties tell nothing.
CREATE MACRO came_before(an_at, a_turn, b_at, b_turn) AS
    CASE WHEN a_turn IS NOT NULL AND b_turn IS NOT NULL THEN a_turn < b_turn ELSE an_at < b_at END;
CREATE MACRO effect_is_before(an_at, a_turn, a_consumer, b_at, b_turn, b_consumer) AS coalesce(CASE
    WHEN a_consumer IS NOT DISTINCT FROM b_consumer THEN came_before(an_at, a_turn, b_at, b_turn)
    ELSE an_at + getvariable('clock_skew') < b_at END, false);

-- Of two messages of a key: whether the first is known to be sent before, by the log, by number or in time.
CREATE MACRO was_sent_before(
    a_partition, an_offset, a_session, a_number, a_completed_at, b_partition, b_offset, b_session, b_number, b_sent_at
) AS coalesce(CASE
    WHEN a_partition = b_partition THEN an_offset < b_offset
    WHEN a_session = b_session THEN a_number < b_number
    ELSE a_completed_at + getvariable('clock_skew') < b_sent_at END, false);

-- Of several statements the latest observed counts, of one moment the greatest; neither field of the pair is null.
CREATE MACRO latest_statement(observed_at, value) AS struct_extract(
    max({'moment': coalesce(observed_at, TIMESTAMP '1970-01-01 00:00:00'), 'stated': value})
        FILTER (value IS NOT NULL), 'stated');

-- The least and the greatest of structs, null fields first, of the rows that have one. Their sort keys are compared,
-- because DuckDB puts null fields last.
CREATE MACRO least_send(s) AS arg_min(s, create_sort_key(
    s."at", 'ASC NULLS FIRST', s.sequence, 'ASC NULLS FIRST', s.producer_id, 'ASC NULLS FIRST',
    s.producer_session, 'ASC NULLS FIRST')) FILTER (WHERE s IS NOT NULL);
CREATE MACRO answer_order(s) AS create_sort_key(s."at", 'ASC NULLS FIRST', s.done_at, 'ASC NULLS FIRST');
CREATE MACRO least_answer(s) AS arg_min(s, answer_order(s)) FILTER (WHERE s IS NOT NULL);
CREATE MACRO greatest_answer(s) AS arg_max(s, answer_order(s)) FILTER (WHERE s IS NOT NULL);
CREATE MACRO least_place(s) AS arg_min(s, create_sort_key(
    s."at", 'ASC NULLS FIRST', s.place.topic, 'ASC NULLS FIRST', s.place."partition", 'ASC NULLS FIRST'))
    FILTER (WHERE s IS NOT NULL);
CREATE MACRO least_position(p) AS arg_min(p, create_sort_key(
    p.topic, 'ASC NULLS FIRST', p."partition", 'ASC NULLS FIRST', p."offset", 'ASC NULLS FIRST'))
    FILTER (WHERE p IS NOT NULL);

-- A rank with what sets it apart, both below 2^31, in one number that is ordered by rank.
CREATE MACRO packed_mark(a_rank, apart) AS a_rank * 2147483648 + apart;
CREATE MACRO mark_rank(mark) AS mark // 2147483648;
CREATE MACRO mark_apart(mark) AS mark % 2147483648;
