-- The outcome that a send claims, and the one that its transaction gives it; whether a row is an effect, and whether a
-- message has all of its effects.

CREATE MACRO claimed_outcome(outcome) AS coalesce(lower(outcome), 'unknown');
CREATE MACRO outcome_rank(outcome) AS CASE outcome WHEN 'acked' THEN 0 WHEN 'unknown' THEN 1 WHEN 'failed' THEN 2 END;
CREATE MACRO stated_state(stated) AS CASE
    WHEN bool_or(stated = 'committed') THEN 'committed' WHEN bool_or(stated = 'aborted') THEN 'aborted'
    ELSE 'open' END;
-- The record in the log decides, then what any row of the transaction states; without transaction what the row states.
CREATE MACRO state_of_send(transaction_id, log_state, state_of_transaction, stated) AS coalesce(log_state,
    CASE WHEN transaction_id IS NOT NULL THEN state_of_transaction
        WHEN lower(stated) <> 'none' THEN lower(stated) END);
CREATE MACRO resolved_outcome(claimed, state) AS CASE
    WHEN state = 'committed' AND claimed <> 'failed' THEN 'acked'
    WHEN state = 'aborted' THEN 'failed'
    WHEN state = 'open' THEN 'unknown'
    ELSE claimed END;
CREATE MACRO state_rank(state) AS
    CASE state WHEN 'committed' THEN 0 WHEN 'none' THEN 1 WHEN 'open' THEN 2 WHEN 'aborted' THEN 3 END;
CREATE MACRO ranked_state(rank) AS CASE rank WHEN 0 THEN 'committed' WHEN 1 THEN 'none' WHEN 2 THEN 'open'
    WHEN 3 THEN 'aborted' END;

-- Whether an output row is an effect: by its outcome and its sink transaction, which the row or another of it states.
-- Where effects have keys, a row without one may be any of them.
CREATE MACRO sink_state(stated, state_of_transaction) AS CASE
    WHEN lower(stated) IN ('committed', 'aborted') THEN lower(stated)
    ELSE coalesce(state_of_transaction, lower(stated), 'none') END;
CREATE MACRO output_state(ledger, outcome, stated, state_of_transaction, effect_key) AS CASE
    WHEN lower(outcome) = 'failed' OR sink_state(stated, state_of_transaction) = 'aborted' THEN 'none'
    WHEN lower(outcome) = 'unknown' OR sink_state(stated, state_of_transaction) = 'open'
        OR (getvariable('has_effect_keys') AND ledger = getvariable('effect_ledger') AND effect_key IS NULL)
        THEN 'unknown'
    ELSE 'ok' END;
CREATE MACRO set_aside_state(stated) AS
    CASE lower(stated) WHEN 'aborted' THEN 'none' WHEN 'open' THEN 'unknown' ELSE 'ok' END;
CREATE MACRO aside_rank(effect_state) AS CASE effect_state WHEN 'ok' THEN 0 WHEN 'unknown' THEN 2 ELSE 4 END;

-- Whether an effect before its send may be of another one.
CREATE MACRO is_stray(r, sent_at) AS r.effect_state = 'ok' AND comes_before(r.processed_at, sent_at)
    AND NOT covered_between('produced', r.processed_at, r.processed_at);

-- Whether a message has all its effects, and whether an uncertain row may be one that it lacks; by effect key in a
-- fan-out that names them.
CREATE MACRO is_whole(effect_rows, lacking_keys, keyless, doubtful_keys) AS CASE
    WHEN NOT fans_out() THEN effect_rows > 0
    WHEN getvariable('fan_out_count') IS NOT NULL THEN effect_rows >= getvariable('fan_out_count')
    ELSE effect_rows > 0 AND lacking_keys = 0 AND keyless = 0 AND doubtful_keys = 0 END;
CREATE MACRO is_in_doubt(effect_rows, possible_effects, keyless, doubtful_keys) AS CASE
    WHEN NOT fans_out() THEN possible_effects > 0
    WHEN getvariable('fan_out_count') IS NOT NULL
        THEN possible_effects > 0 AND effect_rows < getvariable('fan_out_count')
    ELSE keyless > 0 OR doubtful_keys > 0 END;

-- A time at which somebody was given what was not committed then, by when its transaction was open.
CREATE MACRO opened_at(seen_at, open_until) AS
    CASE WHEN seen_at < open_until - getvariable('clock_skew') THEN seen_at END;
