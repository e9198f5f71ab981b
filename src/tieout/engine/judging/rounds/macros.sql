-- The questions that rounds ask of contract, window and coverage, and the forms of keys.
-- Every argument that names a ledger or a column is a constant, so that DuckDB folds the question when it plans.
-- Source: taxonomy.md 1 (Coverage, Messages) and 2 (due).

-- An as-of join of few rows would go through all rows of the other side for each: the optimizer's count may be wrong.
SET asof_loop_join_threshold = 0;

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

-- How far a ledger's silence proves anything; false, never null. Of a ledger of which nothing is told the variables
-- are null; one that is complete from the beginning is so from the first of all times.
CREATE MACRO is_told(ledger) AS getvariable('covered_until_' || ledger) IS NOT NULL;
CREATE MACRO covered_from(ledger, t) AS coalesce(t >= getvariable('covered_from_' || ledger), false);
CREATE MACRO covered_until(ledger, t) AS coalesce(t <= getvariable('covered_until_' || ledger), false);
CREATE MACRO covered_between(ledger, first_at, last_at) AS
    covered_from(ledger, first_at) AND covered_until(ledger, last_at);
-- Every ledger whose silence makes a loss: the effects', and the declared ones of what was legally set aside.
CREATE MACRO is_accounted(until_at) AS coalesce(until_at <= getvariable('accounted_until'), false);
CREATE MACRO is_accounted_since(until_at, since_at) AS
    is_accounted(until_at) AND coalesce(since_at >= getvariable('accounted_from'), false);

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

-- Keys of messages: known by their position, by their content there where several were sent, by an id that is used for
-- nothing else, by an id of a session, or by an id and the content that tells its messages apart.
CREATE MACRO position_key(a_topic, a_partition, an_offset) AS 'p:' || json_position(a_topic, a_partition, an_offset);
CREATE MACRO contested_key(a_topic, a_partition, an_offset, content) AS
    position_key(a_topic, a_partition, an_offset) || coalesce('#' || content, '');
CREATE MACRO id_key(id) AS 'm:' || id;
CREATE MACRO ambiguous_key(id) AS CASE WHEN is_by_id() THEN 'a:' || id END;
CREATE MACRO is_ambiguous_key(a_key) AS starts_with(a_key, 'a:');
CREATE MACRO session_key(producer, session, id) AS
    's:{' || concat_ws(',', json_field('producer_id', producer), json_field('producer_session', session),
        json_field('message_id', id)) || '}';
CREATE MACRO content_key(id, content) AS
    'c:{' || concat_ws(',', json_field('message_id', id), json_field('content', content)) || '}';

-- Ids, transactions and positions.
CREATE MACRO same_partition(a_topic, a_partition, b_topic, b_partition) AS
    a_topic IS NOT DISTINCT FROM b_topic AND a_partition IS NOT DISTINCT FROM b_partition;
-- Of several statements the latest observed counts, of one moment the greatest; neither field of the pair is null.
CREATE MACRO latest_statement(observed_at, value) AS struct_extract(
    max({'moment': coalesce(observed_at, TIMESTAMP '1970-01-01 00:00:00'), 'stated': value})
        FILTER (value IS NOT NULL), 'stated');

-- What is known of contents: a null is a value, unless the contract or the row says that it is not known. One bit per
-- content column: payload 1, key 2, header 4, timestamp 8.
CREATE MACRO shows_content(ledger, name) AS
    has_column(ledger, name) AND NOT list_contains(getvariable('unknown_contents'), ledger || '.' || name);
CREATE MACRO is_lacking_content(name, value, content) AS value IS NULL
    AND coalesce(starts_with(content, 'lacks:') AND list_contains(string_split(content, ' '), name), false);
CREATE MACRO null_bit(ledger, name, value, content, outcome, mark) AS CASE
    WHEN shows_content(ledger, name) AND value IS NULL AND content IS DISTINCT FROM 'unknown'
        AND NOT is_lacking_content(name, value, content)
        AND NOT (ledger = 'produced'
            AND (name = 'record_timestamp' OR coalesce(lower(outcome) IN ('failed', 'unknown'), false)))
    THEN mark ELSE 0 END;
CREATE MACRO null_contents(ledger, payload_hash, key_hash, header_hash, record_timestamp, content, outcome) AS CAST(
    null_bit(ledger, 'payload_hash', payload_hash, content, outcome, 1)
    + null_bit(ledger, 'key_hash', key_hash, content, outcome, 2)
    + null_bit(ledger, 'header_hash', header_hash, content, outcome, 4)
    + null_bit(ledger, 'record_timestamp', record_timestamp, content, outcome, 8) AS INTEGER);
CREATE MACRO lacking_bit(ledger, name, value, content, mark) AS
    CASE WHEN shows_content(ledger, name) AND is_lacking_content(name, value, content) THEN mark ELSE 0 END;
CREATE MACRO lacking_contents(ledger, payload_hash, key_hash, header_hash, record_timestamp, content) AS CAST(
    lacking_bit(ledger, 'payload_hash', payload_hash, content, 1)
    + lacking_bit(ledger, 'key_hash', key_hash, content, 2)
    + lacking_bit(ledger, 'header_hash', header_hash, content, 4)
    + lacking_bit(ledger, 'record_timestamp', record_timestamp, content, 8) AS INTEGER);

-- Outcomes: what a send claims, and what its transaction makes of that.
CREATE MACRO claimed_outcome(outcome) AS coalesce(lower(outcome), 'unknown');
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
-- The digest of a row, from its fields as JSON in the order of their names: all that tells rows apart that show nothing.
CREATE MACRO fields_digest(fields) AS sha256('{' || fields || '}');

-- Claims: rows (topic, partition, offset, message_key, payload_hash, rank, is_doubtful, ago, name, session, state,
-- open_until, recorded_at) that say whose a position is. Rank: 0 a record, 1 a read, 2 a send, 3 a record that shows no
-- id and that nobody sent. Arguments are names of tables. Source: interpretations.md 17, 38 and 83.
CREATE MACRO fits_claim(claim_name, claim_session, shown_name, shown_session) AS
    coalesce(claim_name = shown_name, true) AND coalesce(claim_session = shown_session, true);
CREATE MACRO shown_name(message_id, payload_hash) AS CASE WHEN is_by_content() THEN payload_hash ELSE message_id END;
CREATE MACRO shown_session(session) AS CASE WHEN is_session_scoped() THEN session END;
-- One row per claimed position; where `message_key` is not `last_key` several messages claim it.
CREATE MACRO owners_among(claims) AS TABLE
    SELECT topic, "partition", "offset", min(message_key) AS message_key, max(message_key) AS last_key,
        min(name) AS name, min(session) AS session, min(rank) = 3 AS is_nameless,
        max(state) AS held_state, max(open_until) AS held_until, max(recorded_at) AS held_at
    FROM query_table(claims) GROUP BY topic, "partition", "offset";
-- Where several messages claim a position: a row per message and payload that it shows there, the best claim first.
CREATE MACRO contested_among(claims, owners) AS TABLE
    WITH contested AS (SELECT c.* FROM query_table(claims) AS c SEMI JOIN (
            SELECT topic, "partition", "offset" FROM query_table(owners) WHERE message_key <> last_key) AS o
        ON same_partition(c.topic, c."partition", o.topic, o."partition") AND c."offset" = o."offset"),
    best AS (
        SELECT topic, "partition", "offset", message_key, min(name) AS name, min(session) AS session,
            min(rank) = 3 AS is_nameless, min((rank, is_doubtful, ago)) AS turn
        FROM contested GROUP BY topic, "partition", "offset", message_key),
    shown AS (
        SELECT DISTINCT topic, "partition", "offset", message_key, CASE WHEN rank < 3 THEN payload_hash END AS content
        FROM contested)
    SELECT b.* REPLACE (row_number() OVER (
            PARTITION BY b.topic, b."partition", b."offset" ORDER BY turn, b.message_key, content) AS turn), content
    FROM best AS b JOIN shown AS s
        ON same_partition(b.topic, b."partition", s.topic, s."partition")
        AND b."offset" = s."offset" AND b.message_key = s.message_key;
-- At contested positions, the best claim that fits what a row shows; one of the row's payload comes first. Least turns by
-- name, session and content, known or any, let a row look up the few that fit it, however many claim.
CREATE MACRO choices_among(rows, contested) AS TABLE
    WITH shown AS (
        SELECT DISTINCT r.topic, r."partition", r."offset", payload_hash,
            shown_name(message_id, payload_hash) AS shown_name, shown_session(producer_session) AS shown_session
        FROM query_table(rows) AS r SEMI JOIN query_table(contested) AS c
            ON same_partition(r.topic, r."partition", c.topic, c."partition") AND r."offset" = c."offset"),
    best AS (
        SELECT topic, "partition", "offset", name, session, content, grouping(name) AS any_name,
            grouping(session) AS any_session, grouping(content) AS any_content, min(turn) AS turn
        FROM query_table(contested) GROUP BY topic, "partition", "offset", CUBE (name, session, content)),
    asked AS (
        SELECT *, unnest([payload_hash, NULL]) AS content FROM (
            SELECT *, unnest([shown_session, NULL]) AS session FROM (
                SELECT *, unnest([shown_name, NULL]) AS name FROM shown))),
    chosen AS (
        SELECT a.topic, a."partition", a."offset", payload_hash, shown_name, shown_session,
            coalesce(min(turn) FILTER (any_content = 0), min(turn)) AS turn
        FROM asked AS a JOIN best AS b
            ON same_partition(a.topic, a."partition", b.topic, b."partition") AND a."offset" = b."offset"
            AND a.name IS NOT DISTINCT FROM b.name AND (shown_name IS NULL) = (any_name = 1)
            AND a.session IS NOT DISTINCT FROM b.session AND (shown_session IS NULL) = (any_session = 1)
            AND a.content IS NOT DISTINCT FROM b.content AND (a.content IS NULL) = (any_content = 1)
        GROUP BY a.topic, a."partition", a."offset", payload_hash, shown_name, shown_session)
    SELECT f.*, c.message_key, c.name, c.is_nameless FROM chosen AS f JOIN query_table(contested) AS c
        ON same_partition(f.topic, f."partition", c.topic, c."partition") AND f."offset" = c."offset"
        AND f.turn = c.turn;
-- The best claim on each row's position that the row does not contradict.
CREATE MACRO with_owner(rows, owners, choices) AS TABLE
    SELECT r.*, o.held_state, o.held_until, o.held_at,
        CASE WHEN o.message_key <> o.last_key THEN c.message_key
            WHEN fits_claim(o.name, o.session, shown_name(r.message_id, r.payload_hash),
                shown_session(r.producer_session)) THEN o.message_key END AS owner,
        CASE WHEN o.message_key <> o.last_key THEN c.name WHEN owner IS NOT NULL THEN o.name END AS owner_name,
        owner IS NOT NULL AND CASE WHEN o.message_key <> o.last_key THEN c.is_nameless ELSE o.is_nameless END
            AS is_nameless
    FROM query_table(rows) AS r
    LEFT JOIN query_table(owners) AS o
        ON same_partition(r.topic, r."partition", o.topic, o."partition") AND r."offset" = o."offset"
    LEFT JOIN query_table(choices) AS c
        ON same_partition(r.topic, r."partition", c.topic, c."partition") AND r."offset" = c."offset"
        AND r.payload_hash IS NOT DISTINCT FROM c.payload_hash
        AND shown_name(r.message_id, r.payload_hash) IS NOT DISTINCT FROM c.shown_name
        AND shown_session(r.producer_session) IS NOT DISTINCT FROM c.shown_session;

-- Rows with their owner and `by_name`: the key that their own id and payload, or by position their position and payload
-- give; null where that is not decided. Where ids are a session's, one that its session did not send is nobody's.
CREATE MACRO with_names(rows, owners, choices) AS TABLE
    SELECT r.*,
        CASE WHEN is_by_position() THEN CASE WHEN r."offset" IS NOT NULL THEN
                contested_key(r.topic, r."partition", r."offset",
                    CASE WHEN p."offset" IS NOT NULL THEN coalesce(c.payload_hash, p.held) END) END
            WHEN is_by_content() OR r.message_id IS NULL THEN NULL
            WHEN i.message_id IS NULL THEN id_key(r.message_id)
            WHEN f.first_key = f.last_key THEN f.first_key
            WHEN i.first_key = i.last_key AND (r.payload_hash IS NULL
                OR i.first_payload IS NOT DISTINCT FROM i.last_payload) THEN i.first_key
        END AS by_name
    FROM with_owner(rows, owners, choices) AS r
    LEFT JOIN reused_id_messages AS i
        ON r.message_id = i.message_id AND shown_session(r.producer_session) IS NOT DISTINCT FROM i.session
    LEFT JOIN reused_id_payloads AS f
        ON r.message_id = f.message_id AND shown_session(r.producer_session) IS NOT DISTINCT FROM f.session
        AND r.payload_hash = f.payload_hash
    LEFT JOIN contested_positions AS p
        ON same_partition(r.topic, r."partition", p.topic, p."partition") AND r."offset" = p."offset"
    LEFT JOIN contested_contents AS c
        ON same_partition(r.topic, r."partition", c.topic, c."partition") AND r."offset" = c."offset"
        AND r.payload_hash = c.payload_hash;

-- Claims of sends: the acknowledged first, of these the latest.
CREATE MACRO send_claims(sends) AS TABLE
    SELECT topic, "partition", "offset", message_key, payload_hash, 2 AS rank, outcome <> 'acked' AS is_doubtful,
        -epoch_us(coalesce(completed_at, attempted_at, never())) AS ago,
        shown_name(message_id, payload_hash) AS name, shown_session(producer_session) AS session,
        NULL::VARCHAR AS state, NULL::TIMESTAMP AS open_until, NULL::TIMESTAMP AS recorded_at,
        says_failed, outcome, log_state
    FROM query_table(sends) WHERE "offset" IS NOT NULL;

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
-- What nothing but itself tells apart of the consumer's rows; what a ledger does not have is null, and left out.
CREATE MACRO consumer_digest(r, isolation, poll_id) AS fields_digest(concat_ws(',',
    json_field('consumer_group', r.consumer_group), json_field('consumer_id', r.consumer_id),
    json_field('content', r.content), json_field('delivery_sequence', r.delivery_sequence),
    json_field('effect_key', r.effect_key), json_field('effect_state', r.effect_state),
    json_field('generation', r.generation), json_field('header_hash', r.header_hash),
    json_field('isolation', isolation), json_field('key_hash', r.key_hash),
    json_field('leader_epoch', r.leader_epoch), json_field('message_id', r.message_id),
    json_field('offset', r."offset"), json_field('outcome', r.outcome), json_field('partition', r."partition"),
    json_field('payload_hash', r.payload_hash), json_field('poll_id', poll_id),
    json_micros('processed_at', r.processed_at), json_field('producer_session', r.producer_session),
    json_micros('record_timestamp', r.record_timestamp), json_field('topic', r.topic),
    json_field('topic_id', r.topic_id), json_field('transaction_id', r.transaction_id),
    json_field('transaction_state', r.transaction_state)));
CREATE MACRO set_aside_digest(message_id, topic, topic_id, a_partition, an_offset, payload_hash, effect_key, t, reason,
    transaction_state, effect_state) AS fields_digest(concat_ws(',',
        json_micros('at', t), json_field('effect_key', effect_key),
        json_field('effect_state', effect_state), json_field('message_id', message_id),
        json_field('offset', an_offset), json_field('partition', a_partition),
        json_field('payload_hash', payload_hash), json_field('reason', reason), json_field('topic', topic),
        json_field('topic_id', topic_id), json_field('transaction_state', transaction_state)));
CREATE MACRO keyed_set_aside(rows) AS TABLE
    SELECT * EXCLUDE (producer_session, message_key), coalesce(message_key, 'r:' || set_aside_digest(message_id, topic,
        topic_id, "partition", "offset", payload_hash, effect_key, "at", reason, transaction_state, effect_state)) AS message_key
    FROM keyed_rows(rows, 'output_owners', 'choices_of_outputs');

-- Lines: what breaks, and what its class alone says. `class` is null where no rule holds.
CREATE MACRO is_break(class, flags) AS
    class NOT IN ('DELIVERED', 'RECOVERED', 'NOT_SENT', 'FILTERED', 'DEAD_LETTERED', 'COMPACTED')
        AND NOT (class = 'IN_FLIGHT' AND NOT list_contains(flags, 'OVERDUE'))
    OR list_contains(flags, 'PHANTOM_ABORTED');
CREATE MACRO is_doubled_in_log(class, flags) AS class = 'LOG_DUPLICATE' OR list_contains(flags, 'inherited');
-- A break's id and its incident's: 32 hex digits that name the JSON. `judged` is the pipeline and its group.
CREATE MACRO json_judged() AS
    '{' || json_field('col1', getvariable('pipeline')) || ',' || json_field('col2', getvariable('judged_group')) || '}';
CREATE MACRO break_id(kind, class, subject) AS left(sha256('{' || concat_ws(',',
    '"col1":' || json_judged(), json_field('kind', kind),
    CASE WHEN kind <> 'message' THEN json_field('col3', class) END, json_field('subject', subject)) || '}'), 32);
CREATE MACRO incident_id(class, locus, cause, a_topic, a_partition, run, flags, first_offset) AS left(sha256(
    '{' || concat_ws(',', '"col1":{' || concat_ws(',', '"col1":' || json_judged(),
        json_field('class', class), json_field('locus', locus), json_field('cause', cause),
        json_field('topic', a_topic), json_field('partition', a_partition),
        json_field('col7', CAST(run AS VARCHAR)), json_field('col8', array_to_string(flags, ','))) || '}',
    json_field('incident_start', first_offset)) || '}'), 32);
-- A length of time in words, to the second, as limits of a statement say it.
CREATE MACRO in_words(seconds) AS coalesce(nullif(concat_ws(' ',
    CASE WHEN seconds >= 3600 THEN seconds // 3600 || ' h' END,
    CASE WHEN seconds // 60 % 60 > 0 THEN seconds // 60 % 60 || ' min' END,
    CASE WHEN seconds % 60 > 0 THEN seconds % 60 || ' s' END), ''), '0 s');
-- The causes that a kind of break admits, before evidence decides between them; a loss may begin its partition.
CREATE MACRO fitting_causes(class, locus, flags, is_read_by_two, is_superseded, begins_partition) AS CASE
    WHEN is_doubled_in_log(class, flags) THEN ['retry without idempotence', 'producer restart or application resend']
    WHEN class = 'OUTPUT_DUPLICATE' AND is_read_by_two OR class = 'REDELIVERY'
        THEN ['process before commit', 'zombie after rebalance', 'offset reset to earliest or latest']
    WHEN class <> 'LOST' THEN []
    WHEN list_contains(flags, 'EXPIRED')
        THEN ['retention overrun', 'offset reset to earliest or latest', 'group offsets expired']
    WHEN locus = 'broker' THEN ['leader failover or unclean election', 'topic recreated']
    WHEN locus = 'consumer' THEN ['commit before process', 'swallowed poison record',
        'offset reset to earliest or latest', 'group offsets expired']
    WHEN locus = 'broker → consumer' THEN ['offset reset to earliest or latest', 'group offsets expired']
    WHEN locus = 'sink' THEN ['prepared transaction not committed']
    WHEN is_superseded THEN ['compaction']
    ELSE [] END || CASE WHEN begins_partition THEN ['partition count changed'] ELSE [] END;
-- A cause that is proved leaves no other open; one that is only doubted stays the first of those that fit.
CREATE MACRO open_causes(cause, told, fitting) AS CASE
    WHEN cause <> 'unknown' THEN [cause]
    WHEN told <> 'unknown' THEN [told] || list_filter(fitting, lambda fits: fits <> told)
    ELSE fitting END;

-- Fates. Whether the window has a message's event at a time: where it is known by position, the message's.
CREATE MACRO holds_message(is_in_ranges, t) AS coalesce(is_in_ranges, in_window(t));
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
-- Whether covered producers would show the origin of an effect or record. They must be all of the topic, and cover the
-- record's time, or where that is null reach back as far as an origin may lie.
CREATE MACRO is_origin_covered(record_at, is_recorded, seen_at, is_from_start) AS
    coalesce(getvariable('coverage')['produced'].names_all_producers, false) AND CASE
        WHEN is_recorded AND record_at IS NOT NULL THEN covered_between(
            'produced', record_at - getvariable('clock_skew'), record_at + getvariable('clock_skew'))
        ELSE covered_until('produced', seen_at + getvariable('clock_skew'))
            AND (covered_from('produced', seen_at - getvariable('look_back')) OR is_from_start) END;
-- Contents. A side is a struct of has_value, is_null (known to be none) and is_lacking (its file has no such column);
-- a pair one of is_other (later has a value that earlier never had), is_part (nulls of later are parts of a fan-out)
-- and is_earlier_empty, is_later_empty (that side's null may be the empty text, which the other side has).
CREATE MACRO shows_empty(value, ledger, name) AS coalesce(value = getvariable('empty_contents')[ledger || '.' || name], false);
CREATE MACRO is_content_known(name, side) AS side.has_value OR (name <> 'header_hash' AND side.is_null);
CREATE MACRO is_content_nulled(later, earlier, pair) AS
    later.is_null AND NOT earlier.is_null AND earlier.has_value AND NOT pair.is_part;
CREATE MACRO content_differs(name, later, earlier, pair) AS
    is_content_known(name, earlier) AND NOT earlier.is_lacking AND NOT pair.is_earlier_empty
    AND (pair.is_other
        OR (name <> 'header_hash' AND is_content_nulled(later, earlier, pair) AND NOT pair.is_later_empty));
CREATE MACRO content_may_differ(name, later, earlier, pair) AS
    (later.is_lacking AND (earlier.has_value OR earlier.is_null) AND NOT pair.is_part)
    OR (earlier.is_lacking AND (pair.is_other OR (later.is_null AND NOT earlier.is_null)))
    OR (is_content_nulled(later, earlier, pair) AND (pair.is_later_empty OR name = 'header_hash'))
    OR (pair.is_earlier_empty AND pair.is_other)
    OR (name = 'header_hash' AND earlier.is_null AND NOT earlier.has_value AND later.has_value);

-- Contents: the digests of rows, and the keys of what only its payload ties to a send.
-- A digest is the SHA-256 of a row's known columns in the order of their names, as JSON; it gets into ids of breaks.
CREATE MACRO send_digest(r) AS fields_digest(concat_ws(',',
    json_micros('attempted_at', r.attempted_at), json_field('claimed', claimed_outcome(r.outcome)),
    json_micros('completed_at', r.completed_at), json_field('content', r.content),
    json_field('effect_key', r.effect_key), json_field('header_hash', r.header_hash),
    json_field('intended_partition', r.intended_partition), json_field('is_approximate', r.is_approximate),
    json_field('key_hash', r.key_hash), json_field('leader_epoch', r.leader_epoch),
    json_field('message_id', r.message_id), json_field('offset', placed_offset(r."offset")),
    json_field('partition', r."partition"), json_field('payload_hash', r.payload_hash),
    json_field('producer_id', r.producer_id), json_field('producer_session', r.producer_session),
    json_micros('record_timestamp', r.record_timestamp), json_field('sequence', r.sequence),
    json_field('topic', r.topic), json_field('topic_id', r.topic_id),
    json_field('transaction_id', r.transaction_id), json_field('transaction_state', r.transaction_state)));
CREATE MACRO effect_digest(r, a_key, has_an_identity, is_unserved) AS fields_digest(concat_ws(',',
    json_field('consumer_group', r.consumer_group), json_field('consumer_id', r.consumer_id),
    json_field('content', r.content), json_field('delivery_sequence', r.delivery_sequence),
    json_field('effect_key', r.effect_key), json_field('effect_state', r.effect_state),
    json_field('generation', r.generation), json_field('has_identity', has_an_identity),
    json_field('header_hash', r.header_hash), json_micros('held_at', r.held_at),
    json_field('held_state', r.held_state), json_field('is_ambiguous', r.is_ambiguous),
    json_field('is_of_aborted', r.is_of_aborted), json_field('is_unserved', is_unserved),
    json_field('isolation', r.isolation), json_field('key', a_key), json_field('key_hash', r.key_hash),
    json_field('leader_epoch', r.leader_epoch), json_field('message_id', r.message_id),
    json_field('offset', r."offset"), json_micros('open_until', r.open_until), json_field('outcome', r.outcome),
    json_field('partition', r."partition"), json_field('payload_hash', r.payload_hash),
    json_field('poll_id', r.poll_id), json_micros('processed_at', r.processed_at),
    json_field('producer_session', r.producer_session), json_micros('record_timestamp', r.record_timestamp),
    json_field('topic', r.topic), json_field('topic_id', r.topic_id),
    json_field('transaction_id', r.transaction_id), json_field('transaction_state', r.transaction_state)));
CREATE MACRO keyed_set_aside_digest(r) AS fields_digest(concat_ws(',',
    json_micros('at', r."at"), json_field('effect_key', r.effect_key), json_field('effect_state', r.effect_state),
    json_field('has_identity', r.has_identity), json_micros('held_at', r.held_at),
    json_field('held_state', r.held_state), json_field('is_ambiguous', r.is_ambiguous),
    json_field('is_of_aborted', r.is_of_aborted), json_field('key', r.message_key),
    json_field('message_id', r.message_id), json_field('offset', r."offset"), json_micros('open_until', r.open_until),
    json_field('partition', r."partition"), json_field('payload_hash', r.payload_hash), json_field('reason', r.reason),
    json_field('topic', r.topic), json_field('topic_id', r.topic_id),
    json_field('transaction_state', r.transaction_state)));
CREATE MACRO payload_key(payload_hash) AS 'h:' || payload_hash;
CREATE MACRO excess_key(payload_hash) AS 'e:' || payload_hash;
CREATE MACRO is_unsent(message_key, payload_hash) AS
    payload_hash IS NOT NULL AND (starts_with(message_key, 'u:') OR starts_with(message_key, 'h:'));
CREATE MACRO outcome_rank(outcome) AS CASE outcome WHEN 'acked' THEN 0 WHEN 'unknown' THEN 1 WHEN 'failed' THEN 2 END;
CREATE MACRO ranked_state(rank) AS CASE rank WHEN 0 THEN 'committed' WHEN 1 THEN 'none' WHEN 2 THEN 'open'
    WHEN 3 THEN 'aborted' END;
-- Whether `produced` would show who sent one row more than there are attempts.
CREATE MACRO shows_all_sends(since, until) AS
    coalesce(getvariable('coverage')['produced'].names_all_producers, false)
    AND covered_between('produced', since, until);
CREATE MACRO aside_rank(effect_state) AS CASE effect_state WHEN 'ok' THEN 0 WHEN 'unknown' THEN 2 ELSE 4 END;

-- Strays: effects before their send that may be of another one.
CREATE MACRO stray_key(a_key) AS 'b:' || a_key;
CREATE MACRO is_stray(r, sent_at) AS r.effect_state = 'ok' AND comes_before(r.processed_at, sent_at)
    AND NOT covered_between('produced', r.processed_at, r.processed_at);
-- Lines: breaks that stand by themselves, and the rows and times that say what caused them.
CREATE MACRO same_position(a_topic, a_partition, an_offset, b_topic, b_partition, b_offset) AS
    same_partition(a_topic, a_partition, b_topic, b_partition) AND an_offset = b_offset;
-- By what two rows of one position contradict each other: their ids, or what they hold.
CREATE MACRO name_of(message_id, payload_hash) AS CASE WHEN is_by_content() THEN payload_hash ELSE message_id END;
CREATE MACRO clues(
    sent_at := NULL, acked_at := NULL, is_plain_overlap := NULL, leader_epoch := NULL, generation_before := NULL,
    generation := NULL, before_at := NULL, committed_at := NULL, is_beyond_end := NULL
) AS {
    'sent_at': sent_at::TIMESTAMP, 'acked_at': acked_at::TIMESTAMP, 'is_plain_overlap': is_plain_overlap::BOOLEAN,
    'leader_epoch': leader_epoch::INTEGER, 'generation_before': generation_before::BIGINT,
    'generation': generation::BIGINT, 'before_at': before_at::TIMESTAMP, 'committed_at': committed_at::TIMESTAMP,
    'is_beyond_end': is_beyond_end::BOOLEAN};
CREATE MACRO position_of(a_topic, a_partition, an_offset) AS
    {'topic': a_topic, 'partition': a_partition, 'offset': an_offset::BIGINT};
CREATE MACRO commit_row(a_topic, a_partition, a_first_offset, an_offset, at_time, a_metadata) AS {
    'topic': a_topic, 'partition': a_partition, 'first_offset': a_first_offset::BIGINT,
    'committed_offset': an_offset::BIGINT, 'committed_at': at_time::TIMESTAMP, 'metadata': a_metadata::VARCHAR};
-- The subject of a break: a field that is null is left out, as everywhere.
CREATE MACRO subject_of(a_topic, a_partition, one := NULL, two := NULL, three := NULL, four := NULL) AS
    '{' || concat_ws(',', json_field('topic', a_topic), json_field('partition', a_partition), one, two, three, four)
        || '}';
CREATE MACRO json_positions(places) AS '"positions":[' || array_to_string(
    list_transform(places, lambda p: json_position(p.topic, p."partition", p."offset")), ',') || ']';
-- Whether an operator's reset of the group is announced at all, and whether one lies between two times.
CREATE MACRO announced_resets() AS list_filter(getvariable('resets'),
    lambda r: r."group" IS NULL OR r."group" = getvariable('judged_group'));
CREATE MACRO is_annotated(earlier_at, later_at) AS len(list_filter(announced_resets(),
    lambda r: earlier_at <= r."at" + getvariable('clock_skew') AND later_at >= r."at" - getvariable('clock_skew')
)) > 0;
-- Of two rows of one consumer, and of two effects: whether the first certainly came before; ties tell nothing.
CREATE MACRO came_before(an_at, a_turn, b_at, b_turn) AS
    CASE WHEN a_turn IS NOT NULL AND b_turn IS NOT NULL THEN a_turn < b_turn ELSE an_at < b_at END;
CREATE MACRO effect_is_before(an_at, a_turn, a_consumer, b_at, b_turn, b_consumer) AS coalesce(CASE
    WHEN a_consumer IS NOT DISTINCT FROM b_consumer THEN came_before(an_at, a_turn, b_at, b_turn)
    ELSE an_at + getvariable('clock_skew') < b_at END, false);
CREATE MACRO is_present(ledger) AS coalesce(getvariable('coverage')[ledger].is_present, false);
-- Whether the contract promises an order of keys that the evidence can be held against, wherever their messages lie.
CREATE MACRO orders_keys() AS
    getvariable('ordering') = 'key' AND NOT is_by_content() AND has_column('produced', 'key_hash');
-- Whether the log covers a position since a time: below its end as far as its records are complete, from there on where
-- the end was observed later. A partition of which the log shows nothing is none of its.
CREATE MACRO log_covers(an_offset, done_at, log_start, log_end, observed_at) AS
    coalesce(getvariable('coverage')['log'].is_sound, false)
    AND (done_at IS NULL OR covered_from('log', done_at))
    AND log_end IS NOT NULL
    AND NOT coalesce(an_offset < log_start, false)
    AND CASE
        WHEN coalesce(an_offset < log_end, false) THEN done_at IS NULL OR covered_until('log', done_at)
        WHEN observed_at IS NOT NULL THEN coalesce(observed_at >= done_at + getvariable('clock_skew'), false)
        ELSE covered_until('log', done_at + getvariable('clock_skew')) END;
-- Of two messages of a key: whether the first is known to be sent before, by the log, by number or in time.
CREATE MACRO was_sent_before(
    a_partition, an_offset, a_session, a_number, a_completed_at, b_partition, b_offset, b_session, b_number, b_sent_at
) AS coalesce(CASE
    WHEN a_partition = b_partition THEN an_offset < b_offset
    WHEN a_session = b_session THEN a_number < b_number
    ELSE a_completed_at + getvariable('clock_skew') < b_sent_at END, false);
-- A rank with what sets it apart, both below 2^31, in one number that is ordered by rank.
CREATE MACRO packed_mark(a_rank, apart) AS a_rank * 2147483648 + apart;
CREATE MACRO mark_rank(mark) AS mark // 2147483648;
CREATE MACRO mark_apart(mark) AS mark % 2147483648;

-- Round messages.
-- Whether contents are held against each other: two ledgers show them; the key's hash also says what is superseded.
CREATE MACRO is_compared(name) AS name = 'key_hash' OR
    has_column('produced', name)::INT + has_column('log', name)::INT + has_column('delivered', name)::INT
    + has_column('read', name)::INT > 1;

CREATE MACRO contents_of(payload_hash, key_hash, header_hash, record_timestamp) AS [
    {'name': 'payload_hash', 'bit': 1, 'value': CASE WHEN is_compared('payload_hash') THEN payload_hash END},
    {'name': 'key_hash', 'bit': 2, 'value': key_hash},
    {'name': 'header_hash', 'bit': 4, 'value': CASE WHEN is_compared('header_hash') THEN header_hash END},
    {'name': 'record_timestamp', 'bit': 8,
        'value': CASE WHEN is_compared('record_timestamp') THEN record_timestamp::VARCHAR END}];

-- Who shows a message's id, as bits: a send 1; log, delivered and read three each from 2, 16 and 128 on: a send within
-- what the ledger covers, a row of it, a row within what `produced` covers. Source: taxonomy.md 8, 2.
CREATE MACRO identity_name() AS CASE WHEN is_by_content() THEN 'payload_hash' ELSE 'message_id' END;
CREATE MACRO shares_ids(ledger) AS NOT is_by_position()
    AND has_column('produced', identity_name()) AND has_column(ledger, identity_name());
CREATE MACRO may_cover(ledger, t) AS is_told(ledger) AND (t IS NULL OR covered_between(ledger, t, t));
CREATE MACRO sent_marks(t) AS 1
    + CASE WHEN shares_ids('log') AND may_cover('log', t) THEN 2 ELSE 0 END
    + CASE WHEN shares_ids('delivered') AND may_cover('delivered', t) THEN 16 ELSE 0 END
    + CASE WHEN shares_ids('read') AND may_cover('read', t) THEN 128 ELSE 0 END;
CREATE MACRO shown_marks(ledger, mark, t) AS CASE
    WHEN NOT shares_ids(ledger) THEN 0
    WHEN may_cover('produced', t) THEN 3 * mark ELSE mark END;

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
-- A time at which somebody was given what was not committed then, by when its transaction was open.
CREATE MACRO opened_at(seen_at, open_until) AS
    CASE WHEN seen_at < open_until - getvariable('clock_skew') THEN seen_at END;
