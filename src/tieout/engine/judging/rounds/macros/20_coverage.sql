-- What the window holds, and how far the absence of a row in a ledger proves anything.
-- Source: taxonomy.md 1 (Coverage, Messages) and 2 (due).

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
-- Whether the window has a message's event at a time: where it is known by position, the message's.
CREATE MACRO holds_message(is_in_ranges, t) AS coalesce(is_in_ranges, in_window(t));

-- How far the absence of a row in a ledger proves anything; false, never null. Without known coverage the variables are
-- null; a ledger that is complete from the beginning is covered from the first of all times.
CREATE MACRO has_known_coverage(ledger) AS getvariable('covered_until_' || ledger) IS NOT NULL;
CREATE MACRO is_from_beginning(ledger) AS
    coalesce(getvariable('covered_from_' || ledger) = TIMESTAMP '0001-01-01 00:00:00', false);
CREATE MACRO covered_from(ledger, t) AS coalesce(t >= getvariable('covered_from_' || ledger), false);
CREATE MACRO covered_until(ledger, t) AS coalesce(t <= getvariable('covered_until_' || ledger), false);
CREATE MACRO covered_between(ledger, first_at, last_at) AS
    covered_from(ledger, first_at) AND covered_until(ledger, last_at);

-- Every ledger in which the absence of a row makes a loss: effects, and the declared ones of what was set aside.
CREATE MACRO is_accounted(until_at) AS coalesce(until_at <= getvariable('accounted_until'), false);
CREATE MACRO is_accounted_since(until_at, since_at) AS
    is_accounted(until_at) AND coalesce(since_at >= getvariable('accounted_from'), false);

-- Whether `produced` would show the sender of a row in excess of the attempts.
CREATE MACRO shows_all_sends(since, until) AS
    coalesce(getvariable('coverage')['produced'].names_all_producers, false)
    AND covered_between('produced', since, until);
-- Whether covered producers would show the origin of an effect or record. They must be all of the topic, and cover the
-- record's time, or where that is null reach back as far as an origin may lie.
CREATE MACRO is_origin_covered(record_at, is_recorded, seen_at, is_from_start) AS
    coalesce(getvariable('coverage')['produced'].names_all_producers, false) AND CASE
        WHEN is_recorded AND record_at IS NOT NULL THEN covered_between(
            'produced', record_at - getvariable('clock_skew'), record_at + getvariable('clock_skew'))
        ELSE covered_until('produced', seen_at + getvariable('clock_skew'))
            AND (covered_from('produced', seen_at - getvariable('look_back')) OR is_from_start) END;
-- Whether the log covers a position since a time: below its end as far as its records are complete, from there on where
-- the end was observed later. The log does not cover a partition of which it shows nothing.
CREATE MACRO log_covers(an_offset, done_at, log_start, log_end, observed_at) AS
    coalesce(getvariable('coverage')['log'].is_sound, false)
    AND (done_at IS NULL OR covered_from('log', done_at))
    AND log_end IS NOT NULL
    AND NOT coalesce(an_offset < log_start, false)
    AND CASE
        WHEN coalesce(an_offset < log_end, false) THEN done_at IS NULL OR covered_until('log', done_at)
        WHEN observed_at IS NOT NULL THEN coalesce(observed_at >= done_at + getvariable('clock_skew'), false)
        ELSE covered_until('log', done_at + getvariable('clock_skew')) END;

CREATE MACRO may_cover(ledger, t) AS has_known_coverage(ledger) AND (t IS NULL OR covered_between(ledger, t, t));
-- Who shows a message's id, as bits: a send 1; log, delivered and read three each from 2, 16 and 128 on: a send within
-- what the ledger covers, a row of it, a row within what `produced` covers. Source: taxonomy.md 8, 2.
CREATE MACRO sent_marks(t) AS 1
    + CASE WHEN shares_ids('log') AND may_cover('log', t) THEN 2 ELSE 0 END
    + CASE WHEN shares_ids('delivered') AND may_cover('delivered', t) THEN 16 ELSE 0 END
    + CASE WHEN shares_ids('read') AND may_cover('read', t) THEN 128 ELSE 0 END;
CREATE MACRO shown_marks(ledger, mark, t) AS CASE
    WHEN NOT shares_ids(ledger) THEN 0
    WHEN may_cover('produced', t) THEN 3 * mark ELSE mark END;
