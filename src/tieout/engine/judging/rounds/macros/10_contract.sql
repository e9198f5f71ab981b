-- What the contract says of ledgers and their columns, the identity, the groups, the order and resets. Every argument
-- that names a ledger or a column is a constant, so that DuckDB folds the question when it plans. Source: taxonomy.md 1.

CREATE MACRO is_declared(ledger) AS map_contains(getvariable('coverage'), ledger);
CREATE MACRO is_present(ledger) AS coalesce(getvariable('coverage')[ledger].is_present, false);
CREATE MACRO has_column(ledger, name) AS list_contains(getvariable('columns'), ledger || '.' || name);
CREATE MACRO is_by_id() AS getvariable('identity') = 'message_id';
CREATE MACRO is_by_position() AS getvariable('identity') = 'position';
CREATE MACRO is_by_content() AS getvariable('identity') = 'content';
CREATE MACRO is_session_scoped() AS getvariable('id_scope') = 'session';
CREATE MACRO fans_out() AS getvariable('multiplicity') = 'one_to_many';

-- Whose row it is: one that names no group is the judged one's.
CREATE MACRO is_ours(consumer_group) AS
    consumer_group IS NULL OR consumer_group = getvariable('judged_group');
CREATE MACRO is_ours_mirrored(consumer_group) AS
    consumer_group IS NULL OR consumer_group = getvariable('mirrored_group');

-- Whether the contract promises an order of keys that the evidence can be checked against, wherever their messages lie.
CREATE MACRO orders_keys() AS
    getvariable('ordering') = 'key' AND NOT is_by_content() AND has_column('produced', 'key_hash');

-- Whether an operator's reset of the group is announced at all, and whether one lies between two times.
CREATE MACRO announced_resets() AS list_filter(getvariable('resets'),
    lambda r: r."group" IS NULL OR r."group" = getvariable('judged_group'));
CREATE MACRO is_annotated(earlier_at, later_at) AS len(list_filter(announced_resets(),
    lambda r: earlier_at <= r."at" + getvariable('clock_skew') AND later_at >= r."at" - getvariable('clock_skew')
)) > 0;

-- What a ledger and a send must have in common for their messages to match, and whether the ledger shows it.
CREATE MACRO met_by(topic, message_id, payload_hash) AS
    CASE WHEN is_by_content() THEN payload_hash WHEN is_by_position() THEN topic ELSE message_id END;
CREATE MACRO identity_name() AS met_by('topic', 'message_id', 'payload_hash');
CREATE MACRO shares_ids(ledger) AS has_column('produced', identity_name()) AND has_column(ledger, identity_name());
